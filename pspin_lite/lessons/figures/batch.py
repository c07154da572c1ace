"""Figures of notebook 13: loss over three axes, Adam's memory, how rough training is, and what differs between two
recipes. Those of the second study draw what is on record by now, and say what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from ...study import networks, records, stability
from ...study.questions import answers, criteria, runs
from ...study.questions.question import Row
from . import study
from .race import SAMPLE, display_name
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, styled

COLOURS = {"p-spin": BLUE, "transformer": ORANGE, "swiglu": GREEN, "tanh-tanh": PURPLE, "k0-same-size": PURPLE}
COLOURS |= {"k10": RED}
NETWORKS = tuple(answers.NETWORKS)
NAMES = answers.NETWORKS | {"k0-same-size": "p-Spin, no fixed point", "k10": "p-Spin, ten steps"}
UNITS = {"sequences": "sequences", "flops": "10¹² operations", "seconds": "minutes on one thread"}
HEADLINE = dict(x=0.01, ha="left", weight="bold", fontsize=11)
MEASURES = {  # of stability.py: what they are called in the figure
    "raw jitter": "jumps of the loss",
    "worse steps": "steps that do harm",
    "tail": "gradient norm,\n99th percentile",
    "largest": "gradient norm,\nlargest",
    "noise scale": "noise of single\ngradients",
}


def half_life(beta2: float) -> float:
    """Steps after which a squared gradient has lost half its weight."""
    return math.log(0.5) / math.log(beta2)


def mean_curve(seeds: Sequence[dict], unit: str) -> tuple[np.ndarray, np.ndarray]:
    """(place on an axis of study.AXES, held-out bits per byte as a mean over seeds), without step 0."""
    steps, _ = records.curve(seeds[0])
    x = records.axis(seeds[0], steps[1:], unit) / study.AXES[unit][1]
    return x, np.mean([records.curve(run)[1][1:] for run in seeds], 0)


def overtakes(ahead: Sequence[dict], behind: Sequence[dict], unit: str) -> float:
    """Where the second network's curve falls below the first's, on an axis; 0 if it is lower from the start."""
    (x, bits), (other_x, other_bits) = (mean_curve(each, unit) for each in (ahead, behind))
    places = np.linspace(max(x[0], other_x[0]), min(x[-1], other_x[-1]), 20_001)
    higher = np.interp(places, other_x, other_bits) >= np.interp(places, x, bits)
    return float(places[np.flatnonzero(higher)[-1]]) if higher.any() else 0.0


@styled
def three_axes(runs_of: study.Runs, title: str) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """Held-out bits per byte over sequences, arithmetic and time. -> unit -> name -> [x, bits]"""
    figure = Figure(figsize=(5.2, 7.2), layout="constrained")
    figure.suptitle(title, **HEADLINE)
    shown: dict[str, dict[str, np.ndarray]] = {}
    for panel, (unit, label) in zip(figure.subplots(3, 1, sharey=True), UNITS.items(), strict=True):
        shown[unit] = {name: np.array(mean_curve(seeds, unit)) for name, seeds in runs_of.items()}
        for name, (x, bits) in shown[unit].items():
            panel.plot(x, bits, color=COLOURS[name], label=NAMES[name])
            panel.plot(x[-1], bits[-1], "o", color=COLOURS[name], markersize=4)
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(lambda x, _: f"{x:,g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel(f"{label} (logarithmic)")
    figure.axes[0].legend()
    figure.axes[1].set_ylabel(SAMPLE)
    return figure, shown


@styled
def memory(divisors: Mapping[str, np.ndarray], settled: Mapping[str, Mapping[float, float]], target: float) -> tuple:
    """Above, what Adam divides by at every step, one line per memory; below, where the weight settles over beta2, one
    line per batch size, and where it should. -> the figure and `settled`"""
    figure = Figure(figsize=(5.2, 5.8), layout="constrained")
    figure.suptitle("A short memory lets a rare gradient divide itself away", **HEADLINE)
    above, below = figure.subplots(2, 1)
    for (name, values), colour in zip(divisors.items(), (RED, BLUE), strict=False):
        above.plot(values, color=colour, label=name)
    above.set(xlabel="step", ylabel="Adam's divisor", ylim=(0, 1.25 * max(map(np.max, divisors.values()))))
    above.legend(loc="upper right", fontsize=9.5, ncols=2)
    above.set_title("batch size 1: a jump at every rare example", loc="left", fontsize=10, color=GREY)
    below.axhline(target, color=GREY, ls="--", lw=1)
    below.text(0, target + 0.03, "the minimum", color=GREY, fontsize=9.5)
    for (name, ends), colour in zip(settled.items(), (ORANGE, GREEN), strict=False):
        below.plot(range(len(ends)), list(ends.values()), "o-", color=colour, label=name)
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
    """Where the runs of `moments` end over beta2, a dot per seed and a line through the means of each network. The
    title says what of it is known."""
    ends = forgotten()
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    figure.suptitle(fill(_title(ends), 52), **HEADLINE)
    panel, betas = figure.subplots(), sorted({float(arm.name.rpartition("-")[2]) for arm in networks.GROUPS["moments"]})
    for name, values in ends.items():
        places = [betas.index(beta2) for beta2 in values]
        panel.plot(places, [np.mean(bits) for bits in values.values()], color=COLOURS[name], label=NAMES[name])
        for place, bits in zip(places, values.values(), strict=True):
            panel.plot([place] * len(bits), bits, "o", color=COLOURS[name], alpha=0.7, ms=5)
    _beta_axis(panel, betas)
    panel.set(ylabel="bits per byte on held-out speeches", xlim=(-0.4, len(betas) - 0.6))
    panel.legend(fontsize=9.5)
    planned = sum(len(arm.seeds) for arm in networks.GROUPS["moments"])
    done = sum(len(bits) for values in ends.values() for bits in values.values())
    if done < planned:
        panel.set_title(f"{done} of {planned} runs; the others are still to come", loc="left", fontsize=10, color=GREY)
    return figure, ends


def _title(ends: Mapping[str, Mapping[float, Sequence[float]]]) -> str:
    every = [end for values in ends.values() for bits in values.values() for end in bits]
    lost = sum(map(math.isinf, every))
    costs = [row for row in answers.answers("moments") if row.question.id == "forgetting" and row.values]
    costly = [_network(row) for row in costs if row.verdict == "costs"]
    first = f"{lost} of {len(every)} runs diverge" if lost else "No run diverges"
    if not costly:
        return first
    return f"{first}; 0.95 costs {'all four' if len(costly) == len(NETWORKS) else ' and '.join(costly)}"


def _network(row: Row) -> str:
    """That a row compares with itself at another beta2."""
    name = NAMES[row.about.partition("`")[2].partition("-beta2-")[0]]
    return name.replace("Transformer", "the Transformer")


@styled
def roughness(names: Sequence[str], title: str, group: str = "bytes-1") -> tuple[Figure, dict[str, dict[str, list]]]:
    """Five measures of how rough training is, as multiples of the first network's mean: a dot per seed, a bar at the
    mean. -> measure -> network -> values by seed"""
    found = {name: [stability.measures(run) for run in records.seeds(group, name).values()] for name in names}
    figure = Figure(figsize=(5.2, 5.6), layout="constrained")
    figure.suptitle(title, **HEADLINE)
    panel, shown = figure.subplots(), {}
    for row, measure in enumerate(MEASURES):
        shown[measure] = {name: [one[measure] for one in each] for name, each in found.items()}
        unit = np.mean(shown[measure][names[0]])
        for i, name in enumerate(names):
            y, x = row + 0.15 * (i - (len(names) - 1) / 2), np.array(shown[measure][name]) / unit
            panel.plot(x, [y] * len(x), "o", color=COLOURS[name], ms=4, alpha=0.7)
            panel.plot([x.mean()] * 2, [y - 0.07, y + 0.07], color=COLOURS[name], lw=2)
    panel.axvline(1, color=GREY, lw=1, ls="--")
    panel.set_xscale("log")
    ticks = (0.25, 0.5, 1, 2, 4, 8)
    panel.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_yticks(range(len(MEASURES)), list(MEASURES.values()))
    panel.set_ylim(len(MEASURES) - 0.5, -0.5)
    panel.set_xlabel(f"compared with {NAMES[names[0]]}'s mean\n(logarithmic; left: calmer)")
    panel.grid(axis="y", visible=False)
    handles = [Line2D([], [], marker="o", ls="", color=COLOURS[name], label=NAMES[name]) for name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, shown


def together() -> dict[str, float]:
    """What changes on held-out speeches when everything does: from batch size 1 to 64 with subwords, at tuned rates."""
    return {
        name: records.mean(records.bits("subwords-64", name)) - records.mean(records.bits("subwords-1", name))
        for name in ("transformer", "p-spin")
    }


def changes() -> dict[str, dict[str, float | None]]:
    """What differs between the paper's recipes -> network -> the difference on held-out speeches; None: not run yet.
    No question asks for the effect of the rate on p-Spin; it is in the same tries."""
    shown: dict[str, dict[str, float | None]] = {"batch, text and cool-down at once": dict(together())}
    for row in answers.answers("data"):
        if row.question.kind == "confounders":
            name = "p-spin" if row.question.id.endswith("p-spin") else "transformer"
            value = float(row.values[0][0]) if row.values else None  # type: ignore[arg-type]
            shown.setdefault(row.about, {})[name] = value
            if row.about.startswith("rate"):
                shown[row.about]["p-spin"] = rate_effect("subwords-64", "p-spin")
    return shown


def rate_effect(group: str, name: str) -> float:
    """From the paper's rate to the tuned one, 8e-4 to 3.2e-3, in short runs, on held-out speeches."""
    high, low = (runs.end(f"{group}/{name}/try-{rate}-1", records.SPLIT) for rate in (0.0032, 0.0008))
    return high - low


@styled
def recipes(title: str) -> tuple[Figure, dict[str, dict[str, float | None]]]:
    """The effects of `changes`, a dot per network, and in grey what waits for runs."""
    shown = changes()
    figure = Figure(figsize=(5.2, 5.4), layout="constrained")
    figure.suptitle(title, **HEADLINE)
    panel = figure.subplots()
    panel.axvline(0, color=GREY, lw=1)
    panel.axvspan(-criteria.CLOSE, criteria.CLOSE, color="#E8E8E8", lw=0, zorder=0)
    for row, effects in enumerate(shown.values()):
        known = {name: value for name, value in effects.items() if value is not None}
        for name, value in known.items():
            panel.plot(value, row + (0.12 if name == "p-spin" else -0.12), "o", color=COLOURS[name], ms=7)
        if not known:
            panel.text(-criteria.CLOSE - 0.01, row, "not run yet", color=GREY, va="center", ha="right", fontsize=9.5)
    panel.set_yticks(range(len(shown)), [fill(about, 21, break_on_hyphens=False) for about in shown], fontsize=9.5)
    panel.set_ylim(len(shown) - 0.5, -0.5)
    panel.set_xlabel("change in bits per byte\n(below 0: better; grey: too small to matter)")
    panel.margins(x=0.15)
    panel.xaxis.set_major_locator(MaxNLocator(4))
    panel.grid(axis="y", visible=False)
    handles = [
        Line2D([], [], marker="o", ls="", color=COLOURS[name], label=display_name(name))
        for name in ("transformer", "p-spin")
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, shown


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
