"""What a kernel moves and multiplies, counted while Triton's interpreter runs it: for the notebooks on kernels.

    read, written   bytes that the programs load from memory and store to it; lanes that are masked out do not count
    flops           of matrix products (tl.dot), a multiplication and an addition each, lanes of zeros included

A GPU's cache may serve a load that repeats another one, so `read` is what is asked for, an upper bound of what travels
from memory. Compiled kernels cannot be counted in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np


@dataclass
class Traffic:
    read: int = 0
    written: int = 0
    flops: int = 0

    @property
    def bytes(self) -> int:
        return self.read + self.written


@contextmanager
def counting() -> Iterator[Traffic]:
    """Counts what interpreted kernels do inside the `with` block."""
    from triton.runtime.interpreter import interpreter_builder as builder

    traffic = Traffic()
    load, store, dot = builder.create_masked_load, builder.create_masked_store, builder.create_dot

    def create_masked_load(ptrs, mask, *rest):
        traffic.read += int(np.sum(mask.data)) * ptrs.get_element_ty().primitive_bitwidth // 8
        return load(ptrs, mask, *rest)

    def create_masked_store(ptrs, value, mask, *rest):
        traffic.written += int(np.sum(mask.data)) * ptrs.get_element_ty().primitive_bitwidth // 8
        return store(ptrs, value, mask, *rest)

    def create_dot(a, b, *rest):
        traffic.flops += 2 * a.data.shape[-2] * a.data.shape[-1] * b.data.shape[-1]
        return dot(a, b, *rest)

    ours = (create_masked_load, create_masked_store, create_dot)
    try:
        for function in ours:  # shadows the methods of this one object
            setattr(builder, function.__name__, function)
        yield traffic
    finally:
        for function in ours:
            delattr(builder, function.__name__)


def check(what: str, call: Callable[[], object], **expected: int) -> Traffic | None:
    """Runs `call`, counts, raises unless the counts are those expected (any of read, written, flops), and says them.
    Compiled kernels just run."""
    from pspin_kernels.runtime import INTERPRETED

    if not INTERPRETED:
        call()
        print(f"{what}: ran compiled, where nothing is counted")
        return None
    with counting() as traffic:
        call()
    for name, value in expected.items():
        assert getattr(traffic, name) == value, f"{what}: {name} is {getattr(traffic, name):,}, not {value:,}"
    counts = ", ".join(f"{name} {getattr(traffic, name):,}" for name in expected)
    print(f"✓ {what}: {counts}, as predicted")
    return traffic
