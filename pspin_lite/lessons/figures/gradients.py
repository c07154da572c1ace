"""Figures of notebook 06. Each function returns the figure and the arrays it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from ... import fixed_points
from ...attractor import slopes
from . import BLUE, CYCLE, GREY, ORANGE, RED, styled


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
    tokens: tuple[Sequence[float], Sequence[float]] | None = None,
    K: int = 5,
    title: str = "The error grows with the radius",
) -> Figure:
    """Of what `fixed_points.gradient_errors` gives: error of the implicit gradient over the spectral radius, one line
    per number of steps, grey but for K, and the rule radius^(K+1), dashed. `trained`: radius and gradient_error of the
    layers of a model with K steps, as numbered circles. `tokens`: radii and errors of single bytes, as
    dots; the two worst have a label."""
    figure = Figure(figsize=(6.2, 4.4), layout="constrained")
    axes = figure.subplots()
    radius = errors["radius"]
    for count in steps:
        colour = ORANGE if count == K else "#8A8A8A"
        values = errors["fixed"][:, count - 1]
        axes.semilogy(radius, np.where(values > 1e-13, values, np.nan), "-", lw=2, color=colour)
        axes.semilogy(radius, radius ** (count + 1), "--", lw=1, color=colour)
        at = np.flatnonzero(values > 1e-7)[0]
        offset = (10, -9) if values[at] < 1e-4 else (2, 52)  # to the right of a line, above a flat one
        place = dict(xytext=offset, textcoords="offset points", va="top")
        axes.annotate(f"K = {count}", (radius[at], values[at]), color=colour, **place)
    if trained is not None:
        points = list(zip(trained["radius"], trained["gradient_error"], strict=True))
        axes.semilogy(*zip(*points, strict=True), "o", ms=14, mfc=ORANGE, mew=1.2, color="black", ls="", zorder=4)
        for layer, point in enumerate(points):
            axes.annotate(str(layer), point, ha="center", va="center_baseline", fontsize=9.5, weight="bold", zorder=5)
        words = f"circles: layers of the\ntrained model at K = {K}\nlines: random layers\ndashed: the rule"
        axes.text(
            1.04, 2e-8, words + "\ndots: bytes of layer 3" * (tokens is not None), ha="right", va="bottom", fontsize=9.5
        )
    if tokens is not None:
        axes.semilogy(*tokens, "o", ms=2.5, mew=0, color=BLUE, alpha=0.7)
        for i in np.argsort(tokens[1])[-2:]:
            place = dict(xytext=(0, 4), textcoords="offset points", ha="center", color=BLUE, fontsize=9.5)
            axes.annotate(f"byte {i}", (tokens[0][i], tokens[1][i]), **place)
    axes.axhline(0.001, color=GREY, lw=1, ls=":")
    axes.text(1.04, 0.00085, "a tenth of a per cent", color=GREY, ha="right", va="top", fontsize=9.5)
    axes.set(
        xlabel="spectral radius ρ at rest",
        ylabel="error against the fixed point's gradient",
        ylim=(1e-8, 3),
        xlim=(0, 1.05),
    )
    axes.set_title(title, loc="left", fontsize=12, weight="bold")
    return figure


@styled
def turns(angles: dict[str, Sequence[float]]) -> Figure:
    """How far gradients point away from a reference, in degrees: a fan for each name, at the true angles."""
    figure = Figure(figsize=(6.2, 3.7), layout="constrained")
    for axes, (name, each) in zip(figure.subplots(-(-len(angles) // 2), 2).flat, angles.items(), strict=False):
        axes.plot([0, 1], [0, 0], "--", color=GREY, lw=1)
        for angle in np.radians(each):
            axes.plot([0, np.cos(angle)], [0, np.sin(angle)], color=RED, lw=1.8)
        axes.set_title(f"{name}: {np.mean(each):.0f}°", loc="left", fontsize=11, weight="bold")
        axes.text(0, -0.05, "windows: " + ", ".join(f"{angle:.0f}°" for angle in each), va="top", fontsize=10)
        axes.set(xlim=(-0.02, 1.05), ylim=(-0.15, 0.42), aspect="equal")
        axes.axis("off")
    return figure
