"""Exercises of notebook 06."""

from __future__ import annotations

import math

import torch

from ... import attractor
from ...tools import measure
from . import Exercise, expect


def spin_by_gamma(z: float, w: float, gamma: float) -> float:
    """dy/dgamma of y = tanh(z + gamma w y), at the fixed point that is reached from 0."""
    y = 0.0
    for _ in range(1000):
        y = math.tanh(z + gamma * w * y)
    slope = 1 - y**2
    return slope * w * y / (1 - slope * gamma * w)


def grade_by_gamma(answer) -> None:
    def rest(z, w, gamma):
        y = 0.0
        for _ in range(1000):
            y = math.tanh(z + gamma * w * y)
        return y

    for z, w, gamma in ((1.0, 1.0, 0.5), (0.3, -1.5, 0.4), (-0.5, 1.2, 0.5)):
        numeric = (rest(z, w, gamma + 1e-5) - rest(z, w, gamma - 1e-5)) / 2e-5
        expect(f"dy/dgamma at z = {z}, w = {w}, gamma = {gamma}", answer(z, w, gamma), numeric, 1e-4)


def products_needed(rho: float, tol: float) -> int:
    """The smallest K for which 1 + rho + .. + rho^K misses 1/(1 - rho) by at most tol of it."""
    return max(0, math.ceil(math.log(tol) / math.log(abs(rho)) - 1))


def grade_products(answer) -> None:
    for rho, tol in ((0.1, 1.5e-3), (0.5, 0.9e-6), (0.9, 0.01), (-0.5, 0.1), (0.5, 0.7)):
        K = 0
        while abs(rho) ** (K + 1) > tol:
            K += 1
        expect(f"the products for rho = {rho}, tol = {tol}", answer(rho, tol), K)


def series_for_any_step(step, y, dy, K):
    """The adjoint after K products, for any map: vector-Jacobian products by autograd, no Jacobian."""
    y = y.detach().requires_grad_()
    new = step(y)
    adjoint = dy
    for _ in range(K):
        adjoint = dy + torch.autograd.grad(new, y, adjoint, retain_graph=True)[0]
    return adjoint


def grade_series(answer) -> None:
    rng = torch.Generator().manual_seed(0)
    W = 0.4 * torch.randn(6, 6, generator=rng, dtype=torch.float64)
    y, dy = (torch.randn(6, generator=rng, dtype=torch.float64) for _ in range(2))

    def step(x):
        return torch.sin(W @ x) + 0.1 * x

    J = torch.autograd.functional.jacobian(step, y)
    for K in (0, 1, 4):
        adjoint = dy
        for _ in range(K):
            adjoint = dy + adjoint @ J
        expect(f"the adjoint of another map at K = {K}", answer(step, y, dy, K), adjoint)


def steps_affordable(factor: float) -> int:
    """4 K + 2 arrays against 3 times the factor."""
    return int((3 * factor - 2) // 4)


def grade_steps(answer) -> None:
    shapes = (10, 32), (32, 16), (16,)
    inputs = [torch.zeros(*shape, requires_grad=True) for shape in shapes]

    def kept(layer, K: int, **how) -> int:
        return measure.saved_bytes(lambda: layer(*inputs, K, **how), tuple(inputs))

    implicit = kept(attractor.equilibrium, 5, backend="torch")
    unrolled = [kept(attractor.unrolled, K) for K in range(1, 12)]
    for factor in (2, 3.5, 6, 10):
        largest = sum(size <= factor * implicit for size in unrolled)
        expect(f"the largest K for factor {factor:g}", answer(factor), largest)


EXERCISES = {
    "6.1": Exercise(
        grade_by_gamma,
        spin_by_gamma,
        "Nudge both sides of y = tanh(z + gamma w y) by changing gamma; y depends on it too. Solve for dy/dgamma.",
    ),
    "6.2": Exercise(
        grade_products, products_needed, "The rule of section 2: after K products the fraction |rho|^(K+1) is missing."
    ),
    "6.3": Exercise(
        grade_series,
        series_for_any_step,
        "torch.autograd.grad(new, y, adjoint, retain_graph=True) is the adjoint times J, if new = step(y) was computed "
        "from a y that requires a gradient.",
    ),
    "6.4": Exercise(
        grade_steps,
        steps_affordable,
        "Count arrays with one number per token and spin: three for the implicit layer, and for the unrolled one four "
        "for each step and two for the start.",
    ),
}
