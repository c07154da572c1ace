"""Runs the study of networks.py, and keeps of every run a small record from which notebooks and README are made.

arm     one of the networks that a group compares, with its data and schedule (networks.py)
try     a short run of an arm, with one learning rate and one initial scale: the best try chooses both for the arm
seed    a full run of an arm with what was chosen
job     a run that is to be done: its name, configuration and settings

    python -m pspin_lite experiments --list            what there is, and what is still to do
    python -m pspin_lite experiments                   all that is missing, one run after the other
    python -m pspin_lite experiments bytes-1/p-spin    that arm alone: its tries, then its seeds
    python -m pspin_lite experiments paper/byte-paper  two hours of the paper's byte model; and others (paper_size.py)
    python -m pspin_lite experiments NAME --again      what is on record once more; the records stay as they are

Several processes may work side by side: each takes a run that nobody works on. An interrupted run goes on.
A run's name is GROUP/ARM/try-RATE-SCALE or GROUP/ARM/seed-N. Its folder is under --out, and its record under records of
--out, until `experiments --publish` takes it into notebooks/records (store.py). The record of a repetition is under
again/records of --out: `ledger CLAIM --records FOLDER` measures with it. Everything is computed on one thread, so that
two runs fit two cores and numbers repeat.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import torch

from .. import _checks as checks
from .. import _files as files
from ..config import Config
from ..data.sequences import Packed
from ..language_model import LanguageModel
from ..tools import measure
from ..training import branches, evaluation, nonfinite
from ..training import train as training
from ..training.runs import InUse, Run
from ..variants import build
from . import networks, store
from .records import score

TRIES = len(networks.RATES) + 1
RECORDS = "records"  # under --out: one file per run
FULL = dict(validate_tokens=4096, final_tokens=131072, micro_batch=16)  # of a full run; probed at each fifth of it
TRY = dict(validate_every=10**9, validate_tokens=1024, final_tokens=131072, micro_batch=16)
CONTEXT_WINDOWS = 512  # of held-out, for the loss by context
SILENT_WINDOWS = 128  # of held-out, for the loss with a branch silenced
SMOKE = dict(validate_tokens=1024, final_tokens=8192)  # in place of the settings above, in the groups of that name


@dataclass(frozen=True)
class Job:
    name: str
    cfg: Config
    settings: dict
    short: bool = False  # its record keeps no curves


def at_work(out: Path) -> AbstractContextManager[store.Store]:
    """Within it, records of runs under `out` count beside the published ones."""
    return store.using(*store.current().folders, out / RECORDS)


def jobs(group: str, arm: str) -> Iterator[Job]:
    """Of an arm, as far as they are known: the last try needs those before it, the seeds need all. Last the tries
    beyond the four rates."""
    network, base = networks.arm(group, arm), f"{group}/{arm}"
    if network.tuned_as == "":
        yield _job(f"{base}/seed-{network.cfg.seed}", network.cfg, network.settings, False)
        return
    tries, beyond = _tries(network.tuned_as or base)
    if network.tuned_as is None:
        yield from tries
    best = chosen(tries) if len(tries) == TRIES else None
    if best is not None:
        settings = TRY if network.short else FULL | dict(probe_every=network.cfg.steps // 5)
        for seed in network.seeds:
            cfg = networks.run(network, best.cfg.lr, best.cfg.gain, seed)
            yield _job(f"{base}/seed-{seed}", cfg, settings | network.settings, network.short)
    if network.tuned_as is None:
        yield from beyond


def _tries(base: str) -> tuple[list[Job], list[Job]]:
    """Those that choose, and those beyond: twice the highest rate as long as that is the best, then the best of these
    with matrices that start twice as large. None beyond in the groups called smoke, where nothing is to be found
    out."""
    network = networks.arm(*base.split("/"))
    cfg = network.cfg.replace(steps=4 * network.cfg.steps) if network.short else network.cfg  # as long as its runs
    rates = [_try(base, cfg, lr, networks.SCALES[0]) for lr in networks.RATES]
    first = best = chosen(rates)
    if first is None:
        return rates, []
    beyond = []
    while best is (rates + beyond)[-1] and best.cfg.lr < networks.HIGHEST and not base.startswith("smoke"):
        beyond.append(_try(base, cfg, 2 * best.cfg.lr, networks.SCALES[0]))
        best = chosen(rates + beyond)
    if best is not None and best is not first:
        beyond.append(_try(base, cfg, best.cfg.lr, networks.SCALES[1]))
    return [*rates, _try(base, cfg, first.cfg.lr, networks.SCALES[1])], beyond


def _try(base: str, cfg: Config, lr: float, scale: float) -> Job:
    return _job(f"{base}/try-{lr:g}-{scale:g}", networks.attempt(cfg, lr, scale), TRY, True)


def _job(name: str, cfg: Config, settings: dict, short: bool) -> Job:
    return Job(name, cfg, settings | (SMOKE if name.startswith("smoke") else {}), short)


def chosen(tries: list[Job]) -> Job | None:
    """The try with the lowest mean bits per byte; None while one of them is missing. One that left the finite numbers
    has lost."""
    records = store.current()
    if not all(job.name in records for job in tries):
        return None
    return min(tries, key=lambda job: score(records.stored(job.name)))


def plan() -> list[tuple[str, Job | None]]:
    """(name, job) in the order of work: by group the short arms one by one, then all tries, then seed by seed. A job of
    None has to wait for others."""
    order = []
    for group, members in _in_turn():
        planned = {arm.name: list(jobs(group, arm.name)) for arm in members}
        count = {arm.name: _runs_of(arm, planned[arm.name]) for arm in members}
        for i in range(max(count.values())):
            for name in planned:
                if i < count[name]:
                    job = planned[name][i] if i < len(planned[name]) else None
                    order.append((job.name if job else f"{group}/{name}/{i}", job))
    return order


def _in_turn() -> Iterator[tuple[str, tuple[networks.Arm, ...]]]:
    """Arms whose runs take turns."""
    for group, members in networks.GROUPS.items():
        for arm in members:
            if arm.short:
                yield group, (arm,)
        if rest := tuple(arm for arm in members if not arm.short):
            yield group, rest


def _runs_of(arm: networks.Arm, planned: list[Job]) -> int:
    """As many as there will be, as far as can be known."""
    if any("/seed-" in job.name for job in planned):
        return len(planned)
    return len(arm.seeds) + (max(TRIES, len(planned)) if arm.tuned_as is None else 0)


def work(only: list[str], out: Path, minutes: float | None = None, stop: Event | None = None) -> tuple[int, str | None]:
    """Runs what is missing. -> how many runs were finished, and what stopped it early. minutes: start no further run
    after them."""
    torch.set_num_threads(1)
    done, begin = 0, time.monotonic()
    with at_work(out) as records:
        while minutes is None or time.monotonic() - begin < 60 * minutes:
            for name, job in plan():
                if job is None or name in records or not matches(name, only):
                    continue
                try:
                    run, failure = _trained(job, out / name, stop)
                except InUse:
                    continue
                if run.stopped:
                    return done, run.stopped
                store.write(name, record(job, run, failure), out / RECORDS)
                print(f"{name}: {score(records.stored(name)):.4f} bits/byte", flush=True)
                done += 1
                break
            else:
                break
    return done, None


def _trained(job: Job, folder: Path, stop: Event | None = None) -> tuple[Run, str | None]:
    """The run, and how it left the finite numbers if it did."""
    try:
        return training.train(job.cfg, folder, show=False, stop=stop, **job.settings), None
    except nonfinite.NonFinite as error:
        return Run(folder), str(error)


def matches(name: str, only: list[str]) -> bool:
    """Whether a run is one of those named by itself, by GROUP/ARM or by GROUP. None named: all are."""
    return not only or any(name == prefix or name.startswith(prefix + "/") for prefix in only)


def again(name: str, out: Path) -> dict:
    """Repeats a run of the study in the folder `out`. -> its record; the stored one stays as it is. Stopped by a signal
    it raises Interrupted, and goes on when called again."""
    job = dict(plan()).get(name)
    if job is None or name not in store.current():
        raise checks.wrong("experiment", repr(name), "the name of a run that is on record (see --list)")
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
    """Of a run that is finished, or has left the finite numbers (`failure`)."""
    result = origin(job.name, run) | dict(
        failure=failure,
        summary=None if failure else run.summary | dict(flops_a_step=flops_a_step(run.cfg)),
    )
    if job.short:  # the result alone, and how loud the branches were if somebody looked
        seen = [short(one) for one in run.metrics("branches")]
        return result | (dict(branches=seen) if seen else {})
    result |= course(run) | dict(
        noise=[short(one) for one in run.metrics("noise")],
        probe=[[one["step"], round(one["nats_per_token"], 6)] for one in run.metrics("probe")],
    )
    return result if failure or "held-out" not in run.data() else result | looks(run, job.settings["final_tokens"])


def looks(run: Run, tokens: int) -> dict:
    """What else is kept of a run that is scored on held-out speeches: which of its parts spoke, what context is worth,
    the held-out score when a branch is silent, and the nats of every window of both splits."""
    model, data = run.model, run.data()
    held_out, windows = data["held-out"], max(1, tokens // run.cfg.context)
    result: dict = dict(
        branches=[short(one) for one in run.metrics("branches")],
        context=short(evaluation.by_context(model, held_out, CONTEXT_WINDOWS)),
        silenced=short(branches.without(model, lambda: _bits(model, held_out))),
    )
    for split in ("held-out", "recent"):
        rows = evaluation.by_window(model, data[split], windows)
        result[f"windows {split}"] = [[document, round(nats, 2), size] for document, nats, size in rows]
    return result


def _bits(model: LanguageModel, data: Packed) -> float:
    return evaluation.evaluate(model, data, SILENT_WINDOWS)["bits_per_byte"]


def short(record: dict) -> dict:
    """Without its kind, floats to six digits."""
    return {name: _six_digits(value) for name, value in record.items() if name != "kind"}


def _six_digits(value: object) -> object:
    if isinstance(value, list):
        return [_six_digits(x) for x in value]
    if isinstance(value, dict):
        return {name: _six_digits(x) for name, x in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def flops_a_step(cfg: Config) -> int:
    """Of one training step, by PyTorch's own counter: matrix products, attention over the full square."""
    with torch.random.fork_rng(devices=[]):
        model = build(cfg)
    tokens = torch.zeros(1, cfg.context, dtype=torch.long)
    return cfg.batch * measure.flops(lambda: model.loss(tokens, tokens).backward())
