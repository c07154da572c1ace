"""The records of the study (experiments.py), as the ledger, the notebooks and the README read them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from . import arms, checks, experiments, files

SPLIT = "held-out"  # whole speeches, spread over the years, that no model was trained on
T_95 = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}  # two-sided 5% point of Student's t, by number of pairs
_preferred: Path | None = None
_noted: list[set[str]] = []  # a set for each `noted` that is open


def prefer(folder: str | Path | None) -> None:
    """Puts the records in `folder` in the place of the stored ones of the same name; all others stay. For example

        records.prefer("runs/experiments/again/records")  # what `experiments NAME --again` has written
        records.prefer(None)                              # the stored ones again

    Records are read once: call it again after a further repetition. What was chosen and what is still to be run
    (experiments.py) is decided by the stored records, whatever is preferred."""
    global _preferred
    if folder is not None:
        folder = Path(folder).resolve()
        form = "a folder laid out like pspin_lite/records, as `experiments NAME --again` writes it"
        if not folder.is_dir():
            raise checks.wrong("records", f"{folder}, which is no folder", form)
        if not any((experiments.RECORDS / path.relative_to(folder)).exists() for path in folder.rglob("*.json")):
            raise checks.wrong("records", f"{folder} with no record in it that has the name of a stored one", form)
    _preferred = folder
    _parsed.cache_clear()


def preferred() -> Path | None:
    return _preferred


def path(name: str) -> Path:
    """Where a record is read from. One in the preferred folder whose name no stored one has is not looked at."""
    stored = experiments.RECORDS / f"{name}.json"
    other = stored if _preferred is None else _preferred / f"{name}.json"
    return other if stored.exists() and other.exists() else stored


def read(name: str) -> dict:
    """GROUP/ARM/RUN -> its record. Not to be written to."""
    for names in _noted:
        names.add(name)
    return _parsed(path(name))


@cache
def _parsed(path: Path) -> dict:
    return files.read_json(path)


@contextmanager
def noted() -> Iterator[set[str]]:
    """The names of all records that are read meanwhile."""
    _noted.append(set())
    try:
        yield _noted[-1]
    finally:
        _noted.pop()


def has(name: str) -> bool:
    return path(name).exists()


def seeds(group: str, arm: str) -> dict[int, dict]:
    """Seed -> record, of the full runs that are there."""
    arms.arm(group, arm)
    return {n: read(name) for n in arms.SEEDS if has(name := f"{group}/{arm}/seed-{n}")}


def tries(group: str, arm: str) -> dict[str, dict]:
    found = sorted((experiments.RECORDS / group / arm).glob("try-*.json"))
    return {path.stem: read(f"{group}/{arm}/{path.stem}") for path in found}


def rates(group: str, arm: str, scale: float = arms.SCALES[0]) -> dict[float, float]:
    """Learning rate -> mean bits per byte of the tries whose matrices start at that scale."""
    models = [(record["config"]["model"], record) for record in tries(group, arm).values()]
    return dict(sorted((model["lr"], experiments.score(record)) for model, record in models if model["gain"] == scale))


def missing(*names: str) -> list[str]:
    """Of GROUP/ARM, the full runs that are not there."""
    return [run for name in names for n in arms.SEEDS if not has(run := f"{name}/seed-{n}")]


def failed(*names: str) -> list[str]:
    """Of GROUP/ARM, the full runs that left the finite numbers."""
    runs = (f"{name}/seed-{n}" for name in names for n in arms.SEEDS)
    return [run for run in runs if has(run) and read(run)["summary"] is None]


def bits(group: str, arm: str, split: str = SPLIT) -> dict[int, float]:
    """Final bits per byte by seed; infinite if the run left the finite numbers."""
    ends = {n: record["summary"] for n, record in seeds(group, arm).items()}
    return {n: end["validation"][split]["bits_per_byte"] if end else math.inf for n, end in ends.items()}


def mean(values: dict[int, float]) -> float:
    return float(np.mean(list(values.values())))


def spread(values: dict[int, float]) -> float:
    """Standard deviation over seeds."""
    return float(np.std(list(values.values()), ddof=1)) if len(values) > 1 else math.nan


@dataclass(frozen=True)
class Difference:
    """a - b over the seeds that both have; with the same alphabet and batch size they have read the same sequences in
    the same order."""

    mean: float
    half_width: float  # of its 95% interval
    pairs: int

    @property
    def clear(self) -> bool:
        """Zero lies outside the interval."""
        return abs(self.mean) > self.half_width


def difference(a: dict[int, float], b: dict[int, float]) -> Difference:
    each = np.array([a[n] - b[n] for n in a if n in b])
    if len(each) < 2:
        return Difference(float(each.mean()) if len(each) else math.nan, math.inf, len(each))
    return Difference(float(each.mean()), float(T_95[len(each)] * each.std(ddof=1) / math.sqrt(len(each))), len(each))


def row(group: str, arm: str, split: str = SPLIT) -> dict[str, float] | None:
    """A row of the paper's table, means over the seeds that are there; None if there are none."""
    found = [record for record in seeds(group, arm).values() if record["summary"]]
    if not found:
        return None
    ends = [record["summary"]["validation"][split] for record in found]
    model = found[0]["config"]["model"]
    return dict(
        batch=model["batch"],
        sequences=model["batch"] * model["steps"],
        seconds=seconds_a_step(group, arm),
        nats=float(np.mean([end["nats_per_token"] for end in ends])),
        bits=float(np.mean([end["bits_per_byte"] for end in ends])),
        seeds=len(found),
    )


def curve(record: dict, split: str = SPLIT) -> tuple[np.ndarray, np.ndarray]:
    """(steps, bits per byte) of the validations at intervals, on a part of the split (experiments.FULL)."""
    checks.choice("split", split, dict.fromkeys(one["split"] for one in record["validation"]))
    points = [(one["step"], one["bits_per_byte"]) for one in record["validation"] if one["split"] == split]
    steps, values = zip(*points, strict=True)
    return np.array(steps), np.array(values)


def by_context(group: str, arm: str) -> tuple[list[int], np.ndarray]:
    """Tokens of context, and nats a token [seeds, contexts] of the same held-out targets from no more than that."""
    found = [record["context"] for record in seeds(group, arm).values()]
    return found[0]["context"], np.array([one["nats"] for one in found])


def layers(record: dict, name: str) -> np.ndarray:
    """[validations, layers] of "radius", "residual", "gradient_error", "gamma", "zeros_int" or "zeros_ext"."""
    return np.array([one[name] for one in record["attractor"]], float)


def axis(record: dict, steps: np.ndarray, unit: str) -> np.ndarray:
    """Steps as sequences, tokens, bytes of text, flops, or seconds on one thread."""
    model, data = record["config"]["model"], record["data"]["train"]
    a_step = {
        "sequences": lambda: model["batch"],
        "tokens": lambda: model["batch"] * model["context"],
        "text": lambda: model["batch"] * model["context"] * data["bytes"] / data["tokens"],
        "flops": lambda: record["summary"]["flops_a_step"],
        "seconds": lambda: seconds_a_step(*record["command"].split()[-1].split("/")[:2]),
    }
    return steps * a_step[checks.choice("unit", unit, a_step)]()


def seconds_a_step(group: str, arm: str) -> float:
    """Of one thread, all arms in turn (step_times.py): the runs' own clocks do not compare."""
    known = read("step-times")["seconds"]
    return known[checks.choice("arm", f"{group}/{arm}", known)]
