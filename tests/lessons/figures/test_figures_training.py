"""Figures of notebook 10 show what they say; the sampling widget draws what the generator draws from."""

from __future__ import annotations

from unittest import mock

import ipywidgets as ipw
import numpy as np
import pytest
import torch

import pspin_lite as ps
from pspin_lite import generation
from pspin_lite.lessons import widgets
from pspin_lite.lessons.figures import training as draw


def data(axes) -> list:
    return [np.asarray(line.get_ydata()).tolist() for line in axes.lines]


def test_schedule():
    cfg = ps.preset("byte-paper")
    figure, rates = draw.schedule(cfg)
    assert rates[[0, 499, 6999]] == pytest.approx([cfg.lr / 500, cfg.lr, cfg.lr])
    assert rates[-1] == pytest.approx(0.1 * cfg.lr)
    assert np.allclose(data(figure.axes[0])[0], 1e4 * rates)
    assert [text.get_text() for text in figure.axes[0].texts] == list(draw.PHASES)


def test_running_mean_stands_in_the_middle():
    places, means = draw.running([1, 2, 6, 3], 3)
    assert places.tolist() == [2, 3]
    assert means == pytest.approx([3, 11 / 3])


def test_curves():
    raw = [8.0, 6, 4, 2]
    figure, shown = draw.curves(raw, {"recent": ([0, 4], [8.0, 2.5])}, window=2, zoom=2)
    left, right = figure.axes
    assert data(left) == [raw, shown["means"].tolist(), [8.0, 2.5]]
    assert shown["means"] == pytest.approx([7, 5, 3])
    assert data(right) == [[4.0, 2.0], [5.0, 3.0], [2.5]]


def test_rulers():
    steps, bits = [0, 2, 4, 6], {"held-out": [8.0, 3, 2, 1]}
    figure, shown = draw.rulers(steps, bits, {"sequences": 1, "bytes": 512, "flops": 7e9})
    assert data(figure.axes[0]) == [bits["held-out"]]
    assert shown["bytes"].tolist() == [0, 1024, 2048, 3072]
    rulers = list(figure.axes[0].child_axes)
    assert [ruler.get_xlabel() for ruler in rulers] == ["bytes", "flops"]
    assert [tick.get_text() for tick in rulers[0].get_xticklabels()] == ["0", "1,024", "2,048", "3,072"]


def test_sizes_cut_off_where_the_shorter_run_ends():
    small = {"raw": [8.0, 6, 4, 2], "held-out": ([0, 4], [8.0, 2.5]), "bytes": 10, "flops": 1e3}
    large = {"raw": [8.0, 4], "held-out": ([0, 2], [8.0, 4.5]), "bytes": 15, "flops": 1e6}
    figure, shown = draw.sizes({"small": small, "large": large}, window=20)
    left, right = figure.axes
    assert data(left) == data(right) == [[7, 5, 3], [8.0, 2.5], [8.0, 4], [8.0, 4.5]], "means of two steps and of one"
    assert left.get_xlim() == (0, 30)
    assert shown["small", "bytes"][0].tolist() == [15, 25, 35]
    assert shown["large", "flops"][0].tolist() == [1e6, 2e6]
    assert [line.get_xdata().tolist() for line in left.lines[1::2]] == [[0, 40], [0, 30]]


def test_yardsticks():
    counted = {"held-out": {"a": [4.0, 3.0], "b": [4.0, 2.0]}, "recent": {"a": [4.5, 3.5], "b": [4.5, 3.0]}}
    levels = {"held-out": {"network": 1.8}, "recent": {"network": 2.3}}
    figure, _ = draw.yardsticks(counted, levels)
    for axes, split in zip(figure.axes, counted, strict=True):
        assert axes.get_title() == split
        assert data(axes)[:2] == list(counted[split].values())
        assert set(data(axes)[2]) == {levels[split]["network"]}


def test_norms_and_jitter():
    figure, shown = draw.norms([1.0, 2, 3], clip=1.0, window=3)
    assert data(figure.axes[0])[0] == [1, 2, 3]
    assert shown["means"] == pytest.approx([2])
    assert set(data(figure.axes[0])[2]) == {1.0}
    figure, rest = draw.jitter(10, [2.0, 3.0], [1.5, 2.0])
    assert rest.tolist() == [0.5, 1.0]
    assert data(figure.axes[0]) == [[2, 3], [1.5, 2], [0.5, 1]]
    assert figure.axes[1].lines[0].get_xydata().tolist() == [[1.5, 2], [2, 3]]


def test_attractors():
    panels = {name: np.arange(6.0).reshape(3, 2) + 1 for name in ("radius", "residual", "gamma", "zeros")}
    figure, _ = draw.attractors([0, 1, 2], panels)
    for axes, (name, values) in zip(figure.axes, panels.items(), strict=True):
        assert axes.get_title() == name
        assert data(axes)[:2] == values.T.tolist()
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log", "linear", "linear"]
    assert set(data(figure.axes[0])[2]) == {1.0}


def test_surprise():
    figure, grid = draw.surprise(b"ab\nc\xff", [1.0, 2, 3, 4, 8], wide=3)
    assert grid[0].tolist() == [1, 2, 3]
    assert np.isnan(grid[1, 2])
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b", "↵", "c", "·"]


def test_where():
    figure, _ = draw.where([3.0, 2.0], [0, 1, 2], [5.0, 4, 3], {1: 4.5, 8: 3.5})
    assert [bar.get_height() for bar in figure.axes[0].patches] == [3, 2]
    assert data(figure.axes[1]) == [[5, 4, 3], [4.5, 3.5]]
    assert [list(line.get_xdata()) for line in figure.axes[1].lines] == [[1, 2, 3], [1, 8]]


# The widget


@pytest.fixture(scope="module")
def run():
    return ps.load("byte-lite")


@pytest.mark.parametrize(("temperature", "top_k"), [(0, 5), (0.5, 256), (1.0, 3), (2.0, 40)])
def test_drawn_from_is_what_choose_draws(temperature, top_k):
    logits = torch.tensor([2.0, 0.5, 0.0, -1.0, -3.0]).double()
    rng = torch.Generator().manual_seed(0)
    drawn = [generation.choose(logits, temperature, top_k, None, rng) for _ in range(4000)]
    p = draw.drawn_from(logits, temperature, top_k)
    assert p.sum().item() == pytest.approx(1)
    assert np.bincount(drawn, minlength=5) / 4000 == pytest.approx(p.numpy(), abs=0.03)


def test_sampler_shows_the_models_probabilities(run):
    prompt = "the people of the United "
    figure, numbers = draw.sampler(run.model, run.tokenizer)(prompt, 1.0, 256)
    with torch.no_grad():
        p = run.model(torch.as_tensor(run.tokenizer.encode(prompt))[None])[0, -1].double().softmax(-1)
    best = p.argsort(descending=True)[: draw.LIKELIEST]
    *bars, dots = figure.lines
    assert [bar.x[1] for bar in bars] == pytest.approx(p[best].tolist(), abs=1e-4)
    assert dots.x.tolist() == pytest.approx(p[best].tolist(), abs=1e-4)
    assert figure.panels[0].yticklabels[::-1] == tuple(draw.spell(int(i)) for i in best)
    assert numbers["bits of the choice"] == pytest.approx(float(-(p * p.log2()).sum()), abs=1e-3)
    assert "".join(ps.stream(run.model, run.tokenizer, prompt, 8, 1.0, 256, seed=1)) in numbers["one way to go on"]


def test_sampler_cold_and_cut(run):
    one = draw.sampler(run.model, run.tokenizer)
    figure, numbers = one("the people of the United ", 0, 256)
    assert [bar.x[1] for bar in figure.lines[:-1]] == [1.0] + [0.0] * (draw.LIKELIEST - 1)
    assert (numbers["bits of the choice"], numbers["bytes above 1%"]) == (0, "1")
    figure, _ = one("the people of the United ", 5.0, 3)
    assert [bar.x[1] > 0 for bar in figure.lines[:-1]] == [True] * 3 + [False] * (draw.LIKELIEST - 3)


def test_sampler_reads_a_prompt_once_and_goes_on_once(run, monkeypatch):
    """So that it can follow a slider."""
    spies = {name: mock.Mock(wraps=getattr(run.model, name)) for name in ("prefill", "step")}
    for name, spy in spies.items():
        monkeypatch.setattr(run.model, name, spy)
    one = draw.sampler(run.model, run.tokenizer, tokens=8)
    for temperature in (0.3, 0.5, 0.3, 0.5):
        widgets.svg(one("We have ", temperature, 256)[0])
    assert {name: spy.call_count for name, spy in spies.items()} == dict(prefill=1, step=2 * 8)


def test_widget_follows_its_controls(run):
    found = widgets.Explorer(
        draw.sampler(run.model, run.tokenizer),
        "sampler",
        prompt=ipw.Dropdown(options=["We have ", "The Congress"], value="We have "),
        temperature=ipw.FloatSlider(0.8, min=0, max=2, step=0.1),
        top_k=ipw.IntSlider(256, min=1, max=256),
    )
    for name, value in (
        ("temperature", 0.0),
        ("temperature", 2.0),
        ("top_k", 1),
        ("top_k", 9),
        ("prompt", "The Congress"),
    ):
        before = found.numbers.value + found.picture.value
        found.controls[name].value = value
        assert "widget-error" not in found.numbers.value
        assert found.numbers.value + found.picture.value != before
