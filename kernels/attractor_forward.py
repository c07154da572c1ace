"""The p-spin attractor, forward: one step in one kernel, and the rule by which a token stops.

    [U | G] = H = Z + ((gamma * Y) C^T) s      Eq. spin-field, Eq. spin-split
    Y' = tanh(U) * sigmoid(G)                  Eq. spin-output

Glossary (rows are tokens)
    name          shape              paper         meaning
    z             [n, 2*D]           Z             external drive; D is the paper's Dint
    y, out        [n, D]             Y_k-1, Y_k    spins before and after the step: two buffers that take turns
    codes         [2*D, row_bytes]   W_int^Q / s   two bits a coupling, see ternary.py; the rows of U, then those of G
    scale         [1] float32        s
    gamma         [D]                gamma
    acts          [n, 2*D]           -             [tanh U | sigmoid G] of a token's last step: what backward needs
    BM BN BK                                       tokens, spins and summed spins of one program's tiles

One program owns BM tokens and BN spins, *both* halves of them, so that U and G of a spin meet on chip: neither H nor
the gates travel through memory, except as acts at the last step. Sums are float32, whatever the inputs are.

With a tolerance every token stops by itself, and nobody asks the host:
    running       [n] int32          1 while the token goes on
    change        [n] float32        relative change of its last step; 1 before the first
    count         [n] int32          steps it took
    live          [row tiles] int32  2: some token of the tile goes on; 1: none does, but its values must still be
                                     copied to the other buffer; 0: its programs return at once
    moved, size   [col tiles, n]     sums of (Y'-Y)^2 and Y'^2 over one tile's spins, added up in a fixed order
Which step is a token's last is known only after it, so with a tolerance every step writes acts.
"""

from __future__ import annotations

from . import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

import triton
import triton.language as tl

from .ternary import load_codes


@triton.jit
def tanh(x):
    """From an exponential that cannot overflow; near 0, where 1 - e would cancel, from the series."""
    e = tl.exp(-2.0 * tl.abs(x))
    far = (1.0 - e) / (1.0 + e)
    q = tl.minimum(x * x, 1.0)
    near = x * (1.0 + q * (-1.0 / 3 + q * (2.0 / 15 + q * (-17.0 / 315 + q * (62.0 / 2835)))))
    return tl.where(q < 0.0625, near, tl.where(x < 0, -far, far))


@triton.jit
def sigmoid(x):
    e = tl.exp(-tl.abs(x))
    return tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def tally(new, old, at, real, moved, size):
    """One partial sum a row of new, old [BM, BN], to the places `at` [BM]. Outside the matrix both must be 0."""
    new, old = new.to(tl.float32), old.to(tl.float32)
    tl.store(moved + at, tl.sum((new - old) * (new - old), 1), mask=real)
    tl.store(size + at, tl.sum(new * new, 1), mask=real)


@triton.jit
def start_kernel(z, y, n, D, z_stride, BM: tl.constexpr, BN: tl.constexpr):
    """Y_0 = spin(Z), one tile."""
    first = tl.program_id(0).to(tl.int64) * BM
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (first + rows < n)[:, None] & (cols < D)[None, :]
    drive = z + first * z_stride + rows[:, None] * z_stride + cols[None, :]
    u = tl.load(drive, mask=inside, other=0.0).to(tl.float32)  # the U half of z [BM, BN]
    g = tl.load(drive + D, mask=inside, other=0.0).to(tl.float32)  # the G half of z [BM, BN]
    new = tanh(u) * sigmoid(g)  # Eq. spin-output
    tl.store(y + first * D + rows[:, None] * D + cols[None, :], new.to(y.dtype.element_ty), mask=inside)


@triton.jit
def spin_kernel(
    z, y, out, acts, codes, scale, gamma, running, live, moved, size, n, D, z_stride, row_bytes,
    TOL: tl.constexpr, KEEP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One step of one tile. KEEP: write acts. TOL: tokens may have stopped; tally how far the others move."""
    tile = tl.program_id(0)
    dtype: tl.constexpr = y.dtype.element_ty
    first = tile.to(tl.int64) * BM
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    real = first + rows < n
    inside = real[:, None] & (cols < D)[None, :]
    y += first * D
    out += first * D
    here = rows[:, None] * D + cols[None, :]
    if TOL:
        state = tl.load(live + tile)  # a scalar: 2, 1 or 0
        if state == 0:
            return
        if state == 1:
            tl.store(out + here, tl.load(y + here, mask=inside), mask=inside)  # y [BM, BN], copied
            return

    u, g = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, D, BK):
        ks = k + tl.arange(0, BK)
        spins = tl.load(
            y + rows[:, None] * D + ks[None, :], mask=real[:, None] & (ks < D)[None, :], other=0.0
        )  # [BM, BK]
        frustration = tl.load(gamma + ks, mask=ks < D, other=0.0)  # gamma [BK]
        a = (spins.to(tl.float32) * frustration.to(tl.float32)[None, :]).to(dtype)
        to_u = load_codes(codes, cols, D, k // 4, row_bytes, BK // 4, dtype)  # couplings to U [BN, BK]
        to_g = load_codes(codes + D * row_bytes, cols, D, k // 4, row_bytes, BK // 4, dtype)  # couplings to G [BN, BK]
        u = tl.dot(a, tl.trans(to_u), u, input_precision="ieee")
        g = tl.dot(a, tl.trans(to_g), g, input_precision="ieee")

    s = tl.load(scale)  # a scalar
    drive = z + first * z_stride + rows[:, None] * z_stride + cols[None, :]
    u = tanh(u * s + tl.load(drive, mask=inside, other=0.0).to(tl.float32))  # the U half of z [BM, BN]; Eq. spin-field
    g = sigmoid(
        g * s + tl.load(drive + D, mask=inside, other=0.0).to(tl.float32)
    )  # the G half [BM, BN]; Eq. spin-split
    new = (u * g).to(dtype)  # Eq. spin-output
    kept = inside
    if TOL:
        old = tl.load(y + here, mask=inside, other=0.0)  # y [BM, BN], this tile's own spins
        kept = inside & (tl.load(running + first + rows, mask=real, other=0) != 0)[:, None]  # running [BM]
        new = tl.where(kept, new, old)
        tally(new, old, tl.program_id(1).to(tl.int64) * n + first + rows, real, moved, size)
    tl.store(out + here, new, mask=inside)
    if KEEP:
        at = acts + first * (2 * D) + rows[:, None] * (2 * D) + cols[None, :]
        tl.store(at, u.to(dtype), mask=kept)
        tl.store(at + D, g.to(dtype), mask=kept)


@triton.jit
def settle_kernel(
    running, change, count, live, moved, size, n, tiles, tol, tiny, floor, BM: tl.constexpr, BT: tl.constexpr
):
    """After a step: which of BM tokens go on. Changes shrink by r = c/b a step, b the change before: a token that moved
    by c will still move by about c r / (1 - r) in all. It stops once that is below tol, or once c is mere rounding."""
    tile = tl.program_id(0)
    state = tl.load(live + tile)  # a scalar
    if state == 0:
        return
    first = tile.to(tl.int64) * BM
    rows = first + tl.arange(0, BM)
    real = rows < n
    far, large = tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    for t in range(0, tiles, BT):
        ts = t + tl.arange(0, BT)
        at, inside = ts[:, None].to(tl.int64) * n + rows[None, :], (ts < tiles)[:, None] & real[None, :]
        far += tl.sum(tl.load(moved + at, mask=inside, other=0.0), 0)  # partial sums [BT, BM]
        large += tl.sum(tl.load(size + at, mask=inside, other=0.0), 0)  # partial sums [BT, BM]
    ran = tl.load(running + rows, mask=real, other=0)  # running [BM]
    b = tl.load(change + rows, mask=real, other=1.0)  # change [BM]
    c = tl.sqrt(far) / tl.maximum(tl.sqrt(large), tiny)
    goes = tl.where((c * c > tol * (b - c)) & (c > floor), ran, 0)
    tl.store(count + rows, tl.load(count + rows, mask=real, other=0) + ran, mask=real)  # count [BM]
    tl.store(change + rows, tl.where(ran != 0, c, b), mask=real)
    tl.store(running + rows, goes, mask=real)
    tl.store(live + tile, tl.where(tl.max(goes, 0) > 0, 2, state - 1))
