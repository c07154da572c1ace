"""The intervals of notebook 12 that a reader moves are those of the study at three seeds and all comparisons."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import parts, verdict
from pspin_lite.study import records
from pspin_lite.study.claims import comparisons


@pytest.mark.parametrize("network", verdict.CHOICES)
def test_at_three_seeds_it_is_the_interval_of_the_study(network):
    for split in records.SPLITS:
        gap = verdict.difference(network, 3, comparisons.FAMILY, split)
        known = parts.minus(network, "p-spin", split)
        assert (gap.mean, gap.half_width) == pytest.approx((known.mean, known.half_width), abs=1e-6)
        assert verdict.difference(network, 1, 31, split).half_width == pytest.approx(gap.half_width * 3**0.5)


def test_the_picture_says_what_its_numbers_say():
    figure, numbers = verdict.verdict("k0-same-size", 3, 31)
    assert figure.panels[0].title == numbers["we call it"] == "undecided"
    called = {many: verdict.verdict("k1", 3, many)[1]["we call it"] for many in (1, 2, 31)}
    assert called == {1: "equivalent", 2: "equivalent", 31: "undecided"}, "as the notebook says"
    for seeds in (1, 2, 3):
        for many in (1, 2, 31):
            assert verdict.verdict("k0-same-size", seeds, many)[1]["we call it"] != "clear", "as the notebook says"
    assert verdict.difference("k0-same-size", 3, 1).clear
    for bar, split in zip(figure.lines[3::2], records.SPLITS, strict=True):
        assert f"{(bar.x[1] - bar.x[0]) / 2:.3f}" in numbers[split]
