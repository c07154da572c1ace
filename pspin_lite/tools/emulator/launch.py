"""One launch of a kernel: all blocks of a grid, in batches. Needs neither Triton nor PyTorch.

    kernel = parse(ptx)
    launch(kernel, (8, 1, 1), [x.ctypes.data, n], Memory([(x.ctypes.data, x.nbytes)]))

Where it deviates from a chip: batches of blocks run one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import numbers
from .counters import Counters
from .instructions import build
from .machine import Machine, Modes
from .memory import Memory
from .parser import EmulatorError, Kernel
from .program import Program

ROOM = 160_000_000  # bytes of registers for one batch


def launch(
    kernel: Kernel, grid: tuple[int, int, int], values: list[Any], memory: Memory, modes: Modes | None = None
) -> Counters | None:
    """Run all blocks of a grid. values: one for each parameter, addresses of tensors as integers."""
    modes = modes or Modes()
    if kernel.program is None:
        kernel.program = Program(kernel, build)
    program = kernel.program
    counters = Counters(program, grid) if modes.count else None
    total = grid[0] * grid[1] * grid[2]
    each = max(1, min(modes.batch, ROOM // max(1, len(program.names) * 4)) // max(1, kernel.threads))
    memory.parameters = parameters(kernel, values)
    with np.errstate(all="ignore"):
        for first in range(0, total, each):
            machine = Machine(program, np.arange(first, min(first + each, total)), grid, memory, modes)
            machine.counters = counters
            machine.run()
    if counters is not None:
        counters.finish(memory)
    return counters


def parameters(kernel: Kernel, values: list[Any]) -> dict[str, np.ndarray]:
    """Name -> bits, [1,1]."""
    if len(values) != len(kernel.parameters):
        raise EmulatorError(f"{kernel.name} takes {len(kernel.parameters)} parameters, got {len(values)}")
    result = {}
    for (name, (kind, size)), value in zip(kernel.parameters.items(), values, strict=True):
        if isinstance(value, float):
            kind = {2: "f16", 4: "f32", 8: "f64"}[size]
            result[name] = np.array([[value]], numbers.FLOATS[kind])
        else:
            result[name] = np.array([[int(value) & ((1 << 8 * size) - 1)]], numbers.BITS[size])
    return result
