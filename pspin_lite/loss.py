"""Cross entropy of a linear head that never holds all the logits.

The plain way makes [tokens, V] logits, then their log-softmax, then its gradient: for 1,024 tokens and |V| = 49,152,
600 MB of numbers that are needed only one token at a time. Here tokens go through in pieces. A piece's logits are
turned in place into probabilities and at once into gradients, so that the backward pass has nothing left to do but hand
them over.

torch 2.13 has the same idea as `F.linear_cross_entropy(options=...)`. Ours takes less memory (it gives its
gradients away, where that one is left with a copy) and allows a second backward pass; `make bench` has the comparison.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._backends import without_autocast

PIECE = 2**23  # logits alive at once: 32 MB. Smaller pieces read and write the weight's gradient more often


def linear_cross_entropy(x: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """Mean over tokens of -log softmax(x weight^T)[target]. x [n,D], weight [V,D], targets [n]; a scalar, in nats.

    Computed in the dtype of the weight; at most PIECE logits exist at once. Differentiable once: a gradient of the
    gradient is not there."""
    return _LinearCrossEntropy.apply(x, weight, targets, torch.is_grad_enabled())


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    @without_autocast
    def forward(ctx: Any, x: Tensor, weight: Tensor, targets: Tensor, training: bool) -> Tensor:
        ctx.save_for_backward(x, weight, targets)
        ctx.wanted = tuple(needed and training for needed in ctx.needs_input_grad[:2])
        loss, *ctx.gradients = _by_pieces(x, weight, targets, ctx.wanted)
        return loss

    @staticmethod
    @once_differentiable
    @without_autocast
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor | None, ...]:
        # Given away, not copied; a second backward pass over a retained graph computes them again.
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            x, weight, targets = ctx.saved_tensors
            _, *gradients = _by_pieces(x, weight, targets, ctx.wanted)
        return *(None if gradient is None else gradient.mul_(dloss) for gradient in gradients), None, None


def _by_pieces(
    x: Tensor, weight: Tensor, targets: Tensor, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The loss, and its gradients with respect to x and weight where they are wanted."""
    n, V = len(x), len(weight)
    total = torch.zeros((), device=x.device, dtype=torch.promote_types(weight.dtype, torch.float32))
    dx = torch.empty_like(x) if wanted[0] else None
    dweight = torch.zeros_like(weight) if wanted[1] else None
    rows = max(1, PIECE // V)
    for start in range(0, n, rows):
        p = None  # the piece before is given back before the next one is made
        piece, target = x[start : start + rows].to(weight.dtype), targets[start : start + rows, None]
        p = piece @ weight.T  # logits, [rows, V]
        largest = p.amax(-1, keepdim=True)
        chosen = p.gather(-1, target)
        sums = p.sub_(largest).exp_().sum(-1, keepdim=True, dtype=total.dtype)
        total += (sums.log() + largest - chosen).sum()
        if dx is None and dweight is None:
            continue
        p.div_(sums).scatter_add_(-1, target, p.new_full(target.shape, -1.0)).div_(n)  # d loss / d logits
        if dx is not None:
            dx[start : start + rows] = p @ weight
        if dweight is not None:
            dweight.addmm_(p.T, piece)
    return total / n, dx, dweight
