"""How figures look, and what several of them share.

Colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#5A5A5A",
)
CYCLE = [BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY]
STYLE = {
    "figure.figsize": (7.0, 3.6),
    "figure.dpi": 100,
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "axes.axisbelow": True,
    "axes.prop_cycle": mpl.cycler(color=CYCLE),
    "legend.frameon": False,
    "svg.hashsalt": "pspin_lite",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"],
}


styled = mpl.rc_context(STYLE)  # as a decorator: everything a figure makes is made in this style


@styled
def lines_and_dots(
    x: Sequence[int], lines: Mapping[str, Sequence[float]], dots: Mapping[str, Sequence[float]], **labels: str
) -> Figure:
    """Both axes logarithmic: lines from formulas, dots as counted (those of a name may end early)."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(lines.items(), CYCLE, strict=False):
        axes.loglog(x, values, color=colour)
        axes.text(1.08 * x[-1], values[-1], name, color=colour, va="center")
        if name in dots:
            axes.loglog(x[: len(dots[name])], dots[name], "o", color=colour)
    axes.set_xticks(x, [f"{tick:,}" for tick in x])
    axes.minorticks_off()
    axes.set(xlim=(0.9 * x[0], 1.9 * x[-1]), **labels)
    axes.text(0.02, 0.92, "lines: formula, dots: counted", color=GREY, transform=axes.transAxes)
    return figure


def outlines(path: Path, draw: Callable[[], Figure]) -> None:
    """Writes an SVG with text as outlines: it looks the same everywhere."""
    with mpl.rc_context(STYLE | {"svg.fonttype": "path"}):
        draw().savefig(path, metadata={"Date": None})
    print(f"wrote {path.parent.name}/{path.name}")
