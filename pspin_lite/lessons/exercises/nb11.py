"""Exercises of notebook 11."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from . import Exercise, expect


def overtaken(sequences: list[float], losses: list[float], target: float) -> float:
    """The first stretch that ends at the target or below it, and within it a straight line over log sequences."""
    for i, loss in enumerate(losses):
        if loss <= target:
            if i == 0:
                return sequences[0]
            share = (losses[i - 1] - target) / (losses[i - 1] - loss)
            return sequences[i - 1] * (sequences[i] / sequences[i - 1]) ** share
    return math.inf


def grade_overtaken(answer) -> None:
    expect("on a point", answer([100, 200, 400], [3.0, 2.0, 1.0], 2.0), 200, 1e-4)
    expect("half-way in loss: the geometric mean", answer([100, 10_000], [3.0, 1.0], 2.0), 1000, 1e-4)
    expect("a quarter of the way", answer([16, 256, 512], [2.0, 1.0, 0.5], 1.75), 32, 1e-4)
    assert answer([100, 200], [3.0, 2.0], 1.0) == math.inf, "a curve that never gets there: expected math.inf"
    expect("there from the first point on", answer([100, 200], [3.0, 2.0], 3.5), 100, 1e-4)
    expect("the first time, though the curve rises again", answer([1, 4, 16, 64], [3.0, 1.0, 3.0, 1.0], 2.0), 2, 1e-4)


def verdict(intervals: list[tuple[float, float]], margin: float) -> str:
    """Of a match: every interval below the margin, every one above it, or neither."""
    if all(high <= margin for _, high in intervals):
        return "holds"
    if all(low > margin for low, _ in intervals):
        return "not seen"
    return "undecided"


def grade_verdict(answer) -> None:
    def judged(what: str, intervals: list[tuple[float, float]], expected: str, margin: float = 0.02) -> None:
        said = answer(intervals, margin)
        assert said == expected, f"{what}: got {said!r}, expected {expected!r}"

    judged("both below the margin", [(-0.03, 0.01), (-0.05, 0.019)], "holds")
    judged("both above it", [(0.1, 0.2), (0.03, 0.09)], "not seen")
    judged("one below, one above", [(-0.03, 0.01), (0.03, 0.09)], "undecided")
    judged("behind for certain, by less than the margin perhaps", [(0.001, 0.03), (0.004, 0.07)], "undecided")
    judged("above zero, but below the margin", [(0.001, 0.01), (0.002, 0.015)], "holds")
    judged("another margin", [(0.001, 0.01), (0.002, 0.015)], "undecided", 0.005)


def attend_once(q, k, v):
    """Softmax of the scores over all keys, then the mean of the values with those weights."""
    return torch.softmax(k @ q / q.shape[-1] ** 0.5, 0) @ v


def grade_once(answer) -> None:
    one = torch.tensor([[2.0, 3.0]])
    expect("a single token attends to itself", answer(torch.tensor([1.0, 0]), one, one), one[0])
    generator = torch.Generator().manual_seed(1)
    for t, d in ((2, 2), (7, 16)):
        q, k, v = torch.randn(3, t, d, generator=generator)
        whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        expect(f"the last of {t} tokens, width {d}", answer(q[-1], k, v), whole[-1], 1e-4)
    large = torch.tensor([[100.0, 0], [0, 100.0]])
    expect("large scores", answer(torch.tensor([100.0, 0]), large, torch.eye(2)), torch.tensor([1.0, 0]))


EXERCISES = {
    "11.1": Exercise(
        grade_overtaken,
        overtaken,
        "Find the first loss at or below the target. The share of the way from the loss before it, as a power of the "
        "ratio of the two sequences, says how far to go.",
    ),
    "11.2": Exercise(
        grade_verdict,
        verdict,
        "all(...) over the upper ends answers the first question, all(...) over the lower ends the second.",
    ),
    "11.3": Exercise(
        grade_once,
        attend_once,
        "Scores are k @ q over the root of d; torch.softmax(scores, 0) are the weights; no mask is needed.",
    ),
}
