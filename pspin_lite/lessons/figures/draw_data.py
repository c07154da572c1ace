"""Drawings of notebook 09: documents packed into windows, splits that leak, a stream that restarts. Each returns the
figure and the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .diagram import BACKWARD, arrow, canvas, label, line, tint
from .style import BLUE, GREEN, GREY, ORANGE, styled

END = "."
COLOURS = (BLUE, ORANGE, GREEN)
Cell = tuple[str, str]  # a token and its document's colour


def _cells(axes: Axes, x: float, y: float, cells: Sequence[Cell], side: float) -> None:
    """A row of tokens whose lower left corner is at (x, y); end tokens are dark."""
    for i, (token, colour) in enumerate(cells):
        face = tint(GREY, 0.65) if token == END else tint(colour, 0.4)
        axes.add_patch(Rectangle((x + i * side, y), side, side, fc=face, ec=GREY, lw=0.7))
        text, colour, size = ("end", "white", 9) if token == END else (token, "#222222", 11)
        label(axes, x + (i + 0.5) * side, y + side / 2, text, colour, size)


@styled
def windows(documents: Sequence[str], length: int) -> tuple[Figure, list[tuple[str, str]]]:
    """Documents, the ribbon they are joined to, and its windows of length + 1 tokens: inputs, and targets one further.
    Returns (inputs, targets) per window; what is left over at the end is not drawn."""
    figure, axes = canvas(7.2, 4.4, "Documents are joined, then cut without regard to where they end")
    ribbon: list[Cell] = []
    x, side = 10.0, 4.9
    label(axes, 8.8, 35.4, "documents", GREY, ha="right")
    for text, colour in zip(documents, COLOURS, strict=True):
        cells = [(token, colour) for token in text]
        _cells(axes, x, 33, cells, side)
        start = 10 + side * len(ribbon)
        arrow(axes, (x + side * len(cells) / 2, 32.6), (start + side * len(cells) / 2, 29.2), GREY)
        x += side * len(cells) + 4
        ribbon += [*cells, (END, colour)]
    label(axes, 8.8, 26.4, "ribbon", GREY, ha="right")
    _cells(axes, 10, 24, ribbon, side)
    pairs = []
    for n in range(len(ribbon) // (length + 1)):
        window = ribbon[n * (length + 1) : (n + 1) * (length + 1)]
        left = 10 + n * (length + 1) * side
        line(axes, [left, left], [3.5, 30], BACKWARD, "--")
        label(axes, left + side * (length + 1) / 2, 21, f"window {n}", GREY)
        _cells(axes, left, 13, window[:-1], side)
        _cells(axes, left + side, 6, window[1:], side)
        pairs.append(("".join(token for token, _ in window[:-1]), "".join(token for token, _ in window[1:])))
    right = 10 + len(pairs) * (length + 1) * side
    line(axes, [right, right], [3.5, 30], BACKWARD, "--")
    label(axes, 8.8, 15.4, "inputs", GREY, ha="right")
    label(axes, 8.8, 8.4, "targets", GREY, ha="right")
    return figure, pairs


@styled
def splits(
    speeches: int = 12, copies: Sequence[tuple[int, int]] = ((0, 1), (4, 5), (7, 8), (9, 10))
) -> tuple[Figure, dict[str, int]]:
    """Speeches in the order of time, pairs that share passages, and two ways to choose a validation set. Returns how
    many pairs each of them tears apart."""
    rules = {
        "every 4th speech": {i for i in range(speeches) if i % 4 == 1},
        "the last ones": set(range(speeches - 3, speeches)),
    }
    torn = {name: sum((i in valid) != (j in valid) for i, j in copies) for name, valid in rules.items()}
    first, last = torn.values()
    figure, axes = canvas(
        7.2, 3.2, f"In this example, one rule tears {first} pairs of copies apart, the other {last or 'none'}"
    )
    for y, (name, valid) in zip((17.5, 4.5), rules.items(), strict=True):
        label(axes, 1.5, y + 9.4, f"{name}:", ha="left", size=10.5)
        for i in range(speeches):
            colour = ORANGE if i in valid else BLUE
            axes.add_patch(Rectangle((2 + 4.6 * i, y), 3.8, 3.8, fc=tint(colour, 0.45), ec=colour, lw=1.2))
        for i, j in copies:
            leaks = (i in valid) != (j in valid)
            xs = [2 + 4.6 * i + 1.9, 2 + 4.6 * j + 1.9]
            colour = BACKWARD if leaks else "#9A9A9A"
            line(axes, [xs[0], xs[0], xs[1], xs[1]], [y + 3.8, y + 6, y + 6, y + 3.8], colour)
            label(axes, sum(xs) / 2, y + 7.3, "leak" if leaks else "copy", colour, 9)
        arrow(axes, (2, y - 1.6), (2 + 4.6 * speeches, y - 1.6), "#9A9A9A", width=0.9)
    label(axes, 58.6, 15.9, "time", GREY, 9.5, ha="left")
    for y, text, colour in ((12.5, "training", BLUE), (8.5, "evaluation", ORANGE)):
        axes.add_patch(Rectangle((59, y - 1), 2, 2, fc=tint(colour, 0.45), ec=colour))
        label(axes, 61.8, y, text, ha="left", size=9.5)
    return figure, torn


@styled
def restart(
    before: Sequence[int], after: Sequence[int], total: int, done: int
) -> tuple[Figure, dict[str, tuple[int, int]]]:
    """Documents 0 to total - 1 of a stream that was stopped and taken up again, in three rows: out before the stop,
    what the restart does with them, out in the end. A vertical slice is the same documents in every row.
    before, after: the documents that came out then; done: how many, from the first on, the restart takes as done.
    Returns, for these and for the others, how many came out before, after, twice and never."""
    out, again = set(before), set(after)
    sides = range(done), range(done, total)
    counts = {
        "before": tuple(len(out & set(side)) for side in sides),
        "after": tuple(len(again & set(side)) for side in sides),
        "twice": tuple(len(out & again & set(side)) for side in sides),
        "never": tuple(len(set(side) - out - again) for side in sides),
    }
    (early, late), (_, now), (_, twice), (waiting, never) = counts.values()
    rest = total - done
    skipped = rest - now
    figure, axes = canvas(7.2, 4.1, f"The restart loses {waiting} + {never} of {total:,} documents")
    wide, gap = 66.5 / total, 1.5

    def bar(first: int, count: int, y: float, colour: str, text: str = "") -> float:
        """Of `count` documents from place `first` of the picture on; returns the middle."""
        x = 2 + first * wide + (gap if first >= done else 0)
        axes.add_patch(Rectangle((x, y), count * wide, 4.4, fc=tint(colour, 0.4), ec=colour, lw=1.2))
        label(axes, x + count * wide / 2, y + 2.2, text)
        return x + count * wide / 2

    label(axes, 2 + done * wide / 2, 36, f"the first {done} of the stream", GREY)
    label(axes, 2 + gap + (done + rest / 2) * wide, 36, f"the other {rest}", GREY)
    # The others: skipped and never out, then skipped but out before, then out twice, then out after the restart only
    y = 25.6
    label(axes, 2, y + 6.4, "at the stop", ha="left", size=10.5, weight="bold")
    bar(0, early, y, BLUE, f"{early} out")
    bar(early, waiting, y, ORANGE, f"{waiting} in buffer")
    bar(done, never, y, GREY)
    bar(done + never + late, rest - never - late, y, GREY, f"{rest - late} in the buffer or not read")
    middle = bar(done + never, late, y, BLUE)
    label(axes, middle, y + 6, f"{late} out", BLUE, 9.5)
    y = 14.2
    label(axes, 2, y + 6.4, "the restart", ha="left", size=10.5, weight="bold")
    bar(0, done, y, GREY, "all taken as done")
    middle = bar(done, skipped, y, BACKWARD)
    bar(done + skipped, now, y, BLUE, f"{now} out")
    label(axes, middle, y + 6, f"{skipped} skipped", BACKWARD, 9.5)
    y = 2.8
    label(axes, 2, y + 6.4, "in the end", ha="left", size=10.5, weight="bold")
    bar(0, early, y, BLUE, f"{early} out")
    bar(early, waiting, y, BACKWARD, f"{waiting} never")
    middle = bar(done, never, y, BACKWARD)
    bar(done + never, rest - never, y, BLUE, f"{rest - never} out, {twice} of them twice")
    label(axes, middle, y + 6, f"{never} never", BACKWARD, 9.5)
    return figure, counts
