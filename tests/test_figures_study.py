"""Figures of the study show the records' own numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite import figures_study as draw
from pspin_lite import records


def runs():
    return {name: list(records.seeds("smoke", name).values()) for name in ("p-spin", "transformer")}


def test_learning_curves_have_the_axes_of_the_records():
    figure, shown = draw.learning(runs())
    record = records.seeds("smoke", "p-spin")[1]
    assert len(figure.axes) == 4
    assert shown["p-spin"]["bits"].shape == (3, 6), "step 0 is left out"
    assert shown["p-spin"]["bits"][0, -1] == records.curve(record)[1][-1]
    assert shown["p-spin"]["sequences"][-1] == 60
    assert shown["p-spin"]["tokens"][-1] == pytest.approx(60 * 64 / 1e6)
    assert shown["p-spin"]["flops"][-1] == pytest.approx(60 * record["summary"]["flops_a_step"] / 1e12)
    assert all(axis.get_xlabel() for axis in figure.axes)


def test_finals_are_sorted():
    figure, shown = draw.finals({"bad": {1: 3.0, 2: 3.2}, "good": {1: 2.0, 2: 2.1}, "middle": {1: 2.5, 2: 2.4}}, "bits")
    assert list(shown) == ["good", "middle", "bad"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["bad", "middle", "good"], "best on top"
    assert shown["bad"].tolist() == [3.0, 3.2]


def test_raw_losses_are_smoothed_over_the_window():
    _, shown = draw.raw_losses({"a": np.arange(10.0), "b": np.ones(10)}, window=4)
    assert shown["a"].tolist() == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]
    assert np.allclose(shown["b"], 1)


def test_retention_has_a_cell_for_every_year_and_step():
    matrix = np.arange(6.0).reshape(2, 3)
    figure, shown = draw.retention(matrix, ["1803", "1823"], [400, 800, 1200], [0, 2])
    boxes = [patch.get_xy() for patch in figure.axes[0].patches]
    assert boxes == [(-0.5, -0.5), (1.5, 0.5)]
    assert (figure.axes[0].images[0].get_array() == matrix).all()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["400", "800", "1,200"]
    assert shown is matrix
