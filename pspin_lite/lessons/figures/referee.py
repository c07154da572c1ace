"""Explorers of notebook 11 on top of race.py: four runs over any axis, and a referee who sets the learning rates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...study import records
from . import study
from .live import LiveFigure, Panel
from .race import BOTH, DASHES, RECIPES, SAMPLE, TITLE, Network, after, cooling, display_name, short_end, tuned
from .style import GREY, styled

EQUAL = {"sequences": "sequences", "flops": "arithmetic", "seconds": "time"}
HARDLY = 0.05  # bits per byte: networks that a title does not tell apart


def _mark(panel: Axes, runs: study.Runs, unit: str) -> dict[str, float]:
    """A hollow dot on each line where its run begins to cool down."""
    places = {}
    for line, (name, seeds) in zip(panel.lines, runs.items(), strict=False):
        places[name] = cooling(seeds[0], unit)
        height = np.interp(places[name], line.get_xdata(), line.get_ydata())
        panel.plot(places[name], height, "o", mfc="white", mec=line.get_color(), ms=7, mew=1.6, zorder=4)
    panel.set_xlabel(f"{panel.get_xlabel()} (logarithmic)")
    return places


def referee(pair: tuple[Network, Network]) -> Callable[..., tuple[LiveFigure, dict]]:
    """For an Explorer: draw(ours, theirs) of the short runs of two networks over their learning rates, with the two
    rates that are chosen and the gap between them. Thick dashes: where full runs end, at the rate that was tuned."""
    every = list(records.rates(*pair[0]))
    curves = [[short_end(network, rate) for rate in every] for network in pair]
    full = [records.mean(records.bits(*network)) for network in pair]
    at = every.index(tuned(pair[0]))
    names = [f"{display_name(name)}, batch {group.rpartition('-')[2]}" for group, name in pair]
    colours, heights = [study.OF_ARMS[name]["color"] for _, name in pair], (1.4, 1.6, 1.8, 2.0)

    def draw(ours: float, theirs: float) -> tuple[LiveFigure, dict]:
        chosen = [curve[every.index(rate)] for curve, rate in zip(curves, (ours, theirs), strict=True)]
        gap = chosen[0] - chosen[1]
        leader = display_name(pair[gap > 0][1])
        panel = Panel(
            (0.13, 0.26, 0.83, 0.64),
            f"{leader} wins by {abs(gap):.3f}",
            "learning rate (logarithmic)",
            "bits per byte, held-out",
            (-0.3, len(every) - 0.7),
            (1.3, 2.1),
            tuple(range(len(every))),
            heights,
            tuple(f"{height:g}" for height in heights),
            tuple(("━", *one) for one in zip(names, colours, strict=True)),
            tuple(f"{rate:g}" for rate in every),
        )
        figure = LiveFigure((5.2, 4.0), (panel,))
        for curve, end, colour, rate in zip(curves, full, colours, (ours, theirs), strict=True):
            figure.add_line(0, range(len(every)), curve, colour, width=1.8)
            figure.add_line(0, [every.index(rate)], [curve[every.index(rate)]], colour, width=0, dot=6)
            figure.add_line(0, [at - 0.15, at + 0.15], [end, end], colour, width=4)
        figure.add_text(0, at, sum(full) / 2 + 0.02, "full runs", GREY)
        numbers = {name: f"{end:.3f}" for name, end in zip(names, chosen, strict=True)}
        return figure, numbers | {"p-Spin minus Transformer": f"{gap:+.3f}".replace("-", "−")}

    return draw


def level(runs: study.Runs, unit: str, split: str) -> tuple[float, dict[str, float]]:
    """The place on an axis where the first run begins to cool down, and the bits per byte of all of them there."""
    place = min(cooling(seeds[0], unit) for seeds in runs.values())
    return place, {name: after(seeds, place, unit, split) for name, seeds in runs.items()}


def _name_lines(panel: Axes, runs: study.Runs) -> None:
    """The name of each line beside it. Of batch 1: above the middle of the upper line, below the end of the lower one.
    Of batch 64: to the right and to the left of where they begin."""
    lines = dict(zip(runs, panel.lines, strict=False))
    small, large = ([lines[name] for name in runs if name.endswith(f", {batch}")] for batch in DASHES)
    middle = np.median(small[0].get_xdata())
    small.sort(key=lambda line: -np.interp(middle, line.get_xdata(), line.get_ydata()))
    large.sort(key=lambda line: -line.get_ydata()[0])
    above, below = dict(xytext=(3, 6), ha="left", va="bottom"), dict(xytext=(2, -7), ha="right", va="top")
    right, left = dict(xytext=(8, 0), ha="left", va="center"), dict(xytext=(-8, 0), ha="right", va="center")
    places = [(small, 0.08, above), (small[1:], 1, below), (large, 0, right), (large[1:], 0, left)]
    for group, share, how in places:
        for line in group[:1]:
            x, y = line.get_xdata(), line.get_ydata()
            at = int(np.argmin(np.abs(np.log(x) - (1 - share) * np.log(x[0]) - share * np.log(x[-1]))))
            how |= dict(fontsize=10, color=line.get_color(), bbox=dict(fc="white", ec="none", alpha=0.8, pad=1))
            panel.annotate(line.get_label(), (x[at], y[at]), textcoords="offset points", **how)


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
        line.set(color=colour, linestyle=DASHES[rest], label=display_name(name), linewidth=2.2)
        band.set_visible(False)
    _mark(panel, runs, unit)
    _name_lines(panel, runs)
    panel.get_legend().remove()
    figure.set_size_inches(6.2, 4.2)
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


def compared(alphabet: str) -> Callable[..., tuple[Figure, dict]]:
    """For an Explorer: draw(axis) of `curves`."""
    runs = recipes(alphabet)
    return lambda axis: curves(runs, axis)
