"""Figures of notebook 01: decay masks, what a state remembers, costs. Each returns the figure and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...state_space import decay_mask
from .style import BLUE, CYCLE, GREY, ORANGE, RED, lines_and_dots, styled

FLOAT32_LIMIT = math.log(torch.finfo(torch.float32).max)  # exp overflows above it


@styled
def memory(decays: list[float], tokens: int) -> tuple[Figure, dict[float, np.ndarray]]:
    """What is left of one token after others have come, for several constant decays; half-lives are marked."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    left = {}
    for decay, colour in zip(decays, CYCLE, strict=False):
        t = np.arange(tokens + 1)
        left[decay] = decay**t
        half = np.log(0.5) / np.log(decay)
        axes.plot(t, left[decay], color=colour, label=f"decay {decay:g}: half-life {half:.0f}")
        if half <= tokens:
            axes.plot([half], [0.5], "o", color=colour)
    axes.set(xlabel="tokens later", ylabel="share of the token that is left", xlim=(0, tokens), ylim=(0, 1.02))
    axes.legend(loc="center right")
    return figure, left


def half_life(decay: float) -> float:
    """Tokens until half is left; infinite for a decay of 1."""
    return math.inf if decay >= 1 else math.log(0.5) / math.log(decay)


def _heat_map(axes: Axes, M: np.ndarray, chunk: int | None) -> None:
    T = len(M)
    axes.grid(False)
    axes.imshow(
        np.ma.masked_equal(M, 0),
        cmap="cividis",
        vmin=0,
        vmax=1,
        interpolation="none",
        extent=(0.5, T + 0.5, T + 0.5, 0.5),
    )
    if chunk is not None and chunk < T:
        a = np.arange(0, T, chunk)  # the square of pairs of each chunk, all in one line with gaps
        b = np.minimum(a + chunk, T)
        gap = np.full(len(a), np.nan)
        x, y = np.stack([a, b, b, a, a, gap], 1), np.stack([a, a, b, b, a, gap], 1)
        axes.plot(x.ravel() + 0.5, y.ravel() + 0.5, color=RED, lw=1.2)
    axes.set(xlabel="token j (written)", ylabel="token c (reading)", xlim=(0.5, T + 0.5), ylim=(T + 0.5, 0.5))


@styled
def mask(G: torch.Tensor, chunk: int | None = None) -> tuple[Figure, np.ndarray]:
    """The causal decay mask of log decays G (T,) as a heat map; squares mark the chunks. White: nothing left."""
    M = decay_mask(G.detach()).numpy()
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    _heat_map(axes, M, chunk)
    figure.colorbar(axes.images[0], ax=axes, label="share of token j left at token c")
    return figure, M


@styled
def clarity(
    measured: Mapping[float, np.ndarray], ages: Sequence[int], predicted: Mapping[float, np.ndarray]
) -> tuple[Figure, Mapping[float, np.ndarray]]:
    """How well one token is read from the state, by age, for several decays: dots measured, lines predicted."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for decay, colour in zip(measured, CYCLE, strict=False):
        axes.plot(ages, predicted[decay], color=colour, label=f"decay {decay:g}")
        axes.plot(ages, measured[decay], "o", color=colour, markersize=4)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes.set(xlabel="age of the token that is looked for, in tokens", ylabel="cosine of answer and value")
    axes.set_ylim(-0.1, 1.02)
    figure.legend(loc="outside right upper", title="lines: predicted\ndots: measured")
    return figure, measured


@styled
def gates(decays: np.ndarray, expected: float) -> tuple[Figure, np.ndarray]:
    """Histogram of a fresh model's decays; one half and the expected value are marked."""
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    counts, *_ = axes.hist(decays, bins=np.linspace(0, 1, 101), color=BLUE)
    axes.axvline(0.5, color=GREY, ls="--", label="one half")
    axes.axvline(expected, color=RED, label=f"expected: {expected:.2f}")
    axes.set(xlabel="decay exp(G)", ylabel="number of gates", xlim=(0, 1))
    axes.legend()
    return figure, counts


@styled
def growth(
    lengths: Sequence[int], counted: Mapping[str, Sequence[float]], formulas: Mapping[str, Sequence[float]]
) -> tuple[Figure, Mapping[str, Sequence[float]]]:
    """Flops against the length of the text: lines from formulas, dots as counted."""
    figure = lines_and_dots(lengths, formulas, counted, xlabel="tokens T", ylabel="flops, one head")
    return figure, counted


@styled
def times(
    chunks: Sequence[int], seconds: Sequence[float], flops: Sequence[float]
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Time and flops of the chunked form against the chunk, both relative to their smallest value."""
    shown = {
        "time, on this machine": np.array(seconds) / min(seconds),
        "flops, as counted": np.array(flops) / min(flops),
    }
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(shown.items(), (ORANGE, BLUE), strict=True):
        axes.loglog(chunks, values, "o-", color=colour, label=name)
    axes.set_xticks(chunks, [str(C) for C in chunks])
    ticks = [n for n in (1, 2, 5, 10, 20, 50, 100) if n < 2 * max(v.max() for v in shown.values())]
    axes.set_yticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.set(xlabel="chunk C", ylabel="times the smallest")
    axes.legend()
    return figure, shown


@styled
def decay_and_chunks(decay: float, chunk: int, T: int) -> tuple[Figure, dict[str, object]]:
    """The widget of notebook 01: the mask with its chunks, and what is left of each token when the last one reads."""
    M = np.tril(float(decay) ** np.maximum(np.subtract.outer(np.arange(T), np.arange(T)), 0))
    left = M[-1]
    start = (T - 1) // chunk * chunk  # first token of the last chunk
    chunks = math.ceil(T / chunk)
    lengths = np.minimum(chunk, T - chunk * np.arange(chunks))

    figure = Figure(figsize=(8.2, 3.5))
    _heat_map(figure.add_axes((0.07, 0.15, 0.36, 0.80)), M, chunk)
    axes = figure.add_axes((0.53, 0.15, 0.44, 0.80))
    t = np.arange(T + 1) + 0.5
    parts = (("■ through the state", 0, start, BLUE, 0.92), ("■ as a pair", start, T, ORANGE, 0.83))
    for name, a, b, colour, height in parts:
        if b > a:
            axes.stairs(left[a:b], t[a : b + 1], fill=True, color=colour)
            axes.text(0.03, height, name, color=colour, transform=axes.transAxes)  # a legend takes longer
    axes.set(xlabel="token j (written)", ylabel="share left at the last token", xlim=(0.5, T + 0.5), ylim=(0, 1.02))
    few = [1, T // 2, T]  # ticks take most of the time of drawing
    figure.axes[0].set(xticks=few, yticks=few)
    figure.axes[0].yaxis.set_label_coords(-0.15, 0.5)  # where it is, however wide the ticks
    axes.set(xticks=few, yticks=[0, 0.5, 1])
    half = half_life(decay)
    numbers = {
        "half-life, tokens": "for ever" if math.isinf(half) else f"{half:.3g}",
        "memory in tokens": float(left.sum()),  # the sum of all shares
        "of it through the state": f"{100 * left[:start].sum() / left.sum():.3g} %",
        "chunks": chunks,
        "pairs computed": f"{int((lengths * (lengths + 1) // 2).sum()):,}",
        "of all pairs": f"{T * (T + 1) // 2:,}",
    }
    return figure, numbers
