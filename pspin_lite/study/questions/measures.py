"""Kinds of criterion that look at something else than the difference of two networks' final scores.

Thresholds stand for an interval where there is one seed: some ten times, or four times, the spread between seeds of the
first study. The comparisons of noise, context, size and order are explained on the page.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from ...training import part_noise
from .. import continual, intervals, networks, records
from ..intervals import BySeed
from . import criteria
from .criteria import NOT_COMPUTED
from .question import Question, Row
from .runs import end, full, moving, named, obstacle, results, spread, waits

SHORT, WIDE = 32, 256  # tokens of context


def _confounders(question: Question) -> list[Row]:
    """A step from one run or network to another, each with what it changes."""
    return [_step(question, *step) for step in question.differences]


def _step(question: Question, about: str, one: str, other: str) -> Row:
    """Of networks the mean over seeds; of a single try its result."""
    every = [[name] if "/try-" in name else full(name) for name in (one, other)]
    row = waits(question, about, [*every[0], *every[1]])
    if row is not None:
        return row
    gaps = [_mean(every[1], split) - _mean(every[0], split) for split in records.SPLITS]
    if not all(map(math.isfinite, gaps)):
        return Row(question, about, NOT_COMPUTED, facts=("a run diverged",))
    return Row(question, about, criteria.matters(gaps), tuple((gap,) for gap in gaps))


def _mean(runs: list[str], split: str) -> float:
    return statistics.mean(end(run, split) for run in runs)


def _gains(question: Question) -> list[Row]:
    """The best of the gains against the tuned network, and p-Spin's best against the living network. One seed."""
    rows, best = [], {}
    for name, other in question.differences:
        tuned = f"{other}/seed-1"
        runs = [f"gains-bytes/{arm.name}/seed-1" for arm in networks.GROUPS["gains-bytes"] if arm.name.startswith(name)]
        about = f"`{name}`: the best of {len(runs)} − tuned"
        row = waits(question, about, [tuned, *runs])
        if row is None:
            best[name] = min(runs, key=lambda run: _mean_of_splits(run))
            gaps = [end(best[name], split) - end(tuned, split) for split in records.SPLITS]
            which = best[name].split("/")[1].removeprefix(name + "-")
            row = Row(question, about, criteria.matters(gaps), tuple((gap,) for gap in gaps), facts=(which,))
        rows.append(row)
    (one, _), (_, living) = question.differences
    about, needed = f"best `{one}` − `{living.partition('/')[2]}`", [run for row in rows for run in row.missing]
    row = waits(question, about, [*needed, f"{living}/seed-1"])
    if row is None:
        gaps = [end(best[one], split) - end(f"{living}/seed-1", split) for split in records.SPLITS]
        row = Row(question, about, criteria.closes(gaps), tuple((gap,) for gap in gaps))
    return [*rows, row]


def _mean_of_splits(run: str) -> float:
    return statistics.mean(end(run, split) for split in records.SPLITS)


def _noise(question: Question) -> list[Row]:
    """One measure of the MLP as Adam sees it, seed by seed: the median over the probes of a run."""
    rows = []
    for one, other in question.differences:
        about = named(one, other)
        row = waits(question, about, [*full(one), *full(other)])
        if row is None:
            a, b = (_probed(name, question.about) for name in (one, other))
            pairs = [(a[seed], b[seed]) for seed in a]
            measured = ", ".join(f"{x:.3g} and {y:.3g}" for x, y in pairs)
            row = Row(question, about, criteria.calmer(pairs, question.about == "rises"), facts=(measured,))
        rows.append(row)
    return rows


def _probed(name: str, measure: str) -> BySeed:
    return {
        seed: statistics.median(float(one["parts"][part_noise.WHOLE][measure]) for one in record["noise"])
        for seed, record in records.seeds(*name.split("/")).items()
    }


def _context(question: Question) -> list[Row]:
    """What more context is worth to one network and to another, in bits per byte of the same held-out targets."""
    rows = []
    for one, other in question.differences:
        about = named(one, other)
        row = obstacle(question, about, (one, other))
        if row is None:
            group = one.partition("/")[0]
            a, b = worth(one), worth(other)
            every = [worth(f"{group}/{arm.name}") for arm in networks.GROUPS[group]]
            known = intervals.pooled(runs for runs in every if len(runs) == len(networks.SEEDS))
            gaps = [intervals.difference(a, b, known, family=question.intervals)]
            verdict, facts = criteria.interval(gaps, question.words)
            row = Row(question, about, verdict, ((gaps[0],),), facts=tuple(facts), moving=moving((one,)))
        rows.append(row)
    return rows


def worth(name: str) -> BySeed:
    """Of the context beyond SHORT tokens, by seed. Bytes only: a nat per token is a nat per byte."""
    result = {}
    for seed, record in records.seeds(*name.split("/")).items():
        nats = dict(zip(record["context"]["context"], record["context"]["nats"], strict=True))
        result[seed] = (nats[SHORT] - nats[WIDE]) / math.log(2)
    return result


def _growth(question: Question) -> list[Row]:
    """How the difference to the Transformer changes from the small size to the large one, at the same text."""
    rows = []
    small, large = "sizes-quarter", "sizes-four"
    for (name,) in question.differences:
        about = f"`{name}` − `transformer`, large − small"
        every = [f"{group}/{arm.name}" for group in (small, large) for arm in networks.GROUPS[group]]
        row = obstacle(
            question, about, [one for one in every if one.partition("/")[2].startswith((name, "transformer"))]
        )
        if row is None:
            names = [(better(group, name), better(group, "transformer")) for group in (large, small)]
            gaps = []
            for split in records.SPLITS:
                one, other = ((results(a, split), results(b, split)) for a, b in names)
                spreads = [spread(f"{group}/any", split) for group in (large, small)]
                gaps.append(intervals.interaction(one, other, spreads[0], question.intervals, spreads[1]))
            verdict, facts = criteria.interval(gaps, question.words)
            row = Row(question, about, verdict, tuple((gap,) for gap in gaps), facts=tuple(facts), moving=moving(every))
        rows.append(row)
    return rows


def better(group: str, name: str) -> str:
    """Of a network's two rates, the one with the lower mean over seeds and splits."""
    every = [f"{group}/{arm.name}" for arm in networks.GROUPS[group] if arm.name.startswith(name + "-times")]
    return min(every, key=lambda one: statistics.mean(_mean_of_splits(run) for run in full(one)))


def _text(question: Question) -> list[Row]:
    """How the difference to the Transformer changes with four times the text. Seed 1, one or the best of two rates."""
    rows = []
    for size, few, much in question.differences:
        for name in ("p-spin", "mended"):
            about = f"{size}: `{name}` − `transformer`"
            ends = {(text, one): _candidates(text, one) for text in (few, much) for one in (name, "transformer")}
            row = waits(question, about, [run for runs in ends.values() for run in runs])
            if row is None:
                best = {key: min(runs, key=_mean_of_splits) for key, runs in ends.items()}
                gaps = [
                    (end(best[much, name], split) - end(best[much, "transformer"], split))
                    - (end(best[few, name], split) - end(best[few, "transformer"], split))
                    for split in records.SPLITS
                ]
                row = Row(question, about, criteria.moves(gaps), tuple((gap,) for gap in gaps))
            rows.append(row)
    return rows


def _candidates(text: str, name: str) -> list[str]:
    """Runs with seed 1: of a group of sizes those of either rate; else the network that stands for it."""
    if text in networks.GROUPS:
        return [f"{text}/{arm.name}/seed-1" for arm in networks.GROUPS[text] if arm.name.startswith(name + "-times")]
    few = {"mended": "ladder-bytes/mended"}.get(name, f"moments/{name}-beta2-0.999")
    much = {"mended": "repair-bytes/mended"}.get(name, f"bytes-1/{name}")
    return [f"{few if text == 'short' else much}/seed-1"]


def _order(question: Question) -> list[Row]:
    """What the order of time costs one network and another, each against the same text mixed."""
    rows = []
    for about, one, other in question.differences:
        runs = [run for name in (one, other) for order in ("time", "mixed") for run in full(f"{name}-{order}")]
        row = waits(question, about, runs)
        if row is None:
            a, b = (continual.lost_to_order(name, group) for group, name in (one.split("/"), other.split("/")))
            gap = intervals.difference(a, b, intervals.pooled([a, b]), family=question.intervals)
            verdict, facts = criteria.interval([gap], question.words)
            row = Row(question, about, verdict, ((gap,),), facts=tuple(facts))
        rows.append(row)
    return rows


KINDS: dict[str, Callable[[Question], list[Row]]] = {
    "confounders": _confounders,
    "gains": _gains,
    "noise": _noise,
    "context": _context,
    "growth": _growth,
    "text": _text,
    "order": _order,
}
