"""Which lane holds which element of a matrix, by the formulas of the PTX ISA (groupID = lane / 4, in_group = lane % 4),
and hand-written PTX that brings fragments from memory to registers and back."""

from __future__ import annotations

import numpy as np
from handwritten import at

RNG = np.random.default_rng(7)
DTYPES = dict(f16="f2", s8="i1", u8="u1", s32="i4")
EACH = dict(f16=2, bf16=2, s8=4, u8=4)  # elements in a register, if not one
LANES = [(lane, lane // 4, lane % 4) for lane in range(32)]


def bits(x: np.ndarray, kind: str) -> np.ndarray:
    """Small whole numbers, which all types hold exactly -> bits."""
    if kind in DTYPES:
        dtype = np.dtype(DTYPES[kind])
        return x.astype(dtype).view(f"u{dtype.itemsize}").astype("u4")
    single = x.astype("f4").view("u4")
    return single >> 16 if kind == "bf16" else single


def whole(*shape: int, kind: str = "") -> np.ndarray:
    low, high = dict(s8=(-128, 128), u8=(0, 256)).get(kind, (-8, 9))
    return RNG.integers(low, high, shape).astype("f8")


def a_place(i: int, group: int, inside: int, kind: str, k: int) -> tuple[int, int]:
    """Row and column of element a_i."""
    if kind == "tf32":  # m16n8k8, m16n8k4
        return group + (8 if i in (1, 3) else 0), inside + (4 if i >= 2 else 0)
    if kind in ("s8", "u8"):  # m16n8k32, m16n8k16
        return group + (8 if i // 4 % 2 else 0), inside * 4 + (i & 3) + (16 if i >= 8 else 0)
    if k == 8:  # m16n8k8
        return group + (8 if i >= 2 else 0), inside * 2 + (i & 1)
    row = group if i < 2 or 4 <= i < 6 else group + 8  # m16n8k16
    return row, inside * 2 + (i & 1) + (8 if i >= 4 else 0)


def b_place(i: int, group: int, inside: int, kind: str) -> tuple[int, int]:
    if kind == "tf32":
        return inside + 4 * i, group
    if kind in ("s8", "u8"):
        return inside * 4 + (i & 3) + (16 if i >= 4 else 0), group
    return inside * 2 + (i & 1) + (8 if i >= 2 else 0), group


def c_place(i: int, group: int, inside: int) -> tuple[int, int]:
    return group + (8 if i >= 2 else 0), inside * 2 + (i & 1)


def registers(matrix: np.ndarray, place, count: int, kind: str) -> np.ndarray:
    """Elements of each lane -> [32, registers]"""
    each = EACH.get(kind, 1)
    result = np.zeros((32, count // each), "u4")
    for lane, group, inside in LANES:
        for i in range(count):
            one = int(bits(np.array(matrix[place(i, group, inside)]), kind))
            result[lane, i // each] |= np.uint32(one << 32 // each * (i % each))
    return result


def listed(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def loads(array: int, count: int, first: int) -> str:
    """All registers of a lane, one after the other in memory."""
    lines = [at(array, 4 * count, 20 + array)]
    lines += [f"ld.global.b32 %r{first + i}, [%rd{20 + array}+{4 * i}];" for i in range(count)]
    return "\n".join(lines)


def stores(array: int, count: int, first: int) -> str:
    lines = [at(array, 4 * count, 20 + array)]
    lines += [f"st.global.b32 [%rd{20 + array}+{4 * i}], %r{first + i};" for i in range(count)]
    return "\n".join(lines)
