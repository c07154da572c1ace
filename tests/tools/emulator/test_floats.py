"""Floating-point numbers, each thread by itself, from hand-written PTX, against plain Python."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from elementwise import check, compute, from_bf16, to_bf16
from handwritten import at, run


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
    ("copysign.f32 d, a, b;", lambda a, b: math.copysign(b, a), "f32", "f32", "f32"),
    ("testp.finite.f32 d, a;", math.isfinite, "pred", "f32"),
    ("testp.infinite.f32 d, a;", math.isinf, "pred", "f32"),
    ("testp.number.f32 d, a;", lambda a: not math.isnan(a), "pred", "f32"),
    ("testp.notanumber.f32 d, a;", math.isnan, "pred", "f32"),
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


# instruction -> the exact function, its domain, the largest error that the PTX ISA states, and whether that is absolute
APPROXIMATE = {
    "ex2.approx.f32": (np.exp2, -3, 3, 2**-22, False),
    "lg2.approx.f32": (np.log2, 0.5, 2, 2**-22, True),
    "lg2.approx.ftz.f32": (np.log2, 2, 99, 2**-22, False),
    "rcp.approx.f32": (lambda x: 1 / x, 0.1, 9, 2**-23, False),
    "rcp.rn.f32": (lambda x: 1 / x, 0.1, 9, 0, False),
    "div.full.f32": (lambda x: 1 / x, 0.1, 9, 2**-22, False),
    "sqrt.approx.f32": (np.sqrt, 0.1, 9, 2**-23, False),
    "sqrt.rn.f32": (np.sqrt, 0.1, 9, 0, False),
    "rsqrt.approx.f32": (lambda x: x**-0.5, 0.1, 9, 2**-22.9, False),
    "sin.approx.f32": (np.sin, -3, 3, 2**-20.5, True),
    "cos.approx.f32": (np.cos, -3, 3, 2**-20.5, True),
    "tanh.approx.f32": (np.tanh, -3, 3, 2**-11, False),
    "ex2.approx.f16": (np.exp2, -3, 3, 2**-9.9, False),
    "ex2.approx.ftz.bf16": (np.exp2, -3, 3, 2**-7, False),
    "tanh.approx.f16": (np.tanh, -3, 3, 2**-10.987, True),
    "tanh.approx.bf16": (np.tanh, -3, 3, 2**-8, True),
}
ROUNDED = {"f32": 2**-24, "f16": 2**-11, "bf16": 2**-8}  # relative error of a rounding to nearest


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate_instructions(name):
    """They are rounded correctly, and in the pessimistic mode first off by what the PTX ISA allows, up or down."""
    function, low, high, error, absolute = APPROXIMATE[name]
    kind = name.split(".")[-1]
    x = np.linspace(low, high, 512)[1:-1].astype("f4")
    x = (x.view("u4") & 0xFFFF0000).view("f4")  # numbers that all three types hold
    held = dict(f32=x, f16=x.astype("f2"), bf16=(x.view("u4") >> 16).astype("u2"))[kind]
    size, register = held.itemsize, "%r" if kind == "f32" else "%rs"
    body = f"{at(0, size, 1)} {at(1, size, 2)} ld.global.b{8 * size} {register}1, [%rd1];"
    one = "0f3F800000, " if name.startswith("div") else ""
    body += f"{name} {register}2, {one}{register}1; st.global.b{8 * size} [%rd2], {register}2;"
    results = []
    for pessimistic in (False, True):
        y = np.zeros_like(held)
        run(body, held, y, threads=len(x), pessimistic=pessimistic)
        results.append(((y.astype("u4") << 16).view("f4") if kind == "bf16" else y).astype("f8"))
    exact = function(x.astype("f8"))
    near, off = (np.abs(y - exact) for y in results)
    rounding = np.abs(exact) * ROUNDED[kind] * 1.01
    assert (near <= rounding).all()
    wrong = np.full_like(exact, error) if absolute else error * np.abs(exact)
    assert (np.abs(off - wrong) <= 2 * rounding).all()
    if error:
        assert off.mean() > 0.8 * wrong.mean()
        assert 0.4 < (results[1] > exact).mean() < 0.6
