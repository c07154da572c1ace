"""One spin that feeds back into itself, for the widget of notebook 00: its values step by step, and the same on its
curve. The gate is wide open and the drive is 1."""

from __future__ import annotations

from dataclasses import replace
from math import tanh

import numpy as np

from .figures import BLUE, GREEN, GREY
from .figures.diagram import INK
from .figures.live import LiveFigure, Panel

DRIVE, STEPS = 1.0, 30
SETTLED = 1e-3  # a step that changes the spin less than this
UNIT = dict(ylim=(-1, 1), yticks=(-1, 0, 1))
VALUES = Panel((0.08, 0.15, 0.37, 0.73), "", "step n", "y", xlim=(0, STEPS), xticks=(0, 10, 20, 30), **UNIT)
CURVE = Panel(
    (0.56, 0.15, 0.42, 0.73),
    "",
    "y before a step",
    "y after: tanh(1 + γ·coupling·y)",
    xlim=(-1, 1),
    xticks=(-1, 0, 1),
    **UNIT,
)


def path(coupling: float, gamma: float) -> np.ndarray:
    """y_0 .. y_STEPS of tanh(1 + coupling * gamma * y), which starts from the drive alone."""
    values = [tanh(DRIVE)]
    for _ in range(STEPS):
        values.append(tanh(DRIVE + coupling * gamma * values[-1]))
    return np.array(values)


def fixed_point(coupling: float, gamma: float) -> float:
    """Where before = after, by bisection: between 0 and 1 there is just one."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if tanh(DRIVE + coupling * gamma * middle) > middle else (low, middle)
    return low


def draw_spin(coupling: float, gamma: float) -> tuple[LiveFigure, dict[str, object]]:
    """Left the values; right the curve (blue), where before = after (dashed), the way between them (green), and the
    fixed point (hollow), reached or not. The curve's name is above it where it rises, below it where it falls. Titles
    say how it ends, and how steep the curve is at the fixed point."""
    y, at = path(coupling, gamma), fixed_point(coupling, gamma)
    changes = np.abs(np.diff(y))
    moving = np.flatnonzero(changes >= SETTLED) + 1  # steps
    first = (moving.max(initial=0) + 1).item()
    slope = coupling * gamma * (1 - at**2)
    ending = f"Settled at step {first}" if first <= STEPS else "Settles slowly" if abs(slope) < 1 else "Never settles"
    steepness = f"Slope at the crossing: {slope:.2f}".replace("-", "−")
    figure = LiveFigure((7.4, 3.6), (replace(VALUES, title=ending), replace(CURVE, title=steepness)))
    figure.add_line(0, np.arange(STEPS + 1), y, GREEN, dot=2)
    before = np.linspace(-1, 1, 81)
    figure.add_line(1, [-1, 1], [-1, 1], GREY, width=1, dashes=True)
    figure.add_text(1, 0.3, -0.5, "dashed: after = before", GREY)
    figure.add_line(1, before, np.tanh(DRIVE + coupling * gamma * before), BLUE, width=2)
    height = 0.97 if coupling >= 0 else tanh(DRIVE - 0.25 * coupling * gamma) - 0.06
    figure.add_text(1, -0.6, height, "blue: a step", BLUE)
    figure.add_line(1, np.repeat(y, 2)[:-1], np.repeat(y, 2)[1:], GREEN, width=1.3)
    figure.add_text(1, 0.4, -0.72, "green: the spin's path", GREEN)
    figure.add_line(1, [at], [at], INK, width=0, dot=3.5, filled=False)
    return figure, {
        "fixed point": f"{at:.3f}",
        "y after 5 steps": f"{y[5]:.3f}",
        "last change": changes[-1],
        f"changes by less than {SETTLED:g}": f"from step {first} on" if first <= STEPS else f"not within {STEPS} steps",
    }
