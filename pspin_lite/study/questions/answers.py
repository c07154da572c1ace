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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .. import intervals, networks, records
from ..intervals import BySeed, Difference, Spread
from . import criteria
from .criteria import NOT_COMPUTED, NOT_RUN
from .question import Question, Row, Speeches, questions

COUNTING = {"held-out": 4.36, "recent": 4.55}  # bits per byte of a table of how frequent each byte is
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


# What a run says


def diverged(record: dict) -> bool:
    if record["summary"] is None:
        return True
    ends = record["summary"]["validation"]
    return any(not ends[split]["bits_per_byte"] <= most for split, most in COUNTING.items())


def results(name: str, split: str) -> BySeed:
    """Of GROUP/NAME: final bits per byte by seed, infinite if the run diverged."""
    group, arm = name.split("/")
    ends = records.bits(group, arm, split)
    return {n: math.inf if diverged(record) else ends[n] for n, record in records.seeds(group, arm).items()}


def spread(name: str, split: str) -> Spread:
    """Of the group that a network belongs to."""
    group = name.partition("/")[0]
    with records.using(preferred=records.preferred()):  # not noted as read: as records.group_spread
        every = [results(f"{group}/{arm.name}", split) for arm in networks.GROUPS[group]]
    return intervals.pooled(runs for runs in every if len(runs) == len(networks.SEEDS))


def difference(one: str, other: str, split: str, family: int) -> Difference:
    a, b = results(one, split), results(other, split)
    same = one.partition("/")[0] == other.partition("/")[0]
    return intervals.difference(a, b, spread(one, split), None if same else spread(other, split), family)


def speeches(one: str, other: str, split: str, family: int) -> Speeches:
    """The interval of a bootstrap over speeches; None if a run kept no windows."""
    a, b = (
        [run.get(f"windows {split}", []) for run in records.seeds(*name.split("/")).values()] for name in (one, other)
    )
    return intervals.over_speeches(a, b, family)[1:] if all([*a, *b]) else None


def _obstacle(question: Question, about: str, names: Iterable[str]) -> Row | None:
    """The row of networks that cannot be compared: with runs that are missing, or that diverged."""
    every = list(dict.fromkeys(names))
    if row := _waits(question, about, [f"{name}/seed-{n}" for name in every for n in networks.SEEDS]):
        return row
    lost = [f"{name}/seed-{n}" for name in every for n, x in results(name, records.SPLIT).items() if math.isinf(x)]
    return Row(question, about, NOT_COMPUTED, facts=("a run diverged", *lost)) if lost else None


def _waits(question: Question, about: str, runs: Sequence[str]) -> Row | None:
    """As long as one of these runs is missing."""
    missing = tuple(run for run in runs if not records.has(run))
    return Row(question, about, NOT_RUN, missing=missing, runs=tuple(runs)) if missing else None


def _moving(names: Iterable[str]) -> bool:
    """Whether a network is missing among those whose variance is pooled."""
    groups = {name.partition("/")[0] for name in names}
    return bool(records.missing(*(f"{group}/{arm.name}" for group in groups for arm in networks.GROUPS[group])))


def _joint(question: Question, rows: list[Row]) -> Row:
    """Of rows that have to agree."""
    if waiting := _waits(question, "together", list(dict.fromkeys(run for row in rows for run in row.runs))):
        return waiting
    verdicts = {row.verdict for row in rows}
    lost = NOT_COMPUTED if NOT_COMPUTED in verdicts else criteria.UNDECIDED
    return Row(question, "together", question.together if verdicts == {question.together} else lost)


def _pair(one: str, other: str) -> str:
    return f"`{one.partition('/')[2]}` − `{other.partition('/')[2]}`"


# The kinds of criterion


def _intervals(question: Question) -> list[Row]:
    """Differences of two networks."""
    rows = []
    for alphabet in question.alphabets:
        for pair in question.differences:
            one, other = (name.format(alphabet=alphabet) for name in pair)
            about = f"{alphabet}: {_pair(one, other)}"
            family = question.intervals
            row = _obstacle(question, about, (one, other))
            if row is None:
                gaps = [difference(one, other, split, family) for split in records.SPLITS]
                text = tuple(speeches(one, other, split, family) for split in records.SPLITS)
                verdict, facts = criteria.interval(gaps, question.words)
                values = tuple((gap,) for gap in gaps)
                row = Row(question, about, verdict, values, text, tuple(facts), moving=_moving((one, other)))
            rows.append(row)
    return rows


def _half(question: Question) -> list[Row]:
    """Two differences from the same network, set against each other."""
    rows = []
    for alphabet in question.alphabets:
        first, second = ([name.format(alphabet=alphabet) for name in pair] for pair in question.differences)
        shown = f"{_pair(*first)}, {_pair(*second)}"
        row = _obstacle(question, f"{alphabet}: {shown}", (*first, *second))
        if row is None:
            gaps = [
                [difference(pair[0], pair[1], split, question.intervals) for split in records.SPLITS]
                for pair in (first, second)
            ]
            verdict, values = criteria.half(*gaps), tuple(zip(*gaps, strict=True))
            row = Row(question, f"{alphabet}: {shown}", verdict, values, moving=_moving((*first, *second)))
        rows.append(row)
    return rows


def _interaction(question: Question) -> list[Row]:
    """A difference of two differences within a group."""
    pairs = question.differences
    names = [name for pair in pairs for name in pair]
    if row := _obstacle(question, question.about, names):
        return [row]
    gaps = []
    for split in records.SPLITS:
        one, other = ((results(pair[0], split), results(pair[1], split)) for pair in pairs)
        gaps.append(intervals.interaction(one, other, spread(pairs[0][0], split), question.intervals))
    verdict, facts = criteria.interval(gaps, question.words)
    values = tuple((gap,) for gap in gaps)
    return [Row(question, question.about, verdict, values, facts=tuple(facts), moving=_moving(names))]


def _stable(question: Question) -> list[Row]:
    """From the worst to the best seed of a network."""
    name = ADAM.format("transformer")
    about, runs = f"`{name.partition('/')[2]}`, worst − best", [f"{name}/seed-{n}" for n in networks.SEEDS]
    if row := _waits(question, about, runs):
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
    return [_waits(question, about, runs) or Row(question, about, "no")]


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
        row = _waits(question, about, needed)
        if row is None and any(diverged(records.read(run)) for run in tuned):
            row = Row(question, about, NOT_COMPUTED, facts=("the tuned rate diverged",))
        if row is None:
            both = [(_cost(tuned[0], wrong[0], split), _cost(tuned[1], wrong[1], split)) for split in records.SPLITS]
            costs += both
            values = tuple((_minus(mine, other),) for mine, other in both)
            row = Row(question, about, criteria.wider(both), values)
        rows.append(row)
    last = _waits(question, "both", runs)
    if last is None and len(costs) < len(BETAS) * len(records.SPLITS):
        last = Row(question, "both", NOT_COMPUTED)
    return [*rows, last or Row(question, "both", criteria.wider(costs))]


def _sgd(question: Question) -> list[Row]:
    """The best of SGD's rates against Adam, of each network with one seed."""
    rows = []
    for name, says in NETWORKS.items():
        adam = f"{ADAM.format(name)}/seed-1"
        runs = {rate: f"sgd/{name}-rate-{rate:g}/seed-1" for rate in networks.SGD_RATES}
        row = _waits(question, says, [adam, *runs.values()])
        if row is None and diverged(records.read(adam)):
            row = Row(question, says, NOT_COMPUTED, facts=("Adam diverged",))
        if row is None:
            means = {rate: statistics.mean(_end(run, split) for split in records.SPLITS) for rate, run in runs.items()}
            best = min(means, key=lambda rate: means[rate])
            gaps = [_end(runs[best], split) - _end(adam, split) for split in records.SPLITS]
            edges = {networks.SGD_RATES[0]: ", the smallest", networks.SGD_RATES[-1]: ", the largest"}
            verdict = criteria.trains(gaps)
            facts = (f"rate {best:g}{edges.get(best, '')}",) if verdict != "fails" else ()
            row = Row(question, says, verdict, tuple((gap,) for gap in gaps), facts=facts)
        rows.append(row)
    return rows


def _end(run: str, split: str) -> float:
    """Of one run; infinite if it diverged."""
    record = records.read(run)
    return math.inf if diverged(record) else record["summary"]["validation"][split]["bits_per_byte"]


def _cost(tuned: str, others: Sequence[str], split: str) -> float:
    """Of the worst of the others."""
    return max(_end(run, split) for run in others) - _end(tuned, split)


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
}
