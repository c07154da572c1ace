"""Widgets for the notebooks: sliders over a pure function that gives a figure and numbers.

    explorer = Explorer(draw, "attractor", K=IntSlider(value=5, max=20), gamma=FloatSlider(value=0.5, max=1))
    explorer.show(alt)

`draw(K=.., gamma=..)` -> (figure, numbers): a matplotlib Figure, or a LiveFigure, which is quicker; and a dict of names
and values for the table beneath it. It knows nothing of widgets, so that tests call it without a front end.

A figure is sent as SVG text into an HTML widget whose height is fixed: no flicker, no jump. What goes wrong in a
slider's callback appears in no cell of a notebook; here it is shown where the figure was. Readers without a running
kernel (on the web) move the live form that `show` puts beneath the widget, or see a still picture and a table.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Mapping

import ipywidgets as ipw
from IPython.display import HTML, display
from matplotlib.figure import Figure

from . import image, live
from .figures.live import LiveFigure, Passage
from .figures.style import styled

Draw = Callable[..., tuple[Figure | LiveFigure, Mapping[str, object]]]


@styled
def svg(figure: Figure | LiveFigure) -> str:
    """The figure as an <svg> element, without the file's header."""
    if isinstance(figure, LiveFigure):
        return figure.svg()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    text = text.getvalue()
    return text[text.index("<svg") :]


def table(numbers: Mapping[str, object]) -> str:
    """One row, and one more for each Passage; every value has its name in data-name, where browser tests look."""
    passages = {name: value for name, value in numbers.items() if isinstance(value, Passage)}
    cells = "".join(
        f'<td style="padding:0 1.2em 0 0">{html.escape(name)}<br><b data-name="{html.escape(name)}">'
        f"{html.escape(write(value))}</b></td>"
        for name, value in numbers.items()
        if name not in passages
    )
    lines = "".join(
        f'<div style="font-size:90%;margin-left:2px">'
        f'<span style="display:inline-block;width:6em">{html.escape(name)}</span>'
        f'<code data-name="{html.escape(name)}" style="white-space:pre">{_marked(text)}</code></div>'
        for name, text in passages.items()
    )
    return f'<table style="font-size:90%"><tr>{cells}</tr></table>' + lines


def write(value: object) -> str:
    """Texts as they are, numbers with three digits; those of the smallest are rounding errors, and not shown."""
    if isinstance(value, str):
        return value
    return f"< {live.TINY:g}" if 0 < abs(value) < live.TINY else format(value, ".3g")


def _marked(text: Passage) -> str:
    """On one line, so that nothing beneath it moves."""
    shown = list(map(html.escape, text.printable()))
    if text.mark is not None and text.mark < len(shown):
        shown[text.mark] = f"<mark>{shown[text.mark]}</mark>"
    return "".join(shown)


class Explorer(ipw.VBox):
    """Sliders, a figure, a table of numbers. `name` becomes a CSS class."""

    def __init__(self, draw: Draw, name: str, **controls: ipw.ValueWidget):
        self.draw, self.controls = draw, controls
        for label, control in controls.items():
            if not control.description:
                control.description = label
            control.style.description_width = "9em"
            control.layout.width = "32em"
            control.continuous_update = True
            control.observe(self.redraw, "value")
        self.picture, self.numbers = ipw.HTML(), ipw.HTML()
        super().__init__([*controls.values(), self.picture, self.numbers])
        self.add_class(name)
        self.redraw()

    def values(self) -> dict[str, object]:
        return {name: control.value for name, control in self.controls.items()}

    def redraw(self, change: object = None) -> None:
        try:
            figure, numbers = self.draw(**self.values())
            height = figure.get_figheight() * 100
            self.picture.layout.height = f"{height + 10:.0f}px"
            self.picture.value, self.numbers.value = svg(figure), table(numbers)
        except Exception as error:
            self.numbers.value = f'<pre class="widget-error">{html.escape(f"{type(error).__name__}: {error}")}</pre>'

    def show(self, alt: str) -> None:
        """The widget, and beneath it what a reader without a kernel sees: a live form (lessons/live), or a still
        picture. `alt` describes the figure."""
        display(self)
        figure, numbers = self.draw(**self.values())
        at = ", ".join(f"{name} = {value}" for name, value in self.values().items())
        picture = image(figure.still() if isinstance(figure, LiveFigure) else figure, alt)
        still = f"<p><small>A still picture at {html.escape(at)}:</small></p>{picture}{table(numbers)}"
        display(HTML(live.markup(self.draw, self.controls, alt, still)))

    def __repr__(self) -> str:  # what viewers without widgets print
        return f"Explorer of {', '.join(self.controls)}"
