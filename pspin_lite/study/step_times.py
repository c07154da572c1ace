"""How long a training step of every arm takes, on one thread: timed in turn in one process, so that they compare.

    python -m pspin_lite experiments step-times

The runs of the study were made on different days beside other work, and their own clocks do not compare. A curve over
time (records.axis) is one over steps, times the seconds of this record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from .. import variants
from ..tools import measure
from ..training import recipe, runs
from . import jobs, networks, store

NAME = "step-times"
ROUNDS = {1: 31, 64: 9}  # by batch size; each raced by itself, as a large batch leaves nothing of a small one's caches
MICRO = jobs.FULL["micro_batch"]


def names() -> list[str]:
    """GROUP/ARM of everything whose time is compared."""
    apart = ("presets", "continual", "smoke-continual")
    return [f"{group}/{arm.name}" for group in networks.FIRST if group not in apart for arm in networks.FIRST[group]]


def step(name: str) -> Callable[[], None]:
    """A training step of an arm, as often as it is called: gradients of a batch in pieces, clipping, AdamW."""
    cfg = networks.arm(*name.split("/")).cfg
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = variants.build(cfg)
        batch = torch.randint(cfg.vocab, (cfg.batch, cfg.context + 1))
    optimizer = recipe.optimizer(model)

    def once() -> None:
        optimizer.zero_grad()
        for piece in batch.split(MICRO):
            (model.loss(piece[:, :-1], piece[:, 1:]) * (len(piece) / len(batch))).backward()
        recipe.finish_step(model, optimizer, cfg.lr, recipe.gradient_norm(model))

    return once


def time(of: Sequence[str]) -> dict[str, float]:
    """Median seconds of a step."""
    threads, seconds = torch.get_num_threads(), {}
    torch.set_num_threads(1)
    try:
        for batch, count in ROUNDS.items():
            alike = [name for name in of if networks.arm(*name.split("/")).cfg.batch == batch]
            seconds |= measure.Race(count)({name: step(name) for name in alike})
        return {name: seconds[name] for name in of}
    finally:
        torch.set_num_threads(threads)


def again(name: str, folder: Path) -> dict:
    """-> the record."""
    rounded = {arm: float(f"{seconds:.4g}") for arm, seconds in time(names()).items()}
    environment = runs.environment() | dict(threads=1)
    return dict(command=f"python -m pspin_lite experiments {NAME}", environment=environment, seconds=rounded)


def main(name: str, out: Path) -> None:
    result = again(name, out)
    store.write(NAME, result, out / jobs.RECORDS)
    for arm, seconds in result["seconds"].items():
        print(f"{arm:<28} {seconds:.4f} s per step")
