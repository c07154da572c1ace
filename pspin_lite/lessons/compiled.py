"""The walk of notebook 02 in bfloat16, compiled for an A100: executed, taken apart, and what it needs. Seconds, no GPU.

    result = compiled.run(T=64, d=32, C=32)             one head, executed by the emulator: notebook 02
    result = compiled.look(T=64, d=32, C=32)            the same with four warps, from inside: notebook 03
    C = compiled.multiply(A, B)                         one instruction of a tensor core, from hand-written PTX
    rows = compiled.resources(d=88, chunks=(32, 128))   registers, spills and so on, as in tools/kernels/report.py

All but `multiply` take a process of their own, like everything that compiles (see tools/kernels/machine_code.py).

run    error      largest difference of o from float64, relative to the largest entry
       counts     number of warps -> Counters.as_dict() of the emulator
look   counts     Counters.as_dict() of the emulator
       listing    the Triton line that reads the old state, and below it the PTX that comes from it
       barrier    line of the PTX of the last bar.sync in the listing
       races      line of a bar.sync -> what the emulator says when it is taken out; "" if it does not notice
       unchanged  lines of those it does not notice without which o is the same to the bit
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from unittest import mock

import torch
from torch import Tensor

from ..tools.emulator.counters import kind_of
from ..tools.emulator.machine import launch
from ..tools.emulator.memory import Memory
from ..tools.emulator.parser import EmulatorError, parse
from ..tools.kernels import machine_code

WARPS = (1, 2, 4, 8)
LINE = "before = tl.dot(q, "  # of `output`: the line that is listed
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


def multiply(A: Tensor, B: Tensor) -> Tensor:
    """A [16,16] times B [16,8] by one instruction, the numbers dealt out to threads as the PTX manual has it."""
    thread = torch.arange(32)
    i, j = thread // 4, 2 * (thread % 4)  # row and column of each thread's first number
    a = [A[row, column + n] for column in (j, j + 8) for row in (i, i + 8) for n in (0, 1)]
    b = [B[row + n, i] for row in (j, j + 8) for n in (0, 1)]
    result = mma(torch.stack(a, 1), torch.stack(b, 1))
    C = torch.empty(16, 8)
    for n, (row, column) in enumerate(((i, j), (i, j + 1), (i + 8, j), (i + 8, j + 1))):
        C[row, column] = result[:, n]
    return C


def run(T: int, d: int, C: int) -> dict:
    result = machine_code.elsewhere(__name__, "run", json.dumps(dict(T=T, d=d, C=C)))[0]
    result["counts"] = {int(warps): count for warps, count in result["counts"].items()}  # JSON has no numbers as keys
    return result


def look(T: int, d: int, C: int) -> dict:
    result = machine_code.elsewhere(__name__, "look", json.dumps(dict(T=T, d=d, C=C)))[0]
    result["races"] = {int(line): text for line, text in result["races"].items()}
    return result


def inputs(T: int, d: int) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    return (*torch.randn(3, 1, T, d).bfloat16(), -torch.rand(1, T), torch.randn(1, d, d))


def measure(T: int, d: int, C: int) -> dict:
    from ..state_space import recurrent
    from .kernels import heads_first

    given = inputs(T, d)
    exact, _ = heads_first(recurrent)(*(x.double() for x in given))
    outputs, counts = zip(*(execute(given, C, warps) for warps in WARPS), strict=True)
    wrong = max((o.double() - exact).abs().max() for o in outputs) / exact.abs().max()
    return dict(error=wrong.item(), counts=dict(zip(WARPS, counts, strict=True)))


def inside(T: int, d: int, C: int) -> dict:
    given, texts = inputs(T, d), []
    o, counts = execute(given, C, edit=lambda ptx: texts.append(ptx) or ptx)
    text, barrier = listing(texts[0])
    places = [found.start(1) for found in re.finditer(r"^\s*(bar\.sync)", texts[0], re.MULTILINE)]
    numbers = [one.line for one in parse(texts[0]).code if one.parts[0] == "bar"]
    races, unchanged = dict.fromkeys(numbers, ""), []
    for number, place in zip(numbers, places, strict=True):
        without = texts[0][:place] + "//" + texts[0][place:]
        try:
            result, _ = execute(given, C, edit=lambda _, without=without: without)
            unchanged += [number] * torch.equal(result, o)
        except EmulatorError as error:
            races[number] = str(error)
    return dict(counts=counts, listing=text, barrier=barrier, races=races, unchanged=unchanged)


def execute(
    given: tuple[Tensor, ...], C: int, warps: int = 4, edit: Callable[[str], str] = lambda ptx: ptx
) -> tuple[Tensor, dict]:
    """The outputs, and what `walk` did, its PTX edited before it runs. num_stages=1: nothing is loaded in advance."""
    from ..tools.emulator import driver
    from .kernels import walk

    parsed = driver.parsed

    def edited(ptx: str, name: str, shared: int) -> object:
        return parsed(edit(ptx), name, shared)

    q, k, v, g, h = given
    (H, T, d), o, h = q.shape, torch.empty_like(q), h.clone()
    walk.device_caches.clear()  # loaded kernels
    with mock.patch.object(driver, "parsed", edited), driver.chip("sm_80", count=True) as emulator:
        walk[(H,)](q, k, v, g, h, o, T, d, C=C, WIDTH=d, num_warps=warps, num_stages=1)
    return o, emulator.launches[-1].as_dict()


def listing(ptx: str) -> tuple[str, int]:
    """The line of Triton, and below it the PTX that comes from it, of each kind between two barriers once; the line of
    the last barrier."""
    from .kernels import output

    source, first = inspect.getsourcelines(output.fn)
    (row,) = (i for i, text in enumerate(source) if LINE in text)
    rows, seen, barrier = textwrap.wrap(source[row].strip(), COLUMNS, subsequent_indent="    "), set(), 0
    for one in parse(ptx).code:
        if not one.where.startswith(f"kernels.py:{first + row}:") or kind_of(one) in QUIET:
            continue
        barrier = one.line if one.parts[0] == "bar" else barrier
        if (one.opcode, barrier) not in seen:
            seen.add((one.opcode, barrier))
            text = re.sub(r"(?<=[{[]) | (?=[]}])", "", " ".join(one.text.split())).replace(" + 0]", "]")
            rows += textwrap.wrap(f"{one.line:>6} {text}", COLUMNS, subsequent_indent=" " * 11)
    return "\n".join(rows), barrier


def resources(d: int, chunks: Sequence[int], warps: int = 8) -> list[dict]:
    """A row for each size of a chunk, of tools.kernels.report.measure: `walk` for heads of width d."""
    return machine_code.elsewhere(__name__, "compile", json.dumps(dict(d=d, chunks=chunks, warps=warps)))


def compile_walk(d: int, chunks: Sequence[int], warps: int) -> list[dict]:
    from ..tools.kernels import report
    from .kernels import walk

    places = {parameter.name: place for place, parameter in enumerate(walk.params)}
    kinds = {"g_ptr": "*fp32", "h_ptr": "*fp32", "T": "i32", "d": "i32", "C": "constexpr", "WIDTH": "constexpr"}
    aligned = {(place,): [["tt.divisibility", 16]] for name, place in places.items() if name.endswith("_ptr")}
    rows = []
    for C in chunks:
        constants = {(places["C"],): C, (places["WIDTH"],): max(16, 1 << (d - 1).bit_length())}
        signature = {name: kinds.get(name, "*bf16") for name in places}
        specimen = dict(name=f"walk, chunk {C}", kernel=walk, signature=signature, constexprs=constants, attrs=aligned)
        rows += report.measure([specimen | dict(num_warps=warps, num_stages=1)], ["sm_80"])
    return rows


if __name__ == "__main__":
    task, options = sys.argv[1], json.loads(sys.argv[2])
    tasks = {"run": lambda: [measure(**options)], "look": lambda: [inside(**options)]}
    print(json.dumps(tasks[task]() if task in tasks else compile_walk(**options)))
