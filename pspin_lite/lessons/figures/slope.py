"""For notebook 12: a product of two fields as contours, where the fields of a layer fall, and how far from a linear map
that is.

The fields u and a are normal and independent, both of one size. So what a linear map explains of one product is exact
to the digits of a quadrature; of a whole random layer it explains as much.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from contourpy import contour_generator

from .live import LiveFigure, Panel
from .style import BLUE, GREY, ORANGE, PURPLE


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


FORMS = {
    "tanh(u) · σ(a)": lambda u, a: np.tanh(u) * _sigmoid(a),
    "tanh(u) · tanh(a)": lambda u, a: np.tanh(u) * np.tanh(a),
    "tanh(u) · silu(a)": lambda u, a: np.tanh(u) * a * _sigmoid(a),
    "u · silu(a)": lambda u, a: u * a * _sigmoid(a),
}
REACH, DOTS = 2.5, 70  # of the panels, in multiples of an rms; fields that are drawn
LEVELS = (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)


@cache
def linear(form: str, size: float) -> tuple[float, tuple[float, float, float], float]:
    """(share of a product's variance that a linear map of u and a explains, its constant and slopes, the product's
    deviation)"""
    u, a = size * NODES[None, :], size * NODES[:, None]
    weights = np.outer(WEIGHTS, WEIGHTS) / WEIGHTS.sum() ** 2
    z = FORMS[form](u, a)
    mean = float((weights * z).sum())
    variance = float((weights * (z - mean) ** 2).sum())
    slopes = [float((weights * z * field).sum()) / size**2 for field in (u, a)]
    share = sum(slope**2 for slope in slopes) * size**2 / variance
    return share, (mean, *slopes), variance**0.5


def slope(product: str, size: float) -> tuple[LiveFigure, dict[str, str]]:
    """For an Explorer. Left the product over both fields, in multiples of their size, with dots where 70 fields fall;
    right what the product gives there over what the best linear map gives."""
    share, (mean, of_u, of_a), deviation = linear(product, size)
    ticks, place = (-2, 0, 2), (0.11, 0.72)
    panels = (
        Panel((place[0], 0.16, 0.37, place[1]), product, "u / size", "a / size", *((-REACH, REACH),) * 2, ticks, ticks),
        Panel(
            (0.61, 0.16, 0.37, place[1]),
            f"a linear map explains {share:.0%}",
            "the best linear map says",
            "the product / its rms",
            *((-REACH, REACH),) * 2,
            ticks,
            ticks,
        ),
    )
    figure = LiveFigure((6.4, 3.5), panels)
    field = np.linspace(-REACH, REACH, 51)
    z = (FORMS[product](size * field[None, :], size * field[:, None]) - mean) / deviation
    contours = contour_generator(field, field, z)
    for level in LEVELS:
        colour = GREY if not level else PURPLE if level > 0 else ORANGE
        for line in contours.lines(level):
            some = line[np.unique(np.linspace(0, len(line) - 1, 22).round().astype(int))].round(2)
            figure.add_line(0, *some.T, colour, width=1.3)
    u, a = np.random.default_rng(0).normal(size=(2, DOTS))
    figure.add_line(0, u.round(2), a.round(2), BLUE, width=0, dot=1.6)
    says = (of_u * u + of_a * a) * size / deviation
    gives = (FORMS[product](size * u, size * a) - mean) / deviation
    figure.add_line(1, [-REACH, REACH], [-REACH, REACH], GREY, width=1, dashes=True)
    figure.add_line(1, says.round(2), gives.round(2), BLUE, width=0, dot=2)
    return figure, {"a linear map explains": f"{share:.0%}", "size of the fields": f"{size:g}"}
