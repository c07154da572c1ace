"""Integers, moves and selections, which each thread does by itself, from hand-written PTX, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise import check
from handwritten import at, run

from pspin_lite.tools.emulator.parser import EmulatorError


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


ONES24 = 2**24 - 1


def low24(a):  # the low 24 bits, with their sign
    return (a & ONES24 ^ 1 << 23) - (1 << 23)


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
    ("mul24.lo.s32 d, a, b;", lambda a, b: low24(a) * low24(b), "s32", "s32", "s32"),
    ("mad24.lo.u32 d, a, b, c;", lambda a, b, c: (a & ONES24) * (b & ONES24) + c, "u32", "u32", "u32", "u32"),
    ("cnot.b32 d, a;", lambda a: a == 0, "b32", "b32"),
    ("bfind.u32 d, a;", lambda a: a.bit_length() - 1, "u32", "u32"),
    ("bfind.u64 d, a;", lambda a: a.bit_length() - 1, "u32", "u64"),
    ("set.lt.u32.s32 d, a, b;", lambda a, b: -(a < b), "u32", "s32", "s32"),
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


@pytest.mark.parametrize(
    "text",
    [
        "tanh.exact.f32 %r1, %r1;",
        "frobnicate.b32 %r1, %r2;",
        "add.rz.f32 %r1, %r1, %r1;",
        "bfind.shiftamt.u32 %r1, %r1;",
        "sin.approx.f16 %rs1, %rs1;",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 {%r1}, {%r1}, {%r1}, {%r1};",
    ],
)
def test_an_unknown_instruction_is_named_with_its_line(text):
    with pytest.raises(EmulatorError, match="does not know the instruction") as raised:
        run(text, np.zeros(4))
    assert text.split()[0] in str(raised.value)
    assert "mine.py:7:3" in str(raised.value)
