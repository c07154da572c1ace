"""Adam with one weight on a stream with rare large examples, for notebook 13 and its widget.

Loss (w - target)^2 / 2. One example in `one_in` has the target `one_in`, all others have 0, so the mean target is 1,
and 1 is where the weight should end. The same streams as in the notebook, which runs PyTorch's Adam on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .figures.live import LiveFigure, Panel
from .figures.style import GREY

BETAS, BATCHES, ONE_IN = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999), (1, 8, 64), (2, 5, 20, 50)
STEPS, WEIGHTS, RATE, MEMORY, SEED = 4000, 200, 0.01, 0.9, 1
SHOWN, STRIDE = 120, 80  # steps of the divisor, and every how many steps the weight is drawn
INK = "#222222"


@dataclass(frozen=True)
class Toy:
    """One line for each beta2. The second half of the steps counts."""

    settled: np.ndarray  # where the weights are on average
    path: np.ndarray  # [beta2, steps] their mean
    divisor: np.ndarray  # [beta2, steps] of one of them
    above: np.ndarray  # mean divisor where a batch's target lies above 1: at rare examples, with batch size 1
    below: np.ndarray


def targets(batch: int, one_in: int = 20, steps: int = STEPS, weights: int = WEIGHTS) -> np.ndarray:
    """[steps, weights] the mean target of each batch."""
    rng = np.random.default_rng(SEED)
    return one_in * rng.binomial(batch, 1 / one_in, (steps, weights)) / batch


def pushes(beta2: float, one_in: int = 20) -> tuple[float, float]:
    """(by rare examples, by common ones): gradient over divisor, its size added up per `one_in` examples, at batch size
    1 and with the weight kept at the minimum. The second half of the steps counts. They cancel if they are equal."""
    gradients = 1 - targets(1, one_in)
    square, rare, common = np.zeros(gradients.shape[1]), 0.0, 0.0
    for step, gradient in enumerate(gradients):
        square = beta2 * square + (1 - beta2) * gradient**2
        if step >= len(gradients) // 2:
            push = gradient / np.sqrt(square / (1 - beta2 ** (step + 1)))
            rare -= push[gradient < 0].sum()
            common += push[gradient > 0].sum()
    scale = 2 * one_in / gradients.size
    return rare * scale, common * scale


@cache
def run(batch: int, one_in: int) -> Toy:
    """Every beta2 at once."""
    beta2 = np.array(BETAS)[:, None]
    w = np.ones((len(BETAS), WEIGHTS))  # the minimum
    mean, square = np.zeros_like(w), np.zeros_like(w)
    path, divisors = np.empty((2, len(BETAS), STEPS))
    sums, counts = np.zeros((2, len(BETAS))), np.zeros((2, 1))
    for step, target in enumerate(targets(batch, one_in)):
        gradient = w - target
        mean = MEMORY * mean + (1 - MEMORY) * gradient
        square = beta2 * square + (1 - beta2) * gradient**2
        divisor = np.sqrt(square / (1 - beta2 ** (step + 1))) + 1e-8
        w = w - RATE * mean / (1 - MEMORY ** (step + 1)) / divisor
        path[:, step], divisors[:, step] = w.mean(1), divisor[:, 0]
        if step >= STEPS // 2:
            for i, side in enumerate((target > 1, target < 1)):
                sums[i] += (divisor * side).sum(1)
                counts[i] += side.sum()
    half = slice(STEPS // 2, None)
    return Toy(path[:, half].mean(1), path, divisors[:, half], *(sums / counts))


def draw_toy(beta2: float, one_in: int, batch: int) -> tuple[LiveFigure, dict[str, float]]:
    """Left Adam's divisor at single steps, right the weight; for an Explorer."""
    toy, row = run(batch, one_in), BETAS.index(beta2)
    half_life = np.log(0.5) / np.log(beta2)
    left = Panel(
        (0.09, 0.2, 0.39, 0.68), "Adam's divisor", "step", "divisor / its mean",
        (0, SHOWN), (0, 3), (0, 40, 80, 120), (0, 1, 2, 3),
    )  # fmt: skip
    right = Panel(
        (0.58, 0.2, 0.39, 0.68), f"The weight settles at {toy.settled[row]:.2f}", "step", "weight (minimum: 1)",
        (0, STEPS), (0, 1.25), (0, 2000, 4000), (0, 0.5, 1),
    )  # fmt: skip
    figure = LiveFigure((7.6, 2.7), (left, right))
    some, places = toy.divisor[row, :SHOWN], np.arange(0, STEPS, STRIDE)
    figure.add_line(0, [0, SHOWN], [1, 1], GREY, width=0.8, dashes=True)
    figure.add_line(0, np.arange(SHOWN), (some / toy.divisor[row].mean()).round(2), INK)
    figure.add_line(1, [0, STEPS], [1, 1], GREY, width=0.8, dashes=True)
    figure.add_line(1, [0, *(places + STRIDE)], [1, *toy.path[row, places + STRIDE - 1].round(3)], INK)
    return figure, {
        "w settles at": f"{toy.settled[row]:.2f}",
        "half-life, in examples": f"{batch * half_life:,.0f}",
        "divisor if target > 1": f"{toy.above[row]:.2f}",
        "divisor if target < 1": f"{toy.below[row]:.2f}",
    }
