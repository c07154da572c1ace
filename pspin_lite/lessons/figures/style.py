"""How figures look, and what several of them share.

Colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable
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


def outlines(path: Path, draw: Callable[[], Figure]) -> None:
    """Writes an SVG with text as outlines: it looks the same everywhere."""
    with mpl.rc_context(STYLE | {"svg.fonttype": "path"}):
        draw().savefig(path, metadata={"Date": None})
    print(f"wrote {path.parent.name}/{path.name}")
