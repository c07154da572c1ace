"""Atomic operations on global and shared memory.

What it models: atom, which returns the value before, and red; add, min, max, and, or, xor, exch, cas of integers; add
of float32, float16, bfloat16 and pairs of them. Between two barriers atomic operations may meet each other at a place
of shared memory, but no plain access.

Where it deviates from a chip
    - Threads take their turns in order, on a chip in any: sums of floats may differ in their last bits.
    - Orders and scopes (.relaxed.gpu, .acq_rel ..) are read and ignored.
    - A plain access between the same two barriers is an error even if it is by the only warp that uses the place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import numbers
from .parser import Instruction, Vector, size_of
from .program import Program, Run, opcode, source, target, unknown
from .transfers import place, space_of
from .warps import REDUCE

Array = np.ndarray
ATOMIC = REDUCE | {"exch": lambda x, y: y}


@opcode("atom", "red")
def atomic(one: Instruction, program: Program) -> Run:
    """atom.global.gpu.acq_rel.add.f32 d, [a], b{, c};  red has no d."""
    space, kind = space_of(one), one.parts[-1]
    name = next((part for part in one.parts[1:] if part in ATOMIC or part == "cas"), None)
    if space not in ("global", "shared") or name is None or any(isinstance(x, Vector) for x in one.operands):
        raise unknown(one)
    d, address, *values = one.operands if one.parts[0] == "atom" else [None, *one.operands]
    width = size_of(kind)
    read, write_bits = numbers.reader(kind), numbers.writer(kind, f"b{8 * width}")
    write = target(program, d, f"b{8 * width}") if d is not None else None
    sources = [source(program, value, f"b{8 * width}") for value in values[: 2 if name == "cas" else 1]]
    slots = tuple(slot for slot, _ in sources)
    addresses = place(program, address, space == "global")
    if space == "shared":
        program.unit = min(program.unit, width)

    def combine(old: Array, *new: Array) -> Array:
        if name == "cas":
            return np.where(old == new[0], new[1], old)
        return write_bits(ATOMIC[name](read(old), read(new[0]))).view(old.dtype)

    def run(machine: Any) -> None:
        if machine.partial:
            machine.check_written(slots)
        runs = machine.full if machine.mask is None else np.broadcast_to(machine.mask, machine.shape)
        at = np.broadcast_to(addresses(machine), machine.shape)
        given = [np.broadcast_to(get(machine.registers[slot]), machine.shape)[runs] for slot, get in sources]
        if machine.counters is not None and space == "global":
            machine.counters.touch_global(machine, at, width, runs, "read")
            machine.counters.touch_global(machine, at, width, runs, "written")
        turn = turns(at[runs] if space == "global" else at[runs].astype(np.int64) + np.nonzero(runs)[0] * 2**32)
        before = np.zeros(len(turn), numbers.BITS[width])
        for number in range(int(turn.max(initial=-1)) + 1):  # in each, all addresses are different
            now = runs.copy()
            now[runs] = turn == number
            old = _swap(machine, space, at, now, width, lambda x, now=now: combine(x, *[y[now[runs]] for y in given]))
            before[turn == number] = old
        if write is not None:
            result = np.zeros(machine.shape, before.dtype)
            result[runs] = before
            write(machine, result)

    return run


def turns(address: Array) -> Array:
    """How many threads before this one have the same address."""
    order = np.argsort(address, kind="stable")
    same = np.zeros(len(address), bool)
    same[1:] = np.diff(address[order].astype(np.int64)) == 0
    position = np.arange(len(address))
    first = np.maximum.accumulate(np.where(same, 0, position))
    result = np.empty(len(address), np.int64)
    result[order] = position - first
    return result


def _swap(machine: Any, space: str, at: Array, now: Array, width: int, combine: Any) -> Array:
    """What the threads `now` find; combine(it) is put in its place."""
    if space == "global":
        old = machine.memory.load(at[now], width, 1, None)[:, 0]
        machine.memory.store(at[now], combine(old)[:, None], None)
        return old
    places = machine.shared.places(at, width, now)
    machine.shared.note_atomic(places)
    memory, index = machine.shared.rows(places, width)
    old = memory[index][..., 0]  # [blocks, n], or [n]
    memory[index] = combine(old.reshape(-1)).reshape(*old.shape, 1)
    return old.reshape(-1)
