"""Intervals, against values worked out by hand and tables of Student's t."""

from __future__ import annotations

import math

import pytest

from pspin_lite.study import intervals, networks, records


@pytest.mark.parametrize(
    ("level", "degrees", "t"),
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.95, 4, 2.776), (0.95, 22, 2.074), (0.95, 36, 2.028),
     (0.99, 5, 4.032), (0.99, 22, 2.819), (0.998, 10, 4.144)],
)  # fmt: skip
def test_students_t_is_that_of_the_tables(level, degrees, t):
    assert intervals.student(level, degrees) == pytest.approx(t, abs=6e-4)


def test_a_variance_is_pooled_over_networks():
    runs = [{1: 1.0, 2: 2.0, 3: 3.0}, {1: 4.0, 2: 4.0, 3: 7.0}]  # squares about the means: 2 and 6
    assert intervals.pooled(runs) == intervals.Spread(8 / 4, 4)
    rest = intervals.pooled(runs, paired=True)  # means of seeds, without the networks': -1, -1/2, 3/2
    assert rest.degrees == 2
    assert rest.variance == pytest.approx((8 - 2 * (1 + 0.25 + 2.25)) / 2)
    assert intervals.pooled([*runs, {1: math.inf, 2: 1.0, 3: 1.0}]) == intervals.pooled(runs), "a run that diverged"
    alike = [{1: 1.0, 2: 2.0, 3: 3.0}, {1: 5.0, 2: 6.0, 3: 7.0}]
    assert intervals.pooled(alike, paired=True).variance == pytest.approx(0, abs=1e-12), "nothing but the seed"
    assert intervals.pooled([{1: 1.0}]).degrees == 0


def test_a_difference_by_hand():
    a, b = {1: 1.0, 2: 1.2, 3: 1.1}, {1: 1.0, 2: 1.0, 3: 1.0}
    spread = intervals.Spread(0.03, 4)
    one = intervals.difference(a, b, spread)
    assert one.mean == pytest.approx(0.1)
    assert one.half_width == pytest.approx(2.7764 * math.sqrt(0.03 * 2 / 3), rel=1e-4)
    assert not one.clear
    assert intervals.difference(a, b, intervals.Spread(1e-4, 4)).clear
    ten = intervals.difference(a, b, spread, family=10)  # each at 99.5%: t is 5.598 with 4 degrees
    assert ten.half_width == pytest.approx(5.5976 * math.sqrt(0.02), rel=1e-4)
    welch = intervals.difference(a, b, spread, intervals.Spread(0.03, 2))  # (2/100)^2 / (1e-4/4 + 1e-4/2) = 5.3
    assert welch.half_width == pytest.approx(2.5706 * math.sqrt(0.02), rel=1e-4)
    assert intervals.mean(a, spread).half_width == pytest.approx(2.7764 * 0.1, rel=1e-4)
    assert math.isinf(intervals.difference({1: 1.0}, {1: 2.0}, intervals.pooled([{1: 1.0}, {1: 2.0}])).half_width)


def test_equivalence_is_an_interval_within_a_bound():
    assert intervals.Difference(0.005, 0.01, 3).within(0.02)
    assert not intervals.Difference(0.005, 0.016, 3).within(0.02), "three seeds cannot tell"
    assert not intervals.Difference(-0.03, 0.001, 3).within(0.02), "clearly apart"


def test_speeches_are_drawn_whole():
    bit = math.log(2)
    a = [[[0, 30 * bit, 10], [0, 10 * bit, 10], [1, 50 * bit, 20]]] * 2
    b = [[[0, 20 * bit, 10], [0, 10 * bit, 10], [1, 20 * bit, 20]]]  # apart by 10 bits in 20 bytes, and by 30 in 20
    mean, low, high = intervals.over_speeches(a, b)
    assert (mean, low, high) == pytest.approx((1.0, 0.5, 1.5)), "two speeches: one of them twice in half of the draws"
    assert intervals.over_speeches(b, b) == (0, 0, 0)
    same = [[[n, 3 * bit, 2] for n in range(9)]], [[[n, 2 * bit, 2] for n in range(9)]]
    assert intervals.over_speeches(*same) == pytest.approx((0.5, 0.5, 0.5)), "a text that is the same everywhere"
    varied = [[[n, n * bit, 1] for n in range(9)]], [[[n, 0.0, 1] for n in range(9)]]
    narrow, wide = (intervals.over_speeches(*varied, family=family) for family in (1, 20))
    assert wide[1] < narrow[1] < 4 < narrow[2] < wide[2]
    with pytest.raises(ValueError, match="same windows"):
        intervals.over_speeches(a, [[[0, 1.0, 10]]])


def test_two_networks_are_compared_by_the_spread_of_their_groups():
    group = "bytes-1"
    every = [records.bits(group, arm.name) for arm in networks.GROUPS[group]]
    spread = records.group_spread(group)
    assert spread == intervals.pooled(every)
    assert spread.degrees == 2 * len(every)
    with records.noted() as read:
        gap = records.compare((group, "p-spin"), (group, "k1"))
    assert gap.half_width == pytest.approx(intervals.student(0.95, 22) * math.sqrt(spread.variance * 2 / 3))
    assert {name.rpartition("/")[0] for name in read} == {"bytes-1/p-spin", "bytes-1/k1"}
    across = records.compare((group, "p-spin"), ("bytes-64", "p-spin"), "recent")
    assert across.mean == pytest.approx(2.4959 - 2.1921, abs=1e-3)
