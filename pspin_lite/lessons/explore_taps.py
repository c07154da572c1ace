"""Taps of a trained network's convolution, switched off: bits per byte and a text, for the widget of notebook 15."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn import functional as F

from .. import generation
from .figures import BLUE, GREY, ORANGE, styled
from .figures.live import Passage

OFF = {"nothing": (), "1 back": (1,), "2 back": (2,), "3 back": (3,), "all three": (1, 2, 3)}  # bytes before
PROMPT, TOKENS = "The Congress of the ", 48
Measured = Mapping[tuple[str, str], tuple[float, str]]  # (what is off, where) -> bits per byte, what it writes


def windows(ribbon: np.ndarray, count: int, length: int) -> torch.Tensor:
    """(count, length + 1) bytes, from evenly spaced places."""
    starts = np.linspace(0, len(ribbon) - length - 1, count).astype(int)
    return torch.tensor(np.stack([ribbon[i : i + length + 1] for i in starts])).long()


@torch.no_grad()
def bits_per_byte(model: torch.nn.Module, bytes_: torch.Tensor) -> float:
    logits = model(bytes_[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), bytes_[:, 1:].flatten()).item() / math.log(2)


@contextmanager
def switched_off(model: torch.nn.Module, back: Sequence[int], layers: Sequence[int]) -> Iterator[None]:
    """Taps for the bytes so many places back are zero in these layers, counted from 1; afterwards as they were."""
    weights = [model.blocks[layer - 1].mixer.convolution.weight.data for layer in layers]
    before = [weight.clone() for weight in weights]
    for weight in weights:
        weight[[-1 - n for n in back]] = 0
    try:
        yield
    finally:
        for weight, old in zip(weights, before, strict=True):
            weight.copy_(old)


def measure(model: torch.nn.Module, tokenizer: generation.Tokenizer, bytes_: torch.Tensor) -> Measured:
    """Of every choice, in all layers and in each alone."""
    places = {"all layers": range(1, len(model.blocks) + 1)}
    places |= {f"layer {n}": (n,) for n in places["all layers"]}
    measured, intact = {}, None
    for off, back in OFF.items():
        for where, layers in places.items():
            with switched_off(model, back, layers):
                if back or intact is None:
                    how = dict(tokens=TOKENS, temperature=0.5, seed=15)
                    text = "".join(generation.stream(model, tokenizer, PROMPT, **how))
                    found = bits_per_byte(model, bytes_), text
                intact = intact or found
                measured[off, where] = found if back else intact
    return measured


def places(measured: Measured) -> list[str]:
    return list(dict.fromkeys(place for _, place in measured))


def describe(measured: Measured) -> str:
    """The figure in words."""
    (intact, _), (without, _) = measured["nothing", "all layers"], measured["all three", "all layers"]
    alone = [measured["all three", place][0] - intact for place in places(measured)[1:]]
    return (
        "Bits per byte with taps switched off: none, those one, two or three bytes back, and all three. Without all "
        f"three in all layers they rise from {intact:.2f} to {without:.2f}; in layer 1 alone by {alone[0]:.2f}, in "
        f"any other layer alone by {max(alone[1:]):.2f} at most."
    )


def explored(measured: Measured) -> partial:
    """The draw function of the widget."""
    return partial(draw_taps, measured)


@styled
def draw_taps(measured: Measured, off: str, where: str) -> tuple[Figure, dict[str, object]]:
    """What it costs to switch taps off, in all layers and in one; the choice in full colour, with its number."""
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    panel, names, layers = figure.subplots(), list(OFF)[1:], places(measured)
    intact, width = measured["nothing", layers[0]][0], 0.84 / len(layers)
    for number, place in enumerate(layers):
        colour = {layers[0]: BLUE, layers[1]: ORANGE}.get(place, GREY)
        more = [measured[name, place][0] - intact for name in names]
        at = [x + (number - (len(layers) - 1) / 2) * width for x in range(len(names))]
        for name, x, height in zip(names, at, more, strict=True):
            chosen = (name, place) == (off, where)
            sides = [x - 0.45 * width, x + 0.45 * width]
            panel.fill_between(sides, 0, height, color=colour, alpha=1 if chosen else 0.35, linewidth=0)
            if chosen:
                panel.text(x, height + 0.008, f"{height:+.3f}", ha="center", va="bottom", weight="bold", color=colour)
    labels = {layers[0]: BLUE, f"{layers[1]} alone": ORANGE, "each other layer alone": GREY}
    for number, (label, colour) in enumerate(labels.items()):
        panel.text(0.02, 0.9 - 0.1 * number, label, transform=panel.transAxes, color=colour, weight="bold")
    found, text = measured[off, where]
    top = max(bits for bits, _ in measured.values()) - intact
    panel.set_xticks(range(len(names)), names)
    panel.set(xlabel="taps switched off", ylabel="more bits per byte", ylim=(min(0, -0.02 * top), 1.16 * top))
    panel.grid(axis="x", visible=False)
    panel.set_title(
        "Without its three predecessors a byte costs half a bit more", loc="left", fontsize=12, weight="bold"
    )
    numbers = {"bits per byte": f"{found:.3f}", "more than intact": f"{found - intact:.3f}", "it writes": Passage(text)}
    return figure, numbers
