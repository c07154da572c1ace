"""Counters against numbers counted by hand, from hand-written PTX."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.tools.emulator.machine import Modes, launch
from pspin_lite.tools.emulator.memory import Memory
from pspin_lite.tools.emulator.parser import parse

HEAD = """.version 8.0
.target sm_80
.address_size 64
.shared .align 16 .b8 room[8192];
.visible .entry k(.param .u64 x) .reqntid 64
{
  .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
"""


def counted(body: str, blocks: int = 1, threads: int = 64):
    kernel = parse(HEAD.replace("reqntid 64", f"reqntid {threads}") + body + "\n  ret;\n}")
    x = np.zeros(1 << 16, np.uint8)
    start = -x.ctypes.data % 128  # the pattern of sectors depends on where it begins
    values = x[start : start + (1 << 15)]
    address = values.ctypes.data
    memory = Memory([(address, values.nbytes)])
    return launch(kernel, (blocks, 1, 1), [address], memory, Modes(count=True, races=False))


@pytest.mark.parametrize(
    ("stride", "sectors", "least"), [(4, 8, 8), (8, 16, 16), (32, 64, 64), (128, 64, 64), (0, 2, 1)]
)
def test_sectors(stride, sectors, least):
    """64 threads, four bytes each, `stride` bytes apart."""
    load = f"mul.wide.u32 %rd2, %r1, {stride}; add.u64 %rd3, %rd1, %rd2; ld.global.b32 %r2, [%rd3];"
    launch = counted(load, blocks=3)
    assert launch.sectors == {"read": 3 * sectors}
    assert launch.least == {"read": 32 * least}, "all blocks read the same"
    assert launch.asked == {"read": 3 * 64 * 4}


def test_lanes_that_a_guard_holds_back_ask_for_nothing():
    store = "setp.lt.u32 %p1, %r1, 8; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;"
    launch = counted(store + "@%p1 st.global.b32 [%rd3], %r1;")
    assert (launch.sectors, launch.asked, launch.least) == ({"written": 1}, {"written": 32}, {"written": 32})


@pytest.mark.parametrize(
    ("each", "stride", "passes", "conflicts"),
    [(4, 4, 2, 0), (4, 8, 4, 2), (4, 128, 64, 62), (4, 0, 2, 0), (8, 8, 4, 0), (16, 16, 8, 0), (16, 32, 16, 8)],
)
def test_bank_conflicts(each, stride, passes, conflicts):
    """64 threads, two warps. Eight bytes are served for half a warp at a time, sixteen for a quarter."""
    registers = {4: "%r5", 8: "{%r5, %r6}", 16: "{%r5, %r6, %r7, %r8}"}[each]
    vector = {4: "b32", 8: "v2.b32", 16: "v4.b32"}[each]
    write = f"mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0; mul.lo.u32 %r2, %r1, {stride};"
    launch = counted(f"{write} mov.u32 %r3, room; add.u32 %r4, %r3, %r2; st.shared.{vector} [%r4], {registers};")
    assert (launch.passes, launch.conflicts) == (passes, conflicts)


def test_instructions_barriers_and_products():
    fragment = "{%r2, %r2, %r2, %r2}, {%r2, %r2}"
    product = f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%f1, %f2, %f3, %f4}}, {fragment}, "
    body = "mov.b32 %r2, 0; mov.b32 %f0, 0f00000000; add.f32 %f5, %f0, %f0; bar.sync 0;"
    launch = counted(body + product + "{%f0, %f0, %f0, %f0};", blocks=5)
    warps = 2 * 5
    assert launch.tensor == {"bf16": 2 * 16 * 8 * 16 * warps}
    assert launch.barriers == 5
    expected = {"move": 4, "float": 1, "barrier": 1, "tensor core": 1, "branch": 1}  # ld.param is a move
    assert launch.instructions == {kind: count * warps for kind, count in expected.items()}
    assert "5 blocks of 64 threads" in launch.summary()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("left", "passes"), [("%rd2", 16), ("{%r2, %r2, %r2, %r2}", 0)], ids=["memory", "registers"])
def test_operations_of_four_warps_are_counted_once(left, passes, groups):
    """A has 64 rows of 32 bytes, B eight, and each group of four warps reads its own."""
    body = "mov.b64 %rd2, 0; mov.b32 %r2, 0; setp.eq.u32 %p1, %r2, 1;"
    kinds, d = "m64n8k16.f32.bf16.bf16", "{%f1, %f2, %f3, %f4}"
    turns = ", 0, 0" if left == "%rd2" else ", 0"
    body += f"wgmma.mma_async.sync.aligned.{kinds} {d}, {left}, %rd2, %p1, 1, 1{turns};"
    launch = counted(body + "wgmma.wait_group.sync.aligned 0;", blocks=3, threads=128 * groups)
    assert launch.tensor == {"bf16": 2 * 64 * 8 * 16 * groups * 3}
    assert (launch.passes, launch.conflicts) == ((passes + 2) * groups * 3, 0)
    assert launch.instructions["tensor core"] == 4 * groups * 3
