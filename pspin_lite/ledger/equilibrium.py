"""Claims on the attractor's fixed point: whether there is one, is reached, and gradients are exact there."""

from __future__ import annotations

import numpy as np
import torch

from .. import attractor, evaluation, explore_attractor, records, runs
from . import FAILS, HOLDS, PART, UNTESTABLE, Measured
from .trained import wants


def lipschitz() -> Measured:
    """Ternary or not, the scale is free: the same layer with its weights multiplied is as ternary as before."""
    rows = {}
    for scale in (1.0, 8.0):
        z, w, gamma = explore_attractor.random_map(gamma=0.5, scale=scale)
        assert len(w.unique()) == 3
        rows[scale] = (attractor.lipschitz_bound(w, gamma), attractor.residuals(z, w, gamma, 200)[-1].item())
    text = (
        "the bound is ‖W diag(γ)‖, and W is ternary only up to a scale that is learned: two random layers, both "
        "exactly ternary, have bounds {low:.2f} and {high:.1f}; the second still moves by {moves:.0%} of its size in "
        "step 200. The layers of the trained network that ships have {b0:.2f}, {b1:.2f}, {b2:.2f} and {b3:.1f}. Every "
        "finite matrix has a finite bound; ternary rounding makes none of them small"
    )
    layers = [block.attractor for block in runs.trained("byte-lite").model.blocks]
    bounds = [attractor.lipschitz_bound(layer.w_int.quantized(), layer.gamma()) for layer in layers]
    values = dict(low=rows[1.0][0], high=rows[8.0][0], moves=rows[8.0][1])
    values |= {f"b{i}": float(bound) for i, bound in enumerate(bounds)}
    return Measured(FAILS if values["high"] > 1 and values["moves"] > 1e-3 else HOLDS, text, values)


def energy() -> Measured:
    z, w, gamma = explore_attractor.two_spins("frustrated", gamma=0.5, scale=8.0)
    found = explore_attractor.examine(z, w, gamma, K=5)
    moved = found.residual[-1, 0].item()
    text = (
        "states that come back to where they were lower no energy. Two spins, one that wants to agree and one that "
        "wants to differ: {verdict} (change in step 20: {moved:.0%} of their size). Nothing makes the couplings "
        "symmetric, which an energy of this kind needs"
    )
    cycles = found.verdict == explore_attractor.OSCILLATES
    return Measured(FAILS if cycles else UNTESTABLE, text, dict(verdict=found.verdict, moved=moved))


def exact_random() -> Measured:
    """Gradient error at K = 5 over the contraction factor, on random maps that settle."""
    from ..figures_gradients import gradient_errors

    found = gradient_errors(np.array([1.0, 2.0, 4.0]), 5)
    error, radius = found["fixed"][:, -1], found["radius"]
    text = (
        "on random layers the error at K = 5 is {calm:.0e} at a spectral radius of {r0:.2f}, {mid:.0e} at {r1:.2f}, "
        "{late:.0e} at {r2:.2f}: exact where both iterations have converged. From 1 on there is nothing for them to "
        "converge to"
    )
    values = dict(calm=error[0], r0=radius[0], mid=error[1], r1=radius[1], late=error[2], r2=radius[2])
    verdict = HOLDS if error.max() < 1e-3 else PART if error.min() < 1e-3 else FAILS
    return Measured(verdict, text, {name: float(x) for name, x in values.items()})


GROUPS = {  # of the study
    "bytes-1": "bytes at batch 1",
    "subwords-1": "subwords at batch 1",
    "bytes-64": "bytes at batch 64",
    "subwords-64": "subwords at batch 64",
}
P_SPIN = [f"{group}/p-spin" for group in GROUPS]


def _ends(name: str) -> dict[str, np.ndarray]:
    """Of the p-Spin networks of each group, at the end of training: [seeds, layers]."""
    of = lambda group: [records.layers(record, name)[-1] for record in records.seeds(group, "p-spin").values()]  # noqa: E731
    return {group: np.array(of(group)) for group in GROUPS}


def _by_group(ends: dict[str, np.ndarray]) -> tuple[str, dict[str, float]]:
    """How many layers are below a tenth of a per cent, and the largest of each network."""
    values, parts = {}, []
    for group, words in GROUPS.items():
        key, found = group.replace("-", "_"), ends[group]
        values |= {f"{key}_few": int((found < 1e-3).sum()), f"{key}_layers": found.size}
        values |= {f"{key}_low": float(found.max(1).min()), f"{key}_high": float(found.max(1).max())}
        worst = f"the worst of a network {{{key}_low:.1%}} to {{{key}_high:.1%}}"
        parts.append(f"{words} {{{key}_few}} of {{{key}_layers}}, {worst}")
    return "; ".join(parts), values


@wants(*P_SPIN)
def settled() -> Measured:
    """Whether K = 5 steps reach the fixed point, at the end of training."""
    ends = _ends("residual")
    listed, values = _by_group(ends)
    every = np.concatenate([found.ravel() for found in ends.values()])
    text = (
        "at the end of training the fifth step still changes the spins, in {few} of {layers} layers by less than 0.1% "
        f"of their size: {listed}"
    )
    return Measured(mostly(every), text, values | dict(few=int((every < 1e-3).sum()), layers=every.size))


def mostly(errors: np.ndarray) -> str:
    """HOLDS if all are below a tenth of a per cent, PART if at least half of them."""
    share = float((errors < 1e-3).mean())
    return HOLDS if share == 1 else PART if share >= 0.5 else FAILS


@wants(*P_SPIN)
def exact_trained() -> Measured:
    """In the model that ships, which was trained with the paper's recipe at T = 512; and in the study's, at the end."""
    run = runs.trained("byte-lite")
    windows = torch.cat([tokens for tokens, _ in run.data()[records.SPLIT].windows(4)])
    found = evaluation.attractors(run.model, windows, sample=256)
    errors, ends = found["gradient_error"], _ends("gradient_error")
    listed, values = _by_group(ends)
    text = (
        "the gradient at K = 5 is off by less than 0.1% in {few} of {layers} layers. In the network that ships, layer "
        "by layer, by {e0:.4%}, {e1:.3%}, {e2:.2%} and {e3:.0%}, with spectral radii {r0:.2f}, {r1:.2f}, {r2:.2f} and "
        f"{{r3:.2f}}; in those of the study, at the end: {listed}"
    )
    values |= {f"e{i}": error for i, error in enumerate(errors)} | {f"r{i}": r for i, r in enumerate(found["radius"])}
    every = np.concatenate([errors, *(end.ravel() for end in ends.values())])
    values |= dict(few=int((every < 1e-3).sum()), layers=every.size, networks=1 + sum(map(len, ends.values())))
    values |= dict(shipped_few=sum(error < 1e-3 for error in errors), shipped_layers=len(errors))
    return Measured(mostly(every), text, values)


LEFT_ALONE = 32  # tokens


def _left_alone(steps: int = 400) -> tuple[float, float]:
    """Share of tokens of the shipped network that settle, in the layer where fewest do, and the largest radius where
    they do."""
    run = runs.trained("byte-lite")
    tokens = torch.cat([tokens for tokens, _ in run.data()[records.SPLIT].windows(1)])[:, :LEFT_ALONE]
    shares, radii = [], []
    for layer in range(len(run.model.blocks)):
        z, w_int, gamma = (x.double() for x in explore_attractor.layer_of(run.model, layer, tokens))
        y = attractor.unrolled(z, w_int, gamma, steps)
        moved = (explore_attractor.step(y, z, w_int, gamma) - y).norm(dim=-1) / y.norm(dim=-1)
        settled = moved < 1e-6
        shares.append(settled.double().mean().item())
        if settled.any():
            radii.append(attractor.spectral_radius(z[settled], w_int, gamma, steps).max().item())
    return min(shares), max(radii, default=float("nan"))


def radii() -> dict[str, list[list[float]]]:
    """Where K = 5 steps end, at every validation but that before training: the largest radius over the tokens of one
    window, of the network that ships and of the study's groups, [networks, validations] each."""
    found = {"shipped": [runs.trained("byte-lite").metrics("attractor")]}
    found |= {group: [one["attractor"] for one in records.seeds(group, "p-spin").values()] for group in GROUPS}
    largest = lambda metrics: [max(one["radius"]) for one in metrics if one["step"] > 0]  # noqa: E731
    return {name: [largest(metrics) for metrics in networks] for name, networks in found.items()}


@wants(*P_SPIN)
def contracts() -> Measured:
    """Of the network that ships, where many steps end, too."""
    found, (share, radius) = radii(), _left_alone()
    over = {name: sum(x >= 1 for each in networks for x in each) for name, networks in found.items()}
    count = {name: sum(map(len, networks)) for name, networks in found.items()}
    values = dict(over=sum(over.values()), count=sum(count.values()), trained=sum(map(len, found.values())))
    values |= dict(start=max(runs.trained("byte-lite").metrics("attractor")[0]["radius"]))
    values |= dict(share=share, radius=radius, tokens=LEFT_ALONE)
    parts = []
    for name, words in ({"shipped": "the one that ships"} | GROUPS).items():
        key = name.replace("-", "_")
        values |= {f"{key}_over": over[name], f"{key}_count": count[name], f"{key}_most": max(map(max, found[name]))}
        parts.append(f"{words} {{{key}_over}} of {{{key}_count}}, at most {{{key}_most:.2f}}")
    text = (
        "spectral radius where five steps end: 1 or more in {over} of {count} validations of {trained} networks ("
        + "; ".join(parts)
        + "). It starts at {start:.2f}; training drives it up. Left to go on for 400 steps, {share:.0%} of {tokens} "
        "tokens settle in the network that ships, at points with radii up to {radius:.2f}"
    )
    verdict = HOLDS if not values["over"] else PART if values["over"] < values["count"] / 2 else FAILS
    return Measured(verdict, text, values)


COUNTED = {"lipschitz": lipschitz, "energy": energy, "exact-random": exact_random}
OF_RUNS = {"settled": settled, "exact-trained": exact_trained, "contracts": contracts}
