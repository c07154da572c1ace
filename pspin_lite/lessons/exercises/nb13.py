"""Exercises of notebook 13."""

from __future__ import annotations

import numpy as np
import torch

from ...study import stability
from .. import explore_adam
from . import Exercise, expect


def same_memory(beta2: float, old: int, new: int) -> float:
    """A step at `new` is new / old of one at `old`."""
    return beta2 ** (new / old)


def grade_memory(answer) -> None:
    expect("0.95 from 64 to 1", answer(0.95, 64, 1), 0.95 ** (1 / 64), 1e-9)
    expect("0.999 from 1 to 8", answer(0.999, 1, 8), 0.999**8, 1e-9)
    expect("0.9 unchanged", answer(0.9, 4, 4), 0.9, 1e-9)


def noise_scale(gradients: np.ndarray) -> float:
    """tr Sigma / |G|^2, both without bias."""
    n = len(gradients)
    trace = gradients.var(axis=0, ddof=1).sum()
    return trace / ((gradients.mean(axis=0) ** 2).sum() - trace / n)


def grade_noise(answer) -> None:
    two = np.array([[3.0, 0.0], [1.0, 0.0]])
    expect("gradients 3 and 1: variance 2, squared mean 4 - 1", answer(two), 2 / 3)
    rows = 0.5 + np.random.default_rng(0).normal(size=(50, 400))
    w = torch.zeros(400, dtype=torch.float64, requires_grad=True)
    known = stability.noise_scale(lambda row: (row[0] * w).sum(), [w], torch.as_tensor(rows))
    expect("fifty gradients of 400 entries", answer(rows), known["scale"])


def make_optimizer(w: torch.Tensor) -> torch.optim.Optimizer:
    """A memory of as many examples as 0.95 has at batch size 64. Plain SGD would do as well."""
    return torch.optim.Adam([w], lr=0.01, betas=(0.9, 0.95 ** (1 / 64)))


def grade_optimizer(answer) -> None:
    w = torch.zeros(explore_adam.WEIGHTS, requires_grad=True)
    optimizer, path = answer(w), []
    assert isinstance(optimizer, torch.optim.Optimizer), "return an optimizer of torch.optim"
    for target in torch.tensor(explore_adam.targets(1), dtype=torch.float32):
        w.grad = w.detach() - target
        optimizer.step()
        path.append(w.mean().item())
    expect("where w settles, from 0", np.mean(path[len(path) // 2 :]), 1.0, 0.05)


EXERCISES = {
    "13.1": Exercise(
        grade_memory, same_memory, "Steps at `new` are old / new times as many: which power of beta2 forgets as much?"
    ),
    "13.2": Exercise(
        grade_noise, noise_scale, "var(axis=0, ddof=1).sum() is the trace; subtract trace / n from the squared mean."
    ),
    "13.3": Exercise(
        grade_optimizer, make_optimizer, "Give Adam a longer memory, or take an optimizer that divides by nothing."
    ),
}
