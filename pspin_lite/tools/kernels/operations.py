"""Bytes that PyTorch's operations read and write at least, and the least time that a chip needs for them.

    with Operations("sm_80") as operations:
        ...
    operations.bytes, operations.count, operations.seconds

What it models: every operation reads each of its operands once from memory and writes its result once. A view costs
nothing, nor does memory that is asked for and not written. What is overwritten is not read. An operation takes as long
as its bytes at the chip's bandwidth, or its products at the tensor cores' peak rate: the longer of the two counts.

Where it deviates from a chip: a cache may serve an operand that was written just before, and a library's matrix product
reads its operands more than once. The time is a bound and not a measurement.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..emulator.counters import RATES

PEAK = {torch.bfloat16: "bf16", torch.float16: "f16"}
WRITES_ONLY = ("copy_", "fill_", "zero_")  # the first operand is overwritten
NOTHING = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "_unsafe_view")


class Operations(TorchDispatchMode):
    """Counts what PyTorch does inside the `with`."""

    def __init__(self, chip: str) -> None:
        super().__init__()
        self.rates = RATES[chip]
        self.bytes = self.count = self.flops = 0
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if func.namespace == "aten" and name not in NOTHING and not func.is_view:
            read, written = moved(func, args, kwargs, result)
            flops, kind = products(name, args)
            self.bytes += read + written
            self.flops += flops
            self.count += 1
            tensor = flops / self.rates.tensor[PEAK[kind]] if flops else 0.0
            self.seconds += max((read + written) / self.rates.memory, tensor)
        return result


def moved(func: Any, args: tuple, kwargs: dict, result: Any) -> tuple[int, int]:
    """Bytes read and written by one operation."""
    name, read = func.overloadpacket.__name__, {}
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        overwritten = argument.is_out or (place == 0 and name in WRITES_ONLY)
        if not overwritten:
            read |= {_place(x): _bytes(x) for x in _tensors(value)}
    return sum(read.values()), sum(_bytes(x) for x in _tensors(result))


def products(name: str, args: tuple) -> tuple[int, Any]:
    """Operations of a matrix product, two for each multiplication and addition, and the type of its operands."""
    if name not in ("mm", "addmm"):
        return 0, None
    a, b = args[-2:]
    return 2 * a.shape[0] * a.shape[1] * b.shape[1], a.dtype


def _tensors(value: Any) -> list[Tensor]:
    return [x for x in (value if isinstance(value, list | tuple) else [value]) if isinstance(x, Tensor)]


def _place(x: Tensor) -> tuple:
    return x.untyped_storage()._cdata, x.storage_offset(), x.shape, x.stride()


def _bytes(x: Tensor) -> int:
    """Of a tensor's distinct numbers: one that is repeated along a dimension is counted once."""
    numbers = 1
    for size, stride in zip(x.shape, x.stride(), strict=True):
        numbers *= size if stride or size == 0 else 1
    return numbers * x.element_size()
