"""What the records of the study say (store.py keeps them), as the ledger, the notebooks and the README read it.

Functions take the names of a group and of an arm in it (networks.py); a try is a short run that chose the arm's
learning rate.
"""

from __future__ import annotations

import math
import statistics
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from .. import _checks as checks
from .. import _files as files
from . import intervals, networks
from . import store as stores
from .intervals import Difference, Spread
from .store import Store
from .store import using as using

SPLITS = ("held-out", "recent")  # both decide
SPLIT = "held-out"  # whole speeches, spread over the years, that no model was trained on
T_95 = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}  # two-sided 5% point of Student's t, by number of pairs


def store() -> Store:
    """The one that is read. An error if it has no folder: an installed package has no records."""
    if not stores.current().exists():
        raise files.FileError(
            "there are no records here: they are in notebooks/records of a checkout of the project; "
            "`ledger CLAIM --records FOLDER`, or records.prefer(FOLDER), names another place"
        )
    return stores.current()


def prefer(folder: str | Path | None) -> None:
    """Puts the records in `folder` in the place of the stored ones of the same name; all others stay. For example

        records.prefer("runs/experiments/again/records")  # what `experiments NAME --again` has written
        records.prefer(None)                              # the stored ones again

    What was chosen and what is still to be run (jobs.py) is decided by the stored records, whatever is preferred."""
    stores.use(Store(*stores.current().folders, preferred=folder))


def preferred() -> Path | None:
    return stores.current().preferred


def is_preferred(name: str) -> bool:
    """Whether that record is read from the preferred folder."""
    return store().is_preferred(name)


def noted() -> AbstractContextManager[set[str]]:
    """The names of all records that are read meanwhile."""
    return stores.current().noted()


def read(name: str) -> dict:
    """GROUP/ARM/RUN -> its record. Not to be written to."""
    return store().read(name)


def has(name: str) -> bool:
    return name in store()


def names(prefix: str = "") -> list[str]:
    """Of all records, or of those of a GROUP or of GROUP/ARM."""
    return store().names(prefix)


def score(record: dict) -> float:
    """Mean bits per byte over the validation splits; infinite if the run left the finite numbers."""
    if record["summary"] is None:
        return math.inf
    return statistics.mean(split["bits_per_byte"] for split in record["summary"]["validation"].values())


def seeds(group: str, arm: str) -> dict[int, dict]:
    """Seed -> record, of the full runs that are there."""
    networks.arm(group, arm)
    return {n: read(name) for n in networks.SEEDS if has(name := f"{group}/{arm}/seed-{n}")}


def tries(group: str, arm: str) -> dict[str, dict]:
    """RATE and SCALE of a short run, as in its name -> record."""
    runs = {name.rpartition("/")[2]: name for name in names(f"{group}/{arm}")}
    return {run: read(name) for run, name in runs.items() if run.startswith("try-")}


def rates(group: str, arm: str, scale: float = networks.SCALES[0]) -> dict[float, float]:
    """Learning rate -> mean bits per byte of the tries whose matrices start at that scale."""
    models = [(record["config"]["model"], record) for record in tries(group, arm).values()]
    return dict(sorted((model["lr"], score(record)) for model, record in models if model["gain"] == scale))


def missing(*names: str) -> list[str]:
    """Of GROUP/ARM, the full runs that are not there."""
    runs = (f"{name}/seed-{n}" for name in names for n in networks.arm(*name.split("/")).seeds)
    return [run for run in runs if not has(run)]


def failed(*names: str) -> list[str]:
    """Of GROUP/ARM, the full runs that left the finite numbers."""
    runs = (f"{name}/seed-{n}" for name in names for n in networks.SEEDS)
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


def difference(a: dict[int, float], b: dict[int, float]) -> Difference:
    """From the pairs of runs with the same seed alone: what two networks tell without a group around them. Verdicts
    rest on `compare`."""
    each = np.array([a[n] - b[n] for n in a if n in b])
    if len(each) < 2:
        return Difference(float(each.mean()) if len(each) else math.nan, math.inf, len(each))
    return Difference(float(each.mean()), float(T_95[len(each)] * each.std(ddof=1) / math.sqrt(len(each))), len(each))


def group_spread(group: str, split: str = SPLIT) -> Spread:
    """Of bits per byte, over the networks of a group that have all their full runs. It is not noted as read: a claim
    is about the networks that it compares."""
    with using(preferred=preferred()):
        every = [bits(group, arm.name, split) for arm in networks.GROUPS[group]]
    return intervals.pooled(runs for runs in every if len(runs) == len(networks.SEEDS))


def compare(one: tuple[str, str], other: tuple[str, str], split: str = SPLIT, family: int = 1) -> Difference:
    """The difference of two networks, each given by group and name, in final bits per byte. Its interval is from the
    variance within networks, pooled over their groups (intervals.py)."""
    a, b = bits(*one, split), bits(*other, split)
    spread, others = group_spread(one[0], split), group_spread(other[0], split)
    return intervals.difference(a, b, spread, None if one[0] == other[0] else others, family)


def row(group: str, arm: str, split: str = SPLIT) -> dict[str, float] | None:
    """A row of the paper's table, means over the seeds that are there; None if there are none."""
    runs = [record for record in seeds(group, arm).values() if record["summary"]]
    if not runs:
        return None
    ends = [record["summary"]["validation"][split] for record in runs]
    model = runs[0]["config"]["model"]
    return dict(
        batch=model["batch"],
        sequences=model["batch"] * model["steps"],
        seconds=seconds_a_step(group, arm),
        nats=float(np.mean([end["nats_per_token"] for end in ends])),
        bits=float(np.mean([end["bits_per_byte"] for end in ends])),
        seeds=len(runs),
    )


def curve(record: dict, split: str = SPLIT) -> tuple[np.ndarray, np.ndarray]:
    """(steps, bits per byte) of the validations at intervals, on a part of the split (jobs.FULL)."""
    checks.choice("split", split, dict.fromkeys(one["split"] for one in record["validation"]))
    points = [(one["step"], one["bits_per_byte"]) for one in record["validation"] if one["split"] == split]
    steps, values = zip(*points, strict=True)
    return np.array(steps), np.array(values)


def by_context(group: str, arm: str) -> tuple[list[int], np.ndarray]:
    """Tokens of context, and nats per token [seeds, contexts] of the same held-out targets from no more than that."""
    runs = [record["context"] for record in seeds(group, arm).values()]
    return runs[0]["context"], np.array([run["nats"] for run in runs])


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
    seconds = read("step-times")["seconds"]
    return seconds[checks.choice("arm", f"{group}/{arm}", seconds)]
