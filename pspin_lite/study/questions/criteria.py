"""The criteria of docs/second_study.md, as functions of differences: each returns one of the page's words.

A difference is in bits per byte, first network minus second, so below zero the first is better. It comes once for every
validation split. Both splits decide: a criterion is met if it is met on each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ... import _checks as checks
from ..intervals import Difference

CLOSE = 0.02  # bits per byte: equivalence, and how near is near enough
NEARBY = 0.05  # between the best and the worst seed
APART = 0.05  # between what two networks pay for a wrong rate
WORKS = 0.1  # above Adam
CLEAR = 0.05  # from which on one run tells
LOWER, SHARE = 0.8, 0.1  # how many times, or by which share of steps, a gradient is calmer
UNDECIDED, NOT_RUN, NOT_COMPUTED = "undecided", "not run yet", "not computed"
TESTS: dict[str, Callable[[Difference], bool]] = {
    "better": lambda gap: gap.high < 0,
    "worse": lambda gap: gap.low > 0,
    "equivalent": lambda gap: gap.within(CLOSE),
    "near": lambda gap: gap.high < CLOSE,
    "far": lambda gap: gap.low > CLOSE,
}
FACTS = {"better": "below 0", "worse": "above 0", "equivalent": f"within {CLOSE}"}  # of an interval, in words
IMPLIED = {"far": "worse", "near": ""}  # what need not be said beside it
Gaps = Sequence[Difference]  # one for each split
Words = Mapping[str, Sequence[str]]  # word -> tests, of which each split has to pass one


def met(gaps: Gaps, *tests: str) -> bool:
    """Every split passes one of the tests."""
    for test in tests:
        checks.choice("test", test, TESTS)
    return all(any(TESTS[test](gap) for test in tests) for gap in gaps)


def interval(gaps: Gaps, words: Words) -> tuple[str, list[str]]:
    """(the first word whose criterion is met, what else is true of the intervals on both splits and not said by it).

    Two criteria can be met at once: an interval from -0.015 to -0.005 is below zero and within 0.02."""
    word = next((word for word, tests in words.items() if met(gaps, *tests)), UNDECIDED)
    tests = words.get(word, ())
    said = {*tests, *(IMPLIED.get(test, "") for test in tests)} if len(tests) < 2 else set()
    return word, [fact for test, fact in FACTS.items() if met(gaps, test) and test not in said]


def half(first: Gaps, second: Gaps) -> str:
    """Does one change bring at least half of what the other brings, and something at all?"""
    share = [one.mean <= other.mean / 2 for one, other in zip(first, second, strict=True)]
    if met(first, "better") and all(share):
        return "yes"
    return "no" if met(second, "better") and not any(share) else UNDECIDED


def stable(results: Sequence[Sequence[float]]) -> str:
    """results: of every seed, for each split. A run that diverged is infinite."""
    finite = all(math.isfinite(x) for split in results for x in split)
    return "stable" if finite and all(max(split) - min(split) < NEARBY for split in results) else "not stable"


def wider(costs: Sequence[tuple[float, float]]) -> str:
    """costs: what wrong rates cost (the first network, the second), for each beta2 and split. Infinite: it diverged."""
    if all(mine <= other - APART and math.isfinite(mine) for mine, other in costs):
        return "wider"
    if all(mine >= other + APART and math.isfinite(other) for mine, other in costs):
        return "narrower"
    return "no difference seen"


def trains(gaps: Sequence[float]) -> str:
    """gaps: the best of several rates minus Adam, for each split. Infinite if every rate diverged."""
    if not all(map(math.isfinite, gaps)):
        return "fails"
    return "works" if all(gap < WORKS for gap in gaps) else "trains"


def matters(gaps: Sequence[float]) -> str:
    """gaps: what a change does, for each split, from single runs or without an interval."""
    if all(gap <= -CLEAR for gap in gaps) or all(gap >= CLEAR for gap in gaps):
        return "matters"
    return "does not" if all(abs(gap) < CLOSE for gap in gaps) else UNDECIDED


def closes(gaps: Sequence[float]) -> str:
    """Is the best of one network as good as another?"""
    if all(gap < CLOSE for gap in gaps):
        return "as good"
    return "still worse" if all(gap >= CLEAR for gap in gaps) else UNDECIDED


def moves(gaps: Sequence[float]) -> str:
    """Does a difference to the Transformer shrink or grow? From single runs."""
    if all(gap <= -CLEAR for gap in gaps):
        return "shrinks"
    return "grows" if all(gap >= CLEAR for gap in gaps) else "no difference seen"


def calmer(pairs: Sequence[tuple[float, float]], share: bool = False) -> str:
    """pairs: a measure of one network and of another, for each seed. Of sizes the quotient counts, of shares the
    difference."""
    if all(one <= other - SHARE if share else one <= LOWER * other for one, other in pairs):
        return "calmer"
    if all(one >= other + SHARE if share else LOWER * one >= other for one, other in pairs):
        return "less calm"
    return "no difference seen"
