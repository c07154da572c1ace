"""What one can ask of the attractor's map: changes, radii, bounds, fixed points, errors of the gradient."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from helpers import jacobians, message, spin_inputs, with_grads

import pspin_lite as ps
from pspin_lite import attractor
from pspin_lite import fixed_points as fp
from pspin_lite.attractor import unrolled
from pspin_lite.fixed_points import lipschitz_bound, residuals, spectral_radius


def test_residuals_are_relative_changes():
    z, w_int, gamma = spin_inputs(20, 8)
    result = residuals(z, w_int, gamma, 6)
    ys = [unrolled(z, w_int, gamma, k) for k in range(7)]
    assert result.tolist() == pytest.approx([((b - a).norm() / b.norm()).item() for a, b in pairwise(ys)])
    assert residuals(z, w_int, gamma, 0).shape == (0,)


@pytest.mark.parametrize("seed", range(4))
def test_spectral_radius_is_the_largest_eigenvalue(seed):
    z, w_int, gamma = spin_inputs(6, 12, seed=seed)
    J = jacobians(z, w_int, gamma, unrolled(z, w_int, gamma, 60))
    exact = torch.linalg.eigvals(J).abs().amax(-1)
    result = spectral_radius(
        unrolled(z, w_int, gamma, 60).view(2, 3, -1), z.view(2, 3, -1), w_int, gamma, iterations=400
    )
    assert result.shape == (2, 3)
    assert result.flatten().tolist() == pytest.approx(exact.tolist(), rel=0.03)


def test_lipschitz_bound_holds_and_is_the_largest_singular_value():
    z, w_int, gamma = spin_inputs(50, 10, scale=1.0)
    bound = lipschitz_bound(w_int, gamma)
    assert bound == pytest.approx(torch.linalg.svdvals(w_int * gamma)[0].item())
    for t in range(-30, 31):  # the inequality it stands on
        s = torch.linspace(0.001, 0.999, 500, dtype=torch.float64)
        tanh = math.tanh(t / 10)
        assert ((s * (1 - tanh**2)) ** 2 + (tanh * s * (1 - s)) ** 2).max() < 1
    J = jacobians(z, w_int, gamma, torch.randn(50, 10, dtype=torch.float64))
    assert torch.linalg.matrix_norm(J, 2).max() < bound


def test_ternary_weights_do_not_make_it_contract():
    # The paper concludes from bounded entries to a bounded, stable map. The bound is finite; it is not below 1.
    z, w_int, gamma = spin_inputs(50, 64, scale=8.0)
    assert set((w_int / w_int.max()).unique().tolist()) == {-1.0, 0.0, 1.0}
    assert lipschitz_bound(w_int, gamma) > 1
    assert residuals(z, w_int, gamma, 40)[-1] > 0.05, "no convergence in 40 steps"


@pytest.mark.parametrize(
    ("kind", "gamma", "scale", "verdict"),
    [
        ("agree", 0.5, 1.0, fp.SETTLES),
        ("agree", 0.5, 4.0, fp.SEVERAL),
        ("agree", -0.5, 8.0, fp.OSCILLATES),  # though its fixed points attract
        ("frustrated", 0.5, 1.0, fp.SETTLES),
        ("frustrated", 0.5, 4.0, fp.OSCILLATES),
        ("alone", 0.5, 4.0, fp.SEVERAL),
        ("alone", -0.5, 4.0, fp.OSCILLATES),
        ("alone", 0.0, 8.0, fp.SETTLES),
    ],
)
def test_verdicts_of_two_spins(kind, gamma, scale, verdict):
    assert fp.examine(*fp.two_spins(kind, gamma, scale), K=5).verdict == verdict


def test_verdicts_from_what_the_starts_did():
    """settled, shrinking (the layer's own start first), points -> verdict."""
    yes, no = torch.tensor([True, True]), torch.tensor([True, False])
    assert fp._judge(yes, yes, 1) == fp.SETTLES
    assert fp._judge(yes, yes, 2) == fp.SEVERAL
    assert fp._judge(no, no, 1) == fp.ELSEWHERE
    assert fp._judge(no, yes, 1) == fp.SLOW
    assert fp._judge(~no, ~no, 1) == fp.OSCILLATES
    assert fp._together([fp.SETTLES, fp.SEVERAL, fp.SETTLES]) == "several fixed points (1 of 3 tokens)"


def test_a_map_at_the_edge_is_too_slow_to_tell():
    # Slope 1 at zero, no drive: changes shrink like a power of k and not geometrically.
    z, w_int, gamma = fp.two_spins("alone", 0.5, 2 / torch.sigmoid(torch.tensor(2.0)).item())
    z[:, :2] = 1e-3
    assert fp.examine(z, w_int, gamma, K=5).verdict == fp.SLOW


def test_verdicts_of_a_random_map():
    calm = fp.examine(*fp.random_map(0.5, 0.8), K=5)
    assert (calm.verdict, calm.settles.all(), calm.bound < 1) == (fp.SETTLES, True, True)
    some = fp.examine(*fp.random_map(0.5, 6.0), K=5)
    count = some.verdicts.count(fp.OSCILLATES)
    assert some.verdict == f"{fp.OSCILLATES} ({count} of 8 tokens)"
    assert ((some.radius > 1) == ~some.settles).all(), "tokens settle where their fixed point attracts"
    wild = fp.examine(*fp.random_map(0.5, 8.0), K=5)
    assert wild.verdict.startswith(fp.OSCILLATES)
    assert np.isnan(wild.gradient_error).all()


def test_paths_residuals_and_radii_are_the_packages():
    z, w_int, gamma = fp.random_map(0.5, 3.0)
    result = fp.examine(z, w_int, gamma, K=5)
    for k in (0, 1, 20):
        assert np.allclose(result.path[k], attractor.unrolled(z, w_int, gamma, k))
    for t in (0, 7):
        assert np.allclose(result.residual[:, t], fp.residuals(z[t : t + 1], w_int, gamma, fp.SHOWN), atol=1e-12)
    assert result.radius == pytest.approx(
        fp.spectral_radius(attractor.unrolled(z, w_int, gamma, 200), z, w_int, gamma, 400).numpy(), rel=0.02
    )


@pytest.mark.parametrize("K", [0, 1, 5, 20])
def test_gradient_error_is_that_of_equilibrium(K):
    inputs = fp.random_map(0.5, 3.0)
    dy = torch.randn(8, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def drive_gradient(layer, steps):
        z = inputs[0].clone().requires_grad_()
        (layer(z, *inputs[1:], steps) * dy).sum().backward()
        return z.grad

    exact = drive_gradient(attractor.unrolled, 300)  # converged: autograd through the steps
    expected = (drive_gradient(attractor.equilibrium, K) - exact).norm() / exact.norm()
    errors = fp.examine(*inputs, K).gradient_error
    assert len(errors) == K + 1
    assert errors[-1] == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("gate", attractor.GATES)
def test_jacobian_and_large_radius(gate):
    z, w_int, gamma = fp.random_map(0.5, 3.0, D=60, n=3)
    y = attractor.unrolled(z, w_int, gamma, 100, gate)
    J = fp.jacobian(y, z, w_int, gamma, gate)
    for t in range(3):
        by_autograd = torch.autograd.functional.jacobian(
            lambda x, t=t: attractor.step(x, z[t], w_int, gamma, gate), y[t]
        )
        assert torch.allclose(J[t], by_autograd)
    assert (torch.linalg.matrix_norm(J, 2) < fp.lipschitz_bound(w_int, gamma)).all()
    exact = fp.spectral_radius(y, z, w_int, gamma, exact=True, gate=gate)
    assert exact.numpy() == pytest.approx(torch.linalg.eigvals(J).abs().amax(-1).numpy())
    assert fp.spectral_radius(y, z, w_int, gamma, 400, gate=gate).numpy() == pytest.approx(exact.numpy(), rel=0.03)
    changes = fp.residuals(z, w_int, gamma, 3, gate)
    before, after = (attractor.unrolled(z, w_int, gamma, k, gate) for k in (2, 3))
    assert changes[-1] == pytest.approx(((after - before).norm() / after.norm()).item())


@pytest.mark.parametrize("gate", attractor.GATES)
def test_unstable_fixed_points_are_followed(gate):
    layer = fp.random_map(0.5, 6.0)
    y = fp.follow(*layer, gate=gate)
    found = y.isfinite().all(-1)
    assert found.any()
    assert (attractor.step(y, *layer, gate) - y)[found].abs().max() < 1e-8
    assert np.nanmax(fp.examine(*layer, K=1, gate=gate).radius) > 1


@pytest.mark.parametrize("gate", attractor.GATES)
def test_examine_agrees_with_the_gradient_of_everything(gate):
    """The series' floor: with a converged forward pass its error falls to rounding."""
    inputs = fp.random_map(0.5, 0.8)
    looked = fp.examine(*inputs, K=20, gate=gate)
    assert looked.gradient_error[-1] < 1e-12
    end = attractor.unrolled(*inputs, 60, gate)
    assert looked.radius == pytest.approx(fp.spectral_radius(end, *inputs, exact=True, gate=gate).numpy(), abs=1e-6)
    result = with_grads(lambda *x: attractor.equilibrium(*x, 20, gate=gate), inputs)
    expected = with_grads(lambda *x: attractor.unrolled(*x, 20, gate), inputs)
    for name in expected:
        assert torch.allclose(result[name], expected[name], atol=1e-9)


def test_gradient_error_by_each_reference():
    """Where the map settles quickly all three vanish with K; at few steps they differ, and each is what it says."""
    layer = fp.random_map(0.5, 2.0)
    dy = fp.random_direction(attractor.spin(layer.z))
    gradient = fp.drive_gradient(attractor.equilibrium, layer, 2, dy)
    for against, function, steps in (
        ("fixed point", unrolled, 300),
        ("steps", unrolled, 2),
        ("converged", fp.implicit, 64),
    ):
        expected = fp.relative(gradient, fp.drive_gradient(function, layer, steps, dy))
        assert fp.gradient_error(*layer, 2, against, dy) == pytest.approx(expected, rel=1e-6), against
        assert fp.gradient_error(*layer, 40, against) < 1e-9
        assert 1e-4 < fp.gradient_error(*layer, 2, against, gate="tanh") != fp.gradient_error(*layer, 2, against)
    assert fp.gradient_error(*layer, 2) == fp.gradient_error(*layer, 2, "converged"), "the direction is always the same"
    assert fp.gradient_error(*layer, 2, "steps", dy) != pytest.approx(
        fp.gradient_error(*layer, 2, "fixed point", dy), rel=0.01
    )
    with pytest.raises(ValueError) as raised:
        fp.gradient_error(*layer, 2, "truth")
    assert "against: got 'truth'" in message(raised)


def test_layers_of_a_model():
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-smoke")).eval()
    tokens = torch.randint(0, 256, (2, 7))
    all_rows, some = fp.layers(model, tokens), fp.layers(model, tokens, sample=5)
    assert [layer.z.shape for layer in all_rows] == [(14, 64)] * 2
    assert torch.allclose(some[1].z, all_rows[1].z[::2][:5], atol=1e-6)
    assert fp.attractors(model) == [block.attractor for block in model.blocks]
    assert fp.layers(ps.build(ps.preset("transformer-smoke")), tokens) == []
    assert not any(module._forward_pre_hooks for module in model.modules()), "the hooks are gone"
