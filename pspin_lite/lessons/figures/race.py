"""Figures of notebook 11 on top of study.py's: how the past is weighed, tuning, two networks at two batch sizes, and
their difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...config import Config, preset
from ...study import jobs, networks, records
from ...study.claims.comparisons import CLOSE, FAMILY
from ...study.intervals import Difference
from . import diagram as d
from . import study
from .live import LiveFigure, Panel
from .style import BLUE, GREEN, GREY, ORANGE, styled

SAMPLE = f"bits per byte ({jobs.FULL['validate_tokens']:,} tokens)"  # a sample, validated during a run
EQUAL = {"sequences": "sequences", "flops": "arithmetic", "seconds": "time"}
BOTH = ("p-spin", "transformer")
HARDLY = 0.05  # bits per byte: networks that a title does not tell apart
PAST, SHARPNESS = 24, 6.0  # tokens, and a made-up constant of `weigh_the_past`
TITLE = dict(loc="left", weight="bold", fontsize=11)
DASHES = {"batch 1": "-", "batch 64": ":"}
PAPER = (("p-spin", 1), ("transformer", 64))  # its two corners of the square
RECIPES = {1: "batch 1\n8,000 sequences", 64: "batch 64\n64,000 sequences"}

Seeds = Mapping[int, dict]  # seed -> record
Network = tuple[str, str]  # group and name, as in networks.py


def display_name(text: str) -> str:
    """The names of networks as texts write them."""
    return text.replace("p-spin", "p-Spin").replace("transformer", "Transformer")


def cooling(run: dict, unit: str) -> float:
    """Where on an axis of study.AXES the run's learning rate begins to fall."""
    model = run["config"]["model"]
    return float(records.axis(run, np.array(model["steps"] - model["cooldown"]), unit)) / study.AXES[unit][1]


def _mark(panel: Axes, runs: study.Runs, unit: str) -> dict[str, float]:
    """A hollow dot on each line where its run begins to cool down."""
    places = {}
    for line, (name, seeds) in zip(panel.lines, runs.items(), strict=False):
        places[name] = cooling(seeds[0], unit)
        height = np.interp(places[name], line.get_xdata(), line.get_ydata())
        panel.plot(places[name], height, "o", mfc="white", mec=line.get_color(), ms=7, mew=1.6, zorder=4)
    panel.set_xlabel(f"{panel.get_xlabel()} (logarithmic)")
    return places


def after(runs: Sequence[dict], place: float, unit: str = "sequences", split: str = records.SPLIT) -> float:
    """Bits per byte, mean over seeds, where the curve passes a place on an axis of study.AXES."""
    steps, _ = records.curve(runs[0], split)
    x = records.axis(runs[0], steps, unit) / study.AXES[unit][1]
    return float(np.interp(place, x, np.mean([records.curve(run, split)[1] for run in runs], 0)))


def short_end(network: Network, rate: float, split: str = records.SPLIT) -> float:
    """Bits per byte at the end of the tuning run at a learning rate, with the smaller initial weights."""
    runs = [(one["config"]["model"], one["summary"]) for one in records.tries(*network).values()]
    chosen = (rate, networks.SCALES[0])
    [end] = [end for model, end in runs if (model["lr"], model["gain"]) == chosen]
    return end["validation"][split]["bits_per_byte"]


def plateau_factor(alphabet: str, name: str) -> float:
    """How many times as many sequences batch 64 takes to the loss that batch 1 has when its learning rate begins to
    fall; infinite if its own begins to fall first."""
    small, large = (list(records.seeds(f"{alphabet}-{batch}", name).values()) for batch in RECIPES)
    start, end = (cooling(runs[0], "sequences") for runs in (small, large))
    level = after(small, start)
    places = (place for place in np.arange(start, end + 1, 10) if after(large, place) <= level)
    return float(next(places, np.inf)) / start


def weigh_the_past(distance: int, decay: float) -> tuple[LiveFigure, dict[str, float]]:
    """For an Explorer: what two ways of weighing make of the same products of query and key. One token of the past fits
    the query, `distance` tokens back; the products are made up, 1 for it and 0.1 for the others, and so is the factor
    that the softmax gets them with. Both are scaled to sum to 1; a state space does not do that by itself."""
    back = np.arange(1, PAST + 1)
    products = np.where(back == distance, 1.0, 0.1)
    scores = np.exp(SHARPNESS * products)
    faded = products * decay**back
    weights = {"state space": faded / faded.sum(), "attention": scores / scores.sum()}
    titles = ("State space: the match fades" if decay < 1 else "State space: nothing fades", "Attention finds it")
    panels, ticks = [], (-24, -18, -12, -6, -1)
    for i, title in enumerate(titles):
        place, label = (0.09 + 0.49 * i, 0.2, 0.41, 0.68), "" if i else "weight (all sum to 1)"
        panels.append(
            Panel(place, title, "past tokens (−1: the one before)", label, (-PAST - 0.7, 0), (0, 1), ticks, (0, 0.5, 1))
        )
    figure = LiveFigure((7.6, 2.7), tuple(panels))
    for i, (bars, colour) in enumerate(zip(weights.values(), (BLUE, ORANGE), strict=True)):
        for place, weight in zip(-back, bars.round(3), strict=True):  # finer cannot be seen, and frames share bars
            figure.add_line(i, [place, place], [0, weight], colour if place == -distance else GREY, width=5)
    return figure, {f"{name}: weight of the token that matches": bars[distance - 1] for name, bars in weights.items()}


def config(network: Network) -> Config:
    """Of its full runs, but for the seed, and what was tuned."""
    return networks.arm(*network).cfg


def runs_of(network: Network) -> Seeds:
    """All full runs of a network, or the one run of a preset."""
    group, name = network
    if group == "presets":
        return {1: records.read(f"presets/{name}/seed-{preset(name).seed}")}
    return records.seeds(group, name)


def difference(pair: tuple[Network, Network], split: str) -> Difference:
    """As verdicts have it: the interval from the variance of whole groups, widened for all that decide something."""
    ends = [
        {n: run["summary"]["validation"][split]["bits_per_byte"] for n, run in runs_of(one).items()} for one in pair
    ]
    if min(map(len, ends)) == 1:
        return records.difference(*ends)
    return records.compare(*pair, split, FAMILY)


@styled
def square(
    alphabet: str, title: str, diagonal: str, notes: Sequence[str] = ("",) * 4, empty: bool = False
) -> tuple[Figure, dict]:
    """Where two networks end with two recipes, on held-out speeches, and the differences along the sides and along the
    diagonal. notes: what to write into each box, row by row. empty: only the paper's two corners and the diagonal.
    -> (network, batch) -> bits per byte"""
    figure, axes = d.canvas(5.2, 4.3, title)
    label = "bits per byte on held-out speeches: lower is better\n"
    label += f"{'' if empty else 'down and '}diagonal: p-Spin minus Transformer"
    d.label(axes, 1.5, 36.9, label, GREY, ha="left")
    high, wide, left, low = 7.5, 14, {1: 13.5, 64: 37.3}, {"p-spin": 20, "transformer": 1.5}
    middle, ends, written = (left[1] + wide + left[64]) / 2, {}, iter(notes)
    for name, colour in zip(BOTH, (BLUE, ORANGE), strict=True):
        d.label(axes, 0.8, low[name] + high / 2, display_name(name), size=11, ha="left", weight="bold")
        for batch, x in left.items():
            ends[name, batch] = records.mean(records.bits(f"{alphabet}-{batch}", name))
            note = next(written)
            known = not empty or (name, batch) in PAPER
            shown = f"{ends[name, batch]:.3f}" if known else "?"
            d.box(axes, x, low[name], wide, high, shown + ("\n" if note else ""), colour if known else GREY, 13)
            d.label(axes, x + wide / 2, low[name] + 1.9, note, GREY)
        if empty:
            continue
        y = low[name] + high / 2
        d.arrow(axes, (left[1] + wide, y), (left[64], y))
        gain = ends[name, 1] - ends[name, 64]
        d.label(axes, middle, y + 2.6, f"{abs(gain):.3f}\n{'better' if gain > 0 else 'worse'}", size=10.5)
    white = dict(fc="white", ec="none", pad=1.5)
    between = (low["p-spin"] + low["transformer"] + high) / 2
    for batch, x in left.items():
        d.label(axes, x + wide / 2, 30.4, RECIPES[batch])
        if empty:
            continue
        d.line(axes, [x + wide / 2] * 2, [low["transformer"] + high, low["p-spin"]])
        gap = difference(tuple((f"{alphabet}-{batch}", name) for name in BOTH), records.SPLIT)
        d.label(axes, x + wide / 2, between, f"{gap.mean:+.3f} ± {gap.half_width:.3f}", bbox=white)
    d.line(axes, [left[1] + wide, left[64]], [low["p-spin"], low["transformer"] + high], d.BACKWARD, "--")
    across = ends["p-spin", 1] - ends["transformer", 64]
    d.label(axes, middle, between, f"{diagonal}\n{across:+.3f}", d.BACKWARD, bbox=white)
    return figure, ends


@styled
def comparisons(pairs: Mapping[str, tuple[Network, Network]]) -> tuple[Figure, dict[str, list[Difference]]]:
    """Differences between two networks on both splits, with intervals where there are several seeds; shaded where a
    whole interval has to lie for a match."""
    figure = Figure(figsize=(5.2, 2 + 0.6 * len(pairs)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(-1, CLOSE, color=d.tint(GREEN), lw=0, zorder=0)
    panel.axvline(0, color=GREY, lw=1)
    shown = {name: [difference(pair, split) for split in records.SPLITS] for name, pair in pairs.items()}
    for i, gaps in enumerate(shown.values()):
        for split, gap, colour, y in zip(records.SPLITS, gaps, (GREEN, GREY), (i - 0.15, i + 0.15), strict=True):
            one = dict(mfc="white") if gap.pairs == 1 else dict(xerr=gap.half_width)
            panel.errorbar(gap.mean, y, fmt="o", color=colour, capsize=3, label="" if i else f"{split} speeches", **one)
    panel.set_yticks(range(len(pairs)), list(pairs))
    every = [gap for gaps in shown.values() for gap in gaps]
    tips = [x for gap in every for x in ((gap.low, gap.high) if gap.pairs > 1 else (gap.mean,))]
    panel.set(
        xlim=(min(tips) - 0.02, max(tips) + 0.02),
        ylim=(len(pairs) - 0.5, -0.5),
        xlabel="p-Spin minus Transformer, bits per byte\n(below 0: p-Spin is better)",
    )
    panel.grid(axis="y", visible=False)
    note = f"a match: both bars in the shaded area, below +{CLOSE:g}"
    note += "; hollow: one run" if min(gap.pairs for gap in every) == 1 else ""
    panel.set_title(note, fontsize=10, color=GREY, loc="left")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.12), ncols=2)
    return figure, shown


@styled
def tuning(groups: Sequence[str], names: Sequence[str]) -> tuple[Figure, dict[str, dict[str, float]]]:
    """Bits per byte of the tuning runs over the learning rate, a panel per group; hollow stars where the initial
    weights are larger. -> group -> name -> the best rate that the full runs could have"""
    figure, best = Figure(figsize=(5.2, 2.9 * len(groups)), layout="constrained"), {}
    for panel, group in zip(np.ravel(figure.subplots(len(groups), 1)), groups, strict=True):
        best[group], further = {}, []
        for name in names:
            rates, larger = (records.rates(group, name, scale) for scale in networks.SCALES)
            best[group][name] = min(networks.RATES, key=rates.get)
            further.append(rates[max(rates)] - rates[best[group][name]])
            look = dict(color=study.OF_ARMS[name]["color"], label=display_name(name))
            panel.plot(list(rates), list(rates.values()), marker="o", **look)
            panel.plot(list(larger), list(larger.values()), "*", ms=15, mfc="none", mec=look["color"])
        ticks = sorted(rates)
        panel.set_xscale("log")
        panel.set_xticks(ticks, [f"{rate:g}" for rate in ticks])
        panel.set_xticks([], minor=True)
        finding = "still falling" if min(further) < -CLOSE else "flat at the end"
        panel.set_title(f"Batch {group.rpartition('-')[2]}: {finding}", **TITLE)
        panel.set(xlabel="learning rate", ylabel="bits per byte,\nmean of both splits")
    star = Line2D([], [], ls="", marker="*", color=GREY, ms=15, mfc="none", label="initial weights × 2")
    first = figure.axes[0]
    first.legend(handles=[*first.get_legend_handles_labels()[0], star])
    return figure, best


def level(runs: study.Runs, unit: str, split: str) -> tuple[float, dict[str, float]]:
    """The place on an axis where the first run begins to cool down, and the bits per byte of all of them there."""
    place = min(cooling(seeds[0], unit) for seeds in runs.values())
    return place, {name: after(seeds, place, unit, split) for name, seeds in runs.items()}


@styled
def curves(runs: study.Runs, unit: str, split: str = records.SPLIT) -> tuple[Figure, dict]:
    """study.one_axis for names like "p-spin, batch 1": the colour is the network's, the dashes are the batch size's,
    and the title says which are lowest where the first one begins to cool down. -> what to show beneath: all of them
    there, at a dashed line"""
    figure, _ = study.one_axis(runs, unit, split)
    panel = figure.axes[0]
    for line, band, name in zip(panel.lines, panel.collections, runs, strict=True):
        network, _, rest = name.partition(", ")
        colour = study.OF_ARMS[network]["color"]
        line.set(color=colour, linestyle=DASHES[rest], label=display_name(name))
        band.set_facecolor(colour)
    _mark(panel, runs, unit)
    panel.legend(fontsize=9.5, title="bands: lowest to highest seed", title_fontsize=9)
    place, bits = level(runs, unit, split)
    low, high = panel.get_ylim()
    panel.plot([place, place], [low, high], "--", color=GREY, lw=1, zorder=1)
    panel.set_ylim(low, high)
    lowest = [name for name in bits if bits[name] < min(bits.values()) + HARDLY]
    shared = sorted({name.partition(", ")[2] for name in lowest})
    finding = f"{' and '.join(map(display_name, lowest))} lead{'s' if len(lowest) == 1 else ''}"
    finding = f"{shared[0]} leads, with either network" if len(lowest) == 2 and len(shared) == 1 else finding
    finding = "hardly apart" if len(lowest) == len(bits) else finding
    panel.set_title(f"At equal {EQUAL[unit]}: {finding}", **TITLE)
    panel.set_xlabel(f"{panel.get_xlabel()}; ○ learning rate begins to fall")
    panel.set_ylabel(SAMPLE)
    numbers = {f"{display_name(name)}": f"{one:.2f}" for name, one in bits.items()}
    where = f"{place:,.0f}" if place >= 100 else f"{place:.3g}"
    return figure, {f"{study.AXES[unit][0]} so far": where} | numbers


def recipes(alphabet: str) -> dict[str, list[dict]]:
    """The runs of both networks at both batch sizes, by names that `curves` takes."""
    return {
        f"{name}, batch {batch}": list(records.seeds(f"{alphabet}-{batch}", name).values())
        for batch in RECIPES
        for name in BOTH
    }


def compared() -> Callable[..., tuple[Figure, dict]]:
    """For an Explorer: draw(alphabet, axis, split) of `curves`."""
    choices = {alphabet: recipes(alphabet) for alphabet in ("subwords", "bytes")}

    def draw(alphabet: str, axis: str, split: str) -> tuple[Figure, dict]:
        return curves(choices[alphabet], axis, split)

    return draw
