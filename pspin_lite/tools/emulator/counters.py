"""What a launch did, counted while it runs: instructions, tensor-core operations, traffic, bank conflicts, barriers.

    with chip("sm_80", count=True) as emulator:
        kernel[grid](...)
    print(emulator.launches[0].summary())

What it models
    instructions   of PTX, one for each warp that executes it. An instruction that a guard skips is issued all the same.
    sectors        Global memory comes in sectors of 32 bytes. A warp's request costs as many as it touches.
    least          bytes of the distinct sectors that the whole launch touches: what a perfect cache would move.
    passes         Shared memory has 32 banks of 4 bytes. In one pass each bank gives one word, to 32 lanes of up to 4
                   bytes, 16 of 8 or 8 of 16. Passes that a warp's request takes beyond that are conflicts.

Where it deviates from a chip: the assembler (ptxas) drops, fuses and adds instructions, and spills registers to memory.
wgmma reads shared memory by itself; its operands are counted as passes of 128 bytes without conflicts.

`bound` makes of them a lower bound of the time that a launch takes on a chip. It is a bound and not a measurement. Four
things take time, and may overlap: the longest of them is the bound.

    memory   every distinct sector once, as if caches were empty before and perfect afterwards
    tensor   operations of the tensor cores at their peak rate
    issue    instructions that an assembler rarely drops: four warps of a multiprocessor issue one each in a cycle.
             Integer arithmetic, moves and branches are left out, because ptxas fuses and drops many of them. Of the
             floating-point instructions that are counted it may fuse a product with a sum, and fold a sign
    shared   passes: one in a cycle for each multiprocessor

A launch of fewer blocks than there are multiprocessors leaves the rest idle. Left out: latency, launches, spilled
registers, and how unevenly blocks are spread. Real times are larger.

Rates are peak values as NVIDIA publishes them for the fastest model of each chip: A100 (80 GB SXM: 2,039 GB/s; 312 and
156 TFLOPS dense for 16 bits and TF32; 108 multiprocessors; 1,410 MHz) and H100 (SXM: 3,350 GB/s; 132 multiprocessors;
at most 1,980 MHz). NVIDIA's 989 TFLOPS for the H100 are at 1,830 MHz. At 1,980 MHz, which we use for everything, the
same tensor cores reach 1,070, and 535 for TF32.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .parser import Instruction

Array = np.ndarray
WARP, SECTOR, ROW = 32, 32, 128  # lanes; bytes of a sector, and of one pass over all banks
NOBODY = np.iinfo(np.int64).max
KINDS = {  # first word of an instruction -> kind
    "tensor core": "mma wgmma",
    "global memory": "",
    "shared memory": "ldmatrix stmatrix",
    "barrier": "bar barrier fence membar",
    "exchange": "shfl redux vote elect activemask",
    "special function": "ex2 lg2 rcp sqrt rsqrt sin cos tanh",
    "branch": "bra ret exit",
    "move": "mov cvt selp cvta prmt createpolicy",
}
ALL_KINDS = (*KINDS, "float", "integer")  # float: arithmetic on floating-point numbers. integer: all that is left
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}
FLOATS = re.compile(r"(bf|f|tf)\d+(x2)?")


def kind_of(one: Instruction) -> str:
    first, parts = one.parts[0], one.parts
    if first in ("ld", "st", "atom", "red", "cp"):
        if "param" in parts or "commit_group" in parts or "wait_group" in parts or "wait_all" in parts:
            return "move" if "param" in parts else "barrier"
        return "global memory" if "global" in parts else "shared memory"
    if first in KIND_OF:
        return "barrier" if first == "wgmma" and parts[1] != "mma_async" else KIND_OF[first]
    return "float" if FLOATS.fullmatch(parts[-1]) else "integer"


def products(one: Instruction) -> tuple[str, int]:
    """Type of the operands, and operations (a multiplication and an addition are two) for each warp."""
    if kind_of(one) != "tensor core":
        return "", 0
    m, n, k = map(int, re.search(r"\.m(\d+)n(\d+)k(\d+)\.", f".{one.opcode}.").groups())
    kind = one.parts[-1] if one.parts[0] == "wgmma" else one.parts[-2]
    return kind, 2 * m * n * k // (4 if one.parts[0] == "wgmma" else 1)  # four warps share a wgmma


class Counters:
    def __init__(self, program: Any, grid: tuple[int, int, int]):
        self.name, self.grid, self.threads = program.kernel.name, tuple(grid), program.kernel.threads
        self.blocks = grid[0] * grid[1] * grid[2]
        self.program = program
        self.shared, self.ptx = program.kernel.shared, program.kernel.text  # bytes for a block; what was executed
        self.executed: Counter[int] = Counter()  # basic block -> warps that ran it
        self.instructions: Counter[str] = Counter()  # kind -> number
        self.tensor: Counter[str] = Counter()  # type of operands -> operations
        self.asked: Counter[str] = Counter()  # "read", "written" -> bytes that lanes ask for
        self.sectors: Counter[str] = Counter()
        self.least: Counter[str] = Counter()  # bytes
        self.passes = self.conflicts = self.barriers = 0
        self._seen: dict[tuple[str, int], Array] = {}  # act, start of a region -> sectors that were touched

    def touch_global(self, machine: Any, address: Array, each: int, mask: Array | None, act: str) -> None:
        """One request of every warp: `each` bytes at these addresses, for the lanes of the mask."""
        lanes, times = self._by_warp(machine, address, mask)
        active = lanes != NOBODY
        self.asked[act] += int(active.sum()) * each * times
        last = np.where(active, lanes + (each - 1), NOBODY)
        for edge in (lanes, last) if each > SECTOR else (lanes,):  # aligned: 32 bytes or less are in one sector
            sector = np.where(active, edge // SECTOR, NOBODY)
            self.sectors[act] += int(_distinct(sector).sum()) * times
            self._mark(machine.memory, np.unique(sector[active]), act)

    def touch_shared(self, machine: Any, address: Array, each: int, mask: Array | None, act: str) -> None:
        lanes, times = self._by_warp(machine, address, mask)
        unit = max(each, 4)
        slots = ROW // unit  # lanes that share a pass
        item = np.where(lanes == NOBODY, NOBODY, lanes // unit).reshape(-1, slots)
        order = np.sort(item, -1)
        new = _distinct(order, in_order=True)
        group, _ = np.nonzero(new)
        counts = np.bincount(group * slots + order[new] % slots, minlength=len(item) * slots)
        passes = int(counts.reshape(-1, slots).max(1).sum())
        self.passes += passes * times
        self.conflicts += (passes - int((order[:, 0] != NOBODY).sum())) * times

    def touch_operand(self, size: int, blocks: int) -> None:
        """wgmma reads `size` bytes of shared memory in each of these blocks."""
        self.passes += -(-size // ROW) * blocks

    @staticmethod
    def _by_warp(machine: Any, address: Array, mask: Array | None) -> tuple[Array, int]:
        """Addresses [requests, 32], NOBODY for lanes that do not take part, and how many blocks each stands for."""
        blocks, threads = machine.shape
        rows = max(address.shape[0], 1 if mask is None else mask.shape[0])
        lanes = np.broadcast_to(address, (rows, threads)).astype(np.int64)
        if mask is not None:
            lanes = np.where(np.broadcast_to(mask, (rows, threads)), lanes, NOBODY)
        short = -threads % WARP
        lanes = np.pad(lanes, ((0, 0), (0, short)), constant_values=NOBODY) if short else lanes
        return lanes.reshape(-1, WARP), blocks // rows

    def _mark(self, memory: Any, sectors: Array, act: str) -> None:
        for region in memory.regions:
            first, end = region.start // SECTOR, (region.end - 1) // SECTOR + 1
            here = sectors[(sectors >= first) & (sectors < end)]
            if len(here):
                key = (act, region.start)
                if key not in self._seen:
                    self._seen[key] = np.zeros(end - first, bool)
                self._seen[key][here - first] = True

    def finish(self, memory: Any) -> None:
        """After the last block: everything that follows from how often each basic block ran."""
        for number, warps in self.executed.items():
            block = self.program.blocks[number]
            for one in [*(one for one, _ in block.code), *([block.branch] if block.branch else [])]:
                self.instructions[kind_of(one)] += warps
                kind, operations = products(one)
                if operations:
                    self.tensor[kind] += operations * warps
                self.barriers += warps if one.parts[0] in ("bar", "barrier") and "warp" not in one.parts else 0
        self.barriers //= max(1, -(-self.threads // WARP))  # a block's warps reach one barrier together
        for (act, _), seen in self._seen.items():
            self.least[act] += int(seen.sum()) * SECTOR
        self._seen = {}
        del self.program

    def as_dict(self) -> dict[str, Any]:
        moved = {act: self.sectors[act] * SECTOR for act in ("read", "written")}
        return dict(
            name=self.name, grid=list(self.grid), blocks=self.blocks, threads=self.threads,
            instructions=dict(self.instructions), tensor=dict(self.tensor),
            read=moved["read"], written=moved["written"], asked=dict(self.asked),
            least_read=self.least["read"], least_written=self.least["written"],
            passes=self.passes, conflicts=self.conflicts, barriers=self.barriers,
        )  # fmt: skip

    def summary(self) -> str:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.instructions.most_common())
        row = self.as_dict()
        return (
            f"{self.name}, {self.blocks} blocks of {self.threads} threads\n"
            f"  instructions   {sum(self.instructions.values()):,}: {kinds}\n"
            f"  tensor cores   {sum(self.tensor.values()):,} operations\n"
            f"  global memory  {row['read']:,} bytes read ({row['least_read']:,} at least), "
            f"{row['written']:,} written ({row['least_written']:,} at least)\n"
            f"  shared memory  {self.passes:,} passes, {self.conflicts:,} of them conflicts\n"
            f"  barriers       {self.barriers:,}"
        )


def _distinct(values: Array, in_order: bool = False) -> Array:
    """Which entries of each sorted row are the first of their value, those of nobody left out."""
    values = values if in_order else np.sort(values, -1)
    new = values != NOBODY
    new[:, 1:] &= values[:, 1:] != values[:, :-1]
    return new


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
    "sm_90": Rates("H100", 3350e9, _tensor(1070e12, 535e12), 132, 1.980e9),
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
