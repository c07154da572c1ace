"""The compiled kernel, executed, for notebook 03: seconds, no GPU.

    result = lesson.run(T=64, d=32, chunk=32)   the forward pass of `walk` in bfloat16, one head, compiled for an A100
    c = lesson.mma(a, b)                        one instruction of a tensor core, from hand-written PTX

`run` takes a process of its own, like everything that compiles (see kernels/machine_code.py). It returns

    error      largest difference of o from float64, relative to the largest entry
    counts     of `walk`: Counters.as_dict()
    listing    what became of `chunk_cross`: its Triton lines, and below each the PTX that comes from it
    barrier    line of the PTX of the last bar.sync in the listing
    races      line of a bar.sync -> what the emulator says when it is taken out; "" if it does not notice
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor

from ..kernels import machine_code
from .counters import kind_of
from .launch import launch
from .memory import Memory
from .parser import EmulatorError, Instruction, parse

COLUMNS = 88  # of a listing
QUIET = ("integer", "move", "branch")  # kinds of instructions that a listing leaves out
MMA = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry one_mma(.param .u64 a, .param .u64 b, .param .u64 c)
.reqntid 32
{
    .reg .b32 %a<4>, %b<2>, %c<4>, %t;
    .reg .b64 %thread, %place;
    mov.u32 %t, %tid.x;
    cvt.u64.u32 %thread, %t;
    ld.param.b64 %place, [a];
    mad.lo.u64 %place, %thread, 16, %place;
    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%place];
    ld.param.b64 %place, [b];
    mad.lo.u64 %place, %thread, 8, %place;
    ld.global.v2.b32 {%b0, %b1}, [%place];
    mov.b32 %c0, 0;
    mov.b32 %c1, 0;
    mov.b32 %c2, 0;
    mov.b32 %c3, 0;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1},
        {%c0, %c1, %c2, %c3};
    ld.param.b64 %place, [c];
    mad.lo.u64 %place, %thread, 16, %place;
    st.global.v4.b32 [%place], {%c0, %c1, %c2, %c3};
    ret;
}
"""


def mma(a: Tensor, b: Tensor) -> Tensor:
    """mma.sync.m16n8k16: the numbers that each of 32 threads holds, a [32,8] and b [32,4] -> c [32,4]."""
    tensors = [x.bfloat16().cpu().contiguous() for x in (a, b)] + [torch.empty(32, 4, device="cpu")]
    memory = Memory([(x.data_ptr(), x.numel() * x.element_size()) for x in tensors])
    launch(parse(MMA), (1, 1, 1), [x.data_ptr() for x in tensors], memory)
    return tensors[2].to(a.device)


def run(T: int, d: int, chunk: int) -> dict:
    (result,) = machine_code.elsewhere(__name__, json.dumps(dict(T=T, d=d, chunk=chunk)))
    return result | dict(races={int(line): text for line, text in result["races"].items()})


def measure(T: int, d: int, chunk: int) -> dict:
    from ...state_space import recurrent

    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, T, 1, d).bfloat16()
    inputs = [q, k, v, -torch.rand(1, T, 1), torch.randn(1, 1, d, d)]
    texts: list[str] = []
    o, counts = execute(inputs, chunk, lambda ptx: texts.append(ptx) or ptx)
    exact, _ = recurrent(*(x.double() for x in inputs))
    text, barrier = listing(texts[0])
    places = [found.start(1) for found in re.finditer(r"^\s*(bar\.sync)", texts[0], re.MULTILINE)]
    numbers = [one.line for one in parse(texts[0]).code if one.parts[0] == "bar"]
    races = dict.fromkeys(numbers, "")
    for number, place in zip(numbers, places, strict=True):
        without = texts[0][:place] + "//" + texts[0][place:]
        try:
            execute(inputs, chunk, lambda _, without=without: without)
        except EmulatorError as error:
            races[number] = str(error)
    wrong = ((o.double() - exact).abs().max() / exact.abs().max()).item()
    return dict(error=wrong, counts=counts, listing=text, barrier=barrier, races=races)


def execute(inputs: list[Tensor], chunk: int, edit: Callable[[str], str]) -> tuple[Tensor, dict]:
    """The outputs, and what `walk` did, its PTX edited before it runs."""
    from pspin_kernels import state_space

    from . import driver

    parsed = driver.parsed

    def edited(ptx: str, name: str, shared: int) -> object:
        return parsed(edit(ptx) if name == "walk" else ptx, name, shared)

    state_space.walk.device_caches.clear()  # loaded kernels
    with mock.patch.object(driver, "parsed", edited), driver.chip("sm_80", count=True) as emulator:
        o, _ = state_space.chunked(*inputs, chunk, "walk")
    return o, emulator.launches[-1].as_dict()


def listing(ptx: str) -> tuple[str, int]:
    """The lines of `chunk_cross` in Triton, below each the PTX that comes from it; the line of the last barrier."""
    from pspin_kernels import chunk

    source, first = inspect.getsourcelines(chunk.chunk_cross.fn)
    code: dict[int, dict[tuple, Instruction]] = {}  # Triton line -> instructions, one of each kind
    barrier = 0
    for one in parse(ptx).code:
        for number in map(int, re.findall(r"\bchunk\.py:(\d+):", one.where)):
            if first <= number < first + len(source) and kind_of(one) not in QUIET:
                barrier = one.line if one.parts[0] == "bar" else barrier
                code.setdefault(number, {}).setdefault((one.opcode, one.where, barrier), one)
    rows = []
    for number in sorted(code):
        triton = source[number - first].partition("  #")[0].strip()
        rows += textwrap.wrap(triton, COLUMNS, subsequent_indent="    ")
        for one in code[number].values():
            text = re.sub(r"(?<=[{[]) | (?=[]}])", "", " ".join(one.text.split())).replace(" + 0]", "]")
            rows += textwrap.wrap(f"{one.line:>6} {text}", COLUMNS, subsequent_indent=" " * 11)
    return "\n".join(rows), barrier


if __name__ == "__main__":
    print(json.dumps([measure(**json.loads(sys.argv[1]))]))
