"""Claims on the attractor's fixed point: whether there is one, is reached, and gradients are exact there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from ... import attractor, fixed_points
from ...training import evaluation, load
from .. import records
from .comparisons import needs_runs, prefixed
from .verdict import HOLDS, NOT_SEEN, PART, REFUTED, UNTESTABLE, Measured, Value


def lipschitz() -> Measured:
    """Ternary or not, the scale is free: the same layer with its weights multiplied is as ternary as before."""
    rows = {}
    for scale in (1.0, 8.0):
        z, w, gamma = fixed_points.random_map(gamma=0.5, scale=scale)
        assert len(w.unique()) == 3
        rows[scale] = (fixed_points.lipschitz_bound(w, gamma), fixed_points.residuals(z, w, gamma, 200)[-1].item())
    layers = [block.attractor for block in load.shipped("byte-lite").model.blocks]
    bounds = [fixed_points.lipschitz_bound(layer.w_int.quantized(), layer.gamma()) for layer in layers]
    values = {"low": rows[1.0][0], "high": rows[8.0][0], "moves": rows[8.0][1]} | _numbered("b", bounds)
    return Measured(REFUTED if values["high"] > 1 and values["moves"] > 1e-3 else HOLDS, values)


def energy() -> Measured:
    z, w, gamma = fixed_points.two_spins("frustrated", gamma=0.5, scale=8.0)
    result = fixed_points.examine(z, w, gamma, K=5)
    cycles = result.verdict == fixed_points.OSCILLATES
    values = {"verdict": result.verdict, "moved": result.residual[-1, 0].item()}
    return Measured(REFUTED if cycles else UNTESTABLE, values)


def exact_random() -> Measured:
    """Gradient error at K = 5 over the contraction factor, on random maps that settle."""
    result = gradient_errors(np.array([1.0, 2.0, 4.0]), 5)
    error, radius = result["fixed"][:, -1], result["radius"]
    values = dict(calm=error[0], r0=radius[0], mid=error[1], r1=radius[1], late=error[2], r2=radius[2])
    verdict = HOLDS if error.max() < 1e-3 else REFUTED
    return Measured(verdict, {name: float(x) for name, x in values.items()})


EXACT = 1e-3  # a tenth of a per cent
GROUPS = ("bytes-1", "subwords-1", "bytes-64", "subwords-64")
P_SPIN = [f"{group}/p-spin" for group in GROUPS]


def _ends(name: str) -> dict[str, np.ndarray]:
    """Of the p-Spin networks of each group, at the end of training: [seeds, layers]."""
    runs = {group: records.seeds(group, "p-spin").values() for group in GROUPS}
    return {group: np.array([records.layers(run, name)[-1] for run in each]) for group, each in runs.items()}


def _by_group(ends: dict[str, np.ndarray]) -> dict[str, Value]:
    """How many layers are below a tenth of a per cent, and the largest of each network."""
    values = {}
    for group, errors in ends.items():
        worst = errors.max(1)
        counts = {"few": int((errors < EXACT).sum()), "layers": errors.size}
        counts |= {"low": float(worst.min()), "high": float(worst.max())}
        values |= prefixed(f"{group.replace('-', '_')}_", counts)
    return values


@needs_runs(*P_SPIN)
def settled() -> Measured:
    """Whether K = 5 steps reach the fixed point, at the end of training."""
    ends = _ends("residual")
    every = np.concatenate([errors.ravel() for errors in ends.values()])
    return Measured(everywhere(every), _by_group(ends) | {"few": int((every < EXACT).sum()), "layers": every.size})


def everywhere(errors: np.ndarray) -> str:
    """HOLDS if all are below a tenth of a per cent."""
    return HOLDS if (errors < EXACT).all() else NOT_SEEN


@needs_runs(*P_SPIN)
def exact_trained() -> Measured:
    """In the model that ships, which was trained with the paper's recipe at T = 512; and in the study's, at the end."""
    run = load.shipped("byte-lite")
    windows = torch.cat([tokens for tokens, _ in run.data()[records.SPLIT].windows(4)])
    shipped, ends = evaluation.attractors(run.model, windows, sample=256), _ends("gradient_error")
    errors = shipped["gradient_error"]
    every = np.concatenate([errors, *(end.ravel() for end in ends.values())])
    values = _by_group(ends) | _numbered("e", errors) | _numbered("r", shipped["radius"])
    values |= {
        "few": int((every < EXACT).sum()),
        "layers": every.size,
        "networks": 1 + sum(map(len, ends.values())),
        "shipped_few": sum(error < EXACT for error in errors),
        "shipped_layers": len(errors),
    }
    return Measured(everywhere(every), values)


def _numbered(name: str, values: Iterable[float]) -> dict[str, Value]:
    """By layer: e0, e1, ..."""
    return {f"{name}{layer}": float(value) for layer, value in enumerate(values)}


LEFT_ALONE = 32  # tokens


def _left_alone(steps: int = 400) -> tuple[float, float]:
    """Share of tokens of the shipped network that settle, in the layer where fewest do, and the largest radius where
    they do."""
    run = load.shipped("byte-lite")
    tokens = torch.cat([tokens for tokens, _ in run.data()[records.SPLIT].windows(1)])[:, :LEFT_ALONE]
    shares, radii = [], []
    layers = fixed_points.layers(run.model, tokens)
    for layer in range(len(layers)):
        z, w_int, gamma = (x.double() for x in layers[layer])
        y = attractor.unrolled(z, w_int, gamma, steps)
        moved = (attractor.step(y, z, w_int, gamma) - y).norm(dim=-1) / y.norm(dim=-1)
        settled = moved < 1e-6
        shares.append(settled.double().mean().item())
        if settled.any():
            layer_radii = fixed_points.spectral_radius(y[settled], z[settled], w_int, gamma)
            radii.append(layer_radii.max().item())
    return min(shares), max(radii, default=float("nan"))


def radii() -> dict[str, list[list[float]]]:
    """Where K = 5 steps end, at every validation but that before training: the largest radius over the tokens of one
    window, of the network that ships and of the study's groups, [networks, validations] each."""
    metrics = {"shipped": [load.shipped("byte-lite").metrics("attractor")]}
    metrics |= {group: [run["attractor"] for run in records.seeds(group, "p-spin").values()] for group in GROUPS}
    return {name: [_largest_radii(rows) for rows in networks] for name, networks in metrics.items()}


def _largest_radii(rows: list[dict]) -> list[float]:
    return [max(row["radius"]) for row in rows if row["step"] > 0]


@needs_runs(*P_SPIN)
def contracts() -> Measured:
    """Of the network that ships, where many steps end, too."""
    by_group, (share, radius) = radii(), _left_alone()
    flat = {name: [x for networks in each for x in networks] for name, each in by_group.items()}
    every = [x for each in flat.values() for x in each]
    over = sum(x >= 1 for x in every)
    values = {
        "over": over,
        "count": len(every),
        "trained": sum(map(len, by_group.values())),
        "start": max(load.shipped("byte-lite").metrics("attractor")[0]["radius"]),
        "share": share,
        "radius": radius,
        "tokens": LEFT_ALONE,
    }
    for name, each in flat.items():
        counts = {"over": sum(x >= 1 for x in each), "count": len(each), "most": max(each)}
        values |= prefixed(f"{name.replace('-', '_')}_", counts)
    return Measured(NOT_SEEN if over else HOLDS, values)


def higher_order() -> Measured:
    """How much of what the spins answer is due to the product: what no sum of a function of each field explains."""
    run = load.shipped("byte-lite")
    tokens = torch.cat([tokens for tokens, _ in run.data()[records.SPLIT].windows(1)])
    rest = []
    for z, w_int, gamma in fixed_points.layers(run.model, tokens):
        y = attractor.unrolled(z.double(), w_int.double(), gamma.double(), 5)
        fields = z.double() + (gamma.double() * y) @ w_int.double().mT
        u, g = (part.reshape(-1, y.shape[-1]) for part in fields.chunk(2, -1))
        y = y.reshape(-1, y.shape[-1])
        inputs = torch.stack([u.tanh(), g.sigmoid(), torch.ones_like(u)], -1).transpose(0, 1)  # [spins, tokens, 3]
        wanted = y.T[..., None]
        left = wanted - inputs @ torch.linalg.lstsq(inputs, wanted).solution
        rest.append((left.square().sum() / (y - y.mean(0)).square().sum()).item())
    return Measured(NOT_SEEN if max(rest) < 0.1 else HOLDS if min(rest) > 0.1 else PART, _numbered("r", rest))


COUNTED = {"higher-order": higher_order, "lipschitz": lipschitz, "energy": energy, "exact-random": exact_random}
OF_RUNS = {"settled": settled, "exact-trained": exact_trained, "contracts": contracts}


def gradient_errors(scales: np.ndarray, most: int, gamma: float = 0.5) -> dict[str, np.ndarray]:
    """For random maps: largest spectral radius [S], and the relative error of the implicit gradient at K = 1..most
    against that of the fixed point and against that of the K steps, [S, most] each."""
    radius, fixed, steps = [], [], []
    for scale in scales:
        layer = fixed_points.random_map(gamma, float(scale))
        radius.append(np.nanmax(fixed_points.examine(*layer, K=0).radius))
        exact = fixed_points.drive_gradient(attractor.unrolled, layer, fixed_points.EXACT)
        for K in range(1, most + 1):
            gradient = fixed_points.drive_gradient(fixed_points.implicit, layer, K)
            fixed.append(fixed_points.relative(gradient, exact))
            steps.append(fixed_points.relative(gradient, fixed_points.drive_gradient(attractor.unrolled, layer, K)))
    shape = (len(scales), most)
    return dict(radius=np.array(radius), fixed=np.array(fixed).reshape(shape), steps=np.array(steps).reshape(shape))
