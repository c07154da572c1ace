"""Figures of notebook 10 show what they say."""

from __future__ import annotations

import ipywidgets as ipw
import numpy as np
import pytest

from pspin_lite.lessons import live, widgets
from pspin_lite.lessons.figures import training as draw


def data(axes) -> list:
    return [np.asarray(line.get_ydata()).tolist() for line in axes.lines]


def test_running_mean_stands_in_the_middle():
    places, means = draw.running([1, 2, 6, 3], 3)
    assert places.tolist() == [2, 3]
    assert means == pytest.approx([3, 11 / 3])


def test_curves():
    raw = [8.0, 6, 4, 2]
    figure, shown = draw.curves(raw, {"recent": ([0, 4], [8.0, 2.5])}, window=2, falling=3, marks={4: 2.5})
    assert data(figure.axes[0])[:2] == [raw, shown["means"].tolist()]
    assert data(figure.axes[0])[-2:] == [[8.0, 2.5], [2.5]], "validations, and the ring"
    assert figure.axes[0].texts[-1].get_text() == "2.500"
    assert shown["cut"].tolist() == [1, 2], "above the frame"
    assert "up to 8.0" in figure.axes[0].get_title(loc="left")
    assert shown["means"] == pytest.approx([7, 5, 3])
    [band] = figure.axes[0].patches
    assert (band.get_x(), band.get_width()) == (3, 1), "where the learning rate falls"


def test_jitter():
    judges = {"model": [1.5, 2.0, 1.75], "counts": [2.0, 2.0, 3.0]}
    figure, shares = draw.jitter(10, [2.0, 3.0, 2.5], judges, peaks=1)
    assert shares == pytest.approx({"model": 1, "counts": 0}, abs=1e-9)
    assert [data(axes)[1] for axes in figure.axes] == [[2, 3, 2.5], [1.5, 2, 1.75], [2, 2, 3]]
    assert {axes.lines[0].get_xdata()[0] for axes in figure.axes} == {11}, "the peak of the first, in every row"
    assert figure.axes[1].get_title(loc="left").startswith("model: 100%")


def test_attractors():
    panels = {name: np.arange(6.0).reshape(3, 2) + 1 for name in ("radius", "gamma")}
    figure, _ = draw.attractors([0, 1, 2], panels)
    for axes, (name, values) in zip(figure.axes, panels.items(), strict=True):
        assert axes.get_title(loc="left") == name
        assert data(axes)[:2] == values.T.tolist()
        at = [(text.get_position()[1], text.get_text()) for text in axes.texts[:2]]
        assert at == [(5, "layer 0"), (6, "layer 1")], "labels stand at the ends of their lines"
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "linear"]
    assert set(data(figure.axes[0])[2]) == {1.0}


def test_surprise():
    figure, grid = draw.surprise(b"ab\nc\xff", [1.0, 2, 3, 4, 8], wide=3)
    assert grid[0].tolist() == [1, 2, 3]
    assert np.isnan(grid[1, 2])
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b", "↵", "c", "·"]
    assert figure.axes[1].get_yticklabels()[-1].get_text() == "≥ 8", "what is cut off"


def test_memory():
    kept = {"fresh": [0.5, 0.1, 0.0], "trained": [0.6, 0.2, 0.03]}
    figure, shown = draw.memory({1: 4.5, 4: 3.51, 8: 3.5}, 3.5, [1, 2, 8], kept)
    assert data(figure.axes[0]) == [[3.5, 3.5], [4.5, 3.51, 3.5], [3.51]], "and a ring where it is enough"
    assert (shown["enough"], shown["last"]) == (4, 0.03), "within one per cent; the trained network's"
    assert data(figure.axes[1]) == [pytest.approx([50, 10, 0]), pytest.approx([60, 20, 3])]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["4 bytes are nearly enough", "3% of a byte is left 8 bytes later"]


# The widget

SCORES = {"held-out": [4.0, 3.0, 1.7], "recent": [4.5, 3.5, 2.4]}
LEVELS = {"held-out": {"network": 1.8, "bz2": 2.1}, "recent": {"network": 2.5, "bz2": 2.2}}


def test_counting_shows_scores_levels_and_what_the_counts_write():
    asked = []
    one = draw.counting(SCORES, LEVELS, lambda order: (asked.append(order) or "a text", 0.5))
    figure, numbers = one(2)
    assert numbers == {"real words": "50%", "counts write": "…a text…"}
    assert [panel.title for panel in figure.panels] == ["held-out: counts win from order 2", "recent: bz2 wins"]
    for i, split in enumerate(SCORES):
        *levels, ring, curve = (line.y.tolist() for line in figure.lines if line.panel == i)
        assert sorted(y[0] for y in levels) == sorted(LEVELS[split].values())
        assert (curve, ring) == (SCORES[split], [SCORES[split][2]])
    assert {text for _, _, _, text, _ in figure.texts} >= {"network: 1.80", "counts of order 2: 1.70", "bz2: 2.20"}
    one(2)
    assert asked == [2], "a text is written once"


def test_counting_may_lose():
    [panel] = draw.counting({"x": [4.0, 3.0]}, {"x": {"network": 1.0}}, lambda order: ("", 0.0))(0)[0].panels
    assert panel.title == "x: the network wins"


def test_counting_is_live_without_a_kernel():
    draw_order = draw.counting(SCORES, LEVELS, lambda order: (f"order {order}", 0.5))
    spec = live.specify(draw_order, dict(order=ipw.IntSlider(1, min=0, max=2)))
    assert len(spec["frames"]) == 3


def test_widget_follows_its_slider():
    found = widgets.Explorer(
        draw.counting(SCORES, LEVELS, lambda order: (f"order {order}", 0.5)), "counting", order=ipw.IntSlider(1, max=2)
    )
    before = found.numbers.value + found.picture.value
    found.controls["order"].value = 2
    assert "widget-error" not in found.numbers.value
    assert found.numbers.value + found.picture.value != before
