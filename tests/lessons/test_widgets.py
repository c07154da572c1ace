"""Widgets without a front end: a slider moves, picture and numbers follow, errors are shown."""

from __future__ import annotations

import ipywidgets as ipw
from matplotlib.figure import Figure

from pspin_lite.lessons import widgets


def draw(K: int, gamma: float):
    if K == 3:
        raise ValueError("three <is> not allowed")
    figure = Figure(figsize=(4, 2))
    figure.subplots().plot([0, K], [0, gamma])
    return figure, {"K squared": K**2, "verdict": "contracts" if gamma < 1 else "does not"}


def test_numbers_follow_the_sliders():
    found = widgets.Explorer(
        draw, "trial", K=ipw.IntSlider(value=5, min=0, max=20), gamma=ipw.FloatSlider(value=0.5, min=0, max=2)
    )
    assert found.picture.value.startswith("<svg")
    assert found.picture.layout.height == "210px"
    assert '<b data-name="K squared">25</b>' in found.numbers.value
    before = found.picture.value
    found.controls["K"].value = 7
    assert '<b data-name="K squared">49</b>' in found.numbers.value
    assert found.picture.value != before
    found.controls["gamma"].value = 1.5
    assert '<b data-name="verdict">does not</b>' in found.numbers.value
    assert "trial" in found._dom_classes


def test_errors_are_seen():
    found = widgets.Explorer(
        draw, "trial", K=ipw.IntSlider(value=5, min=0, max=20), gamma=ipw.FloatSlider(value=0.5, min=0, max=2)
    )
    found.controls["K"].value = 3
    assert 'class="widget-error">ValueError: three &lt;is&gt; not allowed' in found.numbers.value
    found.controls["K"].value = 4
    assert "widget-error" not in found.numbers.value


def test_the_same_input_gives_the_same_svg():
    assert widgets.svg(draw(2, 0.5)[0]) == widgets.svg(draw(2, 0.5)[0])
