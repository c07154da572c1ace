"""Exercises of notebook 11."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from ... import transformer
from . import Exercise, expect


def lead(subword_nats: list[float], byte_nats: list[float], size: int) -> float:
    """What the bytes cost more, in bits, over all the bytes of the text."""
    return (sum(byte_nats) - sum(subword_nats)) / math.log(2) / size


def grade_lead(answer) -> None:
    bit = math.log(2)
    expect("8 bits against 12, over 4 bytes: 1 ahead", answer([8 * bit], [3 * bit] * 4, 4), 1.0)
    expect("more nats per token, and ahead", answer([3.0, 3.0], [1.0] * 8, 8), 0.25 / bit)
    expect("an end token costs nats and is no byte", answer([2.0, 3.0, 0.5], [0.5] * 5 + [1.0], 5), -0.4 / bit)


def rotate_pair(a: float, b: float, t: int, rate: float) -> tuple[float, float]:
    """The point (a, b), rotated by t * rate radians."""
    cos, sin = math.cos(t * rate), math.sin(t * rate)
    return a * cos - b * sin, a * sin + b * cos


def grade_rotation(answer) -> None:
    expect("a quarter turn of (1, 0)", answer(1.0, 0.0, 1, math.pi / 2), (0.0, 1.0))
    expect("position 0: no rotation", answer(0.3, -0.7, 0, 1.0), (0.3, -0.7))
    x = torch.randn(1, 1, 6, 4, generator=torch.Generator().manual_seed(0))
    whole = transformer.rotate(x, 0, 100.0)[0, 0, 5]
    for i, rate in ((0, 1.0), (1, 100.0**-0.5)):
        a, b = x[0, 0, 5, i].item(), x[0, 0, 5, i + 2].item()
        expect(f"pair {i} of a head of width 4 at position 5", answer(a, b, 5, rate), whole[[i, i + 2]], 1e-4)


def attend_once(q, k, v):
    """Softmax of the scores over all keys, then the mean of the values with those weights."""
    return torch.softmax(k @ q / q.shape[-1] ** 0.5, 0) @ v


def grade_once(answer) -> None:
    one = torch.tensor([[2.0, 3.0]])
    expect("a single token attends to itself", answer(torch.tensor([1.0, 0]), one, one), one[0])
    generator = torch.Generator().manual_seed(1)
    for t, d in ((2, 2), (7, 16)):
        q, k, v = torch.randn(3, t, d, generator=generator)
        whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        expect(f"the last of {t} tokens, width {d}", answer(q[-1], k, v), whole[-1], 1e-4)
    large = torch.tensor([[100.0, 0], [0, 100.0]])
    expect("large scores", answer(torch.tensor([100.0, 0]), large, torch.eye(2)), torch.tensor([1.0, 0]))


EXERCISES = {
    "11.1": Exercise(
        grade_once,
        attend_once,
        "Scores are k @ q over the root of d; torch.softmax(scores, 0) are the weights; no mask is needed.",
    ),
    "11.2": Exercise(
        grade_lead,
        lead,
        "Add up the nats of each list first. Then turn the difference into bits and divide by the bytes.",
    ),
    "11.3": Exercise(
        grade_rotation,
        rotate_pair,
        "The angle is t * rate; the first coordinate is a cos - b sin, the second a sin + b cos.",
    ),
}
