"""Exercises of notebook 00."""

from __future__ import annotations

import torch

from . import Exercise, expect


def decay_for_half_life(tokens: float) -> float:
    """The decay with which half of a token is left after `tokens` others."""
    return 0.5 ** (1 / tokens)


def grade_decay(answer) -> None:
    for tokens in (1, 10, 69, 1000):
        expect(f"what is left after {tokens} tokens", answer(tokens) ** tokens, 0.5)


def ternary(W: torch.Tensor) -> torch.Tensor:
    """W rounded to -s, 0, s."""
    s = W.abs().mean()
    return (W / s).round().clamp(-1, 1) * s


def grade_ternary(answer) -> None:
    expect("[0.3, -0.1, 2, -1.6]", answer(torch.tensor([0.3, -0.1, 2.0, -1.6])), [0.0, 0, 1, -1])
    expect("twice as much", answer(torch.tensor([0.6, -0.2, 4.0, -3.2])), [0.0, 0, 2, -2])


def one_spin(drive: float, coupling: float, gamma: float, steps: int) -> float:
    """The spin after `steps` steps, its gate wide open."""
    y = torch.tensor(float(drive)).tanh()
    for _ in range(steps):
        y = torch.tanh(drive + coupling * gamma * y)
    return y.item()


def grade_one_spin(answer) -> None:
    expect("Y_0 with drive 1", answer(1.0, 1.0, 0.5, 0), 0.761594)
    expect("Y_5 with drive 1, coupling 1, gamma 0.5", answer(1.0, 1.0, 0.5, 5), 0.895205, 1e-4)
    y = torch.tensor(answer(0.3, -1.0, 0.5, 40))
    expect("Y_40 with drive 0.3, coupling -1, gamma 0.5, after one more step", torch.tanh(0.3 - 0.5 * y), y, 1e-4)


EXERCISES = {
    "0.1": Exercise(grade_decay, decay_for_half_life, "decay ** tokens = 1/2, so log(decay) = log(1/2) / tokens."),
    "0.2": Exercise(
        grade_ternary, ternary, "s is the mean of |W|; divide by it, round, clamp, and multiply by s again."
    ),
    "0.3": Exercise(grade_one_spin, one_spin, "Start from tanh(drive). A step is tanh(drive + coupling * gamma * y)."),
}
