"""One instruction on many numbers, each in a thread of its own, from hand-written PTX, against plain Python."""

from __future__ import annotations

import math
import struct

import numpy as np
from handwritten import at, run


def to_bf16(x: float) -> int:
    """Bits of the nearest bfloat16, ties to even, bit by bit."""
    if math.isnan(x):
        return 0x7FFF
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    low, high = bits & 0xFFFF, bits >> 16
    return high + (low > 0x8000 or (low == 0x8000 and high & 1))


def from_bf16(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


THREADS = 64
REGISTER = {1: "rs", 2: "rs", 4: "r", 8: "rd"}
DTYPES = {"u8": "u1", "s8": "i1", "u16": "u2", "s16": "i2", "b16": "u2", "u32": "u4", "s32": "i4", "b32": "u4"}
DTYPES |= {"u64": "u8", "s64": "i8", "b64": "u8", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "pred": "u4"}
DTYPES |= {"f16x2": "u4", "bf16x2": "u4", "tf32": "u4"}


def numbers(kind: str, seed: int) -> np.ndarray:
    """Random ones, and those at the edges."""
    dtype, rng = np.dtype(DTYPES[kind]), np.random.default_rng(seed)
    if kind == "pred":
        return rng.integers(0, 2, THREADS).astype("u4")
    if dtype.kind in "ui" and kind not in ("bf16", "bf16x2", "f16x2"):
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, THREADS, dtype=dtype, endpoint=True)
        edges = [limits.min, limits.max, 0, 1, limits.max // 2, 3]
        values[: len(edges)] = rng.permutation(np.array(edges, dtype))
        return values
    values = rng.normal(size=THREADS) * 10.0 ** rng.integers(-3, 4, THREADS)
    values[:6] = rng.permutation([0.0, -0.0, 1.0, np.inf, -2.5, np.nan])
    if kind == "bf16":
        return np.array([to_bf16(float(np.float32(x))) for x in values], "u2")
    if kind in ("f16x2", "bf16x2"):
        one = numbers(kind[:-2], seed).view("u2").astype("u4")
        return one | numbers(kind[:-2], seed + 50).view("u2").astype("u4") << 16
    return values.astype(dtype)


def compute(instruction: str, out: str, *kinds: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """One thread for each number: result, operands. In the instruction, d is the result and a, b, c are operands."""
    operands = [numbers(kind, i) for i, kind in enumerate(kinds)]
    result = np.zeros(THREADS, DTYPES[out])
    lines, names = [], {}
    for i, (kind, x) in enumerate(zip(kinds, operands, strict=True)):
        size, name = x.itemsize, f"%{REGISTER[x.itemsize]}{10 + i}"
        lines += [at(i, size, i), f"ld.global.b{8 * size} {name}, [%rd{i}];"]
        if kind == "pred":
            lines.append(f"setp.ne.b32 %p{i}, {name}, 0;")
            name = f"%p{i}"
        names["abc"[i]] = name
    names["d"] = "%p9" if out == "pred" else f"%{REGISTER[result.itemsize]}20"
    lines.append(" ".join(names.get(word, word) for word in instruction.replace(",", " ,").replace(";", " ;").split()))
    size = result.itemsize
    value = names["d"]
    if out == "pred":
        lines.append("selp.b32 %r20, 1, 0, %p9;")
        value = "%r20"
    lines += [at(len(kinds), size, 8), f"st.global.b{8 * size} [%rd8], {value};"]
    run("\n".join(lines), *operands, result, threads=THREADS)
    return result, operands


def check(instruction: str, expected, out: str, *kinds: str) -> None:
    result, operands = compute(instruction, out, *kinds)
    dtype = np.dtype(DTYPES[out])
    for got, *x in zip(result, *operands, strict=True):
        want = expected(*[y.item() for y in x])
        if dtype.kind in "ui":
            want = int(want) & ((1 << 8 * dtype.itemsize) - 1)
            assert int(got) & ((1 << 8 * dtype.itemsize) - 1) == want, (instruction, x)
        elif math.isnan(want):
            assert math.isnan(got), (instruction, x)
        else:
            assert got == want, (instruction, x)
            assert math.copysign(1, got) == math.copysign(1, want), (instruction, x)
