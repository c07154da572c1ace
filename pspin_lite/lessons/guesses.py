"""Results that readers of notebook 02 guess first, so that the cell of a guess does not spell it out."""

from __future__ import annotations

from collections.abc import Sequence


def unfused_over_fused(C: int, d: int) -> float:
    """Numbers moved for one chunk by four operations, over those of one kernel."""
    scores, mask = 2 * C * d + C * C, C + C * C  # operands and result of each operation
    unfused = scores + mask + 3 * C * C + (C * C + 2 * C * d)
    return unfused / (4 * C * d + C)  # q, k, v, g in; o out


def state_after(h: float, decays: Sequence[float]) -> float:
    """A state of one number, after tokens with these decays whose keys and values are 1."""
    for decay in decays:
        h = decay * h + 1
    return h
