"""For notebook 12: the interval of a difference against zero and against the margin of what we call equivalent, over
how many runs there are and how many comparisons are made."""

from __future__ import annotations

import math

import numpy as np

from ...study import intervals, records
from .live import LiveFigure, Panel
from .parts import word
from .style import BLUE, GREY, ORANGE

AGAINST, GROUP, MARGIN, REACH = "p-spin", "bytes-1", 0.02, 0.06
CHOICES = ("k1", "k0-same-size", "long-gate", "attention", "full-precision")


def difference(network: str, seeds: int, comparisons: int) -> intervals.Difference:
    """A network minus p-Spin from the first seeds alone, with the deviation pooled over all runs of the group."""
    spread = records.group_spread(GROUP)
    mean, other = (np.mean(list(records.bits(GROUP, name).values())[:seeds]) for name in (network, AGAINST))
    factor = intervals.student(1 - 0.05 / comparisons, spread.degrees)
    width = factor * math.sqrt(spread.variance) * math.sqrt(2 / seeds)
    return intervals.Difference(float(mean - other), width, seeds)


def verdict(network: str, seeds: int, comparisons: int) -> tuple[LiveFigure, dict[str, str]]:
    """For an Explorer. The interval, with a line at zero and dashes at the margin."""
    gap = difference(network, seeds, comparisons)
    ticks = (-0.04, -0.02, 0, 0.02, 0.04)
    label = f"bits per byte, the network minus {AGAINST}"
    panel = Panel((0.04, 0.42, 0.92, 0.36), word(gap), label, "", (-REACH, REACH), (-1, 1), ticks, ())
    figure = LiveFigure((5.4, 1.7), (panel,))
    figure.add_line(0, [0, 0], [-1, 1], GREY, width=1.3)
    for margin in (-MARGIN, MARGIN):
        figure.add_line(0, [margin] * 2, [-1, 1], ORANGE, width=1, dashes=True)
    figure.add_line(0, [gap.low, gap.high], [0, 0], BLUE, width=3)
    figure.add_line(0, [gap.mean], [0], BLUE, width=0, dot=4)
    return figure, {"difference": f"{gap.mean:+.3f} ± {gap.half_width:.3f}", "we call it": word(gap)}
