"""python -m pspin_lite kernels --executed: our state-space kernels and flash-linear-attention's, compiled for A100 and
H100, executed by the emulator at the paper's shapes and counted. No GPU is needed, and nothing is timed.

Ours is the parallel form, which is what runs at batch size 1. fla chooses configurations by timing, which we cannot.
Its kernels for states and outputs get the one with the lowest bound, of tiles of 32 and 64 with four warps and two
stages, and of all that it has for outputs. The others get four warps and two stages, and the tiles that it gives to the
chip. Both take an initial state and return the last one. What PyTorch does between the launches (padding, sums) counts
with the bytes that it reads and writes.

    errors   largest difference from float64, relative to the largest entry, of o, the last state and all gradients
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import machine_code
from .report import SHAPES

NAMES = ("o", "state", "dq", "dk", "dv", "dg", "dstate")
BETWEEN = ("sum", "constant_pad_nd", "clone", "copy_", "_to_copy")  # of PyTorch's operations, those that move bytes


class Between(TorchDispatchMode):
    """Bytes that PyTorch reads and writes between launches."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in BETWEEN:
            tensors = [x for x in (*args, result) if isinstance(x, Tensor)]
            self.bytes += sum(x.numel() * x.element_size() for x in tensors)
        return result


def inputs(shape: str, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """q, k, v, g, state, and gradients of o and of the last state."""
    B, T, H, d = (SHAPES[shape][name] for name in "BTHd")
    rng = torch.Generator().manual_seed(0)
    q, k, v, do = (torch.randn(B, T, H, d, generator=rng) for _ in range(4))
    g = -torch.nn.functional.softplus(torch.randn(B, T, H, generator=rng))
    state, dend = (torch.randn(B, H, d, d, generator=rng) for _ in range(2))
    return [(q * d**-0.5).to(dtype), k.to(dtype), v.to(dtype), g, state], [do.to(dtype), dend]


def ours(chunk: int, form: str = "parallel") -> Callable:
    from pspin_kernels import state_space

    return lambda q, k, v, g, state: state_space.chunked(q, k, v, g, state, chunk, form)


def fla(chunk: int) -> Callable:
    from fla.ops.simple_gla import chunk_simple_gla

    return lambda q, k, v, g, state: chunk_simple_gla(
        q, k, v, g, scale=1.0, initial_state=state, output_final_state=True, chunk_size=chunk
    )


@contextlib.contextmanager
def settled(emulator: Any, chip: str) -> Iterator[None]:
    """fla's kernels as on this chip; of several configurations the one with the lowest bound."""
    from fla.ops.common import chunk_h, chunk_o
    from fla.utils import Backend
    from triton import Config

    from ..emulator.counters import bound
    from ..emulator.driver import CHIPS as KNOWN

    def fits(arch: str = "none", index: int | None = 0) -> bool:
        return KNOWN[chip][1] >= Backend.get_shared_memory(arch)

    def benchmark(call: Callable, quantiles: tuple = (0.5,), **_: Any) -> list[float]:
        before = len(emulator.launches)
        call()
        seconds = sum(bound(one.as_dict(), chip)["bound"] for one in emulator.launches[before:])
        del emulator.launches[before:]
        return [seconds for _ in quantiles]

    tiles = [Config(dict(BK=k, BV=v), num_warps=4, num_stages=2) for k in (32, 64) for v in (32, 64)]
    plain = [Config({}, num_warps=4, num_stages=2)]
    known = {chunk_h.chunk_fwd_kernel_h: tiles, chunk_h.chunk_bwd_kernel_dh: tiles}
    known |= {chunk_o.chunk_bwd_kernel_dqkwg: plain, chunk_o.chunk_bwd_kernel_dv: plain}
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(chunk_o, "check_shared_mem", fits))
        stack.enter_context(mock.patch.object(emulator, "get_benchmarker", return_value=benchmark))
        for kernel, configs in known.items():
            stack.enter_context(mock.patch.object(kernel.fn, "configs", configs))
        yield


def execute(function: Callable, emulator: Any, shape: str, dtype: torch.dtype, exact: list[Tensor]) -> dict:
    """Forward and backward: launches, bytes between them, errors."""
    values, grads = inputs(shape, dtype)
    values = [x.requires_grad_() for x in values]
    result, outputs = {}, []
    for phase in ("forward", "backward"):
        emulator.launches.clear()
        with Between() as between:
            if phase == "forward":
                outputs = list(function(*values))
            else:
                outputs += torch.autograd.grad(outputs, values, grads)
        launches = [described(one, emulator.name) for one in emulator.launches]
        result[phase] = dict(launches=launches, between=between.bytes)
    result["errors"] = {n: error(x, y) for n, x, y in zip(NAMES, outputs, exact, strict=True)}
    return result


def described(one: Any, chip: str) -> dict:
    """The counters of a launch, and what the assembler makes of its kernel."""
    return one.as_dict() | machine_code.of_launch(one.ptx, chip, one.shared, one.threads // 32)


def error(a: Tensor, b: Tensor) -> float:
    return ((a.double() - b).abs().max() / b.abs().max()).item()


def reference(shape: str, dtype: torch.dtype) -> list[Tensor]:
    from pspin_lite.state_space import chunked

    values, grads = inputs(shape, dtype)
    values = [x.double().requires_grad_() for x in values]
    outputs = chunked(*values[:4], 64, values[4], backend="torch")
    return [x.detach() for x in (*outputs, *torch.autograd.grad(outputs, values, [x.double() for x in grads]))]


def measure(what: str, chip: str, shape: str, chunk: int, dtype: str) -> dict:
    """One row of the record. what: parallel, walk or fla."""
    from ..emulator.driver import chip as emulated

    kind = getattr(torch, dtype)
    exact = reference(shape, kind)
    function = fla(chunk) if what == "fla" else ours(chunk, what)
    with emulated(chip, count=True, races=False, proxies=False) as emulator, contextlib.ExitStack() as stack:
        if what == "fla":
            stack.enter_context(settled(emulator, chip))
        run = execute(function, emulator, shape, kind, exact)
    row = dict(what=what, chip=chip, shape=shape, chunk=chunk, dtype=dtype, errors=run["errors"])
    return row | {phase: total(run[phase], chip) for phase in ("forward", "backward")}


def total(phase: dict, chip: str) -> dict:
    """Sums over the launches of a pass. The bound is the sum of their bounds: launches come one after the other."""
    from ..emulator.counters import RATES, bound

    launches, result = phase["launches"], Counter()
    for one in launches:
        result["instructions"] += sum(one["instructions"].values())
        result["tensor"] += sum(one["tensor"].values())
        result["bytes"] += one["read"] + one["written"]
        result["least"] += one["least_read"] + one["least_written"]
        for name in ("passes", "conflicts", "barriers"):
            result[name] += one[name]
    seconds = sum(bound(one, chip)["bound"] for one in launches) + phase["between"] / RATES[chip].memory
    return dict(result, launches=len(launches), between=phase["between"], bound=1e6 * seconds, each=launches)


if __name__ == "__main__":
    os.environ["FLA_CACHE_RESULTS"] = "0"  # a choice that was made here is not for a GPU
    warnings.simplefilter("ignore")  # fla warns that there is no GPU
    print(json.dumps([measure(**json.loads(sys.argv[1]))]))
