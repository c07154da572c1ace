"""Runs the study of arms.py, and keeps of every run a small record from which notebooks and README are made.

    python -m pspin_lite experiments --list            what there is, and what is still to do
    python -m pspin_lite experiments                   all that is missing, one run after the other
    python -m pspin_lite experiments bytes-1/p-spin    that arm alone: its tries, then its seeds
    python -m pspin_lite experiments paper/byte-paper  two hours of the paper's byte model; and others (paper_run.py)
    python -m pspin_lite experiments NAME --again      what is on record once more; the records stay as they are

Several processes may work side by side: each takes a run that nobody works on. An interrupted run goes on.
A run's name is GROUP/ARM/try-RATE-SCALE or GROUP/ARM/seed-N; its folder lies under --out, its record under
pspin_lite/records, that of a repetition under again/records of --out (`ledger CLAIM --records FOLDER` measures with
it). Everything is computed on one thread, so that two runs fit two cores and numbers repeat.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from . import arms, checks, evaluation, files, measure, nonfinite, training
from .config import Config
from .language_model import build
from .runs import InUse, Run, in_json

TRIES = len(arms.RATES) + 1
RECORDS = Path(__file__).resolve().parent / "records"
FULL = dict(validate_tokens=4096, final_tokens=131072, micro_batch=16)  # of a full run; probed at each fifth of it
TRY = dict(validate_every=10**9, validate_tokens=1024, final_tokens=131072, micro_batch=16)
CONTEXT_WINDOWS = 512  # of held-out, for the loss by context
SMOKE = dict(validate_tokens=1024, final_tokens=8192)  # in place of the settings above, in the groups of that name


@dataclass(frozen=True)
class Job:
    name: str
    cfg: Config
    settings: dict

    @property
    def record(self) -> Path:
        return RECORDS / f"{self.name}.json"


def jobs(group: str, arm: str) -> Iterator[Job]:
    """Of an arm, as far as they are known: the last try needs those before it, the seeds need all. Last the tries
    beyond the four rates."""
    found, base = arms.arm(group, arm), f"{group}/{arm}"
    if found.tuned_as == "":
        yield _job(f"{base}/seed-{found.cfg.seed}", found.cfg, found.settings)
        return
    tries, beyond = _tries(found.tuned_as or base)
    if found.tuned_as is None:
        yield from tries
    best = chosen(tries) if len(tries) == TRIES else None
    if best is not None:
        settings = FULL | dict(probe_every=found.cfg.steps // 5) | found.settings
        for seed in arms.SEEDS:
            full = arms.tuned(found.cfg, best.cfg.lr, best.cfg.gain).replace(seed=seed)
            yield _job(f"{base}/seed-{seed}", full, settings)
    if found.tuned_as is None:
        yield from beyond


def _tries(base: str) -> tuple[list[Job], list[Job]]:
    """Those that choose, and those beyond: twice the highest rate as long as that is the best, then the best of these
    with matrices that start twice as large. None beyond in the groups called smoke, where nothing is to be found
    out."""
    cfg = arms.arm(*base.split("/")).cfg
    rates = [_try(base, cfg, lr, arms.SCALES[0]) for lr in arms.RATES]
    first = best = chosen(rates)
    if first is None:
        return rates, []
    beyond = []
    while best is (rates + beyond)[-1] and best.cfg.lr < arms.HIGHEST and not base.startswith("smoke"):
        beyond.append(_try(base, cfg, 2 * best.cfg.lr, arms.SCALES[0]))
        best = chosen(rates + beyond)
    if best is not None and best is not first:
        beyond.append(_try(base, cfg, best.cfg.lr, arms.SCALES[1]))
    return [*rates, _try(base, cfg, first.cfg.lr, arms.SCALES[1])], beyond


def _try(base: str, cfg: Config, lr: float, scale: float) -> Job:
    return _job(f"{base}/try-{lr:g}-{scale:g}", arms.attempt(cfg, lr, scale), TRY)


def _job(name: str, cfg: Config, settings: dict) -> Job:
    return Job(name, cfg, settings | (SMOKE if name.startswith("smoke") else {}))


def chosen(tries: list[Job]) -> Job | None:
    """The try with the lowest mean bits per byte; None while one of them is missing. One that left the finite numbers
    has lost."""
    if not all(job.record.exists() for job in tries):
        return None
    return min(tries, key=lambda job: score(files.read_json(job.record)))


def score(record: dict) -> float:
    """Mean bits per byte over the validation splits."""
    if record["summary"] is None:
        return float("inf")
    return statistics.mean(split["bits_per_byte"] for split in record["summary"]["validation"].values())


def plan() -> list[tuple[str, Job | None]]:
    """(name, job) in the order of work: by group all tries, then seed by seed. A job of None has to wait for others."""
    order = []
    for group, members in arms.GROUPS.items():
        found = {arm.name: list(jobs(group, arm.name)) for arm in members}
        count = {arm.name: _runs_of(arm, found[arm.name]) for arm in members}
        for i in range(max(count.values())):
            for name in found:
                if i < count[name]:
                    job = found[name][i] if i < len(found[name]) else None
                    order.append((job.name if job else f"{group}/{name}/{i}", job))
    return order


def _runs_of(arm: arms.Arm, known: list[Job]) -> int:
    """As many as there will be, as far as can be known."""
    if any("/seed-" in job.name for job in known):
        return len(known)
    return len(arms.SEEDS) + (max(TRIES, len(known)) if arm.tuned_as is None else 0)


def work(only: list[str], out: Path, minutes: float | None = None, stop=None) -> tuple[int, str | None]:
    """Runs what is missing. -> how many runs were finished, and what stopped it early. minutes: start no further run
    after them."""
    torch.set_num_threads(1)
    done, begin = 0, time.monotonic()
    while minutes is None or time.monotonic() - begin < 60 * minutes:
        for name, job in plan():
            if job is None or job.record.exists() or not wanted(name, only):
                continue
            try:
                run, failure = _trained(job, out / job.name, stop)
            except InUse:
                continue
            if run.stopped:
                return done, run.stopped
            keep(job, run, failure)
            print(f"{job.name}: {score(files.read_json(job.record)):.4f} bits/byte", flush=True)
            done += 1
            break
        else:
            break
    return done, None


def _trained(job: Job, folder: Path, stop=None) -> tuple[Run, str | None]:
    """The run, and how it left the finite numbers if it did."""
    try:
        return training.train(job.cfg, folder, show=False, stop=stop, **job.settings), None
    except nonfinite.NonFinite as error:
        return Run(folder), str(error)


def wanted(name: str, only: list[str]) -> bool:
    return not only or any(name == prefix or name.startswith(prefix + "/") for prefix in only)


def keep(job: Job, run: Run, failure: str | None = None) -> None:
    """Writes the record of a run that is finished, or has left the finite numbers (`failure`)."""
    write(job.name, record(job, run, failure))


def write(name: str, found: dict, folder: Path | None = None) -> None:
    """A line for each entry, whatever its length. None: with the stored ones."""
    path = (folder or RECORDS) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{json.dumps(key)}: {json.dumps(in_json(value))}" for key, value in found.items())
    files.write_text(path, "{\n" + ",\n".join(lines) + "\n}")


def again(name: str, out: Path) -> dict:
    """Repeats a run of the study in the folder `out`. -> its record; the stored one stays as it is. Stopped by a signal
    it raises Interrupted, and goes on when called again."""
    known = {found: job for found, job in plan() if job is not None and job.record.exists()}
    if name not in known:
        raise checks.wrong("experiment", repr(name), "the name of a run that is on record (see --list)")
    job = known[name]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run, failure = _trained(job, out)
    finally:
        torch.set_num_threads(threads)
    if run.stopped:
        raise Interrupted(run.stopped)
    return record(job, run, failure)


class Interrupted(KeyboardInterrupt):
    """By the signal that it names."""


def origin(name: str, run: Run) -> dict:
    """What every record begins with: how it was made, with what (of a run that was interrupted: the last start, and
    the code of each), from what."""
    starts = files.read_json(run.folder / "environment.json")["starts"]
    return dict(
        command=f"python -m pspin_lite experiments {name}",
        config=run.config,
        environment=starts[-1] | dict(commits=[[start["step"], start["commit"]] for start in starts]),
        data=files.read_json(run.folder / "data.json"),
    )


def course(run: Run) -> dict:
    """Every step whose loss is a number, every validation."""
    steps = [step for step in run.metrics("step") if math.isfinite(step["loss"]) and math.isfinite(step["norm"])]
    return dict(
        loss=[round(step["loss"], 3) for step in steps],
        norm=[float(f"{step['norm']:.3g}") for step in steps],
        validation=[short(one) for one in run.metrics("validation")],
        attractor=[short(one) for one in run.metrics("attractor")],
    )


def record(job: Job, run: Run, failure: str | None = None) -> dict:
    found = origin(job.name, run) | dict(
        failure=failure,
        summary=None if failure else run.summary | dict(flops_a_step=flops_a_step(run.cfg)),
    )
    if "/try-" in job.name:
        return found
    found |= course(run) | dict(
        noise=[short(one) for one in run.metrics("noise")],
        probe=[[one["step"], round(one["nats_per_token"], 6)] for one in run.metrics("probe")],
    )
    return found if failure or "held-out" not in run.data() else found | dict(context=_context(run))


def _context(run: Run) -> dict:
    return short(evaluation.by_context(run.model, run.data()["held-out"], CONTEXT_WINDOWS))


def short(record: dict) -> dict:
    """Without its kind, floats to six digits."""
    cut = lambda x: float(f"{x:.6g}") if isinstance(x, float) else [cut(y) for y in x] if isinstance(x, list) else x  # noqa: E731
    return {name: cut(value) for name, value in record.items() if name != "kind"}


def flops_a_step(cfg: Config) -> int:
    """Of one training step, by PyTorch's own counter: matrix products, attention over the full square."""
    with torch.random.fork_rng(devices=[]):
        model = build(cfg)
    tokens = torch.zeros(1, cfg.context, dtype=torch.long)
    return cfg.batch * measure.flops(lambda: model.loss(tokens, tokens).backward())
