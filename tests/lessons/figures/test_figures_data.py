"""Figures of notebook 09 show what they say."""

from __future__ import annotations

import numpy as np

from pspin_lite.lessons.figures import data as draw


def test_lines_and_dots_are_what_is_given():
    figure, values = draw.merges([1, 1.5, 1.75])
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[0, 1], [1, 1.5], [2, 1.75]]
    assert values.tolist() == [1, 1.5, 1.75]
    figure, _ = draw.bytes_a_token([1800, 1900], [3.0, 2.5], 3.8)
    dots, line = figure.axes[0].lines
    assert dots.get_xydata().tolist() == [[1800, 3.0], [1900, 2.5]]
    assert set(line.get_ydata()) == {3.8}


def test_leaks():
    figure, shown = draw.leaks({"recent": [0.5], "every 20th": [1.0, 2.0, 5.0]}, [0, 10], [3.0, 1.0])
    left, right = figure.axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[0.5], [0.5, 0.5], [1, 2, 5], [2, 2]]
    assert right.lines[0].get_ydata().tolist() == [3.0, 1.0]
    assert shown["shares"]["every 20th"] == [1.0, 2.0, 5.0]


def test_packing_goes_on_at_the_left():
    figure, covered = draw.packing([0, 8], long=4, tokens=10)
    bars = [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches]
    assert bars == [(0, 4), (8, 2), (0, 2)], "the second crosses the end"
    assert covered.tolist() == [[0, 4], [8, 12]]
    colours = {bar.get_facecolor() for bar in figure.axes[0].patches}
    assert len(colours) == 2
    assert [text.get_text() for text in figure.legends[0].texts] == ["repetition 0", "repetition 1"]


def test_shuffling():
    figure, order = draw.shuffling([2, 0, 1], 2)
    dots, line = figure.axes[0].lines
    assert dots.get_xydata().tolist() == [[0, 2], [1, 0], [2, 1]]
    assert np.allclose(line.get_xydata(), [[0, 2], [3, 5]])
    assert order.tolist() == [2, 0, 1]
