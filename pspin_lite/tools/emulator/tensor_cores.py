"""The tensor cores of sm_80: mma.sync, and ldmatrix and stmatrix, which carry their operands from and to shared memory.

What it models: which lane holds which element of which matrix, by the formulas of the PTX ISA. A lane is g = lane / 4
and t = lane % 4. A register holds e elements: 2 of 16 bits, 1 of TF32, 4 of 8 bits.

    A [16, k]   register i, element j   row g + 8 (i % 2)   column  e t + j + 4 e (i / 2)
    B [k, 8]    register i, element j   row e t + j + 4 e i   column  g
    C [16, 8]   register i              row g + 8 (i / 2)   column  2 t + i % 2     (float32, int32)
                register i, element j   row g + 8 i         column  2 t + j         (float16)
    ldmatrix    matrix i of 8 x 8 elements of 16 bits: lane 8 i + r has the address of its row r; afterwards register i
                of a lane holds row g, columns 2 t and 2 t + 1, or with .trans those of the transposed matrix

Operands of TF32 lose their last 13 bits: they are cut off, not rounded, as on a chip.

Where it deviates from a chip: products are exact, and added up in float64 before one rounding to float32. A chip aligns
a few products at a time and cuts off what is beyond its adder. With `pessimistic` sums of four products (TF32) or eight
are added to the float32 result one after the other, and each is cut off, towards zero. Sums of integers are exact.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import numbers
from .parser import Instruction, Operand, Vector
from .places import Places
from .program import Program, Run, opcode, source, target, unknown
from .transfers import place

Array = np.ndarray
WARP = 32
ELEMENTS = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}  # in one register
SHAPES = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8), "s8": (16, 32), "u8": (16, 32)}  # k


def elements(registers: list[Array], kind: str, warps: tuple[int, int]) -> Array:
    """Registers of all lanes -> [blocks, warps, g, t, register, element], as float64."""
    stacked = np.stack(np.broadcast_arrays(*registers), -1)
    stacked = np.broadcast_to(stacked, (stacked.shape[0], *stacked.shape[1:]))
    blocks = stacked.shape[0]
    if stacked.shape[1] == 1:
        stacked = np.broadcast_to(stacked, (blocks, warps[1] * WARP, stacked.shape[2]))
    stacked = np.ascontiguousarray(stacked).view(np.uint32).reshape(blocks, -1, 8, 4, len(registers), 1)
    return as_float(stacked, kind)


def as_float(bits: Array, kind: str) -> Array:
    """uint32 [.., 1] -> float64 [.., elements]"""
    if kind == "f32":
        return bits.view(np.float32).astype(np.float64)
    if kind == "tf32":
        return numbers.cut_tf32(bits).astype(np.float64)
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return numbers.from_bf16(bits.view(np.uint16)).astype(np.float64)
    return bits.view({"s8": np.int8, "u8": np.uint8, "s32": np.int32}[kind]).astype(np.float64)


def matrix_a(registers: list[Array], kind: str, warps: tuple[int, int]) -> Array:
    """-> [blocks, warps, 16, k]"""
    x = elements(registers, kind, warps)
    b, w, g, t, n, e = x.shape
    x = x.reshape(b, w, g, t, n // 2, 2, e)  # register = 2 * (column half) + (row half)
    return x.transpose(0, 1, 5, 2, 4, 3, 6).reshape(b, w, 16, n // 2 * 4 * e)


def matrix_b(registers: list[Array], kind: str, warps: tuple[int, int]) -> Array:
    """-> [blocks, warps, k, 8]"""
    x = elements(registers, kind, warps)
    b, w, g, t, n, e = x.shape
    return x.transpose(0, 1, 4, 3, 5, 2).reshape(b, w, n * t * e, g)


def matrix_c(registers: list[Array], kind: str, warps: tuple[int, int]) -> Array:
    """-> [blocks, warps, 16, 8]"""
    x = elements(registers, kind, warps)
    b, w, g, t, _, _ = x.shape
    x = x.reshape(b, w, g, t, 2, 2)  # row half, column in a pair
    return x.transpose(0, 1, 4, 2, 3, 5).reshape(b, w, 16, 8)


def registers_of(matrix: Array, kind: str) -> list[Array]:
    """[blocks, warps, 16, 8] -> the registers of C, each [blocks, threads]"""
    b, w = matrix.shape[:2]
    x = matrix.reshape(b, w, 2, 8, 4, 2).transpose(2, 5, 0, 1, 3, 4)  # row half, column in a pair, ..
    if kind == "f16":
        pairs = numbers.join(x.transpose(0, 2, 3, 4, 5, 1).astype(np.float16).view(np.uint16))
        return [pairs[i].reshape(b, -1) for i in range(2)]
    x = x.astype({"f32": np.float32, "s32": np.int32}[kind])
    return [x[i // 2, i % 2].reshape(b, -1) for i in range(4)]


def multiply(a: Array, b: Array, c: Array | float, group: int, pessimistic: bool) -> Array:
    """a b + c in float64; pessimistic: `group` products at a time, the sum cut off to float32 each time."""
    if not pessimistic:
        return a @ b + c
    total = np.zeros((*a.shape[:-1], b.shape[-1])) + c
    for first in range(0, a.shape[-1], group):
        total = cut(total + a[..., first : first + group] @ b[..., first : first + group, :])
    return total


def cut(x: Array) -> Array:
    """To float32, towards zero."""
    near = x.astype(np.float32)
    return np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near).astype("f8")


def remembered(machine: Any, name: str, registers: list[Array], make: Any) -> Array:
    """make(), or what it gave for the very same registers a moment ago: fragments are used several times."""
    key = (name, *map(id, registers))
    found = machine.cache.get(key)
    if found is not None:
        return found[1]
    if len(machine.cache) >= 16:
        machine.cache.pop(next(iter(machine.cache)))
    machine.cache[key] = (registers, make())  # holding the registers keeps their ids theirs
    return machine.cache[key][1]


@opcode("mma.sync.aligned")
def mma(one: Instruction, program: Program) -> Run:
    """mma.sync.aligned.m16n8k16.row.col.d.a.b.c {d}, {a}, {b}, {c}"""
    shape = re.fullmatch(r"m16n8k(\d+)", one.parts[3])
    kinds = one.parts[-4:]
    out, a_kind, b_kind, c_kind = kinds
    integer = a_kind in ("s8", "u8")
    wanted = (("s32",) if integer else ("f32",)) if a_kind != "f16" else ("f32", "f16")
    right = shape and a_kind in SHAPES and int(shape[1]) in SHAPES[a_kind] and out in wanted and out == c_kind
    if not right or len(one.parts) != 10 or one.parts[4:6] != ("row", "col") or (a_kind != b_kind and not integer):
        raise unknown(one)
    d, *inputs = one.operands
    sources = [[source(program, part, "b32") for part in vector.parts] for vector in inputs]
    slots = tuple(slot for vector in sources for slot, _ in vector)
    writes = [target(program, part, "b32" if out == "f16" else out) for part in d.parts]
    group = 4 if a_kind == "tf32" else 8

    def run(machine: Any) -> None:
        machine.warps()
        if machine.partial:
            machine.check_written(slots)
        warps = (machine.shape[0], machine.shape[1] // WARP)
        a, b, c = ([read(machine.registers[slot]) for slot, read in vector] for vector in sources)
        left = remembered(machine, "a", a, lambda: matrix_a(a, a_kind, warps))
        right = remembered(machine, "b", b, lambda: matrix_b(b, b_kind, warps))
        total = multiply(left, right, matrix_c(c, c_kind, warps), group, machine.modes.pessimistic and not integer)
        for write, value in zip(writes, registers_of(total, out), strict=True):
            write(machine, value)

    return run


def row_places(machine: Any, address: Array, count: int) -> Places:
    """Places of the rows of `count` matrices, 8 * count for each warp that runs."""
    lanes = np.arange(machine.shape[1])[None, :] % WARP < 8 * count  # only these bring addresses
    machine.warps()
    mask = lanes if machine.mask is None else lanes & machine.mask
    if machine.counters is not None:
        machine.counters.touch_shared(machine, address, 16, mask, "read")
    return machine.shared.places(address, 16, mask)


def matrices(one: Instruction, operand: Operand) -> tuple[tuple[Operand, ...], bool]:
    """The registers of an ldmatrix or stmatrix, one for each matrix, and whether the matrices are turned."""
    registers = operand.parts if isinstance(operand, Vector) else (operand,)
    if f"x{len(registers)}" not in one.parts or "m8n8" not in one.parts or one.parts[-1] != "b16":
        raise unknown(one)
    return registers, "trans" in one.parts


@opcode("ldmatrix.sync.aligned")
def load_matrix(one: Instruction, program: Program) -> Run:
    """ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {d}, [a]"""
    d, address = one.operands
    registers, turned = matrices(one, d)
    writes, count = [target(program, register, "b32") for register in registers], len(registers)
    addresses = place(program, address, False)

    def run(machine: Any) -> None:
        places = row_places(machine, addresses(machine), count)
        rows = machine.shared.load(places, 2)
        rows = rows.reshape(*rows.shape[:-2], -1, count, 8, 8)
        if turned:
            rows = rows.swapaxes(-1, -2)
        pairs = numbers.join(rows.reshape(*rows.shape[:-1], 4, 2))  # [.., warps, matrix, g, t]
        for i, write in enumerate(writes):
            write(machine, to_lanes(machine, pairs[..., i, :, :], places.block is None))

    return run


def to_lanes(machine: Any, values: Array, together: bool) -> Array:
    """[blocks, running warps, 8, 4] (together), or [running warps, 8, 4] -> [blocks, threads]"""
    runs = machine.warps()
    if runs.all():
        return values.reshape(machine.shape)
    result = np.zeros((*runs.shape, WARP), values.dtype)
    if together:
        result[:, runs[0]] = values.reshape(values.shape[0], -1, WARP)
    else:
        result[runs] = values.reshape(-1, WARP)
    return result.reshape(machine.shape)


@opcode("stmatrix.sync.aligned")
def store_matrix(one: Instruction, program: Program) -> Run:
    """stmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 [a], {d}"""
    address, d = one.operands
    registers, turned = matrices(one, d)
    sources, count = [source(program, register, "b32") for register in registers], len(registers)
    slots = tuple(slot for slot, _ in sources)
    addresses = place(program, address, False)

    def run(machine: Any) -> None:
        if machine.partial:
            machine.check_written(slots)
        places = row_places(machine, addresses(machine), count)
        held = [np.broadcast_to(read(machine.registers[slot]), machine.shape) for slot, read in sources]
        runs = machine.warps()
        lanes = np.stack([x.reshape(*runs.shape, WARP) for x in held], 2)  # [blocks, warps, matrix, lane]
        lanes = lanes[:, runs[0]] if places.block is None else lanes[runs]
        rows = numbers.halves(lanes).reshape(*lanes.shape[:-1], 8, 8)
        if turned:
            rows = rows.swapaxes(-1, -2)
        shape = (len(lanes), -1, 8) if places.block is None else (-1, 8)
        machine.shared.store(places, np.ascontiguousarray(rows).reshape(shape))

    return run
