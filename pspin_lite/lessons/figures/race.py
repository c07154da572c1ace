"""Figures of notebook 11 on top of study.py's: two networks at two batch sizes, how much text one takes to catch up
with the other, what a learning rate is worth, and their difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...config import Config
from ...study import networks, records
from ...study.claims.comparisons import CLOSE, FAMILY
from ...study.intervals import Difference
from . import diagram as d
from . import study
from .style import BLUE, GREEN, GREY, ORANGE, styled

BOTH = ("p-spin", "transformer")
MIDDLE = "#949494"  # beside black
TITLE = dict(loc="left", weight="bold", fontsize=11)
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


def after(runs: Sequence[dict], sequences: float) -> float:
    """Held-out bits per byte, mean over seeds, when so many sequences have been read."""
    steps, _ = records.curve(runs[0])
    x = records.axis(runs[0], steps, "sequences")
    return float(np.interp(sequences, x, np.mean([records.curve(run)[1] for run in runs], 0)))


def short_end(network: Network, rate: float, split: str = records.SPLIT) -> float:
    """Bits per byte at the end of the tuning run at a learning rate, with the smaller initial weights."""
    runs = [(one["config"]["model"], one["summary"]) for one in records.tries(*network).values()]
    chosen = (rate, networks.SCALES[0])
    [end] = [end for model, end in runs if (model["lr"], model["gain"]) == chosen]
    return end["validation"][split]["bits_per_byte"]


def plateau_factor(one: Network, other: Network, start: float | None = None) -> float:
    """How many times as many sequences the other takes to the loss that the first one has after `start` of them (None:
    when its learning rate begins to fall); infinite if the other's begins to fall first."""
    small, large = (list(records.seeds(*network).values()) for network in (one, other))
    start, end = start or cooling(small[0], "sequences"), cooling(large[0], "sequences")
    level, warm = after(small, start), large[0]["config"]["model"]["warmup"] * large[0]["config"]["model"]["batch"]
    places = (place for place in np.arange(min(start, warm), end + 1, 10) if after(large, place) <= level)
    return float(next(places, np.inf)) / start


def in_words(gain: float) -> str:
    """How much lower a score is, bits per byte."""
    return f"{abs(gain):.3f} {'better' if gain > 0 else 'worse'}"


def ours(gap: Difference) -> str:
    """p-Spin minus Transformer in words, with the interval."""
    return f"p-Spin\n{in_words(-gap.mean)}\n± {gap.half_width:.3f}"


def config(network: Network) -> Config:
    """Of its full runs, but for the seed, and what was tuned."""
    return networks.arm(*network).cfg


def tuned(network: Network) -> float:
    """The learning rate of its full runs."""
    return next(iter(records.seeds(*network).values()))["config"]["model"]["lr"]


def difference(pair: tuple[Network, Network], split: str) -> Difference:
    """As verdicts have it: the interval from the variance of whole groups, widened for all that decide something."""
    return records.compare(*pair, split, FAMILY)


@styled
def square(
    alphabet: str, title: str, diagonal: str, notes: Sequence[str] = ("",) * 4, empty: bool = False
) -> tuple[Figure, dict]:
    """Where two networks end with two recipes, on held-out speeches, and the differences along the sides and along the
    diagonal. diagonal: what to write there, with {} for the difference. notes: what to write into each box, row by row.
    empty: only the paper's two corners and the diagonal.
    -> (network, batch) -> bits per byte"""
    figure, axes = d.canvas(5.2, 4.3, title)
    d.label(axes, 1.5, 36.9, "bits per byte on held-out speeches: lower is better", GREY, ha="left")
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
        d.label(axes, middle, y + 2.6, in_words(ends[name, 1] - ends[name, 64]).replace(" ", "\n"), size=10.5)
    white = dict(fc="white", ec="none", pad=1.5)
    between = (low["p-spin"] + low["transformer"] + high) / 2
    d.line(axes, [left[1] + wide, left[64]], [low["p-spin"], low["transformer"] + high], d.BACKWARD, "--")
    across = difference(((f"{alphabet}-1", "p-spin"), (f"{alphabet}-64", "transformer")), records.SPLIT)
    d.label(axes, middle, between, diagonal.format(ours(across)), d.BACKWARD, bbox=white)
    for batch, x in left.items():
        d.label(axes, x + wide / 2, 30.4, RECIPES[batch])
        if empty:
            continue
        d.line(axes, [x + wide / 2] * 2, [low["transformer"] + high, low["p-spin"]])
        gap = difference(tuple((f"{alphabet}-{batch}", name) for name in BOTH), records.SPLIT)
        d.label(axes, x + wide / 2, between, ours(gap), bbox=white)
    return figure, ends


@styled
def rate_and_length(pair: tuple[Network, Network], slow: tuple[Network, Network], title: str) -> tuple[Figure, dict]:
    """The gap between a pair on held-out speeches, by learning rate and by the length of the runs. slow: the networks
    whose full runs had the lower rate; in short runs it is the first pair's at that rate.
    -> (rate, length) -> where both end"""
    rates = tuned(slow[0]), tuned(pair[0])
    ends = {(rate, "short"): [short_end(network, rate) for network in pair] for rate in rates}
    for rate, both in zip(rates, (slow, pair), strict=True):
        ends[rate, "full"] = [records.mean(records.bits(*network)) for network in both]
    figure, axes = d.canvas(5.2, 3.7, title)
    label = (
        "p-Spin at batch 1 against the Transformer at batch 64,\nbits per byte; at the arrows: how far the gap moves"
    )
    d.label(axes, 1.5, 30.4, label, GREY, ha="left")
    high, wide, left, low = 7, 14.5, {"short": 10.5, "full": 37}, dict(zip(rates, (16, 1.5), strict=True))

    def moved(start: tuple[float, str], end: tuple[float, str]) -> str:
        gaps = [round(one - other, 3) for one, other in (ends[start], ends[end])]
        return f"{gaps[1] - gaps[0]:.3f}"

    for (rate, length), (first, second) in ends.items():
        colour, text = (BLUE if first < second else ORANGE), f"p-Spin\n{in_words(second - first)}"
        d.box(axes, left[length], low[rate], wide, high, text, colour, 11)
    for length, x in left.items():
        d.label(axes, x + wide / 2, 25.5, f"{length} runs")
        d.arrow(axes, (x + wide / 2, low[rates[0]]), (x + wide / 2, low[rates[1]] + high))
        d.label(axes, x + wide / 2, 12.25, f"  {moved((rates[0], length), (rates[1], length))}", ha="left")
    for rate, y in low.items():
        d.label(axes, 0.8, y + high / 2, f"rate\n{rate:g}", ha="left")
        d.arrow(axes, (left["short"] + wide, y + high / 2), (left["full"], y + high / 2))
        middle = (left["short"] + wide + left["full"]) / 2
        d.label(axes, middle, y + high / 2 + 1.8, moved((rate, "short"), (rate, "full")))
    return figure, ends


@styled
def rates(alphabet: str, chosen: float, title: str) -> tuple[Figure, dict[tuple[str, int], dict[float, float]]]:
    """Where short runs end over the learning rate they had, a panel per batch size; dashed, the chosen rate.
    -> (network, batch) -> learning rate -> bits per byte on held-out speeches"""
    figure, ends = Figure(figsize=(5.2, 3.9), layout="constrained"), {}
    for panel, batch in zip(figure.subplots(1, 2, sharey=True), RECIPES, strict=True):
        for name in BOTH:
            network, colour = (f"{alphabet}-{batch}", name), study.OF_ARMS[name]["color"]
            ends[name, batch] = {rate: short_end(network, rate) for rate in records.rates(*network)}
            curve = ends[name, batch]
            panel.plot(list(curve), list(curve.values()), "o-", color=colour, lw=2, ms=4, label=display_name(name))
        panel.axvline(chosen, color=GREY, ls="--", lw=1.2)
        panel.set_xscale("log")
        every = list(ends[BOTH[0], batch])
        panel.set_xticks(every[::2], [f"{rate:g}" for rate in every[::2]])
        panel.set_xticks([], minor=True)
        steps = next(iter(records.tries(f"{alphabet}-{batch}", BOTH[0]).values()))["config"]["model"]["steps"]
        panel.set_title(f"batch {batch}, {steps:,} steps", **TITLE)
    figure.axes[0].set_ylabel("bits per byte, held-out")
    figure.axes[0].legend(loc="lower left", handlelength=1.0, fontsize=10)
    figure.supxlabel(f"learning rate (logarithmic); dashed: {chosen:g}, of the full runs", fontsize=11)
    figure.suptitle(title, x=0.01, ha="left", weight="bold", fontsize=12)
    return figure, ends


@styled
def comparisons(pairs: Mapping[str, tuple[Network, Network]]) -> tuple[Figure, dict[str, list[Difference]]]:
    """Differences between two networks on both splits, with intervals; shaded where a whole interval has to lie for a
    match."""
    figure = Figure(figsize=(5.2, 2 + 0.6 * len(pairs)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(-1, CLOSE, color=d.tint(GREEN), lw=0, zorder=0)
    panel.axvline(0, color=GREY, lw=1)
    shown = {name: [difference(pair, split) for split in records.SPLITS] for name, pair in pairs.items()}
    for i, gaps in enumerate(shown.values()):
        for split, gap, colour, y in zip(records.SPLITS, gaps, (d.INK, MIDDLE), (i - 0.15, i + 0.15), strict=True):
            how = dict(fmt="o", color=colour, capsize=3, label="" if i else f"{split} speeches")
            panel.errorbar(gap.mean, y, xerr=gap.half_width, **how)
    panel.set_yticks(range(len(pairs)), list(pairs))
    every = [gap for gaps in shown.values() for gap in gaps]
    tips = [tip for gap in every for tip in (gap.low, gap.high)]
    panel.set(
        xlim=(min(tips) - 0.02, max(tips) + 0.02),
        ylim=(len(pairs) - 0.5, -0.5),
        xlabel="p-Spin minus Transformer, bits per byte\n(below 0: p-Spin is better)",
    )
    panel.grid(axis="y", visible=False)
    note = f"a match: both bars in the shaded area, below +{CLOSE:g}"
    panel.set_title(note, fontsize=10, color=GREY, loc="left")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.12), ncols=2)
    return figure, shown
