"""The walk of notebook 02 in bfloat16, compiled for an A100: executed, and what it needs. Seconds, no GPU.

    result = compiled.run(T=64, d=32, C=32)             one head, executed by the emulator
    rows = compiled.resources(d=88, chunks=(32, 128))   registers, spills and so on, as in tools/kernels/report.py

Each takes a process of its own, like everything that compiles (see tools/kernels/machine_code.py). `run` returns

    error    largest difference of o from float64, relative to the largest entry
    counts   number of warps -> Counters.as_dict() of the emulator
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from ..tools.kernels import machine_code

WARPS = (1, 2, 4, 8)


def run(T: int, d: int, C: int) -> dict:
    result = machine_code.elsewhere(__name__, "run", json.dumps(dict(T=T, d=d, C=C)))[0]
    result["counts"] = {int(warps): count for warps, count in result["counts"].items()}  # JSON has no numbers as keys
    return result


def measure(T: int, d: int, C: int) -> dict:
    from ..state_space import recurrent
    from .kernels import heads_first

    torch.manual_seed(0)
    inputs = (*torch.randn(3, 1, T, d).bfloat16(), -torch.rand(1, T), torch.randn(1, d, d))
    exact, _ = heads_first(recurrent)(*(x.double() for x in inputs))
    outputs, counts = zip(*(execute(inputs, C, warps) for warps in WARPS), strict=True)
    wrong = max((o.double() - exact).abs().max() for o in outputs) / exact.abs().max()
    return dict(error=wrong.item(), counts=dict(zip(WARPS, counts, strict=True)))


def execute(inputs: tuple[Tensor, ...], C: int, warps: int) -> tuple[Tensor, dict]:
    """The outputs, and what `walk` did. num_stages=1: nothing is loaded in advance."""
    from ..tools.emulator import driver
    from .kernels import walk

    q, k, v, g, h = inputs
    (H, T, d), o, h = q.shape, torch.empty_like(q), h.clone()
    walk.device_caches.clear()  # loaded kernels
    with driver.chip("sm_80", count=True) as emulator:
        walk[(H,)](q, k, v, g, h, o, T, d, C=C, WIDTH=d, num_warps=warps, num_stages=1)
    return o, emulator.launches[-1].as_dict()


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
    print(json.dumps([measure(**options)] if task == "run" else compile_walk(**options)))
