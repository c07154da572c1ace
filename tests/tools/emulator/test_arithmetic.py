"""Instructions that each thread does by itself, from hand-written PTX, against plain Python."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from handwritten import at, run

from pspin_lite.tools.emulator.parser import EmulatorError

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


def quotient(a, b):  # towards zero; by zero: all ones
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bits_of(a, at, length, bits, signed):
    """bfe, as the PTX ISA writes it: bit by bit."""
    at, length = at & 255, length & 255
    a &= (1 << bits) - 1
    sign = 0 if not signed or length == 0 else a >> min(at + length - 1, bits - 1) & 1
    return sum((a >> at + i & 1 if i < length and at + i < bits else sign) << i for i in range(bits))


def inserted(a, b, at, length):
    at, length = at & 255, length & 255
    for i in range(length):
        if at + i < 32:
            b = b & ~(1 << at + i) | (a >> i & 1) << at + i
    return b


def picked(a, b, c):
    whole, result = b << 32 | a, 0
    for i in range(4):
        code = c >> 4 * i & 15
        byte = whole >> 8 * (code & 7) & 255
        result |= ((255 if byte & 128 else 0) if code & 8 else byte) << 8 * i
    return result


INTEGERS = [
    ("add.s32 d, a, b;", lambda a, b: a + b, "s32", "s32", "s32"),
    ("sub.s64 d, a, b;", lambda a, b: a - b, "s64", "s64", "s64"),
    ("mul.lo.s32 d, a, b;", lambda a, b: a * b, "s32", "s32", "s32"),
    ("mul.hi.u32 d, a, b;", lambda a, b: a * b >> 32, "u32", "u32", "u32"),
    ("mul.hi.s32 d, a, b;", lambda a, b: a * b >> 32, "s32", "s32", "s32"),
    ("mul.hi.u64 d, a, b;", lambda a, b: a * b >> 64, "u64", "u64", "u64"),
    ("mul.wide.s32 d, a, b;", lambda a, b: a * b, "s64", "s32", "s32"),
    ("mul.wide.u16 d, a, b;", lambda a, b: a * b, "u32", "u16", "u16"),
    ("mad.wide.u32 d, a, b, c;", lambda a, b, c: a * b + c, "u64", "u32", "u32", "u64"),
    ("mad.lo.s32 d, a, b, c;", lambda a, b, c: a * b + c, "s32", "s32", "s32", "s32"),
    ("div.s32 d, a, b;", quotient, "s32", "s32", "s32"),
    ("div.u64 d, a, b;", quotient, "u64", "u64", "u64"),
    ("rem.s32 d, a, b;", lambda a, b: a - quotient(a, b) * b, "s32", "s32", "s32"),
    ("min.s32 d, a, b;", min, "s32", "s32", "s32"),
    ("max.u32 d, a, b;", max, "u32", "u32", "u32"),
    ("abs.s32 d, a;", abs, "s32", "s32"),
    ("neg.s16 d, a;", lambda a: -a, "s16", "s16"),
    ("and.b32 d, a, b;", lambda a, b: a & b, "b32", "b32", "b32"),
    ("or.b64 d, a, b;", lambda a, b: a | b, "b64", "b64", "b64"),
    ("xor.b16 d, a, b;", lambda a, b: a ^ b, "b16", "b16", "b16"),
    ("not.b32 d, a;", lambda a: ~a, "b32", "b32"),
    ("xor.pred d, a, b;", lambda a, b: a ^ b, "pred", "pred", "pred"),
    ("not.pred d, a;", lambda a: 1 - a, "pred", "pred"),
    ("shl.b32 d, a, b;", lambda a, b: a << b if b < 32 else 0, "b32", "b32", "u32"),
    ("shl.b64 d, a, 7;", lambda a: a << 7, "b64", "b64"),
    ("shr.u32 d, a, b;", lambda a, b: a >> b if b < 32 else 0, "u32", "u32", "u32"),
    ("shr.s32 d, a, b;", lambda a, b: a >> min(b, 31), "s32", "s32", "u32"),
    ("shr.s16 d, a, 3;", lambda a: a >> 3, "s16", "s16"),
    ("shf.l.wrap.b32 d, a, b, c;", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32, "b32", "b32", "b32", "u32"),
    ("shf.r.clamp.b32 d, a, b, c;", lambda a, b, c: (b << 32 | a) >> min(c, 32), "b32", "b32", "b32", "u32"),
    ("bfe.u32 d, a, b, c;", lambda a, b, c: bits_of(a, b, c, 32, False), "u32", "u32", "u32", "u32"),
    ("bfe.s32 d, a, b, c;", lambda a, b, c: bits_of(a, b, c, 32, True), "s32", "s32", "u32", "u32"),
    ("bfe.u32 d, a, 5, 9;", lambda a: a >> 5 & 511, "u32", "u32"),
    ("bfe.s32 d, a, 6, 1;", lambda a: -(a >> 6 & 1), "s32", "s32"),
    ("bfi.b32 d, a, b, 11, 13;", lambda a, b: inserted(a, b, 11, 13), "b32", "b32", "b32"),
    ("prmt.b32 d, a, b, c;", picked, "b32", "b32", "b32", "b32"),
    ("prmt.b32 d, a, 0, 0x7771U;", lambda a: a >> 8 & 255, "b32", "b32"),
    ("lop3.b32 d, a, b, c, 0xca;", lambda a, b, c: a & b | ~a & c, "b32", "b32", "b32", "b32"),
    ("popc.b32 d, a;", lambda a: a.bit_count(), "u32", "b32"),
    ("clz.b32 d, a;", lambda a: 32 - a.bit_length(), "u32", "b32"),
    ("brev.b32 d, a;", lambda a: int(f"{a:032b}"[::-1], 2), "b32", "b32"),
    ("selp.b32 d, a, b, c;", lambda a, b, c: a if c else b, "b32", "b32", "b32", "pred"),
    ("setp.lt.s32 d, a, b;", lambda a, b: a < b, "pred", "s32", "s32"),
    ("setp.hi.u32 d, a, b;", lambda a, b: a > b, "pred", "u32", "u32"),
    ("setp.ge.and.s32 d, a, b, c;", lambda a, b, c: a >= b and c, "pred", "s32", "s32", "pred"),
    ("cvt.s64.s32 d, a;", lambda a: a, "s64", "s32"),
    ("cvt.u64.u32 d, a;", lambda a: a, "u64", "u32"),
    ("cvt.u16.u32 d, a;", lambda a: a, "u16", "u32"),
    ("cvt.s32.s8 d, a;", lambda a: (a & 255 ^ 128) - 128, "s32", "s32"),
    ("cvt.sat.s16.s32 d, a;", lambda a: min(max(a, -(2**15)), 2**15 - 1), "s16", "s32"),
]


@pytest.mark.parametrize("case", INTEGERS, ids=lambda case: case[0])
def test_integers(case):
    check(*case)


def single(x) -> float:
    """Rounded to float32, from a float or a fraction, to nearest even."""
    if isinstance(x, Fraction):
        near = np.float32(float(x))  # float(Fraction) is rounded correctly to 53 bits
        options = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
        best = min(abs(Fraction(float(y)) - x) for y in options if np.isfinite(y))
        ties = [y for y in options if np.isfinite(y) and abs(Fraction(float(y)) - x) == best]
        return float(next((y for y in ties if not int(y.view(np.uint32)) & 1), ties[0]))
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def to_bf16(x: float) -> int:
    """Bits of the nearest bfloat16, ties to even, bit by bit."""
    if math.isnan(x):
        return 0x7FFF
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    low, high = bits & 0xFFFF, bits >> 16
    return high + (low > 0x8000 or (low == 0x8000 and high & 1))


def from_bf16(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def to_half(x: float) -> int:
    with np.errstate(over="ignore"):
        return int(np.float16(x).view(np.uint16))


def fused(a, b, c):
    if not all(map(math.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return single(exact) if exact else a * b + c


def divided(a, b):
    with np.errstate(all="ignore"):
        return float((np.float64(a) / np.float64(b)).astype(np.float32))


def limited(a, low, high):
    return 0 if math.isnan(a) else int(min(max(a, low), high))


def pair(function, out, into):
    """A function of two floats on both halves of 32 bits."""

    def both(*x):
        return sum(out(function(*[into(y >> s & 0xFFFF) for y in x])) << s for s in (0, 16))

    return both


def half(bits: int) -> float:
    return float(np.uint16(bits).view(np.float16))


def least(a, b):
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b)


def fused64(a, b, c):
    return a * b + c


FLOATS = [
    ("add.f32 d, a, b;", lambda a, b: single(a + b), "f32", "f32", "f32"),
    ("sub.f32 d, a, b;", lambda a, b: single(a - b), "f32", "f32", "f32"),
    ("mul.f32 d, a, b;", lambda a, b: single(a * b), "f32", "f32", "f32"),
    ("fma.rn.f32 d, a, b, c;", fused, "f32", "f32", "f32", "f32"),
    ("div.full.f32 d, a, b;", divided, "f32", "f32", "f32"),
    ("neg.f32 d, a;", lambda a: -a, "f32", "f32"),
    ("abs.f32 d, a;", abs, "f32", "f32"),
    ("ex2.approx.f32 d, a;", lambda a: single(2.0**a) if a < 128 or math.isnan(a) else math.inf, "f32", "f32"),
    ("setp.lt.f32 d, a, b;", lambda a, b: a < b, "pred", "f32", "f32"),
    ("setp.ne.f32 d, a, b;", lambda a, b: a < b or a > b, "pred", "f32", "f32"),
    ("setp.neu.f32 d, a, b;", lambda a, b: a != b, "pred", "f32", "f32"),
    ("setp.gtu.f32 d, a, b;", lambda a, b: not a <= b, "pred", "f32", "f32"),
    ("setp.nan.f32 d, a, b;", lambda a, b: math.isnan(a) or math.isnan(b), "pred", "f32", "f32"),
    ("cvt.rn.f16.f32 d, a;", lambda a: float(np.float16(a)), "f16", "f32"),
    ("cvt.f32.f16 d, a;", float, "f32", "f16"),
    ("cvt.rn.bf16.f32 d, a;", to_bf16, "bf16", "f32"),
    ("cvt.f32.bf16 d, a;", from_bf16, "f32", "bf16"),
    ("cvt.rn.bf16x2.f32 d, a, b;", lambda a, b: to_bf16(a) << 16 | to_bf16(b), "bf16x2", "f32", "f32"),
    ("cvt.rn.f32.s32 d, a;", lambda a: single(Fraction(a)), "f32", "s32"),
    ("cvt.rn.f32.u64 d, a;", lambda a: single(Fraction(a)), "f32", "u64"),
    ("cvt.rzi.s32.f32 d, a;", lambda a: limited(a, -(2**31), 2**31 - 1), "s32", "f32"),
    ("cvt.rni.u32.f32 d, a;", lambda a: limited(round(a) if math.isfinite(a) else a, 0, 2**32 - 1), "u32", "f32"),
    ("mul.bf16 d, a, b;", lambda a, b: to_bf16(from_bf16(a) * from_bf16(b)), "bf16", "bf16", "bf16"),
    ("add.bf16x2 d, a, b;", pair(lambda a, b: a + b, to_bf16, from_bf16), "bf16x2", "bf16x2", "bf16x2"),
    ("fma.rn.bf16x2 d, a, b, c;", pair(fused64, lambda x: to_bf16_once(x), from_bf16), *["bf16x2"] * 4),
    ("add.f16x2 d, a, b;", pair(lambda a, b: a + b, to_half, half), "f16x2", "f16x2", "f16x2"),
]  # fmt: skip


def to_bf16_once(x: float) -> int:
    """From float64 in one rounding: the nearest of the two neighbours, by exact distance."""
    if not math.isfinite(x) or x == 0:
        return to_bf16(x)
    down = to_bf16(x) - 1 if struct.unpack("<I", struct.pack("<f", x))[0] & 0x7FFFFFFF > 0xFFFF else to_bf16(x)
    options = [bits for bits in (down, down + 1, down + 2) if math.isfinite(from_bf16(bits))]
    return min(options, key=lambda bits: (abs(Fraction(from_bf16(bits)) - Fraction(x)), bits & 1))


@pytest.mark.parametrize("case", FLOATS, ids=lambda case: case[0])
def test_floats(case):
    instruction, expected, out, *kinds = case
    if out in ("f16x2", "bf16", "bf16x2"):  # nan may have any bits
        size = 16 if out == "bf16" else 32
        back = half if out == "f16x2" else from_bf16
        result, operands = compute(instruction, out, *kinds)
        for got, *x in zip(result, *operands, strict=True):
            want = expected(*[y.item() for y in x])
            for s in range(0, size, 16):
                one, other = back(int(got) >> s & 0xFFFF), back(want >> s & 0xFFFF)
                assert one == other or (math.isnan(one) and math.isnan(other)), (instruction, x)
    else:
        check(instruction, expected, out, *kinds)


def test_minimum_ignores_nan_unless_asked():
    result, (a, b) = compute("min.f32 d, a, b;", "f32", "f32", "f32")
    assert np.array_equal(result, [least(x, y) for x, y in zip(a, b, strict=True)], equal_nan=True)
    result, (a, b) = compute("min.NaN.f32 d, a, b;", "f32", "f32", "f32")
    assert np.array_equal(result, np.minimum(a, b), equal_nan=True)
    assert np.isnan(result).sum() == (np.isnan(a) | np.isnan(b)).sum()


def test_tf32_is_rounded_by_cvt():
    result, (a,) = compute("cvt.rna.tf32.f32 d, a;", "tf32", "f32")
    for got, x in zip(result.view("f4"), a, strict=True):
        if math.isfinite(x) and x:
            step = 2.0 ** (math.frexp(x)[1] - 11)
            assert got == math.copysign(math.floor(abs(x) / step + 0.5) * step, x)


def test_flushing_subnormal_numbers():
    x, y = np.full(32, 1e-40, "f4"), np.zeros(32, "f4")
    body = f"{at(0, 4, 1)} {at(1, 4, 2)} ld.global.b32 %r1, [%rd1];"
    run(f"{body} add.ftz.f32 %r2, %r1, %r1; st.global.b32 [%rd2], %r2;", x, y)
    assert (y == 0).all()
    run(f"{body} add.f32 %r2, %r1, %r1; st.global.b32 [%rd2], %r2;", x, y)
    assert (y == x + x).all()


def test_moves_pack_and_unpack():
    x, y = np.arange(32, dtype="u4") * 0x01020304, np.zeros((32, 2), "u4")
    run(
        f"{at(0, 4, 1)} {at(1, 8, 2)} ld.global.b32 %r1, [%rd1];"
        "mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r2, {%rs2, %rs1};"
        "mov.b32 {_, %rs3}, %r1; cvt.u32.u16 %r3, %rs3; st.global.v2.b32 [%rd2], {%r2, %r3};",
        x,
        y,
    )
    assert (y[:, 0] == (x >> 16 | x << 16)).all()
    assert (y[:, 1] == x >> 16).all()


def test_approximate_instructions_are_off_in_the_pessimistic_mode():
    x = np.linspace(-3, 3, 1024).astype("f4")
    exact, off = np.zeros_like(x), np.zeros_like(x)
    body = f"{at(0, 4, 1)} {at(1, 4, 2)} ld.global.b32 %r1, [%rd1]; ex2.approx.f32 %r2, %r1; st.global.b32 [%rd2], %r2;"
    run(body, x, exact, threads=1024)
    run(body, x, off, threads=1024, pessimistic=True)
    error = np.abs(off / 2.0 ** x.astype("f8") - 1)
    assert (np.abs(exact / 2.0 ** x.astype("f8") - 1) <= 2**-24).all()
    assert error.min() > 2**-23
    assert error.max() < 2**-21
    assert 0.4 < (off > exact).mean() < 0.6


@pytest.mark.parametrize("text", ["tanh.exact.f32 %r1, %r1;", "frobnicate.b32 %r1, %r2;", "add.rz.f32 %r1, %r1, %r1;"])
def test_an_unknown_instruction_is_named_with_its_line(text):
    with pytest.raises(EmulatorError, match="does not know the instruction") as raised:
        run(text, np.zeros(4))
    assert text.split()[0] in str(raised.value)
    assert "mine.py:7:3" in str(raised.value)
