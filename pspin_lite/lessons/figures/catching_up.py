"""An explorer of notebook 11 on top of race.py: how much text or time one run takes to catch up with another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...study import records
from . import study
from .live import LiveFigure, Panel
from .race import BOTH, RECIPES, cooling, display_name, plateau_factor
from .style import GREEN

UNITS = {"sequences": "text", "seconds": "time", "flops": "arithmetic"}  # of study.AXES
PAIRS = {display_name(name): (name, name) for name in BOTH} | {"The diagonal": BOTH}  # at batch 1, at batch 64
HEIGHTS = (1.25, 1.5, 1.75, 2.0, 2.25)


def curve(network: tuple[str, str], unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Of the mean over seeds: places on an axis of study.AXES, bits per byte."""
    runs = list(records.seeds(*network).values())
    steps = records.curve(runs[0])[0][1:]
    bits = np.mean([records.curve(run)[1][1:] for run in runs], 0)
    return records.axis(runs[0], steps, unit) / study.AXES[unit][1], bits


def catching_up(alphabet: str) -> Callable[..., tuple[LiveFigure, dict]]:
    """For an Explorer: draw(who, after, axis) of learning curves at both batch sizes. who: one of PAIRS, which stands
    out. A line goes from where batch 1 has read `after` sequences to where batch 64 gets as low; rings: where learning
    rates begin to fall."""
    every = [(f"{alphabet}-{batch}", name) for batch in RECIPES for name in BOTH]
    first = {network: next(iter(records.seeds(*network).values())) for network in every}
    curves = {(network, unit): curve(network, unit) for network in every for unit in UNITS}

    def draw(who: str, after: int, axis: str) -> tuple[LiveFigure, dict]:
        unit = next(unit for unit, name in UNITS.items() if name == axis)
        pair = tuple((f"{alphabet}-{batch}", name) for batch, name in zip(RECIPES, PAIRS[who], strict=True))
        a_sequence = [cooling(first[one], unit) / cooling(first[one], "sequences") for one in pair]
        sequences = after * plateau_factor(*pair, start=after)
        start, end = after * a_sequence[0], sequences * a_sequence[1]
        level = float(np.interp(start, *curves[pair[0], unit]))
        figure = LiveFigure(
            (5.2, 4.2), (_panel(f"{who}: batch 64 needs {end / start:.1f} times the {axis}", curves, unit),)
        )
        for network in every:
            x, bits = curves[network, unit]
            colour, chosen = study.OF_ARMS[network[1]]["color"], network in pair
            how = dict(dashes=network[0].endswith("-64"), opacity=1.0 if chosen else 0.35)
            figure.add_line(0, np.log10(x), bits, colour, width=2.6 if chosen else 1.3, **how)
        figure.add_line(0, np.log10([start, end]), [level, level], GREEN, width=2.2)
        figure.add_line(0, [np.log10(end)], [level], GREEN, width=0, dot=4)
        for network in pair:
            ring = cooling(first[network], unit)
            height = np.interp(ring, *curves[network, unit])
            figure.add_line(0, [np.log10(ring)], [height], study.OF_ARMS[network[1]]["color"], dot=4, filled=False)
        numbers = {"sequences at batch 1": f"{after:,}", "sequences at batch 64": f"{sequences:,.0f}"}
        return figure, numbers | {f"times the {axis}": f"{end / start:.1f}"}

    return draw


def _panel(title: str, curves: dict, unit: str) -> Panel:
    places = np.log10(np.concatenate([x for (_, one), (x, _) in curves.items() if one == unit]))
    ticks = [tick for k in range(-1, 5) for tick in (10**k, 3 * 10**k)]
    ticks = [tick for tick in ticks if places.min() < np.log10(tick) < places.max()]
    named = [("━", display_name(name), study.OF_ARMS[name]["color"]) for name in BOTH]
    return Panel(
        (0.14, 0.25, 0.82, 0.65),
        title,
        f"{study.AXES[unit][0]} (logarithmic); dashed: batch 64",
        "bits per byte",
        (places.min() - 0.05, places.max() + 0.05),
        (1.15, 2.35),
        tuple(float(np.log10(tick)) for tick in ticks),
        HEIGHTS,
        tuple(f"{height:g}" for height in HEIGHTS),
        tuple(named),
        tuple(f"{tick:,g}" for tick in ticks),
    )
