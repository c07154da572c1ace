"""The table of instructions, and how most of them work: read registers, compute, write one.

A module of instructions fills the table: `@opcode("add", "sub")` on a function that gets the instruction and the
program and returns what to run. `elementwise` makes that out of a numpy function and the types of its operands.

What it models: a guard (`@%p1 ..`) takes away threads from the mask for one instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers
from .parser import EmulatorError, Instruction, Operand, Register
from .program import Program, Run

Array = np.ndarray
Builder = Callable[[Instruction, Program], Run]
TABLE: dict[str, Builder] = {}


def opcode(*names: str) -> Callable[[Builder], Builder]:
    """Names are opcodes up to some dot: "add", or "cp.async" where "cp" would be too much."""

    def put(builder: Builder) -> Builder:
        for name in names:
            TABLE[name] = builder
        return builder

    return put


def find(instruction: Instruction) -> Builder:
    """The longest name in the table that the opcode begins with."""
    parts = instruction.parts
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in TABLE:
            return TABLE[".".join(parts[:n])]
    raise unknown(instruction)


def unknown(instruction: Instruction) -> EmulatorError:
    return EmulatorError(f"the emulator does not know the instruction {instruction.opcode}")


def guarded(instruction: Instruction, program: Program, run: Run) -> Run:
    """Only for threads whose predicate is true."""
    guard = instruction.guard
    if guard is None:
        return run
    slot, negated = program.slot(guard.name), guard.negated

    def act(machine: Any) -> None:
        if machine.partial:
            machine.check_written((slot,))
        wanted = machine.registers[slot]
        wanted = wanted if wanted.dtype is BOOL else wanted.astype(bool)
        wanted = ~wanted if negated else wanted
        before = machine.mask
        if not wanted.all():
            here = wanted if before is None else before & wanted
            if not here.any():
                return
            machine.mask = here
        run(machine)
        machine.mask = before

    return act


BOOL = np.dtype(bool)


def source(program: Program, operand: Operand, kind: str) -> tuple[int, Callable[[Array], Array]]:
    """Number of a register, and what makes its bits an array of the type."""
    read = numbers.reader(kind)
    if isinstance(operand, Register) and operand.negated:
        return program.source(operand, kind), lambda x: ~read(x)
    return program.source(operand, kind), read


def target(program: Program, operand: Operand, kind: str) -> Callable[[Any, Array], None]:
    """Writes what was computed as `kind` into a register, or (`_`) nowhere."""
    if not isinstance(operand, Register):
        raise EmulatorError(f"{operand} cannot be written to")
    if operand.name == "_":
        return lambda machine, value: None
    slot = program.slot(operand.name)
    convert = numbers.writer(kind, program.kinds[slot])
    return lambda machine, value: machine.write(slot, convert(value))


def elementwise(
    program: Program,
    function: Callable[..., Array],
    result: tuple[Operand, str],
    *operands: tuple[Operand, str],
) -> Run:
    """result = function(operands), each thread by itself."""
    write = target(program, *result)
    sources = [source(program, operand, kind) for operand, kind in operands]
    slots = tuple(slot for slot, _ in sources)
    if len(sources) == 1:
        ((a, read_a),) = sources

        def run(machine: Any) -> None:
            if machine.partial:
                machine.check_written(slots)
            write(machine, function(read_a(machine.registers[a])))

    elif len(sources) == 2:
        (a, read_a), (b, read_b) = sources

        def run(machine: Any) -> None:
            if machine.partial:
                machine.check_written(slots)
            registers = machine.registers
            write(machine, function(read_a(registers[a]), read_b(registers[b])))

    else:

        def run(machine: Any) -> None:
            if machine.partial:
                machine.check_written(slots)
            registers = machine.registers
            write(machine, function(*[read(registers[slot]) for slot, read in sources]))

    return run
