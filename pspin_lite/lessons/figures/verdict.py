"""For notebook 12: the intervals of a difference, on held-out and on recent speeches, against zero and against the
margin of what we call equivalent, over how many runs there are and how many comparisons are made."""

from __future__ import annotations

import math

import numpy as np

from ...study import intervals, records
from ...study.questions import criteria
from .live import LiveFigure, Panel
from .parts import word
from .style import BLUE, GREY, ORANGE

AGAINST, GROUP, REACH = "p-spin", "bytes-1", 0.06
CHOICES = ("k1", "k0-same-size", "long-gate", "attention", "full-precision")


def difference(network: str, seeds: int, comparisons: int, split: str = records.SPLIT) -> intervals.Difference:
    """A network minus p-Spin from the first seeds alone, with the deviation pooled over all runs of the group."""
    spread = records.group_spread(GROUP, split)
    mean, other = (np.mean(list(records.bits(GROUP, name, split).values())[:seeds]) for name in (network, AGAINST))
    factor = intervals.student(1 - 0.05 / comparisons, spread.degrees)
    width = factor * math.sqrt(spread.variance) * math.sqrt(2 / seeds)
    return intervals.Difference(float(mean - other), width, seeds)


def verdict(network: str, seeds: int, comparisons: int) -> tuple[LiveFigure, dict[str, str]]:
    """For an Explorer. The intervals, with a line at zero and dashes at the margin; both decide."""
    gaps = {split: difference(network, seeds, comparisons, split) for split in records.SPLITS}
    called = word(list(gaps.values()))
    ticks = (-0.04, -0.02, 0, 0.02, 0.04)
    label = f"bits per byte, the network minus {AGAINST}"
    heights = dict(zip(gaps, (0.45, -0.45), strict=True))
    panel = Panel(
        (0.15, 0.36, 0.81, 0.48),
        called,
        label,
        "",
        (-REACH, REACH),
        (-1, 1),
        ticks,
        tuple(heights.values()),
        tuple(gaps),
    )
    figure = LiveFigure((5.4, 2.0), (panel,))
    figure.add_line(0, [0, 0], [-1, 1], GREY, width=1.3)
    for margin in (-criteria.CLOSE, criteria.CLOSE):
        figure.add_line(0, [margin] * 2, [-1, 1], ORANGE, width=1, dashes=True)
    for split, gap in gaps.items():
        figure.add_line(0, [gap.low, gap.high], [heights[split]] * 2, BLUE, width=3)
        figure.add_line(0, [gap.mean], [heights[split]], BLUE, width=0, dot=4)
    numbers = {split: f"{gap.mean:+.3f} ± {gap.half_width:.3f}" for split, gap in gaps.items()}
    return figure, numbers | {"we call it": called}
