"""Exercises of notebook 09."""

from __future__ import annotations

import math

import numpy as np

from . import Exercise, expect


def characters(raw: bytes) -> int:
    """How many characters begin in a piece of UTF-8, without decoding it."""
    return sum(b & 0b1100_0000 != 0b1000_0000 for b in raw)


def grade_characters(answer) -> None:
    for text in ("state", "café", "déjà vu €5", "😀 ok", ""):
        expect(f"the characters of {text!r}", answer(text.encode()), len(text), 0)
    expect("what begins in the last two bytes of 'é!'", answer("é!".encode()[1:]), 1, 0)


def fair_bytes_per_token(nats_per_token: float, bits_per_byte: float) -> float:
    """The bytes per token at which a subword loss and a byte model's bits per byte are the same."""
    return nats_per_token / (bits_per_byte * math.log(2))


def grade_fair(answer) -> None:
    expect("2 bits per token against 1 bit per byte", answer(2 * math.log(2), 1.0), 2.0)
    expect("the paper's 4.8004 nats against 2.12 bits per byte", answer(4.8004, 2.12), 3.26675, 1e-4)


def never_predicted(epochs: int, size: int, T: int) -> list[int]:
    """Positions of a ribbon of `size` tokens that begin a window of T + 1 tokens in each of the epochs."""
    return [i for i in range(size) if all((i + epoch * size) % (T + 1) == 0 for epoch in range(epochs))]


def grade_never(answer) -> None:
    for epochs, size, T in ((1, 10, 3), (1, 26, 3), (2, 26, 3), (2, 24, 3), (5, 24, 3), (3, 30, 11), (4, 36, 11)):
        targets = np.ones(epochs * size, bool)
        targets[:: T + 1] = False  # the first token of each window
        expected = np.flatnonzero(~targets.reshape(epochs, size).any(0)).tolist()
        result, what = answer(epochs, size, T), f"epochs: {epochs}, tokens: {size}, T = {T}"
        assert result is not None, f"{what}: None: is there a `return`?"
        assert [int(i) for i in result] == expected, f"{what}: {list(result)}, not {expected}"


EXERCISES = {
    "9.1": Exercise(
        grade_characters,
        characters,
        "A byte continues a character if its two highest bits are 10: b & 0b11000000 == 0b10000000.",
    ),
    "9.2": Exercise(
        grade_fair,
        fair_bytes_per_token,
        "Bits per byte of the subword model are nats / ln 2 / bytes per token. Set them equal and solve.",
    ),
    "9.3": Exercise(
        grade_never,
        never_predicted,
        "In epoch e, token i stands at place i + e * size of the endless ribbon. Windows begin at multiples of T + 1.",
    ),
}
