"""Loads and stores of global and shared memory, parameters, cp.async.

What it models: vectors, and the checks of memory.py and shared.py on them. Cache hints are read and ignored.

Where it deviates from a chip
    - .volatile, .relaxed, .acquire, .release are plain accesses: everything is seen at once anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers
from .parser import Address, EmulatorError, Immediate, Instruction, Symbol, Vector, size_of
from .places import Places
from .program import Program, Run, opcode, source, target, unknown

Array = np.ndarray
SPACES = ("global", "shared", "param", "local", "const", "shared::cta")


def space_of(one: Instruction) -> str:
    found = [part for part in one.parts if part in SPACES]
    return found[0].split("::")[0] if found else "generic"


def place(program: Program, address: Address, wide: bool) -> Callable[[Any], Array]:
    """-> function of a machine: the addresses, as they broadcast."""
    kind = "u64" if wide else "u32"
    base = address.base
    if isinstance(base, Immediate | Symbol):
        slot, read = source(program, base, kind)
    else:
        kind = f"u{8 * size_of(program.kind(base))}"
        slot, read = source(program, base, kind)
    offset = numbers.INTEGERS[kind].type(address.offset & (2 ** (8 * size_of(kind)) - 1))

    def addresses(machine: Any) -> Array:
        if machine.partial:
            machine.check_written((slot,))
        value = read(machine.registers[slot])
        return value + offset if address.offset else value

    return addresses


def vector_of(one: Instruction) -> int:
    return next((int(part[1:]) for part in one.parts if part in ("v2", "v4", "v8")), 1)


@opcode("ld", "ldu")
def load(one: Instruction, program: Program) -> Run:
    space, kind, count = space_of(one), one.parts[-1], vector_of(one)
    d, address = one.operands[:2]
    outs = d.parts if isinstance(d, Vector) else (d,)
    if space == "param":
        return _parameter(one, program, outs)
    if space not in ("global", "shared") or len(outs) != count:
        raise unknown(one)
    width = size_of(kind)
    writes = [target(program, out, f"b{8 * width}" if kind[0] in "bf" else kind) for out in outs]
    addresses = place(program, address, space == "global")
    if space == "shared":
        program.unit = min(program.unit, width * count)

    def from_global(machine: Any) -> None:
        at, mask = agree(machine, addresses(machine))
        if machine.counters is not None:
            machine.counters.touch_global(machine, at, width * count, mask, "read")
        values = machine.memory.load(at, width, count, mask)
        for i, write in enumerate(writes):
            write(machine, values[..., i])

    def from_shared(machine: Any) -> None:
        at = addresses(machine)
        if machine.counters is not None:
            machine.counters.touch_shared(machine, at, width * count, machine.mask, "read")
        places = machine.shared.places(at, width * count, machine.mask)
        values = spread(machine, machine.shared.load(places, width))
        for i, write in enumerate(writes):
            write(machine, values[..., i])

    return from_global if space == "global" else from_shared


def agree(machine: Any, at: Array) -> tuple[Array, Array | None]:
    """Addresses and mask in one shape: small where both are the same for many threads."""
    mask = machine.mask
    if mask is None:
        return at, None
    shape = np.broadcast_shapes(at.shape, mask.shape)
    return np.broadcast_to(at, shape), np.broadcast_to(mask, shape)


def spread(machine: Any, values: Array) -> Array:
    """What those that run have loaded, [blocks, n, count] or [n, count] -> [blocks, threads, count]."""
    shape, mask = (*machine.shape, values.shape[-1]), machine.mask
    if mask is None:
        return values.reshape(shape)
    result = np.zeros(shape, values.dtype)
    if values.ndim == 3:
        result[:, np.broadcast_to(mask[0], machine.shape[1:])] = values
    else:
        result[np.broadcast_to(mask, machine.shape)] = values
    return result


def gathered(machine: Any, places: Places, values: Array) -> Array:
    """The other way: [blocks, threads, count] -> what those that run store at these places."""
    mask = machine.mask
    if places.block is None:
        return values if mask is None else values[:, np.broadcast_to(mask[0], machine.shape[1:])]
    return values.reshape(-1, values.shape[-1]) if mask is None else values[np.broadcast_to(mask, machine.shape)]


def _parameter(one: Instruction, program: Program, outs: tuple) -> Run:
    address, kind = one.operands[1], one.parts[-1]
    width = size_of(kind)
    writes = [target(program, out, kind) for out in outs]
    name = address.base.name
    if name not in program.kernel.parameters:
        raise EmulatorError(f"{name} is no parameter of {program.kernel.name}")

    def run(machine: Any) -> None:
        data = machine.memory.parameters[name].reshape(-1).view(np.uint8)
        for i, write in enumerate(writes):
            first = address.offset + i * width
            bits = data[first : first + width].copy().view(numbers.BITS[width]).reshape(1, 1)
            write(machine, numbers.reader(kind)(bits) if kind in numbers.INTEGERS else bits.view(numbers.PLAIN[kind]))

    return run


@opcode("st")
def store(one: Instruction, program: Program) -> Run:
    space, kind, count = space_of(one), one.parts[-1], vector_of(one)
    address, value = one.operands[:2]
    parts = value.parts if isinstance(value, Vector) else (value,)
    if space not in ("global", "shared") or len(parts) != count:
        raise unknown(one)
    width = size_of(kind)
    bits = f"b{8 * width}"
    sources = [source(program, part, bits) for part in parts]
    slots = tuple(slot for slot, _ in sources)
    addresses = place(program, address, space == "global")
    if space == "shared":
        program.unit = min(program.unit, width * count)

    def values(machine: Any) -> Array:
        if machine.partial:
            machine.check_written(slots)
        parts = [np.broadcast_to(read(machine.registers[slot]), machine.shape) for slot, read in sources]
        return np.stack(parts, -1)

    def to_global(machine: Any) -> None:
        at, data = np.broadcast_to(addresses(machine), machine.shape), values(machine)
        mask = None if machine.mask is None else np.broadcast_to(machine.mask, machine.shape)
        if machine.counters is not None:
            machine.counters.touch_global(machine, at, width * count, mask, "written")
        machine.memory.store(at, data, mask)

    def to_shared(machine: Any) -> None:
        at, data = addresses(machine), values(machine)
        if machine.counters is not None:
            machine.counters.touch_shared(machine, at, width * count, machine.mask, "written")
        places = machine.shared.places(at, width * count, machine.mask)
        machine.shared.store(places, gathered(machine, places, data))

    return to_global if space == "global" else to_shared


@opcode("cp.async.ca.shared.global", "cp.async.cg.shared.global")
def copy(one: Instruction, program: Program) -> Run:
    """cp.async [shared], [global], bytes{, bytes to read}: the rest are zeros."""
    into, out_of, size, *rest = one.operands
    each = int(size.text, 0)
    have = source(program, rest[0], "u32") if rest and program_is_size(program, rest[0]) else None
    to, at = place(program, into, False), place(program, out_of, True)
    program.unit = min(program.unit, each)

    def run(machine: Any) -> None:
        if machine.partial and have is not None:
            machine.check_written((have[0],))
        places = machine.shared.places(to(machine), each, machine.mask)
        address = np.broadcast_to(at(machine), machine.shape)
        wanted = each if have is None else np.broadcast_to(have[1](machine.registers[have[0]]), machine.shape)
        wanted = np.broadcast_to(wanted, machine.shape)
        runs = machine.full if machine.mask is None else np.broadcast_to(machine.mask, machine.shape)
        if (wanted[runs] % np.uint32(each) != 0).any():
            raise EmulatorError(f"cp.async of a part of its {each} bytes is not known to the emulator")
        mask = runs & (wanted > 0)
        if machine.counters is not None:
            machine.counters.touch_global(machine, address, each, mask, "read")
            machine.counters.touch_shared(machine, to(machine), each, runs, "written")
        width = min(each, 8)
        data = machine.memory.load(address, width, each // width, mask)
        data = np.ascontiguousarray(data).view(np.uint8)
        machine.shared.copy(places, np.ascontiguousarray(gathered(machine, places, data)))

    return run


def program_is_size(program: Program, operand: Any) -> bool:
    """Whether an operand after the bytes says how many to read: a cache policy, which has 64 bits, does not."""
    return isinstance(operand, Immediate) or size_of(program.kind(operand)) == 4


def running_blocks(machine: Any) -> Array:
    """Which blocks run; an error if only some threads of a block do."""
    if machine.mask is None:
        return np.ones(machine.shape[0], bool)
    mask = np.broadcast_to(machine.mask, machine.shape)
    some, all_ = mask.any(1), mask.all(1)
    if (some != all_).any():
        block = int(np.flatnonzero(some != all_)[0])
        missing = np.flatnonzero(~mask[block])
        raise EmulatorError(
            f"{len(missing)} of {machine.shape[1]} threads of a block are missing here, the first of them {missing[0]}"
        )
    return all_


@opcode("cp.async.commit_group")
def commit(one: Instruction, program: Program) -> Run:
    return lambda machine: machine.shared.commit(running_blocks(machine))


@opcode("cp.async.wait_group", "cp.async.wait_all")
def wait(one: Instruction, program: Program) -> Run:
    if one.parts[2] == "wait_all":

        def everything(machine: Any) -> None:
            machine.shared.commit(running_blocks(machine))
            machine.shared.wait(running_blocks(machine), 0)

        return everything
    pending = int(one.operands[0].text, 0)
    return lambda machine: machine.shared.wait(running_blocks(machine), pending)


@opcode("createpolicy", "prefetch", "applypriority", "discard")
def hint(one: Instruction, program: Program) -> Run:
    """Hints to caches do nothing; a policy is a number that nobody reads."""
    if one.parts[0] != "createpolicy":
        return lambda machine: None
    write = target(program, one.operands[0], "b64")
    return lambda machine: write(machine, np.zeros((1, 1), np.uint64))
