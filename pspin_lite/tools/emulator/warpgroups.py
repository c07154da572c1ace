"""The tensor cores of sm_90: wgmma, a product that four warps ask for and wait for.

What it models: D [64, n] += A [64, k] B [k, n]. Warp w of a group of four holds rows 16 w to 16 w + 15, laid out as for
mma: register i of D is row g + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2. B, and A unless it is in registers, are
in shared memory, described by 64 bits:

    bits 0-13  start / 16   16-29  leading offset / 16   32-45  stride offset / 16   62-63  swizzle: none, 128, 64, 32

Memory is cut into pieces of 16 bytes, e elements each. With a swizzle of S bytes, element (m, k), m being the row of A
or the column of B, is in the piece at

    K-major        (m / 8) stride + (m % 8) S + (k / e) 16                             k runs along a piece
    MN-major       (m e' S / 16) leading + (m / e % (S / 16)) 16 + (k % 8) S + (k / 8) stride    m runs along a piece
    K-major, none  (m / 8) stride + (m % 8) 16 + (k / e) leading
    MN-major, none (m / e) stride + (k % 8) 16 + (k / 8) leading

(m e' S / 16: the number of S bytes of m), behind the start; then bits 4-6 of the address are XORed with bits 7-9, as
many of them as S has: three for 128, two for 64, one for 32.

Checks: results are not there before wgmma.wait_group; what B and A are read from must have been written before the last
barrier and handed over by fence.proxy.async, and stay as it is until the wait.

Where it deviates from a chip
    - Sums as in tensor_cores.py.
    - wgmma.fence, which orders registers, is not checked.
    - If blocks have branched apart, a wait is a wait for everything.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .parser import EmulatorError, Instruction, Vector
from .places import Places
from .program import Program, Run, Unwritten, opcode, source, unknown
from .tensor_cores import as_float, matrix_a, multiply

Array = np.ndarray
WARP, GROUP = 32, 4  # lanes of a warp, warps of a group
SWIZZLE = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes; 16: none
KINDS = {"f16": 2, "bf16": 2, "tf32": 4}  # bytes


class Pending(Unwritten):
    """In the place of a register whose result is still being computed."""

    def __init__(self, name: str, result: Result, index: int, before: Any):
        super().__init__(name, "is read before wgmma.wait_group")
        self.result, self.index, self.before = result, index, before


class Result:
    """D of one or several wgmma, [blocks, groups, 64, n] in float64, rounded to float32."""

    def __init__(self, matrix: Array, slots: tuple[int, ...], mask: Array | None):
        self.matrix, self.slots, self.mask = matrix, slots, mask

    def settle(self, machine: Any) -> None:
        """The results are there: into the registers."""
        for slot, value in zip(self.slots, to_registers(self.matrix), strict=True):
            now = machine.registers[slot]
            if isinstance(now, Pending) and now.result is self:
                machine.registers[slot] = value
                if self.mask is not None and not isinstance(now.before, Unwritten):
                    machine.registers[slot] = np.where(self.mask, value, now.before.view(value.dtype))


def to_registers(matrix: Array) -> list[Array]:
    b, groups, _, n = matrix.shape
    x = matrix.astype(np.float32).reshape(b, groups, GROUP, 2, 8, n // 8, 4, 2)
    x = np.ascontiguousarray(x.transpose(5, 3, 7, 0, 1, 2, 4, 6))  # pair of columns, row half, column, ..
    return list(x.reshape(n // 2, b, -1))


def from_registers(registers: list[Array], shape: tuple[int, int]) -> Array:
    n = 2 * len(registers)
    x = np.stack([np.broadcast_to(one, shape) for one in registers])
    x = x.reshape(n // 8, 2, 2, shape[0], -1, GROUP, 8, 4).transpose(3, 4, 5, 1, 6, 0, 7, 2)
    return x.reshape(shape[0], -1, 64, n).astype(np.float64)


def offsets(size: int, k: int, width: int, descriptor: int, turned: bool) -> Array:
    """Where the 16-byte pieces of a matrix [size, k] are, behind its start: [size, k / e], or turned [size / e, k]."""
    leading, stride = (descriptor >> 16 & 0x3FFF) << 4, (descriptor >> 32 & 0x3FFF) << 4
    swizzle, e = SWIZZLE[descriptor >> 62], 16 // width
    if turned:
        m, c = np.arange(size // e)[:, None], np.arange(k)[None, :]
        if swizzle == 16:
            return m * stride + c % 8 * 16 + c // 8 * leading
        row = swizzle // 16
        return m // row * leading + m % row * 16 + c % 8 * swizzle + c // 8 * stride
    m, c = np.arange(size)[:, None], np.arange(k // e)[None, :]
    if swizzle == 16:
        return m // 8 * stride + m % 8 * 16 + c * leading
    return m // 8 * stride + m % 8 * swizzle + c * 16


def pieces(descriptor: int, size: int, k: int, width: int, turned: bool) -> Array:
    """Addresses of the pieces, swizzled."""
    if descriptor >> 49 & 7:
        raise EmulatorError("a matrix descriptor with a base offset is not known to the emulator")
    address = ((descriptor & 0x3FFF) << 4) + offsets(size, k, width, descriptor, turned)
    bits = {16: 0, 32: 1, 64: 3, 128: 7}[SWIZZLE[descriptor >> 62]]
    return address ^ ((address >> 7 & bits) << 4)


def read_matrix(machine: Any, descriptors: Array, size: int, k: int, kind: str, turned: bool) -> Array:
    """[size, k] of every group that runs: [blocks, groups, size, k] in float64, zeros for those that do not."""
    width = KINDS[kind]
    runs = running_groups(machine)
    threads = np.broadcast_to(descriptors, (descriptors.shape[0], machine.shape[1]))
    each = threads.reshape(threads.shape[0], runs.shape[1], -1)
    if ((each != each[:, :, :1]) & runs[: len(each), :, None]).any():
        raise EmulatorError("the matrix descriptor of wgmma is not the same in all threads of its four warps")
    each = each[:, :, 0]
    together = len(each) == 1 and runs.all()
    where = [(None, g) for g in range(runs.shape[1])] if together else list(map(tuple, np.argwhere(runs)))
    known: dict[int, Array] = {}
    result = None
    for block, group in where:
        descriptor = int(each[0 if block is None or len(each) == 1 else block, group])
        if descriptor not in known:
            known[descriptor] = pieces(descriptor, size, k, width, turned)
        address = known[descriptor]
        data = _read(machine, address.ravel(), block, group)  # [blocks, pieces, 16]
        data = np.ascontiguousarray(data).view(np.uint32 if width == 4 else np.uint16)
        data = data.reshape(len(data), *address.shape, -1)
        data = data.transpose(0, 1, 3, 2) if turned else data
        bits = np.ascontiguousarray(data).reshape(len(data), size, k)
        if result is None:
            result = np.zeros((*runs.shape, size, k), bits.dtype)
        result[slice(None) if block is None else slice(block, block + 1), group] = bits
    if result is None:
        return np.zeros((*runs.shape, size, k))
    return as_float(result, kind) if width == 4 else as_float(result.view(np.uint32), kind)


def _read(machine: Any, address: Array, block: int | None, group: int) -> Array:
    """Pieces of one group of warps, noted as read by each of its warps."""
    shared = machine.shared
    warps = np.repeat(np.arange(GROUP) + GROUP * group, len(address))
    four = np.tile(address, GROUP)
    if block is not None:
        shared.part()
    blocks = None if block is None else np.full(len(four), block)
    places = Places(four, warps, blocks, 16)
    shared.read_by_wgmma(places)
    one = Places(address, warps[: len(address)], None if block is None else blocks[: len(address)], 16)
    if machine.counters is not None:
        machine.counters.touch_operand(16 * len(address), machine.shape[0] if block is None else 1)
    memory, index = shared.rows(one, 1)
    data = memory[index]
    return data if block is None else data[None]


def running_groups(machine: Any) -> Array:
    """[blocks, groups of four warps]; an error if some warps of a group are missing."""
    if machine.shape[1] % (GROUP * WARP):
        raise EmulatorError(f"wgmma needs groups of 128 threads, and a block has {machine.shape[1]}")
    runs = machine.warps().reshape(machine.shape[0], -1, GROUP)
    if (runs.any(2) != runs.all(2)).any():
        raise EmulatorError("warps are missing in an instruction of four warps")
    return runs.all(2)


@opcode("wgmma.mma_async.sync.aligned")
def product(one: Instruction, program: Program) -> Run:
    """wgmma.mma_async.sync.aligned.m64n64k16.f32.a.b {d}, {a} or descriptor, descriptor, p, 1, 1{, turn a}{, turn b}"""
    shape = re.fullmatch(r"m64n(\d+)k(\d+)", one.parts[4])
    out, a_kind, b_kind = one.parts[5:8] if len(one.parts) == 8 else ("", "", "")
    if not shape or out != "f32" or a_kind not in KINDS or a_kind != b_kind:
        raise unknown(one)
    n, k = int(shape[1]), int(shape[2])
    d, a, b, scale, scale_a, scale_b, *turns = one.operands
    if k * KINDS[a_kind] != 32 or 2 * len(d.parts) != n or scale_a.text != "1" or scale_b.text != "1":
        raise unknown(one)
    turn_b = bool(turns) and turns[-1].text == "1"
    turn_a = len(turns) == 2 and turns[0].text == "1"
    results = tuple(program.slot(part.name) for part in d.parts)
    accumulate, to_b = source(program, scale, "pred"), source(program, b, "b64")
    in_registers = isinstance(a, Vector)
    to_a = [source(program, part, "b32") for part in a.parts] if in_registers else [source(program, a, "b64")]
    slots = tuple(slot for slot, _ in [accumulate, to_b, *to_a])
    group = 4 if a_kind == "tf32" else 8

    def run(machine: Any) -> None:
        if machine.partial:
            machine.check_written(slots)
        groups = running_groups(machine)
        held = [read(machine.registers[slot]) for slot, read in to_a]
        if in_registers:
            left = matrix_a(held, a_kind, (machine.shape[0], machine.shape[1] // WARP))
            left = left.reshape(left.shape[0], groups.shape[1], 64, k)
        else:
            left = read_matrix(machine, held[0], 64, k, a_kind, turn_a)
        right = read_matrix(machine, to_b[1](machine.registers[to_b[0]]), n, k, b_kind, turn_b)
        adds = accumulate[1](machine.registers[accumulate[0]])
        before = _before(machine, results, adds)
        total = multiply(left, right.swapaxes(-1, -2), before, group, machine.modes.pessimistic)
        _issue(machine, np.broadcast_to(total, (*groups.shape, 64, n)), results)

    return run


def _before(machine: Any, slots: tuple[int, ...], adds: Array) -> Array | float:
    """D before the product, or 0 where the predicate says that there is none."""
    if not adds.any():
        return 0.0
    first = machine.registers[slots[0]]
    if isinstance(first, Pending) and first.result.slots == slots and first.result.mask is machine.mask:
        before = first.result.matrix
    else:
        for slot in slots:  # those of another product that is still under way
            if isinstance(machine.registers[slot], Pending):
                machine.registers[slot].result.settle(machine)
        if machine.partial:
            machine.check_written(slots)
        registers = [machine.registers[slot] for slot in slots]
        before = from_registers([x if x.dtype is np.dtype("f4") else x.view("f4") for x in registers], machine.shape)
    if adds.all():
        return before
    every = np.broadcast_to(adds, machine.shape).reshape(before.shape[0], before.shape[1], -1)[:, :, :1, None]
    return np.where(every, before, 0.0)


def _issue(machine: Any, matrix: Array, slots: tuple[int, ...]) -> None:
    result = Result(matrix.astype(np.float32).astype(np.float64), slots, machine.mask)
    for index, slot in enumerate(slots):
        before = machine.registers[slot]
        if isinstance(before, Pending):
            before = before.before
        machine.registers[slot] = Pending(machine.program.names[slot], result, index, before)
        if machine.mask is None:
            machine.partial.pop(slot, None)
    machine.open_group.append(result)


@opcode("wgmma.fence.sync.aligned")
def fence(one: Instruction, program: Program) -> Run:
    return lambda machine: None


@opcode("wgmma.commit_group.sync.aligned")
def commit(one: Instruction, program: Program) -> Run:
    def run(machine: Any) -> None:
        machine.groups.append(machine.open_group)
        machine.open_group = []
        machine.shared.close_reads()

    return run


@opcode("wgmma.wait_group.sync.aligned")
def wait(one: Instruction, program: Program) -> Run:
    most = int(one.operands[0].text, 0)

    def run(machine: Any) -> None:
        pending = most if machine.mask is None else 0
        done = machine.groups[: len(machine.groups) - pending]
        machine.groups = machine.groups[len(done) :]
        for results in done:
            for result in results:
                result.settle(machine)
        machine.shared.finish_reads(pending)

    return run
