"""Exercises of notebook 07. Two answers are Triton kernels."""

from __future__ import annotations

from pspin_kernels import runtime  # isort: skip

import torch
import triton
import triton.language as tl

from ... import ternary
from . import Exercise, expect, launch


def random(*shape: int) -> torch.Tensor:
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(0), device="cpu")
    return numbers.to("cpu" if runtime.INTERPRETED else "cuda")


def code_at(byte: int, i: int) -> int:
    """Two bits from place 2 i on, minus one."""
    return (byte >> 2 * i & 3) - 1


def grade_code(answer) -> None:
    for codes in ((1, -1, 0, 1), (0, 0, 0, 0), (-1, 1, 1, 0)):
        (byte,) = ternary.pack(torch.tensor(codes, device="cpu")).tolist()
        for i, code in enumerate(codes):
            expect(f"place {i} of byte {byte}", answer(byte, i), code, 0)


@triton.jit
def load_codes(packed, rows, R, first, row_bytes, BYTES: tl.constexpr):
    at = first + tl.arange(0, BYTES)
    inside = (rows[:, None] < R) & (at[None, :] < row_bytes)
    four = tl.load(packed + rows[:, None] * row_bytes + at[None, :], mask=inside, other=0x55)
    even = tl.interleave(four & 3, (four >> 4) & 3)
    odd = tl.interleave((four >> 2) & 3, (four >> 6) & 3)
    return tl.interleave(even, odd).to(tl.float32) - 1.0


@triton.jit
def decode_product(x, packed, scale, y, K, N, row_bytes, BN: tl.constexpr, BYTES: tl.constexpr):
    rows, ks = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, 4 * BYTES)
    c = load_codes(packed, rows, N, 0, row_bytes, BYTES)  # [BN, 4 BYTES]
    v = tl.load(x + ks, mask=ks < K, other=0.0)  # [4 BYTES]
    tl.store(y + rows, tl.sum(c * v[None, :], 1) * tl.load(scale), mask=rows < N)


def grade_decode(answer) -> None:
    codes, s = ternary.quantize(random(40, 24))
    x, packed = random(24), ternary.pack(codes)
    y = torch.full((48,), torch.nan, device=x.device)
    launch(answer, (3,), x, packed, s.reshape(1), y, 24, 40, 6, BN=16, BYTES=8)
    expect("y", y[:40], (codes * s) @ x)
    assert y[40:].isnan().all(), "something is written beyond the last output: mask the store"


def neumann_bytes(n: int, D: int, size: int) -> float:
    """Five arrays of spins (acts are two) and a quarter of a byte for each of 2 D² couplings."""
    return 5 * n * D * size + 2 * D * D / 4


def grade_bytes(answer) -> None:
    for (n, D, size), expected in (((2048, 2048, 4), 85_983_232), ((1, 1408, 2), 1_005_312)):
        expect(f"bytes for n = {n}, D = {D}, {size} bytes a number", answer(n, D, size), expected, 0)


@triton.jit
def slopes(acts, phi, D, W: tl.constexpr):
    token, c = tl.program_id(0), tl.arange(0, W)
    at = token * 2 * D + c
    t = tl.load(acts + at, mask=c < D, other=0.0)
    sg = tl.load(acts + at + D, mask=c < D, other=0.0)
    tl.store(phi + at, (1 - t * t) * sg, mask=c < D)  # Eq. spin-slopes
    tl.store(phi + at + D, t * sg * (1 - sg), mask=c < D)


def grade_slopes(answer) -> None:
    U, G = (x.requires_grad_() for x in random(2, 3, 20))
    t, sg = U.tanh(), G.sigmoid()
    expected = torch.cat(torch.autograd.grad((t * sg).sum(), (U, G)), 1)
    acts, phi = torch.cat([t, sg], 1).detach(), torch.full((3, 40), torch.nan, device=U.device)
    launch(answer, (3,), acts, phi, 20, W=32)
    expect("phi", phi, expected)


EXERCISES = {
    "7.1": Exercise(
        grade_code, code_at, "Shift right by two bits for each place, keep two bits with & 3, subtract one."
    ),
    "7.2": Exercise(
        grade_decode,
        decode_product,
        "rows = program * BN + tl.arange(0, BN). Load x as a block of 4 * BYTES with a mask, multiply by broadcasting, "
        "tl.sum along the columns, then the scale. Mask the store by rows < N.",
    ),
    "7.3": Exercise(
        grade_bytes,
        neumann_bytes,
        "acts are two arrays of n * D; with dY, V and the new V that makes five. Four codes a byte.",
    ),
    "7.4": Exercise(
        grade_slopes,
        slopes,
        "The G half lies D numbers after the U half of the same token. Mask all loads and stores by c < D.",
    ),
}
