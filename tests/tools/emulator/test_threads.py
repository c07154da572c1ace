"""Threads together, from hand-written PTX against plain Python: shuffles, votes, loops, blocks that branch apart,
shared memory, atomic operations; and what the parser makes of PTX."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten import at, run, source

from pspin_lite.tools.emulator.parser import EmulatorError, Register, parse

RNG = np.random.default_rng(3)


def shuffled(mode: str, x: np.ndarray, by: int, c: int) -> list[tuple[int, bool]]:
    """The pseudo code of the PTX ISA, lane by lane."""
    result = []
    for lane in range(32):
        segment, clamp = c >> 8 & 31, c & 31
        most = lane & segment | clamp & ~segment
        least = lane & segment
        if mode == "up":
            j, fits = lane - by, lane - by >= most
        elif mode == "down":
            j, fits = lane + by, lane + by <= most
        elif mode == "bfly":
            j, fits = lane ^ by, lane ^ by <= most
        else:
            j = least | by & ~segment
            fits = j <= most
        result.append((int(x[j if fits else lane]), fits))
    return result


@pytest.mark.parametrize(
    ("mode", "by", "c"),
    [
        *[("bfly", 16, 31), ("bfly", 3, 31), ("up", 1, 0), ("up", 8, 0), ("down", 5, 31), ("idx", 9, 31)],
        *[("idx", 2, 0x1C1F), ("down", 2, 0x181F), ("up", 3, 0x1800)],
    ],
)
def test_shuffles(mode, by, c):
    x, y, z = RNG.integers(0, 2**32, 64, dtype="u4"), np.zeros(64, "u4"), np.zeros(64, "u4")
    run(
        f"{at(0, 4, 1)} {at(1, 4, 2)} {at(2, 4, 3)} ld.global.b32 %r1, [%rd1];"
        f"shfl.sync.{mode}.b32 %r2|%p1, %r1, {by}, {c}, -1; st.global.b32 [%rd2], %r2;"
        "selp.b32 %r3, 1, 0, %p1; st.global.b32 [%rd3], %r3;",
        x, y, z, threads=64,
    )  # fmt: skip
    for warp in (0, 32):
        expected = shuffled(mode, x[warp : warp + 32], by, c)
        assert [(int(a), bool(b)) for a, b in zip(y[warp : warp + 32], z[warp : warp + 32], strict=True)] == expected


def test_shuffle_by_a_different_lane_in_each():
    x, lanes, y = RNG.integers(0, 99, 32).astype("u4"), RNG.integers(0, 32, 32).astype("u4"), np.zeros(32, "u4")
    run(
        f"{at(0, 4, 1)} {at(1, 4, 2)} {at(2, 4, 3)} ld.global.b32 %r1, [%rd1]; ld.global.b32 %r2, [%rd2];"
        "shfl.sync.idx.b32 %r3, %r1, %r2, 31, -1; st.global.b32 [%rd3], %r3;",
        x, lanes, y,
    )  # fmt: skip
    assert np.array_equal(y, x[lanes])


def test_a_shuffle_of_some_lanes_is_refused():
    with pytest.raises(EmulatorError, match="mask of lanes 0xff"):
        run("mov.b32 %r1, 1; shfl.sync.bfly.b32 %r2, %r1, 1, 31, 255;", np.zeros(1))


@pytest.mark.parametrize(("name", "kind"), [("add", "s32"), ("max", "s32"), ("min", "u32"), ("xor", "b32")])
def test_reductions_of_a_warp(name, kind):
    x, y = RNG.integers(-99, 99, 64).astype("i4"), np.zeros(64, "i4")
    run(
        f"{at(0, 4, 1)} {at(1, 4, 2)} ld.global.b32 %r1, [%rd1]; redux.sync.{name}.{kind} %r2, %r1, -1;"
        "st.global.b32 [%rd2], %r2;",
        x, y, threads=64,
    )  # fmt: skip
    function = {"add": np.sum, "max": np.max, "min": np.min, "xor": np.bitwise_xor.reduce}[name]
    for numbers, result in zip(x.reshape(2, 32), y.reshape(2, 32), strict=True):
        assert (result == np.int64(function(numbers.astype("u4") if kind == "u32" else numbers)).astype("i4")).all()


def test_votes():
    x, y = RNG.integers(0, 2, 32).astype("u4"), np.zeros((32, 3), "u4")
    run(
        f"{at(0, 4, 1)} {at(1, 12, 2)} ld.global.b32 %r1, [%rd1]; setp.ne.b32 %p1, %r1, 0;"
        "vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, %p1, -1;"
        "selp.b32 %r3, 1, 0, %p2; selp.b32 %r4, 1, 0, %p3;"
        "st.global.b32 [%rd2], %r2; st.global.b32 [%rd2+4], %r3; st.global.b32 [%rd2+8], %r4;",
        x, y,
    )  # fmt: skip
    assert (y == [sum(int(one) << i for i, one in enumerate(x)), 1, 0]).all()


def test_the_first_lane_is_elected_and_all_are_active():
    y = np.zeros((64, 3), "u4")
    run(
        f"elect.sync %r1|%p1, -1; selp.b32 %r2, 1, 0, %p1; activemask.b32 %r3; {at(0, 12, 1)}"
        "st.global.b32 [%rd1], %r1; st.global.b32 [%rd1+4], %r2; st.global.b32 [%rd1+8], %r3;",
        y, threads=64,
    )  # fmt: skip
    assert (y == [[0, t % 32 == 0, 2**32 - 1] for t in range(64)]).all()


NOTHING = """membar.gl; fence.acq_rel.gpu; fence.sc.cta; nanosleep.u32 20; griddepcontrol.wait; pragma "nounroll";
    createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0; prefetch.global.L2 [%rd1]; discard.global.L2 [%rd1], 128;
    applypriority.global.L2::evict_normal [%rd1], 128; bar.warp.sync -1; cvta.to.global.u64 %rd1, %rd1;"""


def test_what_does_nothing():
    x, y = np.arange(64, dtype="u4"), np.zeros(64, "u4")
    body = f"{at(0, 4, 1)} {NOTHING} {at(1, 4, 2)} ldu.global.b32 %r1, [%rd1]; st.global.b32 [%rd2], %r1;"
    run(body, x, y, threads=64)
    assert np.array_equal(x, y)


@pytest.mark.parametrize("name", ["bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync"])
def test_barriers_by_any_name(name):
    y = np.zeros(64, "u4")
    run(
        "mad.lo.u32 %r1, %t, 4, smem; xor.b32 %r2, %t, 63; mad.lo.u32 %r2, %r2, 4, smem; st.shared.b32 [%r1], %t;"
        f"{name} 0; ld.shared.b32 %r3, [%r2]; {at(0, 4, 1)} st.global.b32 [%rd1], %r3;",
        y, threads=64, shared=256,
    )  # fmt: skip
    assert np.array_equal(y, np.arange(64)[::-1])


def test_a_loop_of_a_different_length_in_each_thread():
    y = np.zeros(128, "u4")
    run(
        "mov.b32 %r1, 0; mov.b32 %r2, 0;"
        "again: add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %t; @%p1 bra again;"
        f"{at(0, 4, 1)} st.global.b32 [%rd1], %r2;",
        y, threads=128,
    )  # fmt: skip
    assert y.tolist() == [sum(range(t + 1)) for t in range(128)]


@pytest.mark.parametrize("batch", [64, 10_000])
def test_blocks_that_branch_apart_meet_again(batch):
    y = np.zeros(7 * 64, "u4")
    run(
        "mov.u32 %r1, %ctaid.x; mov.b32 %r2, 0; setp.eq.u32 %p2, %r1, 3; @%p2 bra end;"
        "again: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra again;"
        "end: mad.lo.u32 %r3, %r1, 64, %t; mad.wide.u32 %rd1, %r3, 4, %x0; st.global.b32 [%rd1], %r2;",
        y, threads=64, blocks=7, batch=batch,
    )  # fmt: skip
    expected = [0 if block == 3 else max(1, block) for block in range(7)]
    assert y.reshape(7, 64).tolist() == [[count] * 64 for count in expected]


def test_blocks_that_wait_for_a_lock():
    """Seven blocks add to a number that is not atomic, under a lock. Those that spin come first in the text."""
    lock, total = np.zeros(1, "u4"), np.zeros(1, "u4")
    body = (
        "setp.eq.u32 %p1, %t, 0; bra spin; spin: mov.b32 %r1, 0; @%p1 atom.global.cas.b32 %r1, [%x0], 0, 1;"
        "bar.red.or.pred %p2, 0, %p3; @%p2 bra spin;"
        "ld.global.b32 %r2, [%x1]; add.u32 %r2, %r2, 1; bar.sync 0; st.global.b32 [%x1], %r2; bar.sync 0;"
        "atom.global.exch.b32 %r3, [%x0], 0;"
    ).replace("bar.red", "setp.ne.u32 %p3, %r1, 0; bar.red")
    run(body, lock, total, threads=64, blocks=7, limit=100_000)
    assert total[0] == 7
    assert lock[0] == 0
    with pytest.raises(EmulatorError, match="does a block wait for another one"):
        run(body, np.ones(1, "u4"), total, threads=64, blocks=7, limit=10_000)  # nobody will let it go


def test_some_threads_end_early():
    y = np.zeros(64, "u4")
    run(f"setp.lt.u32 %p1, %t, 10; @%p1 ret; {at(0, 4, 1)} mov.b32 %r1, 1; st.global.b32 [%rd1], %r1;", y, threads=64)
    assert y.tolist() == [0] * 10 + [1] * 54


def test_shared_memory_of_each_block():
    x, y = RNG.integers(0, 2**32, (3, 64), dtype="u4"), np.zeros((3, 64), "u4")
    run(
        "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %t; mad.wide.u32 %rd1, %r2, 4, %x0;"
        "mad.wide.u32 %rd2, %r2, 4, %x1; ld.global.b32 %r3, [%rd1]; mad.lo.u32 %r4, %t, 4, smem;"
        "st.shared.b32 [%r4], %r3; bar.sync 0; sub.u32 %r5, 63, %t; mad.lo.u32 %r6, %r5, 4, smem;"
        "ld.shared.b32 %r7, [%r6]; st.global.b32 [%rd2], %r7;",
        x, y, threads=64, blocks=3, shared=256,
    )  # fmt: skip
    assert np.array_equal(y, x[:, ::-1])


@pytest.mark.parametrize(("width", "count"), [(8, 1), (8, 2), (16, 4), (32, 2), (64, 2)])
def test_vectors_keep_their_order(width, count):
    x = RNG.integers(0, 256, 32 * width * count // 8, dtype="u1")
    y = np.zeros_like(x)
    names = {8: "rs", 16: "rs", 32: "r", 64: "rd"}[width]
    held = ", ".join(f"%{names}{30 + i}" for i in range(count))
    held, kind = (f"{{{held}}}", f"v{count}.b{width}") if count > 1 else (held, f"b{width}")
    each = width * count // 8
    run(
        f"{at(0, each, 1)} {at(1, each, 2)} mad.lo.u32 %r1, %t, {each}, smem; ld.global.{kind} {held}, [%rd1];"
        f"st.shared.{kind} [%r1], {held}; ld.shared.{kind} {held}, [%r1]; st.global.{kind} [%rd2], {held};",
        x, y, shared=1024,
    )  # fmt: skip
    assert np.array_equal(x, y)


def test_narrow_loads_fill_the_register():
    x, y = np.arange(-16, 16, dtype="i1"), np.zeros((32, 2), "i4")
    run(
        f"{at(0, 1, 1)} {at(1, 8, 2)} ld.global.s8 %r1, [%rd1]; ld.global.u8 %r2, [%rd1];"
        "st.global.v2.b32 [%rd2], {%r1, %r2};",
        x, y,
    )  # fmt: skip
    assert np.array_equal(y[:, 0], x)
    assert np.array_equal(y[:, 1], x.view("u1"))


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomic_sums(space):
    total, before = np.zeros(4, "u4"), np.zeros(64, "u4")
    address = "and.b32 %r1, %t, 3; mad.wide.u32 %rd1, %r1, 4, %x0;"
    if space == "shared":
        address += "mad.lo.u32 %r2, %r1, 4, smem; mov.b32 %r3, 0; st.shared.b32 [%r2], %r3; bar.sync 0;"
    place = "%rd1" if space == "global" else "%r2"
    run(
        f"{address} atom.{space}.add.u32 %r4, [{place}], %t; {at(1, 4, 2)} st.global.b32 [%rd2], %r4; bar.sync 0;"
        + ("ld.shared.b32 %r5, [%r2]; st.global.b32 [%rd1], %r5;" if space == "shared" else ""),
        total, before, threads=64, shared=64,
    )  # fmt: skip
    assert total.tolist() == [sum(t for t in range(64) if t % 4 == i) for i in range(4)]
    assert before.tolist() == [sum(s for s in range(t) if s % 4 == t % 4) for t in range(64)]


def test_atomic_exchange_and_float_sum():
    lock, y, total = np.zeros(1, "u4"), np.zeros(32, "u4"), np.zeros(1, "f4")
    run(
        f"atom.global.cas.b32 %r1, [%x0], 0, 7; {at(1, 4, 1)} st.global.b32 [%rd1], %r1;"
        "mov.b32 %r2, 0f3F000000; red.global.add.f32 [%x2], %r2; atom.global.max.u32 %r3, [%x0], %t;",
        lock, y, total,
    )  # fmt: skip
    assert y.tolist() == [0] + [7] * 31
    assert lock[0] == 31
    assert total[0] == 16


def test_registers_of_inner_scopes_are_their_own():
    y = np.zeros(32, "u4")
    inner = "{ .reg .b32 one; .reg .pred q; mov.b32 one, %d; setp.lt.u32 q, %%t, 4; @q add.u32 %%r1, %%r1, one; }"
    run(f"mov.b32 %r1, 1; {inner % 10} {inner % 100} {at(0, 4, 1)} st.global.b32 [%rd1], %r1;".replace("%%", "%"), y)
    assert y.tolist() == [111] * 4 + [1] * 28


def test_parsing():
    kernel = parse(source("bra.uni done; // nothing\n /* add.s32 %r1, */ done: mov.b32 %r1, -0x10;", 2, 96, 48))
    assert kernel.threads == 96
    assert kernel.shared == 48
    assert kernel.parameters == {"p0": ("u64", 8), "p1": ("u64", 8)}
    assert kernel.type_of("%r5") == "b32"
    jump, move = kernel.code[-3:-1]
    assert jump.opcode == "bra.uni"
    assert kernel.labels["done"] == kernel.code.index(move)
    assert move.operands[0] == Register("%r1")
    assert move.where == "mine.py:7:3"
    with pytest.raises(EmulatorError, match="not declared"):
        kernel.type_of("%q1")
    with pytest.raises(EmulatorError, match="no kernel"):
        parse(".version 8.0")


def test_lines_of_the_ptx_are_named():
    body = "mov.b32 %r1, 1;\n    .loc 1 7 3\n\n    .loc 1 7 3 // mine.py:7:3\n\n    add.s32 %r2, %r1, %r77;"
    text = source(body, 1)
    line = text.splitlines().index("    add.s32 %r2, %r1, %r77;") + 1
    with pytest.raises(EmulatorError, match=f"line {line} of the PTX, from mine.py:7:3"):
        run(body, np.zeros(1))
