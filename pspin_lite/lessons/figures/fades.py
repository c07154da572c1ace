"""Figures of notebook 14: counts that fade, and one speech as training goes on."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from ...study import continual
from .. import fading
from .eras import NAMES, OF_LEGEND, OTHERS, counts, losses, test_steps, year_axis
from .style import BLUE, GREY, ORANGE, styled

HALF_LIVES = (3200, 1600, 800, 400, 200, 100)
FIRST = 2  # tests left out of the widget: they would flatten all that comes later


@styled
def one_era(year: str, order: str) -> tuple[Figure, dict[str, float]]:
    """For an Explorer: p-Spin's loss on one speech over training, a dot at the lowest, dashed the same on mixed text;
    behind it, in grey, the other networks. From the third test on; numbers are of all tests. On the right, what p-Spin
    forgets of each speech."""
    figure, numbers = Figure(figsize=(7.6, 3.8), layout="constrained"), {}
    panel, right = figure.subplots(1, 2, width_ratios=(5, 3))
    years, at, steps = list(continual.passed()), continual.passed()[year], test_steps()
    row = years.index(year)
    every = losses("p-spin", order)
    every = (every[:, :, -1] - every.min(2)).mean(0)
    right.plot(range(len(years)), every, color=BLUE, marker="o", ms=4, linewidth=1)
    right.plot([row], [every[row]], "o", color=BLUE, ms=10)
    right.set_xticks(range(0, len(years), 3), years[::3])
    right.set(xlabel="speech of", title="p-Spin: forgotten", ylim=(-0.02, 0.3))
    for model in continual.models():
        bits, first = losses(model, order)[:, row], model == "p-spin"
        mean = bits.mean(0)
        numbers[f"{NAMES[model]}: forgotten"] = float((bits[:, -1] - bits.min(1)).mean())
        how = dict(color=BLUE, linewidth=2.6, zorder=3) if first else dict(color=OTHERS, linewidth=1.2)
        label = NAMES[model] if first else "the three others"
        panel.plot(steps[FIRST:], mean[FIRST:], **how, label=label if model in OF_LEGEND else None)
        if first:
            lowest = max(FIRST, mean.argmin())
            panel.plot(steps[lowest], mean[lowest], "o", color=BLUE, ms=8)
            if order != "mixed":
                mixed = losses(model, "mixed")[:, row].mean(0)
                panel.plot(
                    steps[FIRST:], mixed[FIRST:], color=BLUE, linestyle="--", linewidth=1.4, label="p-Spin, mixed"
                )
    lost = numbers[f"{NAMES['p-spin']}: forgotten"]
    way = {"time": "read in order", "mixed": "on mixed text", "replay": "with replay"}[order]
    panel.set_title(f"Speech of {year}, {way}: {lost:.2f} forgotten", loc="left", fontsize=11)
    if order == "mixed":
        panel.xaxis.set_major_formatter("{x:,.0f}")
    else:
        reached = at * steps[-1]
        if reached >= steps[FIRST]:
            panel.axvline(reached, color=GREY, linestyle=":", linewidth=1.4)
            low, high = panel.get_ylim()
            panel.text(reached, low + 0.02 * (high - low), "its year ", color=GREY, fontsize=9.5, ha="right")
        year_axis(panel, steps[-1], ("1883", "1923", "1963", "2003"))
    xlabel = "training steps" if order == "mixed" else "speeches being read"
    panel.set(xlabel=xlabel, ylabel="loss, bits per byte")
    panel.legend()
    return figure, numbers


def half_lives() -> list[tuple[str, int]]:
    """For a slider: what it says, and the half-life; 0 for counts that do not fade."""
    return [("never", 0), *((f"{one:,}", one) for one in HALF_LIVES)]


@styled
def fade(half_life: int) -> tuple[Figure, dict[str, float]]:
    """For an Explorer: the loss of counts with that half-life (in sequences; 0: they do not fade) on two speeches
    over training, and at the end, on old text and new, for every half-life down to it."""
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    years, whole = list(continual.passed()), counts()
    course = counts("time", half_life or math.inf)
    for year in ("1803", "2023"):
        row, colour = years.index(year), ORANGE if year == "2023" else BLUE
        left.plot(whole.steps[FIRST:], whole.bits[row, FIRST:], color=colour, linestyle="--", linewidth=1)
        left.plot(course.steps[FIRST:], course.bits[row, FIRST:], color=colour, linewidth=1.8, label=year)
    left.plot([], [], color=GREY, linestyle="--", linewidth=1, label="no fading")
    left.set(xlabel="speeches being read", ylabel="loss, bits per byte", title="during training", ylim=(1.6, 3.7))
    year_axis(left, whole.steps[-1], ("1883", "1923", "1963", "2003"))
    left.legend()
    values = [value for _, value in half_lives()]
    chosen = values.index(half_life)
    ends = np.array([_both(counts("time", value or math.inf)) for value in values])
    for column, (what, colour) in enumerate((("2023", ORANGE), ("eleven older", BLUE))):
        shown = ends[: chosen + 1, column]  # those that the slider has passed
        right.plot(range(len(shown)), shown, color=colour, marker="o", ms=4, linewidth=1.8, label=what)
        right.plot(chosen, ends[chosen, column], "o", color=colour, ms=10)
    right.set(
        xlabel="half-life of a count, sequences", title="at the end", ylim=(1.8, 2.6), xlim=(-0.3, len(values) - 0.7)
    )
    right.set_xticks(range(len(values)), [text for text, _ in half_lives()], fontsize=9)
    right.legend()
    lost = (course.bits[:, -1] - course.bits.min(1))[: -continual.LAST].mean()
    online_loss = course.online[continual.WARM :].mean()
    names = ("2023 at the end", "eleven older at the end", "forgotten", "online loss")
    return figure, dict(zip(names, map(float, (*ends[chosen], lost, online_loss)), strict=True))


def _both(course: fading.Course) -> tuple[float, float]:
    """Loss at the end on the last speech, and on those before it."""
    end = course.bits[:, -1]
    return float(end[-continual.LAST :].mean()), float(end[: -continual.LAST].mean())
