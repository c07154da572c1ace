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
    """Bits per byte with taps switched off, in all layers and in one; a large dot at the present choice."""
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    panel, names = figure.subplots(), list(OFF)
    layers = places(measured)
    for place in reversed(layers):
        bits = [measured[name, place][0] for name in names]
        colour = {layers[0]: BLUE, layers[1]: ORANGE}.get(place, GREY)
        panel.plot(range(len(names)), bits, "o-", color=colour, linewidth=1.6, markersize=4)
        if place in layers[:2]:
            panel.text(len(names) - 0.9, bits[-1], f"{place}" if place == layers[0] else f"{place} alone", color=colour)
    rest = np.mean([measured[names[-1], place][0] for place in layers[2:]])
    panel.text(len(names) - 0.9, rest - 0.02, "each other layer alone", color=GREY)
    found, text = measured[off, where]
    panel.plot([names.index(off)], [found], "o", color=BLUE if where == layers[0] else ORANGE, markersize=11)
    panel.set_xticks(range(len(names)), names)
    panel.set(xlim=(-0.3, len(names) + 0.9), xlabel="taps switched off", ylabel="bits per byte")
    panel.set_title(
        "Without its three predecessors a byte costs half a bit more", loc="left", fontsize=12, weight="bold"
    )
    more = found - measured[names[0], where][0]
    numbers = {"bits per byte": f"{found:.3f}", "more than intact": f"{more:.3f}", "it writes": Passage(text)}
    return figure, numbers


@torch.no_grad()
def fields(model: torch.nn.Module, bytes_: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """u and a of each layer's spins, (bytes, spins) each: what W_ext gives, without any recurrence."""
    seen: list[torch.Tensor] = []
    couplings = [part for name, part in model.named_modules() if name.endswith("w_ext")]
    hooks = [part.register_forward_hook(lambda _, x, z: seen.append(z.flatten(0, -2))) for part in couplings]
    model(bytes_[:, :-1])
    for hook in hooks:
        hook.remove()
    return [tuple(z.chunk(2, -1)) for z in seen]


def explained(y: torch.Tensor, x: torch.Tensor) -> float:
    """The share of y's variance that a straight line in x accounts for, spin by spin, on average."""
    x, y = x - x.mean(0), y - y.mean(0)
    return ((x * y).sum(0) ** 2 / ((x**2).sum(0) * (y**2).sum(0)).clamp_min(1e-12)).mean().item()
