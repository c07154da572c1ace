"""The exercises of the notebooks: how they are graded, their hints, their solutions. One module a notebook.

In a notebook an exercise is a function to fill in and a call of `lesson.exercise("1.2", function)`. Its module
(nb01.py) has, under the same number, a grader that raises AssertionError with a helpful sentence, a hint, a solution:

    EXERCISES = {"1.2": Exercise(grade_half_life, half_life, "Solve decay**t = 1/2 for t.")}

The tests run every solution through its grader, and every stub of the notebooks, which must not pass.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ... import _checks as checks


@dataclass(frozen=True)
class Exercise:
    grade: Callable[[Callable], None]  # takes the reader's function
    solution: Callable
    hint: str


def everything() -> dict[str, Exercise]:
    """All exercises by number: "1.2" is the second of notebook 01."""
    exercises: dict[str, Exercise] = {}
    for module in pkgutil.iter_modules(__path__):
        try:
            exercises |= importlib.import_module(f".{module.name}", __name__).EXERCISES
        except ModuleNotFoundError as error:
            if error.name != "triton":  # published for Linux only
                raise
    return exercises


def find(number: str) -> Exercise:
    """Imports the exercises of one notebook only: those on kernels need Triton, the others do not."""
    name = f"nb{str(number).split('.')[0]:0>2}"
    if name in (module.name for module in pkgutil.iter_modules(__path__)):
        known = importlib.import_module(f".{name}", __name__).EXERCISES
    else:
        known = everything()
    return known[checks.choice("number", number, known)]


def expect(what: str, result: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Raises unless `result` is `expected` within `tolerance` of its largest entry. Says nothing if it is."""
    assert result is not None, f"{what} is None: is there a `return`?"
    result, expected = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (result, expected))
    assert result.shape == expected.shape, f"{what} has the shape {list(result.shape)}, not {list(expected.shape)}"
    error = (result - expected).abs().max().item() / max(expected.abs().max().item(), 1e-300)
    assert error <= tolerance, f"{what} is off by {error:.1e} of its largest entry"


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> None:
    """Launches a reader's kernel. Raises NotImplementedError for a stub, and what went wrong inside, unwrapped."""
    if not hasattr(kernel, "__getitem__"):
        kernel(*args, **constants)
        raise AssertionError("this is a plain function, not a kernel: is there an @triton.jit above it?")
    if "raise NotImplementedError" in inspect.getsource(kernel.fn):
        raise NotImplementedError
    from triton.runtime.errors import InterpreterError

    try:
        kernel[grid](*args, **constants)
    except InterpreterError as error:
        raise error.__cause__ or error from None
