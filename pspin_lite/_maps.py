"""Where the maps come from that fixed_points.py examines: the layers of a model, random couplings, two spins."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from . import _checks as checks

if TYPE_CHECKING:
    from .deploy import DeployedAttractor
    from .language_model import LanguageModel
    from .model import Attractor


class Layer(NamedTuple):
    """A map: what the attractor of one layer is given, z with a row per token."""

    z: Tensor
    w_int: Tensor
    gamma: Tensor


def attractors(model: LanguageModel) -> list[Attractor | DeployedAttractor]:
    """The attractors of a model, from the first block to the last; none for a Transformer."""
    attractors = [getattr(block, "attractor", None) for block in model.blocks]
    return [one for one in attractors if one is not None]


@torch.no_grad()
def layers(model: LanguageModel, tokens: Tensor, sample: int | None = None) -> list[Layer]:
    """The maps of all layers while the model reads tokens [B,T]. sample: of that many tokens, spread evenly."""
    inputs: list[Tensor] = []
    modules = attractors(model)
    hooks = [module.register_forward_pre_hook(lambda _, given: inputs.append(given[0])) for module in modules]
    try:
        model.hidden(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    rows = [x.flatten(0, -2) for x in inputs]
    if sample is not None:
        rows = [x[:: max(1, len(x) // sample)][:sample] for x in rows]
    return [Layer(m.w_ext(x), m.w_int.quantized(), m.gamma()) for m, x in zip(modules, rows, strict=True)]


# Two spins that act on each other's value, not on their gates. Rows: who is acted upon; columns: who acts.
KINDS = {
    "agree": [[0.0, 1.0], [1.0, 0.0]],  # each wants the sign of the other
    "frustrated": [[0.0, 1.0], [-1.0, 0.0]],  # the first wants to agree, the second to differ
    "alone": [[1.0, 0.0], [0.0, 1.0]],  # each holds on to its own sign
}
TWO_DRIVE = [0.2, 0.1, 2.0, 2.0]  # [U | G] of the two spins: weakly driven, gates 88 % open


def random_map(gamma: float, scale: float, D: int = 32, n: int = 8, seed: int = 0) -> Layer:
    """n tokens on D spins with random ternary couplings of size scale/sqrt(D), one gamma for all."""
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2 * D, generator=rng, dtype=torch.float64)
    codes = torch.randint(-1, 2, (2 * D, D), generator=rng).double()
    return Layer(z, codes * scale * D**-0.5, torch.full((D,), gamma, dtype=torch.float64))


def two_spins(kind: str, gamma: float, scale: float) -> Layer:
    """One token on two spins; see KINDS."""
    codes = torch.tensor(KINDS[checks.choice("kind", kind, KINDS)], dtype=torch.float64)
    w_int = torch.cat([codes * scale, torch.zeros(2, 2, dtype=torch.float64)])
    return Layer(torch.tensor([TWO_DRIVE], dtype=torch.float64), w_int, torch.full((2,), gamma, dtype=torch.float64))
