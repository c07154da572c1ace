"""What the runs of the second study say, as the criteria need it: results by seed, intervals, what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .. import intervals, networks, records
from ..intervals import BySeed, Difference, Spread
from .criteria import NOT_COMPUTED, NOT_RUN
from .question import Question, Row, Speeches

COUNTING = {"held-out": 4.36, "recent": 4.55}  # bits per byte of a table of how frequent each byte is


def full(name: str) -> list[str]:
    """The runs of GROUP/NAME, one for each of its seeds."""
    return [f"{name}/seed-{n}" for n in networks.arm(*name.split("/")).seeds]


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
    members = networks.GROUPS[group]
    return intervals.pooled(runs for runs, arm in zip(every, members, strict=True) if len(runs) == len(arm.seeds))


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


def obstacle(question: Question, about: str, names: Iterable[str]) -> Row | None:
    """The row of networks that cannot be compared: with runs that are missing, or that diverged."""
    every = list(dict.fromkeys(names))
    if row := waits(question, about, [run for name in every for run in full(name)]):
        return row
    lost = [f"{name}/seed-{n}" for name in every for n, x in results(name, records.SPLIT).items() if math.isinf(x)]
    return Row(question, about, NOT_COMPUTED, facts=("a run diverged", *lost)) if lost else None


def waits(question: Question, about: str, runs: Sequence[str]) -> Row | None:
    """As long as one of these runs is missing."""
    missing = tuple(run for run in runs if not records.has(run))
    return Row(question, about, NOT_RUN, missing=missing, runs=tuple(runs)) if missing else None


def moving(names: Iterable[str]) -> bool:
    """Whether a network is missing among those whose variance is pooled."""
    groups = {name.partition("/")[0] for name in names}
    return bool(records.missing(*(f"{group}/{arm.name}" for group in groups for arm in networks.GROUPS[group])))


def named(one: str, other: str) -> str:
    return f"`{one.partition('/')[2]}` − `{other.partition('/')[2]}`"


def end(run: str, split: str) -> float:
    """Of one run; infinite if it diverged."""
    record = records.read(run)
    return math.inf if diverged(record) else record["summary"]["validation"][split]["bits_per_byte"]
