"""Exercises of notebook 01."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import softplus

from ... import state_space
from . import Exercise, expect


def gate_for(decay: float) -> float:
    """exp(-softplus(gate)) = 1 / (1 + exp(gate)) = decay, solved for the gate's input."""
    return math.log(1 / decay - 1)


def grade_gate(answer) -> None:
    for decay in (0.5, 0.9, 0.999, 0.03):
        gate = torch.as_tensor(answer(decay), dtype=torch.float64)
        expect(f"the decay of a head with gate_for({decay})", torch.exp(-softplus(gate)), decay)


def with_resets(g: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """g with -inf at the first token of every document."""
    starts = torch.tensor([0, *lengths[:-1]]).cumsum(0)
    g = g.clone()
    g[starts] = -torch.inf
    return g


def grade_resets(answer) -> None:
    g = -torch.arange(1.0, 9)
    before = g.clone()
    result = answer(g, [3, 1, 4])
    expect("your argument afterwards", g, before, 0)
    assert result is not None, "with_resets returned None: is there a `return`?"
    expect(
        "exp of g for documents of 3, 1 and 4 tokens", result.exp(), [0, *before[1:3].exp(), 0, 0, *before[5:].exp()]
    )
    q, k, v = torch.randn(3, 1, 8, 1, 4, generator=torch.Generator().manual_seed(0))
    whole, _ = state_space.recurrent(q, k, v, result[None, :, None])
    alone, _ = state_space.recurrent(q[:, 4:], k[:, 4:], v[:, 4:], before[None, 4:, None])
    expect("the last document's answers", whole[:, 4:], alone)


def merge(first: tuple, second: tuple) -> tuple:
    """h -> kept2 (kept1 h + written1) + written2."""
    (kept1, written1), (kept2, written2) = first, second
    return kept1 * kept2, kept2 * written1 + written2


def grade_merge(answer) -> None:
    rng = torch.Generator().manual_seed(0)
    h, w1, w2, w3 = torch.randn(4, 3, 3, generator=rng)
    a, w = answer((0.5, w1), (0.25, w2))
    expect("what the two leave of an old state", a, 0.125)
    expect("the state after both", a * h + w, 0.25 * (0.5 * h + w1) + w2)
    one, two, three = (0.5, w1), (0.25, w2), (0.9, w3)
    left, right = answer(answer(one, two), three), answer(one, answer(two, three))
    expect("three stretches, merged in either order", left[1], right[1])


EXERCISES = {
    "1.1": Exercise(
        grade_gate, gate_for, "exp(-softplus(x)) is 1 / (1 + exp(x)). Set it equal to the decay and solve for x."
    ),
    "1.2": Exercise(
        grade_resets,
        with_resets,
        "A document starts where the lengths of those before it add up to: 0, then a cumulative sum. Clone g first.",
    ),
    "1.3": Exercise(grade_merge, merge, "Put kept1 h + written1 for h in kept2 h + written2. What multiplies h?"),
}
