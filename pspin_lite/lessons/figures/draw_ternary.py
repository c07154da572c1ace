"""Drawings of notebooks 04 and 07: a weight on the rounding staircase, a packed byte, one step in one
kernel. Colours as in diagram.py: a code is blue for 1, grey for 0, orange for -1; spins green, drive sky blue; red is
what the gradient does. Each returns the figure and the numbers it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from .diagram import BACKWARD, DRIVE, FORWARD, INK, MINUS, PLUS, SPIN, arrow, box, canvas, label
from .style import GREY, styled

CODE = {-1: MINUS, 0: "#8A8A8A", 1: PLUS}  # the grey of a dot is darker than that of a box
TREADS = ((-1.6, -0.5, -1), (-0.5, 0.5, 0), (0.5, 1.6, 1))  # of the staircase: from, to, code


def climb(start: float, target: float, lr: float, steps: int) -> dict[str, np.ndarray]:
    """One hidden weight, scale 1, loss (rounded - target)² / 2, gradient straight through: where it is at each step,
    its code there, and the push it gets."""
    w = [start]
    for _ in range(steps):
        w.append(w[-1] - lr * (_code(w[-1]) - target))
    w = np.array(w)
    code = np.array([_code(one) for one in w])
    return {"w": w, "code": code, "push": lr * (target - code)}


def _code(w: float) -> float:
    return float(np.clip(np.round(w), -1, 1))


@styled
def staircase_walk(
    start: float = -0.9, target: float = 0.8, lr: float = 0.15, steps: int = 40
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Above: rounding as a staircase, and the straight line that straight-through takes in its place. Below: a weight
    that is pushed along, step by step downwards, over the same axis."""
    walk = climb(start, target, lr, steps)
    figure = Figure(figsize=(6.6, 6.0))
    top, below = figure.add_axes((0.13, 0.63, 0.84, 0.31)), figure.add_axes((0.13, 0.09, 0.84, 0.42))
    wanted = f"{target:g}".replace("-", "−")
    titles = f"The loss wants {wanted}, the codes are −1, 0 and 1", "Every step pushes the hidden weight"
    for axes, title in zip((top, below), titles, strict=True):
        axes.set_title(title, loc="left", weight="bold", fontsize=12)
    for left, right, code in TREADS:
        top.plot([left, right], [code, code], color=CODE[code], lw=4, solid_capstyle="butt")
        below.fill_between([left, right], -1.2, steps + 4.5, color=CODE[code], alpha=0.12, lw=0)
        push = lr * (target - code)
        text = "no push" if not push else f"push {push:+.2f}".replace("-", "−")
        below.text((left + right) / 2, steps + 3.2, text, color=BACKWARD, ha="center", fontsize=10.5)
    top.plot([-1.6, 1.6], [-1.6, 1.6], color=BACKWARD, ls="--", lw=1.4)
    top.plot([-1.6, 1.6], [target, target], color=GREY, ls="--", lw=1)
    top.text(-1.55, target + 0.1, f"target {wanted}", color=GREY, fontsize=9.5)
    top.text(0.56, -0.1, "stairs: forward pass", fontsize=9.5, color=INK)
    top.text(-0.42, -0.75, "dashed: backward pass", fontsize=9.5, color=BACKWARD)
    top.set(ylabel="rounded value", xlim=(-1.6, 1.6), ylim=(-1.35, 1.35), yticks=[-1, 0, 1])
    down = np.arange(len(walk["w"]))
    below.plot(walk["w"], down, color=FORWARD, lw=0.8)
    for code in CODE:
        here = walk["code"] == code
        below.plot(walk["w"][here], down[here], "o", color=CODE[code], lw=0, markersize=4.5)
    below.set(xlabel="hidden weight", ylabel="step", xlim=(-1.6, 1.6), ylim=(steps + 4.5, -1.2))
    for axes in (top, below):
        axes.grid(False)
        low, high = axes.get_ylim()
        for border in (-0.5, 0.5):
            axes.plot([border, border], [low, high], color=GREY, lw=0.8, ls=":")
        axes.set_xticks([-1.5, -1, -0.5, 0, 0.5, 1, 1.5])
    return figure, walk


def flicker(target: float, rate: float) -> tuple[Figure, dict[str, str]]:
    """The widget of notebook 04: a hidden weight that starts at -0.9, for a target and a learning rate."""
    codes = climb(-0.9, target, rate, 2000)["code"][-1000:]
    shares = {f"code {code} in the long run": f"{100 * (codes == code).mean():.0f}%" for code in (0, 1)}
    return staircase_walk(target=target, lr=rate)[0], shares | {"mean code": f"{codes.mean():.2f}"}


@styled
def packed_byte(codes: Sequence[int] = (1, -1, 0, 1), place: int = 2) -> tuple[Figure, dict[str, int]]:
    """Four codes in a byte, and how a shift and a bitwise and take the one at `place` out again."""
    digits = [code + 1 for code in codes]
    byte = sum(digit << 2 * i for i, digit in enumerate(digits))
    shifted = byte >> 2 * place
    shown = {"byte": byte, "shifted": shifted, "masked": shifted & 3, "code": (shifted & 3) - 1}
    figure, axes = canvas(6.6, 4.6, "A shift and a bitwise AND take one weight out of a byte")
    x, w = 17, 8.6  # left edge of the byte, width of a pair of bits
    for i, code in enumerate(codes):
        left = x + (3 - i) * w
        label(axes, left + w / 2, 40.4, f"weight {i}", GREY, 9.5)
        box(axes, left + 0.9, 34.8, w - 1.8, 4.2, f"{code:d}".replace("-", "−"), CODE[code], 11)
        arrow(axes, (left + w / 2, 34.6), (left + w / 2, 31.6))
    label(axes, x - 2, 36.9, "code", ha="right")
    rows = (
        (27.2, "plus one, in bits", byte, codes, "right"),
        (18.6, f"shifted: >> {2 * place}", shifted, [*codes[place:], *[None] * place], "right"),
        (10.2, "kept: & 3", shifted & 3, [codes[place], None, None, None], "right"),
    )
    for y, name, value, owners, side in rows:
        label(axes, x - 2, y + 2.1, name, ha=side)
        label(axes, x + 4 * w + 2, y + 2.1, f"= {value}", ha="left")
        for i, owner in enumerate(owners):
            _pair(axes, x + (3 - i) * w, y, w, f"{value >> 2 * i & 3:02b}", owner)
    middle = x + (3 - place) * w + w / 2
    last = x + 3.5 * w
    for start, end in (((middle, 27), (last, 23)), ((last, 18.4), (last, 14.6)), ((last, 10), (last, 6.2))):
        arrow(axes, start, end)
    code = f"{shown['code']:d}".replace("-", "−")
    label(axes, x - 2, 3.9, "minus one", ha="right")
    box(axes, last - w / 2 + 0.9, 1.8, w - 1.8, 4.2, code, CODE[shown["code"]], 11)
    label(axes, x + 4 * w + 2, 3.9, f"= {code}, weight {place}", ha="left", weight="bold")
    return figure, shown


def _pair(axes: Axes, x: float, y: float, w: float, bits: str, owner: int | None) -> None:
    """Two bits of a byte; white if they belong to no weight."""
    if owner is None:
        box(axes, x + 0.2, y, w - 0.4, 4.2, "", "#D8D8D8")
        label(axes, x + w / 2, y + 2.1, bits, "#9A9A9A", 11, family="monospace")
    else:
        box(axes, x + 0.2, y, w - 0.4, 4.2, "", CODE[owner])
        label(axes, x + w / 2, y + 2.1, bits, size=11, family="monospace")


def step_bytes(T: int, I: int) -> dict[str, list[tuple[str, dict[str, float], dict[str, float]]]]:
    """What one step of T tokens and I spins moves, in MiB of float32: (operation, reads, writes), unfused and fused.
    Couplings take 4 bytes each, or a quarter of one if packed."""
    spins, couplings = 4 * T * I / 2**20, 2 * I * I / 2**20
    unfused = [
        ("γ ⊙ y", {"y": spins}, {"y": spins}),
        ("product,\nplus z", {"y": spins, "z": 2 * spins, "couplings": 4 * couplings}, {"field": 2 * spins}),
        ("tanh, σ", {"field": 2 * spins}, {"field": 2 * spins}),
        ("multiply", {"field": 2 * spins}, {"y": spins}),
    ]
    fused = [("", {"y": spins, "z": 2 * spins, "couplings": couplings / 4}, {"y": spins})]
    return {"operation by operation": unfused, "one kernel, packed": fused}


TRAVELS = {"y": SPIN, "z": DRIVE, "field": FORWARD, "couplings": PLUS}
NAMES = {"y": "spins y", "z": "drive z", "field": "field f, tanh, σ", "couplings": "couplings"}
COLOURS = {NAMES[key]: colour for key, colour in TRAVELS.items()}


@styled
def step_on_chip(T: int, I: int) -> tuple[Figure, dict[str, float]]:
    """What travels between memory and chip in one step, in arrows as wide as it is large: four operations, and one
    kernel. Returns MiB in all."""
    plans = step_bytes(T, I)
    totals = {name: sum(_moved(plan).values()) for name, plan in plans.items()}
    largest = max(size for plan in plans.values() for _, *both in plan for one in both for size in one.values())
    figure, axes = canvas(7.4, 6.0, "Fused, the field never leaves the chip")
    for x, (name, colour) in zip((1.5, 13.5, 25, 42.5), COLOURS.items(), strict=True):
        label(axes, x, 54.3, f"━ {name}", colour, 10, ha="left")
    label(axes, 72.5, 54.3, "numbers, widths: MiB", INK, 10, ha="right")
    for base, (name, plan) in zip((30, 4), plans.items(), strict=True):
        label(axes, 1.5, base + 21.3, name, ha="left", weight="bold")
        box(axes, 1.5, base, 71, 4.4, "memory", "#9A9A9A", 10)
        width = 71 / len(plan)
        for i, (text, reads, writes) in enumerate(plan):
            left = 1.5 + i * width
            inside = text or "on chip: damped spins, codes unpacked,\nboth halves of the field, tanh, σ, their product"
            box(axes, left + 1, base + 13.4, width - 2, 6, inside, GREY, 10)
            moves = [(*read, True) for read in reads.items()] + [(*write, False) for write in writes.items()]
            for n, (key, size, up) in enumerate(moves):
                at = left + 1 + (width - 2) * (n + 0.5) / len(moves)
                low, high = base + 4.6, base + 13.2
                _stream(axes, at, *((low, high) if up else (high, low)), TRAVELS[key], 9 * size / largest)
                label(axes, at + 0.9, base + 8.6, f"{size:.0f}", TRAVELS[key], 9.5, ha="left")
    return figure, totals


def _stream(axes: Axes, x: float, start: float, end: float, colour: str, width: float) -> None:
    """An upright arrow whose shaft is `width` points wide."""
    how = f"simple,head_length=8,head_width={width + 8},tail_width={width}"
    look = dict(arrowstyle=how, mutation_scale=1, color=colour, lw=0, shrinkA=0, shrinkB=0)
    axes.add_patch(FancyArrowPatch((x, start), (x, end), **look))


def savings(I: int) -> Callable[[int], tuple[Figure, dict[str, str]]]:
    """The widget of notebook 07: MiB of one step of some tokens, with and without fusing and packing."""

    @styled
    def draw(tokens: int) -> tuple[Figure, dict[str, str]]:
        unfused, fused = map(_moved, step_bytes(tokens, I).values())
        dense, packed = ({"couplings": one["couplings"]} for one in (unfused, fused))
        bars = {"neither": unfused, "fusing": fused | dense, "packing": unfused | packed, "both": fused}
        totals = {name: sum(bar.values()) for name, bar in bars.items()}
        figure = Figure(figsize=(7.0, 3.1))
        axes = figure.add_axes((0.13, 0.19, 0.82, 0.69))
        for y, (name, bar) in zip((3, 2, 1, 0), bars.items(), strict=True):
            left = 0.0
            for key in (key for key in TRAVELS if key in bar):
                right = left + bar[key]
                axes.fill_between([left, right], y - 0.3, y + 0.3, color=TRAVELS[key], lw=0)  # a live form can draw it
                left = right
            axes.text(totals[name] + totals["neither"] / 50, y, f"{totals[name]:.1f} MiB", va="center", fontsize=10)
        axes.set_yticks((3, 2, 1, 0), list(bars))
        for i, (name, colour) in enumerate(COLOURS.items()):  # in the free corner
            x, y = (0.47, 0.84)[i % 2] * totals["neither"], (0.25, -0.25)[i // 2]
            axes.fill_between([x, x + 0.022 * totals["neither"]], y - 0.1, y + 0.1, color=colour, lw=0)
            axes.text(x + 0.035 * totals["neither"], y, name, color=INK, va="center")
        axes.set(xlabel="MiB per step", xlim=(0, 1.25 * totals["neither"]), ylim=(-0.6, 3.5))
        axes.grid(axis="y", visible=False)
        better, other = sorted(("fusing", "packing"), key=totals.get)
        who = "1 token" if tokens == 1 else f"{tokens:,} tokens"
        title = f"{better} saves more than {other}"
        title = "both save the same" if totals[better] == totals[other] else title
        axes.set_title(f"{who}: {title}", loc="left", fontsize=11.5, weight="bold")
        return figure, {
            f"{name} {'save' if name == 'both' else 'saves'}": f"{totals['neither'] - total:,.1f} MiB"
            for name, total in totals.items()
            if name != "neither"
        }

    return draw


def _moved(plan: list[tuple[str, dict[str, float], dict[str, float]]]) -> dict[str, float]:
    """MiB of each kind, read and written, in all operations."""
    moved: dict[str, float] = {}
    for _, *both in plan:
        for kind, size in (item for one in both for item in one.items()):
            moved[kind] = moved.get(kind, 0) + size
    return moved
