"""How the notebooks talk with their reader: checks that raise, guesses beside results, figures with a description,
exercises that are graded.

Texts print rounded numbers only, so that a notebook's outputs are the same on another machine. matplotlib, IPython and
Pillow are imported where they are needed.
"""

from __future__ import annotations

import base64
import html
import inspect
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import exercises

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(what: str, result: object, expected: object, tolerance: float = 1e-6) -> None:
    """Raises unless `result` is `expected` within `tolerance` of its largest entry; says so if it is."""
    exercises.expect(what, result, expected, tolerance)
    print(f"✓ {what} (within {tolerance:.0e})")


def compare(guess: float | str | None, result: float | str, unit: str = "", digits: int = 0) -> None:
    """The reader's guess beside the result, a number or a text, which is not told before there is a guess."""
    text = isinstance(result, str)
    if guess is None:
        print(f"no guess yet: type {'an answer' if text else 'a number'} in place of None and run the cell again")
    elif text:
        print(f"you said {guess!r}, it is {result!r}")
    else:
        print(f"you said {guess:g}{unit}, it is {result:.{digits}f}{unit}")


def show(figure: Figure, alt: str) -> None:
    """Displays a figure as a picture with a description for those who cannot see it."""
    from IPython.display import HTML, display

    display(HTML(image(figure, alt)))


def image(figure: Figure, alt: str) -> str:
    """The picture as an <img> element, because JupyterLab shows an IPython Image without its alt text."""
    if not alt.strip():
        raise ValueError("alt: got nothing, expected a description of what the figure shows")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    source = base64.b64encode(reduce_colours(picture.getvalue())).decode()
    width = int(figure.get_figwidth() * 100)
    return f'<img alt="{html.escape(alt)}" width="{width}" src="data:image/png;base64,{source}">'


def reduce_colours(png: bytes, colours: int = 256) -> bytes:
    """A PNG with a palette: a third of the size. A picture with transparent parts is returned as it is.

    The palette covers all colours of a picture evenly, so that a heat map's few dark cells keep theirs.
    """
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    if picture.getchannel("A").getextrema()[0] < 255:
        return png
    cover = Image.Quantize.MAXCOVERAGE
    palette = picture.convert("RGB").quantize(colours, method=cover, kmeans=1, dither=Image.Dither.NONE)
    smaller = io.BytesIO()
    palette.save(smaller, format="png", optimize=True)
    return smaller.getvalue()


class Verdict:
    """True or false, and nothing to display: a cell that ends in one prints no more than the verdict's sentence, also
    where a final semicolon does not silence it (nbval runs cells without a history)."""

    def __init__(self, passed: bool):
        self.passed = passed

    def __bool__(self) -> bool:
        return self.passed

    def _ipython_display_(self) -> None:
        pass


def exercise(number: str, answer: Callable) -> Verdict:
    """Grades the reader's function. An unsolved one is no error: a notebook runs to its end without the reader."""
    try:
        exercises.find(number).grade(answer)
    except NotImplementedError:
        print(f"exercise {number}: yours to solve. hint({number!r}) helps, solution({number!r}) shows ours")
        return Verdict(False)
    except Exception as error:  # whatever the reader's code does, the notebook goes on
        print(f"exercise {number}: not yet. {type(error).__name__}: {error}")
        return Verdict(False)
    print(f"✓ exercise {number}")
    return Verdict(True)


def hint(number: str) -> None:
    print(exercises.find(number).hint)


def solution(number: str) -> None:
    """Shows the code of a solution."""
    source(exercises.find(number).solution)


def source(*things: Callable, summary: str = "") -> None:
    """Shows the code of functions and classes as it is in its file; folded beneath a `summary`, if there is one."""
    from IPython.display import Markdown, display

    code = "\n\n".join(inspect.getsource(getattr(thing, "fn", thing)) for thing in things)  # fn: beneath a kernel
    shown = f"```python\n{code}```"
    folded = f"<details><summary>{html.escape(summary)}</summary>\n\n{shown}\n\n</details>"
    display(Markdown(folded if summary else shown))
