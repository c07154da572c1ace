"""Figures of notebook 09 show what they say."""

from __future__ import annotations

from math import log

import pytest

from pspin_lite.lessons.figures import data as draw


def test_two_models_are_equal_where_the_lines_cross():
    figure, shown = draw.bytes_per_token(
        [1800, 1900], [3.0, 2.5], [False, True], bits=2 / log(2), nats=6, marks={"here": 4}
    )
    left, right = figure.axes
    seen, unseen = left.lines
    assert seen.get_xydata().tolist() == [[1800, 3.0]]
    assert unseen.get_xydata().tolist() == [[1900, 2.5]]
    assert unseen.get_fillstyle() == "none"
    assert left.get_title(loc="left") == "One tokenizer: 2.5 to 3.0"
    assert shown["even"] == pytest.approx(3), "3 times 2 nats are 6"
    assert right.get_title(loc="left") == "Above 3.00, subwords are ahead"
    assert "here: 8.00" in [text.get_text() for text in right.texts]


def test_leaks():
    ours = ("every 20th", 1)
    figure, shown = draw.leaks(
        {"recent": [0.5], "every 20th": [1.0, 2.0, 5.0]}, [0, 1], {"same": [3, 5], "other": [0, 1]}, ours
    )
    left, right = figure.axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[0.5], [0.5, 0.5], [1, 2, 5], [2, 2], [2]], (
        "the last is ours"
    )
    assert [bar.get_height() for bar in right.patches] == [3, 5, 0, 1]
    assert [bar.get_y() for bar in right.patches] == [0, 0, 3, 5], "stacked"
    assert right.get_title(loc="left") == "Most copies: one year apart"
    assert shown["shares"]["every 20th"] == [1.0, 2.0, 5.0]


def test_packing_goes_on_at_the_left():
    figure, covered = draw.packing([0, 8], long=4, tokens=10)
    bars = [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches]
    assert bars == [(0, 4), (8, 2), (0, 2)], "the second crosses the end"
    assert covered.tolist() == [[0, 4], [8, 12]]
    assert figure.axes[0].get_title(loc="left") == "Which window reads which tokens", "4 to 7 are left out"
    whole = draw.packing([4, 0, 8], long=4, tokens=10)[0]
    assert whole.axes[0].get_title(loc="left") == "Each epoch reads every token once"
    first, _, over = figure.axes[0].patches
    after = draw.packing([12], long=4, tokens=10)[0].axes[0].patches[0]
    assert over.get_edgecolor() == after.get_facecolor() != first.get_facecolor(), "in the next epoch's colour"
    assert [text.get_text() for text in figure.legends[0].texts] == ["epoch 0", "belongs to the next epoch"]


def test_a_larger_buffer_mixes_better():
    state = draw.buffers({1: list(range(1000)), 1000: [*range(500, 1000), *range(500)]}.get)
    figure, numbers = state(buffer=1)
    assert figure.axes[0].get_title(loc="left") == "Buffer of 1: the first half draws 0% from the second half"
    assert list(numbers.values()) == ["100", "0 places"]
    assert not figure.axes[0].patches, "which the live form could not draw"
    [quarter] = figure.axes[0].collections
    assert quarter.get_paths()[0].get_extents().extents.tolist() == [0, 500, 500, 1000]
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == ["grey: 2nd half of the stream, out early", "not read yet"]
    dots, line = figure.axes[0].lines
    assert len(dots.get_xdata()) == 200, "one dot for every five"
    assert line.get_xydata().tolist() == [[0, 1], [999, 1000]], "as far as the buffer sees"
    figure, numbers = state(buffer=1000)
    assert "draws 100%" in figure.axes[0].get_title(loc="left")
    assert list(numbers.values()) == ["600", "500 places"]
