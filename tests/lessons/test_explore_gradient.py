"""What the widgets of notebook 06 show: the two errors of the implicit gradient, and its branches."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite import attractor, fixed_points
from pspin_lite.lessons import explore_gradient as eg


def test_the_diagonal_is_the_layers_own_error():
    radius, table = eg.errors(3.0)
    layer = fixed_points.random_map(0.5, 3.0)
    exact = fixed_points.drive_gradient(attractor.unrolled, layer, fixed_points.EXACT)
    for K in (1, 5, 10):
        error = fixed_points.relative(fixed_points.drive_gradient(attractor.equilibrium, layer, K), exact)
        assert table[K - 1, K] == pytest.approx(error, rel=1e-6)
    assert table[-1, -1] == 0
    assert (table[4, -1], table[-1, 5]) < (radius**6, radius**6), "each error alone is below the rule"


def test_a_gradient_for_each_direction():
    layer = fixed_points.random_map(0.5, 3.0)
    found = eg.gradients(attractor.unrolled, layer, 4, directions=3)
    assert found.shape == (3, *layer.z.shape)
    z = layer.z.clone().requires_grad_()
    y = attractor.unrolled(z, *layer[1:], 4)
    y.backward(fixed_points.random_direction(y, seed=2))
    assert np.allclose(found[2], z.grad)


def test_more_of_one_alone_ends_on_a_plateau():
    _, table = eg.errors(3.0)
    assert table[4, 20] == pytest.approx(table[4, -1], rel=0.01), "of the five steps"
    assert table[19, 5] == pytest.approx(table[-1, 5], rel=0.01), "of the five products"
    _, wild = eg.errors(6.0)
    assert wild[-1, 20] > wild[-1, 5], "above 1 more products are worse"


def test_the_picture_shows_the_table():
    figure, numbers = eg.draw_errors([3.0])(steps=5, products=10, scale=3.0)
    radius, table = eg.errors(3.0)
    assert numbers["error"] == table[4, 10]
    assert numbers["rule for the smaller count"] == pytest.approx(radius**6)
    assert [panel.title for panel in figure.panels] == ["products fixed at 10", "steps fixed at 5"]
    for line, fixed in ((figure.lines[0], 10), (figure.lines[3], 5)):
        assert np.allclose(10 ** line.y[[2, 20]], [radius**3, radius ** (fixed + 1)]), "the smaller count decides"
    assert np.allclose(figure.lines[1].y, np.log10(table[:-1, 10]))
    assert np.allclose(figure.lines[4].y, np.log10(table[4, :-1]))
    assert [figure.lines[i].x.tolist() for i in (2, 5)] == [[5], [10]]


@pytest.mark.parametrize(("feedback", "drive", "count"), [(0.9, 0.1, 1), (1.5, 0.1, 3), (1.5, 0.5, 1), (2.0, 0.5, 3)])
def test_a_branch_has_the_slope_of_its_own_answers(feedback, drive, count):
    _, numbers = eg.draw_branches(feedback, drive)
    below, above = eg.answers(feedback, np.array([drive - 1e-5, drive + 1e-5]))[0]
    assert float(numbers["implicit gradient"]) == pytest.approx((above - below) / 2e-5, abs=0.006)
    y = np.linspace(-1, 1, 100_001)
    assert numbers["fixed points"] == count == np.count_nonzero(np.diff(np.tanh(drive + feedback * y) > y))


def test_the_gradient_does_not_see_the_jump():
    left, right = (eg.draw_branches(2.0, drive)[1] for drive in (-0.02, 0.02))
    assert float(right["answer y"]) - float(left["answer y"]) > 1.9
    assert left["implicit gradient"] == right["implicit gradient"] == "0.09"
    assert eg.draw_branches(1.0, 0.0)[1]["implicit gradient"] == "infinite"
