"""Exercises of notebook 12."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...study import records, stability
from . import Exercise, expect


def paired(a: list[float], b: list[float], t: float) -> tuple[float, float]:
    """Differences seed by seed; their mean, and t times their standard error."""
    d = np.array(a) - np.array(b)
    return d.mean(), t * d.std(ddof=1) / math.sqrt(len(d))


def grade_paired(answer) -> None:
    expect("0.03, 0.05, 0.04", answer([1.03, 2.05, 3.04], [1.0, 2.0, 3.0], 4.303), [0.04, 4.303 * 0.01 / math.sqrt(3)])
    expect("always the same difference: no width", answer([2.0, 5.0], [1.0, 4.0], 12.71), [1.0, 0.0])
    a, b = np.random.default_rng(0).normal(size=(2, 5))
    difference = records.difference(dict(enumerate(a)), dict(enumerate(b)))
    expect("five random pairs", answer(list(a), list(b), records.T_95[5]), [difference.mean, difference.half_width])


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


EXERCISES = {
    "12.1": Exercise(grade_paired, paired, "Subtract first; then mean, and t * std(ddof=1) / sqrt(number of pairs)."),
    "12.2": Exercise(
        grade_jitter, own_jitter, "np.var(a - b) is own(a)^2 + own(b)^2: three equations, three unknowns."
    ),
    "12.3": Exercise(
        grade_noise, noise_scale, "var(axis=0, ddof=1).sum() is the trace; subtract trace / n from the squared mean."
    ),
}
