"""Exercises of notebook 11."""

from __future__ import annotations

from . import Exercise, expect


def split(ours_1: float, ours_64: float, theirs_1: float, theirs_64: float) -> tuple[float, float]:
    """Opposite sides of the square, averaged: what another network gains, and what another recipe does."""
    return (ours_1 - theirs_1 + ours_64 - theirs_64) / 2, (ours_1 - ours_64 + theirs_1 - theirs_64) / 2


def grade_split(answer) -> None:
    def judged(what: str, corners: tuple[float, ...], network: float, recipe: float) -> None:
        said = answer(*corners)
        assert isinstance(said, tuple), f"expected a pair (network, recipe), got {said!r}"
        expect(f"{what}: the network's gain", said[0], network, 1e-6)
        expect(f"{what}: the recipe's gain", said[1], recipe, 1e-6)

    judged("the network alone matters", (2.0, 2.0, 1.5, 1.5), 0.5, 0.0)
    judged("the recipe alone matters", (2.0, 1.75, 2.0, 1.75), 0.0, 0.25)
    judged("each gains more with one of the other", (4.0, 3.0, 3.5, 1.0), 1.25, 1.75)


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
        grade_split,
        split,
        "Another network is a vertical side of the square, p-Spin minus Transformer: average both. Another recipe is a "
        "horizontal side, batch 1 minus batch 64: average both.",
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
