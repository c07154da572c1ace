"""What threads do together: shuffles, votes, reductions of a warp; barriers and fences.

What it models: all lanes of a warp must take part, as the mask of all ones that Triton writes demands, and all threads
of a block in a barrier.

Where it deviates from a chip
    - A mask of some lanes only is an error.
    - bar.sync must be reached by all threads of a block at one instruction, with any number of the barrier.
    - Fences other than fence.proxy.async do nothing: everything is seen at once anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .parser import EmulatorError, Instruction, Operand
from .program import Program, Run, opcode, source, target, unknown
from .transfers import running_blocks

Array = np.ndarray
WARP = 32
ALL = 0xFFFFFFFF


def members(program: Program, operand: Operand) -> Callable[[Any], None]:
    """Checks, when run, that a mask of lanes is all ones and that all are there."""
    slot, read = source(program, operand, "u32")

    def check(machine: Any) -> None:
        machine.warps()
        lanes = read(machine.registers[slot])
        lanes = lanes if machine.mask is None or lanes.size == 1 else lanes[np.broadcast_to(machine.mask, lanes.shape)]
        if (lanes != ALL).any():
            raise EmulatorError(f"a mask of lanes {int(lanes.ravel()[0]):#x}: the emulator knows only all of them")

    return check


def lanes(x: Array, threads: int) -> Array:
    """[.., T] -> [.., warps, 32]"""
    x = np.broadcast_to(x, (x.shape[0], threads))
    return x.reshape(x.shape[0], -1, WARP)


@opcode("shfl.sync")
def shuffle(one: Instruction, program: Program) -> Run:
    """shfl.sync.mode.b32 d{|p}, a, b, c, mask"""
    mode = one.parts[2]
    *outs, a, b, c, mask = one.operands
    check = members(program, mask)
    write = target(program, outs[0], "b32")
    write_valid = target(program, outs[1], "pred") if len(outs) > 1 else None
    sources = [source(program, operand, "u32") for operand in (a, b, c)]
    slots = tuple(slot for slot, _ in sources)
    me = np.arange(WARP, dtype=np.int64)
    if mode not in ("up", "down", "bfly", "idx"):
        raise unknown(one)

    def run(machine: Any) -> None:
        check(machine)
        if machine.partial:
            machine.check_written(slots)
        value, by, clamp = (read(machine.registers[slot]) for slot, read in sources)
        threads = machine.shape[1]
        constant = by.size == clamp.size == 1
        if constant:
            by, clamp = int(by.item()), int(clamp.item())
        else:
            by, clamp = (lanes(x, threads).astype(np.int64) for x in (by, clamp))
        segment, most = (clamp >> 8) & 31, clamp & 31
        by = by & 31
        first = me & segment
        last = first | (most & ~segment)
        wanted = {"up": me - by, "down": me + by, "bfly": me ^ by, "idx": first | (by & ~segment)}[mode]
        valid = wanted >= last if mode == "up" else wanted <= last
        wanted = np.where(valid, wanted, me)
        held = lanes(value, threads)
        if constant:
            moved = held[..., wanted]
        else:
            shape = np.broadcast_shapes(held.shape, wanted.shape)
            moved = np.take_along_axis(np.broadcast_to(held, shape), np.broadcast_to(wanted, shape), -1)
        write(machine, moved.reshape(moved.shape[0], threads))
        if write_valid:
            write_valid(machine, np.broadcast_to(valid, held.shape).reshape(held.shape[0], threads))

    return run


REDUCE = {"add": np.add, "min": np.minimum, "max": np.maximum}
REDUCE |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@opcode("redux.sync")
def reduce(one: Instruction, program: Program) -> Run:
    """redux.sync.max.s32 d, a, mask"""
    name, kind = one.parts[2], one.parts[-1]
    d, a, mask = one.operands
    if name not in REDUCE or kind not in ("s32", "u32", "b32") or len(one.parts) != 4:
        raise unknown(one)
    check, write, (slot, read) = members(program, mask), target(program, d, kind), source(program, a, kind)

    def run(machine: Any) -> None:
        check(machine)
        if machine.partial:
            machine.check_written((slot,))
        held = lanes(read(machine.registers[slot]), machine.shape[1])
        result = REDUCE[name].reduce(held, -1, keepdims=True)
        write(machine, np.broadcast_to(result, held.shape).reshape(held.shape[0], -1))

    return run


@opcode("vote.sync")
def vote(one: Instruction, program: Program) -> Run:
    mode = one.parts[2]
    d, p, mask = one.operands
    check, (slot, read) = members(program, mask), source(program, p, "pred")
    write = target(program, d, "b32" if mode == "ballot" else "pred")

    def run(machine: Any) -> None:
        check(machine)
        if machine.partial:
            machine.check_written((slot,))
        held = lanes(read(machine.registers[slot]), machine.shape[1])
        if mode == "ballot":
            bits = held.astype(np.uint32) << np.arange(WARP, dtype=np.uint32)
            result = bits.sum(-1, keepdims=True, dtype=np.uint32)
        elif mode == "uni":
            result = held.all(-1, keepdims=True) | ~held.any(-1, keepdims=True)
        else:
            result = held.all(-1, keepdims=True) if mode == "all" else held.any(-1, keepdims=True)
        write(machine, np.broadcast_to(result, held.shape).reshape(held.shape[0], -1))

    return run


@opcode("elect.sync")
def elect(one: Instruction, program: Program) -> Run:
    """One lane of each warp: the first."""
    *outs, mask = one.operands
    check = members(program, mask)
    writes = [target(program, out, kind) for out, kind in zip(outs, ("b32", "pred"), strict=True)]

    def run(machine: Any) -> None:
        check(machine)
        threads = np.arange(machine.shape[1])[None, :]
        writes[0](machine, np.zeros((1, 1), np.uint32))
        writes[1](machine, threads % WARP == 0)

    return run


@opcode("activemask")
def active(one: Instruction, program: Program) -> Run:
    write = target(program, one.operands[0], "b32")

    def run(machine: Any) -> None:
        machine.warps()
        write(machine, np.full((1, 1), ALL, np.uint32))

    return run


@opcode("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync")
def barrier(one: Instruction, program: Program) -> Run:
    def run(machine: Any) -> None:
        try:
            blocks = running_blocks(machine)
        except EmulatorError as error:
            raise EmulatorError(f"a barrier that not all threads of a block reach: {error}") from None
        machine.shared.barrier(blocks)

    return run


@opcode("bar.red")
def barrier_with_vote(one: Instruction, program: Program) -> Run:
    """bar.red.popc|and|or d, barrier, p: of the whole block."""
    mode, kind = one.parts[2], one.parts[-1]
    d, *_, p = one.operands
    write, (slot, read) = target(program, d, kind), source(program, p, "pred")
    wait = barrier(one, program)

    def run(machine: Any) -> None:
        wait(machine)
        if machine.partial:
            machine.check_written((slot,))
        held = np.broadcast_to(read(machine.registers[slot]), machine.shape)
        result = {"popc": held.sum, "and": held.all, "or": held.any}[mode](1, keepdims=True)
        write(machine, result if kind == "pred" else result.astype(np.uint32))

    return run


@opcode("bar.warp.sync")
def warp_barrier(one: Instruction, program: Program) -> Run:
    return members(program, one.operands[0])


@opcode("membar", "fence.acq_rel", "fence.sc", "nanosleep", "griddepcontrol", "pragma")
def nothing(one: Instruction, program: Program) -> Run:
    """Order of accesses and waiting: everything happens in order here."""
    return lambda machine: None


@opcode("fence.proxy.async")
def proxy_fence(one: Instruction, program: Program) -> Run:
    return lambda machine: machine.shared.fence(running_blocks(machine))


@opcode("trap")
def trap(one: Instruction, program: Program) -> Run:
    def run(machine: Any) -> None:
        raise EmulatorError(f"trap: an assertion of the kernel failed, {machine.who(machine.full)}")

    return run
