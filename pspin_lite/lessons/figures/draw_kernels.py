"""Drawings of notebook 02: a GPU, programs, tiles and masks of a kernel, and two plans for the chunks of a text. Each
returns the figure and the numbers in it. Colours as in diagram.py; grey hatching marks lanes that the mask switches
off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .diagram import DECAY, FORWARD, INK, KEY, QUERY, STATE, VALUE, arrow, box, canvas, grid, label, line, tint
from .live import LiveFigure, Panel
from .style import GREY, RED, styled

OFF = dict(fc="white", ec=GREY, hatch="////", lw=0.6)
PROCESSORS = 108  # of an A100
KEY_TEXT = "#9A6A00"  # orange, dark enough to be read on white


@styled
def gpu() -> tuple[Figure, dict[str, int]]:
    """One large memory, 108 multiprocessors, and one of them enlarged: an A100."""
    figure, axes = canvas(7.4, 3.7, "A GPU: one large, slow memory and many small, fast ones")
    rows, columns, cell, left, low = 6, PROCESSORS // 6, 2.0, 2.0, 15.6
    for n in range(PROCESSORS):
        x, y = left + cell * (n % columns), low + cell * (n // columns)
        first = n == PROCESSORS - 1
        face = tint(QUERY, 0.6 if first else 0.15)
        axes.add_patch(Rectangle((x, y), 1.6, 1.6, fc=face, ec=QUERY, lw=0.7))
    label(axes, left, low + rows * cell + 1.4, f"{PROCESSORS} multiprocessors", QUERY, 10.5, ha="left")
    right, top = left + columns * cell, low + rows * cell
    for y in ((top, 31.8), (top - cell, low - 0.4)):
        line(axes, [right, 46], list(y), GREY, ":")
    axes.add_patch(Rectangle((46, low - 0.4), 26.5, 16.6, fc=tint(QUERY, 0.1), ec=QUERY, lw=1.2))
    label(axes, 59.2, 29.4, "one multiprocessor", QUERY, 10.5)
    box(axes, 48, 23.6, 22.5, 4.0, "a few programs", FORWARD, 10)
    box(axes, 48, 16.2, 22.5, 6.4, "on chip: 256 KiB registers,\n164 KiB shared memory", VALUE, 9.5)
    box(axes, 2, 3.2, 70.5, 6.0, "large memory: tens of GiB", KEY, 11)
    for x in (20.0, 59.2):
        arrow(axes, (x, 9.6), (x, low - 0.8), KEY, width=2)
        arrow(axes, (x + 2.5, low - 0.8), (x + 2.5, 9.6), KEY, width=2)
    label(axes, 40.5, 12.2, "fetching is the expensive part", KEY_TEXT, 10.5)
    return figure, {"multiprocessors": rows * columns}


@styled
def blocks(count: int, block: int) -> tuple[Figure, list[list[int]]]:
    """Which program handles which numbers, and which lanes of the last one are masked."""
    programs = -(-count // block)
    lanes = [[i for i in range(p * block, (p + 1) * block) if i < count] for p in range(programs)]
    figure, axes = canvas(7.4, 2.9, "The last program reaches past the end: its mask says which lanes work")
    cell, gap = 4.3, 4.6
    room = programs * block * cell + (programs - 1) * gap
    first = (74 - room) / 2
    for p in range(programs):
        x = first + p * (block * cell + gap)
        box(axes, x, 16.5, block * cell, 4.4, f"program {p}", QUERY)
        for lane in range(block):
            number, left = p * block + lane, x + lane * cell
            works = number < count
            style = dict(fc=tint(VALUE, 0.5), ec=GREY, lw=0.6) if works else OFF
            axes.add_patch(Rectangle((left, 7.5), cell, cell, **style))
            if works:
                label(axes, left + cell / 2, 7.5 + cell / 2, str(number), size=10)
                arrow(axes, (left + cell / 2, 12.1), (left + cell / 2, 16.2))
    end = first + room
    label(axes, end - cell * (programs * block - count) / 2, 5.4, "masked: not ours", RED, 10)
    label(axes, first, 5.4, "numbers in memory", VALUE, 10, ha="left")
    label(axes, 37, 2.2, f"{programs} programs, {programs * block} lanes, {programs * block - count} masked", size=10)
    return figure, lanes


@styled
def mask_steps(decays: Sequence[float]) -> tuple[Figure, dict[str, np.ndarray]]:
    """The decay mask in the steps of its kernel: log decays below the diagonal, running sums, exponential."""
    g = np.log(decays)
    i, j = np.indices((len(g), len(g)))
    after_j = np.where(i > j, g[:, None], 0.0)
    segment = after_j.cumsum(0)
    M = np.where(i >= j, np.exp(segment), 0.0)
    figure, axes = canvas(7.6, 3.0, "Place the log decays, add up down the columns, take the exponential")
    cell, top, xs = 4.3, 22.0, (3.0, 29.0, 55.0)
    side = cell * len(g)
    names = ("after_j", "segment", "decay mask $M$")
    for x, values, name, colour in zip(xs, (after_j, segment, M), names, (DECAY, DECAY, KEY), strict=True):
        label(axes, x + side / 2, top + 1.8, name, INK, 11)
        if values is M:
            grid(axes, x, top, values, colour, cell, size=9)
        else:
            grid(axes, x, top, values + 0.0, colour, cell, form="{:.2g}", size=9)
    for x, text in zip(xs, ("add up\ndown", "exp,\nmask"), strict=False):
        arrow(axes, (x + side + 1, top - side / 2), (x + 25, top - side / 2))
        label(axes, x + (side + 26) / 2, top - side / 2 + 3, text, GREY, 9.5)
    label(axes, xs[0] - 1.4, top - side / 2, "$i$", GREY, 11)
    label(axes, xs[0] + side / 2, top - side - 1.6, "$j$", GREY, 11)
    return figure, {"after_j": after_j, "segment": segment, "M": M}


class Tiles(NamedTuple):
    programs: int
    reads_left: int  # how many times each number of the left matrix is read
    masked: int  # lanes of the result beyond its edge


@styled
def tiles(side: int, tile: int, program: tuple[int, int]) -> tuple[Figure, Tiles]:
    """One program of a tiled product of two square matrices: its tile of the result, and the bands that it reads."""
    across = -(-side // tile)
    figure, axes = canvas(6.4, 6.1, "One program owns one tile and walks along two bands")
    cell = 22.0 / (across * tile)
    full, edge = cell * tile, cell * side
    left, top = 31.0, 27.5
    row, column = program
    corners = {"left": (4.0, top), "right": (left, top + 4.5 + 22), "out": (left, top)}
    for x, y in corners.values():
        axes.add_patch(Rectangle((x, y - across * full), across * full, across * full, **OFF))
        axes.add_patch(Rectangle((x, y - edge), edge, edge, fc="white", ec=INK, lw=1))
    for step in range(across):
        strength = 0.3 + 0.35 * step / max(across - 1, 1)
        band_left = (4.0, top, row, step, KEY)
        band_right = (left, top + 26.5, step, column, VALUE)
        for x0, y0, down, right, colour in (band_left, band_right):
            x, y = x0 + right * full, y0 - down * full
            wide, high = (min(full, edge - place * full) for place in (right, down))  # what is not masked
            axes.add_patch(Rectangle((x, y - full), full, full, fc=tint(colour, strength), ec=colour, lw=1))
            label(axes, x + wide / 2, y - high / 2, f"step {step}", size=9.5)
    if column == across - 1:
        _off(axes, left + edge, top + 26.5 - across * full, across * full - edge, across * full)
    _off(axes, 4.0 + edge, top - (row + 1) * full, across * full - edge, full)
    _off(axes, left + column * full, top + 26.5 - across * full, full, across * full - edge)
    for i in range(1, across):
        line(axes, [left + i * full] * 2, [top, top - edge], GREY, ":")
        line(axes, [left, left + edge], [top - i * full] * 2, GREY, ":")
    x, y = left + column * full, top - row * full
    axes.add_patch(Rectangle((x, y - full), full, full, fc=tint(QUERY, 0.35), ec=QUERY, lw=1.5))
    if column == across - 1:
        _off(axes, left + edge, y - full, across * full - edge, full)
    label(axes, x + full / 2 - 0.6, y - full / 2, f"({row}, {column})", size=10.5)
    arrow(axes, (4 + across * full + 0.6, y - full / 2), (x - 0.4, y - full / 2))
    arrow(axes, (x + full / 2, top + 4.0), (x + full / 2, y + 0.4))
    label(axes, 4.0, top + 1.6, f"left matrix, {side} × {side}", KEY_TEXT, 11, ha="left")
    label(axes, left - 1, top + 15, f"right matrix,\n{side} × {side}", VALUE, 11, ha="right")
    label(axes, left - 1, top + 8, f"tiles of {tile}", GREY, 10.5, ha="right")
    label(axes, left + 10, 3.4, f"result: {across} × {across} programs, this is ({row}, {column})", QUERY, 11)
    label(axes, 4, 3.4, "hatched: masked", GREY, 10.5, ha="left")
    return figure, Tiles(across * across, across, (across * tile) ** 2 - side**2)


def _off(axes: Axes, x: float, y: float, w: float, h: float) -> None:
    axes.add_patch(Rectangle((x, y), w, h, fc="none", ec=GREY, hatch="////", lw=0.6))


def _memory(axes: Axes, y: float, height: float, text: str, width: float) -> None:
    axes.add_patch(Rectangle((1.5, y), width, height, fc=tint(GREY, 0.07), ec=GREY, lw=0.8))
    label(axes, 2.5, y + height - 1.4, text, GREY, 10, ha="left")


@styled
def walk(chunks: int) -> tuple[Figure, dict[str, int]]:
    """One program goes through the chunks of a head; the state stays on chip between them."""
    figure, axes = canvas(7.8, 4.2, "The walk: one program per head, and h stays on chip between chunks")
    _memory(axes, 25.0, 11.5, "large memory", 75)
    _memory(axes, 1.5, 15.5, "on chip", 75)
    axes.add_patch(Rectangle((11.5, 2.7), 55, 10.5, fc="white", ec=INK, lw=1.1, ls="--"))
    label(axes, 39, 4.2, "one program", size=10.5)
    wide = 52.0 / chunks
    for n in range(chunks):
        middle = 13 + (n + 0.5) * wide
        box(axes, middle - 4.8, 27, 9.6, 5.6, f"chunk {n}\n$q\\ k\\ v\\ g \\mid o$", FORWARD, 9.5)
        box(axes, middle - 4.0, 6.0, 8.0, 5.0, f"step {n}", DECAY, 10)
        arrow(axes, (middle - 2, 26.6), (middle - 2, 11.4), KEY)
        arrow(axes, (middle + 2, 11.4), (middle + 2, 26.6), VALUE)
        if n:
            arrow(axes, (middle - wide + 4.2, 8.5), (middle - 4.2, 8.5), STATE, width=2)
            label(axes, middle - wide / 2, 10.2, "$h$", STATE, 11)
    first, last = 13 + 0.5 * wide, 13 + (chunks - 0.5) * wide
    for x, text in ((6.5, "$h$ in"), (71.5, "$h$ out")):
        box(axes, x - 3.6, 27, 7.2, 5.6, text, STATE, 10.5)
    line(axes, [9.2, 9.2], [26.6, 8.5], STATE)
    arrow(axes, (9.2, 8.5), (first - 4.2, 8.5), STATE, width=2)
    line(axes, [last + 4.2, 70.5], [8.5, 8.5], STATE)
    arrow(axes, (70.5, 8.5), (70.5, 26.6), STATE, width=2)
    label(axes, first - 3, 20.6, "loaded\nonce", KEY_TEXT, 10, ha="right")
    label(axes, last + 3, 20.6, "stored\nonce", VALUE, 10, ha="left")
    return figure, {"programs": 1, "in a row": chunks, "states through memory": 2}


@styled
def parallel(chunks: int) -> tuple[Figure, dict[str, int]]:
    """Three kernels: all chunks write, one program passes the states on, all chunks read."""
    figure, axes = canvas(7.6, 4.2, "In parallel: only the cheap middle step is done in order")
    wide = 54 / chunks
    rows = (("writes", KEY, 33.5), ("pass_on", STATE, 20.5), ("reads", VALUE, 7.5))
    for name, colour, y in rows:
        label(axes, 1.5, y, name, KEY_TEXT if colour == KEY else colour, 11, ha="left", weight="bold")
    for n in range(chunks):
        x = 21.5 + n * wide
        before = x - wide / 2  # where h is what chunk n has to read
        box(axes, x - 4.6, 31, 9.2, 5, f"chunk {n}", KEY, 10)
        box(axes, x - 3.7, 17.8, 7.4, 5.4, "kept · $h$\n+ added", STATE, 9)
        box(axes, x - 5.4, 5, 10.8, 5, f"chunk {n} → $o$", VALUE, 10)
        arrow(axes, (x, 30.6), (x, 23.5), STATE)
        arrow(axes, (before - 2.8 if n else before - 3, 20.5), (x - 3.9, 20.5), STATE, width=2)
        arrow(axes, (before, 20.2), (x - 2.6, 10.4), STATE)
        label(axes, before, 22.2, "$h$", STATE, 11)
    end = 21.5 + (chunks - 1) * wide + 3.9
    arrow(axes, (end, 20.5), (end + 5.3, 20.5), STATE, width=2)
    for y, text in ((26.8, "what a\nchunk adds"), (14.2, "the state\nbefore it")):
        label(axes, 1.5, y, text, GREY, 10, ha="left")
        label(axes, 75.3, y, "through\nmemory", GREY, 10, ha="right")
    label(axes, 38, 2.2, f"per head {chunks} programs, then 1, then {chunks}: three launches", size=10)
    return figure, {"programs": chunks, "in a row": chunks, "states through memory": 4 * chunks}


TOKENS = 2048  # the paper's context
BUSY = Panel(
    (0.17, 0.24, 0.33, 0.60),
    "Writes and reads fill the chip",
    "multiprocessors with work, of 108",
    "",
    (0, 135),
    (-0.6, 3.6),
    (0, 54, 108),
    (0, 1, 2, 3),
    ("reads", "pass_on", "writes", "walk"),  # a longer name would not fit on a phone
)
RATIO = Panel(
    (0.62, 0.24, 0.34, 0.60),
    "On tensor cores, both wait",
    "flops per byte",
    "",
    (0, 320),
    (-0.6, 3.6),
    (0, 100, 200, 300),
    (0, 1, 2, 3),
    ("parallel", "walk", "parallel", "walk"),
)
NEEDED = {"float32": 12.5, "bfloat16": 200}  # flops per byte at which an A100 no longer waits for memory


def walk_or_parallel(batch: int, heads: int, width: int, chunk: int) -> tuple[LiveFigure, dict[str, object]]:
    """The widget of notebook 02: programs and flops per byte of the two plans, by what the notebook counts."""
    chunks, d = TOKENS // chunk, width
    programs = {"walk": batch * heads, "parallel": batch * heads * chunks}
    rows = {"walk": 4 * TOKENS * d, "parallel": 6 * TOKENS * d + 4 * chunks * d * d}  # states in the dtype of rows
    others = {"walk": TOKENS + 2 * d * d, "parallel": 2 * TOKENS + 2 * chunks + 2 * d * d}  # always float32
    figure, numbers = LiveFigure((7.6, 2.5), (BUSY, RATIO)), {}
    many, few = programs["parallel"], programs["walk"]
    for y, (count, colour) in enumerate(((many, VALUE), (few, STATE), (many, KEY), (few, QUERY))):
        busy = min(count, PROCESSORS)
        figure.add_line(0, [0, busy], [y, y], colour, width=11)
        figure.add_text(0, busy + 4 + 3 * len(str(busy)), y + 0.2, str(busy), INK)
    for plan, kernel, colour, y in (("walk", "walk", QUERY, 3), ("parallel", "writes and reads", VALUE, 2)):
        moved = {"float32": 4 * (rows[plan] + others[plan]), "bfloat16": 2 * rows[plan] + 4 * others[plan]}
        numbers[f"programs, {kernel}"] = f"{programs[plan]:,}"
        numbers[f"MiB, {plan}, float32"] = f"{batch * heads * moved['float32'] / 2**20:.3g}"
        for down, size in enumerate(moved.values()):
            ratio, at = 4 * TOKENS * d * (chunk + d) / size, y - 2 * down  # without padding
            figure.add_line(1, [0, ratio], [at, at], colour, width=11)
            figure.add_text(1, ratio + 10 + 8 * len(f"{ratio:.0f}"), at + 0.2, f"{ratio:.0f}", INK)
    for low, (dtype, level) in zip((1.6, -0.4), NEEDED.items(), strict=True):
        figure.add_line(1, [level, level], [low, low + 1.8], RED, width=1.6)
        figure.add_text(1, 262, low + 1.45, f"{dtype}\nneeds {level:g}", RED)
    return figure, numbers
