"""What a kernel must not do, provoked by hand-written PTX: each check has a kernel that breaks it, and the same kernel
mended, which passes."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten import at, run

from pspin_lite.tools.emulator.machine import Modes, launch
from pspin_lite.tools.emulator.memory import Memory
from pspin_lite.tools.emulator.parser import EmulatorError, parse

VALUE = "mov.b32 %r1, 1;"
OWN = "mad.lo.u32 %r2, %t, 4, smem;"  # the thread's own word of shared memory
NEXT = "xor.b32 %r3, %t, 32; mad.lo.u32 %r3, %r3, 4, smem;"  # that of a thread of another warp


def refused(words: str, body: str, *arrays, **how) -> str:
    with pytest.raises(EmulatorError, match=words) as raised:
        run(body, *(arrays or (np.zeros(64, "u4"),)), **how)
    assert "mine.py:7:3" in str(raised.value), "the Triton line is named"
    return str(raised.value)


def test_address_outside_the_tensors():
    x = np.zeros(64, "u4")
    body = f"{VALUE} {at(0, 4, 1)} st.global.b32 [%rd1+128], %r1;"
    run(body, x)
    assert x.sum() == 32
    said = refused("outside the tensors passed", body, x[:63])
    assert "4 bytes after the last byte of the nearest, which has 252" in said
    assert "before the first byte" in refused("outside", f"{at(0, 4, 1)} ld.global.b32 %r1, [%rd1+-4];", x)
    refused("outside", f"{at(0, 4, 1)} ld.global.b32 %r1, [%rd1];", np.zeros(8, "u4"))


@pytest.mark.parametrize("act", ["ld.{0}.v4.b32 {2}, [{1}+16];", "st.{0}.v4.b32 [{1}+16], {2};"], ids=["load", "store"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_an_access_that_begins_inside_and_ends_outside(space, act):
    zeros = "mov.b32 %r9, smem;" + "".join(f"mov.b32 %r{i}, 0;" for i in range(1, 5))
    body = zeros + act.format(space, "%x0" if space == "global" else "%r9", "{%r1, %r2, %r3, %r4}")
    run(body, np.zeros(8, "u4"), shared=32)
    words = "is outside the tensors passed" if space == "global" else "16 from 16 on are beyond it"
    refused(words, body, np.zeros(6, "u4"), shared=24)


def test_address_outside_is_nobodys_business_if_guarded():
    x = np.zeros(8, "u4")
    run(f"{VALUE} {at(0, 4, 1)} setp.lt.u32 %p1, %t, 8; @%p1 st.global.b32 [%rd1], %r1;", x)
    assert (x == 1).all()


def test_two_tensors_at_once():
    x, y = np.arange(32, dtype="u4"), np.arange(100, 132, dtype="u4")
    d = np.zeros(32, "u4")
    run(
        f"{at(0, 4, 1)} {at(1, 4, 2)} setp.lt.u32 %p1, %t, 16; selp.b64 %rd3, %rd1, %rd2, %p1;"
        f"ld.global.b32 %r1, [%rd3]; {at(2, 4, 4)} st.global.b32 [%rd4], %r1;",
        x, y, d,
    )  # fmt: skip
    assert np.array_equal(d, np.where(np.arange(32) < 16, x, y))


@pytest.mark.parametrize("space", ["global", "shared"])
def test_misaligned_vectors(space):
    base = at(0, 16, 1) if space == "global" else "mad.lo.u32 %r9, %t, 16, smem;"
    register = "%rd1" if space == "global" else "%r9"
    for offset in (4, 8):
        body = f"{base} ld.{space}.v4.b32 {{%r1, %r2, %r3, %r4}}, [{register}+{offset}];"
        refused("misaligned.*multiple of the access's 16 bytes", body, np.zeros(160, "u4"), shared=1024)
    run(f"{base} ld.{space}.v4.b32 {{%r1, %r2, %r3, %r4}}, [{register}+16];", np.zeros(160, "u4"), shared=1024)


def test_beyond_shared_memory():
    body = f"{VALUE} {OWN} st.shared.b32 [%r2], %r1;"
    run(body, np.zeros(1), shared=128)
    assert "has 124 bytes" in refused("beyond it", body, shared=124)


def test_register_read_before_written():
    refused("register %r5 is read before it is written", "add.s32 %r1, %r5, %r5;")
    body = "setp.lt.u32 %p1, %t, 7; @!%p1 bra after; mov.b32 %r5, 1; after: add.s32 %r1, %r5, %r5;"
    assert "by thread 7 of block 0" in refused("%r5 is read before it is written", body)
    run(body.replace("@!%p1 bra after;", "mov.b32 %r5, 0; @!%p1 bra after;"), np.zeros(1))
    refused("%p5 is read before", "@%p5 bra after; mov.b32 %r1, 1; after: mov.b32 %r2, 1;")


def test_what_a_guard_left_unwritten_is_nan():
    x = np.zeros(32, "f4")
    run(f"setp.lt.u32 %p1, %t, 7; @%p1 mov.b32 %r5, 0f3F800000; {at(0, 4, 1)} st.global.b32 [%rd1], %r5;", x)
    assert (x[:7] == 1).all()
    assert np.isnan(x[7:]).all()


def test_barrier_not_reached_by_all():
    body = "setp.lt.u32 %p1, %t, 40; @%p1 bra after; bar.sync 0; after: mov.b32 %r1, 1;"
    assert "40 of 64 threads" in refused("barrier that not all threads of a block reach", body, threads=64)
    refused("barrier", "setp.lt.u32 %p1, %t, 40; @%p1 ret; bar.sync 0;", threads=64)
    blocks = "mov.u32 %r1, %ctaid.x; setp.lt.u32 %p1, %r1, 1; @%p1 bra after; bar.sync 0; after: mov.b32 %r1, 1;"
    run(blocks, np.zeros(1), threads=64, blocks=3)


@pytest.mark.parametrize(
    "instruction",
    [
        "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;",
        "redux.sync.add.s32 %r2, %r1, -1;",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r2,%r3,%r4,%r5}, {%r1,%r1}, {%r1}, {%r1,%r1,%r1,%r1};",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r6];",
    ],
    ids=lambda words: words.split()[0],
)
def test_lanes_missing(instruction):
    body = "mov.b32 %r1, 0; mov.b32 %r6, 0; setp.lt.u32 %p1, %t, {}; @%p1 bra after; {} after: mov.b32 %r7, 1;"
    said = refused("missing in an instruction of the whole warp", body.format(33, instruction), threads=64, shared=128)
    assert "lanes [0] of warp 1" in said
    run(body.format(32, instruction), np.zeros(1), threads=64, shared=128)  # one warp whole, the other not there


COPY = "cp.async.ca.shared.global [%r2], [%rd1], 4;"


def test_copy_of_sixteen_bytes():
    x, y = np.arange(256, dtype="u4"), np.zeros(256, "u4")
    copy = f"{at(0, 16, 1)} {at(1, 16, 2)} mad.lo.u32 %r2, %t, 16, smem; cp.async.cg.shared.global [%r2], [%rd1], 16;"
    then = "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2]; st.global.v4.b32 [%rd2], {%r4, %r5, %r6, %r7};"
    run(f"{copy} cp.async.wait_all; {then}", x, y, threads=64, shared=1024)
    assert np.array_equal(x, y)
    refused("read while cp.async still copies", f"{copy} {then}", x, y, threads=64, shared=1024)


def test_copy_read_before_its_wait():
    x, y = np.arange(64, dtype="u4"), np.zeros(64, "u4")
    body = f"{at(0, 4, 1)} {at(1, 4, 2)} {OWN} {COPY} cp.async.commit_group; WAIT ld.shared.b32 %r1, [%r2];"
    body += "st.global.b32 [%rd2], %r1;"
    refused("read while cp.async still copies", body.replace("WAIT", ""), x, y, threads=64, shared=256)
    refused(
        "read while cp.async still copies", body.replace("WAIT", "cp.async.wait_group 1;"), x, y, threads=64, shared=256
    )
    run(body.replace("WAIT", "cp.async.wait_group 0;"), x, y, threads=64, shared=256)
    assert np.array_equal(x, y)
    y[:] = 0
    run(body.replace("WAIT", "cp.async.wait_all;").replace("cp.async.commit_group;", ""), x, y, threads=64, shared=256)
    assert np.array_equal(x, y)
    refused("written while cp.async", f"{at(0, 4, 1)} {OWN} {COPY} {COPY}", x, threads=64, shared=256)


def test_copy_groups_arrive_in_order():
    x, y = np.arange(128, dtype="u4"), np.zeros(64, "u4")
    body = (
        f"{at(0, 4, 1)} {at(1, 4, 2)} {OWN} {COPY} cp.async.commit_group;"
        "cp.async.ca.shared.global [%r2+256], [%rd1+256], 4; cp.async.commit_group; cp.async.wait_group 1;"
        "ld.shared.b32 %r1, [%r2+{}]; st.global.b32 [%rd2], %r1;"
    )
    run(body.format(0), x, y, threads=64, shared=512)
    assert np.array_equal(x[:64], y)
    refused("still copies", body.format(256), x, y, threads=64, shared=512)


def test_copy_of_nothing_is_zeros():
    x, y = np.arange(1, 65, dtype="u4"), np.zeros(64, "u4")
    run(
        f"{at(0, 4, 1)} {at(1, 4, 2)} {OWN} and.b32 %r5, %t, 1; shl.b32 %r5, %r5, 2;"
        "cp.async.ca.shared.global [%r2], [%rd1], 4, %r5; cp.async.wait_all; ld.shared.b32 %r1, [%r2];"
        "st.global.b32 [%rd2], %r1;",
        x, y, threads=64, shared=256,
    )  # fmt: skip
    assert np.array_equal(y, np.where(np.arange(64) % 2, x, 0))


RACES = {
    "read after write": f"{OWN} {NEXT} st.shared.b32 [%r2], %t; %s ld.shared.b32 %r4, [%r3];",
    "write after read": f"{OWN} {NEXT} ld.shared.b32 %r4, [%r3]; %s st.shared.b32 [%r2], %t;",
    "write after write": f"{OWN} {NEXT} st.shared.b32 [%r2], %t; %s st.shared.b32 [%r3], %t;",
    "copy": f"{at(0, 4, 1)} {OWN} {NEXT} {COPY} cp.async.wait_all; %s ld.shared.b32 %r4, [%r3];",
    "copy, waited for after a barrier": f"{at(0, 4, 1)} {OWN} {NEXT} {COPY} bar.sync 0; cp.async.wait_all; %s"
    "ld.shared.b32 %r4, [%r3];",
    "read after atomic": f"{OWN} {NEXT} atom.shared.add.u32 %r4, [%r2], %t; %s ld.shared.b32 %r4, [%r3];",
    "atomic after read": f"{OWN} {NEXT} ld.shared.b32 %r4, [%r3]; %s atom.shared.add.u32 %r4, [%r2], %t;",
    "atomic after write": f"{OWN} {NEXT} st.shared.b32 [%r3], %t; %s red.shared.add.u32 [%r2], %t;",
    "matrix": f"{OWN} mov.b32 %r6, smem; st.shared.b32 [%r2], %t; %s"
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r6];".replace("{{", "{").replace("}}", "}"),
}


@pytest.mark.parametrize("case", RACES)
@pytest.mark.parametrize("blocks", ["the same in all blocks", "different addresses"])
def test_races(case, blocks):
    body, x = RACES[case], np.arange(1, 65, dtype="u4")
    if blocks == "different addresses":
        other = "mov.u32 %r9, %ctaid.x; mad.lo.u32 %r2, %r9, 16, %r2; mad.lo.u32 %r3, %r9, 16, %r3;"
        body = (
            body.replace(NEXT, NEXT + other)
            if NEXT in body
            else body.replace(OWN, OWN + other.split("mad.lo.u32 %r3")[0])
        )
    how = dict(threads=64, shared=512, blocks=3)
    said = refused("race: (warp|an atomic)", body.replace("%s", ""), x, **how)
    assert "since the last barrier" in said
    run(body.replace("%s", "bar.sync 0;"), x, **how)
    run(body.replace("%s", ""), x, races=False, **how)


def test_a_race_at_once_and_what_is_none():
    how = dict(threads=64, shared=512)
    refused("two warps write different values", "mov.b32 %r2, smem; st.shared.b32 [%r2], %t;", **how)
    run("mov.b32 %r2, smem; mov.b32 %r1, 5; st.shared.b32 [%r2], %r1; st.shared.b32 [%r2], %r1;", np.zeros(1), **how)
    both = "mov.b32 %r2, smem; atom.shared.add.u32 %r3, [%r2], %t; red.shared.max.u32 [%r2], %t;"  # atomics may meet
    run(both, np.zeros(1), **how)
    lanes = "and.b32 %r3, %t, 32; add.u32 %r2, %r3, smem; st.shared.b32 [%r2], %t;"  # all lanes of a warp to one place
    run(lanes, np.zeros(1), **how)


PRODUCT = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r10,%r11,%r12,%r13}, {%r1,%r1,%r1,%r1}, %rd1, %p1, 1, 1, 0;"
)
WGMMA = f"""mov.b32 %r1, 0; mov.pred %p1, 0; mov.b64 %rd1, {8 << 16 | 8 << 32};
    mad.lo.u32 %r2, %t, 4, smem; st.shared.b32 [%r2], %t; FENCE BARRIER
    wgmma.fence.sync.aligned; SKIP {PRODUCT} after: wgmma.commit_group.sync.aligned; BEFORE
    wgmma.wait_group.sync.aligned 0; add.f32 %r20, %r10, %r11; st.shared.b32 [%r2+512], %r20;"""


CHANGES = {  # to WGMMA, and what is said then
    "nothing": ({}, None),
    "read before the wait": ({"BEFORE": "add.f32 %r20, %r10, %r11;"}, "register %r10 is read before wgmma.wait_group"),
    "overwritten before the wait": ({"BEFORE": "st.shared.b32 [%r2], %r1;"}, "written while wgmma may still read it"),
    "no proxy fence": ({"FENCE": ""}, "written without a fence.proxy.async"),
    "no barrier": ({"BARRIER": ""}, "race: warp"),
    "a warp is missing": ({"SKIP": "setp.lt.u32 %p3, %t, 32; @%p3 bra after;"}, "warps are missing"),
    "descriptors differ": ({"SKIP": "shr.u64 %rd2, %tt, 5; add.u64 %rd1, %rd1, %rd2;"}, "not the same in all threads"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_wgmma_checks(change):
    change, words = CHANGES[change]
    body = WGMMA
    for name, text in (
        {"FENCE": "fence.proxy.async.shared::cta;", "BARRIER": "bar.sync 0;", "SKIP": "", "BEFORE": ""} | change
    ).items():
        body = body.replace(name, text)
    how = dict(threads=128, shared=1024)
    if words is None:
        run(body, np.zeros(1), **how)
    else:
        refused(words, body, **how)
    if "FENCE" in change:
        run(body, np.zeros(1), proxies=False, **how)


def test_trap():
    refused("trap: an assertion of the kernel failed", "setp.eq.u32 %p1, %t, 7; @!%p1 bra after; trap; after: ret;")
    run("setp.eq.u32 %p1, %t, 77; @!%p1 bra after; trap; after: ret;", np.zeros(1))


def test_a_loop_without_end_is_stopped():
    refused_by_limit = "again: mov.b32 %r1, 1; bra again;"
    with pytest.raises(EmulatorError, match="more than 1000 instructions"):
        run(refused_by_limit, np.zeros(1), limit=1000)


def test_parameters_are_counted():
    kernel = parse(".visible .entry k(.param .u32 a, .param .u64 b)\n.reqntid 32\n{ ret; }")
    with pytest.raises(EmulatorError, match="takes 2 parameters, got 1"):
        launch(kernel, (1, 1, 1), [1], Memory([]))
    with pytest.raises(ValueError, match="bounds"):
        Modes(bounds="nowhere")
