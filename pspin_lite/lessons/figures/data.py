"""Figures of notebook 09: bytes per token, passages shared between speeches, packing, shuffling. Each returns the
figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, styled


def _title(axes: Axes, text: str, size: float = 12) -> None:
    axes.set_title(text, loc="left", fontsize=size, weight="bold")


@styled
def bytes_per_token(
    years: Sequence[int],
    ratios: Sequence[float],
    unseen: Sequence[bool],
    bits: float,
    nats: float,
    marks: Mapping[str, float],
) -> tuple[Figure, dict[str, np.ndarray | float]]:
    """Left: bytes per token of each text against its year, hollow if the tokenizer has not seen it. Right: what a byte
    model's bits per byte are in nats per token, by the ratio; a subword model's nats; where they meet, and the ratios
    of `marks`, which have names."""
    figure = Figure(figsize=(7.6, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    dots, hollow = np.array([years, ratios]), np.asarray(unseen)
    left.plot(*dots[:, ~hollow], "o", color=BLUE, markersize=4)
    left.plot(*dots[:, hollow], "o", color=BLUE, markersize=5, fillstyle="none")
    left.text(min(years), 2.1, "a dot per speech; hollow:\nnot in training", color=BLUE)
    _title(left, f"One tokenizer: {min(ratios):.1f} to {max(ratios):.1f}", 11.5)
    left.set(xlabel="year", ylabel="bytes per token", ylim=(2, max(ratios) + 0.1))
    even, slope = nats / (bits * log(2)), bits * log(2)
    ends = np.array([2.4, 5.2])
    right.plot(ends, slope * ends, color=BLUE)
    right.axhline(nats, color=ORANGE)
    right.text(2.45, nats + 0.2, "byte model,\nconverted", color=BLUE, va="bottom")
    right.text(ends[1] - 0.06, nats - 0.12, "subword model", color=ORANGE, ha="right", va="top")
    right.plot(even, nats, "o", color="black", markersize=6)
    right.annotate(f"{even:.2f}", (even, nats), (7, -13), textcoords="offset points", fontsize=10, weight="bold")
    for name, ratio in marks.items():
        right.plot(ratio, slope * ratio, "o", color=BLUE)
        low = ratio < 4  # where there is room: below the line, or above it
        how = dict(ha="left", va="top") if low else dict(ha="right", va="bottom")
        at, offset = (ratio, slope * ratio), (6, -2) if low else (-6, 2)
        right.annotate(f"{name}: {slope * ratio:.2f}", at, offset, textcoords="offset points", fontsize=10, **how)
    _title(right, f"Above {even:.2f}, subwords are ahead", 11.5)
    right.set(xlabel="bytes per token", ylabel="nats per token", xlim=ends, ylim=(slope * ends[0], slope * ends[1]))
    return figure, {"ratios": dots, "even": even}


@styled
def leaks(
    shares: Mapping[str, Sequence[float]],
    distances: Sequence[int],
    shared: Mapping[str, Sequence[float]],
    ours: tuple[str, int] | None = None,
) -> tuple[Figure, dict]:
    """Left: per cent of a split's passages that are in training, a dot for each way to make the split, a line at their
    median, a ring around ours (a rule and its offset). Right: passages that pairs of speeches
    share, in all, by the years between them and, stacked, by kind of pair."""
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    for x, (ways, colour) in enumerate(zip(shares.values(), CYCLE, strict=False)):
        spread = np.linspace(-0.2, 0.2, len(ways)) if len(ways) > 1 else [0.0]
        left.plot(x + np.asarray(spread), ways, "o", color=colour, markersize=4)
        left.plot([x - 0.3, x + 0.3], [np.median(ways)] * 2, color=colour)
        if ours and list(shares)[x] == ours[0]:
            at = (x + spread[ours[1]], ways[ours[1]])
            left.plot(*at, "o", color="black", fillstyle="none", markersize=9)
            left.annotate("ours", at, (-9, -3), textcoords="offset points", ha="right", fontsize=10)
    left.set_xticks(range(len(shares)), [name.replace(" ", "\n") for name in shares])
    left.grid(axis="x", visible=False)
    clean = [name for name, ways in shares.items() if max(ways) < 0.1]
    _title(left, f"Only “{clean[0]}” is nearly clean" if len(clean) == 1 else "How much leaks", 11.5)
    total = np.sum(list(shared.values()), axis=0)
    _title(right, "Most copies: one year apart" if distances[total.argmax()] == 1 else "What pairs share", 11.5)
    left.set(ylabel="passages seen in training, %", ylim=(0, None), xlim=(-0.5, len(shares) - 0.5))
    below = np.zeros(len(distances))
    for (name, values), colour in zip(shared.items(), (BLUE, GREY), strict=False):
        right.bar(range(len(distances)), values, bottom=below, color=colour, width=0.6, label=name)
        below += values
    right.legend(loc="upper right")
    right.grid(axis="x", visible=False)
    right.set_xticks(range(len(distances)), [str(n) for n in distances])
    right.set(xlabel="years between two speeches", ylabel="passages shared, in total", ylim=(0, None))
    return figure, {"shares": dict(shares), "shared": dict(shared)}


@styled
def packing(starts: Sequence[int], long: int, tokens: int) -> tuple[Figure, np.ndarray]:
    """Which tokens each sequence covers, in the order they are used: one row each, coloured by epoch. `starts` count on
    through the epochs, and a sequence that crosses an end goes on at the left, hatched, in the next colour."""
    figure = Figure(figsize=(7.4, 1.1 + 0.24 * len(starts)), layout="constrained")
    axes = figure.subplots()
    covered = np.array([[start, start + long] for start in starts])
    labelled: set[str] = set()
    for row, (a, b) in enumerate(covered):
        while a < b:
            end = min(b, (a // tokens + 1) * tokens)
            turn, over = int(a) // tokens, a != starts[row]
            name = "belongs to the next epoch" if over else f"epoch {turn}"
            colour = (BLUE, ORANGE, GREEN)[turn % 3]
            how = dict(facecolor="white", hatch="////", edgecolor=colour) if over else dict(color=colour)
            axes.barh(row, end - a, left=a % tokens, height=0.75, label=None if name in labelled else name, **how)
            labelled.add(name)
            a = end
    axes.set(xlabel=f"position in the ribbon, modulo {tokens}", ylabel="window n", xlim=(0, tokens))
    axes.set_yticks(range(len(starts)))
    axes.set_xticks(range(0, tokens + 1, max(1, tokens // 12)))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    times = np.bincount(np.concatenate([np.arange(a, b) for a, b in covered]))
    _title(axes, "Each epoch reads every token once" if set(times) == {1} else "Which window reads which tokens")
    names = sorted(
        zip(*axes.get_legend_handles_labels(), strict=True), key=lambda named: not named[1].startswith("epoch")
    )
    figure.legend(*zip(*names, strict=True), loc="outside lower center", ncols=4)
    return figure, covered


def buffers(places: Callable[[int], Sequence[int]], every: int = 5) -> Callable[..., tuple[Figure, dict[str, str]]]:
    """The widget of notebook 09: where each document of a stream stood before a shuffle buffer, against where it comes
    out, one dot for every few documents; the line is how far the buffer can see. The title names the share of
    the shaded quarter: of the first half of the output, what comes from the second half of the stream.
    places(size): the original numbers of all documents, in the order in which they come out."""

    @styled
    def draw(buffer: int) -> tuple[Figure, dict[str, str]]:
        order = np.asarray(places(buffer))
        at = np.arange(len(order))
        figure = Figure(figsize=(6.0, 4.0))
        axes = figure.add_axes((0.14, 0.14, 0.82, 0.76))
        half = len(order) // 2  # a well-mixed first half draws half of its documents from the second
        axes.fill_between([0, half], half, 2 * half, color=GREY, alpha=0.15, lw=0)
        axes.text(0.02 * half, 2.02 * half, "grey: 2nd half of the stream, out early", color=GREY, va="bottom")
        axes.plot(at[::every], order[::every], "o", color=BLUE, markersize=2, lw=0)
        axes.plot([0, len(order) - buffer], [buffer, len(order)], color=RED)
        if buffer <= len(order) / 6:  # room between the grey quarter and the line
            axes.text(1.04 * half, 1.95 * half, "not read yet", color=RED, va="top")
        share = f"{100 * (order[:half] >= half).mean():.0f}"
        _title(axes, f"Buffer of {buffer:,}: the first half draws {share}% from the second half", 10)
        axes.set(
            xlabel=f"place in the shuffled stream (a dot for every {every}th document)", ylabel="place in the stream"
        )
        axes.set_yticks(range(0, len(order) + 1, half))
        axes.set(xlim=(0, len(order)), ylim=(0, 1.1 * len(order)))
        moved = f"{np.abs(order - at).mean():,.0f} places"
        first = f"{order[:100].max() + 1:,}"
        return figure, {"the first 100 out are from the first": first, "a document moves, on average": moved}

    return draw
