"""Figures of notebook 06: their numbers."""

from __future__ import annotations

import numpy as np

from pspin_lite import attractor, fixed_points
from pspin_lite.lessons.figures import gradients as figures
from pspin_lite.study.claims.fixed_point import gradient_errors


def test_errors_fall_with_K_and_grow_with_the_scale():
    found = gradient_errors(np.array([0.8, 2.0, 3.0]), most=8)
    assert (np.diff(found["radius"]) > 0).all()
    for name in ("fixed", "steps"):
        assert found[name].shape == (3, 8)
        assert (np.diff(found[name], axis=1) < 0).all()
        assert (np.diff(found[name], axis=0) > 0).all()
    # Against an independent computation: the linear system, solved.
    assert np.isclose(
        found["fixed"][2, 4],
        fixed_points.examine(*fixed_points.random_map(0.5, 3.0), K=5).gradient_error[-1],
        rtol=0.05,
    )


def test_tokens_are_dots_beside_the_rule():
    radii, errors = np.array([[0.1, 0.2], [0.4, 0.5]]), np.array([[1e-7, 1e-5], [0.01, 0.5]])
    axes = figures.tokens(radii, errors, K=3, named=1).axes[0]
    rule, *layers = axes.lines
    assert np.allclose(rule.get_ydata(), rule.get_xdata() ** 4)
    for line, radius, error in zip(layers, radii, errors, strict=True):
        assert line.get_xydata().T.tolist() == [radius.tolist(), error.tolist()]
    assert "byte 1" in [text.get_text() for text in axes.texts], "the worst of the last layer"


def test_late_bytes_are_held_against_their_own_rule():
    errors = {83: 0.5 ** np.arange(1, 12), 102: np.ones(11), 0: np.full(11, 0.7)}
    axes = figures.late(errors, [0.5, 0.45, 0.8]).axes[0]
    for i, (radius, error) in enumerate(zip([0.5, 0.45, 0.8], errors.values(), strict=True)):
        assert np.allclose(axes.lines[2 * i].get_ydata(), radius ** np.arange(1, 12)), "the rule, dashed"
        assert np.allclose(axes.lines[2 * i + 1].get_ydata(), error)


def test_the_gradient_of_the_drive_is_autograds():
    inputs = fixed_points.random_map(0.5, 1.0)
    one = fixed_points.drive_gradient(attractor.unrolled, inputs, 40)
    assert np.allclose(one, fixed_points.drive_gradient(attractor.equilibrium, inputs, 40), atol=1e-10)
    assert inputs[0].grad is None


def test_the_series_falls_by_its_radius_and_runs_away_above_one():
    figure, shown = figures.series([3, 6], most=20)
    (below, falling), (above, rising) = shown.items()
    assert below < 1 < above
    assert falling[20] / falling[15] < 1.1 * below**5
    assert rising[20] > rising[10]
    assert figure.axes[0].get_yscale() == "log"
    assert np.allclose(figure.axes[0].lines[0].get_ydata(), falling)


def test_turns_are_drawn_at_their_true_angles():
    figure = figures.turns({"one": [30.0, 5.0], "other": [0.0, 10.0]}, "a title", ["exact", "near"])
    ends = [line.get_xydata()[1] for line in figure.axes[0].lines[1:]]
    assert np.allclose([np.degrees(np.arctan2(y, x)) for x, y in ends], [5, 30]), "the first is drawn last, on top"
    assert [axes.get_title("left") for axes in figure.axes] == ["one", "other"]
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["window 1: 30°", "window 1: 0°"]
    assert [axes.texts[2].get_text() for axes in figure.axes] == ["exact", "near"]
