"""Figures of notebook 06. Each function returns the figure and the arrays it shows."""

from __future__ import annotations

import numpy as np
from matplotlib import patheffects
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from . import BLUE, CYCLE, GREY, ORANGE, RED, styled

DARK = patheffects.withStroke(linewidth=2.5, foreground="#333333")  # white lines on a bright ground


@styled
def series(errors: dict[str, np.ndarray]) -> tuple[Figure, dict[str, np.ndarray]]:
    """Relative error of a series after 0, 1, .. products, one line a name, on a logarithmic axis."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(errors.items(), CYCLE, strict=False):
        axes.semilogy(np.arange(len(values)), values, "o-", ms=3.5, color=colour, label=name)
    most = max(len(values) for values in errors.values()) - 1
    axes.set(xlabel="products in the series", ylabel="relative error of the gradient")
    axes.set_xticks(np.arange(0, most + 1, max(1, most // 4)))
    figure.legend(loc="outside right upper")
    return figure, errors


@styled
def heat_maps(found: dict[str, np.ndarray]) -> Figure:
    """Of what `fixed_points.gradient_errors` gives: decades of error over radius and K, with lines at 0.01 and 1e-4."""
    figure = Figure(figsize=(8.6, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    K = np.arange(1, found["fixed"].shape[1] + 1)
    titles = {"fixed": "missed: gradient of the fixed point", "steps": "missed: gradient of the K steps"}
    for axes, (name, title) in zip(panels, titles.items(), strict=True):
        decades = np.log10(np.maximum(found[name], 1e-10)).T
        image = axes.pcolormesh(found["radius"], K, decades, cmap="cividis", norm=Normalize(-10, 0), shading="nearest")
        lines = axes.contour(found["radius"], K, decades, levels=[-4, -2], colors="white", linewidths=1.3)
        lines.set_path_effects([DARK])
        for label in axes.clabel(lines, fmt={-4.0: "1e-4", -2.0: "0.01"}, fontsize=10):
            label.set_path_effects([DARK])
        axes.axhline(5, color="white", lw=1.3, ls=":", path_effects=[DARK])
        axes.set(xlabel="spectral radius", yticks=[1, 5, 10, 15, 20])
        axes.set_title(title, fontsize=11)
        axes.grid(False)
    panels[0].set_ylabel("K")
    bar = figure.colorbar(image, ax=panels, ticks=[-10, -8, -6, -4, -2, 0])
    bar.ax.set_yticklabels(["1e-10", "1e-8", "1e-6", "1e-4", "0.01", "1"])
    bar.set_label("relative error")
    return figure


@styled
def memory(K: list[int], kept: dict[str, list[int]], unit: int = 1024) -> tuple[Figure, dict[str, np.ndarray]]:
    """Memory against the number of steps, one line a name."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    found = {name: np.array(values) / unit for name, values in kept.items()}
    for (name, values), colour in zip(found.items(), (ORANGE, BLUE), strict=False):
        axes.plot(K, values, "o-", color=colour, label=name)
    axes.set(xlabel="K", ylabel="kept for the backward pass, KB", ylim=(0, None), xticks=K)
    axes.legend()
    return figure, found


@styled
def branches(feedbacks: list[float], drives: np.ndarray) -> tuple[Figure, dict[float, dict[str, np.ndarray]]]:
    """One spin, y = tanh(drive + a y): all its fixed points over the drive, and the one reached from the layer's start.

    Arrays for each a: `y` and `drive` of all fixed points, `slope` a (1 - y^2) at them, `reached` at `drives`."""
    figure = Figure(figsize=(3.1 * len(feedbacks), 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(feedbacks), sharey=True))
    found, y = {}, np.linspace(-0.995, 0.995, 800)
    for axes, a in zip(panels, feedbacks, strict=True):
        drive, slope = np.arctanh(y) - a * y, a * (1 - y**2)
        reached = np.tanh(drives)
        for _ in range(400):
            reached = np.tanh(drives + a * reached)
        found[a] = dict(y=y, drive=drive, slope=slope, reached=reached)
        axes.plot(np.where(slope < 1, drive, np.nan), y, color=BLUE, lw=2.4)
        axes.plot(np.where(slope >= 1, drive, np.nan), y, color=GREY, lw=1.4, ls="--")
        axes.plot(drives, reached, ".", color=RED, ms=4)
        axes.set(xlabel="drive", xlim=(drives[0], drives[-1]), ylim=(-1, 1), yticks=[-1, 0, 1])
        axes.set_title(f"feedback {a:g}", fontsize=11)
        axes.set_box_aspect(1)
    panels[0].set_ylabel("spin at rest")
    return figure, found
