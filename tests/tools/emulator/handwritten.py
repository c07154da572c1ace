"""Hand-written PTX: a body between a fixed beginning and end, executed on numpy arrays, without Triton or PyTorch.

    x = np.arange(32, dtype="f4")
    run(f"{at(0, 4, 1)} ld.global.b32 %r1, [%rd1]; add.f32 %r1, %r1, %r1; st.global.b32 [%rd1], %r1;", x)

registers   %r0 .. %r199 of 32 bits, %rd0 .. of 64, %rs0 .. of 16, %p0 .. predicates
%x0, %x1 .. addresses of the arrays;  %t the thread (64 bits: %tt);  arr[N] of shared memory is `smem`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pspin_lite.tools.emulator.counters import Counters
from pspin_lite.tools.emulator.machine import Modes, launch
from pspin_lite.tools.emulator.memory import Memory
from pspin_lite.tools.emulator.parser import parse


def source(body: str, arrays: int, threads: int = 32, shared: int = 0) -> str:
    parameters = ", ".join(f".param .u64 p{i}" for i in range(arrays))
    loads = "\n".join(f"ld.param.b64 %x{i}, [p{i}];" for i in range(arrays))
    memory = f".shared .align 1024 .b8 smem[{shared}];" if shared else ""
    return f"""
.version 8.7
.target sm_90a
.address_size 64
{memory}
.visible .entry kernel({parameters})
.reqntid {threads}
{{
    .reg .pred %p<40>;
    .reg .b16 %rs<80>;
    .reg .b32 %r<200>;
    .reg .b64 %rd<80>;
    .reg .b64 %x<10>;
    .reg .b32 %t;
    .reg .b64 %tt;
    .loc 1 7 3 // mine.py:7:3
    mov.u32 %t, %tid.x;
    cvt.u64.u32 %tt, %t;
    {loads}
    {body}
    ret;
}}
"""


def run(
    body: str, *arrays: np.ndarray, threads: int = 32, blocks: int = 1, shared: int = 0, **modes: Any
) -> Counters | None:
    """Executes the body; arrays are read and written where they are."""
    kernel = parse(source(body, len(arrays), threads, shared))
    memory = Memory([(x.ctypes.data, x.nbytes) for x in arrays])
    return launch(kernel, (blocks, 1, 1), [x.ctypes.data for x in arrays], memory, Modes(**modes))


def at(array: int, bytes_: int, register: int) -> str:
    """%rd<register> = address of the thread's own element of `bytes_` bytes."""
    return f"mad.lo.u64 %rd{register}, %tt, {bytes_}, %x{array};"
