"""Exercises of notebook 14."""

from __future__ import annotations

import math
import random

import numpy as np

from . import Exercise, expect


def forgotten(A: np.ndarray) -> np.ndarray:
    """[E,S] -> [E]: the last column minus the lowest of each row."""
    return A[:, -1] - A.min(axis=1)


def grade_forgotten(answer) -> None:
    expect("2.6, 2.1, 2.2, 2.5", answer(np.array([[2.6, 2.1, 2.2, 2.5]])), [0.4])
    expect("what only gets better has lost nothing", answer(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 4.0]])), [0.0, 3.0])
    A = np.random.default_rng(0).normal(size=(5, 9))
    expect("random numbers", answer(A), [row[-1] - min(row) for row in A])


def fade(counts: np.ndarray, half_life: float) -> np.ndarray:
    """As many factors as there are sequences in a half-life make 1/2."""
    return counts * 2 ** (-1 / half_life)


def grade_fade(answer) -> None:
    counts = np.array([8.0, 1.0, 0.0])
    expect("8, 1 and 0 with a half-life of one sequence", answer(counts, 1), [4.0, 0.5, 0.0])
    expect("with a half-life of two", answer(counts, 2), counts / math.sqrt(2))
    for _ in range(400):
        counts = answer(counts, 400)
    expect("after 400 sequences with a half-life of 400", counts, [4.0, 0.5, 0.0])


def reservoir(kept: list, n: int, r: int, size: int) -> list:
    """Grow until full; then item n replaces the one at place r, which happens with probability size / (n + 1)."""
    if len(kept) < size:
        return [*kept, n]
    return [*kept[:r], n, *kept[r + 1 :]] if r < size else list(kept)


def grade_reservoir(answer) -> None:
    expect("not full yet", answer([0, 1], 2, 0, 3), [0, 1, 2])
    expect("full, place 1", answer([0, 1, 2], 5, 1, 3), [0, 5, 2])
    expect("full, no such place", answer([0, 1, 2], 5, 4, 3), [0, 1, 2])
    rng, times = random.Random(0), np.zeros(10)
    for _ in range(4000):
        kept: list = []
        for n in range(10):
            kept = answer(kept, n, rng.randint(0, n), 3)
        times[kept] += 1
    expect("after ten items each is there in three of ten cases", times / 4000, np.full(10, 0.3), 0.1)


EXERCISES = {
    "14.1": Exercise(grade_forgotten, forgotten, "A[:, -1] is the end; the best of each era is A.min(axis=1)."),
    "14.2": Exercise(
        grade_fade, fade, "One factor for all counts; multiplied half_life times by itself, it must give 1/2."
    ),
    "14.3": Exercise(
        grade_reservoir, reservoir, "While there is room, append n; then r says which place n takes, if any."
    ),
}
