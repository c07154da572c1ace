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


def test_running_mean_stands_in_the_middle():
    places, means = draw.running([1, 2, 6, 3], 3)
    assert places.tolist() == [2, 3]
    assert means == pytest.approx([3, 11 / 3])


def test_curves():
    raw = [8.0, 6, 4, 2]
    figure, shown = draw.curves(raw, {"recent": ([0, 4], [8.0, 2.5])}, window=2, falling=3, marks={4: 2.5})
    assert data(figure.axes[0])[:2] == [raw, shown["means"].tolist()]
    assert data(figure.axes[0])[-2:] == [[8.0, 2.5], [2.5]], "validations, and the ring"
    assert figure.axes[0].texts[-1].get_text() == "2.50"
    assert shown["cut"].tolist() == [1, 2], "above the frame"
    assert "up to 8.0" in figure.axes[0].get_title(loc="left")
    assert shown["means"] == pytest.approx([7, 5, 3])
    [band] = figure.axes[0].patches
    assert (band.get_x(), band.get_width()) == (3, 1), "where the learning rate falls"


def test_yardsticks():
    counted = {"held-out": {"a": [4.0, 3.0], "b": [4.0, 2.0]}, "recent": {"a": [4.5, 3.5], "b": [4.5, 3.0]}}
    levels = {"held-out": {"network": 1.8}, "recent": {"network": 2.3}}
    figure, _ = draw.yardsticks(counted, levels)
    for axes, split in zip(figure.axes, counted, strict=True):
        assert axes.get_title(loc="left").startswith(split)
        assert data(axes)[:2] == list(counted[split].values())
        assert set(data(axes)[2]) == {levels[split]["network"]}
        assert axes.get_title(loc="left").endswith("counting does not beat the network")
    counted["held-out"]["a"] = [4.0, 1.7]
    levels["recent"]["bz2 alone"] = 2.2
    left, right = (axes.get_title(loc="left") for axes in draw.yardsticks(counted, levels)[0].axes)
    assert left.endswith("counting 1 bytes back beats the network")
    assert right.endswith("bz2 alone beats network and counts")


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


def test_memory():
    kept = {"fresh": [0.5, 0.1, 0.0], "trained": [0.6, 0.2, 0.03]}
    figure, shown = draw.memory({1: 4.5, 4: 3.51, 8: 3.5}, 3.5, [1, 2, 8], kept)
    assert data(figure.axes[0]) == [[3.5, 3.5], [4.5, 3.51, 3.5]]
    assert (shown["enough"], shown["last"]) == (4, 0.03), "within one per cent; the trained network's"
    assert data(figure.axes[1]) == [pytest.approx([50, 10, 0]), pytest.approx([60, 20, 3])]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["4 bytes are nearly enough", "3% of a byte is left 8 bytes later"]


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
    assert figure.panels[0].xlim == (0, 1)
    assert one("We have ", 2.0, 256)[0].panels[0].xlim[1] < 1, "short bars are not lost on a long axis"
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
