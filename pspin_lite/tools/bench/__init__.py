"""make bench: how fast the parts are, as ratios to something timed in the same run, on the same inputs.

Seconds are shown to give an idea of size; only the ratios are worth quoting, and they too move by a tenth or two on a
busy machine. "rate" is arithmetic per second relative to a large matrix product's in the same run. Memory is the peak
of all tensors above what existed before.

The tables are in `parts.py` (state space, attractor, loss, widgets) and `models.py` (whole models).
"""

from __future__ import annotations

import time

import torch

from . import models as bench_models
from . import parts as bench_parts

TABLES = {
    "state-space": bench_parts.state_spaces,
    "attractor": bench_parts.attractors,
    "loss": bench_parts.losses,
    "step": bench_models.steps,
    "decode": bench_models.decoding,
    "early-stopping": bench_models.early,
    "widgets": bench_parts.widgets,
}


def main(quick: bool = False, only: str | None = None) -> int:
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32"
        + (", quick: shapes are small" if quick else "")
    )
    for table in TABLES.values() if only is None else [TABLES[only]]:
        start = time.perf_counter()
        table(quick)
        print(f"({time.perf_counter() - start:.0f} s)")
    return 0
