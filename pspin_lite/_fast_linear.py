"""Linear layers for decoding on a CPU, faster than float32 because their weights are fewer bytes.

A product of a matrix with one token reads every weight once, so that its time is the time to read them.

    HalfLinear       float16 weights; activations and sums stay float32
    TernaryCodes     weights -1, 0, 1 as int8, times one scale; activations as two 8-bit digits, sums exact integers

Glossary
    x        [.., in]     activations, float32
    unit     [.., 1]      a token's largest |x| divided by 127
    high     [.., in]     x / unit rounded: -127 to 127, the first digit
    low      [.., in]     what rounding left, times 254: -127 to 127, the second digit

x = unit * (high + low / 254) up to 1/64,000 of the token's largest entry, about what 16 bits hold. Both digits go
through one product as two rows: while the weights are being read, the second row is nearly free.

The products are FBGEMM's, which torch brings along on x86. They are not part of torch's public interface, and their
types are deprecated, so each is tried once and compared with an ordinary product; where it is missing or wrong, the
layers compute in float32. So do matrices below SMALL weights: for them the calls themselves take longer than reading.

Measured on an x86 core with AVX2, one token, 4096 x 2048 ternary weights, as ratios to float32 (more is faster) and
relative errors: two digits 2.2 and 3e-5, one digit 2.3 and 8e-3, torch._weight_int8pack_mm 1.6 and 2e-3 (its
activations are bfloat16), 4-bit weights 1.4, float16 weights 1.5 and 4e-7, torch's own float16 1.2, bfloat16 1.0.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SMALL = 2**18  # weights


class HalfLinear(nn.Module):
    """x W^T with W [out, in] given in float16."""

    weight: Tensor | None  # or `packed`

    def __init__(self, weight: Tensor):
        super().__init__()
        self.packed = _pack_half(weight) if weight.numel() >= SMALL and has_fbgemm() else None
        self.register_buffer("weight", weight.float() if self.packed is None else None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.weight is not None:
            return F.linear(x, self.weight)
        return torch.ops.quantized.linear_dynamic_fp16(x, self.packed)


class TernaryCodes(nn.Module):
    """x W^T with W = codes * scale; codes [out, in] int8 in {-1, 0, 1}."""

    weight: Tensor | None  # or `packed`

    def __init__(self, codes: Tensor, scale: Tensor):
        super().__init__()
        self.scale = float(scale)
        self.packed = _pack_codes(codes) if codes.numel() >= SMALL and has_fbgemm() else None
        self.register_buffer("weight", codes * scale.float() if self.packed is None else None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.weight is not None:
            return F.linear(x, self.weight)
        rows = x.reshape(-1, x.shape[-1])
        unit = rows.abs().amax(-1, keepdim=True).div_(127).clamp_min_(torch.finfo(x.dtype).tiny)  # token by token
        digits = rows / unit
        high = digits.round()
        low = digits.sub_(high).mul_(254)  # the product rounds it
        sums = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            torch.cat([high, low]), 1.0, 128, self.packed
        )
        high, low = sums.chunk(2)  # whole numbers
        return torch.add(high, low, alpha=1 / 254).mul_(unit * self.scale).view(*x.shape[:-1], -1)

    def quantized(self) -> Tensor:
        """W as a matrix of floats: to look at, as `ternary.TernaryLinear.quantized` gives it."""
        if self.weight is not None:
            return self.weight
        with _fbgemm():
            return torch.ops.quantized.linear_unpack(self.packed)[0].dequantize() * self.scale


def _pack_half(weight: Tensor) -> Any:
    with _fbgemm():
        return torch.ops.quantized.linear_prepack_fp16(weight.float(), None)


def _pack_codes(codes: Tensor) -> Any:
    with _fbgemm():
        quantized = torch.quantize_per_tensor(codes.float(), 1.0, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(quantized, None)


@contextmanager
def _fbgemm() -> Iterator[None]:
    """Packing takes the engine that is set for the whole process; its types warn that they are deprecated."""
    engine = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.quantized.engine = engine


@functools.cache
def has_fbgemm() -> bool:
    """Whether both products are here and right."""
    try:
        rng = torch.Generator().manual_seed(0)
        codes = torch.randint(-1, 2, (40, 70), generator=rng, dtype=torch.int8)
        x = torch.randint(-127, 128, (3, 70), generator=rng).float()  # whole numbers: products are exact
        with _fbgemm():
            half = torch.ops.quantized.linear_dynamic_fp16(x, _pack_half(codes.half()))
            ternary = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(x, 1.0, 128, _pack_codes(codes))
        return torch.equal(half, x @ codes.float().T) and torch.equal(ternary, x @ codes.float().T)
    except (RuntimeError, AttributeError, NotImplementedError, TypeError):
        return False
