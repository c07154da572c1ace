"""Figures of notebook 05. Each function returns the figure and the arrays it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ... import attractor, fixed_points
from .. import explore_attractor
from . import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, styled
from .live import LiveFigure, Panel

if TYPE_CHECKING:
    from ...language_model import LanguageModel

OTHER = {"alone": (-0.35, -0.25)}  # where a second path of a portrait starts
CORNER = (-0.9, 0.9)  # the others
ATTRACTS = dict(color="black", marker="o", ls="", ms=7)
REPELS = ATTRACTS | dict(mfc="white")


@styled
def cobweb(maps: dict[str, tuple[float, float, list[float]]], steps: int) -> tuple[Figure, dict[str, np.ndarray]]:
    """One panel for each map y -> tanh(drive + a y), given as (drive, a, starts): curve, diagonal, steps between them.

    Arrays: name -> states [starts, steps + 1]."""
    figure = Figure(figsize=(2.7 * len(maps), 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(maps), sharey=True))
    y, shown = np.linspace(-1, 1, 201), {}
    for axes, (name, (drive, a, starts)) in zip(panels, maps.items(), strict=True):
        states = [np.array(starts, float)]
        for _ in range(steps):
            states.append(np.tanh(drive + a * states[-1]))
        shown[name] = np.stack(states, 1)
        axes.plot(y, y, color=GREY, lw=1)
        axes.plot(y, np.tanh(drive + a * y), color=BLUE, lw=2)
        for path, colour in zip(shown[name], (ORANGE, GREEN), strict=False):
            x = np.repeat(path, 2)  # up to the curve, across to the diagonal
            axes.plot(x[:-1], np.concatenate([path[:1], x[2:]]), color=colour, lw=1.4)
            axes.plot(path[:1], path[:1], "o", color=colour, ms=5)
            if len(starts) > 1:
                axes.annotate(f"from {path[0]:g}".replace("-", "−"), path[[0, 0]], color=colour, **_away(path))
        for point, attracts in _crossings(drive, a):
            axes.plot(point, point, **(ATTRACTS if attracts else REPELS), clip_on=False, zorder=4)
        axes.set(xlabel="spin before a step", xlim=(-1, 1), ylim=(-1, 1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        axes.set_title(name, fontsize=10.5)
        axes.set_box_aspect(1)
    panels[0].set_ylabel("spin after a step")
    _headline(figure, "Steep curves repel: three maps, three fates")
    names = {"fixed point, attracts": ATTRACTS, "fixed point, repels": REPELS}
    handles = [Line2D([], [], label=name, **how) for name, how in names.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, shown


def _headline(figure: Figure, text: str) -> None:
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, weight="bold")


def _crossings(drive: float, a: float) -> list[tuple[float, bool]]:
    """The fixed points of y -> tanh(drive + a y), and whether they attract."""
    y = np.linspace(-1, 1, 20001)
    gap = np.tanh(drive + a * y) - y
    points = y[:-1][gap[:-1] * gap[1:] < 0]
    return [(point, bool(abs(a * (1 - np.tanh(drive + a * point) ** 2)) < 1)) for point in points]


def _away(path: np.ndarray) -> dict[str, object]:
    """Where the name of a start is: below the diagonal if the path climbs, else above it."""
    climbs = path[-1] > path[0]
    place = dict(xytext=(8, -6) if climbs else (-8, 6), ha="left" if climbs else "right")
    return place | dict(textcoords="offset points", va="top" if climbs else "bottom", fontsize=9.5)


@styled
def portraits(kinds: list[str], gamma: float, scale: float, K: int) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """Phase portraits of two-spin maps side by side, with the direction of a step all over the plane; arrays by kind as
    `explore_attractor.portrait` gives them."""
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    panels, shown = np.atleast_1d(figure.subplots(1, len(kinds), sharey=True)), {}
    blank = Panel((0, 0, 1, 1), "", "", "", (-1, 1), (-1, 1), (), ())
    axis = np.linspace(-1, 1, 41)
    some = slice(2, 41, 6)
    for axes, kind in zip(panels, kinds, strict=True):
        layer = fixed_points.two_spins(kind, gamma, scale)
        one = shown[kind] = explore_attractor.portrait(LiveFigure((1, 1), (blank,)), 0, *layer, K)
        sizes = np.maximum(np.linalg.norm(one["moves"], axis=-1, keepdims=True), 1e-9)
        u, v = np.moveaxis((one["moves"] / sizes)[some, some], -1, 0)
        axes.quiver(axis[some], axis[some], u, v, color="#8A8A8A", scale=11, width=0.011, pivot="mid")
        for i, colour in ((0, SKY), (1, ORANGE)):
            axes.contour(axis, axis, one["moves"][..., i], levels=[0], colors=[colour], linewidths=1.8)
        path = [torch.tensor(OTHER.get(kind, CORNER), dtype=layer.z.dtype)]
        for _ in range(K):
            path.append(attractor.step(path[-1], *layer)[0])
        one["other"] = torch.stack(path).numpy()
        axes.plot(*one["other"].T, "o-", color=PURPLE, ms=3, lw=1.4)
        axes.plot(*one["paths"][0].T, "o-", color=GREEN, ms=3.5, lw=1.6)
        for filled, face in ((True, "black"), (False, "white")):
            axes.plot(*one["points"][one["attracts"] == filled].T, **ATTRACTS | dict(mfc=face))
        count, attract = len(one["points"]), int(one["attracts"].sum())
        rests = "no place to rest" if attract == 0 else f"{attract} places to rest"
        axes.set_title(f"{kind}\n{count} fixed point{'s' * (count > 1)}, {rests}", fontsize=10.5)
        axes.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[-1, 0, 1], yticks=[-1, 0, 1], xlabel="spin 1")
        axes.set_box_aspect(1)
        axes.grid(visible=False)
    panels[0].set_ylabel("spin 2")
    _headline(figure, "The couplings decide where a pair of spins can rest")
    names = {
        "spin 1 unchanged": dict(color=SKY, lw=1.8),
        "spin 2 unchanged": dict(color=ORANGE, lw=1.8),
        "the layer's path": dict(color=GREEN, marker="o", ms=3.5),
        "another start": dict(color=PURPLE, lw=1.4, marker="o", ms=3),
        "attracts": ATTRACTS,
        "repels": REPELS,
    }
    handles = [Line2D([], [], label=name, **how) for name, how in names.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9.5)
    return figure, shown


@styled
def regimes(scales: np.ndarray, gamma: float = 0.5) -> tuple[Figure, dict[str, np.ndarray]]:
    """Over the scale of the couplings: Lipschitz bound, largest spectral radius, share of tokens that settle."""
    looked = [fixed_points.examine(*fixed_points.random_map(gamma, scale), K=1) for scale in scales]
    shown = dict(
        bound=np.array([each.bound for each in looked]),
        radius=np.array([np.nanmax(each.radius) for each in looked]),
        settles=np.array([each.settles.mean() for each in looked]),
    )
    figure = Figure(figsize=(7.0, 4.8), layout="constrained")
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    axes.axhline(1, color=GREY, lw=1)
    axes.plot(scales, shown["bound"], color=ORANGE, lw=2)
    fine = np.linspace(scales[0], scales[-1], 1001)
    radius = np.interp(fine, scales, shown["radius"])
    for repels, dashes in ((False, "-"), (True, (0, (3, 1.5)))):
        axes.plot(fine, np.where((radius > 1) == repels, radius, np.nan), color=BLUE, lw=2, ls=dashes)
    axes.text(2.55, 2.62, "Lipschitz bound:\nworst case", color=ORANGE, ha="right", va="center")
    axes.text(4.9, 1.28, "largest spectral radius:\nnear the fixed point", color=BLUE, ha="right", va="bottom")
    axes.text(6.2, 0.9, "dashed: this fixed\npoint repels", color=BLUE, va="top")
    axes.set(ylabel="factor per step", ylim=(0, 3), xlim=(scales[0], scales[-1]))
    below.plot(scales, 100 * shown["settles"], color=GREEN, lw=2)
    below.set(xlabel="scale of the couplings", ylabel="tokens that\nsettle, %", ylim=(0, 105), yticks=[0, 50, 100])
    _headline(figure, "Tokens stop settling where the radius, not the bound, passes 1")
    return figure, shown


@styled
def tokens(changes: np.ndarray, K: int, settled: float) -> tuple[Figure, np.ndarray]:
    """How a layer's tokens settle: the relative change in each step, [steps, tokens], the first token by name.

    Array: the steps after which each token has settled, [tokens]."""
    steps = np.arange(1, len(changes) + 1)
    needed = 1 + (changes >= settled).sum(0)
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(steps, changes[:, 1:], color=BLUE, lw=0.8, alpha=0.5)
    axes.semilogy(steps, changes[:, 0], color=RED, lw=2.2)
    axes.axhline(settled, color=GREY, lw=1, ls=":")
    axes.axvline(K, color=GREY, lw=1, ls="--")
    axes.text(K + 0.4, 0.9, f"K = {K}: the layer stops", color=GREY, va="top")
    axes.text(len(steps) / 2.3, 0.85 * settled, f"settled: below {100 * settled:g}%", color=GREY, va="top")
    at = len(steps) // 2
    axes.text(steps[at], 1.5 * changes[at, 0], f"first byte, {needed[0]} steps", color=RED, va="bottom")
    words = f"the other {len(needed) - 1},\n{needed[1:].min()} to {needed[1:].max()} steps"
    axes.text(steps[at] + 3, 1e-5, words, color=BLUE, va="center")
    axes.set(xlabel="step", ylabel="relative change of a token", xlim=(1, steps[-1]), ylim=(1e-7, 1))
    axes.set_yticks([1e-6, 1e-4, 1e-2, 1], ["1e-6", "1e-4", "0.01", "1"])
    count = int((needed <= K).sum())
    verb = "has" if count == 1 else "have"
    title = f"When the layer stops, {count} of {len(needed)} tokens {verb} settled"
    axes.set_title(title, loc="left", fontsize=12, weight="bold")
    return figure, needed


@styled
def rule(error: np.ndarray, rule: np.ndarray) -> tuple[Figure, np.ndarray]:
    """The error that each token has left, [tokens], over what the rule of thumb says; the first token by name.

    Array: which of them are within a factor of two, [tokens]."""
    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    axes, ends = figure.subplots(), np.array([1e-5, 1])
    axes.fill_between(ends, ends / 2, ends * 2, color=GREY, alpha=0.2, lw=0)
    axes.plot(ends, ends, color=GREY, lw=1)
    axes.loglog(rule[1:], error[1:], "o", color=BLUE, ms=5, alpha=0.6, mew=0)
    axes.loglog(rule[:1], error[:1], "o", color=RED, ms=7)
    axes.annotate(
        "first byte",
        (rule[0], error[0]),
        (-8, 0),
        textcoords="offset points",
        color=RED,
        ha="right",
        va="center",
    )
    axes.text(0.3, 0.015, "grey: within\na factor of two", color=GREY, ha="center", va="center", fontsize=9.5)
    ticks, names = [1e-4, 1e-3, 1e-2, 0.1, 1], ["0.01%", "0.1%", "1%", "10%", "100%"]
    axes.set_xticks([1e-5, *ticks], ["0.001%", *names])
    axes.set_yticks(ticks, names)
    axes.minorticks_off()
    axes.set(xlim=ends, ylim=(1e-4, 1), xlabel=r"the rule: $\rho^6$", ylabel="error left after 5 steps")
    close = np.maximum(error / rule, rule / error) <= 2
    above = int((error > 2 * rule).sum())
    _headline(figure, f"{close.sum()} of {len(close)} tokens follow the rule, {above} lie above it")
    return figure, close


PARTS = {"mean |γ|": PURPLE, "pattern, norm of the codes": BLUE, "scale s": SKY}


@torch.no_grad()
def bound_parts(model: LanguageModel) -> np.ndarray:
    """Of each layer's Lipschitz bound: the parts, as in PARTS, and the bound itself, [layers, 4]."""
    parts = []
    for module in fixed_points.attractors(model):
        w_int, gamma = module.w_int.quantized(), module.gamma()
        scale = w_int.abs().max()
        pattern = torch.linalg.matrix_norm(w_int / scale, 2)
        parts.append([gamma.abs().mean(), pattern, scale, fixed_points.lipschitz_bound(w_int, gamma)])
    return np.array(parts, float)


@styled
def growth(parts: np.ndarray, bound: np.ndarray) -> Figure:
    """How many times larger the parts of the Lipschitz bound have become in each layer, [layers, 3] in the order of
    PARTS, end to end on a logarithmic axis; and, as a diamond, the bound itself, [layers]."""
    figure = Figure(figsize=(7.0, 3.3), layout="constrained")
    axes = figure.subplots()
    for layer, factors in enumerate(parts):
        left = 1.0
        for factor, (name, colour) in zip(factors, PARTS.items(), strict=True):
            label = name if layer == 0 else None
            axes.fill_betweenx([layer - 0.32, layer + 0.32], left, left * factor, color=colour, lw=0, label=label)
            middle = left * factor**0.5
            axes.text(
                middle, layer, f"×{factor:.1f}", color="white" if colour == BLUE else "black", ha="center", va="center"
            )
            left *= factor
    axes.plot(bound, range(len(bound)), "D", color=ORANGE, mec="black", ms=8, label="the bound")
    axes.set(xscale="log", xlim=(1, 100), ylim=(len(bound) - 0.5, -0.5), xlabel="grew by a factor of", ylabel="layer")
    axes.set_xticks(ticks := [1, 2, 5, 10, 20, 50, 100], [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(bound)))
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=4, fontsize=9.5, handlelength=1)
    _headline(figure, "γ grew most in every layer, but not alone")
    return figure
