"""Counts that fade: without fading they are those of probes.py; with it, a count is worth half after a half-life."""

from __future__ import annotations

import numpy as np
import pytest

import pspin_lite as ps
from pspin_lite.lessons import fading, probes

SPLITS = {year: ps.sequences.open("sotu-eras", "bytes", split=year, length=32) for year in ("1803", "2023")}
TESTS = fading.windows(SPLITS, 4)


def sequences(number: int) -> np.ndarray:
    data = ps.sequences.open("sotu-eras", "bytes", length=32, order="time", total=number)
    return np.stack([data.sequence(i) for i in range(number)]).astype(np.uint8)


def test_without_fading_counts_are_those_of_the_probes():
    seen = sequences(60)
    course = fading.learn(seen, TESTS, every=30)
    assert course.steps.tolist() == [30, 60]
    for column, end in enumerate((30, 60)):
        expected, entries = probes.count_scores(seen[:end], SPLITS, 4, windows=4)
        for row, year in enumerate(SPLITS):
            assert course.bits[row, column] == pytest.approx(expected[year][4])
    assert course.entries == sum(entries)


def test_a_sequence_is_predicted_before_it_is_learned():
    seen = np.stack([sequences(2)[0]] * 3)
    online = fading.learn(seen, TESTS, every=3).online
    assert online[0] == 8, "1/256 for every byte"
    assert online[2] < online[1] < 2


def test_a_count_is_worth_half_after_a_half_life():
    seen = np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3]], np.uint8)
    course = fading.learn(seen, {"t": np.array([[0, 1, 2]], np.uint8)}, half_life=1, every=3, order=0)
    total, m = 3 / 8 + 3 / 4 + 3 / 2, 3
    p = np.array([3 / 8 + m / 256, 3 / 4 + m / 256]) / (total + m)
    assert course.bits[0, 0] == pytest.approx(-np.log2(p).mean())


def test_a_function_that_fades_does_what_a_half_life_does():
    seen = sequences(60)
    expected = fading.learn(seen, TESTS, half_life=5, every=30)
    course = fading.learn(seen, TESTS, every=30, fade=lambda counts: counts * 2 ** (-1 / 5))
    assert course.bits == pytest.approx(expected.bits)
    assert course.online == pytest.approx(expected.online)


def test_order_makes_no_difference_to_counts_that_keep_all():
    seen = sequences(40)
    assert fading.learn(seen, TESTS, every=40).bits == pytest.approx(fading.learn(seen[::-1], TESTS, every=40).bits)
    faded = [fading.learn(one, TESTS, half_life=5, every=40).bits for one in (seen, seen[::-1])]
    assert abs(faded[0] - faded[1]).max() > 0.05


def test_a_half_life_too_short_for_its_numbers_is_refused():
    with pytest.raises(ValueError, match="half_life"):
        fading.learn(sequences(40), TESTS, half_life=0.01)
