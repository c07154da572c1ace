"""Registers declared inside braces, as inline assembly declares them, from hand-written PTX: names without a per cent
sign, the same names in several blocks, names that hide others, and registers of 8 bits."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten import at, run

from pspin_lite.tools.emulator.parser import EmulatorError

# Triton's own conversion of four int8 to bfloat16
CONVERT = """
{{
.reg .s8 s<4>;
.reg .f32 f<4>;
mov.b32 {{s0, s1, s2, s3}}, {word};
cvt.rn.f32.s8 f0, s0;
cvt.rn.f32.s8 f1, s1;
cvt.rn.f32.s8 f2, s2;
cvt.rn.f32.s8 f3, s3;
prmt.b32 {low}, f0, f1, 0x7632;
prmt.b32 {high}, f2, f3, 0x7632;
}}
"""


def results(body: str, count: int = 1) -> list[int]:
    """What %r10, %r11 .. hold after the body, which all threads run alike."""
    out = np.zeros((32, count), "u4")
    stores = "".join(f"st.global.b32 [%rd1+{4 * i}], %r{10 + i};" for i in range(count))
    run(f"{body} {at(0, 4 * count, 1)} {stores}", out)
    assert (out == out[0]).all()
    return out[0].tolist()


def test_int8_to_bfloat16_in_two_blocks_of_the_same_names():
    x = np.arange(256).astype("u1").view("i1").reshape(32, 8)
    y = np.zeros((32, 8), "u2")
    run(
        f"{at(0, 8, 1)} ld.global.v2.b32 {{%r1, %r2}}, [%rd1];"
        f"{CONVERT.format(word='%r1', low='%r3', high='%r4')} {CONVERT.format(word='%r2', low='%r5', high='%r6')}"
        f"{at(1, 16, 2)} st.global.v4.b32 [%rd2], {{%r3, %r4, %r5, %r6}};",
        x, y,
    )  # fmt: skip
    assert np.array_equal((y.astype("u4") << 16).view("f4"), x.astype("f4"))


def test_inner_names_hide_outer_ones_until_their_brace_closes():
    body = """
    .reg .b32 a; mov.b32 a, 1; mov.b32 %r1, 2;
    {
        .reg .b32 b; mov.b32 b, 30;
        {
            .reg .b32 a, %r<2>; mov.b32 a, 400; mov.b32 %r1, 5000;
            add.s32 %r10, a, %r1; add.s32 %r10, %r10, b;
        }
        add.s32 %r11, a, b; add.s32 %r11, %r11, %r1;
    }
    add.s32 %r12, a, %r1;
    """
    assert results(body, 3) == [5430, 33, 3]


def test_numbered_names_are_those_declared_and_no_others():
    body = """
    { .reg .b32 s<2>, s1<3>, s; mov.b32 s0, 1; mov.b32 s1, 20; mov.b32 s10, 300; mov.b32 s12, 4000; mov.b32 s, 50000;
      add.s32 %r10, s0, s1; add.s32 %r10, %r10, s10; add.s32 %r10, %r10, s12; add.s32 %r10, %r10, s; }
    """
    assert results(body) == [54321]
    with pytest.raises(EmulatorError, match="s2"):
        results("{ .reg .b32 s<2>; mov.b32 s2, 1; } mov.b32 %r10, 0;")


def test_predicates_guards_and_addresses_have_scopes_too():
    body = """
    mov.b32 %r10, 0; setp.eq.u32 %p1, %r10, 0;
    { .reg .pred p; .reg .b32 q; setp.ne.u32 p, %r10, 0; mov.b32 q, smem; @!p st.shared.b32 [q+4], 7;
      @p mov.b32 %r10, 1; { .reg .pred p; setp.eq.u32 p, %r10, 0; @p ld.shared.b32 %r10, [q+4]; } }
    """
    out = np.zeros(32, "u4")
    run(f"{body} {at(0, 4, 1)} st.global.b32 [%rd1], %r10;", out, shared=16)
    assert (out == 7).all()


def test_registers_of_8_bits():
    body = """
    { .reg .b8 s<4>; mov.b32 %r1, 0x81027FFE; mov.b32 {s0, s1, s2, s3}, %r1; mov.b32 %r10, {s3, s2, s1, s0};
      cvt.s32.s8 %r11, s0; cvt.u32.u8 %r12, s3; mov.b16 %rs1, {s1, s2}; cvt.u32.u16 %r13, %rs1; }
    { .reg .b8 s; mov.b32 {_, _, s, _}, %r1; cvt.s32.s8 %r14, s; }
    """
    assert results(body, 5) == [0xFE7F0281, 0xFFFFFFFE, 0x81, 0x027F, 2]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{ .reg .b32 a; mov.b32 a, 1; } mov.b32 %r10, a;", "symbol a"),
        ("{ .reg .b32 a; mov.b32 a, 1; } { .reg .b32 a; mov.b32 %r10, a; }", "a.* is read before it is written"),
        ("{ .reg .b32 a<2>; .reg .b32 a1; mov.b32 %r10, 1; }", "a1 is declared twice"),
        ("{ L: mov.b32 %r10, 1; } { L: mov.b32 %r10, 2; }", "label L is there twice"),
    ],
    ids=["after its scope", "the same name in a later block", "declared twice", "a label in two blocks"],
)
def test_wrong_names_are_errors(body, message):
    with pytest.raises(EmulatorError, match=message):
        results(body)
