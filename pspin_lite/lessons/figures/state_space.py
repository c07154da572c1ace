"""Figures of notebook 01: decay masks, what a state remembers, costs. Each returns the figure and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .diagram import INK, PAIR, STATE, tint
from .style import BLUE, GREY, ORANGE, styled


def half_life(decay: float) -> float:
    """Tokens until half is left; infinite for a decay of 1."""
    return math.inf if decay >= 1 else math.log(0.5) / math.log(decay)


def shades(colour: str, shares: np.ndarray) -> np.ndarray:
    """Red, green, blue: the more is left, the stronger."""
    return np.array([tint(colour, strength) for strength in 0.2 + 0.72 * shares.ravel()]).reshape(*shares.shape, 3)


def pairs_and_state(M: np.ndarray, chunk: int) -> np.ndarray:
    """The mask as a picture: grey what is computed as a pair, purple what comes through the state."""
    i, j = np.indices(M.shape)
    steps = np.rint(63 * M).astype(int)
    pair, state = (shades(colour, np.linspace(0, 1, 64))[steps] for colour in (PAIR, STATE))
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


def predict_clarity(decay: float, age: np.ndarray | float, T: int, d: int) -> np.ndarray:
    """The cosine of answer and value, from the overlap of T random keys of width d."""
    weights = np.arange(T) * math.log(decay)  # of all ages, as logarithms
    others = np.exp(2 * weights).sum() - decay ** (2 * np.asarray(age, float))
    signal = decay ** np.asarray(age, float)
    return signal / np.sqrt(signal**2 + others / d)


BAND = "grey: ± one standard deviation of a single reading"
TICKS = {1: "1", 10: "10", 100: "100", 1_000: "1,000", 10_000: "10,000", 80_000: "80,000"}


@styled
def recall(decay: float, d: int, T: int) -> tuple[Figure, dict[str, object]]:
    """How clearly a head of width d with a constant decay recalls each of its last T tokens: a live figure."""
    ages = np.unique(np.geomspace(1, T - 1, 60).round())
    cosine, scatter = predict_clarity(decay, ages, T, d), 1 / math.sqrt(d)
    figure = Figure(figsize=(7.0, 3.4))
    axes = figure.add_axes((0.1, 0.16, 0.87, 0.72))
    axes.fill_between([0.9, 110_000], -scatter, scatter, color="#E2E2E2", lw=0)
    axes.plot(ages, cosine, color=BLUE, lw=2)
    axes.plot(ages[-1:], cosine[-1:], "o", color=ORANGE, markersize=7)
    above = cosine[-1] < 0.7  # where there is room for its name
    axes.annotate("first token", (ages[-1], cosine[-1]), (0, 10 if above else -10), textcoords="offset points",
                  color=ORANGE, ha="right", va="bottom" if above else "top")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(list(TICKS), list(TICKS.values()))
    axes.minorticks_off()
    axes.set(xlim=(0.9, 110_000), ylim=(-0.3, 1.05), yticks=[0, 0.5, 1])
    axes.set(xlabel="age of the token, in tokens", ylabel="cosine of answer and value")
    axes.text(1.1, -0.2, BAND, color=GREY, va="center")
    last = float(cosine[-1])
    found = "dim" if last > 2 * scatter else "hard to tell from others" if last > scatter else "lost"
    found = "clear" if last > 0.5 and last > 2 * scatter else found
    axes.set_title(f"The first token (orange): cosine {last:.2f}, {found}", fontsize=11, weight="bold")
    clear = int((cosine > 0.5).sum())
    numbers = {
        "cosine of the first token": f"{last:.2f}",
        "of an unrelated value": f"± {scatter:.2f}",
        "tokens with a cosine above 0.5": f"{int(ages[clear - 1]):,}" if clear else "none",
        "numbers in the state": f"{d * d:,}",
    }
    return figure, numbers


ANCHORS = {0.5: 2.6, 0.9: 10, 0.99: 50, 0.999: 150}  # ages at which there is room for a decay's name
STATES = (STATE, "#A8488A", "#75305E", "#33102A")  # shades of the state's pink: the longer a memory, the darker


@styled
def clarity(
    measured: Mapping[float, np.ndarray],
    ages: Sequence[int],
    T: int,
    d: int,
    repeats: int = 40,
) -> tuple[Figure, Mapping[float, np.ndarray]]:
    """How well one of T tokens is read from a state of width d, by age, for several decays: dots measured, the
    mean of so many repeats, lines predicted. Grey, how a single reading of an unrelated vector scatters."""
    fine = np.concatenate([np.linspace(0, 1, 9), np.geomspace(1, max(ages), 100)])
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.axhspan(-1 / math.sqrt(d), 1 / math.sqrt(d), color="#E2E2E2", lw=0)
    axes.text(0, -1 / math.sqrt(d) - 0.02, BAND, color=GREY, va="top")
    for decay, colour in zip(measured, STATES, strict=False):
        predicted = predict_clarity(decay, fine, T, d)
        axes.plot(fine, predicted, color=colour)
        at = ANCHORS.get(decay, 0)
        place = np.interp(at, fine, predicted)
        axes.text(at, place + 0.03, f" {decay:g}", color=colour, weight="bold")
        axes.plot(ages, measured[decay], "o", color=colour, markersize=4)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes.set(xlabel="age of the token, in tokens", ylabel="cosine of answer and value")
    axes.set_ylim(-0.28, 1.1)
    said = f"lines: predicted; dots: measured, mean of {repeats}"
    axes.text(0.99, 0.93, said, color=GREY, ha="right", transform=axes.transAxes)
    axes.set_title("A long memory is a dim one", loc="left", weight="bold")
    return figure, measured


@styled
def times(
    chunks: Sequence[int], seconds: Sequence[float], flops: Sequence[float]
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Time and flops of the chunked form against the chunk, both relative to their smallest value. Dashed, what the
    time would be if it were proportional to the number of chunks."""
    time, arithmetic = (np.array(values) / min(values) for values in (seconds, flops))
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(chunks, time[0] * chunks[0] / np.array(chunks), color=ORANGE, ls="--", lw=1.2)
    for values, colour in ((time, ORANGE), (arithmetic, BLUE)):
        axes.loglog(chunks, values, "o-", color=colour)
    axes.text(1.15 * chunks[1], 1.1 * time[1], "time, as measured", color=ORANGE, va="bottom")
    axes.text(chunks[0], 3.0, "dashed:\nnumber of\nchunks,\nscaled", color=ORANGE, va="center")
    axes.text(chunks[0], 1.15, "flops, as counted", color=BLUE, va="bottom")
    axes.set_xticks(chunks, [str(C) for C in chunks])
    ticks = [n for n in (1, 2, 5, 10, 20, 50, 100) if n < 2 * max(time.max(), arithmetic.max())]
    axes.set_yticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.set(xlabel="chunk C", ylabel="times the smallest", ylim=(0.8, 1.6 * max(time.max(), arithmetic.max())))
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
    parts = (("■ from the state", 0, start, STATE, 0.92), ("■ as a pair", start, T, PAIR, 0.83))
    for name, a, b, colour, height in parts:
        if b > a:
            axes.stairs(left[a:b], t[a : b + 1], fill=True, color=colour)
            axes.text(0.03, height, name, color=colour, transform=axes.transAxes)  # a legend takes longer
    axes.set(xlabel="token j (written)", ylabel="fraction left at the last token", xlim=(0.5, T + 0.5), ylim=(0, 1.02))
    few = [1, T // 2, T]  # ticks take most of the time of drawing
    figure.axes[0].set(xticks=few, yticks=few)
    figure.axes[0].yaxis.set_label_coords(-0.15, 0.5)  # where it is, however wide the ticks
    axes.set(xticks=few, yticks=[0, 0.5, 1])
    half = half_life(decay)
    numbers = {
        "half-life, tokens": "for ever" if math.isinf(half) else f"{half:.3g}",
        "sum of fractions left": float(left.sum()),
        "of that sum, from the state": f"{100 * left[:start].sum() / left.sum():.3g}%",
        "chunks": chunks,
        "pairs used": f"{int((lengths * (lengths + 1) // 2).sum()):,}",
        "of all pairs": f"{T * (T + 1) // 2:,}",
    }
    figure.axes[0].set_title(f"{numbers['pairs used']} of {numbers['of all pairs']} pairs", fontsize=11, weight="bold")
    title = f"Last token: {numbers['of that sum, from the state']} from the state"
    axes.set_title(title, fontsize=11, weight="bold")
    return figure, numbers
