"""The toy of notebook 13 is PyTorch's Adam."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pspin_lite.lessons import explore_adam as explore


@pytest.mark.parametrize(("beta2", "batch", "one_in"), [(0.95, 1, 20), (0.8, 8, 50)])
def test_the_path_is_that_of_pytorch(beta2, batch, one_in):
    steps = 300
    w = torch.ones(explore.WEIGHTS, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=explore.RATE, betas=(explore.MEMORY, beta2))
    path = []
    for target in torch.tensor(explore.targets(batch, one_in)[:steps]):
        w.grad = w.detach() - target
        optimizer.step()
        path.append(w.mean().item())
    assert explore.run(batch, one_in).path[explore.BETAS.index(beta2), :steps] == pytest.approx(path, abs=1e-6)


def test_targets_have_the_mean_one():
    for batch in explore.BATCHES:
        for one_in in explore.ONE_IN:
            assert explore.targets(batch, one_in).mean() == pytest.approx(1, abs=0.03)
    assert set(np.unique(explore.targets(1, 20))) == {0, 20}


def test_a_short_memory_divides_what_is_rare_by_more():
    numbers = explore.draw_toy(0.95, 20, 1)[1]
    assert numbers["w settles at"] == "0.66"
    assert float(numbers["divisor if target > 1"]) > 1.4 * float(numbers["divisor if target < 1"])
    calm = explore.draw_toy(0.8, 20, 64)[1]
    assert float(calm["divisor if target > 1"]) < 1.1 * float(calm["divisor if target < 1"])
    assert calm["w settles at"] == "0.99"


def test_the_figure_shows_the_weight_and_its_divisor():
    figure, _ = explore.draw_toy(0.99, 5, 8)
    weight = figure.lines[-1]
    assert weight.y[-1] == pytest.approx(explore.run(8, 5).path[explore.BETAS.index(0.99), -1], abs=1e-3)
    assert weight.x[[0, -1]].tolist() == [0, explore.STEPS]


def test_pushes_cancel_with_a_long_memory_only():
    rare, common = explore.pushes(0.999)
    assert rare == pytest.approx(common, rel=0.01) == pytest.approx(19**0.5, rel=0.01)
    rare, common = explore.pushes(0.95)
    assert rare < 19**0.5 < common
