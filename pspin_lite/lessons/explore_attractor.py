"""Pictures of an attractor at work, for the widgets of notebook 05: `draw_..` gives a figure and a table of numbers.

What they show is computed in fixed_points.py; nothing here knows of widgets. Sizes are small enough to redraw within a
tenth of a second.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from contourpy import contour_generator
from torch import Tensor

from ..attractor import spin, step
from ..fixed_points import (
    LIMIT,
    SETTLED,
    SHOWN,
    Examination,
    distinct,
    examine,
    jacobian,
    random_map,
    spectral_radius,
    two_spins,
)
from .figures import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, SKY
from .figures.live import LiveFigure, Panel

SIZE, TALL = (7.4, 3.3), (7.4, 3.8)  # inches; TALL has a legend beneath its panels
LEFT, RIGHT = ((left, 0.17, 0.36, 0.69) for left in (0.09, 0.61))
ABOVE = tuple((left, 0.28, 0.36, 0.6) for left in (0.09, 0.61))
STEPS = dict(xlim=(0, SHOWN), xticks=(0, 5, 10, 15, 20))
UNIT = dict(ylim=(-1, 1), yticks=(-1, 0, 1))
DECADES = dict(ylim=(-9.2, 1), yticks=(-8, -6, -4, -2, 0), yticklabels=("1e-8", "1e-6", "1e-4", "0.01", "1"))
SPINS = Panel(LEFT, "six spins of the first token", "step n", "y", **STEPS, **UNIT)
PORTRAIT = Panel(
    ABOVE[0],
    "paths from five starts",
    "spin 1",
    "spin 2",
    xlim=(-1, 1),
    xticks=(-1, 0, 1),
    legend=(
        ("━", "the layer's path", GREEN),
        ("●", "start of another path", PURPLE),
        ("━", "spin 1 unchanged", SKY),
        ("━", "spin 2 unchanged", ORANGE),
        ("●", "fixed point, attracts", "black"),
        ("○", "fixed point, repels", "black"),
    ),
    **UNIT,
)
RESIDUAL = Panel(RIGHT, "residual, one line per token", "step n", "relative change", **STEPS, **DECADES)
PAIR = replace(RESIDUAL, place=ABOVE[1], title="residual of the layer's path")
CORNERS = ((-0.9, 0.9), (0.9, -0.9), (-0.9, -0.5), (0.5, 0.9))  # where other paths of a portrait start
FEW = 0.01  # a residual that notebook 05 asks for
STRONG = 2  # steps of another path that are drawn strongly; later ones are faint
CELLS = 41  # points on each axis, between which nullclines are drawn


def all_fixed_points(z: Tensor, w_int: Tensor, gamma: Tensor, grid: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """All fixed points of a two-spin map that Newton's method finds from a grid: [m, 2], and their radii [m]."""
    axis = torch.linspace(-1, 1, grid, dtype=z.dtype)
    y = torch.cartesian_prod(axis, axis)
    eye = torch.eye(2, dtype=z.dtype)
    for _ in range(25):
        miss = step(y, z, w_int, gamma) - y
        y = y - torch.linalg.lstsq(jacobian(y, z, w_int, gamma) - eye, miss.unsqueeze(-1)).solution.squeeze(-1)
        y = y.clamp(-1.5, 1.5)
    y = y[(step(y, z, w_int, gamma) - y).abs().amax(-1) < 1e-9]
    order = np.lexsort(y.round(decimals=4).numpy().T)
    points = torch.stack(distinct(y[order.tolist()], 1e-3))
    return points.numpy(), spectral_radius(points, z, w_int, gamma, exact=True).numpy()


def _log(values: np.ndarray) -> np.ndarray:
    """Powers of ten; what is below the picture is left out."""
    return np.log10(np.where(values > 1e-9, values, np.nan))


def beside(K: int) -> float:
    """Where the name of the line at K is: right of it, and left of it at the edge."""
    return K + 0.8 if K < SHOWN else K - 0.8


def _common(panels: tuple[Panel, Panel], found: Examination, K: int, size: tuple[float, float] = SIZE) -> LiveFigure:
    """The second panel: residuals."""
    figure = LiveFigure(size, panels)
    for changes in _log(found.residual).T:
        figure.add_line(1, np.arange(1, SHOWN + 1), changes, BLUE, width=1.2, opacity=0.6)
    figure.add_line(1, [K, K], [-9, 1], GREY, width=1, dashes=True)
    figure.add_text(1, beside(K), 1, "K", GREY)
    return figure


def _starts(z: Tensor) -> Tensor:
    """Of the paths in a portrait, the layer's own first."""
    return torch.cat([spin(z), torch.tensor(CORNERS, dtype=z.dtype)])


def settled_paths(z: Tensor, w_int: Tensor, gamma: Tensor) -> np.ndarray:
    """Which paths of a portrait have settled after LIMIT steps."""
    y = _starts(z)
    for _ in range(LIMIT):
        before, y = y, step(y, z, w_int, gamma)
    return ((y - before).abs().amax(-1) < SETTLED).numpy()


def portrait(figure: LiveFigure, panel: int, z: Tensor, w_int: Tensor, gamma: Tensor, K: int) -> dict[str, np.ndarray]:
    """Nullclines, fixed points (filled: they attract), the layer's own K steps and some others."""
    axis = torch.linspace(-1, 1, CELLS, dtype=z.dtype)
    y = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
    moves = (step(y, z, w_int, gamma) - y).numpy()  # [CELLS, CELLS, 2]
    for i, colour in ((0, SKY), (1, ORANGE)):
        for line in contour_generator(axis.numpy(), axis.numpy(), moves[..., i]).lines(0.0):
            figure.add_line(panel, *line.T, colour, width=1.8)
    paths = [_starts(z)]
    for _ in range(K):
        paths.append(step(paths[-1], z, w_int, gamma))
    paths = torch.stack(paths, 1).numpy()  # [5, K+1, 2], the layer's own first
    for path in paths[1:]:
        figure.add_line(panel, *path.T, PURPLE, width=1, opacity=0.35)
        figure.add_line(panel, *path[: STRONG + 1].T, PURPLE, width=1.5)
        figure.add_line(panel, *path[:1].T, PURPLE, width=0, dot=2.6)
    figure.add_line(panel, *paths[0].T, GREEN, dot=1.8, width=1.5)
    points, radii = all_fixed_points(z, w_int, gamma)
    for point, attracts in zip(points, radii < 1, strict=True):
        figure.add_line(panel, point[:1], point[1:], "black", width=0, dot=3.5, filled=bool(attracts))
    return dict(points=points, attracts=radii < 1, paths=paths, moves=moves)


def numbers(found: Examination, K: int) -> dict[str, object]:
    """What stands beneath both pictures. Of several tokens the largest radius and residual."""
    return {
        "spectral radius": float(np.nanmax(found.radius)) if np.isfinite(found.radius).any() else "not found",
        "Lipschitz bound": found.bound,
        "residual at K": float(found.residual[K - 1].max()) if K else "no step",
    }


def draw_random(K: int, scale: float, gamma: float = 0.5) -> tuple[LiveFigure, dict[str, object]]:
    """32 random spins: six of the first token, and the residuals of all tokens."""
    z, w_int, damping = random_map(gamma, scale)
    found = examine(z, w_int, damping, K)
    slow = int((found.residual[K - 1] > FEW).sum()) if K else len(z)
    title = f"scale {scale:g}, K = {K}: {slow} of {len(z)} above 0.01" if K else RESIDUAL.title
    figure = _common((SPINS, replace(RESIDUAL, title=title)), found, K)
    figure.add_line(1, [0, SHOWN], [np.log10(FEW)] * 2, GREY, width=1.2)
    figure.add_text(1, 15, np.log10(FEW) + 1, "0.01", GREY)
    for i, colour in zip(range(6), CYCLE, strict=False):
        figure.add_line(0, np.arange(SHOWN + 1), found.path[:, 0, i], colour)
    figure.add_line(0, [K, K], [-1, 1], GREY, width=1, dashes=True)
    figure.add_text(0, beside(K), 1, "K", GREY)
    return figure, numbers(found, K) | {"tokens that settle": f"{found.settles.sum()} of {len(found.settles)}"}


def draw_two_spins(kind: str, K: int, gamma: float, w: float) -> tuple[LiveFigure, dict[str, object]]:
    """Two spins, coupled with strength w: phase portrait and residuals."""
    z, w_int, damping = two_spins(kind, gamma, w)
    found = examine(z, w_int, damping, K)
    figure = _common((PORTRAIT, PAIR), found, K, TALL)
    shown = portrait(figure, 0, z, w_int, damping, K)
    settled = settled_paths(z, w_int, damping)
    return figure, {
        "fixed points": f"{len(shown['points'])}, {shown['attracts'].sum()} attract",
        **numbers(found, K),
        "layer settles": "yes" if settled[0] else "no",
        "paths that settle": f"{settled.sum()} of {len(settled)}",
    }
