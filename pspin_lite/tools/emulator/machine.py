"""Runs a kernel: one numpy call per instruction, for all threads of many blocks at once.

    kernel = parse(ptx)
    launch(kernel, (8, 1, 1), [x.ctypes.data, n], Memory([(x.ctypes.data, x.nbytes)]))  # neither Triton nor PyTorch

What it models
    register    an array that broadcasts to [blocks, threads]: [1,1] if all have the same number, [1,T] if it depends on
                the thread alone, [B,1] on the block alone. Arrays are never written to in place.
    branches    basic blocks of code, each with the threads that wait to run it. The first in the text goes next, so
                that threads and blocks that have branched apart meet again. `mask` says who runs (None: all).
    locks       a block that spins until another one of its batch lets it go: those that wait get their turn
    grid        blocks in batches of some ten thousand threads, one batch after the other.

Where it deviates from a chip
    - All threads of a batch run in lockstep. A missing barrier does not show in values: the race check is there for it.
    - Blocks cannot wait for blocks of a later batch: a spin lock between them runs into `limit`.
    - A register that a guard (`@%p1 ld ..`) kept some threads from writing holds nan, or -1, there: Triton reads such
      registers, and throws the result away. One that none of the threads has written is an error.
    - A barrier must be reached by all threads of a block at the same instruction. A chip counts arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import atomics, floats, integers, moves, numbers, tensor_cores, transfers, warpgroups, warps
from .counters import Counters
from .memory import Memory
from .parser import EmulatorError, Kernel
from .program import Block, Program, Unwritten, located, place
from .shared import Shared

Array = np.ndarray
WARP = 32
BATCH = 16384  # threads
ROOM = 160_000_000  # bytes of registers for one batch
INSTRUCTIONS = (
    atomics,
    floats,
    integers,
    moves,
    tensor_cores,
    transfers,
    warpgroups,
    warps,
)  # importing them fills the table
PATIENCE = 200  # basic blocks that others run before whole blocks of threads that wait overtake them
POISON = {size: np.full((1, 1), 256**size - 1, f"u{size}") for size in (1, 2, 4, 8)}  # nan, or -1


@dataclass(frozen=True)
class Modes:
    """What is checked and counted; arguments of `chip`."""

    races: bool = True  # shared memory touched by two warps between barriers, one of them writing another value
    proxies: bool = True  # sm_90: wgmma reads what was written without fence.proxy.async
    bounds: str = "tensor"  # addresses must be inside the tensors passed, or ("storage") anywhere in their storages
    pessimistic: bool = False  # approximate instructions off by their documented error, tensor-core sums cut off
    count: bool = False  # fill `Counters`, one for each launch
    limit: int = 20_000_000  # executed instructions for each batch of blocks
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.bounds not in ("tensor", "storage"):
            raise ValueError(f"bounds: got {self.bounds!r}, expected 'tensor' or 'storage'")


class Machine:
    """The state of one batch of blocks."""

    def __init__(self, program: Program, blocks: Array, grid: tuple[int, int, int], memory: Memory, modes: Modes):
        self.program, self.modes, self.memory = program, modes, memory
        self.shape = (len(blocks), program.kernel.threads)
        self.mask: Array | None = None  # who runs this instruction: the path, less those that a guard holds back
        self.path: Array | None = None  # who runs this basic block
        self.full = np.ones(self.shape, bool)
        self.all_warps = np.ones((self.shape[0], -(-self.shape[1] // WARP)), bool)
        self.registers: list[Any] = [Unwritten(name) for name in program.names]
        self.partial: dict[int, Array] = {}  # registers that some threads have not written: who has
        self.shared = Shared(self.shape, program.kernel.shared, program.unit, modes.races, modes.proxies)
        self.counters: Counters | None = None
        self.cache: dict[Any, Any] = {}  # of tensor_cores
        self.open_group: list[Any] = []  # of warpgroups: products asked for, and those committed
        self.groups: list[list[Any]] = []
        self.random = np.random.default_rng(0)  # for the pessimistic mode
        self._preload(blocks, grid)

    def _preload(self, blocks: Array, grid: tuple[int, int, int]) -> None:
        for slot, value in self.program.constants.items():
            self.registers[slot] = value
        x, y, _ = grid
        threads = np.arange(self.shape[1], dtype=np.uint32)[None, :]
        position = {"x": blocks % x, "y": blocks // x % y, "z": blocks // (x * y)}
        special = {f"%ctaid.{axis}": value.astype(np.uint32)[:, None] for axis, value in position.items()}
        special |= {f"%nctaid.{axis}": np.array([[size]], np.uint32) for axis, size in zip("xyz", grid, strict=True)}
        special |= {"%tid.x": threads, "%ntid.x": np.array([[self.shape[1]]], np.uint32)}
        special |= {f"%tid.{axis}": np.zeros((1, 1), np.uint32) for axis in "yz"}
        special |= {f"%ntid.{axis}": np.ones((1, 1), np.uint32) for axis in "yz"}
        special |= {"%laneid": threads % WARP, "%warpid": threads // WARP}
        for name, value in special.items():
            if name in self.program.slots:
                self.registers[self.program.slots[name]] = value

    def write(self, slot: int, value: Array) -> None:
        """Bits into a register, for the threads that run."""
        mask = self.mask
        if mask is None:
            self.registers[slot] = value
            if self.partial:
                self.partial.pop(slot, None)
            return
        old = self.registers[slot]
        if isinstance(old, Unwritten):
            if self.path is not None:
                self.partial[slot] = self.path
            self.registers[slot] = np.where(mask, value, POISON[value.dtype.itemsize].view(value.dtype))
            return
        if slot in self.partial:
            self.partial[slot] = self.full if self.path is None else self.partial[slot] | self.path
            if np.broadcast_to(self.partial[slot], self.shape).all():
                del self.partial[slot]
        if old.dtype is not value.dtype:
            old = old.view(value.dtype)
        self.registers[slot] = np.where(mask, value, old)

    def check_written(self, slots: tuple[int, ...]) -> None:
        """Threads that run have written what they read. Called if any register is written in part only."""
        for slot in slots:
            if slot in self.partial:
                missing = ~self.partial[slot] if self.mask is None else self.mask & ~self.partial[slot]
                if missing.any():
                    Unwritten(self.program.names[slot], f"is read before it is written, {self.who(missing)}").dtype  # noqa: B018

    def who(self, wrong: Array) -> str:
        """The first thread for which `wrong` is true, for messages."""
        block, thread = np.argwhere(np.broadcast_to(wrong, self.shape))[0]
        count = int(np.broadcast_to(wrong, self.shape).sum())
        return f"by thread {thread} of block {block} of the batch" + (f" and {count - 1} more" if count > 1 else "")

    def warps(self) -> Array:
        """Which warps run, [blocks, warps], all lanes of them: an error if some lanes of a warp are missing."""
        if self.mask is None:
            return self.all_warps
        mask = np.broadcast_to(self.mask, self.shape)
        lanes = mask.reshape(self.shape[0], -1, WARP)
        some, all_ = lanes.any(2), lanes.all(2)
        if (some != all_).any():
            block, warp = np.argwhere(some != all_)[0]
            absent = np.flatnonzero(~lanes[block, warp]).tolist()
            raise EmulatorError(f"lanes {absent} of warp {warp} are missing in an instruction of the whole warp")
        return all_

    def run(self) -> None:
        """Until all threads have ended."""
        waiting: dict[int, Array | None] = {0: None}
        since: dict[int, int] = {0: 0}  # when each began to wait
        steps, turn, counts = 0, 0, self.counters
        while waiting:
            turn += 1
            number = self._next(waiting, since, turn)
            del since[number]
            block, mask = self.program.blocks[number], waiting.pop(number)
            self.mask = self.path = mask
            if counts is not None:
                counts.executed[number] += self.running_warps()
            for one, act in block.code:
                try:
                    act(self)
                except EmulatorError as error:
                    raise EmulatorError(place(one, error)) from None
            steps += len(block.code)
            if steps > self.modes.limit:
                raise EmulatorError(f"more than {self.modes.limit} instructions: does a block wait for another one?")
            for target, who in self._leave(block, mask):
                if target is not None:
                    waiting[target] = self._joined(waiting[target], who) if target in waiting else who
                    since.setdefault(target, turn)

    def _next(self, waiting: dict[int, Array | None], since: dict[int, int], turn: int) -> int:
        """The first in the text, unless whole blocks have waited for long: one of them may hold the lock that the first
        spins for."""
        if len(waiting) > 1:
            oldest = min(since, key=since.__getitem__)
            if turn - since[oldest] > PATIENCE:
                since[oldest] = turn
                who = np.broadcast_to(self.full if waiting[oldest] is None else waiting[oldest], self.shape)
                if (who.any(1) == who.all(1)).all():
                    return oldest
        return min(waiting)

    def running_warps(self) -> int:
        if self.mask is None:
            return self.shape[0] * -(-self.shape[1] // WARP)
        return int(np.broadcast_to(self.mask, self.shape).reshape(-1, min(WARP, self.shape[1])).any(1).sum())

    def _joined(self, one: Array | None, other: Array | None) -> Array | None:
        if one is None or other is None:
            return None
        both = one | other
        return None if both.all() else both

    def _leave(self, block: Block, mask: Array | None) -> list[tuple[int | None, Array | None]]:
        """Where the threads go that ran a block."""
        if block.branch is None:
            return [(block.after, mask)]
        if block.branch.guard is None:
            return [(block.taken, mask)]
        guard = block.branch.guard
        slot = self.program.slot(guard.name)
        if self.partial:
            located(block.branch, lambda: self.check_written((slot,)))
        goes = located(block.branch, lambda: numbers.reader("pred")(self.registers[slot]))
        goes = ~goes if guard.negated else goes
        if goes.size == 1:
            return [(block.taken if goes.item() else block.after, mask)]
        here = self.full if mask is None else mask
        taken, stays = here & goes, here & ~goes
        if not taken.any():
            return [(block.after, mask)]
        if not stays.any():
            return [(block.taken, mask)]
        return [(block.taken, taken), (block.after, stays)]


def launch(
    kernel: Kernel, grid: tuple[int, int, int], values: list[Any], memory: Memory, modes: Modes | None = None
) -> Counters | None:
    """Run all blocks of a grid. values: one for each parameter, addresses of tensors as integers."""
    modes = modes or Modes()
    if kernel.program is None:
        kernel.program = Program(kernel)
    program = kernel.program
    counters = Counters(program, grid) if modes.count else None
    total = grid[0] * grid[1] * grid[2]
    each = max(1, min(modes.batch, ROOM // max(1, len(program.names) * 4)) // max(1, kernel.threads))
    memory.parameters = parameters(kernel, values)
    with np.errstate(all="ignore"):
        for first in range(0, total, each):
            machine = Machine(program, np.arange(first, min(first + each, total)), grid, memory, modes)
            machine.counters = counters
            machine.run()
    if counters is not None:
        counters.finish(memory)
    return counters


def parameters(kernel: Kernel, values: list[Any]) -> dict[str, np.ndarray]:
    """Name -> bits, [1,1]."""
    if len(values) != len(kernel.parameters):
        raise EmulatorError(f"{kernel.name} takes {len(kernel.parameters)} parameters, got {len(values)}")
    result = {}
    for (name, (kind, size)), value in zip(kernel.parameters.items(), values, strict=True):
        if isinstance(value, float):
            kind = {2: "f16", 4: "f32", 8: "f64"}[size]
            result[name] = np.array([[value]], numbers.FLOATS[kind])
        else:
            result[name] = np.array([[int(value) & ((1 << 8 * size) - 1)]], numbers.BITS[size])
    return result
