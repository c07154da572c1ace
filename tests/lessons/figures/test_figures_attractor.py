"""Figures of notebook 05: their numbers."""

from __future__ import annotations

import numpy as np
import torch

import pspin_lite as ps
from pspin_lite import attractor, fixed_points
from pspin_lite.lessons.figures import attractor as figures


def test_cobweb_iterates_the_map():
    figure, paths = figures.cobweb({"a": (1.0, 0.5, [0.0]), "b": (0.1, 2.0, [-0.05, -0.2])}, steps=30)
    assert np.allclose(paths["a"][0, :3], [0, np.tanh(1), np.tanh(1 + 0.5 * np.tanh(1))])
    assert paths["b"].shape == (2, 31)
    assert np.sign(paths["b"][:, -1]).tolist() == [1, -1]
    drawn = figure.axes[0].lines[2]
    assert np.allclose(drawn.get_ydata()[1], np.tanh(1)), "first up to the curve"
    assert np.allclose(drawn.get_xdata()[2], np.tanh(1)), "then across to the diagonal"


def test_portraits_have_their_fixed_points():
    figure, found = figures.portraits(["alone", "frustrated"], gamma=0.5, scale=4, K=8)
    assert len(figure.axes) == 2
    assert {kind: len(one["points"]) for kind, one in found.items()} == {"alone": 9, "frustrated": 1}
    assert found["alone"]["paths"].shape == (5, 9, 2)
    for one in found.values():
        assert np.ptp(one["other"], axis=0).max() > 0.4, "the other start's path can be seen"


def test_regimes():
    figure, found = figures.regimes(np.array([0.5, 3.0, 8.0]))
    assert np.allclose(found["bound"] / found["bound"][0], [1, 6, 16])
    assert (found["radius"] < found["bound"]).all()
    assert found["settles"].tolist()[:2] == [1, 1]
    assert found["settles"][2] < 1
    assert np.allclose(figure.axes[1].lines[0].get_ydata(), 100 * found["settles"])
    solid, dashed = (line.get_ydata() for line in figure.axes[0].lines[-2:])
    assert np.nanmax(solid) <= 1 < np.nanmin(dashed), "dashed where the fixed point repels"


def test_tokens_settle_when_their_change_falls_below_the_line():
    changes = np.array([[0.5, 0.5, 0.5], [0.4, 0.05, 0.002], [0.3, 0.0005, 0.0002], [0.2, 0.00005, 0.00002]])
    figure, needed = figures.tokens(changes, K=3, settled=1e-3)
    assert needed.tolist() == [5, 3, 3]
    assert "2 of 3 tokens have settled" in figure.axes[0].get_title("left")
    assert any("first byte, 5 steps" in text.get_text() for text in figure.axes[0].texts)


def test_the_rule_of_thumb_is_judged_token_by_token():
    figure, close = figures.rule(np.array([0.5, 0.1, 0.03, 0.004]), np.array([0.2, 0.1, 0.01, 0.007]))
    assert close.tolist() == [False, True, False, True]
    assert "2 of 4 tokens follow the rule, 2 lie above it" in figure.get_suptitle()


def test_what_notebook_05_says_about_the_last_layer_of_the_shipped_model():
    run = ps.load("byte-lite")
    window = next(iter(run.data()["recent"].windows(1)))[0]
    last = fixed_points.layers(run.model, window, sample=64)[3]
    y, changes = attractor.unrolled(*last, 0), []
    for _ in range(50):
        before, y = y, attractor.step(y, *last)
        changes.append((y - before).norm(dim=-1) / y.norm(dim=-1))
    _, needed = figures.tokens(torch.stack(changes).numpy(), K=5, settled=1e-3)
    assert (needed[0], needed[1:].min(), needed[1:].max(), (needed <= 5).sum()) == (37, 5, 14, 1)
    assert (figures.tokens(torch.stack(changes).numpy(), K=5, settled=1e-2)[1] <= 5).sum() == 23
    five, rest = (attractor.unrolled(*last, K) for K in (5, 200))
    error = (five - rest).norm(dim=-1) / rest.norm(dim=-1)
    rho = fixed_points.spectral_radius(rest, *last)
    _, close = figures.rule(error.numpy(), (rho**6).numpy())
    assert (close.sum(), (error > 2 * rho**6).sum()) == (34, 26)
    assert rho.min() ** 6 > 1e-5, "no token is outside the picture"
    assert error.min() > 1e-4


def test_parts_of_the_bound_are_laid_end_to_end():
    figure = figures.growth(np.array([[2.0, 3.0, 1.5], [4.0, 2.0, 2.0]]), np.array([9.5, 15.0]))
    ends = [area.get_paths()[0].vertices[:, 0].max() for area in figure.axes[0].collections]
    assert np.allclose(ends, [2, 6, 9, 4, 8, 16])
    assert list(figure.axes[0].lines[0].get_xdata()) == [9.5, 15]


def test_what_notebook_05_says_about_the_parts_of_the_bound():
    """Gamma grew most; and gamma alone, at its cap, would have kept the bound below 1."""
    torch.manual_seed(0)
    fresh = figures.bound_parts(ps.build(ps.preset("byte-lite")))
    trained = figures.bound_parts(ps.load("byte-lite").model)
    times = trained / fresh
    assert (times[:, :3].argmax(1) == 0).all()
    assert times[:, 2].min() > 1.5
    assert times[:, 2].max() < 2.6
    assert np.allclose(times[:, :3].prod(1), times[:, 3], rtol=0.15)
    assert (0.5 * fresh[:, 1] * fresh[:, 2] < 0.85).all()
