"""python -m pspin_lite kernels: every kernel compiled for GPUs that need not be here, at the paper's shapes.

For each kernel: registers, shared memory, stack, spills, tensor-core instructions, 128-bit loads, occupancy (all
explained in machine_code.py), how many of a launch's programs run at once on the whole chip, and from the formulas
beside each kernel (`specimens` in its file) the bytes moved, every tensor once, and the arithmetic for each of them. A
GPU is kept busy by arithmetic from about 150 (16 bits, tensor cores) or 10 (float32) operations a byte upwards.
What the emulator counted when it executed them comes after (counted.py).

Compilation happens in a process of its own: kernels defined for the interpreter cannot be compiled.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterable

from ... import _checks as checks
from . import flash_linear_attention, machine_code

SHAPES = {  # the paper's: n = B*T tokens, D the model's width, Dint spins, heads of width d
    "byte": dict(B=1, T=2048, H=8, d=88, D=704, Dint=2048),
    "subword": dict(B=1, T=1024, H=8, d=68, D=544, Dint=1408),
}
TOKEN = dict(B=1, T=1, H=8, d=88, D=704, Dint=2048)  # decoding: one token, other tiles
CHUNKS = (64, 128)
DTYPES = ("float32", "bfloat16")
OURS = ("attractor", "ternary", "state-space")


def specimens(parts: Iterable[str], shapes: Iterable[str], dtypes: Iterable[str], chunks: Iterable[int]) -> list[dict]:
    """Everything to compile: the kernels' own descriptions, with their shape and dtype added."""
    import torch

    result = []
    for shape in shapes:
        for dtype in dtypes:
            for part in parts:
                size = TOKEN if shape == "token" else SHAPES[shape]
                size = size | dict(dtype=getattr(torch, dtype), n=size["B"] * size["T"])
                result += [s | dict(shape=shape, dtype=dtype, part=part) for s in _of_part(part, size, chunks)]
    return result


def _of_part(part: str, size: dict, chunks: Iterable[int]) -> list[dict]:
    if part == "attractor":
        from pspin_kernels import attractor

        return attractor.specimens(size["n"], size["Dint"], size["dtype"])
    if part == "ternary":
        from pspin_kernels import ternary

        return ternary.specimens(size["n"], size["D"], 2 * size["Dint"], size["dtype"])
    modules = [flash_linear_attention] if part == "fla" else _state_space_modules()
    result = []
    for module in modules:
        takes = inspect.signature(module.specimens).parameters
        for chunk in chunks:
            known = {name: value for name, value in (size | dict(chunk=chunk)).items() if name in takes}
            result += [s | dict(name=f"{s['name']}, chunk {chunk}") for s in module.specimens(**known)]
    return result


def _state_space_modules() -> list:
    import pspin_kernels

    names = [
        m.name for m in pkgutil.iter_modules(pspin_kernels.__path__) if m.name.startswith(("state_space", "chunk"))
    ]
    modules = [importlib.import_module(f"pspin_kernels.{name}") for name in names]
    return [module for module in modules if "specimens" in vars(module)]


def measure(specimens: list[dict], chips: Iterable[str]) -> list[dict]:
    """Compile for each of these chips. The same code at two shapes is compiled once. A failure is a row with the key
    "error". Of several specimens of one name, the row with the least stack and then the most warps stays."""
    wanted = [(_key(chip, s), chip, s) for s in specimens for chip in machine_code.CHIPS]
    wanted = [(key, chip, s) for key, chip, s in wanted if chip.name in chips and chip.name in s.get("chips", chips)]
    built, errors = {}, {}
    for key, chip, s in wanted:
        if key not in built and key not in errors:
            try:
                built[key] = machine_code.compile_for(chip, s)
            except Exception as error:  # whatever a compiler throws belongs into the table
                errors[key] = dict(error=f"{type(error).__name__}: {str(error)[:300]}")
    needs = dict(zip(built, machine_code.read([*built.values()]), strict=True))
    rows = []
    for key, chip, s in wanted:
        row = dict(chip=chip.name, shared_limit=chip.shared_limit) | {name: s.get(name) for name in NOTED}
        if key in errors:
            rows.append(row | errors[key])
            continue
        blocks, warps = machine_code.occupancy(chip, needs[key], s.get("num_warps", 4))
        flight = min(s["programs"], blocks * chip.multiprocessors) if s.get("programs") else None
        rows.append(row | needs[key].as_dict() | dict(blocks=blocks, warps=warps, in_flight=flight))
    best = {}
    for row in rows:
        which = tuple(row[name] for name in ("name", "chip", "shape", "dtype"))
        if which not in best or _badness(row) < _badness(best[which]):
            best[which] = row
    return list(best.values())


def _key(chip: machine_code.Chip, s: dict) -> str:
    """The same for two specimens whose machine code is the same."""
    what = (s.get(name) for name in ("signature", "constexprs", "attrs", "num_warps", "num_stages", "maxnreg"))
    return str((chip.name, s["kernel"].__name__, *what))


def _badness(row: dict) -> tuple:
    return ("error" in row, row.get("stack"), -row.get("warps", 0))


def run(
    parts: Iterable[str],
    shapes: Iterable[str] = tuple(SHAPES),
    dtypes: Iterable[str] = DTYPES,
    chunks: Iterable[int] = CHUNKS,
    chips: Iterable[str] = tuple(chip.name for chip in machine_code.CHIPS),
    names: str = "",
) -> list[dict]:
    """`measure` in a process of its own, as rows. names: a pattern; only kernels whose names it fits from the start."""
    words = [",".join(map(str, some)) for some in (parts, shapes, dtypes, chunks, chips)] + [names]
    return machine_code.elsewhere(__name__, *words)


NOTED = ("name", "part", "shape", "dtype", "programs", "bytes", "flops", "padded")
COLUMNS = (
    "registers  shared  stack  spills  tensor  128-bit loads  blocks/warps  in flight of programs      MB  flop/byte"
)


def table(rows: list[dict]) -> str:
    lines, before = [], None
    for row in sorted(rows, key=lambda r: (r["shape"], r["dtype"], r["chip"])):
        heading = f"{row['shape']}, {row['dtype']}, {row['chip']}"
        if heading != before:
            lines += ["", f"{heading:<56}{COLUMNS}"]
            before = heading
        if "error" in row:
            lines.append(f"  {row['name']:<54}{row['error'].splitlines()[0]}")
            continue
        loads = f"{row['wide']} of {row['loads']}"
        line = f"  {row['name']:<54}{row['registers']:>9}{row['shared']:>8}{row['stack']:>7}{row['spills']:>8}"
        line += f"{row['tensor']:>8}{loads:>15}{row['blocks']:>9}/{row['warps']:<4}"
        line += f"{_or_blank(row['in_flight'], '9d')} of {_or_blank(row['programs'], '9d')}"
        cost = (row["bytes"] / 1e6, row["flops"] / row["bytes"]) if row["bytes"] and row["flops"] else (None, None)
        lines.append(line + _or_blank(cost[0], "8.1f") + _or_blank(cost[1], "11.1f"))
    return "\n".join(lines).lstrip("\n")


def _or_blank(value, form: str) -> str:
    return " " * int(form.rstrip("df").split(".")[0]) if value is None else format(value, form)


def main(compare_fla: bool = False, only: str | None = None) -> int:
    if only is not None:
        checks.choice("--only", only, (*OURS, "fla"))
    parts = [only] if only else [*OURS, *(["fla"] if compare_fla else [])]
    failed, everything = False, []
    for part in parts:
        rows = run([part], dtypes=["bfloat16"] if part == "fla" else DTYPES)
        print(f"== {part}\n{table(rows)}\n" if rows else f"== {part}: no kernels\n", flush=True)
        failed |= part != "fla" and any("error" in row for row in rows)
        everything += rows
    if compare_fla and not only:
        print(flash_linear_attention.comparison(everything), flush=True)
    return int(failed)


if __name__ == "__main__":
    parts, shapes, dtypes, chunks, chips = (word.split(",") for word in sys.argv[1:6])
    everything = specimens(parts, shapes, dtypes, [int(chunk) for chunk in chunks])
    print(json.dumps(measure([s for s in everything if re.match(sys.argv[6], s["name"])], chips)))
