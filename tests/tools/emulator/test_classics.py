"""The four kernels that everybody writes first: vector sum, softmax, matrix product, layer norm forward and backward.
Ours, compiled by Triton and executed by the emulator, against PyTorch in float64.

They use what our other kernels do not: a loop over rows whose number depends on the program, a pipeline of several
stages in three number types, and a lock in global memory that programs wait for. docs/emulator.md has what Triton's own
tutorial kernels of these names gave.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from helpers import assert_same, error

from pspin_lite.tools.emulator.driver import chip

CHIPS = ("sm_80", "sm_90")
# Largest error, relative to the largest entry: a few roundings of the result's type.
TOLERANCE = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


@pytest.fixture(params=CHIPS)
def emulator(request):
    with chip(request.param) as driver:
        yield driver


def drawn(*shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@triton.jit
def add(x, y, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@DTYPES
def test_vector_sum(emulator, dtype):
    x, y = drawn(1000, dtype=dtype), drawn(1000, dtype=dtype, seed=1)
    out = torch.full_like(x, torch.nan)
    add[(triton.cdiv(1000, 128),)](x, y, out, 1000, SIZE=128)
    assert torch.equal(out, x + y)


@triton.jit
def softmax(x, out, rows, width, stride, WIDTH: tl.constexpr, STAGES: tl.constexpr):
    """Every program takes several rows, as many apart as there are programs."""
    i = tl.arange(0, WIDTH)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * stride + i, mask=i < width, other=float("-inf")).to(tl.float32)
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(out + row * width + i, powers / tl.sum(powers, 0), mask=i < width)


@DTYPES
@pytest.mark.parametrize("stages", [1, 3])
def test_softmax(emulator, dtype, stages):
    x = drawn(23, 100, dtype=dtype)[:, :90]  # rows lie further apart than they are wide
    out = torch.full((23, 90), torch.nan, dtype=dtype)
    softmax[(5,)](x, out, 23, 90, x.stride(0), WIDTH=128, STAGES=stages, num_warps=4)
    assert error(out, x.double().softmax(-1)) < TOLERANCE[dtype]


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    """One tile of c = a b. Programs are numbered along the columns of tiles."""
    tiles = tl.cdiv(M, BM)
    m = tl.program_id(0) % tiles * BM + tl.arange(0, BM)
    n = tl.program_id(0) // tiles * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :])


@DTYPES
@pytest.mark.parametrize("stages", [1, 4])
def test_matrix_product(emulator, dtype, stages):
    """128 columns of k: four steps of a pipeline. Rows and columns fill no tile."""
    a, b = drawn(70, 128, dtype=dtype), drawn(128, 136, dtype=dtype, seed=1)
    c = torch.full((70, 136), torch.nan, dtype=dtype)
    grid = (triton.cdiv(70, 64) * triton.cdiv(136, 64),)
    product[grid](a, b, c, 70, 136, 128, BM=64, BN=64, BK=32, PRECISION="ieee", num_stages=stages)
    assert error(c, a.double() @ b.double()) < TOLERANCE[dtype]


def test_matrix_product_of_tf32(emulator):
    """Operands lose 13 bits of 23: an error of up to 2^-10 each, always towards zero."""
    a, b = drawn(70, 128, dtype=torch.float32), drawn(128, 136, dtype=torch.float32, seed=1)
    c = torch.full((70, 136), torch.nan)
    product[(6,)](a, b, c, 70, 136, 128, BM=64, BN=64, BK=32, PRECISION="tf32", num_stages=3)
    assert 1e-5 < error(c, a.double() @ b.double()) < 2e-3


@triton.jit
def norm(x, w, b, y, mean, scale, width, epsilon, WIDTH: tl.constexpr):
    """y = (x - mean) scale w + b, one row."""
    row, i = tl.program_id(0), tl.arange(0, WIDTH)
    inside = i < width
    values = tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32)
    average = tl.sum(values, 0) / width
    centred = tl.where(inside, values - average, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, 0) / width + epsilon)
    tl.store(mean + row, average)
    tl.store(scale + row, factor)
    result = centred * factor * tl.load(w + i, mask=inside) + tl.load(b + i, mask=inside)
    tl.store(y + row * width + i, result, mask=inside)


@triton.jit
def norm_backward(x, w, dy, mean, scale, dx, sums, locks, width, LOCKS: tl.constexpr, WIDTH: tl.constexpr):
    """dx of one row; dw and db are added to one of LOCKS pairs of rows of `sums`, one program after the other."""
    row, i = tl.program_id(0), tl.arange(0, WIDTH)
    inside = i < width
    factor = tl.load(scale + row)
    normal = (tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32) - tl.load(mean + row)) * factor
    normal = tl.where(inside, normal, 0.0)
    grad = tl.load(dy + row * width + i, mask=inside, other=0.0).to(tl.float32)
    weighted = grad * tl.load(w + i, mask=inside, other=0.0)
    along, constant = tl.sum(weighted * normal, 0) / width, tl.sum(weighted, 0) / width
    tl.store(dx + row * width + i, (weighted - normal * along - constant) * factor, mask=inside)

    lock, mine = locks + row % LOCKS, sums + (row % LOCKS) * 2 * width + i
    while tl.atomic_cas(lock, 0, 1) != 0:
        pass
    tl.store(mine, tl.load(mine, mask=inside) + grad * normal, mask=inside)
    tl.store(mine + width, tl.load(mine + width, mask=inside) + grad, mask=inside)
    tl.debug_barrier()  # all threads have stored
    tl.atomic_xchg(lock, 0)


@DTYPES
def test_layer_norm(emulator, dtype):
    rows, width = 23, 90
    x, dy = drawn(rows, width, dtype=dtype) - 2, drawn(rows, width, dtype=dtype, seed=1)
    w, b = drawn(width, dtype=dtype, seed=2), drawn(width, dtype=dtype, seed=3)
    exact = [one.double().requires_grad_() for one in (x, w, b)]
    y_exact = F.layer_norm(exact[0], (width,), exact[1], exact[2], 1e-5)
    expected = dict(zip(("dx", "dw", "db"), torch.autograd.grad(y_exact, exact, dy.double()), strict=True))

    y, dx = torch.full_like(x, torch.nan), torch.full_like(x, torch.nan)
    mean, scale = torch.full((rows,), torch.nan), torch.full((rows,), torch.nan)
    norm[(rows,)](x, w, b, y, mean, scale, width, 1e-5, WIDTH=128, num_warps=2)
    sums, locks = torch.zeros(4, 2, width), torch.zeros(4, dtype=torch.int32)  # five or six programs for each lock
    norm_backward[(rows,)](x, w, dy, mean, scale, dx, sums, locks, width, LOCKS=4, WIDTH=128, num_warps=2)
    dw, db = sums.sum(0)
    result = dict(y=y, dx=dx, dw=dw, db=db)
    assert_same(result, expected | dict(y=y_exact.detach()), TOLERANCE[dtype])
    assert not locks.any()
