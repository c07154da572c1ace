"""Figures and tables of notebook 13: Adam's memory, and what a short one costs. They show what is on record by now, and
say what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure

from ...study import intervals, networks, records
from ...study.intervals import Difference
from ...study.questions import answers, criteria, runs
from ...study.questions.question import Row
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, styled

COLOURS = {"p-spin": BLUE, "transformer": ORANGE, "swiglu": GREEN, "tanh-tanh": PURPLE, "k0-same-size": PURPLE}
COLOURS["k10"] = "#003A5D"  # of the same family as p-Spin
NETWORKS = tuple(answers.NETWORKS)
NAMES = answers.NETWORKS | {"k0-same-size": "p-Spin, no fixed point", "k10": "p-Spin, ten steps"}
NEUTRAL = (("#222222", "-"), ("#8A8A8A", "--"))  # colour and line of what is no network
HEADLINE = dict(x=0.01, ha="left", weight="bold", fontsize=11)
USUAL = 0.999  # beta2 of all other runs
SHIFT = 0.08  # sideways, of dots at the same beta2


def half_life(beta2: float) -> float:
    """Steps after which a squared gradient has lost half its weight."""
    return math.log(0.5) / math.log(beta2)


@styled
def memory(
    divisors: Mapping[str, np.ndarray],
    pushes: Mapping[str, tuple[float, float]],
    settled: Mapping[str, Mapping[float, float]],
    target: float,
) -> tuple:
    """Above, what Adam divides by at every step, one line per memory; in the middle, per memory, how far rare gradients
    push up and common ones down; below, where the weight settles over beta2, one line per batch size, and where it
    should. -> the figure and `settled`"""
    figure = Figure(figsize=(5.2, 7.4), layout="constrained")
    figure.suptitle("A short memory lets a rare gradient divide itself away", **HEADLINE)
    above, middle, below = figure.subplots(3, 1, height_ratios=(1, 0.75, 1))
    for (name, values), (colour, line) in zip(divisors.items(), NEUTRAL, strict=False):
        above.plot(values, color=colour, ls=line, label=name)
    above.set(xlabel="step", ylabel="Adam's divisor", ylim=(0, 1.25 * max(map(np.max, divisors.values()))))
    above.legend(loc="upper right", fontsize=9.5, ncols=2)
    above.set_title("batch size 1: a jump at every rare example", loc="left", fontsize=10, color=GREY)
    marks = [
        (i + side, words) for i in range(len(pushes)) for side, words in ((-0.2, "rare, up"), (0.2, "common, down"))
    ]
    lengths = [length for both in pushes.values() for length in both]
    colours = [colour for colour, _ in NEUTRAL[: len(pushes)] for _ in range(2)]
    middle.barh([place for place, _ in marks], lengths, 0.34, color=colours)
    for (place, words), length in zip(marks, lengths, strict=True):
        middle.text(length + 0.08, place, f"{words}: {length:.1f}", va="center", fontsize=9.5)
    middle.set_yticks(range(len(pushes)), list(pushes))
    middle.set(ylim=(len(pushes) - 0.5, -0.5), xlim=(0, 1.6 * max(lengths)), xlabel="push per 20 examples")
    middle.set_title("at the minimum: gradient / divisor, added up", loc="left", fontsize=10, color=GREY)
    middle.grid(axis="y", visible=False)
    below.axhline(target, color=GREY, ls="--", lw=1)
    below.text(0, target + 0.03, "the minimum", color=GREY, fontsize=9.5)
    for (name, ends), (colour, line) in zip(settled.items(), NEUTRAL, strict=False):
        below.plot(range(len(ends)), list(ends.values()), marker="o", color=colour, ls=line, label=name)
    _beta_axis(below, list(next(iter(settled.values()))))
    below.set(ylabel="where the weight settles", ylim=(0, 1.25 * target))
    below.legend(loc="lower right", fontsize=9.5)
    return figure, settled


def _beta_axis(panel, betas: Sequence[float]) -> None:
    panel.set_xticks(range(len(betas)), [f"{beta2:g}\n{half_life(beta2):,.0f}" for beta2 in betas])
    panel.set_xlabel("β₂, and beneath it its half-life in steps")


def forgotten() -> dict[str, dict[float, list[float]]]:
    """Network -> beta2 -> held-out bits per byte of the runs of `moments` that are on record, infinite if diverged."""
    ends: dict[str, dict[float, list[float]]] = {}
    for arm in networks.GROUPS["moments"]:
        name, _, beta2 = arm.name.partition("-beta2-")
        if values := list(runs.results(f"moments/{arm.name}", records.SPLIT).values()):
            ends.setdefault(name, {})[float(beta2)] = values
    return {name: dict(sorted(ends[name].items())) for name in answers.NETWORKS if name in ends}


def forgotten_in_words(ends: Mapping[str, Mapping[float, Sequence[float]]]) -> str:
    """The means of `forgetting`, for its alt text."""
    every = (
        f"{NAMES[name]} " + ", ".join(f"{np.mean(bits):.2f} at {beta2:g}" for beta2, bits in values.items())
        for name, values in ends.items()
    )
    return "; ".join(every)


@styled
def forgetting() -> tuple[Figure, dict[str, dict[float, list[float]]]]:
    """Where the runs of `moments` end over beta2, above the network's own mean at 0.999: a dot per seed and a line
    through the means. The title says what of it is known. -> network -> beta2 -> bits per byte, not relative"""
    ends = forgotten()
    figure = Figure(figsize=(5.2, 4.7), layout="constrained")
    figure.suptitle(fill(_title(ends), 52), **HEADLINE)
    panel, betas = figure.subplots(), sorted({float(arm.name.rpartition("-")[2]) for arm in networks.GROUPS["moments"]})
    levels = {name: float(np.mean(values[USUAL])) for name, values in ends.items() if USUAL in values}
    levels = {name: level for name, level in levels.items() if math.isfinite(level)}
    panel.axhspan(-criteria.CLOSE, criteria.CLOSE, color="#E8E8E8", lw=0, zorder=0)
    panel.text(-0.35, 0.001 - criteria.CLOSE, f"grey: ± {criteria.CLOSE:g}", color=GREY, fontsize=9.5)
    for i, (name, level) in enumerate(levels.items()):
        places = [betas.index(beta2) + SHIFT * (i - (len(levels) - 1) / 2) for beta2 in ends[name]]
        costs = [np.array(bits) - level for bits in ends[name].values()]
        label = f"{NAMES[name]} ({level:.2f} at {USUAL:g})"
        panel.plot(places, [cost.mean() for cost in costs], color=COLOURS[name], lw=1.5, label=label)
        for place, cost in zip(places, costs, strict=True):
            panel.plot([place] * len(cost), cost, "o", color=COLOURS[name], alpha=0.7, ms=5)
    _beta_axis(panel, betas)
    panel.set(ylabel=f"bits per byte above the mean at {USUAL:g}", xlim=(-0.4, len(betas) - 0.6))
    figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    planned = sum(len(arm.seeds) for arm in networks.GROUPS["moments"])
    done = sum(len(bits) for values in ends.values() for bits in values.values())
    if done < planned:
        panel.set_title(f"{done} of {planned} runs; the others are still to come", loc="left", fontsize=10, color=GREY)
    return figure, ends


def _title(ends: Mapping[str, Mapping[float, Sequence[float]]]) -> str:
    every = [end for values in ends.values() for bits in values.values() for end in bits]
    lost = sum(map(math.isinf, every))
    costly = [name.replace("Transformer", "the Transformer") for name in payers().get("costs", [])]
    first = f"{lost} of {len(every)} runs diverge" if lost else "No run diverges"
    if not costly:
        return first
    if len(costly) == len(NETWORKS):
        return f"{first}; all four pay for a short memory"
    return f"{first}; only {' and '.join(costly)} clearly pay{'s' * (len(costly) == 1)} for a short memory"


def answers_of(section: str, *ids: str) -> list[Row]:
    return [row for row in answers.answers(section) if row.question.id in ids]


def payers() -> dict[str, list[str]]:
    """Answer -> the networks of which it is true that a short memory costs them so much."""
    found: dict[str, list[str]] = {}
    for row in answers_of("moments", "forgetting"):
        found.setdefault(row.verdict, []).append(_named(row))
    return found


@dataclass(frozen=True)
class Scatter:
    """How sure the cost of 0.95 is for a network, if not all networks are taken to scatter alike."""

    all_networks: float  # standard deviation of seeds, in bits per byte: what the intervals of `costs` rest on
    own: float
    half_width: float  # of the interval, from the network's own scatter at all values of beta2
    half_width_pair: float  # and from that at the two values compared
    by_seed: list[float]  # the cost


def scatter(name: str, short: float = 0.95) -> Scatter:
    """On held-out speeches; the intervals are a family of five, like those of `costs`."""
    every = {
        network: {beta2: dict(enumerate(bits)) for beta2, bits in ends.items()} for network, ends in forgotten().items()
    }
    mine, family = every[name], answers_of("moments", "forgetting")[0].question.family
    pair = mine[short], mine[USUAL]
    spreads = [intervals.pooled(mine.values()), intervals.pooled(pair)]
    halves = [intervals.difference(*pair, spread, family=family).half_width for spread in spreads]
    everybody = intervals.pooled(runs_of for ends in every.values() for runs_of in ends.values())
    apart = [pair[0][seed] - pair[1][seed] for seed in pair[0].keys() & pair[1].keys()]
    return Scatter(math.sqrt(everybody.variance), math.sqrt(spreads[0].variance), *halves, apart)


def costs() -> list[list[str]]:
    """The answers on Adam's memory, as a table."""
    names = {"more": "Transformer's cost − p-Spin's", "divergence": "a run that diverges, of 60"}
    names |= {"stable": "Transformer at 0.999, worst − best seed"}
    rows = [["bits per byte", *records.SPLITS, "answer"]]
    for row in answers_of("moments", "forgetting", "more", "stable", "divergence"):
        label = names.get(row.question.id) or f"cost of 0.95: {_named(row)}"
        rows.append([label, *row_cells(row)])
    return [rows[0], *sorted(rows[1:], key=lambda row: not row[0].startswith("cost"))]


def controls() -> list[list[str]]:
    """What a short memory costs the two controls, as a table. Runs that are missing are counted."""
    names = {"attention": "attention before the attractor", "k5": "a fixed point that speaks"}
    rows = [["bits per byte", *records.SPLITS, "answer"]]
    for row in answers_of("controls", "controls"):
        name = row.about.partition("`")[2].partition("-beta2-")[0]
        rows.append([f"cost of 0.95: {names[name]}", *row_cells(row)])
    return rows


def row_cells(row: Row) -> list[str]:
    """Both texts, and the answer."""
    if row.verdict == criteria.NOT_RUN:
        return ["", "", f"{row.verdict}: {len(row.runs) - len(row.missing)} of {len(row.runs)} runs"]
    cells = [", ".join(map(_number, split)) for split in row.values] or [""] * len(records.SPLITS)
    return [*cells, ", ".join([f"**{row.verdict}**", *row.facts[:3], *(["so far"] if row.moving else [])])]


def _number(value: Difference | float) -> str:
    if isinstance(value, Difference):
        return f"{value.mean:+.3f} ± {value.half_width:.3f}"
    return f"{value:+.3f}" if math.isfinite(value) else "diverged"


def _named(row: Row) -> str:
    """The network that a row compares with itself at another beta2."""
    return NAMES[row.about.partition("`")[2].partition("-beta2-")[0]]
