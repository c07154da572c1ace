"""The p-spin attractor in fused steps, forward and backward, over packed ternary couplings.

    forward    [U | G] = H = Z + ((gamma * Y) C^T) s,  then  Y' = tanh(U) * sigmoid(G)       Eq. spin-field, spin-output
    backward   V' = dY + gamma * (([V phi_u | V phi_g] C) s)                                 Eq. neumann

Glossary (rows are tokens)
    name       shape             paper         meaning
    z          [n, 2*D]          Z             external drive; D is the paper's Dint
    y, out     [n, D]            Y_k-1, Y_k    spins before and after the step: two buffers that take turns
    codes      [2*D, row_bytes]  W_int^Q / s   two bits a coupling, see ternary.py; rows of U, then rows of G
    scale      [1] float32       s
    gamma      [D]               gamma
    acts       [n, 2*D]          -             [tanh U | sigmoid G] of a token's last step, all that backward needs
    dy, v      [n, D]            dL/dY, V      gradient of the answer; the Neumann sum
    dh         [n, 2*D]          dL/dH         [V phi_u | V phi_g] (Eq. spin-grad), the gradient of Z

One program owns BM tokens and the BN spins of *both* halves, so U and G of a spin meet on chip: H and the gates reach
memory only as acts, once, at the last step. Sums are float32, whatever the inputs are.

With a tolerance every token stops by itself (the rule: `settle_kernel`), and nobody asks the host:
    running    [n] int32            1 while the token goes on
    change     [n] float32          relative change of its last step (1 before the first)
    count      [n] int32            steps it took
    live       [row tiles] int32    2: some token of the tile goes on.  1: none does, but its values must still be copied
                                    to the other buffer.  0: its programs return at once
    moved, size  [column tiles, n]  sums of (Y'-Y)^2 and Y'^2 over one tile's spins, added up in a fixed order
"""

from __future__ import annotations

from . import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from .ternary import DTYPES, aligned, load_codes

COPY, GO = 1, 2  # values of `live`


@triton.jit
def tanh(x):
    """From one exponential that cannot overflow; near 0, where 1 - e would cancel, its series."""
    e = tl.exp(-2.0 * tl.abs(x))
    far = (1.0 - e) / (1.0 + e)
    q = x * x
    near = x * (1.0 + q * (-1.0 / 3 + q * (2.0 / 15 + q * (-17.0 / 315 + q * (62.0 / 2835)))))
    return tl.where(q < 0.0625, near, tl.where(x < 0, -far, far))


@triton.jit
def sigmoid(x):
    e = tl.exp(-tl.abs(x))
    return tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def record(new, old, at, moved, size):
    """How far each row of a tile moved, and how large it is: one partial sum a row. new, old [BM, BN]; at [BM]: where."""
    tl.store(moved + at, tl.sum((new - old) * (new - old), 1))
    tl.store(size + at, tl.sum(new * new, 1))


@triton.jit
def start_kernel(z, y, n, D, z_stride, BM: tl.constexpr, BN: tl.constexpr):
    """Y_0 = spin(Z), one tile."""
    first = tl.program_id(0).to(tl.int64) * BM
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (first + rows < n)[:, None] & (cols < D)[None, :]
    at = z + first * z_stride + rows[:, None] * z_stride + cols[None, :]
    u = tl.load(at, mask=inside, other=0.0).to(tl.float32)  # U half of z [BM, BN]
    g = tl.load(at + D, mask=inside, other=0.0).to(tl.float32)  # G half of z [BM, BN]
    new = tanh(u) * sigmoid(g)  # Eq. spin-output
    tl.store(y + first * D + rows[:, None] * D + cols[None, :], new.to(y.dtype.element_ty), mask=inside)


@triton.jit
def spin_kernel(
    z, y, out, acts, codes, scale, gamma, running, live, moved, size, n, D, z_stride, row_bytes,
    TOL: tl.constexpr, KEEP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One step of one tile. KEEP: write acts. TOL: tokens may have stopped; record how far the others move."""
    tile, dtype = tl.program_id(0), y.dtype.element_ty
    first = tile.to(tl.int64) * BM
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    real = first + rows < n
    inside = real[:, None] & (cols < D)[None, :]
    y += first * D
    here = rows[:, None] * D + cols[None, :]
    if TOL:
        state = tl.load(live + tile)  # a scalar
        if state == 0:
            return
        old = tl.load(y + here, mask=inside, other=0.0)  # y [BM, BN], this tile's own spins
        if state == 1:
            tl.store(out + first * D + here, old, mask=inside)
            return

    u, g = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, D, BK):
        ks = k + tl.arange(0, BK)
        spins = tl.load(y + rows[:, None] * D + ks[None, :], mask=real[:, None] & (ks < D)[None, :], other=0.0)  # y [BM, BK]
        frustration = tl.load(gamma + ks, mask=ks < D, other=0.0)  # gamma [BK]
        a = (spins.to(tl.float32) * frustration.to(tl.float32)[None, :]).to(dtype)
        to_u = load_codes(codes, cols, D, k // 4, row_bytes, BK // 4, dtype)  # couplings of U [BN, BK]
        to_g = load_codes(codes + D * row_bytes, cols, D, k // 4, row_bytes, BK // 4, dtype)  # couplings of G [BN, BK]
        u = tl.dot(a, tl.trans(to_u), u, input_precision="ieee")
        g = tl.dot(a, tl.trans(to_g), g, input_precision="ieee")

    s = tl.load(scale)  # a scalar
    drive = z + first * z_stride + rows[:, None] * z_stride + cols[None, :]
    u = u * s + tl.load(drive, mask=inside, other=0.0).to(tl.float32)  # U half of z [BM, BN]; Eq. spin-field
    g = g * s + tl.load(drive + D, mask=inside, other=0.0).to(tl.float32)  # G half of z [BM, BN]; Eq. spin-split
    u, g = tanh(u), sigmoid(g)
    new = (u * g).to(dtype)  # Eq. spin-output
    stored = inside
    if TOL:
        goes = tl.load(running + first + rows, mask=real, other=0) != 0  # [BM]
        stored = inside & goes[:, None]
        new = tl.where(goes[:, None], new, old)
        at = tl.program_id(1) * n.to(tl.int64) + first + rows
        new_, old_ = tl.where(inside, new.to(tl.float32), 0.0), old.to(tl.float32)
        tl.store(moved + at, tl.sum((new_ - old_) * (new_ - old_), 1), mask=real)
        tl.store(size + at, tl.sum(new_ * new_, 1), mask=real)
    tl.store(out + first * D + here, new, mask=inside)
    if KEEP:
        at = acts + first * (2 * D) + rows[:, None] * (2 * D) + cols[None, :]
        tl.store(at, u.to(dtype), mask=stored)
        tl.store(at + D, g.to(dtype), mask=stored)
