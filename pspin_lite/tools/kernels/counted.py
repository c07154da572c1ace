"""The table of `python -m pspin_lite kernels` for what the emulator executed: counters of every launch beside what the
assembler makes of its kernel, and the least time that an A100 and an H100 need for it."""

from __future__ import annotations

from ..emulator.counters import RATES

CHUNK = 64
PARTS = {
    "attractor": ("attractor", "fused"),
    "ternary": ("attractor", "ternary"),
    "state-space": ("rows", "parallel"),
}
COLUMNS = {
    "kernel": "the pass it belongs to, and its name in kernels/",
    "times": "launches of it in this pass that count the same",
    "programs": "blocks of one launch",
    "registers": "of each thread, of at most 255",
    "stack": "bytes of slow memory for each thread; 0 is right, more means spilled registers",
    "resident": "programs that one multiprocessor holds at once: the occupancy",
    "instructions": "of PTX, in thousands, one for each warp that executes it",
    "Mflop": "on the tensor cores, in millions",
    "moved": "KiB of global memory that warps ask for, in sectors of 32 bytes; caches serve many of them",
    "least": "KiB of it if every sector were moved once",
    "conflicts": "share of the passes over shared memory that bank conflicts cost",
    "barriers": "all blocks together",
    "bound": "microseconds: no launch takes less. It is a bound and not a measurement",
    "by": "what sets the bound: memory, tensor cores, issue of instructions, or shared memory",
}
WIDTHS = dict.fromkeys(COLUMNS, 10) | dict(kernel=28, times=6, instructions=13, by=8)


def text(record: dict, part: str | None = None) -> str:
    """Columns explained, and one table for each chip and shape. part: one of PARTS, all if None."""
    rows = [
        row
        for name, (place, what) in PARTS.items()
        for row in record[place]
        if part in (None, name) and row["what"] == what and row.get("dtype", "bfloat16") == "bfloat16"
    ]
    rows = [row for row in rows if row.get("chunk", CHUNK) == CHUNK]
    lines = [f"Executed by the emulator: bfloat16, one sequence of the paper's length, chunks of {CHUNK}, no GPU."]
    lines += [f"  {name:<13} {words}" for name, words in COLUMNS.items()]
    for chip, shape in sorted({(row["chip"], row["shape"]) for row in rows}):
        lines += ["", _line(dict(zip(COLUMNS, COLUMNS, strict=True)) | dict(kernel=f"{RATES[chip].title}, {shape}"))]
        for row in rows:
            if (row["chip"], row["shape"]) == (chip, shape):
                lines += [line for phase in ("forward", "backward") for line in _pass(row, phase)]
    return "\n".join(lines)


def _pass(row: dict, phase: str) -> list[str]:
    alike: dict[str, list[dict]] = {}
    for launch in row[phase]["each"]:
        alike.setdefault(str(launch), []).append(launch)
    lines = [_line(_cells(phase, some[0], len(some))) for some in alike.values()]
    part = next(name for name, (_, what) in PARTS.items() if what == row["what"])
    total = dict(kernel=f"= {part} {phase}", times=sum(map(len, alike.values())), bound=f"{row[phase]['bound']:.1f}")
    return [*lines, _line(dict.fromkeys(COLUMNS, "") | total)]


def _cells(phase: str, launch: dict, times: int) -> dict:
    return dict(
        kernel=f"{phase} {launch['name']}",
        times=times,
        programs=launch["blocks"],
        **{name: launch.get(name, "") for name in ("registers", "stack", "resident")},
        instructions=f"{launch['instructions'] / 1e3:,.0f}",
        Mflop=f"{launch['tensor'] / 1e6:,.0f}",
        moved=f"{(launch['read'] + launch['written']) / 1024:,.0f}",
        least=f"{launch['least'] / 1024:,.0f}",
        conflicts=f"{launch['conflicts'] / max(launch['passes'], 1):.0%}",
        barriers=f"{launch['barriers']:,}",
        bound=f"{launch['bound']:.1f}",
        by=launch["limit"],
    )


def _line(cells: dict) -> str:
    return "  " + "".join(f"{cells[name]!s:{'<' if name == 'kernel' else '>'}{WIDTHS[name]}}" for name in COLUMNS)
