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

from . import config, experiments, files, records, training
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


def work(out: Path, minutes: float = MINUTES, preset: str = "byte-paper", **settings: object) -> dict | None:
    """Trains until the time is over. -> the record, or None if something else has stopped the run before."""
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    folder = out / NAME
    run = training.train(config.preset(preset), folder, show=False, stop=Limit(folder, minutes), **SETTINGS | settings)
    return record(run) if run.summary is not None or spent(run) >= 60 * minutes else None


def record(run: Run) -> dict:
    steps, seconds = run.metrics("step"), spent(run)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return dict(
        command=f"python -m pspin_lite experiments {NAME}",
        config=run.config,
        environment=files.read_json(run.folder / "environment.json")["starts"][-1],
        data=files.read_json(run.folder / "data.json"),
        summary=dict(
            steps=len(steps),
            tokens=steps[-1]["tokens"],
            seconds=seconds,
            seconds_a_step=seconds / len(steps),
            flops_a_step=experiments.flops_a_step(run.cfg),
            peak_bytes=peak,
            whole_run_hours=seconds / len(steps) * run.cfg.steps / 3600,
        ),
        loss=[round(step["loss"], 3) for step in steps],
        norm=[float(f"{step['norm']:.3g}") for step in steps],
        validation=run.metrics("validation"),
        attractor=run.metrics("attractor"),
    )


def main(out: str) -> None:
    found = work(Path(out))
    if found is None:
        return
    path = experiments.RECORDS / f"{NAME}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    experiments.write(path, found)
    summary, (steps, bits) = found["summary"], records.curve(found)
    print(f"{NAME}: {summary['steps']} steps of {summary['seconds_a_step']:.1f} s, {bits[-1]:.3f} bits/byte at step")
    print(f"{steps[-1]}; all {found['config']['model']['steps']} would take {summary['whole_run_hours']:.0f} hours")
