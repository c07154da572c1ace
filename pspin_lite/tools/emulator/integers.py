"""Arithmetic and logic of integers, as the PTX ISA defines them.

What it models: sums, products and quotients of 8 to 64 bits, which wrap around; minimum and maximum; bitwise logic;
shifts, which give 0 or the sign from the width on; fields of bits, permutations of bytes, counts of bits.

Where it deviates from a chip: nowhere that we know of. Division by zero, which PTX leaves open, gives all ones.
"""

from __future__ import annotations

import numpy as np

from . import numbers
from .numbers import INTEGERS
from .parser import Instruction, Register, size_of
from .program import Program, Run, elementwise, opcode, unknown

Array = np.ndarray


def wide_kind(kind: str) -> str:
    return f"{kind[0]}{16 * size_of(kind)}"


def _low_half(x: Array, y: Array) -> Array:
    return x * y


def _high_half(kind: str):
    size = 8 * size_of(kind)
    if size < 64:
        wide = INTEGERS[wide_kind(kind)]
        return lambda x, y: ((x.astype(wide) * y.astype(wide)) >> wide.type(size)).astype(INTEGERS[kind])

    def high(x: Array, y: Array) -> Array:
        exact = np.vectorize(lambda a, b: (int(a) * int(b)) >> 64 & (2**64 - 1), otypes=[np.uint64])
        return exact(x, y).view(INTEGERS[kind])

    return high


def divide(x: Array, y: Array) -> Array:
    """Towards zero."""
    zero = y == 0
    y = np.where(zero, y.dtype.type(1), y)
    if x.dtype.kind == "u":
        result = x // y
    else:
        floor = x // y
        result = floor + ((floor < 0) & (floor * y != x)).astype(x.dtype)
    return np.where(zero, ~result.dtype.type(0), result)


def remainder(x: Array, y: Array) -> Array:
    return x - divide(x, y) * y


PLAIN = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "div": divide,
    "rem": remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def binary(one: Instruction, program: Program) -> Run:
    """add.s32 d, a, b and the like."""
    name, kind = one.parts[0], one.parts[-1]
    if any(part in ("cc", "sat", "relu") for part in one.parts) or (kind not in INTEGERS and kind != "pred"):
        raise unknown(one)
    d, a, b = one.operands
    return elementwise(program, PLAIN[name], (d, kind), (a, kind), (b, kind))


opcode("rem", "and", "or", "xor")(binary)


def multiply(one: Instruction, program: Program) -> Run:
    """mul.lo, mul.hi, mul.wide; mad adds c."""
    name, mode, kind = one.parts[0], one.parts[1], one.parts[-1]
    d, a, b, *rest = one.operands
    if mode == "wide":
        out, wide = wide_kind(kind), INTEGERS[wide_kind(kind)]

        def product(x: Array, y: Array) -> Array:
            return x.astype(wide) * y.astype(wide)

    elif mode in ("lo", "hi"):
        out, product = kind, _low_half if mode == "lo" else _high_half(kind)
    else:
        raise unknown(one)
    if name == "mul":
        return elementwise(program, product, (d, out), (a, kind), (b, kind))
    return elementwise(program, lambda x, y, z: product(x, y) + z, (d, out), (a, kind), (b, kind), (rest[0], out))


@opcode("mul24", "mad24")
def small_multiply(one: Instruction, program: Program) -> Run:
    if one.parts[1] != "lo":
        raise unknown(one)
    d, a, b, *rest = one.operands
    kind = one.parts[-1]
    shift = INTEGERS[kind].type(8)  # of the operands' own type, so that the upper bits fall off

    def product(x: Array, y: Array) -> Array:
        return ((x << shift) >> shift) * ((y << shift) >> shift)

    if not rest:
        return elementwise(program, product, (d, kind), (a, kind), (b, kind))
    return elementwise(program, lambda x, y, z: product(x, y) + z, (d, kind), (a, kind), (b, kind), (rest[0], kind))


@opcode("not", "cnot", "popc", "clz", "brev", "bfind")
def unary(one: Instruction, program: Program) -> Run:
    name, kind = one.parts[0], one.parts[-1]
    d, a = one.operands
    bits = 8 * size_of(kind)

    def count(x: Array) -> Array:
        return np.unpackbits(np.ascontiguousarray(x)[..., None].view(np.uint8), axis=-1).sum(-1).astype(np.uint32)

    def leading(x: Array) -> Array:
        found = np.full(x.shape, bits, np.uint32)
        for i in range(bits):
            found = np.where((x >> x.dtype.type(i)) & x.dtype.type(1), np.uint32(bits - 1 - i), found)
        return found

    def reverse(x: Array) -> Array:
        result = np.zeros_like(x)
        for i in range(bits):
            result |= ((x >> x.dtype.type(i)) & x.dtype.type(1)) << x.dtype.type(bits - 1 - i)
        return result

    if name == "not":
        return elementwise(program, np.invert, (d, kind), (a, kind))
    if name == "cnot":
        return elementwise(program, lambda x: (x == 0).astype(x.dtype), (d, kind), (a, kind))
    if name == "brev":
        return elementwise(program, reverse, (d, kind), (a, kind))
    if name == "bfind" and one.parts[1] == kind and kind[0] != "s":
        return elementwise(program, lambda x: np.uint32(bits - 1) - leading(x), (d, "u32"), (a, f"u{bits}"))
    if name in ("popc", "clz"):
        return elementwise(program, count if name == "popc" else leading, (d, "u32"), (a, f"u{bits}"))
    raise unknown(one)


@opcode("shl", "shr")
def shift(one: Instruction, program: Program) -> Run:
    """Shifts by the width or more give 0, or the sign."""
    d, a, b = one.operands
    kind = one.parts[-1]
    bits = 8 * size_of(kind)

    def move(x: Array, n: Array) -> Array:
        least = np.minimum(n, bits - 1).astype(x.dtype)
        if one.parts[0] == "shl":
            return np.where(n < bits, x << least, x.dtype.type(0))
        if x.dtype.kind == "i":
            return x >> least
        return np.where(n < bits, x >> least, x.dtype.type(0))

    if not isinstance(b, Register) and int(b.text.rstrip("U"), 0) < bits:
        by = INTEGERS[kind].type(int(b.text.rstrip("U"), 0))
        move_by = np.left_shift if one.parts[0] == "shl" else np.right_shift
        return elementwise(program, lambda x: move_by(x, by), (d, kind), (a, kind))
    return elementwise(program, move, (d, kind), (a, kind), (b, "u32"))


@opcode("shf")
def funnel(one: Instruction, program: Program) -> Run:
    """shf.l|r.clamp|wrap.b32 d, low, high, n"""
    _, way, mode, _ = one.parts
    d, low, high, by = one.operands

    def move(x: Array, y: Array, n: Array) -> Array:
        n = (np.minimum(n, 32) if mode == "clamp" else n & np.uint32(31)).astype(np.uint64)
        both = (y.astype(np.uint64) << np.uint64(32)) | x
        moved = (both << n) >> np.uint64(32) if way == "l" else both >> n
        return moved.astype(np.uint32)

    return elementwise(program, move, (d, "b32"), (low, "b32"), (high, "b32"), (by, "u32"))


@opcode("bfe", "bfi")
def field(one: Instruction, program: Program) -> Run:
    """bfe: `length` bits of a from position `at` on. bfi puts them there."""
    kind = one.parts[-1]
    bits = 8 * size_of(kind)

    def extract(x: Array, at: Array, length: Array) -> Array:
        at, length = at & 0xFF, length & 0xFF
        unsigned = x.view(numbers.BITS[bits // 8])
        one_bit = unsigned.dtype.type(1)
        moved = np.where(at < bits, unsigned >> np.minimum(at, bits - 1).astype(unsigned.dtype), unsigned.dtype.type(0))
        ones = np.where(
            length < bits,
            (one_bit << np.minimum(length, bits - 1).astype(x.dtype).view(unsigned.dtype)) - one_bit,
            ~unsigned.dtype.type(0),
        )
        result = moved & ones
        if kind[0] == "s":
            top = np.minimum(at.astype(np.int64) + length - 1, bits - 1)
            sign = (unsigned >> np.maximum(top, 0).astype(unsigned.dtype)) & one_bit
            result = np.where((sign != 0) & (length > 0), result | ~ones, result)
            # beyond the number, the sign goes on
            beyond = at.astype(np.int64) + length > bits
            kept = np.where(at < bits, bits - at.astype(np.int64), 0)
            high = ~((one_bit << np.clip(kept, 0, bits - 1).astype(unsigned.dtype)) - one_bit)
            result = np.where(beyond & (sign != 0), result | high, result)
        return result.view(x.dtype)

    def insert(x: Array, y: Array, at: Array, length: Array) -> Array:
        at, length = at & 0xFF, length & 0xFF
        unit = x.dtype.type(1)
        ones = np.where(length < bits, (unit << np.minimum(length, bits - 1).astype(x.dtype)) - unit, ~x.dtype.type(0))
        place = np.where(at < bits, ones << np.minimum(at, bits - 1).astype(x.dtype), x.dtype.type(0))
        moved = x << np.minimum(at, bits - 1).astype(x.dtype)
        return (y & ~place) | (moved & place)

    if one.parts[0] == "bfe":
        d, a, b, c = one.operands
        return elementwise(program, extract, (d, kind), (a, kind), (b, "u32"), (c, "u32"))
    d, a, b, c, e = one.operands
    return elementwise(program, insert, (d, kind), (a, kind), (b, kind), (c, "u32"), (e, "u32"))


@opcode("prmt")
def permute(one: Instruction, program: Program) -> Run:
    """prmt.b32 d, a, b, c: four bytes out of the eight of b:a, each by four bits of c; the fourth repeats the sign."""
    if one.parts[1:] != ("b32",):
        raise unknown(one)
    d, a, b, c = one.operands

    def pick(x: Array, y: Array, which: Array) -> Array:
        both = (y.astype(np.uint64) << np.uint64(32)) | x
        result = np.zeros(np.broadcast_shapes(both.shape, which.shape), np.uint32)
        for i in range(4):
            code = (which >> np.uint32(4 * i)) & np.uint32(15)
            byte = (both >> ((code & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(np.uint32) & np.uint32(255)
            sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
            result |= np.where(code & np.uint32(8), sign, byte) << np.uint32(8 * i)
        return result

    return elementwise(program, pick, (d, "b32"), (a, "b32"), (b, "b32"), (c, "b32"))


@opcode("lop3")
def logic3(one: Instruction, program: Program) -> Run:
    """Any function of three bits, given by its table."""
    d, a, b, c, table = one.operands
    bits = int(table.text, 0)

    def combine(x: Array, y: Array, z: Array) -> Array:
        result = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), np.uint32)
        for i in range(8):
            if bits >> i & 1:
                result |= (x if i & 4 else ~x) & (y if i & 2 else ~y) & (z if i & 1 else ~z)
        return result

    return elementwise(program, combine, (d, "b32"), (a, "b32"), (b, "b32"), (c, "b32"))
