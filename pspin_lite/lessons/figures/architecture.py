"""The network in one picture, docs/architecture.svg, and where each notebook is in it, docs/here/NN.svg.

`python -m pspin_lite.lessons.figures.architecture` draws them.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .diagram import arrow, box, canvas, label, line
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, outlines, styled

DOCS = Path(__file__).resolve().parents[3] / "docs"
PARTS = {  # of the small picture: x, y, width, height, text, colour
    "text": (1, 11, 7, 5, "text", GREY),
    "embedding": (10, 11, 9.5, 5, "embedding", PURPLE),
    "state space": (22, 11, 11, 5, "state space", ORANGE),
    "attractor": (35, 11, 10, 5, "attractor", GREEN),
    "head": (50, 11, 7, 5, "head", PURPLE),
    "kernels": (22, 2, 11, 4.4, "kernels", ORANGE),
    "ternary": (35, 2, 7.5, 4.4, "ternary", GREEN),
    "gradient": (43.3, 2, 8.2, 4.4, "gradient", GREEN),
    "training": (1, 2, 8.5, 4.4, "training", BLUE),
    "verdict": (11, 2, 8, 4.4, "verdict", BLUE),
}
MODEL = ("embedding", "state space", "attractor", "head")
HERE = {  # notebook -> the parts that it is about
    "00": tuple(PARTS),
    "01": ("state space",),
    "02": ("state space", "kernels"),
    "03": ("kernels", "gradient"),
    "04": ("ternary",),
    "05": ("attractor",),
    "06": ("attractor", "gradient"),
    "07": ("attractor", "kernels"),
    "08": MODEL,
    "09": ("text",),
    "10": ("training",),
    "11": ("training", "verdict"),
    "12": ("state space", "attractor", "verdict"),
    "13": ("training", "verdict"),
    "14": ("training", "verdict"),
    "15": ("state space", "attractor", "verdict"),
}


@styled
def here(parts: tuple[str, ...]) -> Figure:
    """The way of a token through the network, small; `parts` in colour."""
    figure, axes = canvas(5.8, 2.1)
    axes.patch.set_facecolor("white")
    figure.patch.set_facecolor("white")
    for name, (x, y, w, h, text, colour) in PARTS.items():
        box(axes, x, y, w, h, text, colour if name in parts else "#C8C8C8", 9.5 if name in parts else 9)
    for start, end in ((8, 10), (19.5, 22), (33, 35), (45, 50)):
        arrow(axes, (start, 13.5), (end, 13.5), "#8A8A8A", width=1)
    line(axes, [22, 22, 45, 45], [16.8, 17.6, 17.6, 16.8], "#8A8A8A")  # one block
    label(axes, 33.5, 19.3, "× L", GREY, 9.5)
    for x in (27.5, 38.7, 44.2):
        line(axes, [x, x], [6.4, 11], "#C8C8C8", ":")
    arrow(axes, (9.5, 4.2), (11, 4.2), "#8A8A8A", width=1)
    arrow(axes, (4.5, 11), (4.5, 6.4), "#8A8A8A", width=1)
    return figure


@styled
def architecture() -> Figure:
    """The network in one picture (the paper's figure 1 is missing): the model, one block, the attractor's loop. It is
    narrow for its letters, for whoever reads README on a phone."""
    figure, axes = canvas(5.8, 6.2)
    _model(axes)
    _block(axes, stream=4.3)
    _attractor(axes)
    return figure


def _heading(axes: Axes, x: float, y: float, text: str, note: str) -> None:
    label(axes, x, y, text, size=13, weight="bold")
    label(axes, x, y - 3.4, note, GREY, 10.5, linespacing=1.15)


def _model(axes: Axes) -> None:
    """From left to right."""
    label(axes, 1.5, 60, "The model", size=13, weight="bold", ha="left")
    label(axes, 14.6, 59.9, "tokens in, logits out", GREY, 10.5, ha="left")
    parts = (
        (1.5, 7.4, "tokens", GREY),
        (11.7, 10.6, "embedding", PURPLE),
        (25.1, 9.6, "block × $L$", BLUE),
        (37.5, 9.6, "RMSNorm", GREY),
        (49.9, 6.6, "head", PURPLE),
    )
    for x, width, text, colour in parts:
        box(axes, x, 50, width, 4.6, text, colour, 11)
    for (left, width, *_), (right, *_) in pairwise(parts):
        arrow(axes, (left + width, 52.3), (right, 52.3))
    line(axes, [17, 17, 53.2, 53.2], [54.6, 56.4, 56.4, 54.6], PURPLE, ":")
    label(axes, 35.1, 57.6, "same matrix", PURPLE, 10.5)
    for start, end in ((25.1, 1.2), (34.7, 25.4)):
        line(axes, [start, end], [50, 46.4], BLUE, ":")


def _block(axes: Axes, stream: float) -> None:
    _heading(axes, 13.3, 44.9, "One block", "")
    arrow(axes, (stream, 1), (stream, 43.9))
    label(axes, stream - 1.7, 2, "$x$", size=13)
    halves = (  # lower edge, name, what it works on, steps, colour
        (3.6, "state space", "between tokens", ["$h \\leftarrow e^{g} h + k^{T} v$", "$o = q\\,h$"], ORANGE),
        (24.9, "attractor", "each token alone", ["one step, $K$ times"], GREEN),
    )
    for y, name, where, steps, colour in halves:
        height = 6.8 + 2.5 * len(steps)
        top = y + 5 + height
        line(axes, [stream, 10], [y - 1.5, y - 1.5])
        arrow(axes, (10, y - 1.5), (10, y))
        box(axes, 7.3, y, 17.6, 3.6, "RMSNorm", GREY, 11)
        arrow(axes, (16.1, y + 3.6), (16.1, y + 5))
        box(axes, 7.3, y + 5, 17.6, height, "", colour)
        label(axes, 16.1, top - 2, name, size=12)
        label(axes, 16.1, top - 4.5, where, GREY, 10.5)
        for row, step in enumerate(steps):
            label(axes, 16.1, top - 7.2 - 2.5 * row, step, size=10.5)
        line(axes, [16.1, 16.1], [top, top + 1.5])
        arrow(axes, (16.1, top + 1.5), (stream + 1, top + 1.5))
        ring = dict(boxstyle="circle,pad=0.15", fc="white", ec=GREY)
        axes.text(stream, top + 1.5, "+", ha="center", va="center", fontsize=12, weight="bold", bbox=ring)


def _attractor(axes: Axes) -> None:
    _heading(axes, 42.6, 44.9, "The attractor", "its gradient needs\nonly the fixed point")
    box(axes, 29.8, 1, 15.8, 5.4, "$z = \\bar x\\,\\widehat{W}_{ext}^{T}$", GREEN, 11.5)
    box(axes, 29.8, 12.4, 15.8, 5.4, "$f = z + (\\gamma\\,y)\\,\\widehat{W}_{int}^{T}$", GREEN, 11.5)
    box(axes, 29.8, 23, 15.8, 5.4, "$y = \\tanh(u)\\;\\sigma(a)$", GREEN, 11.5)
    box(axes, 48, 16.8, 9.2, 7.2, "$\\gamma\\,y$\nlast spins,\ndamped", SKY, 10)
    box(axes, 29.8, 33.4, 15.8, 5, "$y_K\\;W_{down}^{T}$", GREY, 11.5)
    arrow(axes, (37.7, 6.4), (37.7, 12.4))
    arrow(axes, (37.7, 17.8), (37.7, 23))
    label(axes, 38.5, 20.4, "$[u\\;|\\;a] = f$", GREY, 10.5, ha="left")
    arrow(axes, (37.7, 28.4), (37.7, 33.4))
    line(axes, [45.6, 52.6], [26.4, 26.4], SKY)
    arrow(axes, (52.6, 26.4), (52.6, 24), SKY)
    line(axes, [52.6, 52.6], [16.8, 14.4], SKY)
    arrow(axes, (52.6, 14.4), (45.6, 14.4), SKY)
    label(axes, 52, 28.2, "$K$ times", BLUE, 11.5)
    label(axes, 38.5, 9.4, "both $\\widehat{W}$: −1, 0 or 1,\ntimes one scale", GREY, 10.5, ha="left")
    for start, end in ((38.6, 45.5), (30.5, 0.6)):
        line(axes, [24.9, 28], [start, end], GREEN, ":")


def main(docs: Path = DOCS) -> None:
    outlines(docs / "architecture.svg", architecture)
    (docs / "here").mkdir(exist_ok=True)
    for notebook, parts in HERE.items():
        outlines(docs / "here" / f"{notebook}.svg", lambda parts=parts: here(parts))


if __name__ == "__main__":
    main()
