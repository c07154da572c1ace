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
    assert axes.lines[2].get_ydata()[-1] == 32 / 4, "what large matrices would give"
    assert axes.lines[3].get_ydata()[0] == 6
    assert axes.get_title(loc="left") == "Tiles of 32 reach 6.0 flops per byte"


def test_a_crossing_lies_between_its_neighbours():
    assert draw.crossing([1, 2, 8], [1e-4, 1e-2, 1e2]) == pytest.approx(4)
    assert draw.crossing([5, 10], [0.5, 2.0]) == pytest.approx(50**0.5)


def test_errors_of_zero_can_be_seen():
    figure, shown = draw.decay_errors({"a": {1: 1e-3, 10: 2.0}, "b": {1: 0.0, 10: 1e-7}})
    assert shown == {"a": [1e-3, 2.0], "b": [1e-9, 1e-7]}
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata().tolist() == [1, 10]
    assert "8.1" in [text.get_text() for text in axes.texts], "where no digit is right"


def test_a_line_that_leaves_ends_at_the_ceiling_and_ticks_where_it_passes_one():
    figure, _ = draw.decay_errors(
        {"a": {1: 0.1, 10: 10.0, 100: 1e5}, "b": dict.fromkeys((1, 10, 100), 1e-7)}, ceiling=1e3
    )
    line, _, tick, *_ = figure.axes[0].lines
    assert line.get_ydata()[-1] == 1e3
    assert line.get_xdata()[-1] == pytest.approx(1000**0.5)
    assert tick.get_xdata()[0] == pytest.approx(10**0.5)


def test_errors_are_relative_to_the_largest_entry():
    explore = draw.gate_gradients({5.0: ([1.0, -2.0], {"good": [1.0, -2.002], "bad": [9.0, 0.0]})})
    _, numbers = explore(strength=5.0, method="good")
    assert numbers == {"relative error": pytest.approx(1e-3), "largest true entry": 2.0}
    figure, numbers = explore(strength=5.0, method="bad")
    assert numbers["relative error"] == 4
    assert figure.axes[0].get_title(loc="left") == "Log decays of −5: off by 4 times the largest"
    assert np.abs(figure.axes[0].lines[1].get_ydata()).max() < 2, "drawn within the axes"


def test_a_method_has_one_colour_in_both_figures():
    values = {"a": [1e-3, 2.0], "b": [1e-5, 1e-4]}
    figure, _ = draw.decay_errors({name: dict(zip((1, 10), pair, strict=True)) for name, pair in values.items()})
    named = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    explore = draw.gate_gradients({1.0: ([1.0, 2.0], values)})
    for name in values:
        reference, line = explore(strength=1.0, method=name)[0].axes[0].lines
        assert line.get_color() == named[name] != reference.get_color()
