"""README's results, rendered from the ledger and the records: a table, a figure, findings, what to expect."""

from __future__ import annotations

from types import SimpleNamespace

from .. import arms, costs, experiments, figures, figures_study, files, paper_run, records, runs
from ..config import preset
from . import HERE, MARKS, OURS, ROOT, UNTESTABLE, WAITS, claims, printed, results, tallied

PICTURE = ROOT / "docs" / "results.svg"
MARKED = "<!-- {}: written by python -m pspin_lite ledger --write -->", "<!-- end of {} -->"
LINES = {  # arm and batch size -> name in the figure
    ("p-spin", 1): "p-Spin, batch 1",
    ("transformer", 1): "Transformer, batch 1",
    ("p-spin", 64): "p-Spin, batch 64",
    ("transformer", 64): "Transformer, batch 64",
}
ALPHABETS = ("subwords", "bytes")
SPLITS = ("held-out", "recent")


def render(text: str) -> str:
    """README with everything between its marks anew."""
    for name, body in (("answer", answer()), ("results", table()), ("findings", findings()), ("expected", expected())):
        begin, end = (mark.format(name) for mark in MARKED)
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise files.FileError(f"README.md: expected the lines {begin} and {end}, between which the {name} stand")
        text = f"{before}{begin}\n\n{body}\n\n{end}{after}"
    return text


def answer() -> str:
    return " ".join(sentences("short"))


def table() -> str:
    """The claims that have a brief form; last those that still wait."""
    found = results()
    lines = ["| claim | measured | |", "|---|---|---|"]
    for claim in sorted(claims(), key=lambda claim: found[claim.id].verdict == WAITS):
        one = found[claim.id]
        if claim.brief:
            ours = " *(our control)*" if claim.section == OURS else ""
            undecided = {WAITS: "{count} runs to do", UNTESTABLE: one.text}
            measured = undecided.get(one.verdict, claim.brief).format(**one.values)
            lines.append(f"| {claim.says}{ours} | {measured} | {MARKS[one.verdict]} {one.verdict} |")
    study = [group for group in arms.GROUPS if not group.startswith("smoke") and group != "presets"]
    done = sum(len(list((experiments.RECORDS / group).glob("*/seed-*.json"))) for group in study)
    planned = sum(len(arms.SEEDS) * len(arms.GROUPS[group]) for group in study)
    end = f"That was a selection. {tallied(found)} All of them: [docs/ledger.md](docs/ledger.md). On record: {done} of "
    return "\n".join(lines) + f"\n\n{end}{planned} full runs."


def findings() -> str:
    return "\n".join(f"- {one}" for one in sentences("findings"))


def sentences(which: str) -> list[str]:
    """Of claims.json, over the values of claims, {claim.value} with _ for -. Each says which verdicts it rests on, and
    is left out as long as they are others."""
    found = results()
    values = {name.replace("-", "_"): SimpleNamespace(**one.values) for name, one in found.items()}
    among = lambda verdict, wanted: verdict in (wanted if isinstance(wanted, list) else [wanted])  # noqa: E731
    stands = lambda one: all(among(found[name].verdict, wanted) for name, wanted in one["needs"].items())  # noqa: E731
    return [one["says"].format(**values) for one in files.read_json(HERE / "claims.json")[which] if stands(one)]


def expected() -> str:
    """What the presets reach and how long they take; those of the paper's size in a time that was given them."""
    lines = ["| preset | parameters | time | held-out | recent |", "|---|---|---|---|---|"]
    finished, names = {"byte-lite": runs.trained("byte-lite").summary}, list(paper_run.MINUTES)
    for arm in arms.GROUPS["presets"]:
        for job in experiments.jobs("presets", arm.name):
            names.append(job.name)
            if records.has(job.name):
                finished[arm.name] = records.read(job.name)["summary"]
    waiting = [arm.name for arm in arms.GROUPS["presets"] if arm.name not in finished]
    for name in waiting:
        lines.append(f"| `{name}` | {costs.footprint(preset(name)).params:,} | not on record yet | | |")
    for name, one in finished.items():
        scores = " | ".join(f"{one['validation'][split]['bits_per_byte']:.3f}" for split in SPLITS)
        lines.append(f"| `{name}` | {one['parameters']:,} | {_time(one['seconds'])} | {scores} |")
    for name in filter(records.has, paper_run.MINUTES):
        record = records.read(name)
        one, threads = record["summary"], record["environment"]["threads"]
        scores = " | ".join(f"{one['validation'][split]['bits_per_byte']:.3f}" for split in SPLITS)
        reached = f"{one['steps']} of {record['config']['model']['steps']:,} steps in {_time(one['seconds'])}"
        each = f"{one['seconds_a_step']:.1f} s each on {threads} threads"
        took = f"cut off after {reached}, {each}; all would take {one['whole_run_hours']:.0f} hours"
        lines.append(f"| `{name.removeprefix('paper/')}` | {one['parameters']:,} | {took} | {scores} |")
    made = {}
    for name in filter(records.has, names):
        made.setdefault(_machine(records.read(name)), []).append(f"`{name.split('/')[1]}`")
    noted = "; ".join(f"{machine}: {', '.join(which)}" for machine, which in made.items() if machine)
    theirs = {"subword-paper": "p-spin", "byte-paper": "byte", "transformer-paper": "transformer"}
    listed = ", ".join(f"{printed.PAPER['seconds'][key]:g} s (`{name}`)" for name, key in theirs.items())
    after = f"Machines, where they were noted: {noted}. " if noted else ""
    after += (
        f"On a GPU nothing was measured. The paper's times for a step, on hardware that it does not name: {listed}."
    )
    return "\n".join(lines) + "\n\n" + after


def _machine(record: dict) -> str:
    found = record["environment"]
    return f"{found['processor']}, {found['cores']} cores" if "processor" in found else ""


def _time(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def draw():
    """The figure, from the arms that have all their full runs."""
    curves, ends = {}, {}
    for alphabet in ALPHABETS:
        there = {key: name for key, name in LINES.items() if not records.missing(f"{alphabet}-{key[1]}/{key[0]}")}
        curves[alphabet] = {
            name: list(records.seeds(f"{alphabet}-{batch}", arm).values()) for (arm, batch), name in there.items()
        }
        group = f"{alphabet}-1"
        full = [arm.name for arm in arms.GROUPS[group] if not records.missing(f"{group}/{arm.name}")]
        ends[alphabet] = {name: records.bits(group, name) for name in full}
    return figures_study.front(curves, ends)[0]


def write() -> None:
    figures.outlines(PICTURE, draw)
    readme = ROOT / "README.md"
    files.write_text(readme, render(readme.read_text(encoding="utf-8")))
