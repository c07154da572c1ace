"""Kernels that we did not write, compiled by Triton and executed by the emulator, against PyTorch in float64.

They are imported from the package fla-core (flash-linear-attention). An emulated run cannot be timed, so autotuned
kernels take the first configuration; the matrix product takes one that fits both chips. Without a GPU fla chooses its
smallest tiles.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import triton
from helpers import assert_same, ssm_inputs, with_grads

from pspin_lite.state_space import recurrent
from pspin_lite.tools.emulator.driver import chip

# fla asks for a device when it is imported: here, outside of any `chip`, it finds none and goes on.
pytest.importorskip("fla", reason="fla-core is there for comparison only")

from fla.modules.norm.l2norm import l2norm
from fla.modules.norm.layernorm import layer_norm, rms_norm
from fla.ops.simple_gla import chunk_simple_gla
from fla.ops.utils.cumsum import chunk_global_cumsum, chunk_local_cumsum
from fla.ops.utils.matmul import matmul, matmul_kernel
from fla.ops.utils.softmax import softmax_bwd, softmax_fwd

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


def agree(function, reference, *inputs: torch.Tensor, tolerance: float) -> None:
    """Values and gradients."""
    expected = with_grads(reference, [x.double() for x in inputs])
    assert_same(with_grads(function, list(inputs)), expected, tolerance)


@DTYPES
def test_softmax(emulator, dtype):
    x, dp = drawn(5, 100, dtype=dtype), drawn(5, 100, dtype=torch.float32, seed=1)
    exact = x.double().requires_grad_()
    p = exact.softmax(-1)
    (dx,) = torch.autograd.grad(p, exact, dp.double())
    result = softmax_fwd(x)
    assert_same(dict(p=result, dx=softmax_bwd(result, dp)), dict(p=p.detach(), dx=dx), 1e-6)  # computed in float32


@DTYPES
def test_matrix_product(emulator, dtype, monkeypatch):
    tiles = dict(BM=64, BK=32, BN=128, G=4)  # its fifth configuration: of the first, float32 does not fit into sm_80
    monkeypatch.setattr(matmul_kernel.fn, "configs", [triton.Config(tiles, num_stages=4, num_warps=4)])
    a, b = drawn(70, 90, dtype=dtype), drawn(90, 130, dtype=dtype, seed=1)
    assert_same(dict(c=matmul(a, b)), dict(c=a.double() @ b.double()), TOLERANCE[dtype])


@DTYPES
def test_norms(emulator, dtype):
    x, w, b = drawn(5, 100, dtype=dtype), drawn(100, dtype=dtype, seed=1), drawn(100, dtype=dtype, seed=2)
    limit = TOLERANCE[dtype]
    agree(layer_norm, lambda x, w, b: F.layer_norm(x, (100,), w, b, 1e-5), x, w, b, tolerance=limit)
    agree(lambda x, w: rms_norm(x, w, None), lambda x, w: F.rms_norm(x, (100,), w, 1e-5), x, w, tolerance=limit)
    agree(l2norm, lambda x: x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt(), x, tolerance=limit)


def test_cumulative_sums(emulator):
    s = drawn(2, 100, 3, dtype=torch.float32)
    local = torch.cat([part.cumsum(1) for part in s.double().split(32, 1)], 1)
    result = dict(local=chunk_local_cumsum(s, chunk_size=32), whole=chunk_global_cumsum(s))
    assert_same(result, dict(local=local, whole=s.double().cumsum(1)), 1e-6)


def test_resets_of_the_gated_state_space(emulator):
    """fla subtracts sums of decays, so that a reset becomes inf - inf."""
    q, k, v, g, h = (x.float() for x in ssm_inputs(1, 100, 2, 36))
    g[:, 50] = -torch.inf
    o, _ = chunk_simple_gla(q, k, v, g, initial_state=h, scale=1.0, output_final_state=True, chunk_size=32)
    assert not o.isfinite().all()
    assert recurrent(q, k, v, g, h)[0].isfinite().all()


@DTYPES
def test_gated_state_space(emulator, dtype):
    """fla's chunk kernels for our operator, forward and backward."""
    inputs = [x.to(dtype) if i < 3 else x.float() for i, x in enumerate(ssm_inputs(1, 100, 2, 36))]
    options = dict(scale=1.0, output_final_state=True, chunk_size=32)
    # float32 operands are TF32 in fla's products: ten bits, cut off
    limit = 5e-3 if dtype == torch.float32 else TOLERANCE[dtype]
    agree(
        lambda q, k, v, g, h: chunk_simple_gla(q, k, v, g, initial_state=h, **options),
        recurrent,
        *inputs,
        tolerance=limit,
    )
