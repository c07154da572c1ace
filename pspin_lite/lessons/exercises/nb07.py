"""Exercises of notebook 07. Two answers are in Triton; 7.3 runs a kernel with seeded bugs."""

from __future__ import annotations

from pspin_kernels import runtime  # isort: skip

import inspect

import torch
import triton
import triton.language as tl
from pspin_kernels.attractor_forward import sigmoid, tanh

from ... import attractor, ternary
from ..kernels import load_block, store_block
from . import Exercise, expect, launch

BM, BN, BK = tl.constexpr(16), tl.constexpr(32), tl.constexpr(16)  # the notebook's tiles


def random(*shape: int) -> torch.Tensor:
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(0), device="cpu")
    return numbers.to("cpu" if runtime.INTERPRETED else "cuda")


@triton.jit
def load_codes(packed, rows, n_rows, first_byte, row_bytes, BYTES: tl.constexpr, FILL: tl.constexpr = 0x55):
    bytes_ = first_byte + tl.arange(0, BYTES)
    inside = (rows[:, None] < n_rows) & (bytes_[None, :] < row_bytes)
    four = tl.load(packed + rows[:, None] * row_bytes + bytes_[None, :], mask=inside, other=FILL)
    even = tl.interleave(four & 3, (four >> 4) & 3)
    odd = tl.interleave((four >> 2) & 3, (four >> 6) & 3)
    return tl.interleave(even, odd).to(tl.float32) - 1.0


@triton.jit
def decode_product(x, packed, scale, out, D, outputs, row_bytes, BN: tl.constexpr, BYTES: tl.constexpr):
    rows, ks = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, 4 * BYTES)
    codes = load_codes(packed, rows, outputs, 0, row_bytes, BYTES)  # [BN, 4 BYTES]
    inputs = tl.load(x + ks, mask=ks < D, other=0.0)  # [4 BYTES]
    tl.store(out + rows, tl.sum(codes * inputs[None, :], 1) * tl.load(scale), mask=rows < outputs)


def grade_decode(answer) -> None:
    codes, s = ternary.quantize(random(40, 24))
    x, packed = random(24), ternary.pack(codes)
    out = torch.full((48,), torch.nan, device=x.device)
    launch(answer, (3,), x, packed, s.reshape(1), out, 24, 40, 6, BN=16, BYTES=8)
    expect("out", out[:40], (codes * s) @ x)
    assert out[40:].isnan().all(), "something is written beyond the last output: mask the store"


@triton.jit
def feedback(y, packed, gamma, rows, cols, T, I, row_bytes):  # [BM, BN] twice
    lower = packed + I * row_bytes  # the half that makes a
    u, a = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, I, BK):
        ks = k + tl.arange(0, BK)
        damping = tl.load(gamma + ks, mask=ks < I, other=0.0)
        spins = load_block(y, rows, ks, T, I, I) * damping[None, :]
        to_u = load_codes(packed, cols, I, k // 4, row_bytes, BK // 4)
        to_a = load_codes(lower, cols, I, k // 4, row_bytes, BK // 4)
        u = tl.dot(spins, tl.trans(to_u), u, input_precision="ieee")
        a = tl.dot(spins, tl.trans(to_a), a, input_precision="ieee")
    return u, a


@triton.jit
def write_feedback(y, packed, gamma, out, T, I, row_bytes, function: tl.constexpr):
    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    u, a = function(y, packed, gamma, rows, cols, T, I, row_bytes)
    store_block(out, u, rows, cols, T, I)
    store_block(out + T * I, a, rows, cols, T, I)


def grade_feedback(answer) -> None:
    """Two programs each way, the last of them reaching past the end, and a damping that differs from spin to spin."""
    if not hasattr(answer, "fn"):
        answer()
        raise AssertionError("this is a plain function: is there an @triton.jit above it?")
    if "raise NotImplementedError" in inspect.getsource(answer.fn):
        raise NotImplementedError
    T, I = 20, 36
    y, gamma = random(T, I), random(I).abs()
    codes, _ = ternary.quantize(random(2 * I, I))
    out = torch.full((2, T, I), torch.nan, device=y.device)
    launch(write_feedback, (2, 2), y, ternary.pack(codes), gamma, out, T, I, I // 4, function=answer)
    upper, lower = codes.float().chunk(2)
    undamped = (out[0] - y @ upper.T).abs().max() < 1e-3
    assert not undamped, "u is the sum of undamped spins: multiply by gamma"
    expect("u", out[0], (gamma * y) @ upper.T)
    expect("a", out[1], (gamma * y) @ lower.T)


@triton.jit
def seeded_step(z, y, out, packed, gamma, T, I, row_bytes, stop, FILL: tl.constexpr):
    """spin_step of the notebook with a scale of 1; `stop` ends its loop, FILL is what a masked byte holds."""
    rows, cols = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    tokens, inside = rows[:, None] < T, (rows[:, None] < T) & (cols[None, :] < I)
    u, a = tl.zeros((16, 32), tl.float32), tl.zeros((16, 32), tl.float32)
    for k in range(0, stop, 16):
        ks = k + tl.arange(0, 16)
        damping = tl.load(gamma + ks, mask=ks < I, other=0.0)
        spins = tl.load(y + rows[:, None] * I + ks[None, :], mask=tokens & (ks < I)[None, :], other=0.0)
        to_u = load_codes(packed, cols, I, k // 4, row_bytes, 4, FILL)
        to_a = load_codes(packed + I * row_bytes, cols, I, k // 4, row_bytes, 4, FILL)
        u = tl.dot(spins * damping[None, :], tl.trans(to_u), u, input_precision="ieee")
        a = tl.dot(spins * damping[None, :], tl.trans(to_a), a, input_precision="ieee")
    drive = z + rows[:, None] * 2 * I + cols[None, :]
    u += tl.load(drive, mask=inside, other=0.0)
    a += tl.load(drive + I, mask=inside, other=0.0)
    tl.store(out + rows[:, None] * I + cols[None, :], tanh(u) * sigmoid(a), mask=inside)


def goes_wrong(bug: str, T: int, I: int) -> bool:
    """Runs one step with the bug and compares it with PyTorch. In place, compiled programs race; interpreted ones run
    in order."""
    z, gamma = random(T, 2 * I), torch.full((I,), 0.4, device=random(1).device)
    codes, _ = ternary.quantize(random(2 * I, I))
    y = attractor.spin(z)
    expected = attractor.step(y, z, codes.float(), gamma)
    out = y if bug == "in place" else torch.empty_like(y)
    grid = (triton.cdiv(T, 16), triton.cdiv(I, 32))
    stop, fill = I - 15 if bug == "cut" else I, 0 if bug == "fill" else 0x55
    seeded_step[grid](z, y, out, ternary.pack(codes), gamma, T, I, I // 4, stop, FILL=fill)
    return (out - expected).abs().max().item() > 1e-4


def shows(bug: str, T: int, I: int) -> bool:
    """ "fill": never, wrong codes meet spins that are masked to zero. "in place": if a token's spins lie in several
    programs. "cut": if a last, partial block of the sum is lost."""
    return {"fill": False, "in place": I > 32, "cut": I % 16 > 0}[bug]


def grade_shows(answer) -> None:
    for bug in ("fill", "in place", "cut"):
        for T, I in ((16, 32), (20, 36), (40, 24), (16, 64)):
            expect(f'"{bug}" with T = {T}, I = {I}', answer(bug, T, I), goes_wrong(bug, T, I), 0)


def neumann_bytes(T: int, I: int, size: int, BM: int, BN: int) -> float:
    """Three arrays of spins (acts are two) for each tile of columns, two that travel once, and for each tile of rows a
    quarter of a byte for each of 2 I² couplings."""
    return (3 * (I // BN) + 2) * T * I * size + T // BM * 2 * I * I / 4


def grade_bytes(answer) -> None:
    for sizes, expected in (
        ((2048, 2048, 4, 2048, 2048), 82 * 2**20),  # one tile: every tensor once
        ((2048, 2048, 4, 16, 32), 3360 * 2**20),
        ((64, 128, 2, 16, 32), 262_144),
    ):
        expect(
            "bytes for T = {}, I = {}, {} bytes per number, tiles of {} × {}".format(*sizes),
            answer(*sizes),
            expected,
            0,
        )


EXERCISES = {
    "7.1": Exercise(
        grade_decode,
        decode_product,
        "rows = program * BN + tl.arange(0, BN). Load x as a block of 4 * BYTES with a mask, multiply by broadcasting, "
        "tl.sum along the columns, then the scale. Mask the store by rows < outputs.",
    ),
    "7.2": Exercise(
        grade_feedback,
        feedback,
        "Load gamma + ks with a mask and multiply spins by its [None, :]. The codes for a are I * row_bytes further "
        "on than those for u. A second tl.dot adds to a second block of zeros.",
    ),
    "7.3": Exercise(
        grade_shows,
        shows,
        "What is a filled code multiplied by? Which programs read what another one has written? Which spins does the "
        "last round of the loop add? One of the three never shows.",
    ),
    "7.4": Exercise(
        grade_bytes,
        neumann_bytes,
        "I // BN programs read the same rows of three arrays: the old adjoint and acts, which are two. T // BM "
        "programs read the same columns of couplings, four codes per byte. dy and the new adjoint travel once.",
    ),
}
