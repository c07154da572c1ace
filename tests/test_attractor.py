"""The attractor: forward, implicit gradient, early stopping, memory, diagnostics."""

from __future__ import annotations

import math

import pytest
import torch
from helpers import assert_same, error, jacobians, message, spin_inputs, with_grads
from hypothesis import given, settings
from hypothesis import strategies as st

from pspin_lite import attractor
from pspin_lite.attractor import equilibrium, unrolled
from pspin_lite.fixed_points import spectral_radius
from pspin_lite.tools import measure


def paper_forward(z, w_int, gamma, steps):
    """The paper's lines, token by token and spin by spin."""
    D = len(gamma)
    rows = []
    for drive in z:
        h = drive
        for _ in range(steps):
            y = [math.tanh(h[i]) / (1 + math.exp(-h[D + i])) for i in range(D)]
            h = torch.stack([drive[a] + sum(w_int[a, i] * gamma[i] * y[i] for i in range(D)) for a in range(2 * D)])
        rows.append([math.tanh(h[i]) / (1 + math.exp(-h[D + i])) for i in range(D)])
    return torch.tensor(rows, dtype=z.dtype)


@pytest.mark.eq("spin-output", "spin-field", "spin-split")
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_forward_is_the_papers(steps):
    z, w_int, gamma = spin_inputs(3, 4)
    expected = paper_forward(z, w_int, gamma, steps)
    assert error(unrolled(z, w_int, gamma, steps), expected) < 1e-12
    assert error(equilibrium(z, w_int, gamma, steps), expected) < 1e-12


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 9), D=st.integers(1, 12), steps=st.integers(0, 6), seed=st.integers(0, 9))
def test_equilibrium_runs_the_unrolled_steps_on_any_shape(n, D, steps, seed):
    z, w_int, gamma = spin_inputs(n, D, seed=seed)
    assert error(equilibrium(z, w_int, gamma, steps), unrolled(z, w_int, gamma, steps)) < 1e-12
    assert equilibrium(z[0], w_int, gamma, steps).shape == (D,)
    assert equilibrium(z.view(1, n, 1, -1), w_int, gamma, steps).shape == (1, n, 1, D)


@pytest.mark.eq("spin-slopes")
@pytest.mark.parametrize("gate", attractor.GATES)
def test_slopes_are_derivatives(gate):
    h = spin_inputs(5, 6)[0].requires_grad_()
    u, g = h.chunk(2, -1)
    y = u.tanh() * getattr(g, gate)()
    assert error(attractor.spin(h, gate), y) < 1e-15
    (by_autograd,) = torch.autograd.grad(y.sum(), h)
    assert error(torch.cat(attractor.slopes(h.detach(), gate), -1), by_autograd) < 1e-12


@pytest.mark.eq("neumann", "spin-grad")
@pytest.mark.parametrize(
    ("steps", "gate"), [(1, "sigmoid"), (2, "sigmoid"), (5, "sigmoid"), (40, "sigmoid"), (3, "tanh")]
)
def test_gradient_is_the_papers_series(steps, gate):
    # Independently: the Jacobian at H_K as a matrix, K + 1 terms of the series added up, token by token.
    z, w_int, gamma = spin_inputs(4, 6)
    D = len(gamma)
    dy = torch.randn(4, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    args = [x.clone().requires_grad_() for x in (z, w_int, gamma)]
    y = equilibrium(*args, steps, gate=gate)
    y.backward(dy)

    before = unrolled(z, w_int, gamma, steps - 1, gate)
    u, g = (z + (gamma * before) @ w_int.T).chunk(2, -1)  # H_K
    opened, slope = (g.tanh(), 1 - g.tanh() ** 2) if gate == "tanh" else (g.sigmoid(), g.sigmoid() * (1 - g.sigmoid()))
    phi_u, phi_a = (1 - u.tanh() ** 2) * opened, u.tanh() * slope
    dz, dw, dgamma = torch.zeros_like(z), torch.zeros_like(w_int), torch.zeros_like(gamma)
    for t in range(4):
        J = (phi_u[t, :, None] * w_int[:D] + phi_a[t, :, None] * w_int[D:]) * gamma
        term = V = dy[t]
        for _ in range(steps):
            term = J.T @ term
            V = V + term
        dz[t] = torch.cat([V * phi_u[t], V * phi_a[t]])
        dw += torch.outer(dz[t], gamma * y[t].detach())
        dgamma += (dz[t] @ w_int) * y[t].detach()
    for result, expected in zip((x.grad for x in args), (dz, dw, dgamma), strict=True):
        assert error(result, expected) < 1e-12


@pytest.mark.eq("neumann", "spin-grad")
def test_converged_gradient_is_exact():
    # Against autograd through the steps, against the solved linear system, and against finite differences.
    inputs = spin_inputs(3, 5)
    for gate in attractor.GATES:
        expected = with_grads(lambda *x, gate=gate: unrolled(*x, 80, gate), inputs)
        assert_same(with_grads(lambda *x, gate=gate: equilibrium(*x, 80, gate=gate), inputs), expected, 1e-9)
        stopped = with_grads(lambda *x, gate=gate: equilibrium(*x, 80, tol=1e-12, gate=gate), inputs)
        assert_same(stopped, expected, 1e-9)

    z, w_int, gamma = inputs
    y = unrolled(z, w_int, gamma, 80)
    J = jacobians(z, w_int, gamma, y)
    dy = torch.ones_like(y)
    V = torch.linalg.solve(torch.eye(5).double() - J.mT, dy)
    z = z.requires_grad_()
    equilibrium(z, w_int, gamma, 80).backward(dy)
    h = z.detach() + (gamma * y) @ w_int.T
    u, g = h.chunk(2, -1)
    phi = attractor.slopes_(torch.cat([u.tanh(), g.sigmoid()], -1), attractor.spin(h))
    assert error(z.grad, torch.cat([V, V], -1) * phi) < 1e-9

    torch.autograd.gradcheck(lambda *x: equilibrium(*x, 80), [x.detach().requires_grad_() for x in inputs])


def test_unconverged_gradient_is_not_the_gradient_of_the_steps():
    # The paper calls it exact. It is not, at K steps of a slow map: keep this visible.
    inputs = spin_inputs(3, 16, scale=1.5)
    by_steps = with_grads(lambda *x: unrolled(*x, 2), inputs)
    implicit = with_grads(lambda *x: equilibrium(*x, 2), inputs)
    assert error(implicit["gradient 0"], by_steps["gradient 0"]) > 1e-3
    assert error(implicit["output 0"], by_steps["output 0"]) < 1e-12


def test_float32_is_close_to_float64():
    exact = with_grads(lambda *x: equilibrium(*x, 5), spin_inputs(50, 64))
    single = with_grads(lambda *x: equilibrium(*x, 5), spin_inputs(50, 64, dtype=torch.float32))
    assert_same(single, exact, 3e-6)


def test_without_steps_the_couplings_have_no_part():
    result = with_grads(lambda *x: equilibrium(*x, 0), spin_inputs(3, 4))
    assert_same(result, with_grads(lambda *x: unrolled(*x, 0), spin_inputs(3, 4)), 1e-12)
    assert not result["gradient 1"].any()


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_tolerance_bounds_the_error(tol):
    inputs = spin_inputs(200, 32)
    radius = spectral_radius(unrolled(*inputs, 100), *inputs).max().item()
    assert 0.1 < radius < 0.6
    converged = with_grads(lambda *x: equilibrium(*x, 200), inputs)
    early = with_grads(lambda *x: equilibrium(*x, 200, tol=tol), inputs)
    for name, value in converged.items():
        relative = ((early[name] - value).norm() / value.norm()).item()
        assert relative < 3 * tol, f"{name}: {relative:.1e}"
        assert relative > 1e-14, f"{name}: it did not stop early at all"


def test_report_counts_the_steps():
    z, w_int, gamma = (x.requires_grad_() for x in spin_inputs(100, 16))
    used = []
    for tol in (1e-1, 1e-3, 1e-6):
        report = attractor.Report()
        equilibrium(z, w_int, gamma, 50, tol, report=report).sum().backward()
        used.append((report.forward, report.backward))
        assert 0 < report.residual < 0.5
    assert used[0][0] < used[1][0] < used[2][0] < 50
    assert used[0][1] < used[1][1] < used[2][1] < 50
    report = attractor.Report()
    equilibrium(z, w_int, gamma, 7, report=report).sum().backward()
    assert (report.forward, report.backward) == (7, 7)
    assert math.isnan(report.residual)
    report = attractor.Report()
    equilibrium(z, w_int, gamma, 2, 1e-9, report=report)
    assert report.forward == 2, "steps remains the most that is done"


def test_tokens_stop_by_themselves():
    # A hard token must not give an easy one more steps: that would let the future, or another sequence, change it.
    z, w_int, gamma = spin_inputs(64, 32, scale=1.0)
    z[1::2] *= 6  # saturated: converges at once
    together = equilibrium(z, w_int, gamma, 30, tol=1e-2)
    alone = torch.cat([equilibrium(row[None], w_int, gamma, 30, tol=1e-2) for row in z])
    assert error(together, alone) < 1e-12
    assert error(together, equilibrium(z, w_int, gamma, 30)) > 1e-6, "nothing stopped early: this shows nothing"


def test_a_nan_shows_in_the_report():
    z, w_int, gamma = spin_inputs(5, 4)
    z[2] = math.nan
    report = attractor.Report()
    y = equilibrium(z, w_int, gamma, 5, 1e-3, report=report)
    assert math.isnan(report.residual)
    assert y.isnan().any(-1).tolist() == [False, False, True, False, False], "and stays with its token"


def test_rounding_does_not_keep_it_running():
    z, w_int, gamma = spin_inputs(50, 16, dtype=torch.float32)
    report = attractor.Report()
    equilibrium(z, w_int, gamma, 200, 1e-12, report=report)
    assert report.forward < 30


def test_report_of_no_steps():
    report = attractor.Report(3, 4, 0.5)
    equilibrium(*spin_inputs(3, 4), 0, report=report)
    assert (report.forward, report.backward) == (0, 0)


def test_zero_gradient_and_zero_drive():
    z, w_int, gamma = (x.requires_grad_() for x in spin_inputs(5, 4))
    y = equilibrium(z * 0, w_int, gamma, 5, tol=1e-3)
    assert not y.any()
    (y * 0).sum().backward()
    assert z.grad.isfinite().all()


@pytest.mark.eq("act-pspin")
def test_saved_memory_does_not_depend_on_steps():
    z, w_int, gamma = (x.requires_grad_() for x in spin_inputs(512, 64, dtype=torch.float32))
    for steps in (1, 5, 20):
        saved = measure.saved_bytes(lambda steps=steps: equilibrium(z, w_int, gamma, steps), besides=(w_int, gamma))
        assert saved == 512 * 3 * 64 * 4, "phi_u, phi_a and Y of every token, in four bytes"
    by_steps = [
        measure.saved_bytes(lambda s=s: unrolled(z, w_int, gamma, s), besides=(w_int, gamma, z)) for s in (5, 10)
    ]
    assert by_steps[1] > 1.7 * by_steps[0]


def test_peak_memory_does_not_depend_on_steps():
    inputs = [x.requires_grad_() for x in spin_inputs(1024, 64, dtype=torch.float32)]

    def peak(steps, tol=None):
        return measure.peak_bytes(lambda: torch.autograd.grad(equilibrium(*inputs, steps, tol).sum(), inputs))

    assert peak(20) == peak(2)
    assert peak(40, tol=1e-6) == peak(20, tol=1e-6) < 2 * peak(2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(z=torch.zeros(3, 9)), ["z", "[3, 9]", "8"]),
        (dict(z=torch.zeros(0, 8)), ["z", "[0, 8]"]),
        (dict(z=[1.0]), ["z", "list"]),
        (dict(z=torch.zeros(3, 8).double()), ["z", "float64", "float32"]),
        (dict(w_int=torch.zeros(8, 5)), ["w_int", "[8, 5]", "twice"]),
        (dict(w_int=torch.zeros(8)), ["w_int", "[8]", "[2I, I]"]),
        (dict(w_int=torch.zeros(8, 4, dtype=torch.int8)), ["w_int", "int8", "floating"]),
        (dict(gamma=torch.zeros(8)), ["gamma", "[8]", "[4]"]),
        (dict(steps=-1), ["steps", "-1", ">= 0"]),
        (dict(steps=2.0), ["steps", "2.0", "integer"]),
        (dict(tol=0), ["tol", "0", "between 0 and 1"]),
        (dict(tol=math.nan), ["tol", "nan"]),
        (dict(tol="1e-3"), ["tol", "1e-3"]),
        (dict(backend="gpu"), ["backend", "gpu", "auto, torch, triton"]),
        (dict(gate="relu"), ["gate", "relu", "sigmoid, tanh"]),
        (dict(gate="tanh", backend="triton"), ["gate", "tanh", "triton", "kernels"]),
    ],
    ids=str,
)
def test_bad_arguments_are_named(change, words):
    arguments = dict(z=torch.zeros(3, 8), w_int=torch.zeros(8, 4), gamma=torch.zeros(4), steps=2) | change
    with pytest.raises(ValueError) as raised:
        equilibrium(**arguments)
    assert all(word in message(raised) for word in words), message(raised)
