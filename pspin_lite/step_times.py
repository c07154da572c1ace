"""How long a training step of every arm takes, on one thread: timed in turn in one process, so that they compare.

    python -m pspin_lite experiments step-times

The runs of the study were made on different days beside other work, and their own clocks do not compare. The record
is pspin_lite/records/step-times.json; a curve over time (records.axis) is one over steps, times what stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from . import arms, experiments, language_model, measure, runs

NAME = "step-times"
ROUNDS = {1: 31, 64: 9}  # by batch size; each raced by itself, as a large batch leaves nothing of a small one's caches
MICRO = experiments.FULL["micro_batch"]


def names() -> list[str]:
    """GROUP/ARM of everything whose time is compared."""
    apart = ("presets", "continual", "smoke-continual")
    return [f"{group}/{arm.name}" for group in arms.GROUPS if group not in apart for arm in arms.GROUPS[group]]


def step(name: str) -> Callable[[], None]:
    """A training step of an arm, as often as it is called: gradients of a batch in pieces, clipping, AdamW."""
    cfg = arms.arm(*name.split("/")).cfg
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = language_model.build(cfg)
        batch = torch.randint(cfg.vocab, (cfg.batch, cfg.context + 1))
    optimizer = model.adamw()

    def once() -> None:
        optimizer.zero_grad()
        for piece in batch.split(MICRO):
            (model.loss(piece[:, :-1], piece[:, 1:]) * (len(piece) / len(batch))).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        optimizer.step()

    return once


def time(of: Sequence[str]) -> dict[str, float]:
    """Median seconds of a step."""
    threads, found = torch.get_num_threads(), {}
    torch.set_num_threads(1)
    try:
        for batch, count in ROUNDS.items():
            alike = [name for name in of if arms.arm(*name.split("/")).cfg.batch == batch]
            found |= measure.Race(count)({name: step(name) for name in alike})
        return {name: found[name] for name in of}
    finally:
        torch.set_num_threads(threads)


def again(name: str, folder: Path) -> dict:
    """-> the record."""
    found = {arm: float(f"{seconds:.4g}") for arm, seconds in time(names()).items()}
    environment = runs.environment() | dict(threads=1)
    return dict(command=f"python -m pspin_lite experiments {NAME}", environment=environment, seconds=found)


def main(name: str, out: Path) -> None:
    found = again(name, out)
    experiments.write(NAME, found)
    for arm, seconds in found["seconds"].items():
        print(f"{arm:<28} {seconds:.4f} s a step")
