"""Figures and tables of notebook 13: Adam's memory and how rough training is.
Those of the second study show what is on record by now, and say what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...config import Config, TransformerConfig
from ...study import intervals, networks, records, stability
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
FIVE = ("p-spin", "k10", "k0-same-size", "swiglu", "transformer")
FIXED_POINT = ("p-spin", "k10")  # of these
PROBED = ("bytes-1", "living-bytes", "steps-bytes", "repair-bytes")  # groups whose runs measure the noise
AGAIN = {("living-bytes", "p-spin")}  # the same runs as those of bytes-1
POINTED = {  # out in the figure of the noise: where, and what they are called
    ("bytes-1", "p-spin"): ("p-Spin", BLUE),
    ("bytes-1", "transformer"): ("Transformer", ORANGE),
    ("bytes-1", "swiglu"): ("SwiGLU", GREEN),
    ("bytes-1", "attention"): ("attention,\nattractor", "#222222"),
    ("living-bytes", "no-mlp"): ("no MLP at all", "#222222"),
}
COUNTS = ("none", "one", "two", "three", "four")
ATTRACTOR = ("w_ext", "w_int", "gamma_param", "w_down")  # parts of branches.py
TIMES = (0.25, 0.5, 1, 2, 4)  # the tuned rate


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


def _answers(section: str, *ids: str) -> list[Row]:
    return [row for row in answers.answers(section) if row.question.id in ids]


def payers() -> dict[str, list[str]]:
    """Answer -> the networks of which it is true that a short memory costs them so much."""
    found: dict[str, list[str]] = {}
    for row in _answers("moments", "forgetting"):
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
    mine, family = every[name], _answers("moments", "forgetting")[0].question.family
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
    for row in _answers("moments", "forgetting", "more", "stable", "divergence"):
        label = names.get(row.question.id) or f"cost of 0.95: {_named(row)}"
        rows.append([label, *_row_cells(row)])
    return [rows[0], *sorted(rows[1:], key=lambda row: not row[0].startswith("cost"))]


def controls() -> list[list[str]]:
    """What a short memory costs the two controls, as a table. Runs that are missing are counted."""
    names = {"attention": "attention before the attractor", "k5": "a fixed point that speaks"}
    rows = [["bits per byte", *records.SPLITS, "answer"]]
    for row in _answers("controls", "controls"):
        name = row.about.partition("`")[2].partition("-beta2-")[0]
        rows.append([f"cost of 0.95: {names[name]}", *_row_cells(row)])
    return rows


def wrong_rates() -> list[list[str]]:
    """What the worse of two wrong rates costs p-Spin more than the Transformer, as a table."""
    rows = [["p-Spin's cost − the Transformer's", *records.SPLITS, "answer"]]
    return rows + [[row.about.partition(":")[0], *_row_cells(row)] for row in _answers("moments", "rates")]


def plain_sgd() -> list[list[str]]:
    """The best rate of SGD against Adam, as a table."""
    rows = [["SGD − Adam, bits per byte", *records.SPLITS, "answer"]]
    return rows + [[row.about, *_row_cells(row)] for row in _answers("moments", "sgd")]


def _row_cells(row: Row) -> list[str]:
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


@dataclass(frozen=True)
class Noise:
    """Of a network, at the learning rate that was tuned for it: the mean over seeds."""

    rate: float
    scale: float
    fixed_point: bool


def noises() -> dict[tuple[str, str], Noise]:
    """Group and network -> the noise of its single gradients, of all that have all seeds."""
    found = {}
    for group in PROBED:
        for arm in networks.GROUPS[group]:
            each = records.seeds(group, arm.name)
            if len(each) == len(arm.seeds) and (group, arm.name) not in AGAIN:
                scale = np.mean([stability.measures(run)["noise scale"] for run in each.values()])
                rate = next(iter(each.values()))["config"]["model"]["lr"]
                found[group, arm.name] = Noise(rate, float(scale), _has_fixed_point(arm.cfg))
    return found


def _has_fixed_point(cfg: Config) -> bool:
    default = "none" if isinstance(cfg, TransformerConfig) else "attractor"
    return getattr(cfg, "mlp", default) == "attractor"


def _side_by_side(found: Mapping[tuple[str, str], Noise]) -> dict[tuple[str, str], int]:
    """Lanes of dots that would cover each other; those that are pointed out stay nearest to their rate."""
    lanes: dict[tuple[str, str], int] = {}
    for where in sorted(found, key=lambda where: where not in POINTED):
        taken = [lane for other, lane in lanes.items() if _near(found[other], found[where])]
        lanes[where] = min(lane for lane in range(len(lanes) + 1) if lane not in taken)
    return lanes


def _near(one: Noise, other: Noise) -> bool:
    return (one.rate, one.fixed_point) == (other.rate, other.fixed_point) and abs(one.scale - other.scale) < 0.7


@styled
def noise_over_rate(title: str) -> tuple[Figure, dict[tuple[str, str], Noise]]:
    """A dot for each network, over its tuned learning rate: filled if it has a fixed point, to the left of those that
    have none."""
    found = noises()
    rates = sorted({one.rate for one in found.values()})
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    figure.suptitle(fill(title, 52), **HEADLINE)
    panel = figure.subplots()
    lanes = _side_by_side(found)
    for where, one in found.items():
        label, colour = POINTED.get(where, ("", "#A8A8A8"))
        side, align, inside = (-1, "right", colour) if one.fixed_point else (1, "left", "white")
        outermost = max(lane for other, lane in lanes.items() if _near(found[other], one))
        at, beside = (rates.index(one.rate) + side * (0.06 + 0.07 * lane) for lane in (lanes[where], outermost))
        panel.plot(at, one.scale, "o", color=colour, mfc=inside, ms=7, mew=1.6)
        panel.text(beside + 0.06 * side, one.scale, label, color=colour, ha=align, va="center", fontsize=9.5)
    scales = [one.scale for one in found.values()]
    panel.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    panel.set(xlim=(-0.35, len(rates) - 0.6), ylim=(min(scales) - 2, max(scales) + 2))
    panel.set(xlabel="learning rate, tuned for each network", ylabel="noise of single gradients")
    panel.grid(axis="x", visible=False)
    styles = (("#5A5A5A", "with a fixed point"), ("white", "without"))
    handles = [Line2D([], [], marker="o", ls="", color=GREY, mfc=fill, mew=1.6, label=says) for fill, says in styles]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, found


def attractor_shares() -> dict[str, dict[str, float]]:
    """Of p-Spin's parameters, of the squared gradient and of the squared step that Adam takes: the shares of its parts
    at the end of training, means over seeds."""
    every = list(records.seeds("living-bytes", "p-spin").values())
    model, size = every[0]["config"]["model"], every[0]["summary"]["parameters"]
    no_mlp = next(iter(records.seeds("living-bytes", "no-mlp").values()))["summary"]["parameters"]
    embedding, attractor = model["vocab"] * model["width"] / size, 1 - no_mlp / size
    found = {"parameters": {"attractor": attractor, "embedding": embedding, "the rest": 1 - attractor - embedding}}
    for label, kind in (("squared gradient", "gradient"), ("squared step", "update")):
        last = [run["branches"][-1][kind] for run in every]
        attractor = float(np.mean([sum(one[part] for part in ATTRACTOR) for one in last]))
        embedding = float(np.mean([one["embedding"] for one in last]))
        found[label] = {"attractor": attractor, "embedding": embedding, "the rest": 1 - attractor - embedding}
    return found


@styled
def hidden_mover() -> tuple[Figure, dict[str, dict[str, float]]]:
    """`attractor_shares`, a bar for each quantity."""
    found = attractor_shares()
    figure = Figure(figsize=(5.2, 2.7), layout="constrained")
    gradient, step = (found[f"squared {what}"]["attractor"] for what in ("gradient", "step"))
    title = f"The attractor has {gradient:.1%} of the squared gradient and {step:.0%} of Adam's squared step"
    figure.suptitle(fill(title, 52), **HEADLINE)
    panel = figure.subplots()
    colours = {"attractor": BLUE, "embedding": "#222222", "the rest": "#C8C8C8"}
    for row, shares in enumerate(found.values()):
        left = 0.0
        for part, share in shares.items():
            panel.barh(row, share, 0.6, left, color=colours[part])
            if share > 0.1:
                ink = "black" if part == "the rest" else "white"
                panel.text(left + share / 2, row, f"{share:.0%}", color=ink, ha="center", va="center", fontsize=9.5)
            left += share
    panel.set_yticks(range(len(found)), list(found))
    panel.set(xlim=(0, 1), ylim=(len(found) - 0.5, -0.5))
    panel.set_xticks([])
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
    handles = [Line2D([], [], marker="s", ms=8, ls="", color=colour, label=part) for part, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9.5)
    return figure, found


def roughness(group: str = "bytes-1") -> list[list[str]]:
    """Two measures of how rough training is, as a table: means over seeds, and from the lowest to the highest."""
    rows = [["", "fixed point", "steps that do harm", "largest gradient"]]
    for name in FIVE:
        every = [stability.measures(run) for run in records.seeds(group, name).values()]
        harm, largest = ([one[measure] for one in every] for measure in ("worse steps", "largest"))
        cells = [f"{np.mean(harm):.0%} ({100 * min(harm):.0f} to {100 * max(harm):.0f})"]
        cells += [f"{np.mean(largest):.0f} ({min(largest):.0f} to {max(largest):.0f})"]
        rows.append([NAMES[name], "yes" if name in FIXED_POINT else "no", *cells])
    return rows


@styled
def jumps(first: int, losses: Mapping[str, np.ndarray], title: str, peaks: int = 6) -> tuple[Figure, dict[str, float]]:
    """Losses of several networks on the same sequences, from a step on, a row each; the highest peaks of the first
    are marked in all. -> network -> share of the first one's variance that it explains"""
    figure = Figure(figsize=(5.2, 1.2 + 1.3 * len(losses)), layout="constrained")
    figure.suptitle(title, **HEADLINE)
    rows, raw = figure.subplots(len(losses), 1, sharex=True, sharey=True), next(iter(losses.values()))
    steps = first + np.arange(len(raw))
    shares = {name: float(np.corrcoef(raw, values)[0, 1] ** 2) for name, values in losses.items()}
    for panel, (name, values) in zip(rows, losses.items(), strict=True):
        for place in np.argsort(raw)[-peaks:]:
            panel.axvline(steps[place], color=GREY, lw=5, alpha=0.2)
        panel.plot(steps, values, color=COLOURS[name], lw=1.3)
        panel.set_title(NAMES[name], loc="left", color=COLOURS[name], fontsize=10.5)
    rows[len(losses) // 2].set_ylabel("loss, bits per byte")
    rows[-1].set(xlabel="step (grey: the highest peaks of the top row)", xlim=(steps[0], steps[-1]))
    rows[-1].xaxis.set_major_formatter("{x:,.0f}")
    return figure, shares


def sgd_runs() -> dict[str, dict[float, float]]:
    """Network -> rate -> held-out bits per byte of the runs of SGD that are on record, infinite if diverged."""
    runs_of = {name: {rate: f"sgd/{name}-rate-{rate:g}/seed-1" for rate in networks.SGD_RATES} for name in NETWORKS}
    return {name: _ends(every) for name, every in runs_of.items()}


def _ends(every: Mapping[float, str]) -> dict[float, float]:
    return {key: runs.end(run, records.SPLIT) for key, run in every.items() if records.has(run)}


@styled
def sgd() -> tuple[Figure, dict[str, dict[float, float]]]:
    """Where SGD without momentum ends over its rate, a panel for each network, with Adam's end as a line. A cross at
    the top is a run that diverged. The title says what of it is known. -> network -> rate -> bits per byte"""
    found = sgd_runs()
    adam = {name: _ends({USUAL: f"moments/{name}-beta2-{USUAL}/seed-1"}).get(USUAL, math.inf) for name in NETWORKS}
    every = [end for ends in found.values() for end in ends.values()]
    finite = [end for end in (*every, *adam.values()) if math.isfinite(end)]
    low, high = (min(finite), max(finite)) if finite else (2.0, 3.0)
    room = max(0.15 * (high - low), 0.1)
    figure = Figure(figsize=(5.2, 5.4), layout="constrained")
    figure.suptitle(fill(_sgd_title(found), 52), **HEADLINE)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
    for panel, (name, ends) in zip(panels, found.items(), strict=True):
        places = {rate: networks.SGD_RATES.index(rate) for rate in ends}
        kept = {rate: end for rate, end in ends.items() if math.isfinite(end)}
        panel.plot([places[rate] for rate in kept], list(kept.values()), "o-", color=COLOURS[name], lw=1.5)
        for rate in ends.keys() - kept.keys():
            panel.plot(places[rate], high + room / 2, "x", color=COLOURS[name], ms=8, mew=2)
        if math.isfinite(adam[name]):
            panel.axhline(adam[name], color=GREY, ls="--", lw=1.2)
            panel.text(-0.2, adam[name], "Adam", color=GREY, va="bottom", fontsize=9.5)
        if not ends:
            panel.text(0.5, 0.85, "not run yet", color=GREY, ha="center", transform=panel.transAxes)
        panel.set_title(NAMES[name], loc="left", color=COLOURS[name], fontsize=10.5)
        panel.set_xticks(range(len(networks.SGD_RATES)), [f"{rate:g}" for rate in networks.SGD_RATES])
        panel.set(xlim=(-0.3, len(networks.SGD_RATES) - 0.7), ylim=(low - room, high + room))
    figure.supxlabel("learning rate of SGD" + " (×: diverged)" * (math.inf in every), fontsize=11)
    figure.supylabel("bits per byte, held-out", fontsize=11)
    return figure, found


def ends_in_words(found: Mapping[str, Mapping[float, float]]) -> str:
    """Of each network, what is at which rate, for an alt text."""
    every = (
        f"{NAMES[name]} " + ", ".join(f"{end:.2f} at {rate:g}" for rate, end in ends.items())
        for name, ends in found.items()
        if ends
    )
    return "; ".join(every).replace("inf", "diverged") or "no runs yet"


def _sgd_title(found: Mapping[str, Mapping[float, float]]) -> str:
    done, planned = sum(map(len, found.values())), len(NETWORKS) * len(networks.SGD_RATES)
    if done < planned:
        return f"SGD without momentum: {done} of {planned} runs so far"
    verdicts = [row.verdict for row in _answers("moments", "sgd")]
    trained = sum(word in ("works", "trains") for word in verdicts)
    of_all = "all four networks" if trained == len(NETWORKS) else f"{COUNTS[trained]} of four networks"
    if not trained:
        return "SGD without momentum trains none of the four"
    close = verdicts.count("works")
    near = {0: "but stays far behind Adam", trained: "nearly as well as Adam"}
    return f"SGD without momentum trains {of_all}, {near.get(close, f'{COUNTS[close]} nearly as well as Adam')}"


def rate_runs() -> dict[float, dict[str, dict[float, float]]]:
    """beta2 -> network -> multiple of the tuned rate -> held-out bits per byte of seed 1 minus those at the tuned rate,
    of the runs that are on record; infinite if diverged."""
    found: dict[float, dict[str, dict[float, float]]] = {}
    for beta2 in answers.BETAS:
        for name in NETWORKS:
            every = {times: f"moments-rates/{name}-beta2-{beta2:g}-times-{times:g}/seed-1" for times in TIMES}
            ends = _ends(every | {1: f"moments/{name}-beta2-{beta2:g}/seed-1"})
            level = ends.get(1, math.inf)
            costs = {times: end - level for times, end in sorted(ends.items())} if math.isfinite(level) else {}
            found.setdefault(beta2, {})[name] = costs
    return found


@styled
def rates() -> tuple[Figure, dict[float, dict[str, dict[float, float]]]]:
    """What a wrong rate costs, a panel for each beta2 and a line for each network. A cross at the top is a run that
    diverged. The title says what of it is known. -> what `rate_runs` returns"""
    found = rate_runs()
    every = [cost for lines in found.values() for line in lines.values() for cost in line.values()]
    finite = [cost for cost in every if math.isfinite(cost)] or [0.0]
    room = max(0.12 * (max(finite) - min(finite)), 0.02)
    figure = Figure(figsize=(5.2, 6.0), layout="constrained")
    figure.suptitle(fill(_rates_title(found), 52), **HEADLINE)
    for panel, (beta2, lines) in zip(figure.subplots(2, 1, sharex=True, sharey=True), found.items(), strict=True):
        panel.axhline(0, color=GREY, lw=1, ls="--")
        for name, line in lines.items():
            kept = {times: cost for times, cost in line.items() if math.isfinite(cost)}
            label = dict(label=NAMES[name]) if beta2 == answers.BETAS[0] else {}
            panel.plot([TIMES.index(times) for times in kept], list(kept.values()), "o-", color=COLOURS[name], **label)
            for times in line.keys() - kept.keys():
                panel.plot(TIMES.index(times), max(finite) + room / 2, "x", color=COLOURS[name], ms=8, mew=2)
        panel.set_title(f"β₂ = {beta2:g}", loc="left", fontsize=10.5, color=GREY)
        panel.set_xticks(range(len(TIMES)), ["a quarter", "half", "tuned", "twice", "4 times"])
        panel.set(xlim=(-0.3, len(TIMES) - 0.7), ylim=(min(finite) - room, max(finite) + room))
    figure.supylabel("bits per byte above the tuned rate's end", fontsize=11)
    panel.set_xlabel("learning rate" + " (×: diverged)" * (math.inf in every))
    figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, found


def _rates_title(found: Mapping[float, Mapping[str, Mapping[float, float]]]) -> str:
    planned = len(networks.GROUPS["moments-rates"])
    done = sum(len(line.keys() - {1}) for lines in found.values() for line in lines.values())
    verdict = _answers("moments", "rates")[-1].verdict
    if verdict == criteria.NOT_RUN:
        return f"The price of a wrong rate: {done} of {planned} runs so far"
    says = {"wider": "p-Spin tolerates a wider range of rates"}
    says |= {"narrower": "p-Spin tolerates a narrower range of rates"}
    return says.get(verdict, "p-Spin is not seen to bear wrong rates any better")
