"""Counts that learn a text sequence by sequence, and may fade (notebook 14).

The counting model of probes.py, of one order. Before it learns a sequence, it predicts it. With a half-life, all older
counts lose the same share at every sequence, or whatever a reader's own function takes from them; m, the number of
different bytes seen after a context, does not fade.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..data.sequences import Packed
from .probes import grams

ORDER, END = 4, 255


@dataclass(frozen=True)
class Course:
    online: np.ndarray  # [sequences]: bits per byte of each before it is learned
    steps: np.ndarray  # [tests]: sequences learned
    bits: np.ndarray  # [splits, tests]: bits per byte
    entries: int  # of all tables in the end


def windows(splits: Mapping[str, Packed], number: int) -> dict[str, np.ndarray]:
    """[number, T + 1] of each split, spread over it: what a network is tested on."""
    pieces = {name: split.windows(number) for name, split in splits.items()}
    return {
        name: np.stack([np.append(tokens[0, :1], targets[0]) for tokens, targets in rows]).astype(np.uint8)
        for name, rows in pieces.items()
    }


class _Counts:
    """Of one order. Everything that occurs gets a number beforehand, so that counts are entries of an array."""

    def __init__(self, seen: np.ndarray, tests: np.ndarray, n: int):
        every = np.concatenate([grams(seen, n + 1), grams(tests, n + 1)])
        entries, entry = np.unique(every, return_inverse=True)
        contexts, context = np.unique(entries & ~np.uint64(255), return_inverse=True)
        self.entry = entry.reshape(every.shape)
        self.context = context[self.entry]
        self.times, self.total = np.zeros(len(entries)), np.zeros(len(contexts))
        self.different = np.zeros(len(contexts))

    def mixed(self, rows: slice | int, shorter: np.ndarray, weight: float) -> np.ndarray:
        """Probabilities of the bytes, from those of the order below; `weight` is what a new count adds."""
        entry, context = self.entry[rows], self.context[rows]
        m = weight * self.different[context]
        p = (self.times[entry] + m * shorter) / np.where(m > 0, self.total[context] + m, 1)
        return np.where(m > 0, p, shorter)

    def add(self, row: int, weight: float) -> None:
        entry, context = self.entry[row], self.context[row]
        entries, first = np.unique(entry, return_index=True)
        np.add.at(self.different, context[first[self.times[entries] == 0]], 1)
        np.add.at(self.times, entry, weight)
        np.add.at(self.total, context, weight)

    def fade(self, update: Callable[[np.ndarray], np.ndarray]) -> None:
        self.times, self.total = update(self.times), update(self.total)


def learn(
    seen: np.ndarray,
    tests: Mapping[str, np.ndarray],
    half_life: float = math.inf,
    every: int = 400,
    order: int = ORDER,
    fade: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Course:
    """seen: [sequences, T + 1], learned one after the other; tests: [windows, T + 1] of each split, predicted after
    `every` so many sequences. half_life: the number of sequences after which a count is worth half. fade: what becomes
    of all counts after each sequence; instead of a half-life, and slower."""
    if len(seen) / half_life > 900:
        raise ValueError(f"half_life: got {half_life:g}, expected at least {math.ceil(len(seen) / 900)}")
    heard = np.concatenate(list(tests.values()))
    tables = [_Counts(seen, heard, n) for n in range(order + 1)]
    later = slice(len(seen), None)

    def bits(rows: slice | int, weight: float) -> np.ndarray:
        p = np.full((*np.shape(tables[0].entry[rows])[:-1], seen.shape[1]), 1 / 256)
        for n, table in enumerate(tables):
            p[..., n:] = table.mixed(rows, p[..., n:], weight)
        return -np.log2(p[..., 1:])  # the first byte is context alone

    online, after, growth = [], [], 2 ** (1 / half_life)
    for i in range(len(seen)):
        weight = growth**i  # instead of making old counts smaller
        online.append(bits(i, weight).mean())
        for table in tables:
            table.add(i, weight)
            if fade is not None:
                table.fade(fade)
        if (i + 1) % every == 0:
            after.append(bits(later, growth ** (i + 1)))
    sizes = [(rows[:, 1:] != END).sum() for rows in tests.values()]
    ends = np.cumsum([len(rows) for rows in tests.values()])[:-1]
    scores = [[part.sum() / size for part, size in zip(np.split(one, ends), sizes, strict=True)] for one in after]
    steps = np.arange(1, len(after) + 1) * every
    return Course(np.array(online), steps, np.array(scores).T, sum(int((t.times > 0).sum()) for t in tables))
