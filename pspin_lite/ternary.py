"""Ternary weights: every entry of a matrix is -1, 0 or 1, times one scale for the whole matrix.

Glossary
    name    shape        paper    meaning
    w       any          W        full-precision weight, the one that is trained
    scale   scalar       s        mean absolute value of w
    codes   like w       W^Q / s  int8 in {-1, 0, 1}
    packed  [.., n/4]    -        uint8, four codes per byte along the last axis

Two bits hold a code: 00 is -1, 01 is 0, 10 is 1; 11 never occurs. The first of the four is in the lowest bits.

`TernaryLinear` multiplies with codes * scale in PyTorch or, with the Triton kernels (pspin_kernels.ternary), with the
packed codes themselves: an eighth of the bytes of a 16-bit weight. The gradient is straight through in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from . import _backends as backends
from . import _checks as checks

SMALLEST_SCALE = 1e-5  # the floor in Eq. ternary-scale
Form = TypeVar("Form")  # of a weight: quantised or packed


def quantize(w: Tensor) -> tuple[Tensor, Tensor]:
    """Absmean quantisation of w [..]: codes in {-1, 0, 1}, int8 [..], and the scale, a scalar tensor in w's dtype."""
    _check_weight(w)
    codes, scale = absmean(w.detach())
    if not scale.isfinite():
        raise checks.wrong("w", "entries that are nan or infinite", "finite numbers")
    return codes.to(torch.int8), scale


def absmean(w: Tensor) -> tuple[Tensor, Tensor]:
    """The rounding itself: codes in w's dtype, and the scale. Checks nothing and waits for nothing."""
    scale = w.abs().mean().clamp_min(SMALLEST_SCALE)  # Eq. ternary-scale
    return (w / scale).round_().clamp_(-1, 1), scale  # Eq. ternary-round


def ste(w: Tensor) -> Tensor:
    """w [..] -> codes * scale, [..] in w's dtype. The gradient passes to w unchanged: "straight through" the rounding.

    The common w + (quantised - w).detach() has the same gradient, but a value that rounding makes only nearly ternary.
    """
    _check_weight(w)
    return _StraightThrough.apply(w)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor) -> Tensor:
        codes, scale = absmean(w)
        return codes.mul_(scale)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def pack(codes: Tensor) -> Tensor:
    """codes [.., n] of int8 -> uint8 [.., ceil(n/4)], four per byte; the last byte is filled up with zeros (code 0)."""
    if not isinstance(codes, Tensor) or codes.ndim == 0 or codes.is_floating_point() or codes.dtype == torch.bool:
        came = (
            f"dtype {codes.dtype}, shape {checks.shape(codes)}" if isinstance(codes, Tensor) else type(codes).__name__
        )
        raise checks.wrong("codes", came, "an integer tensor [.., n]")
    if codes.numel() and (codes.min() < -1 or codes.max() > 1):
        raise checks.wrong("codes", f"values from {codes.min()} to {codes.max()}", "only -1, 0 and 1")
    fours = F.pad(codes.to(torch.int16), (0, -codes.shape[-1] % 4)).unflatten(-1, (-1, 4)) + 1  # 0, 1, 2
    return (fours << _shifts(codes)).sum(-1).to(torch.uint8)


def unpack(packed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """packed [.., ceil(n/4)] of uint8 -> the int8 codes of `shape`, [.., n]."""
    shape = tuple(shape)
    if not isinstance(packed, Tensor) or packed.dtype != torch.uint8:
        raise checks.wrong("packed", getattr(packed, "dtype", type(packed).__name__), "a uint8 tensor")
    if not shape or tuple(packed.shape) != (*shape[:-1], math.ceil(shape[-1] / 4)):
        raise checks.wrong("packed", f"shape {checks.shape(packed)}", f"four codes a byte of shape {list(shape)}")
    bits = (packed.to(torch.int16).unsqueeze(-1) >> _shifts(packed)) & 3  # [.., n/4, 4]
    if bool((bits == 3).any()):
        raise checks.wrong("packed", "the bit pattern 11", "only 00, 01 and 10: these bytes were not written by pack")
    return (bits.flatten(-2)[..., : shape[-1]] - 1).to(torch.int8)


class _PackedLinear(torch.autograd.Function):
    """x [.., in] times the packed weight -> [.., out], on the kernels. w, [out, in], receives the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
        from pspin_kernels.ternary import product

        ctx.save_for_backward(x, packed, scale)
        ctx.dtype = w.dtype
        return product(x.reshape(-1, w.shape[1]), packed, scale).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    @backends.without_autocast
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        from pspin_kernels.ternary import transposed

        x, packed, scale = ctx.saved_tensors
        rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        dx = transposed(drows, packed, scale, x.shape[-1]).view_as(x) if ctx.needs_input_grad[0] else None
        dw = (drows.T @ rows).to(ctx.dtype) if ctx.needs_input_grad[1] else None  # dense, and straight through
        return dx, dw, None, None


class TernaryLinear(nn.Linear):
    """A linear layer without bias, [.., in] -> [.., out], that trains in full precision, computes with ternary weights
    and exports packed."""

    def __init__(self, in_features: int, out_features: int, backend: str = "auto"):
        super().__init__(in_features, out_features, bias=False)
        self.backend = backend
        self._kept: tuple[Tensor, int, Callable, Any] | None = None  # weight, its version, which form of it, that form

    def quantized(self) -> Tensor:
        """The weight as it is used: codes * scale, [out, in]. Not to be written to.

        In eval mode without gradients it is kept until the weight changes, because quantising takes longer than a
        product with one token. A change behind PyTorch's back (`weight.data.copy_(...)`) is not seen: call train() or
        eval()."""
        return self._form(ste)

    def _form(self, make: Callable[[Tensor], Form]) -> Form:
        """make(weight): the quantised or the packed weight, kept as `quantized` says."""
        if self.training or torch.is_grad_enabled() or self.weight.is_inference():
            return make(self.weight)
        data, version = self.weight.detach(), self.weight._version
        # The kept tensor holds on to its memory, so that no other weight can come to lie at the same address.
        if (
            self._kept is None
            or self._kept[0].data_ptr() != data.data_ptr()
            or self._kept[1] != version
            or self._kept[2] is not make
        ):
            self._kept = (data, version, make, make(data))
        return self._kept[3]

    def forward(self, x: Tensor) -> Tensor:
        device = x.device.type
        if torch.is_autocast_enabled(device) and x.dtype != torch.float64:
            x = x.to(torch.get_autocast_dtype(device))  # as F.linear would
        if backends.choose(self.backend, x) == "torch":
            return F.linear(x, self.quantized())
        if x.dtype == torch.float64:
            raise checks.wrong("backend", "'triton' with float64", "'torch': the kernels add up in float32")
        return _PackedLinear.apply(x, self.weight, *self.packed_for_kernels())

    def packed(self) -> tuple[Tensor, Tensor]:
        """What is shipped: uint8 [out, ceil(in/4)] and the scale."""
        codes, scale = quantize(self.weight)
        return pack(codes), scale

    def packed_for_kernels(self) -> tuple[Tensor, Tensor]:
        """What the Triton kernels take: rows of codes filled up to whole 16 bytes, and the scale. Kept like
        `quantized`; nothing waits for the device."""
        return self._form(_pack_rows)

    # Whatever replaces, moves or copies the layer leaves the kept weight behind.
    def train(self, mode: bool = True) -> TernaryLinear:
        self._kept = None
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> TernaryLinear:
        self._kept = None
        return super()._apply(*args, **kwargs)

    def __getstate__(self) -> dict:
        return {**super().__getstate__(), "_kept": None}


@torch.no_grad()
def _pack_rows(w: Tensor) -> tuple[Tensor, Tensor]:
    from pspin_kernels.ternary import pack as pack_rows

    codes, scale = absmean(w)
    return pack_rows(codes), scale


def _check_weight(w: Tensor) -> None:
    if not isinstance(w, Tensor) or not w.is_floating_point() or w.numel() == 0:
        came = f"dtype {w.dtype}, shape {checks.shape(w)}" if isinstance(w, Tensor) else type(w).__name__
        raise checks.wrong("w", came, "a floating-point tensor with at least one entry")


def _shifts(like: Tensor) -> Tensor:
    return torch.tensor([0, 2, 4, 6], dtype=torch.int16, device=like.device)
