"""README.md, docs/results.md and docs/training.md: their rendered parts, from the verdicts and the records.

The parts of docs/second_study.md are made by pspin_lite/study/questions/page.py.

A page is written by hand, but for what is between two marks,

    <!-- rendered: findings -->  ...  <!-- end: findings -->

which `python -m pspin_lite ledger --write` replaces. The sentences are in pages.json, with {claim.value} where a number
belongs (_ for - in the id of a claim). A sentence says which verdicts it needs, and is left out as long as they are
others, so that no page can disagree with a measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
from matplotlib.figure import Figure

from ... import _files as files
from ... import costs
from ...config import preset
from ...data import sequences
from ...lessons import figures, probes
from ...lessons.figures import front_page
from ...training import load
from .. import jobs, networks, paper_size, records
from ..intervals import Difference
from ..questions import answers, criteria
from ..questions import page as second_study
from . import paper_numbers
from .ledger import HERE, MARKS, OURS, ROOT, UNTESTABLE, WAITS, claims, results, tallied
from .verdict import FORMER, HOLDS, NOT_SEEN, PART, REFUTED, UNDECIDED

PICTURE = ROOT / "docs" / "results.svg"
BEGIN, END = "<!-- rendered: {} -->", "<!-- end: {} -->"
ENDS = {  # group and network -> name in the figure
    "{alphabet}-64/transformer": "Transformer, batch 64",
    "{alphabet}-64/p-spin": "p-Spin, batch 64",
    "{alphabet}-1/transformer": "Transformer, batch 1",
    "{alphabet}-1/p-spin": "p-Spin, batch 1",
    "{alphabet}-1/swiglu": "ordinary MLP instead",
    "{alphabet}-1/k0-same-size": "no repeated steps",
    "living-{alphabet}/no-mlp": "no attractor",
    "living-{alphabet}/tanh-tanh": "product of spins",
    "repair-{alphabet}/mended": "mended: convolution too",
    "stack-{alphabet}/stacked": "stacked: norms too",
}
ALPHABETS = ("subwords", "bytes")
SPLITS = ("held-out", "recent")
KIND = ((FORMER, REFUTED, NOT_SEEN), (UNDECIDED,), (PART,), (HOLDS,))  # verdicts, from harsh to kind


def texts(part: str) -> list[dict]:
    return files.read_json(HERE / "pages.json")[part]


def values() -> dict[str, SimpleNamespace]:
    """What str.format needs for {claim.value}."""
    return {name.replace("-", "_"): SimpleNamespace(**result.values) for name, result in results().items()}


def supported(text: dict) -> bool:
    """Are the verdicts those that a text needs? A list means any of them."""
    verdicts = {name: result.verdict for name, result in results().items()}
    return all(
        verdicts[name] in (needs if isinstance(needs, list) else [needs]) for name, needs in text["needs"].items()
    )


def table(rows: list[list[str]]) -> str:
    """A Markdown table; the first row is its head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def answer() -> str:
    """README's bullets."""
    return "\n".join(f"- {text['says'].format(**values())}" for text in texts("answer") if supported(text))


def verdicts() -> str:
    """README's table."""
    rows = [["claim", "measured", "verdict"]]
    rows += [[text["says"], measured(text, values()), verdict(text["claim"])] for text in texts("verdicts")]
    return table(rows)


def changed() -> str:
    """README's caveat: how many verdicts rest on a criterion that was changed, and in whose favour."""
    after, stored = [claim for claim in claims() if claim.earlier_verdict], results()
    rank = {verdict: place for place, same in enumerate(KIND) for verdict in same}
    steps = [(rank.get(claim.earlier_verdict), rank.get(stored[claim.id].verdict)) for claim in after]
    told = [now - before for before, now in steps if before is not None and now is not None]
    harsher, kinder = sum(step < 0 for step in told), sum(step > 0 for step in told)
    unranked = len(steps) - len(told)
    says = f"Changing criteria after results moved {len(after)} of {len(claims())} verdicts: {harsher} became harsher,"
    return f"{says} {kinder} kinder, {unranked} cannot be ranked ([list](docs/criteria.md))."


def sequel() -> str:
    """README's sentences about the second study, each as long as its verdicts are those of the text."""
    rows = {row.key: row for row in answers.answers()}
    rest = " (under way)" if any(row.verdict == criteria.NOT_RUN for row in rows.values()) else ""
    says = f"The [second study](docs/second_study.md){rest} asks why, and tries repairs."
    for text in texts("sequel"):
        if all(key in rows and rows[key].verdict in needed for key, needed in text["needs"].items()):
            gaps = {key: _gap(rows[key].values[0][0]) for key in text["needs"]}
            says += " " + text["says"].format(second=gaps, **values())
    return says


def _gap(found: Difference) -> SimpleNamespace:
    return SimpleNamespace(gap=found.mean, size=abs(found.mean), width=found.half_width)


def selection(only: Sequence[str] = ()) -> str:
    """The longer table; what waits for runs comes last. Or some of its claims, in a few words."""
    by_id, stored = {claim.id: claim for claim in claims()}, results()
    rows = [["claim", "measured", ""]]
    for text in sorted(texts("selection"), key=lambda text: stored[text["claim"]].verdict == WAITS):
        if only and text["claim"] not in only:
            continue
        text = text | {"measured": text["short"]} if only and "short" in text else text
        claim = by_id[text["claim"]]
        ours = " *(our control)*" if claim.section == OURS else ""
        rows.append([f"{claim.says}{ours}", measured(text, stored[claim.id].values), verdict(claim.id)])
    return table(rows)


def measured(text: dict, numbers: dict) -> str:
    """The measurement in a few words, or why there is none."""
    result = results()[text["claim"]]
    return result.text if result.verdict in (WAITS, UNTESTABLE) else text["measured"].format(**numbers)


def verdict(claim: str) -> str:
    result = results()[claim]
    return f"{MARKS[result.verdict]} {result.verdict}"


def tally() -> str:
    """How many claims hold, and how many of the planned runs are on record."""
    groups = [name for name in networks.FIRST if not name.startswith("smoke") and name != "presets"]
    names = [f"{group}/{network.name}" for group in groups for network in networks.GROUPS[group]]
    planned = len(names) * len(networks.SEEDS)
    return f"{tallied(results())} On record: {planned - len(records.missing(*names))} of {planned} full runs."


def findings() -> str:
    parts = []
    for finding in filter(supported, texts("findings")):
        body = [block if isinstance(block, str) else table(block) for block in finding["body"]]
        parts += [f"### {finding['title']}", *(block.format(**values()) for block in body)]
    return "\n\n".join(parts)


def expected() -> str:
    """What the presets reach and how long they take."""
    finished = {name: load.shipped(name).summary for name in ("byte-lite", "byte-mended")}
    rows = [["preset", "parameters", "time", *SPLITS]]
    for network in networks.GROUPS["presets"]:
        if records.has(name := _preset_run(network)):
            finished[network.name] = records.read(name)["summary"]
        else:
            rows.append([f"`{network.name}`", f"{costs.footprint(preset(network.name)).params:,}", "not yet", "", ""])
    for name, summary in finished.items():
        rows.append([f"`{name}`", f"{summary['parameters']:,}", _time(summary["seconds"]), *_scores(summary)])
    return table(rows)


def paper_sizes() -> str:
    """The paper's own sizes, as far as a machine got in the time it was given."""
    rows = [["preset", "parameters", "steps done", "in", "per step", "threads", "the whole run", *SPLITS]]
    for name in filter(records.has, paper_size.MINUTES):
        record = records.read(name)
        summary, steps = record["summary"], record["config"]["model"]["steps"]
        rows.append(
            [
                f"`{name.removeprefix('paper/')}`",
                f"{summary['parameters']:,}",
                f"{summary['steps']} of {steps:,}",
                _time(summary["seconds"]),
                f"{summary['seconds_a_step']:.1f} s",
                str(record["environment"]["threads"]),
                f"{summary['whole_run_hours']:.0f} hours",
                *_scores(summary),
            ]
        )
    theirs = {"subword-paper": "p-spin", "byte-paper": "byte", "transformer-paper": "transformer"}
    seconds = ", ".join(f"{paper_numbers.PAPER['seconds'][key]:g} s (`{name}`)" for name, key in theirs.items())
    return f"{table(rows)}\n\nThe paper's times per step, on hardware that it does not name: {seconds}."


def machines() -> str:
    """Where the runs of both tables were made, as far as that was noted."""
    names = [*paper_size.MINUTES, *(_preset_run(network) for network in networks.GROUPS["presets"])]
    presets: dict[str, list[str]] = {}
    for name in filter(records.has, names):
        environment = records.read(name)["environment"]
        if "processor" in environment:
            machine = f"{environment['processor']}, {environment['cores']} cores"
            presets.setdefault(machine, []).append(f"`{name.split('/')[1]}`")
    listed = "; ".join(f"{machine}: {', '.join(some)}" for machine, some in presets.items())
    return f"Machines, where they were noted: {listed}. We measured nothing on a GPU."


def _preset_run(network: networks.Arm) -> str:
    return f"presets/{network.name}/seed-{network.cfg.seed}"


def _scores(summary: dict) -> list[str]:
    return [f"{summary['validation'][split]['bits_per_byte']:.3f}" for split in SPLITS]


def _time(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


PAGES: dict[str, tuple[Callable[[], str], ...]] = {
    "README.md": (answer, verdicts, changed, sequel),
    "docs/results.md": (selection, tally, second_study.so_far, second_study.main_answers, findings),
    "docs/training.md": (expected, paper_sizes, machines),
    "docs/second_study.md": second_study.PARTS,
}


def render(page: str, text: str) -> str:
    """A page with everything between its marks anew."""
    for part in PAGES[page]:
        name = part.__name__
        begin, end = BEGIN.format(name), END.format(name)
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise files.FileError(f"{page}: expected the lines {begin} and {end}, and the {name} between them")
        text = f"{before}{begin}\n\n{part()}\n\n{end}{after}"
    return text


def draw() -> Figure:
    """The figure, from the networks that have all their full runs."""
    ends = {}
    for alphabet in ALPHABETS:
        every = {name: template.format(alphabet=alphabet).split("/") for template, name in ENDS.items()}
        ends[alphabet] = {
            name: records.bits(group, network)
            for name, (group, network) in every.items()
            if network in [one.name for one in networks.GROUPS[group]] and not records.missing(f"{group}/{network}")
        }
    sizes = [(run["batch"], run["batch"] * run["steps"]) for run in (networks.BATCH_64, networks.BATCH_1)]
    note = "\n".join(f"batch {batch}: {sequences:,} sequences" for batch, sequences in sizes)
    note += "\nbold: the headline\ngrey: p-Spin, batch 1,\nwith the attractor changed\ngreen: our repairs"
    return front_page.front(ends, note, {"bytes": counted()})[0]


def counted() -> float:
    """Bits per byte of counts of the bytes that the networks at batch size 1 read, scored on the same windows."""
    length, steps = networks.CONTEXT, networks.BATCH_1["steps"]
    train = sequences.open("sotu", "bytes", length=length, seed=networks.SEEDS[0])
    held = sequences.open("sotu", "bytes", split="held-out", length=length)
    seen = np.stack([train.sequence(n) for n in range(steps)]).astype(np.uint8)
    scores, _ = probes.count_scores(seen, {"held-out": held}, 5, windows=jobs.FULL["final_tokens"] // length)
    return scores["held-out"][5]


def write() -> None:
    figures.outlines(PICTURE, draw)
    for page in PAGES:
        path = ROOT / page
        files.write_text(path, render(page, path.read_text(encoding="utf-8")))
