"""A lower bound of the time that a launch takes on a chip, from its counters. It is a bound and not a measurement.

Four things take time, and may overlap: the longest of them is the bound.

    memory   every distinct sector once, as if caches were empty before and perfect afterwards
    tensor   operations of the tensor cores at their peak rate
    issue    instructions that an assembler cannot drop: four warps of a multiprocessor issue one each in a cycle.
             Integer arithmetic, moves and branches are left out, because ptxas fuses and drops many of them
    shared   passes: one in a cycle for each multiprocessor

A launch of fewer blocks than there are multiprocessors leaves the rest idle. Left out: latency, launches, spilled
registers, and how unevenly blocks are spread. Real times are larger.

Rates are peak values as NVIDIA publishes them for the fastest model of each chip: A100 (80 GB SXM: 2,039 GB/s; 312 and
156 TFLOPS dense for 16 bits and TF32; 108 multiprocessors; 1,410 MHz) and H100 (SXM: 3,350 GB/s; 989 and 494 TFLOPS
dense; 132 multiprocessors; at most 1,980 MHz).
"""

from __future__ import annotations

from typing import NamedTuple


class Rates(NamedTuple):
    title: str
    memory: float  # bytes in a second
    tensor: dict[str, float]  # type of operands -> operations in a second
    processors: int
    clock: float  # cycles in a second


def _tensor(half: float, tf32: float) -> dict[str, float]:
    return dict(bf16=half, f16=half, tf32=tf32, s8=2 * half, u8=2 * half)


RATES = {
    "sm_80": Rates("A100", 2039e9, _tensor(312e12, 156e12), 108, 1.410e9),
    "sm_90": Rates("H100", 3350e9, _tensor(989e12, 494e12), 132, 1.980e9),
}
ISSUED = ("tensor core", "global memory", "shared memory", "barrier", "exchange", "special function", "float")
ISSUES = 4  # warps that issue in one cycle of one multiprocessor


def bound(counts: dict, chip: str) -> dict[str, float]:
    """Counters.as_dict() -> seconds for each of the four, and "bound", the largest."""
    rates = RATES[chip]
    busy = min(counts["blocks"], rates.processors)
    tensor = sum(operations / rates.tensor[kind] for kind, operations in counts["tensor"].items())
    parts = dict(
        memory=(counts["least_read"] + counts["least_written"]) / rates.memory,
        tensor=tensor * rates.processors / max(busy, 1),
        issue=sum(counts["instructions"].get(kind, 0) for kind in ISSUED) / (ISSUES * rates.clock * max(busy, 1)),
        shared=counts["passes"] / (rates.clock * max(busy, 1)),
    )
    return parts | dict(bound=max(parts.values()))
