"""The tables of `python -m pspin_lite kernels` for what the emulator executed: counters of every launch, instructions
by kind, beside what the assembler makes of its kernel, and the least time that an A100 and an H100 need for it."""

from __future__ import annotations

from ..emulator.counters import ALL_KINDS, RATES, SECTOR

CHUNK = 64
PHASES = ("forward", "backward")
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
    "Mflop": "on the tensor cores, in millions",
    "read": "sectors of global memory that warps ask for, 32 bytes each, in thousands; caches serve many of them",
    "written": "the same",
    "KiB": "all of these sectors",
    "least": "KiB if every sector were moved once",
    "passes": "over shared memory, in thousands",
    "conflicts": "share of the passes that bank conflicts cost",
    "barriers": "all blocks together",
    "bound": "microseconds: no launch takes less. It is a bound and not a measurement",
    "by": "what sets the bound: memory, tensor cores, issue of instructions, or shared memory",
}
INSTRUCTIONS = "instructions, of PTX, in thousands, one for each warp that executes it"
SHORT = {kind: kind.split()[0] for kind in ALL_KINDS}
WIDTHS = dict.fromkeys((*COLUMNS, "all", *ALL_KINDS), 10) | dict(kernel=28, times=6, by=8)


def text(record: dict, part: str | None = None) -> str:
    """Columns explained, and two tables for each chip and shape. part: one of PARTS, all if None."""
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
        here = [row for row in rows if (row["chip"], row["shape"]) == (chip, shape)]
        title = f"{RATES[chip].title}, {shape}"
        lines += ["", _line(dict(zip(COLUMNS, COLUMNS, strict=True), kernel=title))]
        lines += [line for row in here for phase in PHASES for line in _pass(row, phase)]
        lines += ["", f"  {title}: {INSTRUCTIONS}", _line(dict(kernel="", all="all", **SHORT))]
        lines += [line for row in here for phase in PHASES for line in _kinds(row, phase)]
    return "\n".join(lines)


def _alike(row: dict, phase: str) -> list[list[dict]]:
    """Launches of a pass, those together that count the same."""
    groups: dict[str, list[dict]] = {}
    for launch in row[phase]["each"]:
        groups.setdefault(str(launch), []).append(launch)
    return list(groups.values())


def _pass(row: dict, phase: str) -> list[str]:
    some = _alike(row, phase)
    part = next(name for name, (_, what) in PARTS.items() if what == row["what"])
    total = dict(kernel=f"= {part} {phase}", times=sum(map(len, some)), bound=f"{row[phase]['bound']:.1f}")
    return [*(_line(_cells(phase, same[0], len(same))) for same in some), _line(dict.fromkeys(COLUMNS, "") | total)]


def _kinds(row: dict, phase: str) -> list[str]:
    lines = []
    for launch, *_ in _alike(row, phase):
        counts = dict(all=sum(launch["instructions"].values())) | launch["instructions"]
        cells = {kind: f"{count / 1e3:,.1f}" for kind, count in counts.items()}
        lines.append(_line(dict(kernel=f"{phase} {launch['name']}") | cells))
    return lines


def _cells(phase: str, launch: dict, times: int) -> dict:
    return dict(
        kernel=f"{phase} {launch['name']}",
        times=times,
        programs=launch["blocks"],
        **{name: launch.get(name, "") for name in ("registers", "stack", "resident")},
        Mflop=f"{launch['tensor'] / 1e6:,.0f}",
        **{name: f"{launch[name] / SECTOR / 1e3:,.1f}" for name in ("read", "written")},
        KiB=f"{(launch['read'] + launch['written']) / 1024:,.0f}",
        least=f"{launch['least'] / 1024:,.0f}",
        passes=f"{launch['passes'] / 1e3:,.1f}",
        conflicts=f"{launch['conflicts'] / max(launch['passes'], 1):.0%}",
        barriers=f"{launch['barriers']:,}",
        bound=f"{launch['bound']:.1f}",
        by=launch["limit"],
    )


def _line(cells: dict) -> str:
    return "  " + "".join(f"{cell!s:{'<' if name == 'kernel' else '>'}{WIDTHS[name]}}" for name, cell in cells.items())
