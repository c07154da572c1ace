"""The experiment of notebook 04."""

from __future__ import annotations

import torch

from pspin_lite import ternary
from pspin_lite.lessons import imitation


def test_inputs_have_as_many_directions_as_factors():
    task = imitation.make_task(factors=8, seed=0)
    sizes = torch.linalg.svdvals(task.x)
    assert sizes[7] > 3 * sizes[8]
    again = imitation.make_task(factors=8, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(task, again, strict=True)), "a seed decides everything"
    assert not torch.equal(task.x, task.x_test)


def test_a_fitted_scale_is_no_worse_on_what_it_was_fitted_to():
    task = imitation.make_task(factors=0, seed=1)
    task = task._replace(x_test=task.x, y_test=task.y)
    W = imitation.train(lambda W: W, task, steps=50)
    own, fitted = imitation.errors(W, task)
    assert fitted < own
    assert abs(own - imitation.error(ternary.ste(W), task.x, task.y).item()) < 1e-6


def test_rounding_during_training_wins_where_few_directions_matter():
    few = imitation.race(8, seeds=(0, 1))
    afterwards, during = few.values()
    assert (during < 0.75 * afterwards).all()
    many = imitation.race(0, seeds=(0, 1))
    afterwards, during = many.values()
    assert (during > afterwards).all()
