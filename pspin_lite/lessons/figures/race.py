"""Figures of notebook 11 on top of study.py's: where runs begin to cool down, and two networks in two alphabets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...study import records
from . import study
from .style import GREY, styled

NOTES = ("○ learning rate begins to fall", "bands: range of three seeds")
DASHES = {"subwords": "-", "bytes": "--", "subwords, batch 64": ":"}  # of an alphabet


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


@styled
def learning(runs: study.Runs, units: Sequence[str] = study.PANELS) -> tuple[Figure, dict]:
    """study.learning with the beginnings of the cool-down. -> unit -> name -> that place"""
    figure, _ = study.learning(runs, units=units)
    places = {unit: _mark(panel, runs, unit) for panel, unit in zip(figure.axes, units, strict=True)}
    for panel, note in zip(figure.axes, NOTES, strict=False):
        panel.set_title(note, fontsize=9.5, color=GREY)
    return capitals(figure), places


@styled
def alphabets(runs: study.Runs, unit: str, split: str = records.SPLIT) -> tuple[Figure, dict]:
    """study.one_axis for names like "p-spin, bytes": the colour is the network's, the dashes are the alphabet's."""
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
    return capitals(figure), shown
