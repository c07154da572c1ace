"""The paper's byte model for two hours on whatever machine this is: how far it comes, and what the whole would take.

    python -m pspin_lite experiments paper/byte-paper

All cores, the embedded corpus, the paper's own schedule, cut off. A run that is interrupted goes on; what counts is
the time that its training steps have taken, so its curve can be put together from several evenings. Its record is
pspin_lite/records/paper/byte-paper.json.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from pathlib import Path

import torch

from . import config, costs, experiments, records, training
from .runs import Run

NAME = "paper/byte-paper"
MINUTES = 120
SETTINGS = dict(validate_every=40, validate_tokens=4096)


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


def work(out: Path, minutes: float = MINUTES, preset: str = "byte-paper", **settings: object) -> Run:
    """Trains until the time is over, or something else stops the run."""
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    limit = Limit(out / NAME, minutes)
    run = training.train(config.preset(preset), out / NAME, show=False, stop=limit, **SETTINGS | settings)
    if spent(run) >= limit.seconds:
        run.stopped = None  # by nothing but the clock; a signal sets the event too
    return run


def record(run: Run) -> dict:
    steps, seconds = run.metrics("step"), spent(run)
    unit = 1 if sys.platform == "darwin" else 1024
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit  # before flops_a_step builds a second model
    summary = dict(
        steps=len(steps),
        tokens=steps[-1]["tokens"],
        parameters=costs.footprint(run.cfg).params,
        seconds=seconds,
        seconds_a_step=seconds / len(steps),
        flops_a_step=experiments.flops_a_step(run.cfg),
        peak_bytes=peak_bytes,
        whole_run_hours=seconds / len(steps) * run.cfg.steps / 3600,
    )
    return experiments.origin(NAME, run) | dict(summary=summary) | experiments.course(run)


def main(out: str) -> str | None:
    """-> what stopped the run before its time, if anything did."""
    run = work(Path(out))
    if run.stopped:
        return run.stopped
    path, found = experiments.RECORDS / f"{NAME}.json", record(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    experiments.write(path, found)
    summary, (steps, bits) = found["summary"], records.curve(found)
    print(f"{NAME}: {summary['steps']} steps of {summary['seconds_a_step']:.1f} s, {bits[-1]:.3f} bits/byte at step")
    print(f"{steps[-1]}; all {found['config']['model']['steps']} would take {summary['whole_run_hours']:.0f} hours")
    return None
