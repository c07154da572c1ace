"""Exercises of notebook 08."""

from __future__ import annotations

import torch

from ... import config
from . import Exercise, expect


def widest(budget: int, vocab: int, D: int, layers: int) -> int:
    """The largest number of spins with which the whole network has at most `budget` parameters."""

    def count(I):
        layer = 5 * D**2 + 2 * D * I + 2 * I**2 + D * I + 2 * D + I
        return vocab * D + layers * layer + D

    I = 0
    while count(I + 1) <= budget:
        I += 1
    return I


def grade_widest(answer) -> None:
    for budget, inner in ((60_963_008, 2048), (60_963_007, 2047), (60_979_000, 2048)):
        expect(f"I for {budget:,} parameters, 256 tokens, D = 704, 4 layers", answer(budget, 256, 704, 4), inner, 0)
    expect("I for 57,719,072 parameters, 49,152 tokens", answer(57_719_072, 49152, 544, 4), 1408, 0)


def merge(first, second):
    """(maximum, sum of exponentials relative to it) of two pieces of logits -> of both together."""
    (m1, s1), (m2, s2) = first, second
    m = torch.maximum(m1, m2)
    return m, s1 * (m1 - m).exp() + s2 * (m2 - m).exp()


def grade_merge(answer) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 30, generator=generator, dtype=torch.float64)
    for scale in (1, 1000):  # 1000: exp alone would overflow
        pieces = []
        for part in (scale * logits).split(10, 1):
            m = part.amax(1)
            pieces.append((m, (part - m[:, None]).exp().sum(1)))
        m, s = answer(answer(pieces[0], pieces[1]), pieces[2])
        expect(f"m + log s, logits of size {scale}", m + s.log(), (scale * logits).logsumexp(1))
        expect(f"m, logits of size {scale}", m, scale * logits.amax(1))


def mlp_width(layers: int, kv_heads: int, matrices: int) -> int:
    """Of the paper's Transformer, from its count of parameters; 0 if no whole number fits."""
    D, d = 512, 64
    layer = 2 * D * (8 + kv_heads) * d + 2 * D + 2 * d  # all but the MLP
    rest = 60_569_600 - 49_152 * D - D - layers * layer
    width, left = divmod(rest, layers * matrices * D)
    return width if width > 0 and left == 0 else 0


def grade_mlp_width(answer) -> None:
    ours = config.preset("transformer-paper")
    for shape, width in (
        ((ours.layers, ours.kv_heads, 3), ours.inner),
        ((12, 1, 2), 2304),
        ((12, 8, 2), 1856),
        ((12, 8, 3), 0),
        ((32, 8, 3), 0),
        ((11, 4, 3), 0),
    ):
        expect("the width for {} layers, {} key-value heads, {} matrices".format(*shape), answer(*shape), width, 0)


EXERCISES = {
    "8.1": Exercise(
        grade_widest,
        widest,
        "Write the count of section 4 as a function of I and search upwards; or solve the quadratic equation and "
        "round down.",
    ),
    "8.2": Exercise(
        grade_merge,
        merge,
        "The common maximum is the larger of the two. A sum relative to another maximum changes by exp(m_old - m_new).",
    ),
    "8.3": Exercise(
        grade_mlp_width,
        mlp_width,
        "Subtract embedding, norms and attention (queries and outputs 512 x 512, keys and values 512 x 64 per head). "
        "What is left must be layers * matrices * 512 * width.",
    ),
}
