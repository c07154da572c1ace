"""Figures of notebook 09: merges, bytes a token, passages shared between speeches, packing, shuffling. Each returns the
figure and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, styled


@styled
def merges(bytes_a_token: Sequence[float]) -> tuple[Figure, np.ndarray]:
    """Bytes a token after 0, 1, 2, .. merges."""
    values = np.asarray(bytes_a_token)
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(len(values)), values, color=BLUE)
    axes.set(xlabel="merges", ylabel="bytes a token", xlim=(0, len(values) - 1), ylim=(1, None))
    return figure, values


@styled
def bytes_a_token(years: Sequence[int], ratios: Sequence[float], estimate: float) -> tuple[Figure, np.ndarray]:
    """Bytes a token of each text against its year; the paper's estimate is a line."""
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(years, ratios, "o", color=BLUE, markersize=4, label="a speech")
    axes.axhline(estimate, color=RED, ls="--", label=f"the paper's {estimate:g}, of another tokenizer")
    axes.set(xlabel="year", ylabel="bytes a token", ylim=(min(2.0, min(ratios)), None))
    figure.legend(loc="outside upper center", ncols=2)
    return figure, np.array([years, ratios])


@styled
def leaks(
    shares: Mapping[str, Sequence[float]], distances: Sequence[int], shared: Sequence[float]
) -> tuple[Figure, dict]:
    """Left: per cent of a split's passages that are in training, a dot for each way to make the split, a line at their
    median. Right: per cent shared by two speeches, by the years between them."""
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    for x, (ways, colour) in enumerate(zip(shares.values(), CYCLE, strict=False)):
        spread = np.linspace(-0.2, 0.2, len(ways)) if len(ways) > 1 else [0.0]
        left.plot(x + np.asarray(spread), ways, "o", color=colour, markersize=4)
        left.plot([x - 0.3, x + 0.3], [np.median(ways)] * 2, color=colour)
    left.set_xticks(range(len(shares)), [name.replace(" ", "\n", 1) for name in shares])
    left.grid(axis="x", visible=False)
    left.set(ylabel="passages seen in training, %", ylim=(0, None), xlim=(-0.5, len(shares) - 0.5))
    right.plot(range(len(distances)), shared, "o-", color=BLUE)
    right.set_xticks(range(len(distances)), [str(n) for n in distances])
    right.set(xlabel="years between two speeches", ylabel="passages shared, %", ylim=(0, None))
    return figure, {"shares": dict(shares), "shared": np.asarray(shared)}


@styled
def packing(starts: Sequence[int], long: int, tokens: int) -> tuple[Figure, np.ndarray]:
    """Which tokens each sequence covers, in the order they are used: one row each, coloured by repetition. `starts`
    count on through the repetitions, and a sequence that crosses an end goes on at the left in the next colour."""
    figure = Figure(figsize=(7.4, 1.1 + 0.24 * len(starts)), layout="constrained")
    axes = figure.subplots()
    covered = np.array([[start, start + long] for start in starts])
    labelled: set[int] = set()
    for row, (a, b) in enumerate(covered):
        while a < b:
            end = min(b, (a // tokens + 1) * tokens)
            turn = int(a) // tokens
            label = None if turn in labelled else f"repetition {turn}"
            labelled.add(turn)
            colour = (BLUE, ORANGE, GREY, GREEN)[turn % 4]
            axes.barh(row, end - a, left=a % tokens, color=colour, height=0.75, label=label)
            a = end
    axes.set(xlabel="position in the joined documents", ylabel="sequence n", xlim=(0, tokens))
    axes.set_yticks(range(len(starts)))
    axes.set_xticks(range(0, tokens + 1, max(1, tokens // 12)))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside upper center", ncols=4)
    return figure, covered


@styled
def shuffling(order: Sequence[int], size: int) -> tuple[Figure, np.ndarray]:
    """Where each document of a stream stood before a shuffle buffer, against where it comes out; the line is how far
    the buffer can see."""
    order = np.asarray(order)
    figure = Figure(figsize=(5.6, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(len(order)), order, ".", color=BLUE, markersize=3, label="a document")
    axes.plot([0, len(order)], [size, len(order) + size], color=RED, label="the newest in the buffer")
    axes.set(xlabel="place in the shuffled stream", ylabel="place in the stream", xlim=(0, len(order)))
    axes.set_ylim(0, len(order))
    figure.legend(loc="outside upper center", ncols=2, markerscale=3)
    return figure, order
