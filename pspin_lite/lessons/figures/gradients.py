"""Figures of notebook 06. Each function returns the figure and the arrays it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from ... import fixed_points
from ...attractor import slopes
from . import BLUE, CYCLE, GREEN, GREY, RED, SKY, styled


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
def tokens(radii: Sequence[np.ndarray], errors: Sequence[np.ndarray], K: int = 5, named: int = 2) -> Figure:
    """Error of the gradient over the spectral radius, a dot for each byte, a colour for each layer [n]; both axes are
    logarithmic, so that the rule radius^(K+1) is a straight line, dashed. The worst bytes of the last layer have a
    label."""
    figure = Figure(figsize=(6.2, 4.4), layout="constrained")
    axes = figure.subplots()
    ends = np.array([0.05, 1.0])
    axes.loglog(ends, ends ** (K + 1), "--", color=GREY, lw=1.5, zorder=1)
    place = dict(xytext=(8, -12), textcoords="offset points", color=GREY)
    axes.annotate(f"rule ρ$^{K + 1}$", (0.86, 0.86 ** (K + 1)), **place)
    for layer, (radius, error) in enumerate(zip(radii, errors, strict=True)):
        colour = (SKY, GREEN, RED, BLUE)[layer % 4]
        axes.loglog(radius, error, "o", ms=3, mew=0, color=colour, alpha=0.6)
        place = dict(xytext=(36, -22), textcoords="offset points", color=colour, weight="bold")
        axes.annotate(f"layer {layer}", (np.quantile(radius, 0.9), np.median(error)), **place)
    for i in np.argsort(errors[-1])[-named:]:
        place = dict(xytext=(0, 5), textcoords="offset points", ha="center", color=BLUE, fontsize=10)
        axes.annotate(f"byte {i}", (radii[-1][i], errors[-1][i]), **place)
    axes.set(xlabel="spectral radius ρ of the byte, at rest", ylabel="relative error of the gradient")
    axes.set(xlim=(0.05, 1.3), ylim=(1e-8, 4))
    ticks = (0.05, 0.1, 0.2, 0.5, 1)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_title("In layer 3, most bytes lie above the rule", loc="left", fontsize=12, weight="bold")
    return figure


@styled
def late(errors: dict[int, np.ndarray], radii: Sequence[float], K: int = 5) -> Figure:
    """How the error of the gradient of single bytes falls with the number of steps and products [most + 1]; dashed, the
    rule for their radii."""
    figure = Figure(figsize=(6.2, 3.8), layout="constrained")
    axes = figure.subplots()
    colours = (GREEN, RED, BLUE)
    for (byte, error), radius, colour in zip(errors.items(), radii, colours, strict=True):
        count = np.arange(len(error))
        axes.semilogy(count, radius ** (count + 1.0), "--", lw=1, color=colour, zorder=1)
        axes.semilogy(count, error, "-", lw=2.2, color=colour)
        falls = error[-1] < 1e-3
        at, offset = (np.argmax(error < 1e-3), (6, 0)) if falls else (-6, (0, 8))
        place = dict(xytext=offset, textcoords="offset points", color=colour, weight="bold")
        axes.annotate(f"byte {byte}{chr(10) if falls else ': '}ρ = {radius:.2f}", (count[at], error[at]), **place)
    axes.axvline(K, color=GREY, lw=1, ls=":")
    axes.text(K + 0.15, 1.5e-5, "K = 5", color=GREY, va="bottom")
    axes.set(xlabel="steps and products K (dashed: rule)", ylabel="relative error of the gradient")
    axes.set(xlim=(0, len(error) - 1), ylim=(1e-5, 6), xticks=range(0, len(error), 5))
    axes.set_title("Same radius, but byte 102 starts to fade late", loc="left", fontsize=12, weight="bold")
    return figure


@styled
def turns(angles: dict[str, Sequence[float]], title: str, against: Sequence[str]) -> Figure:
    """How far gradients point away from others, dashed and named by `against`, in degrees: a fan for each name, at the
    true angles, with the first ray in its own colour."""
    figure = Figure(figsize=(6.2, 4.5), layout="constrained")
    panels = figure.subplots(-(-len(angles) // 2), 2).flat
    for axes, (name, each), other in zip(panels, angles.items(), against, strict=False):
        axes.plot([0, 1], [0, 0], "--", color=GREY, lw=1.2)
        for number, angle in reversed(list(enumerate(np.radians(each)))):
            colour, width = (RED, 2.4) if number == 0 else ("#8A8A8A", 1.4)
            axes.plot([0, np.cos(angle)], [0, np.sin(angle)], color=colour, lw=width)
        axes.set_title(name, loc="left", fontsize=11, weight="bold")
        first, *others = (f"{angle:.0f}°" for angle in each)
        axes.text(0, 0.47, f"window 1: {first}", va="center", fontsize=10.5, color=RED)
        axes.text(0, 0.37, "others: " + ", ".join(others), va="center", fontsize=10.5, color=GREY)
        axes.text(1, -0.03, other, va="top", ha="right", fontsize=9.5, color=GREY)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.13, 0.54), aspect="equal")
        axes.axis("off")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold")
    return figure
