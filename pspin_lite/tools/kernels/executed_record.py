"""What the emulator counted at the paper's shapes: run (about half an hour), kept as a record, printed, and written as
tables into docs/emulator.md. `executed.py` says how it is measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from ..emulator.bounds import RATES, bound
from . import machine_code
from .report import CHUNKS, SHAPES

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "notebooks" / "records" / "emulator.json"
PAGE = ROOT / "docs" / "emulator.md"
COMMAND = "python -m pspin_lite kernels --executed --write"
PHASES = ("forward", "backward")
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


def run() -> Iterable[dict]:
    for job in jobs():
        (row,) = machine_code.elsewhere("pspin_lite.tools.kernels.executed", json.dumps(job))
        yield trimmed(row)


def trimmed(row: dict) -> dict:
    """A row of the record: of every launch what the tables need."""
    row = dict(row, errors={name: float(f"{value:.2e}") for name, value in row["errors"].items()})
    for phase in PHASES:
        each = [_launch(one, row["chip"]) for one in row[phase]["each"]]
        row[phase] = dict(row[phase], bound=round(row[phase]["bound"], 2), each=each)
    return row


def _launch(one: dict, chip: str) -> dict:
    seconds = bound(one, chip)
    limit = max(("memory", "tensor", "issue", "shared"), key=lambda name: seconds[name])
    return dict(
        name=one["name"], blocks=one["blocks"], instructions=sum(one["instructions"].values()),
        tensor=sum(one["tensor"].values()), read=one["read"], written=one["written"],
        least=one["least_read"] + one["least_written"], passes=one["passes"], conflicts=one["conflicts"],
        barriers=one["barriers"], bound=round(1e6 * seconds["bound"], 2), limit=limit,
    )  # fmt: skip


def launches(row: dict) -> str:
    """One line for each launch."""
    lines = [f"{row['what']}, {row['shape']}, chunk {row['chunk']}, {row['dtype']}, {RATES[row['chip']].title}"]
    lines.append(
        f"  {'':<36}{'blocks':>7}{'instructions':>14}{'tensor Mop':>12}{'read':>12}{'written':>12}{'least':>12}"
        f"{'passes':>11}{'conflicts':>11}{'barriers':>10}   bound, not a measurement"
    )
    for phase in PHASES:
        for one in row[phase]["each"]:
            lines.append(
                f"  {phase + ' ' + one['name']:<36.36}{one['blocks']:>7}{one['instructions']:>14,}"
                f"{one['tensor'] / 1e6:>12.1f}{one['read']:>12,}{one['written']:>12,}{one['least']:>12,}"
                f"{one['passes']:>11,}{one['conflicts']:>11,}{one['barriers']:>10,}"
                f"   {one['bound']:.1f} us by {one['limit']}"
            )
    return "\n".join(lines)


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


def rendered(text: str, rows: list[dict]) -> str:
    """The page with its tables written anew."""
    for name, table in (("comparison", comparison(rows)), ("errors", errors(rows))):
        marks = f"<!-- rendered: {name} -->", f"<!-- end: {name} -->"
        text = re.sub(f"{marks[0]}.*{marks[1]}", f"{marks[0]}\n\n{table}\n\n{marks[1]}", text, flags=re.DOTALL)
    return text


def load() -> list[dict]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["rows"]


def store(rows: list[dict]) -> None:
    lines = ",\n".join(json.dumps(row) for row in rows)
    RECORD.write_text(f'{{"command": "{COMMAND}", "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def main(write: bool = False) -> int:
    rows = []
    for row in run():
        print(launches(row), "\n", flush=True)
        rows.append(row)
    print(comparison(rows), "\n", errors(rows), sep="\n")
    if write:
        store(rows)
    return 0
