"""What the widgets of notebook 06 show: the two errors of the implicit gradient, and its branches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pspin_lite as ps
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
    best = f"{table[:-1, 10].min():.2g}", f"{table[4, :-1].min():.2g}"
    assert [panel.title for panel in figure.panels] == [
        f"10 products: {best[0]} at best",
        f"5 steps: {best[1]} at best",
    ]
    for line, fixed in ((figure.lines[0], 10), (figure.lines[3], 5)):
        assert np.allclose(10 ** line.y[[2, 20]], [radius**3, radius ** (fixed + 1)]), "the smaller count decides"
    for line, values in ((figure.lines[1], table[:-1, 10]), (figure.lines[4], table[4, :-1])):
        seen = np.isfinite(line.y)
        assert np.allclose(line.y[seen], np.log10(values)[seen])
        assert (values[~seen] < 10 ** eg.STEPS.ylim[0]).all(), "what is left out is below the picture"
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
    figure, _ = eg.draw_branches(1.1, 0.0)
    assert figure.panels[1].title == "implicit gradient: −10.00, off the axis"
    assert {line.dot for line in figure.lines if line.panel == 1} == {0}, "no dot where there is no logarithm"


def test_a_loss_sends_back_what_a_nudge_of_the_spins_does_to_it():
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-lite").replace(width=32, heads=2, inner=16, layers=2)).double().eval()
    tokens, targets = torch.randint(0, 256, (2, 1, 6))
    direction = eg.loss_direction(model, tokens, targets, 1)
    assert direction.shape == (6, 16)

    def loss(nudge: float) -> float:
        def move(_module, given):
            moved = given[0].clone()
            moved[0, 3, 5] += nudge
            return (moved,)

        hook = model.blocks[1].attractor.w_down.register_forward_pre_hook(move)
        with torch.no_grad():
            value = model.loss(tokens, targets).item()
        hook.remove()
        return value

    assert direction[3, 5].item() == pytest.approx((loss(1e-4) - loss(-1e-4)) / 2e-4, rel=1e-4)


def test_the_gradients_of_drive_and_couplings_are_autograds():
    layer = fixed_points.random_map(0.5, 3.0)
    dy = fixed_points.random_direction(layer.z.chunk(2, -1)[0])
    z, w_int = (one.clone().requires_grad_() for one in layer[:2])
    (attractor.unrolled(z, w_int, layer.gamma, 4) * dy).sum().backward()
    both = eg.layer_gradients(attractor.unrolled, [layer, layer], 4, [dy, 2 * dy])
    assert torch.allclose(both["drive"][0], z.grad)
    assert torch.allclose(both["couplings"][1], 2 * w_int.grad)
    result = both["couplings"][0]
    assert eg.angles([result, result], [2 * result, -result]) == pytest.approx([0, 180], abs=1e-4)
    assert eg.mean_error([result, result], [result, 2 * result]) == pytest.approx(0.25)


def test_the_error_of_a_token_is_over_all_its_directions():
    exact = torch.tensor([[[3.0, 4.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])  # 2 directions, 2 tokens
    found = exact.clone()
    found[1, 0, 0], found[0, 1, 0] = 5.0, 1.0
    assert eg.token_errors(found, exact).tolist() == [1, 0]
