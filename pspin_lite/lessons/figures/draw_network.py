"""Drawings of notebooks 00 and 08: what "p-spin" means, a layer that answers once and one that settles, rounding,
echoes of a move, the paper's comparison, the matrices of a block to scale, and a loss in strips. Each returns the
figure and the numbers it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod, sqrt, tanh

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle

from ...config import PSpinConfig
from ...costs import MB
from .diagram import DRIVE, INK, MINUS, PLUS, SPIN, arrow, box, canvas, label, line, tint
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, styled


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
        (12, "Ising model: p = 2", "a number for each pair", "pairs"),
        (36.5, "p-spin model: p = 3", "a number for each triple", "triple"),
        (61.5, "this paper", "two sums, multiplied", ""),
    ):
        label(axes, x, 30.5, title, size=11, weight="bold")
        label(axes, x, 27.4, note, GREY)
        energy = f"energy {energies[kind]:+d}; lowest {energies[f'lowest {kind}']:+d}" if kind else "no energy"
        label(axes, x, 4.4, energy.replace("-", "−"), size=10.5)
    for x in (24.3, 48.7):
        line(axes, [x, x], [2.5, 31.5], "#D0D0D0")
    for y in (22.3, 16.5, 10.7):
        for end in (19.9, 14):
            arrow(axes, (54, y), (58.6, end), "#9A9A9A", width=0.9)
        _spin(axes, 51.9, y, "$y$", SPIN)
    box(axes, 58.6, 6.2, 6.4, 3.4, "token", GREY, 9.5)
    line(axes, [65, 66.2, 66.2], [7.9, 7.9, 10.6], "#9A9A9A")
    arrow(axes, (66.2, 10.6), (65, 11.6), "#9A9A9A", width=0.9)
    line(axes, [66.2, 66.2], [10.6, 17], "#9A9A9A")
    arrow(axes, (66.2, 17), (65, 18.4), "#9A9A9A", width=0.9)
    box(axes, 58.6, 17.9, 6.4, 4.4, "tanh $u$", SPIN, 9.5)
    box(axes, 58.6, 11.2, 6.4, 4.4, "$\\sigma(a)$", DRIVE, 9.5)
    for y, to in ((20.6, 17.6), (13.4, 15.9)):
        arrow(axes, (65, y), (68.6, to), GREY)
    _spin(axes, 70.9, 16.7, "$y$", SPIN)
    label(axes, 67.6, 16.8, "×", size=12)
    label(axes, 51.9, 7.2, "before", GREY, 9.5)
    label(axes, 70.9, 13.2, "after", GREY, 9.5)
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
def headline(differences: Mapping[str, tuple[float, float | None]]) -> tuple[Figure, dict[str, float]]:
    """The paper's comparison, a bar per setup: bits per byte of p-Spin at batch size 1 minus those of the Transformer
    at 64 on eight times the sequences, and half the width of the interval if there is one."""
    figure = Figure(figsize=(7.2, 1.5 + 0.6 * len(differences)), layout="constrained")
    axes = figure.subplots()
    ends = [0.0]
    for y, (gap, half) in enumerate(differences.values()):
        axes.barh(y, gap, height=0.55, color=BLUE if gap < 0 else ORANGE, xerr=half, ecolor=INK, capsize=3)
        end = gap + (half or 0) * np.sign(gap)
        ends.append(end)
        text = f"{gap:+.3f}".replace("-", "−") + (f" ± {half:.3f}" if half else "")
        axes.annotate(text, (end, y), (7 * np.sign(gap), 0), textcoords="offset points", fontsize=10,
                      ha="left" if gap > 0 else "right", va="center", color=INK)  # fmt: skip
    span = max(ends) - min(ends)
    axes.set_xlim(min(ends) - 0.3 * span, max(ends) + 0.38 * span)
    axes.set_yticks(range(len(differences)), list(differences))
    axes.set_ylim(len(differences) - 0.5, -1.1)
    axes.axvline(0, color=INK, lw=1)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    for x, side, text, colour in (
        (-0.01, "right", "← p-Spin better", BLUE),
        (0.01, "left", "Transformer better →", ORANGE),
    ):
        axes.text(x, -0.75, text, color=colour, ha=side, va="center")
    axes.set_xlabel("p-Spin minus Transformer, bits per byte")
    ahead = [gap < 0 for gap, _ in differences.values()]
    title = "Who is better?"
    if ahead[0] and not ahead[-1]:
        title = "At p-Spin's rate p-Spin leads; tuned, the Transformer does"
    figure.suptitle(title, fontsize=12, weight="bold")
    return figure, {name: gap for name, (gap, _) in differences.items()}


@styled
def rounding(weights: Sequence[float]) -> tuple[Figure, dict[str, list[float]]]:
    """A number line: every weight moves to the nearest of -s, 0 and s, with s the mean absolute value. Returns s and
    what the weights become."""
    w = np.array(weights, float)
    s = np.abs(w).mean()
    rounded = s * np.clip(np.round(w / s), -1, 1)
    figure, axes = canvas(7.4, 2.6, "Every weight moves to the nearest of −s, 0 and s")
    middle, unit, high, low = 37.0, 14.5 / s, 14.5, 6.0
    colours = {-1: MINUS, 0: GREY, 1: PLUS}
    for code, left, right in ((-1, 3, middle - 7.25), (0, middle - 7.25, middle + 7.25), (1, middle + 7.25, 71)):
        axes.add_patch(Rectangle((left, 4), right - left, 15.5, fc=tint(colours[code], 0.13), ec="none"))
    for sign in (-1, 1):
        edge = middle + sign * 7.25
        line(axes, [edge, edge], [4, 19.5], GREY, ":")
        label(axes, edge, 21, "−½ s" if sign < 0 else "½ s", GREY)
    line(axes, [3, 71], [high, high], GREY)
    line(axes, [3, 71], [low, low], GREY)
    label(axes, 3.4, high + 1.6, "before", GREY, 9.5, ha="left")
    label(axes, 3.4, low + 1.6, "after", GREY, 9.5, ha="left")
    for code, text in ((-1, "−s"), (0, "0"), (1, "s")):
        x = middle + code * unit * s
        axes.add_patch(Circle((x, low), 0.9, fc="white", ec=colours[code], lw=1.6, zorder=3))
        label(axes, x, low - 3.8, f"{text} = {code * s:g}".replace("-", "−") if code else text, colours[code], 10.5)
    for value, end in zip(w, rounded, strict=True):
        x, to, colour = middle + unit * value, middle + unit * end, colours[int(np.sign(end))]
        arrow(axes, (x, high - 1), (to, low + 1.2), colour)
        axes.add_patch(Circle((x, high), 0.9, fc=colour, ec=colour, zorder=3))
        label(axes, x, high + 2.4, f"{value:g}".replace("-", "−"), colour, 10.5)
    return figure, {"scale": [float(s)], "rounded": rounded.tolist()}


@styled
def echoes(slopes: Mapping[str, float], count: int = 7) -> tuple[Figure, dict[str, np.ndarray]]:
    """How large a direct move of a spin still is after so many steps, for several slopes at the fixed point."""
    figure = Figure(figsize=(7.4, 2.7), layout="constrained")
    steps, sizes = np.arange(count), {}
    top = 1.1 * max(1.0, *(abs(slope) ** steps[-1] for slope in slopes.values()))
    for axes, (name, slope) in zip(figure.subplots(1, len(slopes), sharey=True), slopes.items(), strict=True):
        sizes[name] = slope**steps
        colour = SPIN if abs(slope) < 1 else RED
        axes.vlines(steps, 0, sizes[name], color=colour, lw=4)
        axes.axhline(0, color=INK, lw=0.8)
        total = f"sum {1 / (1 - slope):.2f}" if abs(slope) < 1 else "no sum"
        axes.set_title(f"$J$ = {slope:.2f}: {total}".replace("-", "−"), fontsize=11, color=colour)
        axes.set(xlabel=f"steps later\n({name})", xticks=steps[::2], ylim=(-top, top))
    figure.axes[0].set_ylabel("echo of a move of 1")
    figure.suptitle("Echoes die out where the slope lies between −1 and 1", fontsize=12, weight="bold")
    return figure, sizes


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
def strips(tokens: int = 1024, vocab: int = 49152, width: int = 544, rows: int = 64) -> tuple[Figure, dict[str, float]]:
    """The logits of a sequence and the strip of them that exists at a time; beside it what each strip leaves: rows of
    the gradient of x, and a share in the gradient of E. Returns MiB of all logits, of a strip, and of the gradients."""
    mib = {"logits": 4 * tokens * vocab / MB, "strip": 4 * rows * vocab / MB}
    mib |= {"dx": 4 * tokens * width / MB, "dE": 4 * vocab * width / MB}
    figure, axes = canvas(7.4, 3.6, "Only one strip of the logits exists at a time")
    x, y, w, h = 8.0, 6.5, 30.0, 22.0  # heights are to scale
    strip, done = h * rows / tokens, 8.0
    low = y + h - done - strip  # of the strip
    axes.add_patch(Rectangle((x, y), w, h, fc="white", ec=GREY, lw=1.2, ls="--"))
    axes.add_patch(Rectangle((x, low), w, strip, fc=tint(PURPLE, 0.7), ec=PURPLE, lw=1.2))
    label(axes, x + w / 2, y + h - 2.6, "done, and forgotten", GREY)
    label(axes, x + w / 2, low + strip + 1.6, f"{rows} rows of logits: {mib['strip']:.0f} MiB", size=10)
    arrow(axes, (x + w / 2, low - 0.6), (x + w / 2, low - 4.6), PURPLE)
    label(axes, x + w / 2, low - 6.6, "not computed yet", GREY)
    label(axes, x + w / 2, y + 1.8, f"all at once: {mib['logits']:.0f} MiB", GREY)
    label(axes, x + w / 2, 4.4, f"$N$ = {vocab:,} columns", GREY)
    label(axes, 4, y + h / 2, f"$T$ =\n{tokens:,}\nrows", GREY)
    left = 46.0
    axes.add_patch(Rectangle((left, y), 3.4, h, fc="white", ec=GREY, lw=1.2))
    axes.add_patch(Rectangle((left, low), 3.4, done + strip, fc=tint(BLUE, 0.45), ec=BLUE, lw=1.2))
    label(axes, left + 4.6, y + h - 2.6, "gradient of $x$:", ha="left")
    label(axes, left + 4.6, y + h - 5.6, f"filled row by row, {mib['dx']:.0f} MiB", BLUE, 9.5, ha="left")
    axes.add_patch(Rectangle((57, 2.2), 14, 5.4, fc=tint(PURPLE, 0.3), ec=PURPLE, lw=1.2))
    label(axes, 64, 4.9, f"{mib['dE']:.0f} MiB")
    label(axes, 64, 11.8, "gradient of $E$:", PURPLE)
    label(axes, 64, 9.2, "every strip adds", PURPLE)
    arrow(axes, (x + w + 0.6, low + strip / 2), (left - 0.6, low + strip / 2), BLUE)
    line(axes, [x + w + 2.5, x + w + 2.5], [low - 0.2, 4.4], PURPLE)
    arrow(axes, (x + w + 2.5, 4.4), (56.4, 4.4), PURPLE)
    return figure, mib
