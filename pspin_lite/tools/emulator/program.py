"""A kernel made ready to run: every operand is the number of a register, every instruction a Python function.

Constants, parameters and special registers (%tid.x ..) are registers too, filled before the first instruction.
The code is cut into basic blocks, at labels that are jumped to and behind jumps.

The functions come from a table, which the modules of instructions fill: `@opcode("add", "sub")` on a function that gets
the instruction and the program and returns what to run. `elementwise` makes that out of a numpy function and the types
of its operands.

What it models: a guard (`@%p1 ..`) takes away threads from the mask for one instruction.

Where it deviates from a chip: registers are the PTX's, as many as it likes; nothing is spilled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import numbers
from .parser import EmulatorError, Immediate, Instruction, Kernel, Operand, Register, Symbol

Array = np.ndarray
Run = Callable[[Any], None]  # of a Machine
SPECIAL = ("tid", "ntid", "ctaid", "nctaid")
BOOL = np.dtype(bool)


@dataclass(eq=False)
class Block:
    """Instructions without a branch, and where they lead."""

    code: list[tuple[Instruction, Run]]
    branch: Instruction | None = None
    taken: int | None = None  # number of a block; None: the thread ends
    after: int | None = None


class Program:
    """A kernel with every operand a number of a register, every instruction a function. Constants, parameters and
    special registers are registers too, filled before the first instruction."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.slots: dict[Any, int] = {}
        self.constants: dict[int, Array] = {}
        self.unit = 4  # bytes: the smallest access to shared memory, for the race check
        self.blocks = self._blocks()

    def slot(self, name: str) -> int:
        """Number of a register."""
        if name not in self.slots:
            special = name.split(".")[0].lstrip("%") in SPECIAL or name in ("%laneid", "%warpid")
            kind = "b32" if special else self.kernel.type_of(name)
            self.slots[name] = len(self.names)
            self.names.append(name)
            self.kinds.append(kind)
        return self.slots[name]

    def source(self, operand: Operand, kind: str) -> int:
        """Number of the register that holds an operand of this type: a register, a constant, an address."""
        if isinstance(operand, Register):
            return self.slot(operand.name)
        if isinstance(operand, Symbol):
            if operand.name not in self.kernel.symbols:
                raise EmulatorError(f"the emulator does not know the symbol {operand.name}")
            operand = Immediate(str(self.kernel.symbols[operand.name]))
        key = (operand, kind)
        if key not in self.slots:
            self.slots[key] = len(self.names)
            self.names.append(operand.text)
            self.kinds.append(kind)
            self.constants[self.slots[key]] = numbers.immediate(operand.text, kind)
        return self.slots[key]

    def kind(self, operand: Register) -> str:
        return self.kinds[self.slot(operand.name)]

    def _blocks(self) -> list[Block]:
        code, labels = self.kernel.code, self.kernel.labels
        jumps = {"bra", "ret", "exit"}
        firsts = {0} | {i + 1 for i, one in enumerate(code) if one.parts[0] in jumps}
        firsts |= {labels[one.operands[0].name] for one in code if one.parts[0] == "bra"}
        starts = sorted(first for first in firsts if first < len(code))
        number = {first: i for i, first in enumerate(starts)}
        result = []
        for first, end in zip(starts, [*starts[1:], len(code)], strict=True):
            block = Block([], after=number.get(end))
            for one in code[first:end]:
                if one.guard is not None:
                    located(one, lambda one=one: self.slot(one.guard.name))
                if one.parts[0] == "bra":
                    block.branch, block.taken = one, number.get(labels[one.operands[0].name])
                elif one.parts[0] in jumps:
                    block.branch = one
                else:
                    block.code.append((one, located(one, lambda one=one: build(one, self))))
            result.append(block)
        return result


def located(instruction: Instruction, act: Callable[[], Any]) -> Any:
    """An error says which instruction and which line of Triton it comes from."""
    try:
        return act()
    except EmulatorError as error:
        raise EmulatorError(place(instruction, error)) from None


def place(one: Instruction, error: Exception) -> str:
    return f"{error}\n  {one.text}\n  line {one.line} of the PTX, from {one.where or 'an unknown line'}"


class Unwritten:
    """In the place of a register that nobody has written yet. Whoever looks at its dtype, as all readers do, fails."""

    def __init__(self, name: str, why: str = "is read before it is written"):
        self.name, self.why = name, why

    @property
    def dtype(self) -> np.dtype:
        raise EmulatorError(f"register {self.name} {self.why}")


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


def build(instruction: Instruction, program: Program) -> Run:
    """What to run for one instruction. An opcode that is not known is an error that names it."""
    return guarded(instruction, program, find(instruction)(instruction, program))


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
