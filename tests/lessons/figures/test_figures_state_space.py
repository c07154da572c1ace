"""Figures and the widget of notebook 01 show what they say."""

from __future__ import annotations

import math

import ipywidgets as ipw
import numpy as np
import pytest
import torch

from pspin_lite.lessons import live, widgets
from pspin_lite.lessons.figures import state_space as draw
from pspin_lite.state_space import decay_mask


def test_half_life():
    assert draw.half_life(0.5) == 1
    assert draw.half_life(0.99) == pytest.approx(68.97, abs=0.01)
    assert draw.half_life(1.0) == math.inf


@pytest.mark.parametrize(
    ("decay", "chunk", "T", "expected"),
    [
        (0.5, 2, 4, {"sum of fractions left": 1.875, "of that sum, from the state": "20%",
                     "chunks": 2, "pairs used": "6", "of all pairs": "10"}),
        (1.0, 4, 10, {"half-life, tokens": "for ever", "sum of fractions left": 10,
                      "of that sum, from the state": "80%", "chunks": 3,
                      "pairs used": "23", "of all pairs": "55"}),
        (0.9, 256, 64, {"of that sum, from the state": "0%", "chunks": 1,
                        "pairs used": "2,080", "of all pairs": "2,080"}),
    ],
)  # fmt: skip
def test_widget_counts(decay, chunk, T, expected):
    figure, numbers = draw.decay_and_chunks(decay, chunk, T)
    assert {name: numbers[name] for name in expected} == expected
    heat, left = figure.axes
    M = decay_mask(torch.full((T,), math.log(decay), dtype=torch.float64)).numpy()
    assert np.allclose(heat.images[0].get_array(), draw.pairs_and_state(M, chunk))
    shown = np.concatenate([patch.get_data().values for patch in left.patches])
    assert np.allclose(shown, M[-1])
    assert heat.get_title() == f"{numbers['pairs used']} of {numbers['of all pairs']} pairs"
    assert left.get_title() == f"Last token: {numbers['of that sum, from the state']} from the state"
    assert left.get_ylim() == (0, 1.02)
    assert heat.get_ylim() == (T + 0.5, 0.5)
    corners = [line.get_xdata().reshape(-1, 6)[:, :2].tolist() for line in heat.lines]
    assert corners == ([[[a + 0.5, min(a + chunk, T) + 0.5] for a in range(0, T, chunk)]] if chunk < T else [])


def test_pairs_are_grey_and_the_state_is_purple():
    picture = draw.pairs_and_state(np.tril(np.ones((4, 4))), 2)
    grey, purple = (draw.shades(colour, np.ones(1))[0] for colour in (draw.PAIR, draw.STATE))
    expected = {(0, 0): grey, (3, 2): grey, (2, 1): purple, (3, 0): purple, (1, 2): (1, 1, 1), (0, 3): (1, 1, 1)}
    for at, colour in expected.items():
        assert np.allclose(picture[at], colour), at


def test_widget_follows_its_sliders():
    found = widgets.Explorer(
        draw.decay_and_chunks,
        "decay-and-chunks",
        decay=ipw.SelectionSlider(options=[0.5, 0.9, 1.0], value=0.9),
        chunk=ipw.SelectionSlider(options=[1, 16, 256], value=16),
        T=ipw.IntSlider(value=64, min=8, max=256),
    )
    for name, value in (("decay", 1.0), ("chunk", 1), ("T", 256), ("chunk", 256), ("T", 8), ("decay", 0.5)):
        before = found.numbers.value
        found.controls[name].value = value
        assert "widget-error" not in found.numbers.value
        assert found.numbers.value != before


def test_dots_are_measured_and_lines_predicted():
    ages, values = [0, 1, 10], {0.5: np.array([1, 0.5, 0.1])}
    figure, shown = draw.clarity(values, ages, T=100, d=64)
    line, dots = figure.axes[0].lines
    assert line.get_ydata()[0] == pytest.approx(draw.predict_clarity(0.5, 0, 100, 64))
    assert dots.get_ydata().tolist() == [1, 0.5, 0.1]
    assert shown is values


def test_recall_is_the_formula():
    T, d, decay, age = 50, 16, 0.9, 7
    others = sum(decay ** (2 * n) for n in range(T) if n != age)
    expected = decay**age / math.sqrt(decay ** (2 * age) + others / d)
    assert draw.predict_clarity(decay, age, T, d) == pytest.approx(expected)
    assert draw.predict_clarity(1.0, 79_999, 80_000, 88) == pytest.approx(math.sqrt(88 / 80_000), rel=1e-2)


@pytest.mark.parametrize(
    ("decay", "d", "T", "found"), [(1.0, 88, 80_000, "lost"), (1.0, 4096, 1_000, "clear"), (0.9, 88, 1_000, "lost")]
)
def test_the_title_says_whether_the_first_token_is_found(decay, d, T, found):
    figure, numbers = draw.recall(decay, d, T)
    title = f"The first token (orange): cosine {numbers['cosine of the first token']}, {found}"
    assert figure.axes[0].get_title() == title


def test_recall_is_live_on_a_page_without_a_kernel():
    controls = dict(
        decay=ipw.SelectionSlider(options=[0.9, 1.0], value=1.0),
        d=ipw.SelectionSlider(options=[16, 88], value=88),
        T=ipw.SelectionSlider(options=[1_000, 80_000], value=80_000),
    )
    assert len(live.specify(draw.recall, controls)["frames"]) == 8


def test_time_and_flops_are_relative_to_the_smallest():
    figure, shown = draw.times([1, 2, 4], [0.2, 0.1, 0.12], [10, 30, 50])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1\nrecurrent", "2", "4\nquadratic"]
    assert axes.get_title(loc="left") == "Fewest flops at C = 1, fastest at C = 2 to 4"
    assert np.allclose(shown["time"], [2, 1, 1.2])
    assert np.allclose(shown["flops"], [1, 3, 5])
    assert axes.lines[0].get_ydata().tolist() == [2, 1, 0.5], "in proportion to the number of chunks"
