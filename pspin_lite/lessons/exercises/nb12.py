"""Exercises of notebook 12."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...study import intervals, records
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


def pooled_deviation(networks: list[list[float]]) -> float:
    """Squared distances from each network's own mean, over the degrees of freedom: one fewer than runs, per network."""
    squares = sum(((np.array(runs) - np.mean(runs)) ** 2).sum() for runs in networks)
    return math.sqrt(squares / sum(len(runs) - 1 for runs in networks))


def grade_pooled(answer) -> None:
    expect("one network: its own deviation", answer([[1.0, 2.0, 3.0]]), 1.0)
    expect("the networks' means do not count", answer([[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]]), 1.0)
    expect("three runs and two", answer([[1.0, 2.0, 3.0], [5.0, 9.0]]), math.sqrt(10 / 3))
    rows = np.random.default_rng(0).normal(size=(6, 3))
    known = intervals.pooled(dict(enumerate(row)) for row in rows).variance
    expect("six random networks of three runs", answer([list(row) for row in rows]), math.sqrt(known))


def frozen_gate(gate: torch.Tensor) -> float:
    """Of value · gate, what value · mean(gate) leaves is value · (gate - mean): the value's variance cancels."""
    return gate.mean() ** 2 / (gate**2).mean()


def grade_frozen(answer) -> None:
    expect("a gate that never moves", answer(torch.tensor([0.5, 0.5, 0.5])), 1.0)
    expect("a gate that is as often +1 as −1", answer(torch.tensor([1.0, -1.0])) + 1.0, 1.0)
    expect("0.4 and 0.6", answer(torch.tensor([0.4, 0.6])), 0.25 / 0.26)
    generator = torch.Generator().manual_seed(0)
    gate = torch.randn(200_000, generator=generator, dtype=torch.float64).sigmoid()
    value = torch.randn(200_000, generator=generator, dtype=torch.float64)
    left = (value * gate - value * gate.mean()).var() / (value * gate).var()
    expect("200,000 sigmoid gates", answer(gate), 1 - left, 0.01)


EXERCISES = {
    "12.1": Exercise(
        grade_pooled,
        pooled_deviation,
        "Add up squared distances from each network's own mean; a network of n runs counts n - 1 in the divisor.",
    ),
    "12.2": Exercise(
        grade_frozen,
        frozen_gate,
        "What is missed is value * (gate - mean): compare the mean of its square with that of value * gate.",
    ),
    "12.3": Exercise(grade_paired, paired, "Subtract first; then mean, and t * std(ddof=1) / sqrt(number of pairs)."),
}
