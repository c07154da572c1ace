"""The exercises of the notebooks: how they are graded, their hints, their solutions. One module a notebook.

In a notebook an exercise is a function to fill in and a call of `lesson.exercise("1.2", function)`. Its module
(nb01.py) has, under the same number, a grader that raises AssertionError with a helpful sentence, a hint, a solution:

    EXERCISES = {"1.2": Exercise(grade_half_life, half_life, "Solve decay**t = 1/2 for t.")}

The tests run every solution through its grader, and every stub of the notebooks, which must not pass.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .. import checks


@dataclass(frozen=True)
class Exercise:
    grade: Callable[[Callable], None]  # takes the reader's function
    solution: Callable
    hint: str


def everything() -> dict[str, Exercise]:
    """All exercises by number: "1.2" is the second of notebook 01."""
    found: dict[str, Exercise] = {}
    for module in pkgutil.iter_modules(__path__):
        found |= importlib.import_module(f".{module.name}", __name__).EXERCISES
    return found


def find(number: str) -> Exercise:
    known = everything()
    return known[checks.choice("number", number, known)]


def expect(what: str, found, expected, tolerance: float = 1e-5) -> None:
    """Raises unless `found` is `expected` within `tolerance` of its largest entry. Says nothing if it is."""
    assert found is not None, f"{what} is None: is there a `return`?"
    found, expected = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (found, expected))
    assert found.shape == expected.shape, f"{what} has the shape {list(found.shape)}, not {list(expected.shape)}"
    error = (found - expected).abs().max().item() / max(expected.abs().max().item(), 1e-300)
    assert error <= tolerance, f"{what} is off by {error:.1e} of its largest entry"
