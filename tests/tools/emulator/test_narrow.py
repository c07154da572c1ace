"""Numbers of 8, 4 and 2 bits that become float16 or bfloat16 on chip and are multiplied: compiled for both chips,
executed by the emulator, against PyTorch. All numbers are small and whole, so that results are equal.

Triton 3.7.1 gives every lane `kWidth` = 32 / bits numbers of k in a row, where `bits` are those of the narrowest load,
halved if there is a `tl.join`. Four lanes share one k, so that it must be 4 kWidth or more: 32 for bytes and a join.
With 16 the product is wrong (docs/emulator.md). The last test holds that no kernel of ours does that.

Runs where kernels were defined for compilation: see test_compiled.py.
"""

from __future__ import annotations

import os
import re

import pytest
import torch
import triton
import triton.language as tl
from pspin_kernels import attractor, ternary
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pspin_lite.tools.emulator.driver import CHIPS, chip
from pspin_lite.tools.kernels import machine_code

FULL = "PSPIN_CHIP" in os.environ  # `make test-emulated`; `make test` takes a part
HALF = [torch.float16, torch.bfloat16] if FULL else [torch.bfloat16]
chips = pytest.mark.parametrize("name", CHIPS)
dtypes = pytest.mark.parametrize("dtype", HALF, ids=lambda dtype: str(dtype).removeprefix("torch."))


@triton.jit
def codes_of(c, n, K: tl.constexpr, BITS: tl.constexpr):
    """Row n of c, K numbers of 8, 4 or 2 bits -> [len(n), K]"""
    BYTES: tl.constexpr = K * BITS // 8
    b = tl.load(c + n[:, None] * BYTES + tl.arange(0, BYTES)[None, :])
    if BITS == 4:
        b = tl.interleave(b & 15, b >> 4)
    elif BITS == 2:
        even, odd = tl.interleave(b & 3, (b >> 4) & 3), tl.interleave((b >> 2) & 3, (b >> 6) & 3)
        b = tl.interleave(even, odd)
    return b


@triton.jit
def product(x, c, y, M: tl.constexpr, K: tl.constexpr, BITS: tl.constexpr, FIRST: tl.constexpr):
    """y = x c^T, [M, 32]; FIRST: its transpose, by c as the first operand."""
    m, n, k = tl.arange(0, M), tl.arange(0, 32), tl.arange(0, K)
    a = tl.load(x + m[:, None] * K + k[None, :])
    b = codes_of(c, n, K, BITS).to(a.dtype)
    if FIRST:
        tl.store(y + n[:, None] * M + m[None, :], tl.dot(b, tl.trans(a)))
    else:
        tl.store(y + m[:, None] * 32 + n[None, :], tl.dot(a, tl.trans(b)))


def packed(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """The first in the lowest bits of a byte."""
    parts = codes.unflatten(-1, (-1, 8 // bits))
    return sum(parts[..., i] << bits * i for i in range(8 // bits)).contiguous()


def case(dtype: torch.dtype, M: int, K: int, bits: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, the numbers c, and how they are stored."""
    torch.manual_seed(0)
    x = torch.randint(-3, 4, (M, K)).to(dtype)
    if bits == 8:
        c = torch.randint(-128, 128, (32, K), dtype=torch.int8)
        return x, c.float(), c
    c = torch.randint(0, 2**bits, (32, K), dtype=torch.uint8)
    return x, c.float(), packed(c, bits)


def multiply(name: str, x: torch.Tensor, stored: torch.Tensor, bits: int, first: bool, warps: int):
    """x c^T as executed, and what Triton compiled."""
    M, K = x.shape
    y = torch.zeros((32, M) if first else (M, 32))
    with chip(name):
        compiled = product[(1,)](x, stored, y, M, K, bits, first, num_warps=warps)
    return (y.T if first else y), compiled.asm


sides = pytest.mark.parametrize("first", [True, False], ids=["first", "second"])


@chips
@dtypes
@sides
@pytest.mark.parametrize("warps", [1, 4, 8] if FULL else [1, 4])
@pytest.mark.parametrize(("K", "bits"), [(16, 8), (32, 8), (64, 8), (32, 4), (32, 2), (64, 2)])
def test_products(name, dtype, K, bits, first, warps):
    if dtype == torch.float16 and warps != 4:
        return  # it differs from bfloat16 in the conversion alone
    x, c, stored = case(dtype, 64, K, bits)
    y, asm = multiply(name, x, stored, bits, first, warps)
    assert torch.equal(y, x.float() @ c.T)
    if (dtype, bits, name) == (torch.bfloat16, 8, "sm_80"):
        assert ".reg .s8 s<4>" in asm["ptx"]  # the conversion that this is about


def ttgir_of(target: machine_code.Chip, specimen: dict) -> str:
    signature, attrs = machine_code._arguments(specimen, target)
    source = ASTSource(specimen["kernel"], signature, specimen["constexprs"], attrs)
    options = {key: specimen[key] for key in ("num_warps", "num_stages")}
    return triton.compile(source, target=GPUTarget("cuda", target.arch, 32), options=options).asm["ttgir"]


def held(ttgir: str) -> list[tuple[int, int]]:
    """k and kWidth of every product whose operands are in registers."""
    found = re.findall(r"tt\.dot .*?: tensor<\d+x(\d+)x\w+, #ttg\.dot_op<\{opIdx = 0, [^}]*kWidth = (\d+)\}", ttgir)
    return [(int(k), int(width)) for k, width in found]


@chips
@sides
@pytest.mark.parametrize("bits", [4, 2])
def test_what_triton_does_with_a_join_and_16_products(name, bits, first):
    """Half of the k is left out, and the rest is multiplied twice. Fails when Triton does better (its pull request
    11691): then this and the note in docs/emulator.md can go."""
    x, c, stored = case(torch.bfloat16, 16, 16, bits)
    half = torch.arange(16) % 8 < 4
    y, asm = multiply(name, x, stored, bits, first, 1)
    assert torch.equal(y[:8, :8], 2 * (x * half).float()[:8] @ c[:8].T)  # the first eight rows and columns
    assert held(asm["ttgir"]) == [(16, 8)]


@chips
@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("n", [16, 64] if FULL else [16])
def test_no_product_of_ours_is_too_small(name, dtype, n):
    target = next(one for one in machine_code.CHIPS if one.name == name)
    specimens = [*attractor.specimens(n, 64, dtype), *ternary.specimens(n, 64, 128, dtype)]
    specimens = [one for one in specimens if {"BM", "BN", "BK"} <= one["constexprs"].keys()]
    assert {one["name"].split(",")[0] for one in specimens} >= {"attractor spin", "attractor neumann"}
    assert {one["name"] for one in specimens} >= {"ternary product", "ternary transposed"}
    with chip(name):
        for one in specimens:
            assert one["constexprs"]["BK"] >= (16 if dtype == torch.float32 else 32), one["name"]
            ttgir = ttgir_of(target, one)
            products = held(ttgir)
            on_tensor_cores = bool(products) or "warp_group_dot" in ttgir
            assert on_tensor_cores == (dtype != torch.float32), one["name"]
            assert all(k >= 4 * width for k, width in products), (one["name"], products)
