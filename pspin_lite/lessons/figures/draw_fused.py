"""Notebook 07 on time and tiles: what a step waits for, what one program of a step reads and writes, forward and
backward, the widget on what all programs request, against the size of their tiles, and a race between two programs.
Colours: spins green, drive sky blue, couplings blue, γ and the scale light grey, gradients red-orange."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from . import draw_ternary
from .diagram import BACKWARD, DRIVE, FORWARD, INK, PLUS, SPIN, ZERO, arrow, box, canvas, label, tint
from .style import GREY, styled

COLOURS = draw_ternary.COLOURS | {"γ, scale": ZERO}  # of all bars


def step_traffic(T: int, I: int, BM: int, BN: int) -> dict[str, float]:
    """MiB that the programs of one fused step load and store, repeated loads included: T tokens in tiles of BM, I spins
    in tiles of BN, float32, couplings packed."""
    rows, cols = -(-T // BM), -(-I // BN)
    counts = {
        "spins y": 4 * (cols + 1) * T * I,
        "drive z": 4 * 2 * T * I,
        "couplings": rows * 2 * I * I // 4,
        "γ, scale": 4 * rows * cols * (I + 1),
    }
    return {name: count / 2**20 for name, count in counts.items()}


def once(T: int, I: int) -> dict[str, float]:
    """MiB if every tensor travels once: one tile for all."""
    return step_traffic(T, I, T, I)


def tile_traffic(T: int, I: int) -> Callable[[int, int], tuple[Figure, dict[str, str]]]:
    """What the programs request, as a bar above the minimum; and what their two sums take on chip, of 64 KiB."""
    least = once(T, I)
    minimum = sum(least.values())

    @styled
    def draw(tokens: int, spins: int) -> tuple[Figure, dict[str, str]]:
        parts = step_traffic(T, I, tokens, spins)
        total = sum(parts.values())
        figure = Figure(figsize=(7.0, 2.7))
        axes = figure.add_axes((0.17, 0.22, 0.79, 0.64))
        for y, row, end in ((1, parts, total), (0, least, minimum)):
            left = 0.0
            for name, size in row.items():
                axes.fill_between([left, left + size], y - 0.3, y + 0.3, color=COLOURS[name], lw=0)
                left += size
            axes.text(end + 20, y, f"{end:,.0f} MiB", va="center", fontsize=10)
        for i, name in enumerate(parts):  # in the free corner
            x, y = (600, 1050)[i % 2], (0.15, -0.22)[i // 2]
            axes.text(x, y, "■", color=COLOURS[name], va="center")
            axes.text(x + 48, y, name, color=INK, va="center")
        axes.set_yticks((1, 0), ["tiled", "once"])  # short: the live form has little room
        axes.set(xlabel="MiB per step", xlim=(0, 1650), ylim=(-0.5, 1.5))
        axes.grid(axis="y", visible=False)
        sums = f"{2 * 4 * tokens * spins / 1024:.0f} KiB"
        title = f"Tiles of {tokens} × {spins}: {total / minimum:.1f} times the minimum"
        fit = "" if tokens * spins <= 8192 else ", too large"
        axes.text(600, 0.52, f"two sums on chip: {sums}{fit}", va="center", fontsize=10)
        axes.set_title(title, loc="left", fontsize=11.5, weight="bold")
        return figure, {"requested": f"{total:,.0f} MiB", "two sums on chip": sums}

    return draw


DESIGNS = {"neither": (False, False), "fusing": (True, False), "packing": (False, True), "both": (True, True)}


def step_requests(T: int, I: int, size: int, fused: bool, packed: bool, cached: bool) -> tuple[float, float]:
    """Bytes that the product of one step requests, with what is fused to it, and those of the other operations, with
    numbers of `size` bytes. cached: every tensor once. Otherwise all that the best tiles reread whose sums take at
    most 64 KiB: two sums of I outputs if fused, else one of 2 I."""
    array, couplings = size * T * I, 2 * I * I * (0.25 if packed else size)
    others = 0 if fused else 9 * array
    if cached:
        return (4 if fused else 5) * array + couplings, others

    def product(tokens: int) -> float:
        rows, cols = -(-T // tokens), I * tokens / 2**13
        return (cols + (3 if fused else 4)) * array + rows * couplings + (rows * cols * size * (I + 1) if fused else 0)

    return min(map(product, (16, 32, 64, 128, 256))), others


def step_waits(
    T: int, I: int, size: int, flops: float, fused: bool = False, packed: bool = False, cached: bool = True
) -> dict[str, float]:
    """Estimated µs of one step of T tokens on an A100, by what it waits for. A product takes as long as the slower of
    its arithmetic and its memory."""
    product, others = step_requests(T, I, size, fused, packed, cached)
    parts = {"product: arithmetic": 4 * T * I * I / flops, "product: memory": product / BANDWIDTH}
    slower = max(parts, key=parts.get)
    return {slower: 1e6 * parts[slower], "other operations": 1e6 * others / BANDWIDTH}


BANDWIDTH = 1.555e12  # bytes per second, by the data sheet of an A100
WAITS = {"product: arithmetic": ZERO, "product: memory": PLUS, "other operations": FORWARD}
CASES = {  # title -> tokens, bytes per number, flops per second, every tensor once
    "1 token, 16 bits, without\nlaunches: packing wins": (1, 2, 312e12, True),
    "2,048 tokens, float32:\nlittle to gain": (2048, 4, 19.5e12, True),
    "2,048 tokens, 16 bits, cache\nserves all rereads: fusing wins": (2048, 2, 312e12, True),
    "2,048 tokens, 16 bits, cache\nserves none: packing wins": (2048, 2, 312e12, False),
}


@styled
def waiting(I: int) -> tuple[Figure, dict[str, tuple[float, ...]]]:
    """What a step waits for with and without fusing and packing, a panel for each case. Returns µs."""
    figure = Figure(figsize=(7.2, 5.0))
    shown = {}
    for i, (name, (T, size, flops, cached)) in enumerate(CASES.items()):
        axes = figure.add_axes((0.115 + 0.455 * (i % 2), 0.5 - 0.41 * (i // 2), 0.415, 0.26))
        bars = [step_waits(T, I, size, flops, *design, cached) for design in DESIGNS.values()]
        shown[name.replace("\n", " ")] = totals = tuple(sum(parts.values()) for parts in bars)
        for y, (parts, total) in enumerate(zip(bars, totals, strict=True)):
            left = 0.0
            for part, time in parts.items():
                axes.fill_between([left, left + time], y - 0.36, y + 0.36, color=WAITS[part], lw=0)
                left += time
            texts = {0: f"{total:,.0f} µs", 3: f"−{100 * (1 - total / totals[0]):.0f}%"}  # neither, both
            axes.text(left + 0.02 * max(totals), y, texts.get(y, ""), va="center", fontsize=9.5)
        axes.set_title(name, loc="left", fontsize=10.5, weight="bold")
        axes.set(xlim=(0, 1.25 * max(totals)), ylim=(3.6, -0.6), xticks=[])
        axes.set_yticks(range(4), DESIGNS if i % 2 == 0 else [""] * 4)
        axes.tick_params(length=0)
        axes.spines["bottom"].set_visible(False)
        axes.grid(visible=False)
    note = "Estimates for one step at an A100's peak rates. Each panel has its own scale."
    figure.text(0.115, 0.03, note, fontsize=10)
    for x, (name, colour) in zip((0.115, 0.39, 0.64), WAITS.items(), strict=True):
        figure.text(x, 0.885, "■", color=colour)
        figure.text(x + 0.025, 0.885, name, fontsize=10)
    title = "What saves time depends on tokens, bits and the cache"
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, weight="bold")
    return figure, shown


def _matrix(axes: Axes, x: float, y: float, w: float, h: float, name: str, size: str) -> None:
    axes.add_patch(Rectangle((x, y), w, h, fc="none", ec=GREY, lw=1.2))
    label(axes, x + w / 2, y + h + 3.3, name, weight="bold")
    label(axes, x + w / 2, y + h + 1.4, size, GREY, 9.5)


def _part(axes: Axes, x: float, y: float, w: float, h: float, colour: str) -> None:
    axes.add_patch(Rectangle((x, y), w, h, fc=tint(colour, 0.55), ec=colour, lw=1.2))


@styled
def program(T: int, I: int, BM: int = 16, BN: int = 32) -> tuple[Figure, dict[str, int]]:
    """One program of a fused step: its rows of spins, its two blocks of couplings, its tile of new spins."""
    figure, axes = canvas(7.2, 3.9, "One program: two blocks of couplings, one tile of new spins")

    _matrix(axes, 2, 11, 13, 14, "γ ⊙ spins y", f"{T:,} × {I:,}")
    _part(axes, 2, 17.5, 13, 2.4, SPIN)
    label(axes, 8.5, 8.9, f"all spins of\n{BM} tokens", SPIN, 9.5)
    label(
        axes, 2, 2, r"$(\gamma \odot y)\,\widehat{W}^\top$: every green row meets every blue row", INK, 9.5, ha="left"
    )
    for end, y in ((22.9, 22.8), (11.8, 13.9)):  # the band of spins meets both blocks
        arrow(axes, (15.2, 18.7), (19.7, end))
        label(axes, 16.5, y, "×", INK, 12)
    _matrix(axes, 20, 5, 13, 24, "couplings, packed", f"{2 * I:,} × {I:,}, as stored")
    axes.plot([20, 33], [17, 17], color=GREY, ls="--", lw=1)
    for y, half in ((22, "u"), (10, "a")):
        _part(axes, 20, y, 13, 2.6, PLUS)
        label(axes, 26.5, y + 4, f"{BN} rows for {half}", PLUS, 9.5)
        arrow(axes, (33.4, y + 1.3), (39.6, y + 1.3))
        box(axes, 39.9, y - 1, 6.8, 4.6, f"${half}$", GREY, 12)
        label(axes, 43.3, y + (5 if half == "u" else -2.2), "plus drive z", DRIVE, 9.5)
        arrow(axes, (46.9, y + 1.3), (51.4, 19.8 if half == "u" else 14.8))
    arrow(axes, (35.2, 21.6), (35.2, 12.9), INK)
    label(axes, 35.9, 17.3, f"{I:,} rows\nfurther down", INK, 9.5, ha="left")
    box(axes, 47.6, 15, 7.6, 4.6, "tanh · σ", GREY, 9.5)
    arrow(axes, (55.4, 17.3), (61.8, 18.3))
    _matrix(axes, 58, 11, 13, 14, "new spins", f"{T:,} × {I:,}")
    _part(axes, 62, 17.5, 2.6, 2.4, SPIN)
    label(axes, 64.5, 8.9, f"{BM} tokens,\n{BN} spins", SPIN, 9.5)
    label(axes, 70.5, 2, "not to scale", GREY, 9.5, ha="right")
    return figure, {"rows apart": I, "blocks": 2, "tile": BM * BN}


@styled
def backward_program(T: int, I: int, BM: int = 16, BN: int = 32) -> tuple[Figure, dict[str, int]]:
    """One program of a fused Neumann step: its rows of the adjoint, split by the slopes, its columns of the couplings
    in both halves, its tile of the new adjoint."""
    figure, axes = canvas(7.2, 3.9, "Backward: first the split, then columns of the same couplings")
    _matrix(axes, 1.5, 11, 11, 14, "adjoint λ", f"{T:,} × {I:,}")
    _part(axes, 1.5, 17.5, 11, 2.4, BACKWARD)
    label(axes, 7, 8.9, f"all of\n{BM} tokens", BACKWARD, 9.5)
    _matrix(axes, 31, 5, 14, 24, "couplings, packed", f"{2 * I:,} × {I:,}, as stored")
    label(axes, 21.2, 17.3, "slopes φ, made\non chip from acts", GREY, 9.5)
    for y, half in ((21, "u"), (9, "a")):
        arrow(axes, (12.7, 18.7), (17.2, y + 2.3), BACKWARD)
        box(axes, 17.5, y, 7.4, 4.6, f"$\\lambda\\,\\varphi_{half}$", BACKWARD, 12)
        arrow(axes, (25.1, y + 2.3), (30.7, y + 2.3), BACKWARD)
        label(axes, 27.8, y + 3.9, "×", INK, 12)
        _part(axes, 36, 17 if half == "u" else 5, 2.6, 12, PLUS)
        label(axes, 33.5, y + 2.3, f"${half}$", INK, 12)
        label(axes, 41.8, y + 2.3, f"{BN}\ncolumns", PLUS, 9.5)
        arrow(axes, (45.3, y + 2.3), (49.6, 20.4 if half == "u" else 14.2), BACKWARD)
    axes.plot([31, 45], [17, 17], color=GREY, ls="--", lw=1)
    box(axes, 47.6, 14.6, 9, 5.4, "sum · γ s\n+ ∂L/∂y", GREY, 9.5)
    arrow(axes, (56.8, 17.3), (62.6, 18.4), BACKWARD)
    _matrix(axes, 59.5, 11, 11, 14, "new adjoint", f"{T:,} × {I:,}")
    _part(axes, 62.9, 17.5, 2.6, 2.4, BACKWARD)
    label(axes, 65, 8.9, f"{BM} tokens,\n{BN} spins", BACKWARD, 9.5)
    rule = r"$[\lambda\varphi_u \mid \lambda\varphi_a]\,\widehat{W}$: every orange row meets both blue blocks"
    label(axes, 1.5, 2, rule, INK, 9.5, ha="left")
    label(axes, 70.5, 2, "not to scale", GREY, 9.5, ha="right")
    return figure, {"blocks": 2, "columns": BN, "tile": BM * BN}


@styled
def buffers() -> tuple[Figure, dict[str, int]]:
    """Two programs in a row, spins written over the old ones, and written into a second array: how many tiles of the
    wrong step are read."""
    figure, axes = canvas(7.4, 4.4, "Written in place, program 1 reads a mixture of two steps")
    wrong = 0

    def tile(left: float, y: float, text: str, colour: str, depth: float, height: float = 5, up: float = 0) -> None:
        axes.add_patch(Rectangle((left, y), 7, height, fc=tint(colour, depth), ec=colour, lw=1.2))
        label(axes, left + 3.5, y + height / 2 + up, text, size=8.5)

    for x0, name, in_place in ((2, "one array, overwritten", True), (40, "reads one array, writes the other", False)):
        label(axes, x0, 37.3, name, INK, 11, ha="left", weight="bold")
        for program, y in ((0, 27.2), (1, 11.2)):
            box(axes, x0, y, 11, 5, f"program {program}", GREY, 10)
            for i in (0, 1):
                left, new, lost = x0 + 17.5 + 7.5 * i, in_place and i < program, in_place and i == program
                wrong += new
                text, colour, depth = ("step n", BACKWARD, 0.45) if new else ("step n − 1", SPIN, 0.25)
                tile(left, y, text, colour, depth, up=1.3 * lost)
                if lost:
                    tile(left, y, "step n", BACKWARD, 0.45, 2.4)
                elif not in_place and i <= program:
                    tile(left, y - 6.4, "step n", SPIN, 0.6, 2.4)
                elif not in_place:
                    axes.add_patch(Rectangle((left, y - 6.4), 7, 2.4, fc="none", ec=GREY, lw=1, ls=":"))
            arrow(axes, (x0 + 17.1, y + 2.5), (x0 + 11.4, y + 2.5), BACKWARD if in_place and program else FORWARD)
            label(axes, x0 + 25, y + 6.6, "reads all", GREY, 9.5)
            if in_place:
                label(axes, x0 + 25, y - 1.8, f"then overwrites tile {program}", BACKWARD, 9.5)
            else:
                label(axes, x0 + 25, y - 2, f"then writes tile {program}", GREY, 9.5)
                label(axes, x0 + 17, y - 5.2, "other array", GREY, 9.5, ha="right")
    return figure, {"tiles of the wrong step": wrong}
