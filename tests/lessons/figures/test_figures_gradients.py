"""Figures of notebook 06: their numbers."""

from __future__ import annotations

import numpy as np

from pspin_lite import attractor, fixed_points
from pspin_lite.lessons.figures import gradients as figures


def test_errors_fall_with_K_and_grow_with_the_scale():
    found = fixed_points.gradient_errors(np.array([0.8, 2.0, 3.0]), most=8)
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
    axes = figures.rule(found, (1, 5), dict(radius=[0.3], gradient_error=[0.02]), ([0.1, 0.2], [1e-4, 1e-3])).axes[0]
    assert np.allclose(axes.lines[2].get_ydata(), found["fixed"][:, 4])
    assert np.allclose(axes.lines[3].get_ydata(), found["radius"] ** 6), "the rule, dashed"
    assert axes.lines[4].get_xydata().tolist() == [[0.3, 0.02]]
    assert axes.lines[5].get_xydata().tolist() == [[0.1, 1e-4], [0.2, 1e-3]], "the tokens"


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
    figure = figures.turns({"one": [30.0, 5.0], "other": [0.0, 10.0]})
    ends = [line.get_xydata()[1] for line in figure.axes[0].lines[1:]]
    assert np.allclose([np.degrees(np.arctan2(y, x)) for x, y in ends], [30, 5])
    assert [axes.get_title("left") for axes in figure.axes] == ["one: 18°", "other: 5°"]
