"""The live form of an explorer with few states: every state is drawn beforehand.

A figure, a LiveFigure or one of matplotlib, is taken apart into what core.js draws: panels with axes, lines, areas and
texts. What frames share is written once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from ..figures.live import Line, LiveFigure, Panel, Passage
from ..figures.style import styled

MOST = 100  # frames
UNITS = 94  # of a drawing, to the inch
WIDEST = 400  # of them for a panel, so that its texts can be read on a phone
MARGIN = 46  # right of a panel with texts outside
INKS = "#000000", "#222222"  # of texts that say nothing else: the page's ink, light on a dark page
USUAL = dict(width=1.3, dot=0.0, filled=True, dashes=False, opacity=1.0)  # what core.js takes if nothing is said
Stops = Mapping[str, list]  # control -> every value it can take
Mark = dict[str, object]


class Pool:
    """Things as JSON, each of them once; a frame holds their places."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def add(self, thing: Mark) -> int:
        return self.places.setdefault(json.dumps(thing, default=float), len(self.places))

    def things(self) -> list[Mark]:
        return [json.loads(text) for text in self.places]


@styled
def frames(draw: Callable, stops: Stops) -> Mark | None:
    """A frame for each state; None if there are too many, or if a figure holds what we cannot take apart."""
    if math.prod(map(len, stops.values())) > MOST:
        return None
    pools = {name: Pool() for name in ("panels", "lines", "texts", "numbers")}
    made = []
    for values in product(*stops.values()):
        figure, numbers = draw(**dict(zip(stops, values, strict=True)))
        parts = _take_apart_live(figure) if isinstance(figure, LiveFigure) else _take_apart(figure)
        if parts is None:
            return None
        parts["numbers"] = [[name, _number(value)] for name, value in numbers.items()]
        made.append({name: [pools[name].add(part) for part in parts[name]] for name in pools})
    return dict(script="", form="frames", frames=made) | {name: pool.things() for name, pool in pools.items()}


def _number(value: object) -> object:
    if isinstance(value, Passage):
        return dict(passage=value.printable(), mark=value.mark)
    return value if isinstance(value, str) else float(value)


def axes_of(panel: Panel, wide: float, **more: object) -> Mark:
    texts = dict(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel, yticklabels=panel.yticklabels)
    numbers = dict(xlim=panel.xlim, ylim=panel.ylim, xticks=panel.xticks, yticks=panel.yticks)
    if panel.xticklabels:
        texts["xticklabels"] = panel.xticklabels
    named = [dict(zip(("mark", "text", "colour"), entry, strict=True)) for entry in panel.legend]
    return texts | numbers | dict(wide=round(wide)) | (dict(legend=named) if named else {}) | more


def rounded(values: np.ndarray, digits: int) -> list[float | None]:
    """Significant digits; None for a gap."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in np.asarray(values, float)]


def _take_apart_live(figure: LiveFigure) -> dict[str, list]:
    beside = {panel for panel, x, *_ in figure.texts if x > figure.panels[panel].xlim[1]}
    panels = [
        axes_of(p, UNITS * figure.size[0] * p.place[2], **(dict(right=MARGIN) if i in beside else {}))
        for i, p in enumerate(figure.panels)
    ]
    texts = [dict(zip(("panel", "x", "y", "text", "colour"), text, strict=True)) for text in figure.texts]
    return dict(panels=panels, lines=list(map(_line, figure.lines)), texts=texts)


def _line(line: Line) -> Mark:
    how = {name: getattr(line, name) for name in USUAL}
    return _mark(line.panel, line.x, line.y, line.colour, **how)


def _mark(panel: int, x: np.ndarray, y: np.ndarray, colour: str, **how: object) -> Mark:
    unusual = {name: value for name, value in how.items() if value != USUAL.get(name)}
    return dict(panel=panel, x=rounded(x, 5), y=rounded(y, 4), colour=colour) | unusual


def _take_apart(figure: Figure) -> dict[str, list] | None:
    """Lines, areas of fill_between, texts and a legend; None if there is anything else."""
    figure.set_layout_engine("none")  # it takes most of the time
    figure.draw_without_rendering()  # limits, ticks and places are known from here on
    if any(axes.images or axes.patches for axes in figure.axes):
        return None
    parts: dict[str, list] = dict(panels=[], lines=[], texts=[])  # a legend is part of its panel
    for i, axes in enumerate(figure.axes):
        parts["panels"].append(_panel(axes, figure.get_figwidth()))
        parts["lines"] += _areas(axes, i)
        parts["lines"] += _lines(axes, i)
        parts["texts"] += _texts(axes, i)
    labels = [text for panel in parts["panels"] for name in ("xticklabels", "yticklabels") for text in panel[name]]
    return None if any("$" in text for text in labels) else parts  # formulas


def _panel(axes: Axes, inches: float) -> Mark:
    (left, right), (low, high) = _scaled(axes, axes.get_xlim(), axes.get_ylim())
    ticks = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        (first, last), texts = sorted(axis.get_view_interval()), [tick.get_text() for tick in axis.get_ticklabels()]
        known = zip(axis.get_ticklocs(), texts, strict=True)
        known = [(place, text) for place, text in known if text and first <= place <= last]
        places, texts = zip(*known, strict=True) if known else ((), ())
        ticks[f"{name}ticks"] = rounded(axis.get_transform().transform(np.array(places, float)), 6)
        ticks[f"{name}ticklabels"] = texts
    legend = axes.get_legend()
    named = zip(*axes.get_legend_handles_labels(), strict=True) if legend else ()
    return dict(
        title=axes.get_title() or axes.get_title("left"),
        xlabel=axes.get_xlabel(),
        ylabel=axes.get_ylabel(),
        xlim=rounded(np.array([left, right]), 6),
        ylim=rounded(np.array([low, high]), 6),
        wide=min(WIDEST, round(UNITS * inches * axes.get_position().width)),
        legend=[dict(text=text, colour=to_hex(line.get_color()).upper(), dashes=_dashed(line)) for line, text in named],
        **ticks,
    )


def _scaled(axes: Axes, x: object, y: object) -> tuple[np.ndarray, np.ndarray]:
    """On the axes as they are drawn: powers where an axis is logarithmic."""
    return tuple(axis.get_transform().transform(np.asarray(v, float)) for axis, v in ((axes.xaxis, x), (axes.yaxis, y)))


def _dashed(line: object) -> bool:
    return line.get_linestyle() not in ("-", "None")


def _lines(axes: Axes, panel: int) -> Iterator[Mark]:
    for line in axes.lines:
        x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
        if line.get_transform() == axes.get_xaxis_transform():  # axvline: its ends are shares of the height
            low, high = axes.get_ylim()
            y = low + y * (high - low)
        dot = line.get_markersize() / 2 if line.get_marker() not in ("None", None, "") else 0.0
        how = dict(width=line.get_linewidth(), dashes=_dashed(line), opacity=line.get_alpha() or 1.0, dot=dot)
        how["filled"] = line.get_markerfacecolor() not in ("none", "white")
        yield _mark(panel, *_scaled(axes, x, y), to_hex(line.get_color()).upper(), **how)


def _areas(axes: Axes, panel: int) -> Iterator[Mark]:
    for area in axes.collections:
        colour, opacity = to_hex(area.get_facecolor()[0]).upper(), round(float(area.get_facecolor()[0][3]), 3)
        for path in area.get_paths():
            x, y = _scaled(axes, *path.vertices.T)
            yield _mark(panel, x, y, colour, fill=True, opacity=opacity)


def _texts(axes: Axes, panel: int) -> Iterator[Mark]:
    (left, right), (low, high) = _scaled(axes, axes.get_xlim(), axes.get_ylim())
    for text in axes.texts:
        anchor = dict(left="start", center="middle", right="end")[text.get_ha()]
        box = text.get_window_extent().transformed(axes.transAxes.inverted())
        share = dict(start=box.x0, middle=(box.x0 + box.x1) / 2, end=box.x1)[anchor]
        at = rounded(np.array([left + share * (right - left), low + box.y1 * (high - low)]), 5)
        colour = to_hex(text.get_color()).upper()
        colour = "black" if colour in INKS else colour
        yield dict(panel=panel, x=at[0], y=at[1], text=text.get_text(), colour=colour, anchor=anchor)
