"""Numbers in registers: from the bits of a register to what an instruction computes with, and back.

What it models: integers of 8 to 64 bits, float16, bfloat16, float32, float64, pairs of 16-bit floats in 32 bits, and
TF32. A register is an array of any dtype of its width; here it becomes an array of the type that an instruction names.
bfloat16, which numpy does not know, is computed with as float32 and rounded to nearest even.

Where it deviates from a chip: a nan keeps some bits, not necessarily those that a chip would give it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from .parser import EmulatorError, size_of

Array = np.ndarray
INTEGERS = {
    f"{sign}{8 * size}": np.dtype(f"{kind}{size}") for sign, kind in ("uu", "si", "bu") for size in (1, 2, 4, 8)
}
FLOATS = {"f16": np.dtype("f2"), "f32": np.dtype("f4"), "f64": np.dtype("f8")}
PLAIN = INTEGERS | FLOATS | {"pred": np.dtype(bool)}  # types that are dtypes
PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
BITS = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}
U16, U32, F32, F64 = (np.dtype(name) for name in ("u2", "u4", "f4", "f8"))


def dtype_of(kind: str) -> np.dtype:
    """The dtype in which a register of this declared type is kept at first."""
    return PLAIN["pred"] if kind == "pred" else BITS[size_of(kind)]


def reader(kind: str) -> Callable[[Array], Array]:
    """bits of a register -> an array to compute with, for an operand of this type."""
    if kind in PLAIN:
        dtype = PLAIN[kind]

        def read(x: Array) -> Array:
            if x.dtype is dtype:
                return x
            if x.dtype.itemsize == dtype.itemsize:
                return x.view(dtype)
            if x.dtype.itemsize < dtype.itemsize:
                raise EmulatorError(f"a register of {8 * x.dtype.itemsize} bits cannot be read as {kind}")
            return x.view(BITS[x.dtype.itemsize]).astype(BITS[dtype.itemsize]).view(dtype)  # the low bits

        return read
    if kind == "bf16":
        return lambda x: from_bf16(_low(x))
    if kind in PAIRS:
        convert = from_bf16 if kind == "bf16x2" else lambda x: x.view(FLOATS["f16"])
        return lambda x: convert(halves(x))
    if kind == "tf32":
        return cut_tf32
    raise EmulatorError(f"the emulator does not know the type .{kind}")


def writer(kind: str, register: str) -> Callable[[Array], Array]:
    """what an instruction computed as `kind` -> bits for a register of the declared type."""
    if kind == "bf16":
        return to_bf16
    if kind == "bf16x2":
        return lambda x: join(to_bf16(x))
    if kind == "f16x2":
        return lambda x: join(x.astype(FLOATS["f16"], copy=False).view(U16))
    if kind == "tf32":
        return lambda x: x.astype(F32, copy=False)
    if kind not in PLAIN:
        raise EmulatorError(f"the emulator does not know the type .{kind}")
    dtype, wide = PLAIN[kind], size_of(register)
    if kind in FLOATS or dtype.itemsize >= wide:
        return lambda x: x if x.dtype is dtype else x.astype(dtype)
    signed = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{wide}")  # a narrow result fills the register
    return lambda x: x.astype(dtype, copy=False).astype(signed)


def _low(x: Array) -> Array:
    return x.view(U16) if x.dtype.itemsize == 2 else x.view(U32).astype(U16)


def halves(x: Array) -> Array:
    """32 bits -> two of 16, the low one first, along a new last axis."""
    return np.ascontiguousarray(x.view(U32))[..., None].view(U16)


def join(x: Array) -> Array:
    """The other way."""
    return np.ascontiguousarray(x).view(U32)[..., 0]


def from_bf16(x: Array) -> Array:
    return (x.astype(U32) << np.uint32(16)).view(F32)


def to_bf16(x: Array) -> Array:
    """Round to nearest even -> bits."""
    x = to_odd(x) if x.dtype is F64 else x
    bits = x.astype(F32, copy=False).view(U32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded).astype(U16)


def to_odd(x: Array) -> Array:
    """float64 -> float32, such that rounding once more to fewer bits gives what rounding once would have given."""
    near = x.astype(F32)
    inexact = near.astype(F64) != x
    if not inexact.any():
        return near
    below = np.where(np.abs(near.astype(F64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    return np.where(inexact & np.isfinite(x), (below.view(U32) | np.uint32(1)).view(F32), near)


def flush(x: Array) -> Array:
    """.ftz: subnormal numbers become zero and keep their sign."""
    return np.where(np.abs(x) < np.finfo(F32).tiny, np.copysign(np.float32(0), x), x)


def cut_tf32(x: Array) -> Array:
    """A tensor core ignores the last 13 bits of a TF32 operand."""
    return (x.view(U32) & np.uint32(0xFFFFE000)).view(F32)


def immediate(text: str, kind: str) -> Array:
    """A constant of the PTX, as a register of shape [1,1]: 12, -1, 0x7773U, 0f3F800000, 0d3FF0.., 1.5."""
    word = text.strip()
    if word[:2] in ("0f", "0F", "0d", "0D"):
        single = word[1] in "fF"
        value = struct.unpack(">f" if single else ">d", bytes.fromhex(word[2:]))[0]
        if kind not in FLOATS:
            value = int(word[2:], 16)
    elif "." in word or ("e" in word.lower() and not word.lower().startswith(("0x", "-0x"))):
        value = float(word)
    else:
        value = int(word.rstrip("U"), 0) if not word.lstrip("-").startswith("0x") else int(word.rstrip("U"), 16)
    if kind == "pred":
        return np.array([[value != 0]])
    if kind in FLOATS:
        return np.array([[value]], dtype=FLOATS[kind])
    if kind in ("bf16", "bf16x2", "f16x2", "tf32") or isinstance(value, int):
        size = size_of(kind)
        return np.array([[int(value) & ((1 << 8 * size) - 1)]], dtype=BITS[size])
    raise EmulatorError(f"the constant {text} does not fit the type .{kind}")
