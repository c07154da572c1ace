"""Drawings of notebooks 05 and 06: their numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pspin_lite import attractor, fixed_points
from pspin_lite.lessons.figures import draw_attractor as draw
from pspin_lite.tools import measure


def test_the_two_spins_of_the_drawing_are_the_layers():
    figure, values = draw.settling(steps=3)
    layer = fixed_points.two_spins("agree", 0.5, 4.0)
    assert values.shape == (5, 2)
    for n in range(4):
        assert np.allclose(values[n], attractor.unrolled(*layer, n)[0])
    assert np.allclose(attractor.step(torch.tensor(values[-1]), *layer), values[-1]), "the last pair is at rest"
    words = [text.get_text() for text in figure.axes[0].texts]
    assert f"{values[1, 0]:.2f}" in words


def test_echoes_add_up_to_the_gradient_of_the_spin_at_rest():
    _, shown = draw.echo(z=0.2, feedback=0.5, terms=5)
    z = torch.tensor([[0.2, 40.0]], dtype=torch.float64, requires_grad=True)
    one = torch.tensor([[1.0], [0.0]], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    exact = torch.autograd.grad(attractor.unrolled(z, *one, 200).sum(), z)[0][0, 0].item()
    assert shown["exact"] == pytest.approx(exact, rel=1e-9)
    missing = 1 - shown["parts"].sum() / exact
    assert missing == pytest.approx(shown["rho"] ** 5, rel=1e-9), "K products leave rho^(K+1)"


@pytest.mark.parametrize("steps", [1, 5])
def test_bytes_of_the_drawing_are_those_autograd_keeps(steps):
    _, kept = draw.saved(steps, tokens=3, spins=16, size=4)
    inputs = [torch.zeros(*shape, requires_grad=True) for shape in ((3, 32), (32, 16), (16,))]
    for name, layer in (("unrolled", attractor.unrolled), ("implicit", attractor.equilibrium)):
        count = measure.saved_bytes(lambda layer=layer: layer(*inputs, steps), besides=tuple(inputs))
        assert kept[name] == count
