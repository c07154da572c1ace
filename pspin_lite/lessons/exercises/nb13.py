"""Exercises of notebook 13."""

from __future__ import annotations

import numpy as np
import torch

from ...study import stability
from . import Exercise, expect


def own_jitter(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Of a: differences have no text in them, and the variances of both."""
    return max((np.var(a - b) + np.var(a - c) - np.var(b - c)) / 2, 0.0) ** 0.5


def grade_jitter(answer) -> None:
    text = np.random.default_rng(0).normal(size=1000)
    one, two = np.tile([1.0, -1.0], 500), np.tile([1.0, 1.0, -1.0, -1.0], 250)  # nothing in common
    expect("nothing but the text", answer(text, text, text) + 1.0, 1.0)
    expect("3 of its own, the others calm", answer(text + 3 * one, text, text), 3.0)
    expect("calm itself, another jumps", answer(text, text + 3 * one, text) + 1.0, 1.0)
    expect("0.5 of its own, another has 2", answer(text + 0.5 * one, text + 2 * two, text), 0.5)


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


def same_memory(beta2: float, old: int, new: int) -> float:
    """A step of the new batch size forgets as much as new / old steps of the old one."""
    return beta2 ** (new / old)


def grade_memory(answer) -> None:
    expect("the same batch size", answer(0.95, 64, 64), 0.95)
    expect("0.81 at batch size 2, at batch size 1", answer(0.81, 2, 1), 0.9)
    expect("0.999 at batch size 1, at batch size 8", answer(0.999, 1, 8), 0.999**8)
    expect("0.95 at batch size 64, at batch size 1", answer(0.95, 64, 1), 0.95 ** (1 / 64))


EXERCISES = {
    "13.1": Exercise(
        grade_jitter, own_jitter, "np.var(a - b) is own(a)^2 + own(b)^2: three equations, three unknowns."
    ),
    "13.2": Exercise(
        grade_noise, noise_scale, "var(axis=0, ddof=1).sum() is the trace; subtract trace / n from the squared mean."
    ),
    "13.3": Exercise(
        grade_memory, same_memory, "One step of the new batch size has to forget as much as new / old steps did."
    ),
}
