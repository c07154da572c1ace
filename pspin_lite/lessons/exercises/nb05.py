"""Exercises of notebook 05."""

from __future__ import annotations

from math import tanh

import torch

from ... import attractor, fixed_points
from . import Exercise, expect


def slope_at_rest(z: float, A: float) -> float:
    """The slope of y -> tanh(z + A y) at the fixed point that is reached from 0."""
    y = 0.0
    for _ in range(1000):
        y = tanh(z + A * y)
    return A * (1 - y**2)


def grade_slope(answer) -> None:
    expect("the slope of tanh(1 + 0.5 y)", answer(1.0, 0.5), 0.0992914, 1e-4)
    expect("the slope of tanh(0.3 - 0.8 y)", answer(0.3, -0.8), -0.778046, 1e-4)
    expect("the slope of tanh(0.1 + 2 y)", answer(0.1, 2.0), slope_at_rest(0.1, 2.0), 1e-4)


def largest_safe_scale(codes: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """The scale at which the largest singular value of scale * codes * gamma is 1."""
    return 1 / torch.linalg.matrix_norm(codes * gamma, 2)


def grade_scale(answer) -> None:
    pair = torch.tensor([[0.0, 1], [1, 0], [0, 0], [0, 0]])
    expect("two spins that agree, gamma 0.5", answer(pair, torch.tensor([0.5, 0.5])), 2.0)
    expect("two spins that agree, gamma 0.5 and -0.25", answer(pair, torch.tensor([0.5, -0.25])), 2.0)
    rng = torch.Generator().manual_seed(0)
    codes, gamma = torch.randint(-1, 2, (12, 6), generator=rng).double(), torch.rand(6, generator=rng).double() / 2
    s = float(answer(codes, gamma))
    expect("the bound at your scale, random codes", fixed_points.lipschitz_bound(s * codes, gamma), 1.0)


def two_cycle() -> torch.Tensor:
    """Each spin wants to be unlike itself."""
    return torch.tensor([[-1.0, 0.0], [0.0, -1.0]])


def grade_cycle(answer) -> None:
    W_u = torch.as_tensor(answer(), dtype=torch.float64)
    assert W_u.shape == (2, 2), f"the couplings have the shape {list(W_u.shape)}, not [2, 2]"
    assert torch.isin(W_u, torch.tensor([-1.0, 0, 1]).double()).all(), "only -1, 0 and 1 are allowed"
    z = torch.tensor([[0.1, 0.1, 40, 40]], dtype=torch.float64)
    w_int, gamma = torch.cat([4 * W_u, torch.zeros(2, 2)]), torch.full((2,), 0.5, dtype=torch.float64)
    a, b, c = (attractor.unrolled(z, w_int, gamma, steps) for steps in (400, 401, 402))
    assert (b - a).abs().max() > 0.1, "it comes to rest: one step later it is where it was"
    expect("the state two steps later", c, a)


def stop_alone(z, W_int, gamma, steps, tol):
    """Each row keeps the state it had when its own change first fell below tol."""
    y = attractor.spin(z)
    running = torch.ones(len(z), dtype=torch.bool)
    for _ in range(steps):
        new = attractor.spin(z + (gamma * y) @ W_int.T)
        change = (new - y).norm(dim=-1) / new.norm(dim=-1)
        y = torch.where(running[:, None], new, y)
        running = running & (change >= tol)
    return y


def grade_stop(answer) -> None:
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(6, 16, generator=rng, dtype=torch.float64) * torch.tensor([3.0, 2, 1, 1, 0.5, 0.01])[:, None]
    w_int = torch.randint(-1, 2, (16, 8), generator=rng).double()
    gamma = torch.full((8,), 0.5, dtype=torch.float64)
    for steps, tol in ((0, 1e-3), (3, 1e-9), (60, 1e-3)):
        result, expected = answer(z, w_int, gamma, steps, tol), stop_alone(z, w_int, gamma, steps, tol)
        expect(f"the states with steps = {steps}, tol = {tol:g}", result, expected, 1e-9)
    alone = torch.cat([answer(row[None], w_int, gamma, 60, 1e-3) for row in z])
    expect("each token by itself", answer(z, w_int, gamma, 60, 1e-3), alone, 1e-9)


EXERCISES = {
    "5.1": Exercise(
        grade_slope, slope_at_rest, "Iterate until y rests; the slope of tanh(x) is 1 - tanh(x)**2, times A."
    ),
    "5.2": Exercise(
        grade_scale,
        largest_safe_scale,
        "The bound is the largest singular value of s * codes * gamma, which grows in proportion to s. Set it to 1.",
    ),
    "5.3": Exercise(
        grade_cycle,
        two_cycle,
        "One spin with a feedback of -2 jumps between two values (section 2). Take two of them.",
    ),
    "5.4": Exercise(
        grade_stop,
        stop_alone,
        "Keep a mask of the rows still running: torch.where(running[:, None], new, y). Norms are taken with dim=-1.",
    ),
}
