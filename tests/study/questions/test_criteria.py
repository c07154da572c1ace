"""Each kind of criterion, at its border and on both sides of it, and with splits that do not agree."""

from __future__ import annotations

import math

import pytest

from pspin_lite.study.intervals import Difference
from pspin_lite.study.questions import criteria

TINY = 1e-9
EARNS = {"earns": ["better"], "silent": ["equivalent"]}


def gap(low: float, high: float) -> Difference:
    return Difference((low + high) / 2, (high - low) / 2, 3)


def ends(low: float, high: float) -> list[Difference]:
    return [gap(low, high)] * 2


@pytest.mark.parametrize(
    ("test", "low", "high", "passes"),
    [
        ("better", -0.5, -TINY, True),
        ("better", -0.5, 0.0, False),
        ("better", -0.5, 0.1, False),
        ("worse", TINY, 0.5, True),
        ("worse", 0.0, 0.5, False),
        ("worse", -0.1, 0.5, False),
        ("equivalent", -0.0199, 0.0199, True),
        ("equivalent", -0.0201, 0.0, False),
        ("equivalent", 0.0, 0.0201, False),
        ("near", -0.5, 0.0199, True),
        ("near", -0.5, 0.0201, False),
        ("far", 0.0201, 0.5, True),
        ("far", 0.0199, 0.5, False),
    ],
)
def test_an_interval_is_tested_on_both_splits(test, low, high, passes):
    words = {"yes": [test]}
    assert criteria.interval(ends(low, high), words)[0] == ("yes" if passes else "undecided")
    sure = {"better": gap(-9, -8), "worse": gap(8, 9), "equivalent": gap(0, 0), "near": gap(-9, -8), "far": gap(8, 9)}
    for pair in ([gap(low, high), sure[test]], [sure[test], gap(low, high)]):
        assert criteria.interval(pair, words)[0] == ("yes" if passes else "undecided"), "each split can undo it"


@pytest.mark.parametrize("test", ["equivalent", "near", "far"])
def test_the_border_itself_does_not_count(test):
    border = Difference(criteria.CLOSE, 0.0, 3)
    assert not criteria.met([border, border], test)


def test_the_first_word_counts_and_what_else_is_true_is_said():
    assert criteria.interval(ends(-0.015, -0.005), EARNS) == ("earns", ["within 0.02"])
    assert criteria.interval(ends(-0.5, -0.4), EARNS) == ("earns", [])
    assert criteria.interval(ends(-0.01, 0.01), EARNS) == ("silent", [])
    assert criteria.interval(ends(0.005, 0.015), EARNS) == ("silent", ["above 0"])
    assert criteria.interval(ends(0.3, 0.4), EARNS) == ("undecided", ["above 0"])
    assert criteria.interval([gap(-0.5, -0.4), gap(-0.01, 0.01)], EARNS) == ("undecided", []), "one word for each split"
    match = {"yes": ["near"], "no": ["far"]}
    assert criteria.interval(ends(0.03, 0.04), match) == ("no", [])
    assert criteria.interval(ends(0.01, 0.04), match) == ("undecided", ["above 0"])
    assert criteria.interval(ends(-0.04, -0.03), match) == ("yes", ["below 0"])


def test_as_good_is_better_or_equivalent_on_each_split():
    words = {"as good": ["better", "equivalent"], "worse": ["worse"]}
    assert criteria.interval([gap(-0.5, -0.4), gap(-0.01, 0.01)], words)[0] == "as good"
    assert criteria.interval([gap(-0.5, -0.4), gap(-0.01, 0.03)], words)[0] == "undecided"
    assert criteria.interval(ends(0.1, 0.2), words)[0] == "worse"
    assert criteria.interval(ends(0.005, 0.015), words) == ("as good", ["above 0", "within 0.02"])


def test_a_test_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="test: got"):
        criteria.interval(ends(0, 1), {"yes": ["nicer"]})


def test_half_of_another_gain():
    second = ends(-0.5, -0.3)  # -0.4 on average
    assert criteria.half(ends(-0.25, -0.15), second) == "yes", "the half itself"
    assert criteria.half(ends(-0.25, -0.14), second) == "no"
    assert criteria.half([gap(-0.25, -0.15), gap(-0.25, -0.14)], second) == "undecided", "the splits do not agree"
    assert criteria.half(ends(-0.5, 0.0), second) == "undecided", "more than half, but it may be nothing"
    assert criteria.half([gap(-0.5, 0.1), gap(-0.5, -0.1)], second) == "undecided"
    assert criteria.half(ends(-0.01, 0.01), ends(-0.3, 0.1)) == "undecided", "nothing to be half of"


def test_stable_is_closer_than_a_bound_on_both_splits():
    near, far = [2.0, 2.01, 2.049], [2.0, 2.01, 2.051]
    assert criteria.stable([near, near]) == "stable"
    assert criteria.stable([near, far]) == criteria.stable([far, near]) == "not stable"
    assert criteria.stable([[0.0, criteria.NEARBY], near]) == "not stable", "the bound itself"
    assert criteria.stable([[2.0, math.inf], [math.inf, math.inf]]) == "not stable"


def test_a_wider_range_of_rates():
    less, more, alike = (0.0, 0.05), (0.05, 0.0), (0.0, 0.0499)
    assert criteria.wider([less] * 4) == "wider", "the border itself counts"
    assert criteria.wider([more] * 4) == "narrower"
    for i in range(4):
        for rest in (less, more):
            costs = [rest] * 4
            costs[i] = alike
            assert criteria.wider(costs) == "no difference seen", "one beta2 or split can undo it"
    assert criteria.wider([(0.0499, 0.0)] * 4) == "no difference seen"
    assert criteria.wider([less, less, more, more]) == "no difference seen"
    assert criteria.wider([(0.1, math.inf)] * 4) == "wider"
    assert criteria.wider([(math.inf, 0.1)] * 4) == "narrower"
    assert criteria.wider([(math.inf, math.inf)] * 4) == "no difference seen"


def test_sgd_works_below_a_bound_on_both_splits():
    assert criteria.trains([0.0999, -1.0]) == "works"
    assert criteria.trains([criteria.WORKS, 0.0]) == criteria.trains([0.0, 0.2]) == "trains"
    assert criteria.trains([math.inf, math.inf]) == "fails"


def test_what_single_runs_can_tell():
    assert criteria.matters([-0.05, -0.2]) == criteria.matters([0.05, 0.2]) == "matters", "the border itself counts"
    assert criteria.matters([0.0199, -0.0199]) == "does not"
    assert criteria.matters([0.02, 0.0]) == criteria.matters([-0.2, 0.2]) == criteria.matters([0.2, 0.0]) == "undecided"
    assert criteria.closes([0.0199, -1.0]) == "as good"
    assert criteria.closes([0.05, 0.06]) == "still worse"
    assert criteria.closes([0.02, 0.06]) == criteria.closes([0.01, 0.06]) == "undecided"
    assert criteria.moves([-0.05, -0.1]) == "shrinks"
    assert criteria.moves([0.05, 0.1]) == "grows"
    assert criteria.moves([0.049, 0.1]) == criteria.moves([-0.1, 0.1]) == "no difference seen"


def test_a_calmer_gradient_is_calmer_with_every_seed():
    assert criteria.calmer([(8.0, 10.0), (1.0, 2.0)]) == "calmer"
    assert criteria.calmer([(10.0, 8.0), (2.0, 1.0)]) == "less calm"
    assert criteria.calmer([(8.1, 10.0), (1.0, 2.0)]) == criteria.calmer([(10, 8.1)]) == "no difference seen"
    assert criteria.calmer([(0.375, 0.5)], share=True) == "calmer"
    assert criteria.calmer([(0.5, 0.375)], share=True) == "less calm"
    assert criteria.calmer([(0.41, 0.5), (0.1, 0.5)], share=True) == "no difference seen"
