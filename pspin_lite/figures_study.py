"""Figures of the study, for notebooks 11 to 13 and the README. Each returns the figure and the arrays it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter

from . import records
from .figures import CYCLE, GREY, styled

AXES = {
    "sequences": ("sequences", 1),
    "tokens": ("million tokens", 1e6),
    "flops": ("teraflops of matrix products", 1e12),
    "seconds": ("minutes of CPU time, one thread", 60),
}


@styled
def learning(runs: Mapping[str, Sequence[dict]], split: str = records.SPLIT) -> tuple[Figure, dict[str, dict]]:
    """Validation bits per byte against sequences, tokens, arithmetic and CPU time: for each name the mean over its
    records and, as a band, from the lowest to the highest. Arrays: name -> bits [seeds, points] and the four axes."""
    figure = Figure(figsize=(9.2, 6.4), layout="constrained")
    panels, shown = figure.subplots(2, 2, sharey=True).flat, {}
    for panel, (unit, (label, size)) in zip(panels, AXES.items(), strict=True):
        for colour, (name, found) in zip(CYCLE, runs.items(), strict=False):
            steps, _ = records.curve(found[0], split)
            bits = np.stack([records.curve(record, split)[1] for record in found])[:, 1:]  # without step 0
            x = np.mean([records.axis(record, steps[1:], unit) for record in found], 0) / size
            panel.plot(x, bits.mean(0), color=colour, label=name)
            panel.fill_between(x, bits.min(0), bits.max(0), color=colour, alpha=0.2, linewidth=0)
            shown.setdefault(name, {"bits": bits})[unit] = x
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(lambda x, _: f"{x:,g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel(label)
    for panel in (panels[0], panels[2]):
        panel.set_ylabel("bits per byte")
    panels[0].legend()
    return figure, shown


@styled
def finals(arms: Mapping[str, Mapping[int, float]], label: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """A dot for each seed of each arm and a line at the mean, arms from the best (top) to the worst."""
    shown = {name: np.array(list(values.values())) for name, values in arms.items()}
    order = sorted(shown, key=lambda name: shown[name].mean(), reverse=True)
    figure = Figure(figsize=(7.6, 0.9 + 0.38 * len(order)), layout="constrained")
    panel = figure.subplots()
    for row, name in enumerate(order):
        panel.plot([shown[name].mean()] * 2, [row - 0.3, row + 0.3], color=GREY, linewidth=2)
        panel.plot(shown[name], [row] * len(shown[name]), "o", color=CYCLE[0], alpha=0.8)
    panel.set_yticks(range(len(order)), order)
    panel.set_xlabel(label)
    panel.grid(axis="y", visible=False)
    return figure, {name: shown[name] for name in reversed(order)}


@styled
def raw_losses(losses: Mapping[str, np.ndarray], window: int = 100) -> tuple[Figure, dict[str, np.ndarray]]:
    """Every step's loss, faint, and its running mean, one panel a name, on one scale."""
    figure = Figure(figsize=(9.2, 3.2), layout="constrained")
    panels, shown = figure.subplots(1, len(losses), sharey=True, squeeze=False)[0], {}
    for panel, colour, (name, values) in zip(panels, CYCLE, losses.items(), strict=False):
        smooth = np.convolve(values, np.ones(window) / window, mode="valid")
        panel.plot(np.arange(1, len(values) + 1), values, color=colour, alpha=0.25, linewidth=0.5)
        panel.plot(np.arange(window, len(values) + 1), smooth, color=colour)
        panel.set_title(name)
        panel.set_xlabel("step")
        shown[name] = smooth
    panels[0].set_ylabel("nats a token")
    return figure, shown


@styled
def retention(
    matrix: np.ndarray, years: Sequence[str], steps: Sequence[int], passed: Sequence[int]
) -> tuple[Figure, np.ndarray]:
    """Bits per byte on the speech of each year (rows) as training goes on (columns). passed: for each year the column
    by which training has passed it, outlined. matrix: [years, steps]."""
    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(matrix, aspect="auto", cmap="viridis_r", origin="lower")
    figure.colorbar(image, ax=panel, label="bits per byte")
    panel.set_yticks(range(len(years)), years)
    panel.set_xticks(range(len(steps)), [f"{step:,}" for step in steps], rotation=45)
    panel.set_xlabel("training steps, in the order of the speeches")
    panel.set_ylabel("held-out speech of")
    panel.grid(visible=False)
    for row, column in enumerate(passed):
        panel.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=2))
    return figure, matrix
