"""Our fused attractor, executed by the emulator at the paper's shapes and counted, beside the sequence of operations
that PyTorch launches for the same forward and backward pass (pspin_lite/attractor.py with backend="torch").

Both compute in bfloat16, with K = 5 steps. A launch of ours whose kernel and grid were executed before is
not executed again: without a tolerance nothing depends on the numbers, so its counters are the same. What PyTorch does
between our launches (one matrix product, copies, sums) counts as it does for PyTorch.

    launches    kernels that start, one for each of PyTorch's operations
    least       bytes: of our launches the distinct sectors, of PyTorch's operations each operand and result once
    requested   bytes that the lanes of our programs ask for, as notebook 07 counts them; caches may serve many of them.
                Of PyTorch's operations it is the least
    bound       microseconds, a lower bound of the time and not a measurement, added up over the launches
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from .executed import described
from .operations import Operations
from .report import SHAPES

STEPS = 5


def inputs(shape: str, dtype: torch.dtype = torch.bfloat16, tokens: int | None = None) -> tuple[list[Tensor], Tensor]:
    """z, w_int, gamma, and a gradient of y. tokens: the paper's if None."""
    n, D = tokens or SHAPES[shape]["B"] * SHAPES[shape]["T"], SHAPES[shape]["Dint"]
    rng = torch.Generator().manual_seed(0)
    codes = torch.randint(-1, 2, (2 * D, D), generator=rng)
    values = torch.randn(n, 2 * D, generator=rng), codes / D**0.5, 0.25 * torch.randn(D, generator=rng)
    return [x.to(dtype).requires_grad_() for x in values], torch.randn(n, D, generator=rng).to(dtype)


def passes(function: Callable, values: list[Tensor], dy: Tensor, chip: str, launches: list) -> dict:
    """What forward and backward launch: our kernels' counters, and PyTorch's operations."""
    result, y = {}, None
    for phase in ("forward", "backward"):
        launches.clear()
        with Operations(chip) as operations:
            y = function(*values) if phase == "forward" else torch.autograd.grad(y, values, dy)
        result[phase] = totals(list(launches), operations, chip)
    return result


def totals(launches: list, operations: Operations, chip: str) -> dict:
    from ..emulator.counters import bound

    each = [described(one, chip) for one in launches]
    return dict(
        launches=len(each) + operations.count,
        kernels=len(each),
        instructions=sum(sum(one["instructions"].values()) for one in each),
        least=sum(one["least_read"] + one["least_written"] for one in each) + operations.bytes,
        requested=sum(sum(one["asked"].values()) for one in each) + operations.bytes,
        tensor=sum(sum(one["tensor"].values()) for one in each) + operations.flops,
        bound=1e6 * (sum(bound(one, chip)["bound"] for one in each) + operations.seconds),
        each=each,
    )


@contextlib.contextmanager
def counting(chip: str) -> Iterator[list]:
    """Launches inside the `with`, each kernel and grid executed once."""
    from ..emulator import driver

    known: dict[tuple, Any] = {}
    launch = driver.launch

    def once(kernel: Any, grid: tuple, *rest: Any) -> Any:
        key = (id(kernel), grid)
        if key not in known:
            known[key] = launch(kernel, grid, *rest)
        return known[key]

    with (
        driver.chip(chip, count=True, races=False, proxies=False) as emulator,
        mock.patch.object(driver, "launch", once),
    ):
        yield emulator.launches


def ours(chip: str, shape: str) -> dict:
    from pspin_kernels import attractor, ternary

    values, dy = inputs(shape)
    scale = values[1].detach().abs().max()
    packed = ternary.pack((values[1].detach() / scale).round())

    def fused(z: Tensor, w: Tensor, gamma: Tensor) -> Tensor:
        return attractor.equilibrium(z, w, gamma, packed, scale, STEPS)

    with counting(chip) as launches:
        return passes(fused, values, dy, chip, launches)


def projection(chip: str, shape: str) -> dict:
    """The ternary layer that drives the attractor, on packed weights: the product, and the one for its gradient."""
    from pspin_kernels import ternary

    n, D, out = SHAPES[shape]["B"] * SHAPES[shape]["T"], SHAPES[shape]["D"], 2 * SHAPES[shape]["Dint"]
    rng = torch.Generator().manual_seed(0)
    packed, scale = ternary.pack(torch.randint(-1, 2, (out, D), generator=rng)), torch.tensor(0.1)
    result = {}
    with counting(chip) as launches:
        for phase, width in (("forward", D), ("backward", out)):
            launches.clear()
            x = torch.randn(n, width, generator=rng).bfloat16()
            with Operations(chip) as operations:
                if phase == "forward":
                    ternary.product(x, packed, scale)
                else:
                    ternary.transposed(x, packed, scale, D)
            result[phase] = totals(list(launches), operations, chip)
    return result


def pytorch(chip: str, shape: str) -> dict:
    """On tensors without numbers: nothing has to be computed to be counted."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    from pspin_lite.attractor import equilibrium

    with FakeTensorMode() as mode:
        values, dy = inputs(shape)
        del mode
        return passes(lambda *x: equilibrium(*x, STEPS, backend="torch"), values, dy, chip, [])


WHAT = dict(fused=ours, pytorch=pytorch, ternary=projection)


def measure(what: str, chip: str, shape: str) -> dict:
    """One row of the record. what: see WHAT."""
    return dict(what=what, chip=chip, shape=shape) | WHAT[what](chip, shape)


if __name__ == "__main__":
    print(json.dumps([measure(**json.loads(sys.argv[1]))]))
