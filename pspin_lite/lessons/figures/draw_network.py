"""Drawings of notebooks 00 and 08: what "p-spin" means, a layer that answers once and one that settles, the paper's
comparison, and the matrices of a block to scale. Each returns the figure and the numbers it shows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod, sqrt, tanh

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle

from ...config import PSpinConfig
from ...costs import MB
from .diagram import DRIVE, INK, MINUS, PLUS, SPIN, arrow, box, canvas, label, line, tint
from .style import BLUE, GREEN, GREY, ORANGE, RED, styled

Rows = Mapping[str, tuple[float, float]]
FLOOR = 1e-7  # of changes that are drawn; below it, they are rounding errors


def _spin(axes, x: float, y: float, value: int | str, colour: str = GREY, name: str = "", beside: float = -3.6) -> None:
    """A circle with an arrow up or down, or with a text; its name beside it."""
    label(axes, x + beside, y + 1.6, name, GREY)
    axes.add_patch(Circle((x, y), 2.3, fc=tint(colour, 0.3), ec=colour, lw=1.4, zorder=3))
    if isinstance(value, str):
        axes.text(x, y, value, ha="center", va="center", fontsize=10, color=INK, zorder=4)
    else:
        tip = dict(arrowstyle="-|>", color=INK, lw=1.6, shrinkA=0, shrinkB=0)
        axes.annotate("", (x, y + 1.5 * value), (x, y - 1.5 * value), arrowprops=tip, zorder=4)


@styled
def interactions() -> tuple[Figure, dict[str, float]]:
    """Three spins in pairs, the same three at once, and the paper's spin. Returns the two energies that are drawn, and
    the lowest ones of any state."""
    spins, pairs, triple = (1, 1, -1), {(0, 1): 1, (0, 2): 1, (1, 2): -1}, 1
    states = list(product((1, -1), repeat=3))
    in_pairs = {y: -sum(w * y[i] * y[j] for (i, j), w in pairs.items()) for y in states}
    at_once = {y: -triple * prod(y) for y in states}
    energies = {
        "pairs": in_pairs[spins],
        "triple": at_once[spins],
        "lowest pairs": min(in_pairs.values()),
        "lowest triple": min(at_once.values()),
    }
    figure, axes = canvas(7.4, 3.3)
    corners = ((5.5, 11.5), (18.5, 11.5), (12, 21.5))
    for (i, j), w in pairs.items():
        line(axes, *zip(corners[i], corners[j], strict=True), PLUS if w > 0 else MINUS)
        middle = (np.array(corners[i]) + corners[j]) / 2
        axes.text(
            *middle,
            f"{w:+d}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=10,
            color=INK,
            bbox=dict(fc="white", ec="none"),
        )
    for i, (corner, value) in enumerate(zip(corners, spins, strict=True)):
        _spin(axes, *corner, value, name=f"{i + 1}", beside=3.6 if i == 1 else -3.6)
    shifted = [(x + 24.5, y) for x, y in corners]
    axes.add_patch(Polygon(shifted, fc=tint(PLUS), ec=PLUS, lw=1.4))
    label(axes, 36.5, 14.6, f"{triple:+d}")
    for i, (corner, value) in enumerate(zip(shifted, spins, strict=True)):
        _spin(axes, *corner, value, name=f"{i + 1}", beside=3.6 if i == 1 else -3.6)
    for x, title, note, kind in (
        (12, "Ising, Hopfield: p = 2", "a number for each pair", "pairs"),
        (36.5, "p-spin model: p = 3", "a number for each triple", "triple"),
        (61.5, "this paper", "two sums, multiplied", ""),
    ):
        label(axes, x, 30.5, title, size=11, weight="bold")
        label(axes, x, 27.4, note, GREY)
        energy = f"energy {energies[kind]:+d}; lowest {energies[f'lowest {kind}']:+d}" if kind else "no energy"
        label(axes, x, 4.4, energy.replace("-", "−"), size=10.5)
    for x in (24.3, 48.7):
        line(axes, [x, x], [2.5, 31.5], "#D0D0D0")
    for y in (21.3, 15.5, 9.7):
        for end in (19.3, 12):
            arrow(axes, (54, y), (58.6, end), "#9A9A9A", width=0.9)
        _spin(axes, 51.9, y, "$y$", SPIN)
    box(axes, 58.6, 17.3, 6.4, 4.4, "tanh $u$", SPIN, 9.5)
    box(axes, 58.6, 9.8, 6.4, 4.4, "$\\sigma(a)$", DRIVE, 9.5)
    for y, to in ((19.5, 16.6), (12, 15)):
        arrow(axes, (65, y), (68.2, to), GREY)
    _spin(axes, 70.6, 15.8, "$y$", SPIN)
    label(axes, 67.1, 15.8, "×", size=13)
    return figure, energies


@styled
def layers(gamma: float = 0.5, steps: int = 5) -> tuple[Figure, np.ndarray]:
    """An ordinary layer beside one that settles: a spin with drive 1, coupling 1 and an open gate."""
    values = [tanh(1)]
    for _ in range(steps):
        values.append(tanh(1 + gamma * values[-1]))
    figure, axes = canvas(7.4, 3.5)
    label(axes, 13, 33, "An MLP answers once", size=11.5, weight="bold")
    label(axes, 50, 33, "An attractor feeds its answer back", size=11.5, weight="bold")
    for x in (4, 33):
        box(axes, x, 2, 18, 4.4, "$x$, one token", GREY)
        arrow(axes, (x + 9, 6.4), (x + 9, 9.6))
        box(axes, x, 9.6, 18, 4.4, "drive $z = 1$", DRIVE)
        arrow(axes, (x + 9, 14), (x + 9, 17.6))
        arrow(axes, (x + 9, 22), (x + 9, 25.4))
        box(axes, x, 25.4, 18, 4.4, "$W_{down}$, to the stream", GREY)
    box(axes, 4, 17.6, 18, 4.4, f"$y$ = tanh 1 = {values[0]:.3f}", SPIN)
    box(axes, 33, 17.6, 18, 4.4, "$y$ = tanh(1 + ½ $y$)", SPIN)
    line(axes, [51, 54, 54], [20.8, 20.8, 18.8], SPIN)
    arrow(axes, (54, 18.8), (51, 18.8), SPIN)
    label(axes, 64, 27.6, "until it stops changing:", GREY)
    for n, value in enumerate(values):
        label(axes, 64, 24.2 - 3.2 * n, f"$y_{n}$ = {value:.3f}", SPIN, 10.5)
    line(axes, [27, 27], [2, 34], "#D0D0D0")
    return figure, np.array(values)


@styled
def headline(untuned: Rows, tuned: Rows, notes: tuple[str, str]) -> tuple[Figure, tuple[Rows, Rows]]:
    """The paper's comparison: (p-Spin at batch size 1, the Transformer at 64 on eight times the sequences) per row.
    Above at one learning rate, below each tuned by itself; a note says how each panel was trained."""
    figure = Figure(figsize=(7.2, 2.9 + 0.5 * (len(untuned) + len(tuned))), layout="constrained")
    panels = figure.subplots(2, height_ratios=(len(untuned) + 1.2, len(tuned) + 0.6), sharex=True)
    values = [value for rows in (untuned, tuned) for row in rows.values() for value in row]
    room = 0.16 * (max(values) - min(values))  # for a number beside a dot
    panels[0].set_xlim(min(values) - room, max(values) + room)
    panels[0].tick_params(labelbottom=True)
    setups = ("Both at the paper's rate for p-Spin", "Each tuned")
    for axes, rows, setup, note in zip(panels, (untuned, tuned), setups, notes, strict=True):
        for y, (small, large) in enumerate(rows.values()):
            axes.plot([small, large], [y, y], color="#BDBDBD", lw=3, zorder=1)
            for value, other, colour in ((small, large, BLUE), (large, small, ORANGE)):
                axes.plot(value, y, "o", color=colour, markersize=9)
                right = value > other
                axes.annotate(f"{value:.3f}", (value, y), (9 if right else -9, 0), textcoords="offset points",
                              fontsize=10, ha="left" if right else "right", va="center", color=INK)  # fmt: skip
        axes.set_ylim(len(rows) - 0.5, -1.2 if rows is untuned else -0.6)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{setup}: {_ahead(rows)}", loc="left", fontsize=12, weight="bold")
        axes.text(0.99, 0.95, note.replace(", ", ",\n"), transform=axes.transAxes, ha="right", va="top", color=GREY)
    first = next(iter(untuned.values()))
    for value, name, colour in ((first[0], "p-Spin,\nbatch 1", BLUE), (first[1], "Transformer,\nbatch 64", ORANGE)):
        side = "right" if value == min(first) else "left"
        panels[0].annotate(name, (value, 0), (0, 9), textcoords="offset points", ha=side, va="bottom", color=colour)
    panels[1].set_xlabel("bits per byte on held-out speeches (lower is better)")
    return figure, (untuned, tuned)


def _ahead(rows: Rows) -> str:
    """Who has fewer bits per byte, in a few words."""
    wins = [name for name, (small, large) in rows.items() if small < large]
    if not wins:
        return "the Transformer is ahead"
    return "p-Spin is ahead" + (f" in {', '.join(wins)}" if len(wins) < len(rows) else "")


@styled
def matrices(cfg: PSpinConfig) -> tuple[Figure, dict[str, tuple[int, float]]]:
    """The matrices of one block as rectangles to scale, and beneath them the bytes they take when deployed, as squares
    on one scale. Returns parameters and MiB by matrix."""
    D, inner = cfg.width, cfg.inner
    shapes = {"state space": (5 * D, D), "$W_{down}$": (D, inner), "$W_{ext}$": (2 * inner, D)}
    shapes["$W_{int}$"] = (2 * inner, inner)
    figure, axes = canvas(7.4, 4.7)
    scale, x, numbers = 21 / (2 * inner), 5.0, {}
    area = scale**2 / 2  # of a byte: at 16 bits a matrix keeps its size
    label(axes, 1.5, 44.8, "Most parameters are ternary …", size=12, weight="bold", ha="left")
    label(axes, 1.5, 15.2, "… most bytes are not.", size=12, weight="bold", ha="left")
    label(axes, 23, 15.2, "16 bits keep the area, 2 bits leave an eighth of it:", GREY, ha="left")
    for (name, (rows, columns)), bits in zip(shapes.items(), (16, 16, 2, 2), strict=True):
        size = rows * columns * bits / 8
        numbers[name] = (rows * columns, size / MB)
        w, h, side = columns * scale, rows * scale, sqrt(size * area)
        colour, centre = (GREEN if bits == 2 else ORANGE), x + max(w, 8) / 2
        axes.add_patch(Rectangle((centre - w / 2, 41.5 - h), w, h, fc=tint(colour, 0.35), ec=colour, lw=1.2))
        axes.add_patch(Rectangle((centre - side / 2, 2), side, side, fc=tint(colour, 0.6), ec=colour, lw=1.2))
        label(axes, centre, 3.2 + side, f"{size / MB:.2f} MiB", size=10)
        label(axes, centre, 40 - h, f"{name}: {rows * columns / 1e6:.1f}M", size=10)
        x += max(w, 8) + 6
    for n, name in enumerate("qkvgo"):  # the state space's five, one above the other
        top = 41.5 - n * D * scale
        label(axes, 9, top - D * scale / 2, f"$W_{name}$", size=9.5)
        if n:
            line(axes, [9 - D * scale / 2, 9 + D * scale / 2], [top, top], ORANGE)
    for y, text, colour in ((34, "dense:\n16 bits", ORANGE), (27, "ternary:\n2 bits", GREEN)):
        axes.add_patch(Rectangle((x - 1, y - 1), 2, 2, fc=tint(colour, 0.35), ec=colour))
        label(axes, x + 2.2, y, text, ha="left")
    return figure, numbers


@styled
def settling(changes: Mapping[str, np.ndarray], settled: float) -> tuple[Figure, Mapping[str, np.ndarray]]:
    """Relative change per step, a line per strength of the couplings, labelled where it leaves the picture."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    steps = max(map(len, changes.values()))
    axes.axhline(settled, color=GREY, lw=1, ls="--")
    where = dict(textcoords="offset points", ha="right", va="bottom")
    axes.annotate(f"settled: below {100 * settled:g}%", (1.1 * steps, settled), (0, 3), color=GREY, **where)
    for (name, values), colour in zip(changes.items(), (GREEN, BLUE, ORANGE, RED), strict=False):
        shown = values[: int(np.argmax([*(values < FLOOR), True]))]
        at = np.arange(1, len(shown) + 1)
        axes.semilogy(at, shown, "o-", color=colour, markersize=4)
        axes.annotate(name, (at[-1], shown[-1]), (8, 4), textcoords="offset points", color=colour, va="center")
    moving = [name for name, values in changes.items() if values[-1] > settled]
    finding = f"All are ternary, but couplings {', '.join(moving)} do not settle" if moving else "All settle"
    axes.set_title(finding, loc="left", fontsize=12, weight="bold")
    axes.set(xlabel="step", ylabel="relative change in this step", xlim=(0.4, 1.12 * steps), ylim=(FLOOR, 2))
    axes.set_xticks(range(0, steps + 1, 5))
    return figure, changes
