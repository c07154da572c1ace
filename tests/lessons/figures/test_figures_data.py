"""Figures of notebook 09 show what they say."""

from __future__ import annotations

import numpy as np

from pspin_lite.lessons.figures import data as draw


def test_lines_and_dots_are_what_is_given():
    figure, _ = draw.bytes_per_token([1800, 1900], [3.0, 2.5], 3.8)
    dots, line = figure.axes[0].lines
    assert dots.get_xydata().tolist() == [[1800, 3.0], [1900, 2.5]]
    assert set(line.get_ydata()) == {3.8}
    assert figure.axes[0].get_title(loc="left") == "One tokenizer, 2.5 to 3.0 bytes per token"


def test_merges_gain_less_only_if_they_do():
    figure, _ = draw.merging([0, 10, 20], [1.0, 1.5, 1.7])
    assert figure.axes[0].get_title(loc="left") == "Later merges gain less"
    assert draw.merging([0, 10, 20], [1.0, 1.1, 1.7])[0].axes[0].get_title(loc="left") == "What merges gain"


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
    colours = {bar.get_facecolor() for bar in figure.axes[0].patches}
    assert len(colours) == 2
    assert [text.get_text() for text in figure.legends[0].texts] == ["epoch 0", "belongs to the next epoch"]


def test_shuffling():
    figure, order = draw.shuffling([2, 0, 1], 2)
    dots, line = figure.axes[0].lines
    assert dots.get_xydata().tolist() == [[0, 2], [1, 0], [2, 1]]
    assert np.allclose(line.get_xydata(), [[0, 2], [3, 5]])
    assert order.tolist() == [2, 0, 1]


def test_a_larger_buffer_mixes_better():
    state = draw.buffers({1: list(range(1000)), 1000: [*range(500, 1000), *range(500)]}.get)
    figure, numbers = state(buffer=1)
    assert "moves a document by 0 places" in figure.axes[0].get_title(loc="left")
    assert list(numbers.values()) == ["99", "0 per cent"]
    assert len(figure.axes[0].lines[0].get_xdata()) == 200, "one dot for every five"
    assert list(state(buffer=1000)[1].values()) == ["599", "100 per cent"]
