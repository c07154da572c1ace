"""What stands behind the attractor's widgets: maps, verdicts, radii, gradient errors, and the pictures' numbers."""

from __future__ import annotations

import re

import ipywidgets as ipw
import numpy as np
import pytest
import torch
from helpers import with_grads

import pspin_lite as ps
from pspin_lite import attractor, fast_linear, sketch, widgets
from pspin_lite import explore_attractor as ea


@pytest.mark.parametrize(
    ("kind", "gamma", "scale", "verdict"),
    [
        ("agree", 0.5, 1.0, ea.CONTRACTS),
        ("agree", 0.5, 4.0, ea.SEVERAL),
        ("agree", -0.5, 8.0, ea.OSCILLATES),  # though its fixed points attract
        ("frustrated", 0.5, 1.0, ea.CONTRACTS),
        ("frustrated", 0.5, 4.0, ea.OSCILLATES),
        ("alone", 0.5, 4.0, ea.SEVERAL),
        ("alone", -0.5, 4.0, ea.OSCILLATES),
        ("alone", 0.0, 8.0, ea.CONTRACTS),
    ],
)
def test_verdicts_of_two_spins(kind, gamma, scale, verdict):
    assert ea.examine(*ea.two_spins(kind, gamma, scale), K=5).verdict == verdict


def test_verdicts_from_what_the_starts_did():
    """settled, shrinking (the layer's own start first), points -> verdict."""
    yes, no = torch.tensor([True, True]), torch.tensor([True, False])
    assert ea._judge(yes, yes, 1) == ea.CONTRACTS
    assert ea._judge(yes, yes, 2) == ea.SEVERAL
    assert ea._judge(no, no, 1) == ea.ELSEWHERE
    assert ea._judge(no, yes, 1) == ea.SLOW
    assert ea._judge(~no, ~no, 1) == ea.OSCILLATES
    assert ea._together([ea.CONTRACTS, ea.SEVERAL, ea.CONTRACTS]) == "several fixed points (1 of 3 tokens)"


def test_a_map_at_the_edge_is_too_slow_to_tell():
    # Slope 1 at zero, no drive: changes shrink like a power of k and not geometrically.
    z, w_int, gamma = ea.two_spins("alone", 0.5, 2 / torch.sigmoid(torch.tensor(2.0)).item())
    z[:, :2] = 1e-3
    assert ea.examine(z, w_int, gamma, K=5).verdict == ea.SLOW


def test_verdicts_of_a_random_map():
    calm = ea.examine(*ea.random_map(0.5, 0.8), K=5)
    assert (calm.verdict, calm.settles.all(), calm.bound < 1) == (ea.CONTRACTS, True, True)
    some = ea.examine(*ea.random_map(0.5, 6.0), K=5)
    count = some.verdicts.count(ea.OSCILLATES)
    assert some.verdict == f"{ea.OSCILLATES} ({count} of 8 tokens)"
    assert ((some.radius > 1) == ~some.settles).all(), "tokens settle where their fixed point attracts"
    wild = ea.examine(*ea.random_map(0.5, 8.0), K=5)
    assert wild.verdict.startswith(ea.OSCILLATES)
    assert np.isnan(wild.gradient_error).all()


def test_paths_residuals_and_radii_are_the_packages():
    z, w_int, gamma = ea.random_map(0.5, 3.0)
    found = ea.examine(z, w_int, gamma, K=5)
    for k in (0, 1, 20):
        assert np.allclose(found.path[k], attractor.unrolled(z, w_int, gamma, k))
    for t in (0, 7):
        assert np.allclose(found.residual[:, t], attractor.residuals(z[t : t + 1], w_int, gamma, ea.SHOWN), atol=1e-12)
    assert found.radius == pytest.approx(attractor.spectral_radius(z, w_int, gamma, 200, 400).numpy(), rel=0.02)


@pytest.mark.parametrize("K", [0, 1, 5, 20])
def test_gradient_error_is_that_of_equilibrium(K):
    inputs = ea.random_map(0.5, 3.0)
    dy = torch.randn(8, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def drive_gradient(layer, steps):
        z = inputs[0].clone().requires_grad_()
        (layer(z, *inputs[1:], steps) * dy).sum().backward()
        return z.grad

    exact = drive_gradient(attractor.unrolled, 300)  # converged: autograd through the steps
    expected = (drive_gradient(attractor.equilibrium, K) - exact).norm() / exact.norm()
    errors = ea.examine(*inputs, K).gradient_error
    assert len(errors) == K + 1
    assert errors[-1] == pytest.approx(expected.item(), rel=1e-4)


def test_jacobian_and_large_radius():
    z, w_int, gamma = ea.random_map(0.5, 3.0, D=60, n=3)
    y = attractor.unrolled(z, w_int, gamma, 100)
    J = ea.jacobian(y, z, w_int, gamma)
    for t in range(3):
        by_autograd = torch.autograd.functional.jacobian(lambda x, t=t: ea.step(x, z[t], w_int, gamma), y[t])
        assert torch.allclose(J[t], by_autograd)
    assert ea.radius(J, 400).numpy() == pytest.approx(torch.linalg.eigvals(J).abs().amax(-1).numpy(), rel=0.03)


def test_fixed_points_of_two_spins():
    for kind, count, attract in (("alone", 9, 4), ("agree", 3, 2), ("frustrated", 1, 0)):
        layer = ea.two_spins(kind, 0.5, 4.0)
        points, radii = ea.fixed_points(*layer)
        assert (len(points), (radii < 1).sum()) == (count, attract)
        assert np.allclose(ea.step(torch.tensor(points), *layer), points, atol=1e-8)


def test_unstable_fixed_points_are_followed():
    layer = ea.random_map(0.5, 6.0)
    y = ea.follow(*layer)
    assert (ea.step(y, *layer) - y).abs().max() < 1e-8
    assert ea.examine(*layer, K=1).radius.max() > 1


@pytest.mark.parametrize("form", ["trained", "deployed", "deployed, packed"])
def test_layer_of_any_model(form, tmp_path, monkeypatch):
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-smoke")).eval()
    if form != "trained":
        if form.endswith("packed"):  # even small matrices take the fast products
            monkeypatch.setattr(fast_linear, "SMALL", 1)
        text = torch.arange(8)[None]
        whole = ea.layer_of(model, 1, text)
        ps.deploy.export(model, tmp_path / "model.safetensors")
        model = ps.deploy.load(tmp_path / "model.safetensors")
        for name, a, b in zip(
            ("z", "w_int", "gamma"), whole, ea.layer_of(model, 1, torch.arange(8)[None]), strict=True
        ):
            assert torch.allclose(a, b, rtol=2e-3, atol=2e-3), name  # float16 and two digits
    within = 1e-4 if form.endswith("packed") else 1e-6
    tokens = torch.randint(0, 256, (2, 7))
    z, w_int, gamma = ea.layer_of(model, 1, tokens)
    assert z.shape == (14, 64)
    seen = []
    block = model.blocks[1].attractor
    handle = block.w_down.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    with torch.no_grad():
        model(tokens)
    handle.remove()
    assert torch.allclose(attractor.unrolled(z, w_int, gamma, 5), seen[0].reshape(14, -1), atol=within)
    assert not block.w_ext._forward_hooks, "the hook is gone"
    _, numbers = ea.draw_layer(z, w_int, gamma)(K=5, gamma_times=1.0, scale_times=1.0)
    assert numbers["verdict"] == ea.CONTRACTS


DRAWN = {
    "random": (ea.draw_random, dict(K=5, gamma=0.5, scale=3.0)),
    "wild": (ea.draw_random, dict(K=0, gamma=0.5, scale=8.0)),
    "two": (ea.draw_two_spins, dict(kind="agree", K=5, gamma=0.5, scale=4.0)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_show_what_was_found(name):
    draw, values = DRAWN[name]
    sketch, numbers = draw(**values)
    text = sketch.svg()
    assert text.startswith("<svg")
    assert text.count("</svg>") == 1
    assert text.count("<polyline") == sum(line.width > 0 and len(line.x) > 1 for line in sketch.lines)
    axes = sketch.figure().axes
    assert [a.get_title() for a in axes] == [p.title for p in sketch.panels]
    assert sum(len(a.lines) for a in axes) == len(sketch.lines)
    assert ("no fixed point reached" in text) == (numbers["gradient error at K"] == "no fixed point")
    assert draw(**values)[0].svg() == text, "the same input gives the same picture"


def test_data_become_points_of_the_picture():
    sketch = ea.draw_two_spins("frustrated", 5, 0.5, 4.0)[0]
    wide, high = 72 * sketch.size[0], 72 * sketch.size[1]
    left, bottom, width, height = sketch.panels[0].place
    (x,), (y,) = sketch._points(0, np.array([0.0]), np.array([1.0]))
    assert (x, y) == pytest.approx((wide * (left + width / 2), high * (1 - bottom - height)))
    for line in re.findall(r'points="([^"]+)"', sketch.svg()):
        numbers = np.array([pair.split(",") for pair in line.split()], float)
        assert ((numbers >= 0) & (numbers <= [wide, high])).all()


def test_numbers_follow_the_sliders():
    found = widgets.Explorer(
        ea.draw_random, "attractor-random", K=ipw.IntSlider(5, 0, 20), gamma=ipw.FloatSlider(0.5, min=-0.5, max=0.5),
        scale=ipw.FloatSlider(0.8, min=0, max=8),
    )  # fmt: skip
    read = lambda name: re.search(f'data-name="{name}">([^<]*)<', found.numbers.value)[1]  # noqa: E731
    assert read("verdict") == "contracts"
    before = float(read("residual at K")), float(read("gradient error at K"))
    found.controls["K"].value = 9
    assert (float(read("residual at K")), float(read("gradient error at K"))) < before
    bound = float(read("Lipschitz bound"))
    found.controls["gamma"].value = 0.25
    assert float(read("Lipschitz bound")) == pytest.approx(bound / 2, rel=0.01)
    found.controls["scale"].value = 8.0
    assert float(read("spectral radius")) < float(read("Lipschitz bound"))
    assert "widget-error" not in found.numbers.value


def test_a_redraw_draws_no_axes(monkeypatch):
    """They are what takes matplotlib its time (`make bench`, the table of widgets)."""
    text = torch.tensor([list(b"The state of the Union")])
    layer = ea.draw_layer(*ea.layer_of(ps.trained("byte-lite").model, 3, text))
    calls = [lambda draw=draw, values=values: draw(**values)[0].svg() for draw, values in DRAWN.values()]
    calls += [lambda times=times: layer(20, times, times)[0].svg() for times in (1.0, 10.0)]
    before = [call() for call in calls]
    monkeypatch.setattr(sketch, "_axes", None)
    assert [call() for call in calls] == before
    sketch.frame.cache_clear()
    with pytest.raises(TypeError):
        calls[0]()


def test_examine_agrees_with_the_gradient_of_everything():
    """The series' floor: with a converged forward pass its error falls to rounding."""
    inputs = ea.random_map(0.5, 0.8)
    assert ea.examine(*inputs, K=20).gradient_error[-1] < 1e-12
    found = with_grads(lambda *x: attractor.equilibrium(*x, 20), inputs)
    expected = with_grads(lambda *x: attractor.unrolled(*x, 20), inputs)
    for name in expected:
        assert torch.allclose(found[name], expected[name], atol=1e-9)
