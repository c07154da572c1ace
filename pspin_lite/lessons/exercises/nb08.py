"""Exercises of notebook 08."""

from __future__ import annotations

import torch

from ... import config, costs
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


def steps_to_outweigh_the_head(cfg) -> int:
    """The smallest K with which the attractors of all layers take more flops than the head."""
    head = cfg.width * cfg.vocab  # leaving out what is common to both: 2 flops, T tokens
    K = 0
    while cfg.layers * cfg.inner * (3 * cfg.width + 2 * K * cfg.inner) <= head:
        K += 1
    return K


def grade_steps(answer) -> None:
    for name, vocab, K in (("subword-paper", 49152, 2), ("byte-paper", 256, 0), ("subword-paper", 200_000, 7)):
        cfg = config.preset(name).replace(vocab=vocab)
        expect(f"K of {name} with {vocab:,} tokens", answer(cfg), K, 0)
        after = costs.flops(cfg.replace(micro_steps=K))
        assert after.attractor > after.head


def longest(cfg, budget: int) -> int:
    """The longest sequence, in whole chunks, of which the activations of all blocks take at most `budget` bytes."""
    D, I, C, H, d = cfg.width, cfg.inner, cfg.chunk, cfg.heads, cfg.head_width
    per_token = 3 * I + 3 * D + 2 * C * H + H + D * d / C + 2 * (3 * D + 1) + 2 * D
    rounded_weights = 2 * D * I + 2 * I**2 + 2 * I
    tokens = (budget / 4 / cfg.layers - rounded_weights) / per_token
    return max(0, int(tokens // C)) * C


def grade_longest(answer) -> None:
    for name, T in (("byte-paper", 2048), ("byte-paper", 128), ("subword-paper", 1024)):
        cfg = config.preset(name)
        budget = cfg.layers * sum(costs.saved_bytes(cfg, tokens=T).values())
        expect(f"tokens of {name} for {budget:,} bytes", answer(cfg, budget), T, 0)
        expect(f"tokens of {name} for {budget - 1:,} bytes", answer(cfg, budget - 1), T - cfg.chunk, 0)
    expect(
        "tokens of byte-paper for 1 MiB, less than its rounded weights",
        answer(config.preset("byte-paper"), 2**20),
        0,
        0,
    )


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
        "Write the count of section 5 as a function of I and search upwards; or solve the quadratic equation and "
        "round down.",
    ),
    "8.2": Exercise(
        grade_merge,
        merge,
        "The common maximum is the larger of the two. A sum relative to another maximum changes by exp(m_old - m_new).",
    ),
    "8.3": Exercise(
        grade_steps,
        steps_to_outweigh_the_head,
        "Per token: L * 2 I (3 D + 2 K I) against 2 D N. Count K up from 0 until the first is larger.",
    ),
    "8.4": Exercise(
        grade_longest,
        longest,
        "Take the rounded weights from the budget of one block, divide what is left by the bytes per token, and round "
        "down to whole chunks.",
    ),
    "8.5": Exercise(
        grade_mlp_width,
        mlp_width,
        "Subtract embedding, norms and attention (queries and outputs 512 x 512, keys and values 512 x 64 per head). "
        "What is left must be layers * matrices * 512 * width.",
    ),
}
