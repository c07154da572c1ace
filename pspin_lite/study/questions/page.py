"""docs/second_study.md: the parts that are rendered from the records, as pages.py does for other pages.

Each function gives the text between two marks of its name. A table has a row for every answer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from itertools import groupby
from types import SimpleNamespace

from ...training import part_noise
from .. import jobs, networks, records, stability
from ..intervals import Difference
from . import answers as measured
from .criteria import NOT_COMPUTED, NOT_RUN
from .question import SECTIONS, Row, Speeches, questions, texts

MOST_WORDS = 100  # of the summary
MOST_FACTS, MOST_NAMES = 8, 10  # in a cell, in a line
ALPHABETS = ("bytes", "subwords")


def so_far() -> str:
    """The summary: the sentences whose answers are there, as many as there is room for."""
    every = {row.key: row for row in measured.answers()}
    given = {key: row for key, row in every.items() if row.verdict not in (NOT_RUN, NOT_COMPUTED)}
    runs = _runs()
    alphabets = [one for one in ALPHABETS if any(one in _alphabets(row) for row in given.values())]
    values = dict(
        done=sum(map(records.has, runs)),
        planned=len(runs),
        answered=len(given),
        asked=len(every),
        alphabets=" and ".join(alphabets) if len(alphabets) != 1 else f"{alphabets[0]} only",
        rows={key: _numbers(row) for key, row in given.items()},
    )
    sentences: list[str] = []
    for text in texts()["so far"]:
        needs = text.get("needs", {})
        if all(key in given and given[key].verdict in _listed(words) for key, words in needs.items()):
            sentence = text["says"].format(**values)
            if len(" ".join([*sentences, sentence]).split()) <= MOST_WORDS:
                sentences.append(sentence)
    return " ".join(sentences)


def main_answers() -> str:
    """For docs/results.md: of the questions that matter most, the answers that are there."""
    every = {question.id: question for question in questions()}
    return _table(row for name in texts()["main"] for row in measured.answer(every[name]) if row.values)


def branches() -> str:
    """How loud the MLPs are, and what the network does without them, on the windows that were silenced."""
    rows = [["network", "seeds", "bits per byte", "MLPs silenced", "MLP, size", "state space, size"]]
    rows[0] += ["MLP, gradient", "MLP, update"]
    for alphabet in ALPHABETS:
        for template in texts()["branches"]:
            group, name = template.format(alphabet=alphabet).split("/")
            runs = [run for run in records.seeds(group, name).values() if run.get("silenced")]
            if runs:
                rows.append([f"`{name}`, {alphabet}", str(len(runs)), *_loudness(runs)])
    return _markdown(rows)


def contraction() -> str:
    """Whether the layers with steps contract: the largest over all layers and seeds, in the course of the runs and
    where they end."""
    rows = [["network", "seeds", "radius, largest", "at the end", "gradient error, largest", "at the end"]]
    rows[0].append("radius below 1")
    for alphabet in ALPHABETS:
        group = f"steps-{alphabet}"
        for name in (f"living-{alphabet}/p-spin", *(f"{group}/{arm.name}" for arm in networks.GROUPS[group])):
            runs = [run for run in records.seeds(*name.split("/")).values() if run.get("attractor")]
            if runs:
                radius, error = ([records.layers(run, key) for run in runs] for key in ("radius", "gradient_error"))
                most = [max(run.max() for run in some) for some in (radius, [run[-1] for run in radius])]
                cells = [*(f"{x:.2f}" for x in most)]
                cells += [_percent(max(run.max() for run in some)) for some in (error, [run[-1] for run in error])]
                cells.append("always" if most[0] < 1 else "at the end" if most[1] < 1 else "not always")
                rows.append([f"`{name.partition('/')[2]}`, {alphabet}", str(len(runs)), *cells])
    return _markdown(rows)


def noise_by_rate() -> str:
    """The lowest and the highest noise scale of the networks that were trained at a rate, the means over seeds of full
    runs at batch size 1."""
    rows = [["alphabet, learning rate", "networks", "lowest noise scale", "highest"]]
    for alphabet in ALPHABETS:
        groups = [f"{alphabet}-1", *(f"{kind}-{alphabet}" for kind in ("living", "steps", "repair", "stack"))]
        by_rate: dict[float, list[tuple[float, str]]] = {}
        for group, name in ((one, arm.name) for one in groups for arm in networks.GROUPS[one]):
            runs = list(records.seeds(group, name).values())
            if runs and (group, name) != (f"living-{alphabet}", "p-spin"):  # p-spin of the first study again
                scale = statistics.mean(map(stability.scale_of_noise, runs))
                by_rate.setdefault(runs[0]["config"]["model"]["lr"], []).append((scale, name))
        for rate, scales in sorted(by_rate.items()):
            ends = [f"{scale:.1f} (`{name}`)" for scale, name in (min(scales), max(scales))]
            rows.append([f"{alphabet}, {rate:g}", str(len(scales)), *ends])
    return _markdown(rows)


def betas() -> str:
    """Where the short runs end, by beta2: the mean over the seeds that are there."""
    tables = []
    for group, batch in (("moments", 1), ("moments-8", 8)):
        cells = {tuple(arm.name.split("-beta2-")): _ends(f"{group}/{arm.name}") for arm in networks.GROUPS[group]}
        names, values = dict.fromkeys(name for name, _ in cells), sorted({beta2 for _, beta2 in cells}, key=float)
        rows = [[f"batch size {batch}, β₂ =", *values]]
        rows += [[measured.NETWORKS[name], *(cells[name, beta2] for beta2 in values)] for name in names]
        tables += [_markdown(rows)] if any(cells.values()) else []
    return "\n\n".join(tables) or "None of them is on record yet."


def missing() -> str:
    """What is still to be run, a line for each group."""
    lines = []
    for group in networks.SECOND:
        runs = {arm.name: [f"{group}/{arm.name}/seed-{n}" for n in arm.seeds] for arm in networks.GROUPS[group]}
        open_ = {name: sum(not records.has(run) for run in some) for name, some in runs.items()}
        planned, left = sum(map(len, runs.values())), sum(open_.values())
        names = [f"`{name}` {count}" for name, count in open_.items() if count]
        some = ", ".join(names) if len(names) <= MOST_NAMES else f"in {len(names)} networks"
        state = (
            "complete" if not left else f"all {left} runs" if left == planned else f"{left} of {planned} runs: {some}"
        )
        lines.append(f"- `{group}`: {state}")
    return "\n".join(lines)


def _answers(section: str) -> Callable[[], str]:
    def part() -> str:
        return _table(measured.answers(section))

    part.__name__ = section
    return part


TABLES = {section: _answers(section) for section in SECTIONS}
AFTER = {  # a table of answers
    "living": (branches,),
    "steps": (contraction,),
    "moments": (betas,),
    "noise": (noise_by_rate,),
}
PARTS: tuple[Callable[[], str], ...] = (
    so_far,
    *(part for section, table in TABLES.items() for part in (table, *AFTER.get(section, ()))),
    missing,
)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.2%}"


def _ends(name: str) -> str:
    """Held-out bits per byte, and of how many seeds if not of all."""
    runs = measured.results(name, records.SPLIT)
    if not runs or not all(map(math.isfinite, runs.values())):
        return "diverged" if runs else ""
    planned = len(networks.arm(*name.split("/")).seeds)
    return f"{statistics.mean(runs.values()):.3f}" + (f" ({len(runs)} of {planned})" if len(runs) < planned else "")


def _runs() -> list[str]:
    return [
        f"{group}/{arm.name}/seed-{n}" for group in networks.SECOND for arm in networks.GROUPS[group] for n in arm.seeds
    ]


def _listed(words: str | list[str]) -> list[str]:
    return [words] if isinstance(words, str) else words


def _alphabets(row: Row) -> tuple[str, ...]:
    """That an answer is about."""
    some = tuple(one for one in row.question.alphabets if row.about.startswith(one))
    return some or row.question.alphabets


def _numbers(row: Row) -> SimpleNamespace:
    """Of the held-out split, for a sentence."""
    value = row.values[0][0] if row.values else math.nan
    mean = value.mean if isinstance(value, Difference) else value
    return SimpleNamespace(mean=mean, gain=-mean, width=value.half_width if isinstance(value, Difference) else math.nan)


def _table(answers: Iterable[Row]) -> str:
    """Rows that wait for runs are one row for each question."""
    rows = [["question", "what is compared", *records.SPLITS, "answer"]]
    for question, some in groupby(answers, key=lambda row: row.question):
        every = list(some)
        shown = [[row.about, *by_split(row), answer(row)] for row in every if row.verdict != NOT_RUN]
        if waiting := [row for row in every if row.verdict == NOT_RUN]:
            about = waiting[0].about if len(waiting) == 1 else "the rest" if shown else "all"
            runs = {run for row in waiting for run in row.runs}
            done = len(runs) - len({run for row in waiting for run in row.missing})
            shown.append([about, "", "", f"{NOT_RUN}: {done} of {len(runs)} runs done"])
        rows += [["" if i else question.asks, *cells] for i, cells in enumerate(shown)]
    return _markdown(rows)


def answer(row: Row) -> str:
    """Its verdict, and what else is true."""
    facts = [*row.facts[:MOST_FACTS], *([f"{len(row.facts) - MOST_FACTS} more"] if row.facts[MOST_FACTS:] else [])]
    return ", ".join([f"**{row.verdict}**", *(["so far"] if row.moving else []), *facts])


def by_split(row: Row) -> list[str]:
    """What it rests on, for each split."""
    return [_cell(row, i) for i in range(len(records.SPLITS))]


def _cell(row: Row, split: int) -> str:
    if split >= len(row.values):
        return ""
    cell = ", ".join(map(_number, row.values[split]))
    return cell + (_bracket(row.speeches[split]) if row.speeches else "")


def _number(value: Difference | float) -> str:
    if isinstance(value, Difference):
        return f"{value.mean:+.3f} ± {value.half_width:.3f}"
    return f"{value:+.3f}" if math.isfinite(value) else "diverged"


def _bracket(interval: Speeches) -> str:
    return f" [{interval[0]:+.3f}, {interval[1]:+.3f}]" if interval else ""


def _loudness(runs: list[dict]) -> list[str]:
    """Means over seeds; sizes over layers too. From the start to the end of training."""
    speaking = statistics.mean(map(whole, runs))
    silent = statistics.mean(run["silenced"]["mlp"][-1] for run in runs)
    ends = [[run["branches"][i] for run in runs] for i in (0, -1)]
    sizes = {
        kind: [statistics.mean(statistics.mean(one[kind]) for one in end) for end in ends] for kind in ("mlp", "mixer")
    }
    shares = [
        [100 * statistics.mean(sum(one[key].get(p, 0) for p in part_noise.MLP) for one in end) for end in ends]
        for key in ("gradient", "update")
    ]
    arrows = [f"{start:.3g} → {end:.3g}" for start, end in (sizes["mlp"], sizes["mixer"])]
    arrows += [f"{start:.2g}% → {end:.2g}%" for start, end in shares]
    return [f"{speaking:.3f}", f"{silent:.3f}", *arrows]


def whole(record: dict) -> float:
    """Bits per byte with nothing silenced, on the windows that were read with branches silenced: every so many of
    those that the record keeps."""
    rows = record["windows held-out"]
    rows = [rows[i * len(rows) // jobs.SILENT_WINDOWS] for i in range(min(len(rows), jobs.SILENT_WINDOWS))]
    return sum(nats for _, nats, _ in rows) / math.log(2) / sum(size for *_, size in rows)


def _markdown(rows: list[list[str]]) -> str:
    """The first row is the head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])
