"""Measurements of the attractor's map: does it settle to a fixed point, how fast, from where; how good is its gradient?

The map is one step, y -> spin(z + (gamma * y) W^T). Shapes are those of attractor.py: z [.., 2I], w_int [2I, I],
gamma [I], states y [.., I], a row per token. Nothing here is needed to train or to decode.

    residuals         relative change of every step
    spectral_radius   largest |eigenvalue| of the Jacobian at a state: below 1, steps lead back to a fixed point there
    lipschitz_bound   bound on the stretching of any step: below 1 the map contracts everywhere
    gradient_error    of the implicit gradient, held against one of three references (REFERENCES)
    examine           all of it at once, from several starts, with a verdict per token
    layers            the maps of a model: z, w_int and gamma of every attractor, for a text
    random_map, two_spins    maps to look at (_maps.py)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from . import _checks as checks
from ._maps import KINDS, Layer, attractors, layers, random_map, two_spins  # noqa: F401  (asked for here)
from .attractor import check_map, equilibrium, slopes, spin, step, unrolled

SHOWN = 20  # steps of a path that `examine` hands out
LIMIT = 200  # steps after which a state that still moves counts as one that does not settle
SETTLED = 1e-5  # largest change of a spin in a step, below which a state has settled
CREEP = 1e-2  # a state that moves by less than this in a step is not taken to oscillate
APART = 1e-2  # fixed points closer than this, in every spin, are one
SMALL = 48  # spins up to which eigenvalues are computed exactly, and unstable fixed points looked for
CONVERGED = 64  # steps that count as all of them in training, where time matters
EXACT = 400  # steps that count as all of them where it does not

SETTLES, SEVERAL, OSCILLATES, SLOW = "settles", "several fixed points", "oscillates", "too slow to tell"
ELSEWHERE = "oscillates from some starts"  # not from the layer's own


# How fast it settles


@torch.no_grad()
def residuals(z: Tensor, w_int: Tensor, gamma: Tensor, steps: int, gate: str = "sigmoid") -> Tensor:
    """Relative change |y_n - y_{n-1}| / |y_n| over all tokens together, for n = 1..steps.
    z [.., 2I], w_int [2I, I], gamma [I] -> [steps]."""
    check_map(z, w_int, gamma, steps, gate)
    y, changes = spin(z, gate), []
    for _ in range(steps):
        before, y = y, step(y, z, w_int, gamma, gate)
        changes.append((y - before).norm() / y.norm().clamp_min(torch.finfo(y.dtype).tiny))
    return torch.stack(changes) if changes else z.new_empty(0)


def jacobian(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor, gate: str = "sigmoid") -> Tensor:
    """J, the derivatives of a step at y: y [.., I], z [.., 2I], w_int [2I, I], gamma [I] -> [.., I, I]."""
    phi_u, phi_a = slopes(z + (gamma * y) @ w_int.T, gate)
    W_u, W_a = w_int.chunk(2, 0)
    return (phi_u.unsqueeze(-1) * W_u + phi_a.unsqueeze(-1) * W_a) * gamma


@torch.no_grad()
def spectral_radius(
    y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor, iterations: int = 60, exact: bool = False, gate: str = "sigmoid"
) -> Tensor:
    """Largest |eigenvalue| of the Jacobian of a step at y, for each token.
    y [.., I], z [.., 2I], w_int [2I, I], gamma [I] -> [..].
    exact: from all eigenvalues, in I^3 operations per token. Otherwise by power iteration, which never builds the
    Jacobian. The leading eigenvalues are often a complex pair, under which the growth of a single step swings; so the
    growth is averaged (geometrically) over the second half of the iterations."""
    checks.whole("iterations", iterations, 2)
    if exact:
        J = jacobian(y, z, w_int, gamma, gate)
        finite = J.isfinite().all(-1).all(-1)
        return torch.linalg.eigvals(J.where(finite[..., None, None], 0.0)).abs().amax(-1).where(finite, torch.nan)
    phi = torch.cat(slopes(z + (gamma * y) @ w_int.T, gate), -1)
    x = random_direction(y, seed=0)
    x /= x.norm(dim=-1, keepdim=True)
    log_growth = torch.zeros_like(x[..., 0])
    for i in range(iterations):
        x_u, x_g = (phi * ((gamma * x) @ w_int.T)).chunk(2, -1)
        x = x_u + x_g  # J x
        size = x.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(y.dtype).tiny)
        x = x / size
        if i >= iterations // 2:
            log_growth += size.squeeze(-1).log()
    return (log_growth / (iterations - iterations // 2)).exp()


@torch.no_grad()
def lipschitz_bound(w_int: Tensor, gamma: Tensor) -> float:
    """Bound on the Lipschitz constant of one step with w_int [2I, I], gamma [I] and any z: below 1 it contracts.

    J = [diag(phi_u) diag(phi_a)] W diag(gamma), and phi_u^2 + phi_a^2 = s^2 ((1-t^2)^2 + t^2 (1-s)^2) < 1 for
    |t|, s < 1. So |J| < |W diag(gamma)|, the largest singular value. Ternary entries make it finite, not small. The
    gate tanh has the same bound: (1-t^2)^2 s^2 + t^2 (1-s^2)^2 <= (1-t^2) s^2 + t^2 (1-s^2) < 1."""
    checks.tensor("w_int", w_int, 2, "[2I, I]")
    checks.same("gamma", gamma, (w_int.shape[1],), "one for each column of w_int")
    return torch.linalg.matrix_norm(w_int * gamma, 2).item()


# How good its gradient is

implicit = partial(equilibrium, backend="torch")
REFERENCES: dict[str, Callable[[int], tuple[Callable, int]]] = {  # what the implicit gradient at K is held against
    "converged": lambda K: (implicit, CONVERGED),  # itself with both iterations converged
    "fixed point": lambda K: (unrolled, EXACT),  # the gradient of the fixed point: autograd through many steps
    "steps": lambda K: (unrolled, K),  # the gradient of the K steps that were run
}


def gradient_error(
    z: Tensor,
    w_int: Tensor,
    gamma: Tensor,
    steps: int,
    against: str = "converged",
    direction: Tensor | None = None,
    gate: str = "sigmoid",
) -> float:
    """Relative error of the implicit gradient with respect to z, after `steps` steps.
    z [n, 2I], w_int [2I, I], gamma [I].
    against: "converged", itself after many steps; "fixed point", autograd through many steps; "steps", autograd through
    as many. direction [n, I]: gradient of the loss with respect to the spins; None: a random one, always the same."""
    layer, enough = REFERENCES[checks.choice("against", against, REFERENCES)](steps)
    if direction is None:
        direction = torch.randn(len(z), len(gamma), generator=torch.Generator().manual_seed(0)).to(z)
    inputs = (z, w_int, gamma)
    reference = drive_gradient(partial(layer, gate=gate), inputs, enough, direction)
    return relative(drive_gradient(partial(implicit, gate=gate), inputs, steps, direction), reference)


def relative(gradient: Tensor, reference: Tensor) -> float:
    return ((gradient - reference).norm() / reference.norm()).item()


def drive_gradient(
    layer: Callable[..., Tensor], inputs: tuple[Tensor, ...], steps: int, direction: Tensor | None = None
) -> Tensor:
    """Gradient with respect to z of the spins' component along `direction` (None: a random one, always the same).
    layer: `equilibrium` or `unrolled`."""
    z = inputs[0].detach().clone().requires_grad_()
    with torch.enable_grad():
        y = layer(z, *inputs[1:], steps)
        return torch.autograd.grad(y, z, random_direction(y) if direction is None else direction)[0]


def random_direction(like: Tensor, seed: int = 1) -> Tensor:
    """A random direction for spins like [..], drawn in float64 whatever their dtype."""
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(like)


# All of it, from several starts


@dataclass(frozen=True)
class Examination:
    """What `examine` says. L is the number of steps shown, K the number the layer takes."""

    path: np.ndarray  # [L+1, n, I] states from the layer's own start y_0
    residual: np.ndarray  # [L, n] relative change |y_n - y_{n-1}| / |y_n| of each token
    radius: np.ndarray  # [n] largest |eigenvalue| of the Jacobian of a step at a fixed point; nan if none was found
    bound: float  # Lipschitz bound of a step, for any drive
    settles: np.ndarray  # [n] whether the layer's own start has settled within LIMIT steps
    points: np.ndarray  # [n] attracting fixed points met from all starts
    gradient_error: np.ndarray  # [K+1] of the Neumann series after 0..K products; nan where no token settles
    verdicts: list[str]  # one per token
    verdict: str  # the gravest, and how many tokens have it if not all


@torch.no_grad()
def examine(
    z: Tensor, w_int: Tensor, gamma: Tensor, K: int, starts: int = 6, seed: int = 0, gate: str = "sigmoid"
) -> Examination:
    """Follows the layer's own start and `starts` random ones until they settle or LIMIT steps have passed. What it says
    about fixed points is what those starts met: others may exist.
    z [n, 2I], w_int [2I, I], gamma [I] -> what `Examination` has: verdicts, radius, residual and more."""
    checks.whole("K", K, 0)
    n, D = z.shape[0], gamma.shape[0]
    own = spin(z, gate)
    y, path, moved = torch.cat([own.unsqueeze(0), random_starts(n, D, starts, seed).to(z)]), [own], []
    for k in range(LIMIT):
        new = step(y, z, w_int, gamma, gate)
        moved.append((new - y).abs().amax(-1))  # [1 + starts, n]
        y = new
        if k < SHOWN:
            path.append(y[0])
        if k + 1 >= SHOWN and (moved[-1] < SETTLED).all():
            break
    settled = moved[-1] < SETTLED
    end = newton(newton(y[0], z, w_int, gamma, gate), z, w_int, gamma, gate)  # from nearly at rest to the last digit
    if not settled[0].all():  # they have a fixed point too, from which steps lead away
        unstable = follow(z, w_int, gamma, gate=gate) if D <= SMALL else torch.full_like(end, torch.nan)
        end = end.where(settled[0].unsqueeze(-1), unstable)
    while len(path) <= max(SHOWN, K):
        path.append(step(path[-1], z, w_int, gamma, gate))
    states = torch.stack(path)
    shrinking = _shrinks(torch.stack(moved))
    points = [len(distinct(y[settled[:, t], t], APART)) for t in range(n)]
    verdicts = [_judge(settled[:, t], shrinking[:, t], points[t]) for t in range(n)]
    changes = (states[1:] - states[:-1]).norm(dim=-1) / states[1:].norm(dim=-1).clamp_min(1e-30)
    return Examination(
        path=states[: SHOWN + 1].numpy(),
        residual=changes[:SHOWN].numpy(),
        radius=spectral_radius(end, z, w_int, gamma, exact=D <= SMALL, gate=gate).numpy(),
        bound=lipschitz_bound(w_int, gamma),
        settles=settled[0].numpy(),
        points=np.array(points),
        gradient_error=_series_errors(states[max(K - 1, 0)], end, settled[0], Layer(z, w_int, gamma), K, gate),
        verdicts=verdicts,
        verdict=_together(verdicts),
    )


def random_starts(n: int, D: int, starts: int = 6, seed: int = 0) -> Tensor:
    """States between -1 and 1: [starts, n, I], float64."""
    rng = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(starts, n, D, generator=rng, dtype=torch.float64) - 1


def newton(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor, gate: str = "sigmoid") -> Tensor:
    """A step of Newton's method towards a fixed point: [.., I] -> [.., I]."""
    eye = torch.eye(gamma.shape[0], dtype=z.dtype)
    return y + torch.linalg.solve(eye - jacobian(y, z, w_int, gamma, gate), step(y, z, w_int, gamma, gate) - y)


def follow(z: Tensor, w_int: Tensor, gamma: Tensor, stages: int = 12, gate: str = "sigmoid") -> Tensor:
    """A fixed point, also where steps lead away from it: the one for gamma = 0, spin(z), followed by Newton's method as
    gamma grows to what it is. nan for tokens for which that fails.
    z [.., 2I], w_int [2I, I], gamma [I] -> [.., I]."""
    y = spin(z, gate)
    for stage in range(1, stages + 1):
        part = gamma * (stage / stages)
        for _ in range(2 if stage < stages else 6):
            y = newton(y, z, w_int, part, gate)
    arrived = (step(y, z, w_int, gamma, gate) - y).abs().amax(-1, keepdim=True) < SETTLED
    return y.where(arrived, torch.nan)


def distinct(points: Tensor, apart: float) -> list[Tensor]:
    """Of the rows [m, I], those that differ from all before them by more than `apart` in some spin."""
    different: list[Tensor] = []
    for row in points:
        if all((row - other).abs().max() > apart for other in different):
            different.append(row)
    return different


def _shrinks(moved: Tensor) -> Tensor:
    """Whether changes [k, ..] are on their way to nothing: the largest of the last ten is small, or smaller than those
    at half-time."""
    last, middle = moved[-10:].amax(0), len(moved) // 2
    return (last < CREEP) | (last < 0.7 * moved[middle : middle + 10].amax(0))


def _judge(settled: Tensor, shrinking: Tensor, points: int) -> str:
    """Of one token; entry 0 is the layer's own start."""
    if not (settled[0] or shrinking[0]):
        return OSCILLATES
    if points > 1:
        return SEVERAL
    if not (settled | shrinking).all():
        return ELSEWHERE
    return SETTLES if settled.all() else SLOW


def _together(verdicts: list[str]) -> str:
    worst = next(word for word in (OSCILLATES, SEVERAL, ELSEWHERE, SLOW, SETTLES) if word in verdicts)
    count = verdicts.count(worst)
    return worst if count == len(verdicts) else f"{worst} ({count} of {len(verdicts)} tokens)"


def _series_errors(before: Tensor, end: Tensor, settled: Tensor, layer: Layer, K: int, gate: str) -> np.ndarray:
    """dL/df by the paper's series after 0..K products, with the slopes at f_K, against the exact one at the fixed point
    `end`. L is a fixed random direction; only tokens that settle have an exact gradient."""
    if not settled.any():
        return np.full(K + 1, np.nan)
    z, w_int, gamma = layer
    dy = random_direction(end)
    J = jacobian(end, *layer, gate)
    exact = torch.linalg.solve(torch.eye(J.shape[-1], dtype=J.dtype) - J.mT.where(settled[:, None, None], 0.0), dy)
    exact = torch.cat([exact * phi for phi in slopes(z + (gamma * end) @ w_int.T, gate)], -1)[settled]
    phi_u, phi_a = slopes(z if K == 0 else z + (gamma * before) @ w_int.T, gate)
    V, errors = dy, []
    for k in range(K + 1):
        if k:
            V = dy + gamma * (torch.cat([V * phi_u, V * phi_a], -1) @ w_int)  # as in attractor.py
        series = torch.cat([V * phi_u, V * phi_a], -1)[settled]
        errors.append(((series - exact).norm() / exact.norm()).item())
    return np.array(errors)
