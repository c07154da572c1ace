"""A kernel made ready to run: every operand is the number of a register, every instruction a Python function.

Constants, parameters and special registers (%tid.x ..) are registers too, filled before the first instruction.
The code is cut into basic blocks, at labels that are jumped to and behind jumps.

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

    def __init__(self, kernel: Kernel, build: Callable[[Instruction, Program], Run]):
        self.kernel = kernel
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.slots: dict[Any, int] = {}
        self.constants: dict[int, Array] = {}
        self.unit = 4  # bytes: the smallest access to shared memory, for the race check
        self.blocks = self._blocks(build)

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

    def _blocks(self, build: Callable[[Instruction, Program], Run]) -> list[Block]:
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
