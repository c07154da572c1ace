"""Our fused attractor and the ternary products, executed by the emulator at the paper's widths, against float64.

Only 64 of the paper's tokens: no token depends on another, and 64 are what one program of the large kernels takes. The
gradients of W and gamma are sums over the tokens, so theirs are of 64. Widths, codes and K = 5 steps are the paper's.

    errors   largest difference from float64, relative to the largest entry: y and the gradients of z, W and gamma of
             the attractor; of the layer that drives it the ternary product and the transposed one, its gradient
"""

from __future__ import annotations

import json
import sys

import torch
from torch import Tensor

from .attractor_executed import STEPS, inputs
from .executed import error
from .report import SHAPES

TOKENS = 64
NAMES = ("y", "dz", "dW", "dgamma", "product", "transposed")


def attractor(shape: str, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
    """y and its gradients, each with what it should be."""
    from pspin_kernels import attractor as fused
    from pspin_kernels import ternary

    from pspin_lite.attractor import equilibrium

    values, dy = inputs(shape, dtype, TOKENS)
    w = values[1].detach()
    scale = w.abs().max()
    packed = ternary.pack((w / scale).round())
    y = fused.equilibrium(*values, packed, scale, STEPS)
    result = [y, *torch.autograd.grad(y, values, dy)]
    exact = [x.detach().double().requires_grad_() for x in values]
    y = equilibrium(*exact, STEPS, backend="torch")
    return list(zip(result, [y, *torch.autograd.grad(y, exact, dy.double())], strict=True))


def products(shape: str, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
    """Of the layer that drives the attractor, forward and backward."""
    from pspin_kernels import ternary

    D, out = SHAPES[shape]["D"], 2 * SHAPES[shape]["Dint"]
    rng = torch.Generator().manual_seed(0)
    codes, scale = torch.randint(-1, 2, (out, D), generator=rng), torch.tensor(0.1)
    x, dy = (torch.randn(TOKENS, width, generator=rng).to(dtype) for width in (D, out))
    packed, weight = ternary.pack(codes), codes * scale.double()
    forward = ternary.product(x, packed, scale), x.double() @ weight.T
    return [forward, (ternary.transposed(dy, packed, scale, D), dy.double() @ weight)]


def measure(chip: str, shape: str, dtype: str) -> dict:
    """One row of the record."""
    from ..emulator.driver import chip as emulated

    kind = getattr(torch, dtype)
    with emulated(chip, races=False, proxies=False):
        pairs = attractor(shape, kind) + products(shape, kind)
    errors = {name: error(*pair) for name, pair in zip(NAMES, pairs, strict=True)}
    return dict(chip=chip, shape=shape, dtype=dtype, tokens=TOKENS, errors=errors)


if __name__ == "__main__":
    print(json.dumps([measure(**json.loads(sys.argv[1]))]))
