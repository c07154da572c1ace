"""The paper's models on whatever machine this is: how far they come in a given time, and what the whole would take.

    python -m pspin_lite experiments paper/byte-paper           two hours of training
    python -m pspin_lite experiments paper/subword-paper        four minutes: enough to know the time of a step
    python -m pspin_lite experiments paper/transformer-paper    the same

All cores, the embedded corpus, the paper's own schedule, cut off. A run that is interrupted goes on; what counts is
the time that its training steps have taken, so its curve can be put together from several evenings.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import torch

from .. import config, costs
from ..training import evaluation
from ..training import train as training
from ..training.runs import Run
from . import jobs, store

MINUTES = {"paper/byte-paper": 120, "paper/subword-paper": 4, "paper/transformer-paper": 4}
SETTINGS = dict(validate_every=40, validate_tokens=4096, micro_batch=1)
FINAL_TOKENS = 32768  # of each split, where the run was cut off: all of it would take as long as hundreds of steps


class Limit(threading.Event):
    """Set once the steps of a run have taken so long."""

    def __init__(self, folder: Path, minutes: float):
        super().__init__()
        self.run, self.seconds = Run(folder), 60 * minutes

    def is_set(self) -> bool:
        return super().is_set() or spent(self.run) >= self.seconds


def spent(run: Run) -> float:
    """Seconds of training steps."""
    steps = run.metrics("step") if (run.folder / "metrics.jsonl").exists() else []
    return steps[-1]["seconds"] if steps else 0.0


def work(name: str, folder: Path, minutes: float | None = None, **settings: object) -> Run:
    """Trains until the time is over, or something else stops the run. Subwords are learned from the corpus."""
    cfg, minutes = config.preset(name.removeprefix("paper/")), MINUTES[name] if minutes is None else minutes
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    limit = Limit(folder, minutes)
    settings = SETTINGS | dict(tokenizer="bytes" if cfg.vocab == 256 else "bpe") | settings
    run = training.train(cfg, folder, show=False, stop=limit, **settings)
    if spent(run) >= limit.seconds:
        run.stopped = None  # by nothing but the clock; a signal sets the event too
    return run


def record(name: str, run: Run) -> dict:
    """With scores of where the clock cut it off, on more text than those on the way."""
    steps, seconds = run.metrics("step"), spent(run)
    windows = max(1, FINAL_TOKENS // run.cfg.context)
    summary = dict(
        steps=len(steps),
        tokens=steps[-1]["tokens"],
        parameters=costs.footprint(run.cfg).params,
        seconds=seconds,
        seconds_a_step=seconds / len(steps),
        flops_a_step=jobs.flops_a_step(run.cfg),
        whole_run_hours=seconds / len(steps) * run.cfg.steps / 3600,
        validation={
            split: evaluation.evaluate(run.model, data, windows)
            for split, data in run.data().items()
            if split != "train"
        },
    )
    return jobs.origin(name, run) | dict(summary=summary) | jobs.course(run)


def again(name: str, folder: Path) -> dict:
    """As jobs.again: -> its record."""
    run = work(name, folder)
    if run.stopped:
        raise jobs.Interrupted(run.stopped)
    return record(name, run)


def main(name: str, out: Path) -> str | None:
    """-> what stopped the run before its time, if anything did."""
    try:
        result = again(name, out / name)
    except jobs.Interrupted as stopped:
        return str(stopped)
    store.write(name, result, out / jobs.RECORDS)
    summary, steps = result["summary"], result["config"]["model"]["steps"]
    reached = f"{summary['validation']['held-out']['bits_per_byte']:.3f} bits/byte"
    print(f"{name}: {summary['steps']} steps of {summary['seconds_a_step']:.1f} s, {reached}; all {steps} would take")
    print(f"{summary['whole_run_hours']:.0f} hours")
    return None
