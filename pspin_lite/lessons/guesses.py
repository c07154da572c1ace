"""Results that readers of notebooks 01 and 02 guess first, so that the cell of a guess does not spell it out."""

from __future__ import annotations


def break_even(head_width: int) -> float:
    """Tokens after which keys and values, 2 T D numbers, are more than a state of D d."""
    return head_width / 2


def times_read(m: int, tile: int) -> float:
    """How many programs of a tiled m x m product load the same number of the left matrix."""
    return m / tile


def percent_busy(programs: int, multiprocessors: int) -> float:
    return 100 * min(1, programs / multiprocessors)


def percent_wasted(d: int, block: int) -> float:
    """Of a block x block state of which d x d numbers are needed."""
    return 100 * (1 - (d / block) ** 2)


def unfused_over_fused(C: int, d: int) -> float:
    """Numbers moved for one chunk by four operations, over those of one kernel."""
    scores, mask = 2 * C * d + C * C, C + C * C  # operands and result of each operation
    unfused = scores + mask + 3 * C * C + (C * C + 2 * C * d)
    return unfused / (4 * C * d + C)  # q, k, v, g in; o out


def tokens_over_walk(T: int, d: int) -> float:
    """Numbers moved if the state travels at every token, over those of a walk that loads and stores it once."""
    inputs = 4 * T * d + T  # q, k, v, o, g
    return (inputs + 2 * T * d * d) / (inputs + 2 * d * d)
