"""Figures of notebook 14: what reading costs as it goes on, and what replay changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ...study import continual, records
from .eras import COUNTS, NAMES, counts, end_losses, look, settings, test_steps, titled, year_axis
from .style import GREY, styled

STRETCH = 200  # steps that a point of the online loss is the mean over


def online_course(model: str, order: str = "time") -> tuple[np.ndarray, np.ndarray]:
    """(steps, bits per byte of sequences before they are learned, [seeds, points]), means over stretches of steps."""
    loss = np.array([run["loss"] for run in records.seeds(continual.GROUP, f"{model}-{order}").values()])
    points = loss.reshape(len(loss), -1, STRETCH).mean(2) / math.log(2)
    steps = STRETCH * (np.arange(points.shape[1]) + 0.5)
    kept = steps > continual.WARM
    return steps[kept], points[:, kept]


@styled
def online(models: Sequence[str], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """The loss on new text as it comes, over the years that are being read; ranges of seeds, and counts."""
    figure = Figure(figsize=(5.2, 4.0), layout="constrained")
    panel, shown, rates = figure.subplots(), {}, [row[3] for row in settings()[1:]]
    for model, rate in zip(models, rates, strict=False):
        steps, points = online_course(model)
        shown[model] = points.mean(0)
        panel.plot(steps, shown[model], **look(model), label=f"{NAMES[model]}, rate {rate}")
        panel.fill_between(steps, points.min(0), points.max(0), color=look(model)["color"], alpha=0.15, linewidth=0)
    means = counts().online.reshape(-1, STRETCH).mean(1)
    shown["counts"] = means[-len(steps) :]
    panel.plot(steps, shown["counts"], **COUNTS, label="counts")
    year_axis(panel, test_steps()[-1])
    titled(figure, panel, title, f"speeches being read, from step {continual.WARM} on", "online loss, bits per byte")
    return figure, shown


@styled
def replayed(models: Sequence[str], title: str) -> tuple[Figure, dict[tuple[str, str], np.ndarray]]:
    """A plane: how far the losses at the end, on the last speech (across) and on those before it (up), are from where
    they end in order, at zero; with replay a full dot, with mixed text an empty one, means over seeds.
    (learner, order) -> [seeds, 2]: older speeches, the last."""
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    panel, shown = figure.subplots(), {}
    for learner in [*models, "counts"]:
        colour = "black" if learner == "counts" else look(learner)["color"]
        way = [(0.0, 0.0)]
        for order in ("replay", "mixed"):
            shown[learner, order] = end_losses(learner, order) - end_losses(learner, "time")
            old, new = shown[learner, order].mean(0)
            fill = colour if order == "replay" else "white"
            if learner != "counts" or order == "replay":
                panel.plot(new, old, "o", mec=colour, mfc=fill, mew=1.6, ms=8, zorder=3)
                way.append((new, old))
        label = NAMES.get(learner, learner)
        panel.plot(*zip(*way, strict=True), color=colour, linewidth=1.2, alpha=0.7, label=label)
    panel.plot(0, 0, "s", color=GREY, ms=8, zorder=4)
    for zero in (panel.axhline, panel.axvline):
        zero(0, color=GREY, linewidth=1, zorder=0)
    panel.annotate("in order", (0, 0), (-8, 7), textcoords="offset points", ha="right", color=GREY, fontsize=10)
    for text, fill in (("replay", GREY), ("mixed", "white")):
        panel.plot([], [], "o", mec=GREY, mfc=fill, ms=8, mew=1.6, label=text)
    panel.set(xlim=(-0.09, 0.3), ylim=(-0.23, 0.21), yticks=(-0.2, -0.1, 0, 0.1, 0.2))
    xlabel = "change of the loss on 2023, bits per byte\n← better        worse →"
    titled(figure, panel, title, xlabel, "change on the eleven older\n← better        worse →", 3)
    return figure, shown
