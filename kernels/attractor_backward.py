"""The p-spin attractor, backward: the Neumann step in one kernel, and the gradients that follow from its sum.

    V' = dY + gamma * (([V phi_u | V phi_g] C) s)                                 Eq. neumann
    phi_u = (1 - t^2) sg,  phi_g = t sg (1 - sg)    t = tanh U, sg = sigmoid G    Eq. spin-slopes
    dH = [V phi_u | V phi_g]                                                      Eq. spin-grad
    dW = dA gamma,  dgamma = column sums of dA * W     where dA = dH^T Y, a dense product left to PyTorch

Glossary (rows are tokens; what is not here is in attractor_forward.py)
    name      shape         paper       meaning
    dy        [n, D]        dL/dY*      gradient of the answer, where the series starts
    v, out    [n, D]        V_k-1, V_k  the sum before and after the step: two buffers that take turns
    acts      [n, 2*D]      -           [tanh U | sigmoid G] of the last step; phi is computed from it on chip
    dh        [n, 2*D]      dL/dH       the gradient of Z
    da        [2*D, D]      -           gradient of A = W diag(gamma)
    BM BN BK                            tokens, spins and summed spins (of each half) of one program's tiles
"""

from __future__ import annotations

from . import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

import triton
import triton.language as tl

from .attractor_forward import tally
from .ternary import add_product, in_order, load_words, no_products, number


@triton.jit
def spread(v, t, sg, dtype: tl.constexpr):
    """V phi_u and V phi_g of one tile, in `dtype`."""
    v, t, sg = v.to(tl.float32), t.to(tl.float32), sg.to(tl.float32)
    return (v * (1 - t * t) * sg).to(dtype), (v * t * sg * (1 - sg)).to(dtype)  # Eq. spin-slopes


@triton.jit
def neumann_kernel(
    dy, v, out, acts, codes, scale, gamma, running, live, moved, size, n, D, dy_stride, row_bytes,
    TOL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One step of one tile. TOL: tokens may have stopped; tally how far the others move."""
    tile = tl.program_id(0)
    dtype: tl.constexpr = v.dtype.element_ty
    first = tile.to(tl.int64) * BM
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    real = first + rows < n
    inside = real[:, None] & (cols < D)[None, :]
    v += first * D
    out += first * D
    acts += first * (2 * D)
    here = rows[:, None] * D + cols[None, :]
    if TOL:
        state = tl.load(live + tile)  # a scalar: 2, 1 or 0
        if state == 0:
            return
        if state == 1:
            tl.store(out + here, tl.load(v + here, mask=inside), mask=inside)  # v [BM, BN], copied
            return

    totals = no_products(BM, BN, dtype)
    for k in range(0, D, BK):
        ks = k + tl.arange(0, BK)
        there = real[:, None] & (ks < D)[None, :]
        at = acts + rows[:, None] * (2 * D) + ks[None, :]
        t = tl.load(at, mask=there, other=0.0)  # tanh U [BM, BK]
        sg = tl.load(at + D, mask=there, other=0.0)  # sigmoid G [BM, BK]
        before = tl.load(v + rows[:, None] * D + ks[None, :], mask=there, other=0.0)  # v [BM, BK]
        of_u, of_g = spread(before, t, sg, dtype)
        start = tl.program_id(1) * BN
        totals = add_product(totals, of_u, codes, ks, D, start, row_bytes, BN)  # couplings to U [BK, BN]
        totals = add_product(totals, of_g, codes + D * row_bytes, ks, D, start, row_bytes, BN)  # couplings to G

    total = in_order(totals)
    weight = tl.load(gamma + cols, mask=cols < D, other=0.0).to(tl.float32) * tl.load(scale)  # gamma [BN], s
    arrived = tl.load(
        dy + first * dy_stride + rows[:, None] * dy_stride + cols[None, :], mask=inside, other=0.0
    )  # [BM, BN]
    new = (arrived.to(tl.float32) + total * weight[None, :]).to(dtype)  # Eq. neumann
    if TOL:
        old = tl.load(v + here, mask=inside, other=0.0)  # v [BM, BN], this tile's own spins
        goes = inside & (tl.load(running + first + rows, mask=real, other=0) != 0)[:, None]  # running [BM]
        new = tl.where(goes, new, old)
        tally(new, old, tl.program_id(1).to(tl.int64) * n + first + rows, real, moved, size)
    tl.store(out + here, new, mask=inside)


@triton.jit
def field_kernel(v, acts, dh, n, D, BM: tl.constexpr, BN: tl.constexpr):
    """dH = [V phi_u | V phi_g], one tile of both halves (Eq. spin-grad)."""
    first = tl.program_id(0).to(tl.int64) * BM
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (first + rows < n)[:, None] & (cols < D)[None, :]
    here = first * (2 * D) + rows[:, None] * (2 * D) + cols[None, :]
    t = tl.load(acts + here, mask=inside, other=0.0)  # tanh U [BM, BN]
    sg = tl.load(acts + here + D, mask=inside, other=0.0)  # sigmoid G [BM, BN]
    total = tl.load(v + first * D + rows[:, None] * D + cols[None, :], mask=inside, other=0.0)  # v [BM, BN]
    of_u, of_g = spread(total, t, sg, dh.dtype.element_ty)
    tl.store(dh + here, of_u, mask=inside)
    tl.store(dh + here + D, of_g, mask=inside)


@triton.jit
def coupling_kernel(
    da, codes, scale, gamma, dgamma, M, D, row_bytes, SPAN: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr
):
    """dW = dA gamma in place, and one partial sum of dgamma over SPAN of the M = 2*D rows, for BN columns."""
    place = tl.arange(0, 8)  # of a code in its word
    cols = tl.program_id(1) * BN + 8 * tl.arange(0, BN // 8)[:, None] + place[None, :]
    frustration = tl.load(gamma + cols, mask=cols < D, other=0.0).to(tl.float32)  # gamma [BN/8, 8]
    total = tl.zeros((BR, BN // 8, 8), tl.float32)
    for r in range(0, SPAN, BR):
        rows = tl.program_id(0) * SPAN + r + tl.arange(0, BR)
        inside = (rows < M)[:, None, None] & (cols < D)[None, :, :]
        at = da + rows[:, None, None].to(tl.int64) * D + cols[None, :, :]
        grad = tl.load(at, mask=inside, other=0.0).to(tl.float32)  # da [BR, BN/8, 8]
        words = load_words(codes, rows, M, tl.program_id(1) * BN, row_bytes, BN // 8)  # codes [BR, BN/8]
        total += grad * number((words[:, :, None] >> (2 * place)[None, None, :]) & 3, tl.float32)
        tl.store(at, (grad * frustration[None, :, :]).to(da.dtype.element_ty), mask=inside)
    total = tl.sum(total, 0) * tl.load(scale)  # s, a scalar
    tl.store(dgamma + tl.program_id(0) * D + cols, total, mask=cols < D)
