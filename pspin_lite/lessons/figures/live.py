"""Figures that are redrawn at every move of a slider.

matplotlib takes about a tenth of a second for three panels, nearly all of it for axes, ticks and labels, which do not
change. A LiveFigure draws the axes of its panels with matplotlib once and keeps them as SVG text; lines and dots are
written into that text at every move. `still()` draws the same with matplotlib alone.
"""

from __future__ import annotations

import html
import io
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from .style import styled

POINTS = 72  # to the inch, in SVG files of matplotlib
MARKS = {"━": dict(lw=1.8), "●": dict(ls="", marker="o"), "○": dict(ls="", marker="o", mfc="white")}


class Passage(str):
    """A text to be read among the numbers of a figure, in a row of its own. The character at `mark` stands out."""

    mark: int | None

    def __new__(cls, text: str, mark: int | None = None) -> Passage:
        made = super().__new__(cls, text)
        made.mark = mark
        return made

    def printable(self) -> str:
        """On one line, whatever it holds; no longer and no shorter."""
        return "".join(letter if letter.isprintable() else "⏎" if letter == "\n" else "␣" for letter in self)


@dataclass(frozen=True)
class Panel:
    """What does not change: where the axes lie (as a share of the figure: left, bottom, width, height), their texts."""

    place: tuple[float, float, float, float]
    title: str
    xlabel: str
    ylabel: str
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    xticks: tuple[float, ...]
    yticks: tuple[float, ...]
    yticklabels: tuple[str, ...] | None = None
    legend: tuple[tuple[str, str, str], ...] = ()  # (mark, text, colour); a mark is one of MARKS
    xticklabels: tuple[str, ...] | None = None


@dataclass
class Line:
    """Dots where `dot` (their radius in points) is not 0; hollow if not `filled`. No line if `width` is 0."""

    panel: int
    x: np.ndarray
    y: np.ndarray
    colour: str
    width: float = 1.3
    dot: float = 0.0
    filled: bool = True
    dashes: bool = False
    opacity: float = 1.0


@dataclass
class LiveFigure:
    size: tuple[float, float]  # inches
    panels: tuple[Panel, ...]
    lines: list[Line] = field(default_factory=list)
    texts: list[tuple[int, float, float, str, str]] = field(default_factory=list)  # panel, x, y, text, colour

    def add_line(self, panel: int, x: ArrayLike, y: ArrayLike, colour: str, **how: Any) -> None:
        self.lines.append(Line(panel, np.asarray(x, float), np.asarray(y, float), colour, **how))

    def add_text(self, panel: int, x: float, y: float, text: str, colour: str) -> None:
        """A text whose upper edge has its middle at (x, y), which may lie outside the panel."""
        self.texts.append((panel, x, y, text, colour))

    def get_figheight(self) -> float:
        return self.size[1]

    def svg(self) -> str:
        """As an <svg> element."""
        marks = [mark for line in self.lines for mark in self._marks(line)]
        for panel, x, y, text, colour in self.texts:
            (at_x,), (at_y,) = self._points(panel, np.array([x]), np.array([y]))
            style = f'text-anchor="middle" font-family="sans-serif" font-size="11" fill="{colour}"'
            for i, row in enumerate(text.split("\n")):
                marks.append(f'<text x="{at_x:.1f}" y="{at_y + 9 + 14 * i:.1f}" {style}>{html.escape(row)}</text>')
        return frame(self.size, self.panels).replace("</svg>", "\n".join([*marks, "</svg>"]))

    def _points(self, panel: int, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Data to points of the SVG, whose y axis points down."""
        p = self.panels[panel]
        left, bottom, width, height = p.place
        share_x = (x - p.xlim[0]) / (p.xlim[1] - p.xlim[0])
        share_y = (y - p.ylim[0]) / (p.ylim[1] - p.ylim[0])
        wide, high = (POINTS * inches for inches in self.size)
        return wide * (left + width * share_x), high * (1 - bottom - height * share_y)

    def _marks(self, line: Line) -> list[str]:
        keep = np.isfinite(line.x) & np.isfinite(line.y)
        p = self.panels[line.panel]  # what lies outside is put on the edge
        xs, ys = self._points(line.panel, np.clip(line.x[keep], *p.xlim), np.clip(line.y[keep], *p.ylim))
        pairs = [f"{x:.1f},{y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
        marks = []
        if line.width and len(pairs) > 1:
            dashes = ' stroke-dasharray="4 3"' if line.dashes else ""
            style = f'fill="none" stroke="{line.colour}" stroke-width="{line.width}" opacity="{line.opacity}"{dashes}'
            marks.append(f'<polyline points="{" ".join(pairs)}" {style}/>')
        if line.dot:
            fill = line.colour if line.filled else "white"
            style = f'r="{line.dot}" fill="{fill}" stroke="{line.colour}"'
            for pair in pairs:
                x, y = pair.split(",")
                marks.append(f'<circle cx="{x}" cy="{y}" {style}/>')
        return marks

    @styled
    def still(self) -> Figure:
        """The same through matplotlib."""
        figure, axes = _axes(self.size, self.panels)
        for line in self.lines:
            keep = np.isfinite(line.x) & np.isfinite(line.y)
            p = self.panels[line.panel]
            axes[line.panel].plot(
                np.clip(line.x[keep], *p.xlim),
                np.clip(line.y[keep], *p.ylim),
                color=line.colour,
                lw=line.width,
                ls="--" if line.dashes else "-",
                marker="o" if line.dot else "",
                ms=2 * line.dot,
                mfc=line.colour if line.filled else "white",
                alpha=line.opacity,
                clip_on=False,
                solid_capstyle="butt",  # as SVG draws them
                zorder=3,
            )
        for panel, x, y, text, colour in self.texts:
            axes[panel].text(x, y, text, color=colour, ha="center", va="top")
        return figure


def _axes(size, panels) -> tuple[Figure, list]:
    figure = Figure(figsize=size)
    axes_of_panels = []
    for p in panels:
        axes = figure.add_axes(p.place)
        axes.set(xlabel=p.xlabel, xlim=p.xlim, ylim=p.ylim)
        axes.set_xticks(p.xticks, p.xticklabels)
        axes.set_yticks(p.yticks, p.yticklabels)
        axes.set_ylabel(p.ylabel, labelpad=4)
        axes.set_title(p.title, fontsize=11)
        axes_of_panels.append(axes)
    named = [entry for p in panels for entry in p.legend]
    if named:
        handles = [Line2D([], [], color=colour, label=text, **MARKS[mark]) for mark, text, colour in named]
        figure.legend(handles=handles, loc="lower center", ncols=3, fontsize=9.5, borderaxespad=0.2)
    return figure, axes_of_panels


@cache
@styled
def frame(size: tuple[float, float], panels: tuple[Panel, ...]) -> str:
    """The axes of all panels as an <svg> element, drawn once."""
    text = io.StringIO()
    _axes(size, panels)[0].savefig(text, format="svg", metadata={"Date": None})
    text = text.getvalue()
    return text[text.index("<svg") :]
