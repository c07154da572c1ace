"""The chunked state space without a gradient on a CPU: evaluation, and prompts.

`state_space.chunked` computes every step for all chunks at once and keeps the results for the backward pass. Here one
chunk follows the other. What a chunk needs fits into the cache, nothing is kept, and q, k, v are read where they lie.

Glossary
    name      shape           meaning
    M         [BH,C,C]        causal decay mask of a chunk, put together from blocks of at most BLOCK tokens
    within    [N,BH,n,s,s]    mask of each block: the diagonal of M
    between   [N,BH,n,n]      what the blocks strictly between two blocks leave; 0 unless the second is the earlier one
    left      [N,BH,n,s]      what is left at a token of everything before its block
    right     [N,BH,n,C]      what is left of each token at the start of a later block

Off its diagonal M = left * right: one product per entry instead of a sum and an exponential. All factors lie between 0
and 1 and nothing is subtracted, so hard resets are exact here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from einops import rearrange
from torch import Tensor

from . import _backends as backends

LONGEST = 64  # tokens in a chunk: 128 are slower, because mask and scores grow with their square
BLOCK = 8  # tokens: 8 and 16 are equally fast, 32 is slower


@backends.without_autocast
def forward(
    inputs: list[Tensor], state: Tensor, C: int, decay_mask: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Outputs [B,T,H,d] and the last state [B,H,d,d] from q, k, v, g; T is a multiple of C. `decay_mask` is that of
    `state_space`."""
    q, k, v, g = inputs
    B, _, H, d = q.shape
    s = math.gcd(C, BLOCK)
    n = C // s
    G = rearrange(g, "b (n c) h -> n (b h) c", c=C)
    from_start = G.cumsum(-1).exp_().unsqueeze(-1)  # what is left at token c of the state before the chunk
    blocks = G.unflatten(-1, (n, s))
    within = decay_mask(blocks)
    left = blocks.cumsum(-1).exp_().unsqueeze(-1)
    between = decay_mask(blocks.sum(-1)).roll(1, -2).tril(-1)  # up to the block before
    right = (between.unsqueeze(-1) * within[..., -1, :].unsqueeze(-3)).flatten(-2).unsqueeze(-2)
    within = within.movedim(2, -1)  # [N,BH,s,s,n], the way round of `diagonal`

    o, h = q.new_empty(q.shape), state.reshape(B * H, d, d).clone(memory_format=torch.contiguous_format)
    M = q.new_empty(B * H, C, C)
    rows, diagonal = M.view(-1, n, s, C), M.view(-1, n, s, n, s).diagonal(0, 1, 3)
    to_end = M[:, -1].unsqueeze(-1)  # what is left at the chunk's end of token j
    for i, (*parts, out) in enumerate(zip(*(x.split(C, 1) for x in (q, k, v, o)), strict=True)):
        Q, K, V = (x.transpose(1, 2).flatten(0, 1) for x in parts)  # [BH,C,d]; with one text no copy
        torch.mul(left[i], right[i], out=rows)
        diagonal.copy_(within[i])
        P = torch.bmm(Q, K.mT).mul_(M)
        read = torch.bmm(Q, h).mul_(from_start[i]).baddbmm_(P, V)
        out.copy_(read.view(B, H, C, d).transpose(1, 2))
        h.mul_(from_start[i, :, -1:]).baddbmm_(K.mT, V * to_end)
    return o, h.view(B, H, d, d)
