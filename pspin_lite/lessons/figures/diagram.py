"""Drawings of mechanisms: boxes, arrows and grids of numbers in one visual language.

A colour has one meaning in every drawing, and texts and comments name it:

    QUERY blue, KEY orange, VALUE green, STATE purple, DECAY sky blue    the state space
    PAIR grey                                                            a pair of tokens computed directly
    PLUS blue, ZERO grey, MINUS orange                                   ternary weights and the signs of spins
    DRIVE sky blue, SPIN green                                           the attractor
    FORWARD grey, BACKWARD red                                           arrows: values, and gradients
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

QUERY, KEY, VALUE, STATE, DECAY = BLUE, ORANGE, GREEN, PURPLE, SKY
PLUS, ZERO, MINUS = BLUE, "#BDBDBD", ORANGE
PAIR = GREY
DRIVE, SPIN = SKY, GREEN
FORWARD, BACKWARD = GREY, RED
INK = "#222222"


def canvas(width: float, height: float, title: str = "") -> tuple[Figure, Axes]:
    """An empty drawing of so many inches whose units are tenths of an inch, x to the right, y up."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 10 * width), ylim=(0, 10 * height))
    axes.axis("off")
    if title:
        axes.text(1.5, 10 * height - 1.2, title, va="top", fontsize=12, weight="bold", color=INK)
    return figure, axes


def tint(colour: str, strength: float = 0.18) -> tuple[float, float, float]:
    """The colour as it looks thinned on white."""
    return tuple(1 - strength * (1 - part) for part in mpl.colors.to_rgb(colour))


def box(
    axes: Axes, x: float, y: float, w: float, h: float, text: str = "", colour: str = GREY, size: float = 10.5
) -> None:
    """A rounded box with its lower left corner at (x, y)."""
    style = "round,pad=0,rounding_size=0.8"
    axes.add_patch(FancyBboxPatch((x, y), w, h, boxstyle=style, fc=tint(colour), ec=colour, lw=1.2))
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=size, color=INK)


def arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str = FORWARD,
    bend: float = 0,
    width: float = 1.4,
) -> None:
    """`bend` curves it to the left of its way; 0.3 is a lot."""
    how = dict(arrowstyle="-|>", mutation_scale=12, lw=width, shrinkA=0, shrinkB=0, connectionstyle=f"arc3,rad={-bend}")
    axes.add_patch(FancyArrowPatch(start, end, color=colour, **how))


def line(axes: Axes, xs: Sequence[float], ys: Sequence[float], colour: str = FORWARD, style: str = "-") -> None:
    axes.plot(xs, ys, color=colour, lw=1.4, ls=style, solid_capstyle="butt")


def label(axes: Axes, x: float, y: float, text: str, colour: str = INK, size: float = 10, **how: str) -> None:
    axes.text(x, y, text, fontsize=size, color=colour, **{"ha": "center", "va": "center"} | how)


def grid(
    axes: Axes,
    x: float,
    y: float,
    values: np.ndarray,
    colour: str | np.ndarray = GREY,
    cell: float = 3,
    form: str = "{:g}",
    size: float = 9,
) -> None:
    """A matrix with its *upper* left corner at (x, y); an entry is the more coloured the larger it is. `colour` may be
    an array of colours; `form` "" leaves the numbers away; nan leaves a cell empty."""
    values = np.atleast_2d(np.asarray(values, float))
    largest = max(np.nanmax(np.abs(values)), 1e-9)
    colours = np.broadcast_to(colour, values.shape)
    for (row, column), value in np.ndenumerate(values):
        corner = (x + column * cell, y - (row + 1) * cell)
        face = "white" if np.isnan(value) else tint(colours[row, column], 0.08 + 0.72 * abs(value) / largest)
        axes.add_patch(Rectangle(corner, cell, cell, fc=face, ec="white" if np.isnan(value) else GREY, lw=0.6))
        if form and not np.isnan(value):
            label(axes, corner[0] + cell / 2, corner[1] + cell / 2, form.format(value), size=size)
