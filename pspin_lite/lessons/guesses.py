"""Results that readers of notebook 02 guess first, so that the cell of a guess does not spell it out."""

from __future__ import annotations

from collections.abc import Sequence


def state_after(h: float, decays: Sequence[float]) -> float:
    """A state of one number, after tokens with these decays whose keys and values are 1."""
    for decay in decays:
        h = decay * h + 1
    return h
