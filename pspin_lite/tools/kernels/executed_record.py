"""What the emulator counted at the paper's shapes: run (20 minutes), kept as a record, printed, and written as
tables into docs/emulator.md. `executed.py` and its neighbours say how it is measured.

The record knows the kernels that it was measured with (`fingerprint`), so that a test can tell when it is out of date.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from ..emulator.counters import ALL_KINDS, RATES, bound
from . import counted, machine_code
from .report import CHUNKS, SHAPES

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "notebooks" / "records" / "emulator.json"
PAGE = ROOT / "docs" / "emulator.md"
COMMAND = "python -m pspin_lite kernels --executed --write"
EXECUTED = "pspin_lite.tools.kernels.executed"
ATTRACTOR = "pspin_lite.tools.kernels.attractor_executed"
ERRORS = "pspin_lite.tools.kernels.attractor_errors"
PHASES = ("forward", "backward")
FUSED = ("fused", "pytorch")  # the attractor
NOTED = ("name", "blocks", "read", "written", "passes", "conflicts", "barriers", "registers", "stack", "resident")
DTYPES = ("float32", "float16", "bfloat16")
COUNTED = dict(
    instructions="instructions",
    tensor="tensor-core operations",
    bytes="bytes moved",
    least="distinct bytes",
    bound="bound",
)


def jobs() -> list[dict]:
    """The comparison, then what only errors are wanted of."""
    compared = [
        dict(what=what, chip=chip, shape=shape, chunk=chunk, dtype="bfloat16")
        for chip in RATES for shape in SHAPES for chunk in CHUNKS for what in ("parallel", "fla")
    ]  # fmt: skip
    every = [
        dict(what=what, chip=chip, shape=shape, chunk=chunk, dtype=dtype)
        for chip in RATES for shape in SHAPES for what, chunk in (("parallel", 64), ("walk", 64), ("walk", 128))
        for dtype in DTYPES
    ]  # fmt: skip
    return compared + [job for job in every if job not in compared]


def attractor_jobs() -> list[dict]:
    return [
        dict(what=what, chip=chip, shape=shape) for chip in RATES for shape in SHAPES for what in (*FUSED, "ternary")
    ]


def error_jobs() -> list[dict]:
    return [dict(chip=chip, shape=shape, dtype=dtype) for chip in RATES for shape in SHAPES for dtype in DTYPES]


LISTS = dict(attractor=(ATTRACTOR, attractor_jobs), rows=(EXECUTED, jobs), errors=(ERRORS, error_jobs))


def fingerprint() -> str:
    """Of the kernels' code, without comments and docstrings."""
    code = []
    for path in sorted((ROOT / "kernels").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = [line.split("  # ")[0].rstrip() for line in text.splitlines()]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
                lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
        code += [path.name, *(line for line in lines if line.strip() and not line.strip().startswith("#"))]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def run(module: str, jobs: list[dict], known: list[dict]) -> Iterable[dict]:
    """A row for each job: one of those known, or measured."""
    for job in jobs:
        row = next((row for row in known if row | job == row), None)
        if row is None:
            (row,) = machine_code.elsewhere(module, json.dumps(job))
            row = trimmed(row)
            print("measured", *job.values(), flush=True)
        yield row


def trimmed(row: dict) -> dict:
    """A row of the record: of every launch what the tables need."""
    if "errors" in row:
        row = dict(row, errors={name: float(f"{value:.2e}") for name, value in row["errors"].items()})
    for phase in row.keys() & PHASES:
        each = [_launch(one, row["chip"]) for one in row[phase]["each"]]
        row[phase] = dict(row[phase], bound=round(row[phase]["bound"], 2), each=each)
    return row


def _launch(one: dict, chip: str) -> dict:
    seconds = bound(one, chip)
    limit = max(("memory", "tensor", "issue", "shared"), key=lambda name: seconds[name])
    return {name: one[name] for name in NOTED if name in one} | dict(
        instructions={kind: one["instructions"].get(kind, 0) for kind in ALL_KINDS},
        tensor=sum(one["tensor"].values()), least=one["least_read"] + one["least_written"],
        bound=round(1e6 * seconds["bound"], 2), limit=limit,
    )  # fmt: skip


def comparison(rows: list[dict]) -> str:
    """Ours / theirs, Markdown."""
    known = {(r["chip"], r["shape"], r["chunk"], r["what"]): r for r in rows if r["dtype"] == "bfloat16"}
    lines = ["| chip | shape | chunk | pass | " + " | ".join([*COUNTED.values(), "ours / fla's bound"]) + " |"]
    lines.append("|---" * 4 + "|---:" * (len(COUNTED) + 1) + "|")
    for chip, shape, chunk, what in known:
        if what != "parallel" or (chip, shape, chunk, "fla") not in known:
            continue
        both = known[chip, shape, chunk, what], known[chip, shape, chunk, "fla"]
        for phase in PHASES:
            our, their = (row[phase] for row in both)
            cells = [f"{_short(name, our)} / {_short(name, their)}" for name in COUNTED]
            ratio = f"{our['bound'] / their['bound']:.1f}"
            lines.append(f"| {RATES[chip].title} | {shape} | {chunk} | {phase} | {' | '.join([*cells, ratio])} |")
    return "\n".join(lines)


def _short(name: str, phase: dict) -> str:
    if name == "bound":
        return f"{phase['bound']:.0f} µs"
    if name in ("bytes", "least"):
        return f"{(phase[name] + phase['between']) / 2**20:{'.0f' if name == 'bytes' else '.1f'}} MiB"
    return f"{phase[name] / 1e6:.1f} M" if name == "instructions" else f"{phase[name] / 1e9:.2f} G"


def errors(rows: list[dict]) -> str:
    names = list(rows[0]["errors"])
    lines = ["| chip | shape | chunk | form | numbers | " + " | ".join(names) + " |"]
    lines.append("|---" * 5 + "|---:" * len(names) + "|")
    for row in rows:
        if row["what"] != "fla":
            place = f"{RATES[row['chip']].title} | {row['shape']} | {row['chunk']} | {row['what']} | {row['dtype']}"
            lines.append(_numbers(place, row["errors"]))
    return "\n".join(lines)


def attractor_errors(rows: list[dict]) -> str:
    lines = ["| chip | shape | numbers | " + " | ".join(rows[0]["errors"]) + " |"]
    lines.append("|---" * 3 + "|---:" * len(rows[0]["errors"]) + "|")
    lines += [_numbers(f"{RATES[row['chip']].title} | {row['shape']} | {row['dtype']}", row["errors"]) for row in rows]
    return "\n".join(lines)


def _numbers(place: str, errors: dict) -> str:
    return f"| {place} | " + " | ".join(f"{value:.1e}" for value in errors.values()) + " |"


def rewrite(rows: list[dict], before: dict) -> str:
    """Bounds before our kernels were rewritten and now, and fla's."""
    bounds = {(r["chip"], r["shape"], r["chunk"], r["what"]): r for r in rows if r["dtype"] == "bfloat16"}
    lines = ["| chip | shape | chunk | pass | before | now | fla's |", "|---" * 4 + "|---:" * 3 + "|"]
    for old in before["rows"]:
        place = old["chip"], old["shape"], old["chunk"]
        for phase in PHASES:
            now = [f"{bounds[*place, what][phase]['bound']:.1f} µs" for what in ("parallel", "fla")]
            cells = [RATES[old["chip"]].title, old["shape"], str(old["chunk"]), phase, f"{old[phase]:.1f} µs", *now]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def attractor(rows: list[dict]) -> str:
    """Ours / PyTorch's, Markdown."""
    known = {(r["chip"], r["shape"], r["what"]): r for r in rows}
    lines = ["| chip | shape | pass | launches | bytes at least | bytes requested | our instructions | bound | ratio |"]
    lines.append("|---" * 3 + "|---:" * 6 + "|")
    for chip in RATES:
        for shape in SHAPES:
            for phase in PHASES:
                our, their = (known[chip, shape, what][phase] for what in FUSED)
                cells = [f"{our['launches']} / {their['launches']}"]
                cells += [f"{our[n] / 2**20:,.0f} / {their[n] / 2**20:,.0f} MiB" for n in ("least", "requested")]
                cells += [_short("instructions", our), f"{our['bound']:.0f} / {their['bound']:.0f} µs"]
                cells.append(f"{our['bound'] / their['bound']:.1f}")
                lines.append(f"| {RATES[chip].title} | {shape} | {phase} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rendered(text: str, record: dict) -> str:
    """The page with its tables written anew."""
    tables = {
        "comparison": comparison(record["rows"]),
        "rewrite": rewrite(record["rows"], record["before"]),
        "errors": errors(record["rows"]),
        "attractor": attractor(record["attractor"]),
        "attractor errors": attractor_errors(record["errors"]),
    }
    for name, table in tables.items():
        marks = f"<!-- rendered: {name} -->", f"<!-- end: {name} -->"
        text = re.sub(f"{marks[0]}.*{marks[1]}", f"{marks[0]}\n\n{table}\n\n{marks[1]}", text, flags=re.DOTALL)
    return text


def load() -> dict:
    """rows: the state space, ours and fla's. attractor: ours and PyTorch's. errors: of the attractor. kernels: their
    fingerprint. before: bounds in microseconds of the state space's kernels before they were rewritten."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def store(record: dict) -> None:
    lists = {name: "[\n" + ",\n".join(json.dumps(row) for row in record[name]) + "\n]" for name in LISTS}
    head = {name: json.dumps(record[name]) for name in ("command", "kernels", "before")}
    words = ", ".join(f'"{name}": {value}' for name, value in (head | lists).items())
    RECORD.write_text(f"{{{words}}}\n", encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


def show(part: str | None = None) -> None:
    """Prints what the record, which belongs to a checkout, says about our kernels."""
    if part in (None, *counted.PARTS) and RECORD.exists():
        print(f"== executed\n{counted.text(load(), part)}")


def main(write: bool = False, missing: bool = False) -> int:
    """missing: measures only what the record lacks, and everything if the kernels have changed since."""
    record, now = load(), fingerprint()
    keep = missing and record["kernels"] == now
    for name, (module, jobs_of) in LISTS.items():
        record[name] = list(run(module, jobs_of(), record[name] if keep else []))
    record |= dict(command=COMMAND, kernels=now)
    print(counted.text(record), comparison(record["rows"]), attractor(record["attractor"]), sep="\n\n")
    print(errors(record["rows"]), attractor_errors(record["errors"]), sep="\n\n")
    if write:
        store(record)
    return 0
