"""Figures of notebook 11 on top of study.py's: tuning, where runs begin to cool down, two networks in two alphabets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...config import preset
from ...study import jobs, networks, records
from . import study
from .style import GREEN, GREY, styled

SAMPLE = f"bits per byte, sample of {jobs.FULL['validate_tokens']:,} tokens"  # validated during a run
COLUMNS = ("batch", "rate", "window", "sequences", "p-Spin", "Transformer", "difference")  # of a comparison
NOTES = ("○ learning rate begins to fall", "bands: range of three seeds")
DASHES = {"subwords": "-", "bytes": "--", "subwords, batch 64": ":"}  # of an alphabet

Seeds = Mapping[int, dict]  # seed -> record


def proper(text: str) -> str:
    """The names of networks as texts write them."""
    return text.replace("p-spin", "p-Spin").replace("transformer", "Transformer")


def capitals(figure: Figure) -> Figure:
    """The same figure, with such names in its legends."""
    for legend in [*figure.legends, *(panel.get_legend() for panel in figure.axes)]:
        for text in legend.get_texts() if legend else ():
            text.set_text(proper(text.get_text()))
    return figure


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


def after(runs: Sequence[dict], place: float, unit: str = "text", split: str = records.SPLIT) -> float:
    """Bits per byte, mean over seeds, where the curve passes a place on an axis of study.AXES."""
    steps, _ = records.curve(runs[0], split)
    x = records.axis(runs[0], steps, unit) / study.AXES[unit][1]
    return float(np.interp(place, x, np.mean([records.curve(run, split)[1] for run in runs], 0)))


def _ends(runs: Seeds, split: str) -> dict[int, float]:
    return {n: run["summary"]["validation"][split]["bits_per_byte"] for n, run in runs.items()}


def _row(pair: tuple[Seeds, Seeds]) -> list[str]:
    """Under COLUMNS: how two networks were trained, where they end, and the difference."""
    models = [next(iter(runs.values()))["config"]["model"] for runs in pair]
    settings = [
        [f"{model['batch']}", f"{model['lr']:g}", f"{model['context']}", f"{model['batch'] * model['steps']:,}"]
        for model in models
    ]
    ends = [_ends(runs, records.SPLIT) for runs in pair]
    gap = records.difference(*ends)
    width = f" ± {gap.half_width:.3f}" if gap.pairs > 1 else ", one run each"
    merged = [" and ".join(dict.fromkeys(values)) for values in zip(*settings, strict=True)]
    return [*merged, *(f"{records.mean(end):.3f}" for end in ends), f"{gap.mean:+.3f}{width}"]


@styled
def comparisons(pairs: Mapping[str, tuple[Seeds, Seeds]]) -> tuple[Figure, list[list[str]]]:
    """Differences between two networks on both splits, with intervals where there are several seeds; and a table."""
    figure = Figure(figsize=(7.2, 1.2 + 0.7 * len(pairs)), layout="constrained")
    panel = figure.subplots()
    panel.axvline(0, color=GREY, lw=1)
    for i, pair in enumerate(pairs.values()):
        for split, colour, y in (("held-out", GREEN, i - 0.15), ("recent", GREY, i + 0.15)):
            gap = records.difference(*(_ends(runs, split) for runs in pair))
            one = dict(mfc="white") if gap.pairs == 1 else dict(xerr=gap.half_width)
            panel.errorbar(gap.mean, y, fmt="o", color=colour, capsize=3, label="" if i else f"{split} speeches", **one)
    panel.set_yticks(range(len(pairs)), list(pairs))
    panel.set(
        ylim=(len(pairs) - 0.5, -0.5), xlabel="p-Spin minus Transformer, bits per byte (below 0: p-Spin is better)"
    )
    panel.grid(axis="y", visible=False)
    panel.set_title("bars: 95% intervals; hollow: one run", fontsize=9.5, color=GREY)
    panel.legend(loc="upper right")
    rows = [[name.replace("\n", " "), *_row(pair)] for name, pair in pairs.items()]
    return figure, [["bits per byte", *COLUMNS], *rows]


@styled
def tuning(group: str, names: Sequence[str]) -> tuple[Figure, dict[str, float]]:
    """study.tuning with hollow stars, which hide no dot, at the rate of their own run. -> name -> the best rate that
    the full runs could have"""
    rates, doubled = ({name: records.rates(group, name, scale) for name in names} for scale in networks.SCALES)
    best = {name: min(networks.RATES, key=rates[name].get) for name in names}
    figure = capitals(study.tuning(rates, doubled)[0])
    panel = figure.axes[0]
    for line, name in zip(panel.lines[1::2], names, strict=False):
        line.set_xdata(list(doubled[name]))
    for line in [*panel.lines, *panel.get_legend().get_lines()]:
        if line.get_marker() == "*":
            line.set(markerfacecolor="none", markeredgecolor=line.get_color(), markersize=15)
    panel.set_ylabel("bits per byte, mean of both splits")
    times = (highest := max(best.values())) / preset("subword-lite").lr
    figure.suptitle(f"Little to gain beyond {highest:g}, {times:g} times the paper's rate", fontsize=12)
    return figure, best


@styled
def learning(runs: study.Runs, units: Sequence[str] = study.PANELS) -> tuple[Figure, dict]:
    """study.learning with the beginnings of the cool-down. -> unit -> name -> that place"""
    figure, _ = study.learning(runs, units=units)
    places = {unit: _mark(panel, runs, unit) for panel, unit in zip(figure.axes, units, strict=True)}
    for panel, note in zip(figure.axes, NOTES, strict=False):
        panel.set_title(note, fontsize=9.5, color=GREY)
    figure.axes[0].set_ylabel(SAMPLE)
    return capitals(figure), places


@styled
def alphabets(runs: study.Runs, unit: str, split: str = records.SPLIT) -> tuple[Figure, dict]:
    """study.one_axis for names like "p-spin, bytes": the colour is the network's, the dashes are the
    alphabet's, and the title says which is lowest where the first one begins to cool down."""
    figure, shown = study.one_axis(runs, unit, split)
    panel = figure.axes[0]
    for line, band, name in zip(panel.lines, panel.collections, runs, strict=True):
        network, _, alphabet = name.partition(", ")
        colour = study.OF_ARMS[network]["color"]
        line.set(color=colour, linestyle=DASHES[alphabet])
        band.set_facecolor(colour)
    if runs:
        _mark(panel, runs, unit)
        panel.legend(fontsize=9.5)
        panel.set_title("; ".join(NOTES), fontsize=9.5, color=GREY)
        first = min(cooling(seeds[0], unit) for seeds in runs.values())
        best = min(runs, key=lambda name: after(runs[name], first, unit, split))
        figure.suptitle(f"{proper(best)}: lowest before any run cools down", fontsize=12)
    panel.set_ylabel(SAMPLE)
    return capitals(figure), shown
