"""What the emulator counted at the paper's shapes: run (15 minutes), kept as a record, printed, and written as
tables into docs/emulator.md. `executed.py` says how it is measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from ..emulator.counters import RATES, bound
from . import counted, machine_code
from .report import CHUNKS, SHAPES

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "notebooks" / "records" / "emulator.json"
PAGE = ROOT / "docs" / "emulator.md"
COMMAND = "python -m pspin_lite kernels --executed --write"
EXECUTED = "pspin_lite.tools.kernels.executed"
ATTRACTOR = "pspin_lite.tools.kernels.attractor_executed"
PHASES = ("forward", "backward")
FUSED = ("fused", "pytorch")  # the attractor
NOTED = ("name", "blocks", "read", "written", "passes", "conflicts", "barriers", "registers", "stack", "resident")
DTYPES = ("float32", "float16", "bfloat16")
COUNTED = dict(instructions="instructions", tensor="tensor-core operations", bytes="bytes moved", bound="bound")


def jobs() -> list[dict]:
    """The comparison, then what only errors are wanted of."""
    compared = [
        dict(what=what, chip=chip, shape=shape, chunk=chunk, dtype="bfloat16")
        for chip in RATES for shape in SHAPES for chunk in CHUNKS for what in ("parallel", "fla")
    ]  # fmt: skip
    every = [
        dict(what=what, chip=chip, shape=shape, chunk=64, dtype=dtype)
        for chip in RATES for shape in SHAPES for what in ("parallel", "walk") for dtype in DTYPES
    ]  # fmt: skip
    return compared + [job for job in every if job not in compared]


def attractor_jobs() -> list[dict]:
    return [
        dict(what=what, chip=chip, shape=shape) for chip in RATES for shape in SHAPES for what in (*FUSED, "ternary")
    ]


def run(module: str, jobs: list[dict]) -> Iterable[dict]:
    for job in jobs:
        (row,) = machine_code.elsewhere(module, json.dumps(job))
        yield trimmed(row)


def trimmed(row: dict) -> dict:
    """A row of the record: of every launch what the tables need."""
    if "errors" in row:
        row = dict(row, errors={name: float(f"{value:.2e}") for name, value in row["errors"].items()})
    for phase in PHASES:
        each = [_launch(one, row["chip"]) for one in row[phase]["each"]]
        row[phase] = dict(row[phase], bound=round(row[phase]["bound"], 2), each=each)
    return row


def _launch(one: dict, chip: str) -> dict:
    seconds = bound(one, chip)
    limit = max(("memory", "tensor", "issue", "shared"), key=lambda name: seconds[name])
    return {name: one[name] for name in NOTED if name in one} | dict(
        instructions=sum(one["instructions"].values()), tensor=sum(one["tensor"].values()),
        least=one["least_read"] + one["least_written"], bound=round(1e6 * seconds["bound"], 2), limit=limit,
    )  # fmt: skip


def comparison(rows: list[dict]) -> str:
    """Ours / theirs, Markdown."""
    known = {(r["chip"], r["shape"], r["chunk"], r["what"]): r for r in rows if r["dtype"] == "bfloat16"}
    lines = ["| chip | shape | chunk | pass | " + " | ".join([*COUNTED.values(), "ours / fla's bound"]) + " |"]
    lines.append("|---" * 4 + "|---:" * 5 + "|")
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
    if name == "bytes":
        return f"{(phase['bytes'] + phase['between']) / 2**20:.0f} MiB"
    return f"{phase[name] / 1e6:.1f} M" if name == "instructions" else f"{phase[name] / 1e9:.2f} G"


def errors(rows: list[dict]) -> str:
    names = list(rows[0]["errors"])
    lines = ["| chip | shape | chunk | form | numbers | " + " | ".join(names) + " |"]
    lines.append("|---" * 5 + "|---:" * len(names) + "|")
    for row in rows:
        if row["what"] != "fla":
            place = f"{RATES[row['chip']].title} | {row['shape']} | {row['chunk']} | {row['what']} | {row['dtype']}"
            lines.append(f"| {place} | " + " | ".join(f"{row['errors'][name]:.1e}" for name in names) + " |")
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
    tables = dict(comparison=comparison(record["rows"]), errors=errors(record["rows"]))
    for name, table in (tables | dict(attractor=attractor(record["attractor"]))).items():
        marks = f"<!-- rendered: {name} -->", f"<!-- end: {name} -->"
        text = re.sub(f"{marks[0]}.*{marks[1]}", f"{marks[0]}\n\n{table}\n\n{marks[1]}", text, flags=re.DOTALL)
    return text


def load() -> dict:
    """rows: the state space, ours and fla's. attractor: ours and PyTorch's."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def store(record: dict) -> None:
    rows, fused = (",\n".join(json.dumps(row) for row in record[name]) for name in ("rows", "attractor"))
    words = f'{{"command": "{COMMAND}", "rows": [\n{rows}\n], "attractor": [\n{fused}\n]}}\n'
    RECORD.write_text(words, encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


def show(part: str | None = None) -> None:
    """Prints what the record, which belongs to a checkout, says about our kernels."""
    if part in (None, *counted.PARTS) and RECORD.exists():
        print(f"== executed\n{counted.text(load(), part)}")


def main(write: bool = False) -> int:
    record: dict = dict(rows=[], attractor=[])
    for kind, module, some in (("attractor", ATTRACTOR, attractor_jobs()), ("rows", EXECUTED, jobs())):
        for row in run(module, some):
            print(row["what"], row["chip"], row["shape"], flush=True)
            record[kind].append(row)
    print(counted.text(record), comparison(record["rows"]), attractor(record["attractor"]), sep="\n\n")
    print(errors(record["rows"]))
    if write:
        store(record)
    return 0
