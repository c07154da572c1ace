"""How the notebooks talk with their reader: checks that raise, guesses beside results, figures with a description,
exercises that are graded.

Texts print rounded numbers only, so that a notebook's outputs are the same on another machine.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable

from IPython.display import Image, Markdown, display
from matplotlib.figure import Figure

from . import exercises


def check(what: str, found, expected, tolerance: float = 1e-6) -> None:
    """Raises unless `found` is `expected` within `tolerance` of its largest entry; says so if it is."""
    exercises.expect(what, found, expected, tolerance)
    print(f"✓ {what} (within {tolerance:.0e})")


def compare(guess: float, result: float, unit: str = "", digits: int = 0) -> None:
    """The reader's guess beside the result."""
    print(f"you said {guess:g}{unit}, it is {result:.{digits}f}{unit}")


def show(figure: Figure, alt: str) -> None:
    """Displays a figure as a picture with a description for those who cannot see it."""
    if not alt.strip():
        raise ValueError("alt: got nothing, expected a description of what the figure shows")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    display(Image(picture.getvalue(), alt=alt, width=int(figure.get_figwidth() * 100)))


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
        print(f"exercise {number}: yours to solve. hint({number!r}) helps, solution({number!r}) tells")
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
    found = exercises.find(number).solution
    code = inspect.getsource(getattr(found, "fn", found))  # of a kernel: the function beneath it
    display(Markdown(f"```python\n{code}```"))
