"""Figures of the notebooks on kernels show what they say."""

from __future__ import annotations

import numpy as np

from pspin_lite.lessons.figures import kernels as draw


def test_intensity_is_flops_over_bytes():
    figure, line = draw.intensity([16, 32], {16: 3.0}, M=64, N=64, K=64, ridge=10)
    assert np.allclose(line, [2 * 64**3 / (4 * (2 * 64**3 / side + 64**2)) for side in (16, 32)])
    (axes,) = figure.axes
    assert axes.lines[1].get_ydata() == [3.0]
    assert axes.lines[2].get_ydata()[0] == 10


def test_schedule_does_all_work_in_order():
    figure, plans = draw.schedule(heads=2, chunks=3)
    assert len(plans["walk"]) == 6
    assert max(end for *_, end in plans["walk"]) == 6
    at_once = plans["all chunks at once"]
    ends = {kind: max(end for k, _, _, end in at_once if k == kind) for kind in ("write", "pass")}
    starts = {kind: min(start for k, _, start, _ in at_once if k == kind) for kind in ("pass", "read")}
    assert ends["write"] <= starts["pass"]
    assert ends["pass"] <= starts["read"]
    assert len([bar for axes in figure.axes for bar in axes.patches]) == 6 + 6 + 2 + 6


def test_errors_of_zero_can_be_seen():
    figure, shown = draw.decay_errors([-1, -10], {"a": [1e-3, 2.0], "b": [0.0, 1e-7]})
    assert shown == {"a": [1e-3, 2.0], "b": [1e-9, 1e-7]}
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata().tolist() == [1, 10]


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
