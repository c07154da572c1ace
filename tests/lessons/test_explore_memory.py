"""The fading memory of notebook 00 is the state space's recurrence."""

from __future__ import annotations

import math

import pytest
import torch

import pspin_lite as ps
from pspin_lite.lessons import explore_memory


@pytest.mark.parametrize("decay", [0.05, 0.5, 1.0])
def test_the_path_is_the_recurrence(decay):
    values, ones = torch.tensor([0.25, 0.0, 1.0, 0.75]), torch.ones(1, 4, 1, 1)
    g = torch.full((1, 4, 1), math.log(decay))
    outputs, _ = ps.state_space.recurrent(ones, ones, values.view(1, 4, 1, 1), g)
    states = explore_memory.path(decay, values.tolist())
    assert [h for _, h in states] == pytest.approx(outputs.flatten().tolist())


def test_bars_are_what_is_kept_and_what_is_added():
    figure, numbers = explore_memory.draw_memory(0.5, 1, 0, 0, 1)
    assert list(numbers.values()) == ["1", "0.5", "0.25", "1.125"]
    assert [line.y.tolist() for line in figure.lines[-2:]] == [[0, 0.125], [0.125, 1.125]]
    assert figure.panels[0].title == "h after token 4: 1.125"
