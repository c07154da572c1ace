"""The network in one picture, docs/architecture.svg: `python -m pspin_lite.lessons.figures.architecture` draws it."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, outlines, styled

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "architecture.svg"


@styled
def architecture() -> Figure:
    """The network in one picture (the paper's figure 1 is missing): the model, one block, the attractor's loop."""
    figure = Figure(figsize=(11, 5.4))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 110), ylim=(0, 54))
    axes.axis("off")

    def box(x, y, w, h, text, colour, size=10.5, fill=0.16):
        axes.add_patch(
            FancyBboxPatch(
                (x, y), w, h, boxstyle="round,pad=0,rounding_size=1", fc=(*mpl.colors.to_rgb(colour), fill), ec=colour
            )
        )
        axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=size)

    def arrow(start, end, colour=GREY):
        style = dict(arrowstyle="-|>", mutation_scale=12, lw=1.4, shrinkA=0, shrinkB=0)
        axes.add_patch(FancyArrowPatch(start, end, color=colour, **style))

    def line(xs, ys, colour=GREY, style="-"):
        axes.plot(xs, ys, color=colour, lw=1.4, ls=style)

    def heading(x, text, note):
        axes.text(x, 51.3, text, ha="center", fontsize=12.5, weight="bold")
        axes.text(x, 48.7, note, ha="center", fontsize=9.5, color=GREY)

    # The model, from bottom to top
    heading(12, "The model", "tokens in, logits out")
    box(3, 3, 18, 5, "tokens", GREY)
    box(3, 11, 18, 5, "embedding", PURPLE)
    box(3, 19, 18, 9, "block", BLUE)
    axes.text(22, 20.5, "× L", fontsize=12, color=BLUE)
    box(3, 31, 18, 5, "RMSNorm", GREY)
    box(3, 39, 18, 5, "tied head → logits", PURPLE)
    for a, b in ((8, 11), (16, 19), (28, 31), (36, 39)):
        arrow((12, a), (12, b))

    # One block
    heading(47, "One block", "two halves, each added to the stream")
    stream = 35
    arrow((stream, 3), (stream, 45.5))
    axes.text(stream - 0.8, 3.5, "X", ha="right", fontsize=11, style="italic")
    for y, name, note, colour in (
        (9, "gated state space", "h ← e$^G$ h + kᵀv,   o = q h", ORANGE),
        (29, "p-spin attractor", "Y = fixed point, K steps", GREEN),
    ):
        line([stream, 42], [y - 2.5, y - 2.5])
        arrow((42, y - 2.5), (42, y))
        box(37.5, y, 20, 3.6, "RMSNorm", GREY, 9.5)
        arrow((47.5, y + 3.6), (47.5, y + 5.6))
        box(37.5, y + 5.6, 20, 6.6, f"{name}\n", colour)
        axes.text(47.5, y + 7.4, note, ha="center", va="center", fontsize=9.5)
        line([47.5, 47.5], [y + 12.2, y + 14])
        arrow((47.5, y + 14), (stream + 1, y + 14))
        axes.text(stream, y + 14, "+", ha="center", va="center", fontsize=12, weight="bold",
                  bbox=dict(boxstyle="circle,pad=0.15", fc="white", ec=GREY))  # fmt: skip
    line([21, 33.2], [28, 46.5], BLUE, ":")
    line([21, 33.2], [19, 2.2], BLUE, ":")

    # The attractor
    heading(86, "The attractor", "forward: K steps; backward: implicit, nothing stored per step")
    box(66, 4, 18, 5.4, "Z = X̄ W_extᵀ", GREEN)
    box(66, 18, 18, 5.4, "H = Z + (γ Y) W_intᵀ", GREEN, 9.5)
    box(66, 31, 18, 5.4, "Y = tanh U · σ(G)", GREEN, 9.5)
    box(90, 24, 17, 6.6, "γ Y\nlast spins, damped", SKY, 9.5)
    box(66, 41, 18, 4.4, "Y_K → W_down", GREY, 9.5)
    arrow((75, 9.4), (75, 18))
    arrow((75, 23.4), (75, 31))
    axes.text(76, 27, "[U | G] = H", fontsize=9.5, va="center", color=GREY)
    arrow((75, 36.4), (75, 41))
    line([84, 98.5], [33.7, 33.7], SKY)
    arrow((98.5, 33.7), (98.5, 30.6), SKY)
    line([98.5, 98.5], [24, 20.7], SKY)
    arrow((98.5, 20.7), (84, 20.7), SKY)
    axes.text(100, 35.3, "K times", fontsize=10.5, color=BLUE, ha="center")
    axes.text(
        76,
        13.7,
        " W_ext and W_int hold only\n −1, 0, 1 times a scale",
        fontsize=9.5,
        color=GREY,
        va="center",
        ha="left",
    )
    line([57.5, 64.8], [41.2, 46.5], GREEN, ":")
    line([57.5, 64.8], [34.6, 2.6], GREEN, ":")
    return figure


def main(path: Path = PICTURE) -> None:
    outlines(path, architecture)


if __name__ == "__main__":
    main()
