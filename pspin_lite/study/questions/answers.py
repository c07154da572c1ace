"""The second study's questions, answered from the records: one function for each kind of criterion.

`answer(question)` gives a row for every difference, each with the page's word or "not run yet" and the runs that are
missing. A run diverges if it leaves the finite numbers, or ends above what counting bytes gives, on either split. It
counts as infinitely bad. Differences with such a run in them are not computed, and its network tells nothing about the
variance.

Intervals rest on the variance within networks, pooled over the networks of the group that have all seeds by now. So
they may still move while runs of a group are missing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from .. import intervals, networks, records
from . import criteria, measures
from .criteria import NOT_COMPUTED
from .question import Question, Row, questions
from .runs import difference, diverged, end, moving, named, obstacle, results, speeches, spread, waits

NETWORKS = {"p-spin": "p-Spin", "transformer": "Transformer", "tanh-tanh": "tanh-tanh", "swiglu": "SwiGLU"}
BETAS, TIMES = (0.95, 0.999), (0.25, 4)
ADAM = "moments/{}-beta2-0.999"


def answers(section: str | None = None) -> list[Row]:
    return [row for question in questions(section) for row in answer(question)]


def answer(question: Question) -> list[Row]:
    """The question's rows, and last their joint answer if it has one."""
    rows = KINDS[question.kind](question)
    rows += [_joint(question, rows)] if question.together else []
    return [replace(row, key=key) for row, key in zip(rows, _keys(question, len(rows)), strict=True)]


def _keys(question: Question, count: int) -> list[str]:
    """id, "id bytes", "id bytes 2", "id together"; of other kinds "id 1", "id 2"."""
    if question.kind in ("intervals", "half"):
        times = len(question.differences) if question.kind == "intervals" else 1
        names = [f" {one} {i + 1}" if times > 1 else f" {one}" for one in question.alphabets for i in range(times)]
        return [f"{question.id}{name}" for name in (*names, *([" together"] if question.together else []))]
    return [question.id] if count == 1 else [f"{question.id} {i + 1}" for i in range(count)]


def _joint(question: Question, rows: list[Row]) -> Row:
    """Of rows that have to agree."""
    if waiting := waits(question, "together", list(dict.fromkeys(run for row in rows for run in row.runs))):
        return waiting
    verdicts = {row.verdict for row in rows}
    lost = NOT_COMPUTED if NOT_COMPUTED in verdicts else criteria.UNDECIDED
    return Row(question, "together", question.together if verdicts == {question.together} else lost)


# The kinds of criterion


def _intervals(question: Question) -> list[Row]:
    """Differences of two networks."""
    rows = []
    for alphabet in question.alphabets:
        for pair in question.differences:
            one, other = (name.format(alphabet=alphabet) for name in pair)
            about = f"{alphabet}: {named(one, other)}"
            family = question.intervals
            row = obstacle(question, about, (one, other))
            if row is None:
                gaps = [difference(one, other, split, family) for split in records.SPLITS]
                text = tuple(speeches(one, other, split, family) for split in records.SPLITS)
                verdict, facts = criteria.interval(gaps, question.words)
                values = tuple((gap,) for gap in gaps)
                row = Row(question, about, verdict, values, text, tuple(facts), moving=moving((one, other)))
            rows.append(row)
    return rows


def _half(question: Question) -> list[Row]:
    """Two differences from the same network, set against each other."""
    rows = []
    for alphabet in question.alphabets:
        first, second = ([name.format(alphabet=alphabet) for name in pair] for pair in question.differences)
        shown = f"{named(*first)}, {named(*second)}"
        row = obstacle(question, f"{alphabet}: {shown}", (*first, *second))
        if row is None:
            gaps = [
                [difference(pair[0], pair[1], split, question.intervals) for split in records.SPLITS]
                for pair in (first, second)
            ]
            verdict, values = criteria.half(*gaps), tuple(zip(*gaps, strict=True))
            row = Row(question, f"{alphabet}: {shown}", verdict, values, moving=moving((*first, *second)))
        rows.append(row)
    return rows


def _interaction(question: Question) -> list[Row]:
    """A difference of two differences within a group."""
    pairs = question.differences
    names = [name for pair in pairs for name in pair]
    if row := obstacle(question, question.about, names):
        return [row]
    gaps = []
    for split in records.SPLITS:
        one, other = ((results(pair[0], split), results(pair[1], split)) for pair in pairs)
        gaps.append(intervals.interaction(one, other, spread(pairs[0][0], split), question.intervals))
    verdict, facts = criteria.interval(gaps, question.words)
    values = tuple((gap,) for gap in gaps)
    return [Row(question, question.about, verdict, values, facts=tuple(facts), moving=moving(names))]


def _stable(question: Question) -> list[Row]:
    """From the worst to the best seed of a network."""
    name = ADAM.format("transformer")
    about, runs = f"`{name.partition('/')[2]}`, worst − best", [f"{name}/seed-{n}" for n in networks.SEEDS]
    if row := waits(question, about, runs):
        return [row]
    scores = [list(results(name, split).values()) for split in records.SPLITS]
    range_ = tuple((math.inf if math.inf in split else max(split) - min(split),) for split in scores)
    return [Row(question, about, criteria.stable(scores), range_)]


def _divergence(question: Question) -> list[Row]:
    """One run is enough for a yes; a no needs all of them."""
    runs = [f"moments/{arm.name}/seed-{n}" for arm in networks.GROUPS["moments"] for n in arm.seeds]
    lost = tuple(run for run in runs if records.has(run) and diverged(records.read(run)))
    about = f"{len(runs)} runs"
    if lost:
        return [Row(question, about, "yes", facts=lost)]
    return [waits(question, about, runs) or Row(question, about, "no")]


def _rates(question: Question) -> list[Row]:
    """What the worse of two wrong rates costs p-Spin and the Transformer, and last the answer for both beta2."""
    rows: list[Row] = []
    costs: list[tuple[float, float]] = []
    runs: list[str] = []
    for beta2 in BETAS:
        about = f"β₂ {beta2:g}: cost for p-Spin − cost for the Transformer"
        tuned = [f"moments/{name}-beta2-{beta2:g}/seed-1" for name in ("p-spin", "transformer")]
        wrong = [
            [f"moments-rates/{name}-beta2-{beta2:g}-times-{times:g}/seed-1" for times in TIMES]
            for name in ("p-spin", "transformer")
        ]
        needed = [*tuned, *wrong[0], *wrong[1]]
        runs += needed
        row = waits(question, about, needed)
        if row is None and any(diverged(records.read(run)) for run in tuned):
            row = Row(question, about, NOT_COMPUTED, facts=("the tuned rate diverged",))
        if row is None:
            both = [(_cost(tuned[0], wrong[0], split), _cost(tuned[1], wrong[1], split)) for split in records.SPLITS]
            costs += both
            values = tuple((_minus(mine, other),) for mine, other in both)
            row = Row(question, about, criteria.wider(both), values)
        rows.append(row)
    last = waits(question, "both", runs)
    if last is None and len(costs) < len(BETAS) * len(records.SPLITS):
        last = Row(question, "both", NOT_COMPUTED)
    return [*rows, last or Row(question, "both", criteria.wider(costs))]


def _sgd(question: Question) -> list[Row]:
    """The best of SGD's rates against Adam, of each network with one seed."""
    rows = []
    for name, says in NETWORKS.items():
        adam = f"{ADAM.format(name)}/seed-1"
        runs = {rate: f"sgd/{name}-rate-{rate:g}/seed-1" for rate in networks.SGD_RATES}
        row = waits(question, says, [adam, *runs.values()])
        if row is None and diverged(records.read(adam)):
            row = Row(question, says, NOT_COMPUTED, facts=("Adam diverged",))
        if row is None:
            means = {rate: statistics.mean(end(run, split) for split in records.SPLITS) for rate, run in runs.items()}
            best = min(means, key=lambda rate: means[rate])
            gaps = [end(runs[best], split) - end(adam, split) for split in records.SPLITS]
            edges = {networks.SGD_RATES[0]: ", the smallest", networks.SGD_RATES[-1]: ", the largest"}
            verdict = criteria.trains(gaps)
            facts = (f"rate {best:g}{edges.get(best, '')}",) if verdict != "fails" else ()
            row = Row(question, says, verdict, tuple((gap,) for gap in gaps), facts=facts)
        rows.append(row)
    return rows


def _cost(tuned: str, others: Sequence[str], split: str) -> float:
    """Of the worst of the others."""
    return max(end(run, split) for run in others) - end(tuned, split)


def _minus(a: float, b: float) -> float:
    return 0.0 if a == b else a - b  # both infinite: no difference


KINDS: dict[str, Callable[[Question], list[Row]]] = {
    "intervals": _intervals,
    "half": _half,
    "interaction": _interaction,
    "stable": _stable,
    "divergence": _divergence,
    "rates": _rates,
    "sgd": _sgd,
    **measures.KINDS,
}
