"""What an attractor does, from its three tensors: trajectories, residuals, spectral radius, gradient error, verdict.

The pure functions behind the widgets of notebook 05. `examine` computes, the `draw_..` functions make a picture and a
table of numbers from it, the others make maps to look at: at random, of two spins, or from a layer of a model. Nothing
here knows of widgets. Sizes are small enough to redraw within a tenth of a second; shapes are those of `attractor`:
z [n, 2*D], w_int [2*D, D], gamma [D], states [n, D] for n tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from contourpy import contour_generator
from torch import Tensor

from . import checks
from .attractor import lipschitz_bound, slopes_, spin
from .figures import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, SKY
from .sketch import Panel, Sketch

SHOWN = 20  # steps that are drawn
LIMIT = 200  # steps after which a state that still moves counts as one that does not settle
SETTLED = 1e-5  # largest change of a spin in a step, below which a state has settled
CREEP = 1e-2  # a state that moves by less than this in a step is not taken to oscillate
APART = 1e-2  # fixed points closer than this, in every spin, are one

SMALL = 48  # spins up to which eigenvalues are computed exactly, and unstable fixed points looked for

CONTRACTS, SEVERAL, OSCILLATES, SLOW = "contracts", "several fixed points", "oscillates", "too slow to tell"
ELSEWHERE = "oscillates from some starts"  # not from the layer's own

# Two spins that act on each other's value, not on their gates. Rows: who is acted upon; columns: who acts.
KINDS = {
    "agree": [[0.0, 1.0], [1.0, 0.0]],  # each wants the sign of the other
    "frustrated": [[0.0, 1.0], [-1.0, 0.0]],  # the first wants to agree, the second to differ
    "alone": [[1.0, 0.0], [0.0, 1.0]],  # each holds on to its own sign
}
TWO_DRIVE = [0.2, 0.1, 2.0, 2.0]  # [U | G] of the two spins: weakly driven, gates 88 % open


@dataclass(frozen=True)
class Found:
    """What `examine` found out. L is the number of steps shown, K the number the layer takes."""

    path: np.ndarray  # [L+1, n, D] states from the layer's own start Y_0
    residual: np.ndarray  # [L, n] relative change |Y_k - Y_{k-1}| / |Y_k| of each token
    radius: np.ndarray  # [n] largest |eigenvalue| of the Jacobian of a step at a fixed point; nan if none was found
    bound: float  # Lipschitz bound of a step, for any drive
    settles: np.ndarray  # [n] whether the layer's own start has settled within LIMIT steps
    points: np.ndarray  # [n] attracting fixed points met from all starts
    gradient_error: np.ndarray  # [K+1] of the Neumann series after 0..K products; nan where no token settles
    verdicts: list[str]  # one a token
    verdict: str  # the gravest, and how many tokens have it if not all


def step(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor) -> Tensor:
    return spin(z + (gamma * y) @ w_int.T)


def slopes(h: Tensor) -> tuple[Tensor, Tensor]:
    """phi_u, phi_g of a field: [.., 2*D] -> two [.., D]."""
    u, g = h.chunk(2, -1)
    return slopes_(torch.cat([u.tanh(), g.sigmoid()], -1), spin(h)).chunk(2, -1)


def jacobian(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor) -> Tensor:
    """dY_k / dY_{k-1} at y: [.., D, D]."""
    phi_u, phi_g = slopes(z + (gamma * y) @ w_int.T)
    W_u, W_g = w_int.chunk(2, 0)
    return (phi_u.unsqueeze(-1) * W_u + phi_g.unsqueeze(-1) * W_g) * gamma


def radius(J: Tensor, iterations: int = 60) -> Tensor:
    """Largest |eigenvalue| of each [D, D]: exact for small ones, by power iteration for large ones."""
    if J.shape[-1] <= SMALL:
        known = J.isfinite().all(-1).all(-1)
        found = torch.linalg.eigvals(J.where(known[..., None, None], 0.0)).abs().amax(-1)
        return found.where(known, torch.nan)
    x = torch.randn(J.shape[:-1], generator=torch.Generator().manual_seed(0), dtype=J.dtype).unsqueeze(-1)
    log_growth = torch.zeros(J.shape[:-2], dtype=J.dtype)
    for i in range(iterations):
        x = J @ x / x.norm(dim=-2, keepdim=True)
        if i >= iterations // 2:
            log_growth += x.norm(dim=(-2, -1)).clamp_min(1e-30).log()
    return (log_growth / (iterations - iterations // 2)).exp()


@torch.no_grad()
def examine(z: Tensor, w_int: Tensor, gamma: Tensor, K: int, starts: int = 6, seed: int = 0) -> Found:
    """Follows the layer's own start and `starts` random ones until they settle or LIMIT steps have passed.

    What it says about fixed points is what those starts met: others may exist."""
    checks.whole("K", K, 0)
    n, D = z.shape[0], gamma.shape[0]
    rng = torch.Generator().manual_seed(seed)
    elsewhere = 2 * torch.rand(starts, n, D, generator=rng, dtype=torch.float64).to(z) - 1
    y, path, moved = torch.cat([spin(z).unsqueeze(0), elsewhere]), [spin(z)], []
    for k in range(LIMIT):
        new = step(y, z, w_int, gamma)
        moved.append((new - y).abs().amax(-1))  # [1 + starts, n]
        y = new
        if k < SHOWN:
            path.append(y[0])
        if k + 1 >= SHOWN and (moved[-1] < SETTLED).all():
            break
    end = y[0]
    settled = moved[-1] < SETTLED
    end = newton(newton(end, z, w_int, gamma), z, w_int, gamma)  # from nearly at rest to the last digit
    if not settled[0].all():  # they have a fixed point too, from which steps lead away
        unstable = follow(z, w_int, gamma) if D <= SMALL else torch.full_like(end, torch.nan)
        end = end.where(settled[0].unsqueeze(-1), unstable)
    while len(path) <= max(SHOWN, K):
        path.append(step(path[-1], z, w_int, gamma))
    path = torch.stack(path)
    shrinking = _shrinks(torch.stack(moved))
    points = [_distinct(y[settled[:, t], t]) for t in range(n)]
    verdicts = [_judge(settled[:, t], shrinking[:, t], points[t]) for t in range(n)]
    changes = (path[1:] - path[:-1]).norm(dim=-1) / path[1:].norm(dim=-1).clamp_min(1e-30)
    J = jacobian(end, z, w_int, gamma)
    return Found(
        path=path[: SHOWN + 1].numpy(),
        residual=changes[:SHOWN].numpy(),
        radius=radius(J).numpy(),
        bound=lipschitz_bound(w_int, gamma),
        settles=settled[0].numpy(),
        points=np.array(points),
        gradient_error=_gradient_errors(path[max(K - 1, 0)], end, J, settled[0], z, w_int, gamma, K),
        verdicts=verdicts,
        verdict=_together(verdicts),
    )


def newton(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor) -> Tensor:
    """A step of Newton's method towards a fixed point: [.., D] -> [.., D]."""
    eye = torch.eye(gamma.shape[0], dtype=z.dtype)
    return y + torch.linalg.solve(eye - jacobian(y, z, w_int, gamma), step(y, z, w_int, gamma) - y)


def follow(z: Tensor, w_int: Tensor, gamma: Tensor, stages: int = 12) -> Tensor:
    """A fixed point, also where steps lead away from it: the one for gamma = 0, spin(z), followed by Newton's method as
    gamma grows to what it is. nan for tokens for which that fails."""
    y = spin(z)
    for stage in range(1, stages + 1):
        part = gamma * (stage / stages)
        for _ in range(2 if stage < stages else 6):
            y = newton(y, z, w_int, part)
    found = (step(y, z, w_int, gamma) - y).abs().amax(-1, keepdim=True) < SETTLED
    return y.where(found, torch.nan)


def _shrinks(moved: Tensor) -> Tensor:
    """Whether changes [k, ..] are on their way to nothing: the largest of the last ten is small, or smaller than those
    at half-time."""
    last, middle = moved[-10:].amax(0), len(moved) // 2
    return (last < CREEP) | (last < 0.7 * moved[middle : middle + 10].amax(0))


def _distinct(ends: Tensor) -> int:
    """How many different points there are among the rows of ends [m, D]."""
    kept: list[Tensor] = []
    for row in ends:
        if all((row - other).abs().max() > APART for other in kept):
            kept.append(row)
    return len(kept)


def _judge(settled: Tensor, shrinking: Tensor, points: int) -> str:
    """Of one token; entry 0 is the layer's own start."""
    if not (settled[0] or shrinking[0]):
        return OSCILLATES
    if points > 1:
        return SEVERAL
    if not (settled | shrinking).all():
        return ELSEWHERE
    return CONTRACTS if settled.all() else SLOW


def _together(verdicts: list[str]) -> str:
    worst = next(word for word in (OSCILLATES, SEVERAL, ELSEWHERE, SLOW, CONTRACTS) if word in verdicts)
    count = verdicts.count(worst)
    return worst if count == len(verdicts) else f"{worst} ({count} of {len(verdicts)} tokens)"


def _gradient_errors(before, end, J, settled, z, w_int, gamma, K) -> np.ndarray:
    """dL/dH by the paper's series after 0..K products, with the slopes at H_K, against the exact one at a fixed point.
    L is a fixed random direction; only tokens that settle have an exact gradient."""
    if not settled.any():
        return np.full(K + 1, np.nan)
    dy = torch.randn(end.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(end)
    eye = torch.eye(J.shape[-1], dtype=J.dtype)
    exact = torch.linalg.solve(eye - J.mT.where(settled[:, None, None], 0.0), dy)
    exact = torch.cat([exact * phi for phi in slopes(z + (gamma * end) @ w_int.T)], -1)[settled]
    phi_u, phi_g = slopes(z if K == 0 else z + (gamma * before) @ w_int.T)
    V, errors = dy, []
    for k in range(K + 1):
        if k:
            V = dy + gamma * (torch.cat([V * phi_u, V * phi_g], -1) @ w_int)  # as in attractor.py
        found = torch.cat([V * phi_u, V * phi_g], -1)[settled]
        errors.append(((found - exact).norm() / exact.norm()).item())
    return np.array(errors)


# Maps to look at


def random_map(gamma: float, scale: float, D: int = 32, n: int = 8, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """n tokens on D spins with random ternary couplings of size scale/sqrt(D), one gamma for all."""
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2 * D, generator=rng, dtype=torch.float64)
    codes = torch.randint(-1, 2, (2 * D, D), generator=rng).double()
    return z, codes * scale * D**-0.5, torch.full((D,), gamma, dtype=torch.float64)


def two_spins(kind: str, gamma: float, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """One token on two spins; see KINDS."""
    codes = torch.tensor(KINDS[checks.choice("kind", kind, KINDS)], dtype=torch.float64)
    w_int = torch.cat([codes * scale, torch.zeros(2, 2, dtype=torch.float64)])
    return torch.tensor([TWO_DRIVE], dtype=torch.float64), w_int, torch.full((2,), gamma, dtype=torch.float64)


@torch.no_grad()
def layer_of(model: torch.nn.Module, layer: int, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """z, w_int, gamma of a layer of a p-spin model, with the drives that `tokens` [B, T] give rise to: z [B*T, 2*D]."""
    attractor = model.blocks[layer].attractor
    drives: list[Tensor] = []
    handle = attractor.w_ext.register_forward_hook(lambda module, inputs, output: drives.append(output))
    try:
        model.hidden(tokens)
    finally:
        handle.remove()
    return drives[0].flatten(0, -2), attractor.w_int.quantized().clone(), attractor.gamma()


# Fixed points of two spins


def fixed_points(z: Tensor, w_int: Tensor, gamma: Tensor, grid: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """All fixed points of a two-spin map that Newton's method finds from a grid: [m, 2], and their radii [m]."""
    axis = torch.linspace(-1, 1, grid, dtype=z.dtype)
    y = torch.cartesian_prod(axis, axis)
    eye = torch.eye(2, dtype=z.dtype)
    for _ in range(25):
        miss = step(y, z, w_int, gamma) - y
        y = y - torch.linalg.lstsq(jacobian(y, z, w_int, gamma) - eye, miss.unsqueeze(-1)).solution.squeeze(-1)
        y = y.clamp(-1.5, 1.5)
    y = y[(step(y, z, w_int, gamma) - y).abs().amax(-1) < 1e-9]
    order = np.lexsort(y.round(decimals=4).numpy().T)
    kept: list[Tensor] = []
    for row in y[order.tolist()]:
        if all((row - other).abs().max() > 1e-3 for other in kept):
            kept.append(row)
    points = torch.stack(kept)
    return points.numpy(), radius(jacobian(points, z, w_int, gamma)).numpy()


# Pictures

LEFT, MIDDLE, RIGHT = ((left, 0.17, 0.24, 0.69) for left in (0.065, 0.4, 0.74))
STEPS = dict(xlim=(0, SHOWN), xticks=(0, 5, 10, 15, 20))
UNIT = dict(ylim=(-1, 1), yticks=(-1, 0, 1))
DECADES = dict(ylim=(-9.2, 1), yticks=(-8, -6, -4, -2, 0), yticklabels=("1e-8", "1e-6", "1e-4", "0.01", "1"))
SPINS = Panel(LEFT, "some spins of one token", "step k", "Y", **STEPS, **UNIT)
PORTRAIT = Panel(LEFT, "phase portrait, K steps", "spin 1", "spin 2", xlim=(-1, 1), xticks=(-1, 0, 1), **UNIT)
RESIDUAL = Panel(MIDDLE, "residual, one line a token", "step k", "relative change", **STEPS, **DECADES)
GRADIENT = Panel(RIGHT, "gradient error of the series", "products in the series", "relative error", **STEPS, **DECADES)


def _log(values: np.ndarray) -> np.ndarray:
    """Powers of ten; what is below the picture is left out."""
    return np.log10(np.where(values > 1e-9, values, np.nan))


def _common(left: Panel, found: Found, K: int) -> Sketch:
    """The second and third panel: residuals and gradient error."""
    sketch = Sketch((9.4, 3.1), (left, RESIDUAL, GRADIENT))
    for t in range(found.residual.shape[1]):
        sketch.add(1, np.arange(1, SHOWN + 1), _log(found.residual[:, t]), BLUE, width=1.2, opacity=0.6)
    sketch.add(1, [K, K], [-9, 1], GREY, width=1, dashes=True)
    if np.isnan(found.gradient_error).all():
        sketch.say(2, SHOWN / 2, -3.5, "no fixed point reached,\nso no exact gradient", RED)
    else:
        sketch.add(2, np.arange(K + 1), _log(found.gradient_error), RED, dot=2)
    return sketch


def portrait(sketch: Sketch, panel: int, z: Tensor, w_int: Tensor, gamma: Tensor, K: int) -> dict[str, np.ndarray]:
    """Nullclines, fixed points (filled: they attract), the layer's own K steps and some others."""
    axis = torch.linspace(-1, 1, 41, dtype=z.dtype)
    y = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
    moves = (step(y, z, w_int, gamma) - y).numpy()  # [41, 41, 2]
    for i, colour in ((0, SKY), (1, ORANGE)):
        for line in contour_generator(axis.numpy(), axis.numpy(), moves[..., i]).lines(0.0):
            sketch.add(panel, *line.T, colour, width=1.8)
    corners = torch.tensor([[-0.9, 0.9], [0.9, -0.9], [-0.9, -0.5], [0.5, 0.9]], dtype=z.dtype)
    paths = [torch.cat([spin(z), corners])]
    for _ in range(K):
        paths.append(step(paths[-1], z, w_int, gamma))
    paths = torch.stack(paths, 1).numpy()  # [5, K+1, 2], the layer's own first
    for path in paths[1:]:
        sketch.add(panel, *path.T, GREY, width=0.7, opacity=0.8)
    sketch.add(panel, *paths[0].T, GREEN, dot=1.8, width=1.5)
    points, radii = fixed_points(z, w_int, gamma)
    for point, attracts in zip(points, radii < 1, strict=True):
        sketch.add(panel, point[:1], point[1:], "black", width=0, dot=3.5, filled=bool(attracts))
    return dict(points=points, attracts=radii < 1, paths=paths, moves=moves)


def numbers(found: Found, K: int) -> dict[str, object]:
    """What stands beneath the picture, the widest last, so that others keep their place. Of several tokens the largest
    radius and residual."""
    error = found.gradient_error[-1]
    return {
        "spectral radius": float(np.nanmax(found.radius)) if np.isfinite(found.radius).any() else "not found",
        "Lipschitz bound": found.bound,
        "residual at K": float(found.residual[K - 1].max()) if K else "no step",
        "gradient error at K": float(error) if np.isfinite(error) else "no fixed point",
        "settle from Y_0": f"{found.settles.sum()} of {len(found.settles)}",
        "verdict": found.verdict,
    }


def draw_map(z: Tensor, w_int: Tensor, gamma: Tensor, K: int) -> tuple[Sketch, dict[str, object]]:
    """Any map: spins, residuals, gradient error."""
    found = examine(z, w_int, gamma, K)
    sketch = _common(SPINS, found, K)
    for i, colour in zip(range(min(6, gamma.shape[0])), CYCLE, strict=False):
        sketch.add(0, np.arange(SHOWN + 1), found.path[:, 0, i], colour)
    sketch.add(0, [K, K], [-1, 1], GREY, width=1, dashes=True)
    return sketch, numbers(found, K)


def draw_random(K: int, gamma: float, scale: float) -> tuple[Sketch, dict[str, object]]:
    return draw_map(*random_map(gamma, scale), K)


def draw_two_spins(kind: str, K: int, gamma: float, scale: float) -> tuple[Sketch, dict[str, object]]:
    """Two spins: phase portrait, residuals, gradient error."""
    z, w_int, damping = two_spins(kind, gamma, scale)
    found = examine(z, w_int, damping, K)
    sketch = _common(PORTRAIT, found, K)
    shown = portrait(sketch, 0, z, w_int, damping, K)
    more = {"fixed points": f"{len(shown['points'])}, {shown['attracts'].sum()} attract"}
    return sketch, more | numbers(found, K)


def draw_layer(z: Tensor, w_int: Tensor, gamma: Tensor, tokens: int = 4) -> Callable[..., tuple[Sketch, dict]]:
    """A function of K and of two factors, on gamma and on the couplings, for a layer's first few tokens."""
    z = z[:tokens]

    def draw(K: int, gamma_times: float, scale_times: float) -> tuple[Sketch, dict[str, object]]:
        return draw_map(z, scale_times * w_int, gamma_times * gamma, K)

    return draw
