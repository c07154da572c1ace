"""Blocks and decays as the reader writes them in notebook 02, for the notebooks that go on from there."""

from __future__ import annotations

from pspin_kernels import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

import triton
import triton.language as tl


@triton.jit
def load_rows(x, first, T, d, C: tl.constexpr, W: tl.constexpr):
    t, c = first + tl.arange(0, C), tl.arange(0, W)
    inside = (t[:, None] < T) & (c[None, :] < d)
    return tl.load(x + t[:, None] * d + c[None, :], mask=inside, other=0.0)  # [C, W]


@triton.jit
def store_rows(x, block, first, T, d, C: tl.constexpr, W: tl.constexpr):
    t, c = first + tl.arange(0, C), tl.arange(0, W)
    inside = (t[:, None] < T) & (c[None, :] < d)
    tl.store(x + t[:, None] * d + c[None, :], block, mask=inside)


@triton.jit
def decay_mask(g, C: tl.constexpr):  # [C] → [C, C]
    i = tl.arange(0, C)
    after_j = tl.where(i[:, None] > i[None, :], g[:, None], 0.0)  # [c, j]: g_c where c > j
    segment = tl.cumsum(after_j, 0)
    return tl.where(i[:, None] >= i[None, :], tl.exp(segment), 0.0)


@triton.jit
def decays(G, C: tl.constexpr):  # [C] → what is left from the chunk's start, and to its end: [C] twice
    i = tl.arange(0, C)
    from_start = tl.sum(tl.where(i[None, :] <= i[:, None], G[None, :], 0.0), 1)
    to_end = tl.sum(tl.where(i[None, :] > i[:, None], G[None, :], 0.0), 1)  # no subtraction
    return tl.exp(from_start), tl.exp(to_end)
