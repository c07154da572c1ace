"""The drawings of notebook 09 show what is computed."""

from __future__ import annotations

import pytest

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
    # Of 12 documents, the first 5 count as done; of the others, 6 to 8 are skipped
    figure, counts = draw.restart(before=[0, 2, 3, 5, 6], after=[5, 9, 10, 11], total=12, done=5)
    assert counts == {"before": (3, 2), "after": (0, 4), "twice": (0, 1), "never": (2, 2)}
    words = [text.get_text() for text in figure.axes[0].texts]
    assert "The restart loses 2 + 2 of 12 documents" in words
    assert [word for word in words if " out" in word] == [
        "3 out",
        "2 out",
        "4 out",
        "3 out",
        "5 out, 1 of them twice",
    ]
    assert {"2 in buffer", "5 in the buffer or not read", "3 skipped", "2 never"} <= set(words)
    bars = [(bar.get_y(), bar.get_x(), bar.get_x() + bar.get_width()) for bar in figure.axes[0].patches]
    rows = [[(left, right) for y, left, right in bars if y == row] for row in sorted({y for y, *_ in bars})]
    ends = [(min(left for left, _ in row), max(right for _, right in row)) for row in rows]
    assert ends == [pytest.approx((2, 70))] * 3, "all rows have all documents"
    lost = [sorted(row)[1] for row in rows[::2]]
    assert lost[0] == pytest.approx(lost[1]), "what was in the buffer is what never comes"
