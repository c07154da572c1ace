"""How the notebooks talk with their reader: checks that raise, guesses beside results, figures with a description.

Texts print rounded numbers only, so that a notebook's outputs are the same on another machine.
"""

from __future__ import annotations

import io

import torch
from IPython.display import Image, display
from matplotlib.figure import Figure


def check(what: str, found, expected, tolerance: float = 1e-6) -> None:
    """Raises unless `found` is `expected` within `tolerance` of its largest entry; says so if it is."""
    found, expected = (torch.as_tensor(x, dtype=torch.float64).detach() for x in (found, expected))
    if found.shape != expected.shape:
        raise AssertionError(f"{what}: shape {list(found.shape)}, expected {list(expected.shape)}")
    error = (found - expected).abs().max().item() / max(expected.abs().max().item(), 1e-300)
    if not error <= tolerance:  # nan is no success
        raise AssertionError(f"{what}: off by {error:.1e} of the largest entry, allowed {tolerance:.0e}")
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
