"""Drawings of notebook 03: one computation with four sets of operands, the paths across a gate, the sums of a kernel,
what is stored, who holds what for a tensor core. Each returns the figure and the numbers in it. Colours as in
diagram.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .diagram import (
    BACKWARD,
    DECAY,
    FORWARD,
    INK,
    KEY,
    QUERY,
    STATE,
    VALUE,
    arrow,
    box,
    canvas,
    grid,
    label,
    line,
    tint,
)
from .style import GREY, styled

TENSORS = {  # name -> how it is written, its colour
    "q": ("$q$", QUERY),
    "k": ("$k$", KEY),
    "v": ("$v$", VALUE),
    "do": (r"$\partial o$", BACKWARD),
    "h": ("$h$", STATE),
    "hT": (r"$h^\top$", STATE),
    "dh": (r"$\partial h_{\mathrm{end}}$", STATE),
    "dhT": (r"$\partial h_{\mathrm{end}}^\top$", STATE),
}
USES = {  # result -> as q, as k, as v, as h
    "o": ("q", "k", "v", "h"),
    "dq": ("do", "v", "k", "hT"),
    "dv": ("k", "q", "do", "dh"),
    "dk": ("v", "do", "q", "dhT"),
}
BACKWARDS = ("dv", "dk")  # in time


@styled
def four_uses(chunks: int = 3) -> tuple[Figure, dict[str, tuple[str, ...]]]:
    """For each result what takes the places of q, k, v and h, and from which end the state walks along the chunks."""
    figure, axes = canvas(7.6, 4.5, "One computation, four sets of operands, two directions of time")
    top, row, size = 31.5, 8.6, 4.6
    for x, text in ((5.3, "as q"), (12.3, "as k"), (19.3, "as v"), (46, "chunk_step, along the chunks of a text")):
        label(axes, x, top + 6.0, text, GREY, 10)
    label(axes, 70.5, top + 6.0, "result", GREY, 10)
    for n, (result, (*operands, state)) in enumerate(USES.items()):
        y, reverse = top - row * n, result in BACKWARDS
        for i, name in enumerate(operands):
            box(axes, 3 + 7 * i, y - size / 2, size, size, *TENSORS[name], 12)
        axes.add_patch(Rectangle((27.0, y - 3.2), 37.4, 6.4, fc=tint(GREY, 0.07), ec=GREY, lw=0.8))
        arrow(axes, (24.0, y), (26.8, y))
        ends = [33.5 + 25.0 * (i + 0.5) / chunks for i in range(chunks)]
        for i, x in enumerate(ends):
            axes.add_patch(Rectangle((x - 2, y - 2), 4, 4, fc="white", ec=GREY, lw=1))
            label(axes, x, y, str(i + 1), size=10)
            if i:
                pair = (ends[i - 1] + 2.3, y), (x - 2.3, y)
                arrow(axes, *(pair[::-1] if reverse else pair), STATE, width=2)
        text, colour = TENSORS[state]
        far, near = (61.7, ends[-1] + 2.3) if reverse else (30.0, ends[0] - 2.3)
        label(axes, far, y, text, colour, 11 if reverse else 12)
        arrow(axes, (far + (-2.6 if reverse else 1.6), y), (near, y), STATE, width=2)
        if result == "o":
            arrow(axes, (ends[-1] + 2.3, y), (59.2, y), STATE, width=2)
            label(axes, 61.7, y, "$h$ at\nend", STATE, 9)
        if result == "dv":
            arrow(axes, (ends[0] - 2.3, y), (32.4, y), STATE, width=2)
            label(axes, 29.8, y, r"$\partial h$ at" + "\nstart", STATE, 9)
        letters = {"o": "$o$"}.get(result, rf"$\partial {result[-1]}$")
        arrow(axes, (64.6, y), (67.6, y))
        box(axes, 68.2, y - size / 2, size, size, letters, FORWARD if result == "o" else BACKWARD, 12)
    return figure, USES


PATHS = {  # the word of the equations, and what it is -> does the path start before the chunk, does it end after it
    ("flow", "within\nthe chunk"): (False, False),
    ("read", "from an\nearlier chunk"): (True, False),
    ("wrote", "for a\nlater chunk"): (False, True),
    ("carried", "across the\nwhole chunk"): (True, True),
}


@styled
def gate_flows(chunk: int, gate: int) -> tuple[Figure, dict[str, int]]:
    """The four kinds of paths across one gate of a chunk, forwards above the tokens in grey and their gradients below
    in red-orange; how many of them cross it, a neighbouring chunk counting as one place."""
    figure, axes = canvas(7.6, 4.5, "Four kinds of paths cross a gate; its gradient is their sum")
    left, step, row, top = 27.5, 4.4, 7.8, 36.0
    right, outside = left + step * (chunk - 1), 20.4
    after, wall = right + 8.6, left + step * (gate - 1.5)
    frame = (left - 2.4, 4.4), step * (chunk - 1) + 4.8, top - 1.4
    axes.add_patch(Rectangle(*frame, fc=tint(GREY, 0.07), ec=GREY, lw=0.8))
    for x, text in ((outside, "earlier"), ((left + right) / 2, "this chunk"), (after, "later")):
        label(axes, x, top + 4.6, text, size=10.5)
    line(axes, [wall, wall], [4.4, top + 3.0], DECAY, "--")
    label(axes, wall, 2.4, f"gate $g_{gate}$", INK, 11)
    label(axes, 1.5, 2.4, "forward →", FORWARD, 10.5, ha="left")
    label(axes, 13.5, 2.4, "gradient ←", BACKWARD, 10.5, ha="left")
    counts = {}
    for n, ((word, meaning), (before, beyond)) in enumerate(PATHS.items()):
        y = top - 3.6 - row * n
        for t in range(chunk):
            x = left + step * t
            axes.add_patch(Rectangle((x - 1.2, y - 1.2), 2.4, 2.4, fc="white", ec=GREY, lw=0.8))
            label(axes, x, y, str(t + 1), size=9.5)
        for x, used, text in ((outside, before, "$h$"), (after, beyond, r"$h_{\mathrm{after}}$")):
            if used:
                box(axes, x - 2.9, y - 1.6, 5.8, 3.2, text, STATE, 11)
        ends = (outside if before else left + step, after if beyond else right - step)
        heights = (1.9 if before else 1.5, 1.9 if beyond else 1.5)
        above, below = ([(x, y + side * h) for x, h in zip(ends, heights, strict=True)] for side in (1, -1))
        arrow(axes, *above, FORWARD, bend=0.1, width=1.8)
        arrow(axes, *below[::-1], BACKWARD, bend=0.1, width=1.8)
        label(axes, 1.5, y + 2.2, word, INK, 11, ha="left", weight="bold")
        label(axes, 1.5, y - 1.2, meaning, size=9.5, ha="left")
        counts[word] = (1 if before else gate - 1) * (1 if beyond else chunk - gate + 1)
        label(axes, 73, y, f"{counts[word]} paths" if counts[word] > 1 else "1 path", INK, 10.5, ha="right")
    return figure, counts


@styled
def gate_sums(flow: Sequence[Sequence[float]]) -> tuple[Figure, dict[str, np.ndarray]]:
    """The first of the four sums in a kernel's steps: add up along a row, keep what is below the diagonal, add up down
    the columns, shift by one."""
    flows = np.array(flow, float)
    C, cell, top = len(flows), 4.2, 33.0
    i, m = np.indices(flows.shape)
    up_to = flows.cumsum(1)
    below = np.where(i > m, up_to, np.nan)
    through = np.nansum(below, 0)
    dg = np.append(0, through[:-1])
    figure, axes = canvas(7.6, 4.3, "Add up along the rows, then down the columns, then shift by one")
    side, middle, xs = C * cell, top - C * cell / 2, (7.0, 31.0, 55.0)
    parts = ((np.where(i >= m, flows, np.nan), "flow"), (up_to, "up_to"), (below, "rows $i > m$"))
    for x, (values, name) in zip(xs, parts, strict=True):
        label(axes, x + side / 2, top + 1.8, name, INK, 11)
        grid(axes, x, top, values, BACKWARD, cell, size=10.5)
        axes.add_patch(Rectangle((x, top - side), side, side, fc="none", ec=GREY, lw=1))
    for x, text in zip(xs, ("add up to\nthe right", "drop the\nrest"), strict=False):
        arrow(axes, (x + side + 1, middle), (x + 23, middle))
        label(axes, x + (side + 24) / 2, middle + 2.8, text, GREY, 9.5)
    label(axes, xs[0] - 1.8, middle, "$i$", GREY, 11)
    for x, letter in zip(xs, ("$j$", "$m$"), strict=False):
        label(axes, x + side / 2, top - side - 1.8, letter, GREY, 11)
    rows = (
        (top - side - 3.2, through, "add up down the columns: through gate $m + 1$"),
        (top - side - 3.2 - 2.2 * cell, dg, "shift: the flows through gate $t$, for $t = 1, 2, \\ldots$"),
    )
    for y, values, text in rows:
        grid(axes, xs[2], y, values, BACKWARD, cell, size=10.5)
        label(axes, xs[2] - 1.6, y - cell / 2, text, GREY, 10, ha="right")
    for n in range(C - 1):
        x = xs[2] + (n + 0.5) * cell
        arrow(axes, (x, rows[0][0] - cell - 0.3), (x + cell, rows[1][0] + 0.3), BACKWARD)
    return figure, {"up_to": up_to, "through": through, "dg": dg}


PARTS = {  # of what is stored -> how it is written, its colour
    "q": ("$q$", QUERY),
    "k": ("$k$", KEY),
    "v": ("$v$", VALUE),
    "g": ("", GREY),
    "scores": ("scores", GREY),
    "mask": ("mask", DECAY),
    "states": ("states", STATE),
}
INPUTS = ("q", "k", "v", "g")


@styled
def stored(parts: Mapping[str, float], autograd: float, mib: float) -> tuple[Figure, dict[str, float]]:
    """What three versions keep for the backward pass, per token and head: the inputs; all the parts; what autograd
    keeps. `mib` is what one such number takes in a whole network."""
    versions = {
        "recomputed": {name: parts[name] for name in INPUTS},
        "stored,\nsame formulas": parts,
        "autograd": {"whatever it keeps": autograd},
    }
    totals = {name: sum(one.values()) for name, one in versions.items()}
    ours, same, most = totals.values()
    title = f"Recomputing keeps {ours:,.0f} numbers per token and head; storing keeps {same:,.0f}"
    figure, axes = canvas(7.6, 3.3, title)
    left, unit, top, high, row = 14.5, 46 / most, 20.2, 4.6, 7.2
    for n, (name, one) in enumerate(versions.items()):
        x, y = left, top - n * row
        label(axes, left - 1.2, y + high / 2, name, size=10.5, ha="right")
        for part, numbers in one.items():
            text, colour = PARTS.get(part, (part, GREY))
            face = tint(colour, 0.08 if part == "scores" or part not in PARTS else 0.25)
            axes.add_patch(Rectangle((x, y), unit * numbers, high, fc=face, ec=colour, lw=0.9))
            fits = unit * numbers > 0.85 * len(text.replace("$", ""))
            label(axes, x + unit * numbers / 2, y + (high / 2 if fits else high + 1.1), text, size=9.5)
            x += unit * numbers
        label(axes, x + 1.2, y + high / 2, f"{totals[name]:,.0f}: {mib * totals[name]:.0f} MiB", size=10.5, ha="left")
    label(axes, left, 3.0, "numbers per token and head, and MiB in the byte model", GREY, 10, ha="left")
    return figure, totals


@styled
def tensor_core(thread: int = 5) -> tuple[Figure, dict[str, np.ndarray]]:
    """Which of 32 threads holds which numbers of mma.m16n8k16, by the PTX manual: two neighbours in each box, in a row
    (of B: in a column). The boxes of one thread are dark and split into their two numbers."""
    row, column = np.indices((16, 16))
    owners = {"A": 4 * (row % 8) + column % 8 // 2}
    owners["B"], owners["C"] = owners["A"].T[:, :8], owners["A"][:, :8]
    cell, top = 1.94, 34.2
    figure, axes = canvas(7.6, 4.3, "The operands of a tensor core are scattered over 32 threads")
    parts = {"A": (2.6, QUERY, "A, 16 × 16"), "B": (39.4, STATE, "B, 16 × 8"), "C": (59.9, GREY, "the result, 16 × 8")}
    for name, (x, colour, text) in parts.items():
        grid = owners[name]
        wide, high = (1, 2) if name == "B" else (2, 1)
        label(axes, x + grid.shape[1] * cell / 2, top + 2.9, text, INK, 11)
        for i in range(grid.shape[0]):
            label(axes, x - 0.4, top - (i + 0.5) * cell, str(i), GREY, 7.5, ha="right")
        for j in range(grid.shape[1]):
            label(axes, x + (j + 0.5) * cell, top + 0.9, str(j), GREY, 7.5)
        for i in range(0, grid.shape[0], high):
            for j in range(0, grid.shape[1], wide):
                mine = grid[i, j] == thread
                w, h = (1, 1) if mine else (wide, high)
                for m, n in np.ndindex(high // h, wide // w):
                    corner = (x + (j + n) * cell, top - (i + m + h) * cell)
                    face = tint(colour, 0.55 if mine else 0.08)
                    axes.add_patch(Rectangle(corner, w * cell, h * cell, fc=face, ec=GREY, lw=0.6))
                    middle = (corner[0] + w * cell / 2, corner[1] + h * cell / 2)
                    label(axes, *middle, str(grid[i, j]), size=9, weight="bold" if mine else "normal")
    for x, text in ((35.9, "×"), (56.7, "=")):
        label(axes, x, top - 8 * cell, text, INK, 16)
    label(
        axes,
        1.6,
        1.7,
        f"in each box: the thread, 0 to 31, that holds its two numbers; dark and split in two: thread {thread}",
        GREY,
        10,
        ha="left",
    )
    return figure, owners
