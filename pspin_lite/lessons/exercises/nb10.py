"""Exercises of notebook 10."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch

from ... import config
from ...training import recipe
from . import Exercise, expect


def clip(gradients: list, max_norm: float) -> list:
    """All gradients times the same number, so that together they have at most the norm `max_norm`."""
    norm = math.sqrt(sum(g.square().sum().item() for g in gradients))
    scale = min(1.0, max_norm / norm) if norm > 0 else 1.0
    return [g * scale for g in gradients]


def grade_clip(answer) -> None:
    def compare(what, gradients, max_norm, expected):
        result = answer([g.clone() for g in gradients], max_norm)
        assert result is not None, f"{what}: None: is there a `return`?"
        assert len(result) == len(expected), f"{what}: {len(result)} tensors, not {len(expected)}"
        for i, (a, b) in enumerate(zip(result, expected, strict=True)):
            expect(f"{what}: gradient {i}", a, b)

    pair = [torch.tensor([3.0]), torch.tensor([4.0])]
    compare("3 and 4, clipped to 1", pair, 1.0, [torch.tensor([0.6]), torch.tensor([0.8])])
    compare("3 and 4, clipped to 10: nothing to do", pair, 10.0, pair)
    compare("zeros", [torch.zeros(2)], 1.0, [torch.zeros(2)])
    generator = torch.Generator().manual_seed(0)
    several = [torch.randn(shape, generator=generator) for shape in ((4, 3), (5,), (2, 2, 2))]
    norm = torch.cat([g.flatten() for g in several]).norm().item()
    compare("three tensors", several, 0.5, [g * 0.5 / norm for g in several])


def learning_rate(step: int, steps: int, lr: float, warmup: int, cooldown: int, ratio: float) -> float:
    """Linear warm-up, plateau, cosine down to lr * ratio at the last step; steps are counted from 0."""
    if step < warmup:
        return lr * (step + 1) / warmup
    if step < steps - cooldown:
        return lr
    progress = (step + 1 - (steps - cooldown)) / cooldown
    return lr * (ratio + (1 - ratio) * (1 + math.cos(math.pi * progress)) / 2)


def grade_rate(answer) -> None:
    expect("the last step's rate", answer(99, 100, 1.0, 10, 20, 0.1), 0.1)
    expect("the rate half way down the cosine", answer(89, 100, 1.0, 10, 20, 0.1), 0.55)
    cfg = config.preset("byte-paper")
    for step in (0, 249, 499, 500, 6999, 7000, 7499, 7998, 7999):
        result = answer(step, cfg.steps, cfg.lr, cfg.warmup, cfg.cooldown, cfg.min_ratio)
        expect(f"the paper's rate at step {step}", result, recipe.learning_rate(cfg, step))


def order_one(seen: bytes, text: bytes) -> float:
    """Bits per byte of text[1:], each byte predicted from the one before, with counts of pairs in `seen` plus one."""
    counts = np.ones((256, 256))
    a, b = (np.frombuffer(x, np.uint8) for x in (seen, text))
    np.add.at(counts, (a[:-1], a[1:]), 1)
    p = counts / counts.sum(1, keepdims=True)
    return float(-np.log2(p[b[:-1], b[1:]]).mean())


def grade_order_one(answer) -> None:
    expect("nothing seen: 8 bits", answer(b"x", b"abc"), 8.0)
    expect("'ab' seen once, 'ab' to predict: -log2(2/257)", answer(b"ab", b"ab"), -math.log2(2 / 257))
    expect("'aaab' seen, 'aab' to predict", answer(b"aaab", b"aab"), -(math.log2(3 / 259) + math.log2(2 / 259)) / 2)
    seen = b"the state of the union is what the people make of it. " * 20
    text, pairs = b"the people of the union", list(itertools.pairwise(seen))
    bits = [-math.log2((pairs.count(two) + 1) / (seen[:-1].count(two[0]) + 256)) for two in itertools.pairwise(text)]
    expect("a sentence, twenty times", answer(seen, text), sum(bits) / len(bits))


EXERCISES = {
    "10.1": Exercise(
        grade_clip,
        clip,
        "One norm for all: the root of the sum of all squares. Multiply by max_norm / norm only where that is below 1.",
    ),
    "10.2": Exercise(
        grade_rate,
        learning_rate,
        "Three cases. In the last, progress runs from 1/cooldown to 1, and (1 + cos(pi * progress)) / 2 from 1 to 0.",
    ),
    "10.3": Exercise(
        grade_order_one,
        order_one,
        "A table of 256 by 256 ones; add one for each pair of neighbours in `seen`; divide each row by its sum.",
    ),
}
