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


def test_what_a_restart_loses_adds_up():
    figure, shown = draw.restart(total=1200, buffer=500, stop=300, delivered=650, twice=21)
    assert shown == {"done": 500, "skipped": 50, "lost": 271}
    words = [text.get_text() for text in figure.axes[0].texts]
    assert {
        "300 given out",
        "450 in the buffer",
        "450 not read yet",
        "500 taken as done",
        "50 skipped at random",
    } <= set(words)
    assert {"In the end: 300 + 650 − 21 = 929", "929 come out, 21 of them twice", "271 never"} <= set(words)
