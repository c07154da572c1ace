"""Exercises of notebook 11."""

from __future__ import annotations

import math

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


def best_gap(ours: dict[float, float], theirs: dict[float, float]) -> tuple[float, bool]:
    """The best of each; the search was wide enough if neither lies at an end of the rates that were tried."""
    best = [min(ends, key=ends.get) for ends in (ours, theirs)]
    inside = [min(ends) < rate < max(ends) for ends, rate in zip((ours, theirs), best, strict=True)]
    return ours[best[0]] - theirs[best[1]], all(inside)


def grade_best_gap(answer) -> None:
    def judged(what: str, ours: dict, theirs: dict, gap: float, wide: bool) -> None:
        said = answer(dict(ours), dict(theirs))
        assert isinstance(said, tuple), f"expected a pair (gap, wide enough), got {said!r}"
        expect(f"{what}: the gap", said[0], gap, 1e-6)
        assert bool(said[1]) is wide, f"{what}: wide enough is {wide}, got {said[1]!r}"

    valley = {0.1: 3.0, 0.2: 2.0, 0.4: 2.5}
    judged("both best at the same rate", valley, {0.1: 3.0, 0.2: 2.5, 0.4: 2.6}, -0.5, True)
    judged("each best at a rate of its own", valley, {0.1: 1.0, 0.2: 0.5, 0.4: 0.25, 0.8: 1.0}, 1.75, True)
    judged("theirs best at the highest rate", valley, {0.1: 3.0, 0.2: 2.5, 0.4: 2.0}, 0.0, False)
    judged("ours best at the lowest rate", {0.4: 2.5, 0.1: 1.0, 0.2: 2.0}, valley, -1.0, False)


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


EXERCISES = {
    "11.1": Exercise(
        grade_overtaken,
        overtaken,
        "Find the first loss at or below the target. The share of the way from the loss before it, as a power of the "
        "ratio of the two sequences, says how far to go.",
    ),
    "11.3": Exercise(
        grade_best_gap,
        best_gap,
        "min(ends, key=ends.get) is the rate with the lowest loss; min(ends) and max(ends) are the rates at both ends.",
    ),
    "11.2": Exercise(
        grade_verdict,
        verdict,
        "all(...) over the upper ends answers the first question, all(...) over the lower ends the second.",
    ),
}
