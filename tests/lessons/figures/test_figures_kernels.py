"""Figures of the notebooks on kernels show what they say."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.lessons.figures import kernels as draw


def test_intensity_is_flops_over_bytes():
    figure, line = draw.intensity([16, 32], {16: 3.0}, m=64, ridge=6)
    assert np.allclose(line, [2 * 64**3 / (4 * (2 * 64**3 / side + 64**2)) for side in (16, 32)])
    (axes,) = figure.axes
    assert axes.lines[1].get_ydata() == [3.0]
    assert axes.lines[2].get_ydata()[0] == 6
    assert axes.get_title(loc="left") == "Tiles of 32 reach 6.0 flops per byte"


def test_a_crossing_lies_between_its_neighbours():
    assert draw.crossing([1, 2, 8], [1e-4, 1e-2, 1e2]) == pytest.approx(4)
    assert draw.crossing([5, 10], [0.5, 2.0]) == pytest.approx(50**0.5)


def test_errors_of_zero_can_be_seen():
    figure, shown = draw.decay_errors([-1, -10], {"a": [1e-3, 2.0], "b": [0.0, 1e-7]})
    assert shown == {"a": [1e-3, 2.0], "b": [1e-9, 1e-7]}
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata().tolist() == [1, 10]


def test_a_line_that_leaves_ends_in_an_arrow():
    figure, _ = draw.decay_errors([-1, -10, -100], {"a": [1.0, 100.0, 1e4], "b": [1e-7] * 3}, ceiling=1e3)
    line, _, exit_mark, *_ = figure.axes[0].lines
    assert line.get_ydata()[-1] == exit_mark.get_ydata()[0] == 1e3
    assert exit_mark.get_xdata()[0] == pytest.approx(1000**0.5)


def test_errors_are_relative_to_the_largest_entry():
    explore = draw.gate_gradients({5.0: ([1.0, -2.0], {"good": [1.0, -2.002], "bad": [9.0, 0.0]})})
    _, numbers = explore(strength=5.0, method="good")
    assert numbers == {"relative error": pytest.approx(1e-3), "largest true entry": 2.0}
    figure, numbers = explore(strength=5.0, method="bad")
    assert numbers["relative error"] == 4
    assert figure.axes[0].get_title(loc="left") == "Log decays of −5: off by 4 times the largest"
    assert np.abs(figure.axes[0].lines[1].get_ydata()).max() < 2, "drawn within the axes"


def test_bars_are_stacked():
    figure, totals = draw.stacked_bytes({"one": {"x": 1.0, "y": 2.0}, "two": {"y": 4.0}})
    assert totals == {"one": 3.0, "two": 4.0}
    (axes,) = figure.axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [1.0, 0.0, 2.0, 4.0]
    assert [bar.get_x() for bar in axes.patches] == [0.0, 0.0, 1.0, 0.0]


def test_a_tile_takes_as_long_as_its_slowest_token():
    figure, slowest = draw.steps_taken(np.array([3, 5, 2, 1, 4]), tile=2)
    assert slowest.tolist() == [5, 5, 2, 2, 4]
    assert [bar.get_height() for bar in figure.axes[0].patches] == [3, 5, 2, 1, 4]
    levels = figure.axes[0].lines
    assert [list(level.get_ydata()) for level in levels] == [[5, 5], [2, 2], [4, 4]]
    assert levels[0].get_xdata()[-1] < levels[1].get_xdata()[0], "tiles are told apart"
