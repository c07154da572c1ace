"""A toy for notebook 11: what a batch of gradients is worth. Sixty weights, each in a quadratic valley of its own,
learn by plain gradient descent from noisy gradients.

With curvature h the loss of a weight w is h w² / 2. The noise of a single gradient has the variance NOISE * h, that of
a batch a share of it. Then the mean of w² follows exactly from step to step, and nothing has to be drawn at random.
"""

from __future__ import annotations

import numpy as np

from .live import LiveFigure, Panel
from .style import GREY, PURPLE, RED

CURVATURES = np.geomspace(0.003, 1, 60)
NOISE = 0.3
RATE, RUN = 0.1, 1000  # the rate that is best for batch 1 in a run of so many sequences
NARROW, WIDE = 0.01, 32  # of the panel: batch 1's runs
FLOOR, CEILING = 0.015, 2.0  # its losses: none is lower, and what is higher leaves it
CAP = 10.0  # a loss beyond it has diverged


def descent(batch: int, rate: float, steps: np.ndarray) -> np.ndarray:
    """The expected loss after so many steps; 1 at the beginning, half of it from the lower half of the curvatures."""
    start = 2 / (CURVATURES * len(CURVATURES))  # the mean of w², so that all valleys begin alike
    rest = rate * NOISE / (batch * (2 - rate * CURVATURES))  # where noise and descent balance
    factor = (1 - rate * CURVATURES) ** 2
    with np.errstate(over="ignore"):
        squares = rest + (start - rest) * factor ** np.asarray(steps)[:, None]
    return np.minimum((CURVATURES * squares).sum(1) / 2, CAP)


def text_needed(batch: int, rate: float, most: int = 64) -> float:
    """Sequences to the loss that batch 1 ends with, in runs of batch 1; infinite if it takes more than `most`."""
    target = descent(1, RATE, np.array([RUN]))[0]
    steps = np.arange(most * RUN // batch + 1)
    there = descent(batch, rate, steps) <= target
    return float(batch * there.argmax() / RUN) if there.any() else np.inf


def valley(batch: int, rate: int) -> tuple[LiveFigure, dict[str, str]]:
    """For an Explorer: the loss over text for a batch size and a learning rate, a multiple of RATE. Beside it is batch
    1 at RATE, and from its end a red line leads to where the other curve gets as low."""
    needed, end = text_needed(batch, rate * RATE), descent(1, RATE, np.array([RUN]))[0]
    diverges = rate * RATE * CURVATURES.max() >= 2
    said = "diverges" if diverges else "never" if needed == np.inf else f"{needed:.2g} times"
    steps = f"{needed * RUN / batch:,.0f}" if needed < np.inf else said
    title = f"Batch {batch}, rate × {rate}: " + {"diverges": "it diverges", "never": "it never gets as low"}.get(
        said, f"{said} the text"
    )
    heights, places = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0), (0.01, 0.1, 1, 10)
    panel = Panel(
        (0.15, 0.28, 0.8, 0.6),
        title,
        "text read (batch 1's run = 1; logarithmic)",
        "loss (logarithmic)",
        (np.log10(NARROW), np.log10(WIDE)),
        (np.log10(FLOOR), np.log10(CEILING)),
        tuple(np.log10(places)),
        tuple(np.log10(heights)),
        tuple(f"{one:g}" for one in heights),
        (("━", "batch 1, rate × 1", GREY), ("━", "the batch and rate chosen", PURPLE)),
        tuple(f"{one:g}" for one in places),
    )
    figure = LiveFigure((5.2, 3.2), (panel,))
    for size, eta, runs, colour in ((1, RATE, 1, GREY), (batch, rate * RATE, WIDE, PURPLE)):
        steps_taken = np.unique(np.geomspace(max(1, NARROW * RUN / size), runs * RUN / size, 60).round())
        losses = descent(size, eta, steps_taken)
        until = int(np.argmax(losses > CEILING)) + 1 if (losses > CEILING).any() else len(losses)
        x, y = steps_taken[:until] * size / RUN, np.minimum(losses[:until], CEILING)
        figure.add_line(0, np.log10(x), np.log10(y), colour, width=1.8)
    level = [np.log10(end)] * 2
    figure.add_line(0, np.log10([NARROW, WIDE]), level, GREY, width=0.8, dashes=True)
    if needed <= WIDE:
        figure.add_line(0, np.log10([1, needed]), level, RED, width=2.6)
        figure.add_line(0, np.log10([needed]), level[:1], RED, width=0, dot=4)
    figure.add_line(0, [0], level[:1], GREY, width=0, dot=4)
    return figure, {"text for the same loss": said, "steps for the same loss": steps}
