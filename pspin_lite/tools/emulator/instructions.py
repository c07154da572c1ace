"""All instructions that the emulator knows: importing this module fills the table.

integers.py      integer arithmetic and logic; moves.py: moves, selection, comparison, conversion
floats.py        float32, float16, bfloat16 arithmetic, and what is only approximate on a chip
transfers.py     loads, stores, cp.async, atomic operations
warps.py         shuffles, votes, reductions of a warp, barriers, fences
tensor_cores.py  mma, ldmatrix, stmatrix; warpgroups.py: wgmma
"""

from __future__ import annotations

from . import atomics, floats, integers, moves, tensor_cores, transfers, warpgroups, warps
from .operations import TABLE, find, guarded
from .parser import Instruction
from .program import Program, Run

KNOWN = (atomics, integers, moves, floats, transfers, warps, tensor_cores, warpgroups)


def build(instruction: Instruction, program: Program) -> Run:
    """What to run for one instruction. An opcode that is not known is an error that names it."""
    return guarded(instruction, program, find(instruction)(instruction, program))


def known() -> list[str]:
    """Names in the table, for documentation."""
    return sorted(TABLE)
