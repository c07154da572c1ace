"""Figures, in one look. Each function returns the figure and the arrays it shows, so that tests can check the numbers.

Colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "architecture.svg"
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
def memory(decays: list[float], tokens: int) -> tuple[Figure, dict[float, np.ndarray]]:
    """What is left of one token after others have come, for several constant decays; half-lives are marked."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    left = {}
    for decay, colour in zip(decays, CYCLE, strict=False):
        t = np.arange(tokens + 1)
        left[decay] = decay**t
        half = np.log(0.5) / np.log(decay)
        axes.plot(t, left[decay], color=colour, label=f"decay {decay:g}: half-life {half:.0f}")
        if half <= tokens:
            axes.plot([half], [0.5], "o", color=colour)
    axes.set(xlabel="tokens later", ylabel="share of the token that is left", xlim=(0, tokens), ylim=(0, 1.02))
    axes.legend(loc="center right")
    return figure, left


@styled
def convergence(residuals: dict[str, np.ndarray]) -> tuple[Figure, dict[str, np.ndarray]]:
    """Relative change per step of the attractor, on a logarithmic axis; one line a name."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for name, values in residuals.items():
        axes.semilogy(np.arange(1, len(values) + 1), values, "o-", markersize=4, label=name)
    axes.set(xlabel="step k", ylabel="relative change in step k")
    figure.legend(loc="outside right upper")
    return figure, residuals


@styled
def lines_and_dots(
    x: Sequence[int], lines: Mapping[str, Sequence[float]], dots: Mapping[str, Sequence[float]], **labels: str
) -> Figure:
    """Both axes logarithmic: lines from formulas, dots as counted (those of a name may end early)."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(lines.items(), CYCLE, strict=False):
        axes.loglog(x, values, color=colour, label=name)
        if name in dots:
            axes.loglog(x[: len(dots[name])], dots[name], "o", color=colour)
    axes.set_xticks(x, [f"{tick:,}" for tick in x])
    axes.minorticks_off()
    axes.set(**labels)
    axes.legend(title="lines: formula, dots: counted", alignment="left")
    return figure


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


def outlines(path: Path, draw: Callable[[], Figure]) -> None:
    """Writes an SVG with text as outlines: it looks the same everywhere."""
    with mpl.rc_context(STYLE | {"svg.fonttype": "path"}):
        draw().savefig(path, metadata={"Date": None})
    print(f"wrote {path.parent.name}/{path.name}")


def main(path: Path = PICTURE) -> None:
    outlines(path, architecture)


if __name__ == "__main__":
    main()
