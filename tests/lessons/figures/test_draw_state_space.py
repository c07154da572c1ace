"""Drawings of the state space carry the numbers they explain."""

from __future__ import annotations

from pspin_lite.lessons.figures import draw_state_space as draw


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_what_is_written_is_read():
    figure, numbers = draw.write_and_read([[1, 0], [0, 1]], [[3, 4], [5, 6]], [1, 1])
    assert numbers["h"].tolist() == [[3, 4], [5, 6]]
    assert numbers["o"].tolist() == [8, 10]
    assert {"8", "10"} <= set(texts(figure))


def test_pairs_and_passes_are_counted():
    figure, counts = draw.three_forms(8, 0.8, {"recurrent": 1, "quadratic": 8, "chunked": 3})
    assert counts["recurrent"] == {"pairs": 8, "passes": 7}
    assert counts["quadratic"] == {"pairs": 36, "passes": 0}
    assert counts["chunked"] == {"pairs": 6 + 6 + 3, "passes": 2}
    assert "■ 15 pairs used" in texts(figure)
