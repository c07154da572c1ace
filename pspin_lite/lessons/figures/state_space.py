"""Figures of notebook 01: decay masks, what a state remembers, costs. Each returns the figure and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .diagram import INK, KEY, STATE, tint
from .style import BLUE, CYCLE, GREY, ORANGE, styled

FLOAT32_LIMIT = math.log(torch.finfo(torch.float32).max)  # exp overflows above it


@styled
def memory(decays: list[float], tokens: int) -> tuple[Figure, dict[float, np.ndarray]]:
    """What is left of one token after others have come, for several constant decays; half-lives are marked."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    t, left = np.geomspace(0.3, tokens, 200), {}
    for decay, colour in zip(decays, CYCLE, strict=False):
        left[decay] = decay**t
        half = half_life(decay)
        axes.semilogx(t, left[decay], color=colour)
        axes.plot([half], [0.5], "o", color=colour)
        words = f"decay {decay:g}\nhalf-life {half:.0f}"
        axes.text(1.15 * half, 0.5, words, color=colour, fontsize=10, va="bottom")
    axes.set(xlabel="tokens later", ylabel="share of the token that is left", xlim=(0.3, tokens), ylim=(0, 1.02))
    ticks = [10**n for n in range(math.floor(math.log10(tokens)) + 1)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_title("Long memories need decays very close to 1", loc="left", weight="bold")
    return figure, left


def half_life(decay: float) -> float:
    """Tokens until half is left; infinite for a decay of 1."""
    return math.inf if decay >= 1 else math.log(0.5) / math.log(decay)


def shades(colour: str, shares: np.ndarray) -> np.ndarray:
    """Red, green, blue: the more is left, the stronger."""
    return np.array([tint(colour, strength) for strength in 0.08 + 0.84 * shares.ravel()]).reshape(*shares.shape, 3)


def pairs_and_state(M: np.ndarray, chunk: int) -> np.ndarray:
    """The mask as a picture: orange what is computed as a pair, purple what comes through the state."""
    i, j = np.indices(M.shape)
    steps = np.rint(63 * M).astype(int)
    pair, state = (shades(colour, np.linspace(0, 1, 64))[steps] for colour in (KEY, STATE))
    picture = np.where((i // chunk == j // chunk)[..., None], pair, state)
    return np.where((i >= j)[..., None], picture, 1.0)


def _heat_map(axes: Axes, M: np.ndarray, chunk: int) -> None:
    T = len(M)
    axes.grid(False)
    axes.imshow(pairs_and_state(M, chunk), interpolation="none", extent=(0.5, T + 0.5, T + 0.5, 0.5))
    if chunk < T:
        a = np.arange(0, T, chunk)  # the square of pairs of each chunk, all in one line with gaps
        b = np.minimum(a + chunk, T)
        gap = np.full(len(a), np.nan)
        x, y = np.stack([a, b, b, a, a, gap], 1), np.stack([a, a, b, b, a, gap], 1)
        axes.plot(x.ravel() + 0.5, y.ravel() + 0.5, color=INK, lw=1.2, clip_on=False)
    axes.set(xlabel="token j (written)", ylabel="token i (reading)", xlim=(0.5, T + 0.5), ylim=(T + 0.5, 0.5))


ANCHORS = {0.5: 2.6, 0.9: 10, 0.99: 50, 0.999: 150}  # ages at which there is room for a decay's name


@styled
def clarity(
    measured: Mapping[float, np.ndarray],
    ages: Sequence[int],
    predicted: Mapping[float, np.ndarray],
    fine: Sequence[float],
) -> tuple[Figure, Mapping[float, np.ndarray]]:
    """How well one token is read from the state, by age, for several decays: dots measured, lines predicted
    at the ages of a fine grid."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for decay, colour in zip(measured, CYCLE, strict=False):
        axes.plot(fine, predicted[decay], color=colour)
        at = ANCHORS.get(decay, 0)
        place = np.interp(at, fine, predicted[decay])
        axes.text(at, place + 0.03, f" {decay:g}", color=colour, weight="bold")
        axes.plot(ages, measured[decay], "o", color=colour, markersize=4)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes.set(xlabel="age of the token that is looked for, in tokens", ylabel="cosine of answer and value")
    axes.set_ylim(-0.1, 1.1)
    axes.text(0.99, 0.93, "lines: predicted, dots: measured", color=GREY, ha="right", transform=axes.transAxes)
    axes.set_title("A long memory is a dim one", loc="left", weight="bold")
    return figure, measured


@styled
def times(
    chunks: Sequence[int], seconds: Sequence[float], flops: Sequence[float], paper: int
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Time and flops of the chunked form against the chunk, both relative to their smallest value. Dashed, what the
    time would be if it were proportional to the number of chunks; the paper's chunk is marked."""
    time, arithmetic = (np.array(values) / min(values) for values in (seconds, flops))
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(chunks, time[0] * chunks[0] / np.array(chunks), color=ORANGE, ls="--", lw=1.2)
    for values, colour in ((time, ORANGE), (arithmetic, BLUE)):
        axes.loglog(chunks, values, "o-", color=colour)
    axes.text(1.15 * chunks[1], 1.1 * time[1], "time, as measured", color=ORANGE, va="bottom")
    axes.text(chunks[0], 3.2, "dashed:\nnumber of\nchunks", color=ORANGE, va="center")
    axes.text(chunks[0], 1.15, "flops, as counted", color=BLUE, va="bottom")
    axes.set_xticks(chunks, [str(C) for C in chunks])
    ticks = [n for n in (1, 2, 5, 10, 20, 50, 100) if n < 2 * max(time.max(), arithmetic.max())]
    axes.set_yticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.set(xlabel="chunk C", ylabel="times the smallest", ylim=(0.8, 1.6 * max(time.max(), arithmetic.max())))
    axes.axvline(paper, color=GREY, ls=":")
    top = axes.get_xaxis_transform()
    axes.text(0.93 * paper, 0.97, "the paper's chunk", color=GREY, ha="right", va="top", transform=top)
    fast = [C for C, value in zip(chunks, time, strict=True) if value < 1.4]
    best = f"{fast[0]}" if len(fast) == 1 else f"{fast[0]} to {fast[-1]}"
    title = f"Fewest flops at C = {chunks[int(arithmetic.argmin())]}, fastest at C = {best}"
    axes.set_title(title, loc="left", weight="bold")
    names = {chunks[0]: "\nrecurrent", chunks[-1]: "\nquadratic"}
    axes.set_xticklabels([f"{C:,}{names.get(C, '')}" for C in chunks])
    return figure, {"time": time, "flops": arithmetic}


@styled
def decay_and_chunks(decay: float, chunk: int, T: int) -> tuple[Figure, dict[str, object]]:
    """The widget of notebook 01: the mask with its chunks, and what is left of each token when the last one reads."""
    M = np.tril(float(decay) ** np.maximum(np.subtract.outer(np.arange(T), np.arange(T)), 0))
    left = M[-1]
    start = (T - 1) // chunk * chunk  # first token of the last chunk
    chunks = math.ceil(T / chunk)
    lengths = np.minimum(chunk, T - chunk * np.arange(chunks))

    figure = Figure(figsize=(8.2, 3.6))
    _heat_map(figure.add_axes((0.07, 0.14, 0.36, 0.76)), M, chunk)
    axes = figure.add_axes((0.53, 0.14, 0.44, 0.76))
    t = np.arange(T + 1) + 0.5
    parts = (("■ through the state", 0, start, STATE, 0.92), ("■ as a pair", start, T, KEY, 0.83))
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
        "pairs used": f"{int((lengths * (lengths + 1) // 2).sum()):,}",
        "of all pairs": f"{T * (T + 1) // 2:,}",
    }
    figure.axes[0].set_title(f"{numbers['pairs used']} of {numbers['of all pairs']} pairs", fontsize=11, weight="bold")
    axes.set_title(f"{numbers['of it through the state']} through the state", fontsize=11, weight="bold")
    return figure, numbers
