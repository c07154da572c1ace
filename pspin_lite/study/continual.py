"""Learning a text in the order it was written (the group "continual" of networks.py): what is followed, what is lost.

era          a year whose speech is kept for validation; there is one every twenty years
A[e, s]      bits per byte on era e after s training steps
passed[e]    the share of training by which the text had reached era e
online       bits per byte of every sequence before it is learned, over the whole pass: how well it is followed
forgotten    A[e, end] - min over s of A[e, s]: how much worse an era is in the end than at its best (Chaudhry et
             al. 2018, arXiv:1801.10112, for losses instead of accuracies)
order        A[e, end] after the text in order, minus A[e, end] after the same sequences mixed: what the order costs
lead         A[e, s] after the same number of sequences mixed, minus A[e, s] in order, by the steps since the text has
             reached era e: how soon, how much and how long a time's own text helps
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..data import corpora, sequences
from . import networks, records

GROUP, CORPUS = "continual", "sotu-eras"
WARM = 500  # steps of warm-up: they tell nothing of following
BIN, BINS = 400, range(-4, 5)  # of the lead: steps, as there are between validations; each has seven eras or more
LAST = 1  # eras that hardly any later text could have overwritten: not counted as forgotten or kept


@dataclass(frozen=True)
class Eras:
    years: tuple[str, ...]
    steps: np.ndarray  # [S]
    bits: np.ndarray  # [E,S]: A

    def forgotten(self) -> np.ndarray:
        """[E]"""
        return self.bits[:, -1] - self.bits.min(1)


def eras(record: dict) -> Eras:
    """Of the record of a run."""
    years = tuple(dict.fromkeys(one["split"] for one in record["validation"]))
    curves = [records.curve(record, year) for year in years]
    return Eras(years, curves[0][0], np.stack([bits for _, bits in curves]))


def online(record: dict, start: int = WARM, end: int | None = None) -> float:
    """From step `start` up to `end`. What is replayed is not new and does not count. Bytes only: a nat a token is a
    nat a byte."""
    replays = str(record["data"]["train"]["order"]).startswith("replay")
    return float(np.mean(record["loss"][start : end : 2 if replays else 1]) / math.log(2))


@cache
def passed() -> dict[str, float]:
    """Era -> the share of the training text that was written before it."""
    corpus = corpora.open(CORPUS)
    sizes = [(row["name"][:4], len(row["text"].encode()) + 1) for row in corpus.rows("train")]
    total = sum(size for _, size in sizes)
    return {era: sum(size for year, size in sizes if year < era) / total for era in corpus.splits if era != "train"}


def models() -> tuple[str, ...]:
    """The arms of bytes-1 that learn in time."""
    return tuple(dict.fromkeys(arm.name.rpartition("-")[0] for arm in networks.GROUPS[GROUP]))


def forgotten(model: str, order: str) -> dict[int, float]:
    """Mean over the eras but the last, by seed."""
    runs = records.seeds(GROUP, f"{model}-{order}")
    return {seed: float(eras(record).forgotten()[:-LAST].mean()) for seed, record in runs.items()}


def cost_of_order(model: str, group: str = GROUP) -> dict[int, np.ndarray]:
    """[E] by seed, against the same sequences mixed. What was never learned cannot be forgotten; but then the mixed
    text was not learned either."""
    in_order, mixed = (records.seeds(group, f"{model}-{one}") for one in ("time", "mixed"))
    return {
        seed: eras(in_order[seed]).bits[:, -1] - eras(mixed[seed]).bits[:, -1] for seed in in_order if seed in mixed
    }


def followed(model: str, order: str = "time", group: str = GROUP, **steps: int) -> dict[int, float]:
    """Online bits per byte, by seed."""
    return {seed: online(record, **steps) for seed, record in records.seeds(group, f"{model}-{order}").items()}


def lost_to_order(model: str, group: str = GROUP) -> dict[int, float]:
    """Mean cost of the order over the eras but the last, by seed."""
    return {seed: float(cost[:-LAST].mean()) for seed, cost in cost_of_order(model, group).items()}


def gain_of_order(model: str, start: int = WARM) -> dict[int, float]:
    """Online bits per byte, mixed minus in order, by seed: of the sequences that both orders read after the warm-up."""
    in_order, mixed = (records.seeds(GROUP, f"{model}-{one}") for one in ("time", "mixed"))
    return {seed: _gain(in_order[seed]["loss"], mixed[seed]["loss"], seed, start) for seed in in_order if seed in mixed}


def _gain(in_order: list[float], mixed: list[float], seed: int, start: int) -> float:
    at = np.argsort(sequences.permutation(len(mixed), seed, 0))  # the step at which the mixed order reads each sequence
    both = (np.arange(len(in_order)) >= start) & (at >= start)
    return float((np.array(mixed)[at] - np.array(in_order))[both].mean() / math.log(2))


def lead(model: str) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """(steps since the text has reached an era, the middles of BINS; by seed the mean over the eras in each)"""
    in_order, mixed = (records.seeds(GROUP, f"{model}-{one}") for one in ("time", "mixed"))
    by_seed = {}
    for seed in in_order:
        ordered = eras(in_order[seed])
        ahead = eras(mixed[seed]).bits - ordered.bits  # [E,S]
        reached = np.array([passed()[year] for year in ordered.years]) * ordered.steps[-1]
        bins = (ordered.steps - reached[:, None]) // BIN
        warm = np.broadcast_to(ordered.steps > WARM, bins.shape)
        by_seed[seed] = np.array([ahead[(bins == one) & warm].mean() for one in BINS])
    return BIN * (np.array(BINS) + 0.5), by_seed
