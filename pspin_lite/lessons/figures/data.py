"""Figures of notebook 09: bytes per token, passages shared between speeches, packing, shuffling. Each returns the
figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, styled


def _title(axes: Axes, text: str, size: float = 12) -> None:
    axes.set_title(text, loc="left", fontsize=size, weight="bold")


@styled
def bytes_per_token(years: Sequence[int], ratios: Sequence[float]) -> tuple[Figure, np.ndarray]:
    """Bytes per token of each text against its year."""
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(years, ratios, "o", color=BLUE, markersize=4)
    axes.text(min(years), min(ratios), "one dot per speech, one vocabulary of 1,024", color=BLUE)
    _title(axes, f"One tokenizer, {min(ratios):.1f} to {max(ratios):.1f} bytes per token")
    axes.set(xlabel="year", ylabel="bytes per token", ylim=(min(2.0, min(ratios)), max(ratios) + 0.1))
    return figure, np.array([years, ratios])


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
    right.set(xlabel="years between two speeches", ylabel="passages shared, in all", ylim=(0, None))
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
    axes.set(xlabel="position in the ribbon", ylabel="window n", xlim=(0, tokens))
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
        figure = Figure(figsize=(5.6, 4.0))
        axes = figure.add_axes((0.14, 0.14, 0.82, 0.76))
        half = len(order) // 2  # a well-mixed first half draws half of its documents from the second
        axes.add_patch(Rectangle((0, half), half, half, fc=GREY, alpha=0.15, lw=0))
        axes.plot(at[::every], order[::every], "o", color=BLUE, markersize=2)
        axes.plot([0, len(order) - buffer], [buffer, len(order)], color=RED)
        if buffer <= len(order) / 2:
            axes.text(0.03 * len(order), 0.93 * len(order), "not read yet", color=RED, va="top")
        share = f"{100 * (order[:half] >= half).mean():.0f}"
        _title(axes, f"Buffer of {buffer:,}: the first half draws {share}% from the second half", 10)
        axes.set(xlabel="place in the shuffled stream", ylabel="place in the stream")
        axes.set(xlim=(0, len(order)), ylim=(0, len(order)))
        moved = f"{np.abs(order - at).mean():,.0f} places"
        return figure, {"highest of the first hundred": f"{order[:100].max():,}", "a document moves, on average": moved}

    return draw
