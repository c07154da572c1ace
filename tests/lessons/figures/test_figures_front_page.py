"""README's figure shows the records' own numbers, and its titles say what they show."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import front_page as draw


def test_the_front_has_a_row_for_each_network():
    ends = {"subwords": {"good": {1: 1.5}}, "bytes": {"bad": {1: 3.0}, "good": {1: 2.0, 2: 2.1}}}
    figure, shown = draw.front(ends, "a note", {"bytes": 1.9})
    assert [list(one) for one in shown.values()] == [["good"], ["good", "bad"]]
    assert shown["subwords"]["good"].tolist() == [1.5]
    upper, lower = figure.axes
    assert upper.get_xlim() == lower.get_xlim(), "one scale"
    assert [text.get_text() for text in upper.texts] == ["1.500", "a note"]
    *ends, counting = lower.texts
    assert [(text.get_text(), text.xy[1]) for text in ends] == [("3.000", 0), ("2.050", 1)]
    assert counting.get_text().strip().endswith("batch 1 reads: 1.90")
    assert lower.get_title("left") == "With bytes"
    left = draw.front({"bytes": {"near": {1: 1.85}, "far": {1: 2.5}}}, "", {"bytes": 1.9})[0].axes[0].texts
    assert [text.get_ha() for text in left[:2]] == ["left", "right"], "a number does not cross the line"


@pytest.mark.parametrize(
    ("bits", "title"),
    [
        ((1.47, 1.48, 1.35, 1.34), "Bytes: batch 64 ends lower,\nwith either network"),
        ((2.0, 1.8, 1.7, 1.5), "Bytes: the Transformer beats\np-Spin at either batch size"),
        ((1.47, 1.48, 1.7, 1.5), "With bytes"),
        ((1.47,), "With bytes"),
    ],
)
def test_the_front_says_what_decides(bits, title):
    names = ("p-Spin, batch 1", "Transformer, batch 1", "p-Spin, batch 64", "Transformer, batch 64")
    ends = {name: {1: value, 2: value} for name, value in zip(names, bits, strict=False)}
    [panel] = draw.front({"bytes": ends | {"other": {1: 1.0}}}, "", {})[0].axes
    assert panel.get_title("left") == title
    weights = {text.get_text(): text.get_weight() for text in panel.get_yticklabels()}
    assert weights == {name: "bold" if name in draw.PAIR else "normal" for name in [*ends, "other"]}
