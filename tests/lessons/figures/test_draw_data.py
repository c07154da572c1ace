"""The drawings of notebook 09 show what is computed."""

from __future__ import annotations

from pspin_lite.lessons.figures import draw_data as draw


def test_every_target_is_the_input_one_further():
    figure, pairs = draw.windows(["ab", "cde", "fghi"], 3)
    assert pairs == [("ab.", "b.c"), ("de.", "e.f"), ("ghi", "hi.")]
    words = [text.get_text() for text in figure.axes[0].texts]
    cells = [word for word in words if len(word) == 1 or word == "end"]
    assert len(cells) == 9 + 12 + 2 * 9, "documents, ribbon, inputs and targets"
    assert cells.count("end") == 3 + 2 + 3


def test_torn_pairs_are_counted_and_drawn():
    figure, torn = draw.splits(8, [(0, 1), (2, 3), (6, 7)])
    assert torn == {"every 4th speech": 1, "the last ones": 0}
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words.count("leak") == 1
    assert words.count("copy") == 5
    assert "In this example, one rule tears 1 pairs of copies apart, the other none" in words
