"""The network in one picture, docs/architecture.svg, and where each notebook is in it, docs/here/NN.svg.

`python -m pspin_lite.lessons.figures.architecture` draws them.
"""

from __future__ import annotations

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
    "12": ("verdict",),
    "13": ("training", "verdict"),
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
    """The network in one picture (the paper's figure 1 is missing): the model, one block, the attractor's loop."""
    figure, axes = canvas(11, 5.4)
    _model(axes)
    _block(axes, stream=35)
    _attractor(axes)
    return figure


def _heading(axes: Axes, x: float, text: str, note: str) -> None:
    label(axes, x, 51.9, text, size=12.5, weight="bold")
    label(axes, x, 49.2, note, GREY, 9.5)


def _model(axes: Axes) -> None:
    """From bottom to top."""
    _heading(axes, 12, "The model", "tokens in, logits out")
    box(axes, 3, 3, 18, 5, "tokens", GREY)
    box(axes, 3, 11, 18, 5, "embedding", PURPLE)
    box(axes, 3, 19, 18, 9, "block", BLUE)
    label(axes, 23.5, 21, "× L", BLUE, 12)
    box(axes, 3, 31, 18, 5, "RMSNorm", GREY)
    box(axes, 3, 39, 18, 5, "tied head → logits", PURPLE)
    for bottom, top in ((8, 11), (16, 19), (28, 31), (36, 39)):
        arrow(axes, (12, bottom), (12, top))
    line(axes, [3, 2.1, 2.1, 3], [13.5, 13.5, 41.5, 41.5], PURPLE, ":")
    axes.text(0.95, 23.5, "same matrix", color=PURPLE, fontsize=9.5, rotation=90, ha="center", va="center")


def _block(axes: Axes, stream: float) -> None:
    _heading(axes, 47, "One block", "first between tokens, then each token alone")
    arrow(axes, (stream, 3), (stream, 45.5))
    label(axes, stream - 1.4, 4.2, "$x$", size=12)
    halves = (
        (9, "gated state space", "$h \\leftarrow e^{g} h + k^{T} v,\\;\\; (q\\,h)\\,W_o^{T}$", ORANGE),
        (29, "attractor", "$y \\approx$ fixed point, $K$ steps", GREEN),
    )
    for y, name, note, colour in halves:
        line(axes, [stream, 42], [y - 2.5, y - 2.5])
        arrow(axes, (42, y - 2.5), (42, y))
        box(axes, 37.5, y, 20, 3.6, "RMSNorm", GREY, 9.5)
        arrow(axes, (47.5, y + 3.6), (47.5, y + 5.6))
        box(axes, 37.5, y + 5.6, 20, 6.6, f"{name}\n", colour)
        label(axes, 47.5, y + 7.4, note, size=9.5)
        line(axes, [47.5, 47.5], [y + 12.2, y + 14])
        arrow(axes, (47.5, y + 14), (stream + 1, y + 14))
        ring = dict(boxstyle="circle,pad=0.15", fc="white", ec=GREY)
        axes.text(stream, y + 14, "+", ha="center", va="center", fontsize=12, weight="bold", bbox=ring)
    line(axes, [21, 33.2], [28, 46.5], BLUE, ":")
    line(axes, [21, 33.2], [19, 2.2], BLUE, ":")


def _attractor(axes: Axes) -> None:
    _heading(axes, 86, "The attractor", "forward: K steps; backward: needs only the fixed point")
    box(axes, 66, 4, 18, 5.4, "$z = \\bar x\\,\\widehat{W}_{ext}^{T}$", GREEN)
    box(axes, 66, 18, 18, 5.4, "$f = z + (\\gamma\\,y)\\,\\widehat{W}_{int}^{T}$", GREEN)
    box(axes, 66, 31, 18, 5.4, "$y = \\tanh(u)\\;\\sigma(a)$", GREEN)
    box(axes, 90, 24, 17, 6.6, "$\\gamma\\,y$\nlast spins, damped", SKY, 9.5)
    box(axes, 66, 41, 18, 4.4, "$y_K\\;W_{down}^{T}$", GREY)
    arrow(axes, (75, 9.4), (75, 18))
    arrow(axes, (75, 23.4), (75, 31))
    label(axes, 76, 27, "$[u\\;|\\;a] = f$", GREY, 9.5, ha="left")
    arrow(axes, (75, 36.4), (75, 41))
    line(axes, [84, 98.5], [33.7, 33.7], SKY)
    arrow(axes, (98.5, 33.7), (98.5, 30.6), SKY)
    line(axes, [98.5, 98.5], [24, 20.7], SKY)
    arrow(axes, (98.5, 20.7), (84, 20.7), SKY)
    label(axes, 100, 35.6, "K times", BLUE, 10.5)
    label(axes, 76.5, 13.7, "both $\\widehat{W}$: −1, 0 or 1,\ntimes one scale", GREY, 9.5, ha="left")
    line(axes, [57.5, 64.8], [41.2, 46.5], GREEN, ":")
    line(axes, [57.5, 64.8], [34.6, 2.6], GREEN, ":")


def main(docs: Path = DOCS) -> None:
    outlines(docs / "architecture.svg", architecture)
    (docs / "here").mkdir(exist_ok=True)
    for notebook, parts in HERE.items():
        outlines(docs / "here" / f"{notebook}.svg", lambda parts=parts: here(parts))


if __name__ == "__main__":
    main()
