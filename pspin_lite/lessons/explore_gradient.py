"""The two errors of the implicit gradient, for the widget of notebook 06: too few steps, too few products.

    Explorer(draw_errors(SCALES), "gradient-errors", steps=.., products=.., scale=..)

All errors are computed once; a slider only looks them up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from .. import fixed_points
from ..attractor import slopes, step
from .figures import BLUE, GREY, ORANGE, RED
from .figures.live import LiveFigure, Panel

MOST = 20  # steps and products shown
SCALES = (2.0, 3.0, 4.0, 6.0)
PLACES = (0.125, 0.17, 0.355, 0.69), (0.635, 0.17, 0.355, 0.69)
AXES = dict(xlim=(0, MOST), xticks=(0, 5, 10, 15, 20), ylim=(-7, 1), yticks=(-6, -4, -2, 0))
DECADES = dict(yticklabels=("1e-6", "1e-4", "0.01", "1"))
AGAINST = "error against the fixed point's"
STEPS = Panel(PLACES[0], "the same products, more steps", "steps (dashed: rule)", AGAINST, **AXES, **DECADES)
PRODUCTS = Panel(PLACES[1], "the same steps, more products", "products (dashed: rule)", AGAINST, **AXES, **DECADES)


def errors(scale: float) -> tuple[float, np.ndarray]:
    """Of a random map: its largest spectral radius at the fixed point, and the relative error of the gradient with
    respect to z: rows for 1..MOST steps and, last, at rest; columns for 0..MOST products and, last, all of them.

    The reference is the fixed point's gradient; it and the last column come from linear systems."""
    layer = fixed_points.random_map(gamma=0.5, scale=scale)
    rest = fixed_points.follow(*layer)  # also where it repels
    dy = fixed_points.random_direction(rest)
    exact = _gradients(rest, layer, dy)[-1]
    before, rows = torch.zeros_like(rest), []
    for _ in range(MOST):
        before = step(before, *layer)  # first the layer's own start
        rows.append([fixed_points.relative(one, exact) for one in _gradients(before, layer, dy)])
    rows.append([fixed_points.relative(one, exact) for one in _gradients(rest, layer, dy)])
    radius = torch.linalg.eigvals(fixed_points.jacobian(rest, *layer)).abs().max().item()
    return radius, np.array(rows)


def _gradients(before: Tensor, layer: fixed_points.Layer, dy: Tensor) -> list[Tensor]:
    """With the slopes of the step that starts at `before`: with 0..MOST products, and with all."""
    phi_u, phi_a = slopes(layer.z + (layer.gamma * before) @ layer.w_int.T)
    adjoint, gradients = dy, []
    for _ in range(MOST + 1):
        gradients.append(torch.cat([adjoint * phi_u, adjoint * phi_a], -1))
        adjoint = dy + layer.gamma * (gradients[-1] @ layer.w_int)
    J = fixed_points.jacobian(before, *layer)
    adjoint = torch.linalg.solve(torch.eye(J.shape[-1], dtype=J.dtype) - J.mT, dy)
    return [*gradients, torch.cat([adjoint * phi_u, adjoint * phi_a], -1)]


def draw_errors(scales: Sequence[float] = SCALES) -> Callable[..., tuple[LiveFigure, dict[str, object]]]:
    """A function of steps, products and scale."""
    known = {scale: errors(scale) for scale in scales}

    def draw(steps: int, products: int, scale: float) -> tuple[LiveFigure, dict[str, object]]:
        radius, table = known[scale]
        count, here = np.arange(MOST + 1), table[steps - 1, products]
        rule = np.log10(radius ** (count + 1))
        figure = LiveFigure((9.4, 3.3), (STEPS, PRODUCTS))
        lines = (count[1:], table[:-1, products], steps), (count, table[steps - 1, :-1], products)
        for panel, (x, values, chosen) in enumerate(lines):
            figure.add_line(panel, count, rule, GREY, width=1, dashes=True)
            figure.add_line(panel, x, np.log10(values), (BLUE, ORANGE)[panel], width=2)
            figure.add_line(panel, [chosen], [np.log10(here)], RED, width=0, dot=5)
        return figure, {
            "spectral radius": radius,
            "error": here,
            "too few steps alone": table[steps - 1, -1],
            "rule for the steps": radius ** (steps + 1),
            "too few products alone": table[-1, products],
            "rule for the products": radius ** (products + 1),
        }

    return draw
