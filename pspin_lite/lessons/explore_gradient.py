"""The implicit gradient, for the widgets of notebook 06: its two errors, too few steps and too few products; and the
branch that it belongs to, for one spin.

    Explorer(draw_errors(SCALES), "gradient-errors", steps=.., products=.., scale=..)
    Explorer(draw_branches, "gradient-branches", feedback=.., drive=..)

All errors are computed once; a slider of the first only looks them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from .. import fixed_points
from ..attractor import slopes, step
from .figures import BLUE, GREEN, GREY, ORANGE, RED
from .figures.live import LiveFigure, Panel

if TYPE_CHECKING:
    from ..language_model import LanguageModel

MOST = 20  # steps and products shown
SCALES = (2.0, 3.0, 4.0, 6.0)
SIZE = (7.4, 3.3)
PLACES = (0.12, 0.17, 0.345, 0.69), (0.63, 0.17, 0.345, 0.69)
AXES = dict(xlim=(0, MOST), xticks=(0, 5, 10, 15, 20), ylim=(-4.3, 0.7), yticks=(-4, -3, -2, -1, 0))
DECADES = dict(yticklabels=("1e-4", "0.001", "0.01", "0.1", "1"))
AGAINST = "relative error of the gradient"
STEPS = Panel(PLACES[0], "{} products: {:.2g} at best", "steps (dashed: rule)", AGAINST, **AXES, **DECADES)
PRODUCTS = Panel(PLACES[1], "{} steps: {:.2g} at best", "products (dashed: rule)", AGAINST, **AXES, **DECADES)


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
        kept = (STEPS, products), (PRODUCTS, steps)
        lines = (count[1:], table[:-1, products], steps), (count, table[steps - 1, :-1], products)
        titles = [panel.title.format(n, line[1].min()) for (panel, n), line in zip(kept, lines, strict=True)]
        panels = tuple(replace(panel, title=title) for (panel, _), title in zip(kept, titles, strict=True))
        figure = LiveFigure(SIZE, panels)
        for panel, (x, values, chosen) in enumerate(lines):
            rule = radius ** (np.minimum(count, kept[panel][1]) + 1.0)  # the smaller count decides
            figure.add_line(panel, count, _visible(rule), GREY, width=1, dashes=True)
            figure.add_line(panel, x, _visible(values), (BLUE, ORANGE)[panel], width=2)
            figure.add_line(panel, [chosen], [max(np.log10(here), STEPS.ylim[0])], RED, width=0, dot=5)
        return figure, {
            "spectral radius": radius,
            "error": here,
            "rule for the smaller count": radius ** (min(steps, products) + 1),
            "too few steps alone": table[steps - 1, -1],
            "too few products alone": table[-1, products],
        }

    return draw


def _visible(values: np.ndarray) -> np.ndarray:
    """Powers of ten; what is above or below the picture is left out."""
    powers = np.log10(values)
    return np.where((powers >= STEPS.ylim[0]) & (powers <= STEPS.ylim[1]), powers, np.nan)


def gradients(function: Callable[..., Tensor], layer: fixed_points.Layer, K: int, directions: int = 20) -> Tensor:
    """With respect to z, by `equilibrium` or `unrolled`, for random directions in place of what a loss sends back:
    [directions, n, 2D]."""
    spins = layer.z.chunk(2, -1)[0]
    chosen = [fixed_points.random_direction(spins, seed) for seed in range(directions)]
    return torch.stack([fixed_points.drive_gradient(function, layer, K, dy) for dy in chosen])


def loss_direction(model: LanguageModel, tokens: Tensor, targets: Tensor, layer: int) -> Tensor:
    """What the loss on a text sends back to the spins of an attractor: [n, D]."""
    spins: list[Tensor] = []

    def cut(_module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        spins.append(given[0].detach().requires_grad_())
        return (spins[-1],)

    hook = fixed_points.attractors(model)[layer].w_down.register_forward_pre_hook(cut)
    try:
        with torch.enable_grad():
            return torch.autograd.grad(model.loss(tokens, targets), spins)[0].flatten(0, -2)
    finally:
        hook.remove()


def layer_gradients(
    function: Callable[..., Tensor], layers: Iterable[fixed_points.Layer], K: int, directions: Iterable[Tensor]
) -> dict[str, list[Tensor]]:
    """With respect to the drive and to the couplings, by `equilibrium` or `unrolled`, of each layer for its direction:
    what a loss sends back to the spins, or a random one."""
    result: dict[str, list[Tensor]] = {"drive": [], "couplings": []}
    for layer, direction in zip(layers, directions, strict=True):
        z, w_int, gamma = (one.detach() for one in layer)
        inputs = z.clone().requires_grad_(), w_int.clone().requires_grad_()
        with torch.enable_grad():
            both = torch.autograd.grad(function(*inputs, gamma, K), inputs, direction)
        for values, gradient in zip(result.values(), both, strict=True):
            values.append(gradient)
    return result


def mean_error(gradients: Iterable[Tensor], references: Iterable[Tensor]) -> float:
    """Of their relative errors."""
    pairs = zip(gradients, references, strict=True)
    return float(np.mean([fixed_points.relative(*pair) for pair in pairs]))


def token_errors(gradients: Tensor, references: Tensor) -> Tensor:
    """The relative error of each token over all directions, of what `gradients` gives: [n]."""
    return ((gradients - references).square().sum((0, 2)) / references.square().sum((0, 2))).sqrt()


def angles(gradients: Iterable[Tensor], others: Iterable[Tensor]) -> list[float]:
    """Between the gradients of each pair, in degrees."""
    pairs = zip(gradients, others, strict=True)
    cosines = [torch.cosine_similarity(a.ravel(), b.ravel(), 0).clamp(-1, 1) for a, b in pairs]
    return [torch.rad2deg(cosine.acos()).item() for cosine in cosines]


# One spin, y = tanh(drive + feedback * y)

FEEDBACKS = (0.0, 0.5, 0.8, 0.9, 1.0, 1.1, 1.5, 2.0)
DRIVES = (-0.8, -0.5, -0.2, -0.1, -0.02, 0.0, 0.02, 0.1, 0.2, 0.5, 0.8)
ACROSS = dict(xlim=(-1, 1), xticks=(-1, 0, 1))
BRANCHES = Panel(PLACES[0], "", "drive z", "y", **ACROSS, ylim=(-1.1, 1.1), yticks=(-1, 0, 1))
ANSWER = Panel(
    PLACES[1],
    "",
    "drive z",
    "∂y / ∂z",
    **ACROSS,
    ylim=(-2.2, 1.7),
    yticks=(-2, -1, 0, 1),
    yticklabels=("0.01", "0.1", "1", "10"),
)
REACH = 0.25  # how far the tangent is drawn, to each side


def answers(feedback: float, drives: np.ndarray, steps: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Where the layer's own start ends for each drive, and the implicit gradient there; nan where it is infinite."""
    y = np.tanh(drives)
    for _ in range(steps):
        y = np.tanh(drives + feedback * y)
    slope, room = 1 - y**2, 1 - feedback * (1 - y**2)
    return y, np.divide(slope, room, out=np.full_like(y, np.nan), where=np.abs(room) > 1e-3)


def draw_branches(feedback: float, drive: float) -> tuple[LiveFigure, dict[str, object]]:
    """Left all fixed points (dashed: they repel), the answer for every drive and the tangent at this one; right the
    gradient over the drive, in powers of ten."""
    (end,), (gradient,) = answers(feedback, np.array([drive]))
    count = 1 + 2 * _folded(feedback, drive)
    value = (f"{gradient:.2f}" if np.isfinite(gradient) else "infinite").replace("-", "−")
    titles = (
        "one fixed point" if count == 1 else f"{count} fixed points",
        f"implicit gradient: {value}" + ", off the axis" * (not gradient > 0),
    )
    panels = (replace(panel, title=title) for panel, title in zip((BRANCHES, ANSWER), titles, strict=True))
    figure = LiveFigure(SIZE, tuple(panels))
    y = np.tanh(np.linspace(-4, 4, 241))
    drives, repels = np.arctanh(y) - feedback * y, feedback * (1 - y**2) > 1
    inside = np.abs(drives) <= 1
    _pieces(figure, 0, drives, y, inside & ~repels, BLUE, width=2)
    _pieces(figure, 0, drives, y, inside & repels, GREY, dashes=True)
    many = np.linspace(-0.99, 0.99, 200)  # without 0, where the answer of a strong feedback rests on the edge
    ends, values = answers(feedback, many)
    figure.add_line(0, many, ends, GREEN, width=3, opacity=0.6)
    _pieces(figure, 1, many, np.log10(values), np.log10(values) <= ANSWER.ylim[1], RED, width=2)
    if np.isfinite(gradient):
        reach = min(REACH, 0.4 / abs(gradient), 1 - abs(drive))
        figure.add_line(0, [drive - reach, drive + reach], end + gradient * np.array([-reach, reach]), RED, width=2)
    if gradient > 0:
        figure.add_line(1, [drive], [np.log10(gradient)], RED, width=0, dot=5)
    figure.add_line(0, [drive], [end], GREEN, width=0, dot=5)
    return figure, {
        "fixed points": count,
        "answer y": f"{end:.2f}",
        "slope ρ of a step": f"{feedback * (1 - end**2):.2f}",
        "implicit gradient": f"{gradient:.2f}" if np.isfinite(gradient) else "infinite",
    }


def _folded(feedback: float, drive: float) -> bool:
    """Whether there are three fixed points: between the two turns of the S, where the slope of a step is 1."""
    if feedback <= 1:
        return False
    turn = np.sqrt(1 - 1 / feedback)
    return bool(abs(drive) < feedback * turn - np.arctanh(turn))


def _pieces(figure: LiveFigure, panel: int, x: np.ndarray, y: np.ndarray, shown: np.ndarray, *how, **more) -> None:
    """A line for each run of points that are shown."""
    edges = np.flatnonzero(np.diff(np.r_[0, shown.astype(int), 0]))
    for first, last in edges.reshape(-1, 2):
        figure.add_line(panel, x[first:last], y[first:last], *how, **more)
