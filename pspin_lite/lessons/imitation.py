"""The experiment of notebook 04: a ternary matrix imitates a linear map. Is it better to round in training, or after?

The map goes from 64 to 16 numbers. Its inputs are combinations of a few hidden factors, with a little noise; or, with 0
factors, all independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from .. import ternary
from .exercises.nb04 import fitted_scale

INPUTS, OUTPUTS, EXAMPLES = 64, 16, 512
SEEDS = range(5)
ROWS = ("rounded afterwards", "trained with rounding")


class Task(NamedTuple):
    """Inputs and outputs to learn from and to be tested on, and where training starts."""

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    start: Tensor


def make_task(factors: int, seed: int) -> Task:
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(2 * EXAMPLES, INPUTS, generator=rng)
    if factors:
        mixing = torch.randn(factors, INPUTS, generator=rng) / sqrt(factors)
        x = torch.randn(2 * EXAMPLES, factors, generator=rng) @ mixing + 0.1 * x
    y = x @ torch.randn(INPUTS, OUTPUTS, generator=rng) / 8
    # Near zero: larger initial weights would survive in directions that the inputs barely touch, and spoil the rounding
    start = 1e-3 * torch.randn(OUTPUTS, INPUTS, generator=rng)
    return Task(x[:EXAMPLES], y[:EXAMPLES], x[EXAMPLES:], y[EXAMPLES:], start)


def error(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (x @ W.T - y).norm() / y.norm()


def train(rounding: Callable[[Tensor], Tensor], task: Task, steps: int = 300, lr: float = 0.005) -> Tensor:
    """The matrix behind the rounding, after so many steps of Adam with all examples and a rate that falls to zero."""
    W = task.start.clone().requires_grad_()
    optimizer = torch.optim.Adam([W], lr)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        loss = error(rounding(W), task.x, task.y) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return W.detach()


def errors(W: Tensor, task: Task) -> tuple[float, float]:
    """Of the rounded matrix: with the mean magnitude as its scale, and with the scale that fits the outputs best."""
    codes, scale = ternary.absmean(W)
    fitted = fitted_scale(codes, task.x, task.y)
    own, best = (error(codes * s, task.x_test, task.y_test).item() for s in (scale, fitted))
    return own, best


def race(factors: int, seeds: Iterable[int] = SEEDS) -> dict[str, Tensor]:
    """Test errors by way of rounding: [seeds, 2], with the matrix's own scale and with a fitted one."""
    tasks = [make_task(factors, seed) for seed in seeds]
    ways = (lambda W: W, ternary.ste)
    return {
        row: torch.tensor([errors(train(way, task), task) for task in tasks])
        for row, way in zip(ROWS, ways, strict=True)
    }
