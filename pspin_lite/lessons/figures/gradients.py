"""Figures of notebook 06. Each function returns the figure and the arrays it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from ... import fixed_points
from ...attractor import slopes
from . import CYCLE, GREY, ORANGE, styled


@styled
def series(scales: Sequence[float], most: int = 20) -> tuple[Figure, dict[float, np.ndarray]]:
    """Relative error of the series after 0, 1, .. products against the solved linear system, at the fixed points
    of random maps, one line per scale of the couplings. Arrays: spectral radius -> errors [most + 1]."""
    shown = dict(_series_errors(scale, most) for scale in scales)
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for (radius, errors), colour in zip(shown.items(), CYCLE, strict=False):
        visible = np.where(errors > 1e-12, errors, np.nan)  # below is rounding
        axes.semilogy(np.arange(most + 1), visible, "o-", ms=3.5, color=colour)
        last = np.flatnonzero(np.isfinite(visible))[-1]
        place = dict(xytext=(7, 0), textcoords="offset points", annotation_clip=False)
        words = f"ρ = {radius:.2f}" + ", below: rounding errors" * bool(last < most)
        axes.annotate(words, (last, visible[last]), color=colour, va="center", **place)
    axes.axhline(1, color=GREY, lw=1)
    axes.set(xlabel="products in the series", ylabel="relative error of λ", xlim=(0, most))
    axes.set_xticks(np.arange(0, most + 1, max(1, most // 4)))
    axes.set_title("Above radius 1, products help at first, then hurt", loc="left", fontsize=12, weight="bold")
    return figure, shown


def _series_errors(scale: float, most: int) -> tuple[float, np.ndarray]:
    layer = fixed_points.random_map(gamma=0.5, scale=scale)
    rest = fixed_points.follow(*layer)  # by Newton's method, which finds a fixed point even where it repels
    J = fixed_points.jacobian(rest, *layer)
    dy = fixed_points.random_direction(rest)
    exact = torch.linalg.solve(torch.eye(len(layer.gamma), dtype=J.dtype) - J.mT, dy)
    phi_u, phi_a = slopes(layer.z + (layer.gamma * rest) @ layer.w_int.T)
    adjoint, errors = dy, []
    for _ in range(most + 1):
        errors.append(fixed_points.relative(adjoint, exact))
        adjoint = dy + layer.gamma * (torch.cat([adjoint * phi_u, adjoint * phi_a], -1) @ layer.w_int)
    return torch.linalg.eigvals(J).abs().max().item(), np.array(errors)


@styled
def rule(
    errors: dict[str, np.ndarray],
    steps: Sequence[int],
    trained: dict[str, Sequence[float]] | None = None,
    K: int = 5,
    title: str = "The error grows with the radius",
) -> Figure:
    """Of what `fixed_points.gradient_errors` gives: error of the implicit gradient over the spectral radius, one line
    per number of steps, grey but for K, and the rule radius^(K+1), dashed. `trained`: radius and gradient_error of the
    layers of a model with K steps, as circles, with their `names` if given."""
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    axes = figure.subplots()
    radius = errors["radius"]
    for count in steps:
        colour = ORANGE if count == K else "#8A8A8A"
        values = errors["fixed"][:, count - 1]
        axes.semilogy(radius, np.where(values > 1e-13, values, np.nan), "-", lw=2, color=colour)
        axes.semilogy(radius, radius ** (count + 1), "--", lw=1, color=colour)
        at = np.flatnonzero(values > 1e-7)[0]
        offset = (10, -9) if values[at] < 1e-4 else (60, 32)  # to the right of a line, above a flat one
        place = dict(xytext=offset, textcoords="offset points", va="top")
        axes.annotate(f"K = {count}", (radius[at], values[at]), color=colour, **place)
    if trained is not None:
        points = list(zip(trained["radius"], trained["gradient_error"], strict=True))
        axes.semilogy(*zip(*points, strict=True), "o", ms=14, mfc=ORANGE, mew=1.2, color="black", ls="", zorder=4)
        for name, point in zip(trained.get("names", map(str, range(len(points)))), points, strict=True):
            inside, _, beside = name.partition(": ")
            axes.annotate(inside, point, ha="center", va="center_baseline", fontsize=9.5, weight="bold", zorder=5)
            right = beside.startswith("all")  # where there is room
            place = dict(xytext=(9, -18) if right else (-11, 5), ha="left" if right else "right", va="center")
            axes.annotate(beside, point, **place, textcoords="offset points", fontsize=9.5)
        words = f"circles: layers of the\ntrained model at K = {K}\nlines: random layers\ndashed: the rule"
        axes.text(1.04, 2e-8, words + trained.get("note", ""), ha="right", va="bottom", fontsize=9.5)
    axes.axhline(0.001, color=GREY, lw=1, ls=":")
    axes.text(0.01, 0.00085, "a tenth of a per cent", color=GREY, ha="left", va="top", fontsize=9.5)
    axes.set(
        xlabel="spectral radius ρ at rest",
        ylabel="error against the fixed point's gradient",
        ylim=(1e-8, 3),
        xlim=(0, 1.05),
    )
    axes.set_title(title, loc="left", fontsize=12, weight="bold")
    return figure
