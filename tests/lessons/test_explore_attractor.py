"""What stands behind the attractor's widgets: maps, verdicts, radii, gradient errors, and the pictures' numbers."""

from __future__ import annotations

import re

import ipywidgets as ipw
import numpy as np
import pytest
import torch

import pspin_lite as ps
from pspin_lite import _fast_linear as fast_linear
from pspin_lite import attractor, fixed_points
from pspin_lite.lessons import explore_attractor as ea
from pspin_lite.lessons import widgets
from pspin_lite.lessons.figures import live


def test_fixed_points_of_two_spins():
    for kind, count, attract in (("alone", 9, 4), ("agree", 3, 2), ("frustrated", 1, 0)):
        layer = fixed_points.two_spins(kind, 0.5, 4.0)
        points, radii = ea.all_fixed_points(*layer)
        assert (len(points), (radii < 1).sum()) == (count, attract)
        assert np.allclose(attractor.step(torch.tensor(points), *layer), points, atol=1e-8)


@pytest.mark.parametrize("form", ["trained", "deployed", "deployed, packed"])
def test_layer_of_any_model(form, tmp_path, monkeypatch):
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-smoke")).eval()
    if form != "trained":
        if form.endswith("packed"):  # even small matrices take the fast products
            monkeypatch.setattr(fast_linear, "SMALL", 1)
        text = torch.arange(8)[None]
        whole = fixed_points.layers(model, text)[1]
        ps.deploy.export(model, tmp_path / "model.safetensors")
        model = ps.deploy.load(tmp_path / "model.safetensors")
        for name, a, b in zip(
            ("z", "w_int", "gamma"), whole, fixed_points.layers(model, torch.arange(8)[None])[1], strict=True
        ):
            assert torch.allclose(a, b, rtol=2e-3, atol=2e-3), name  # float16 and two digits
    within = 1e-4 if form.endswith("packed") else 1e-6
    tokens = torch.randint(0, 256, (2, 7))
    z, w_int, gamma = fixed_points.layers(model, tokens)[1]
    assert z.shape == (14, 64)
    seen = []
    block = model.blocks[1].attractor
    handle = block.w_down.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    with torch.no_grad():
        model(tokens)
    handle.remove()
    assert torch.allclose(attractor.unrolled(z, w_int, gamma, 5), seen[0].reshape(14, -1), atol=within)
    assert fixed_points.examine(z, w_int, gamma, K=5).verdict == fixed_points.SETTLES


DRAWN = {
    "random": (ea.draw_random, dict(K=5, gamma=0.5, scale=3.0)),
    "wild": (ea.draw_random, dict(K=0, gamma=0.5, scale=8.0)),
    "two": (ea.draw_two_spins, dict(kind="agree", K=5, gamma=0.5, w=4.0)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_show_what_was_found(name):
    draw, values = DRAWN[name]
    figure, numbers = draw(**values)
    text = figure.svg()
    assert text.startswith("<svg")
    assert text.count("</svg>") == 1
    assert text.count("<polyline") == sum(line.width > 0 and len(line.x) > 1 for line in figure.lines)
    axes = figure.still().axes
    assert [a.get_title() for a in axes] == [p.title for p in figure.panels]
    assert sum(len(a.lines) for a in axes) == len(figure.lines)
    assert list(numbers.values())[-1] == dict(random="8 of 8", wild="0 of 8", two="3 of 5")[name]
    assert draw(**values)[0].svg() == text, "the same input gives the same picture"


def test_data_become_points_of_the_picture():
    figure = ea.draw_two_spins("frustrated", 5, 0.5, 4.0)[0]
    wide, high = 72 * figure.size[0], 72 * figure.size[1]
    left, bottom, width, height = figure.panels[0].place
    (x,), (y,) = figure._points(0, np.array([0.0]), np.array([1.0]))
    assert (x, y) == pytest.approx((wide * (left + width / 2), high * (1 - bottom - height)))
    for line in re.findall(r'points="([^"]+)"', figure.svg()):
        numbers = np.array([pair.split(",") for pair in line.split()], float)
        assert ((numbers >= 0) & (numbers <= [wide, high])).all()


def test_numbers_follow_the_sliders():
    found = widgets.Explorer(
        ea.draw_random, "attractor-random", K=ipw.IntSlider(5, 0, 20), gamma=ipw.FloatSlider(0.5, min=-0.5, max=0.5),
        scale=ipw.FloatSlider(0.8, min=0, max=8),
    )  # fmt: skip

    def read(name):
        return re.search(f'data-name="{name}">([^<]*)<', found.numbers.value)[1]

    assert read("tokens that settle") == "8 of 8"
    before = float(read("residual at K"))
    found.controls["K"].value = 9
    assert float(read("residual at K")) < before
    bound = float(read("Lipschitz bound"))
    found.controls["gamma"].value = 0.25
    assert float(read("Lipschitz bound")) == pytest.approx(bound / 2, rel=0.01)
    found.controls["scale"].value = 8.0
    assert float(read("spectral radius")) < float(read("Lipschitz bound"))
    assert "widget-error" not in found.numbers.value


def test_a_redraw_draws_no_axes(monkeypatch):
    """They are what takes matplotlib its time (`make bench`, the table of widgets)."""
    calls = [lambda draw=draw, values=values: draw(**values)[0].svg() for draw, values in DRAWN.values()]
    before = [call() for call in calls]
    monkeypatch.setattr(live, "_axes", None)
    assert [call() for call in calls] == before
    live.frame.cache_clear()
    with pytest.raises(TypeError):
        calls[0]()


def test_what_notebook_05_answers_about_its_sliders():
    def two(kind, gamma, w):
        return ea.draw_two_spins(kind, 5, gamma, w)[1]

    counts = [two("agree", 0.5, w)["fixed points"] for w in (3.1, 3.2)]
    assert counts == ["1, 1 attract", "3, 2 attract"]
    assert two("alone", -0.5, 4.0)["fixed points"] == "1, 0 attract"
    below, above = (two("frustrated", 0.5, w) for w in (2.2, 2.3))
    assert below["spectral radius"] < 1 < above["spectral radius"]
    verdicts = [fixed_points.examine(*fixed_points.two_spins("frustrated", 0.5, s), K=5).verdict for s in (2.2, 2.3)]
    assert verdicts == [fixed_points.SLOW, fixed_points.OSCILLATES]
    stuck = two("agree", -0.5, 8.0)
    assert (stuck["fixed points"], stuck["layer settles"]) == ("3, 2 attract", "no")
    assert round(stuck["spectral radius"], 2) == 0.01
    assert two("agree", 0.5, 4.0)["paths that settle"] == "3 of 5"
    frustrated = fixed_points.two_spins("frustrated", 0.5, 4.0)
    late, half, later = (attractor.unrolled(*frustrated, K) for K in (400, 402, 404))
    assert torch.allclose(later, late), "back after four steps"
    assert not torch.allclose(half, late, atol=0.1), "and not after two"
    for K, scale, radius in ((5, 2.5, 0.47), (20, 4.5, 0.89)):
        below, above = (ea.draw_random(K, each)[1] for each in (scale - 0.25, scale))
        assert below["residual at K"] < 0.01 <= above["residual at K"]
        assert round(above["spectral radius"], 2) == radius
    assert ea.draw_random(5, 3.0)[1] == pytest.approx(ea.draw_random(5, 6.0, 0.25)[1]), "only the product counts"
