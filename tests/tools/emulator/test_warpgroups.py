"""wgmma, from hand-written PTX: which lane and which place of shared memory hold which element, in every number type,
by several groups of four warps; sums in the pessimistic mode; and products that are waited for one by one.

Expectations are written element by element, see fragments.py. Matrices in shared memory follow their description in
pieces of 128 bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from fragments import LANES, RNG, a_place, bits, listed, loads, registers, stores, whole
from handwritten import at, run

from pspin_lite.tools.emulator.parser import EmulatorError

# Swizzle mode of a descriptor -> bits that are exchanged, pieces of 128 bits in a row of the pattern
PATTERN = {0: (0, 1), 1: (3, 8), 2: (2, 4), 3: (1, 2)}


def piece(m: int, k: int, each: int, mode: int, k_major: bool, leading: int, stride: int) -> tuple[int, int]:
    """(piece of `each` elements, position in it) of an element. The canonical layouts, in pieces, as is the rest:

    K-major   ((8, n), 2) : ((row, stride), 1)                   none  ((8, n), 2) : ((1, stride), leading)
    MN-major  ((row, n), (8, k)) : ((1, leading), (row, stride))  none  ((1, n), (8, k)) : ((-, stride), (1, leading))
    """
    row = PATTERN[mode][1]
    if k_major:
        return m % 8 * row + m // 8 * stride + k // each * (leading if mode == 0 else 1), k % each
    n = m // 8
    if mode == 0:
        return n * stride + k % 8 + k // 8 * leading, m % 8
    return n % row + n // row * leading + k % 8 * row + k // 8 * stride, m % 8


def swizzled(byte: int, mode: int) -> int:
    """Bits 4.. of an address are exchanged with their XOR with bits 7.., as many as the mode says."""
    many = PATTERN[mode][0]
    return byte ^ (byte >> 7 & (1 << many) - 1) << 4


def laid_out(matrix: np.ndarray, kind: str, start: int, mode: int, k_major: bool, memory: np.ndarray) -> int:
    """Puts a matrix [size, k] into shared memory from byte `start` on -> its descriptor."""
    size, each = len(matrix), 4 if kind == "tf32" else 8
    held = bits(matrix, kind).astype("u4" if kind == "tf32" else "u2")
    if kind == "tf32":  # the last 13 bits do not count
        held |= RNG.integers(0, 2**13, held.shape, dtype="u4")
    row = PATTERN[mode][1]
    if k_major:
        leading, stride = (8 * size // 8, 8) if mode == 0 else (1, 8 * row)
    else:
        leading, stride = (size, 8) if mode == 0 else (16 * row, 8 * row)
    for (m, k), one in np.ndenumerate(held):
        where, inside = piece(m, k, each, mode, k_major, leading, stride)
        memory.view(held.dtype)[swizzled(start + 16 * where, mode) // held.itemsize + inside] = one
    return start >> 4 | leading << 16 | stride << 32 | mode << 62


def in_lanes(matrix: np.ndarray) -> np.ndarray:
    """D [64, n] -> the float32 registers of four warps, [128, n / 2]. d_i: row groupID + 8 if i % 4 >= 2, column
    8 (i / 4) + 2 in_group + i % 2"""
    result = np.zeros((128, matrix.shape[1] // 2), "f4")
    for warp in range(4):
        for lane, group, inside in LANES:
            for i in range(result.shape[1]):
                row, column = 16 * warp + group + (8 if i % 4 >= 2 else 0), i // 4 * 8 + 2 * inside + i % 2
                result[32 * warp + lane, i] = matrix[row, column]
    return result


def a_in_lanes(a: np.ndarray, kind: str) -> np.ndarray:
    """A [64, k] -> the four registers of each lane of four warps, [128, 4]"""
    count, k = a.size // 128, a.shape[1]
    place = lambda i, g, t: a_place(i, g, t, kind, k)  # noqa: E731
    return np.concatenate([registers(rows, place, count, kind) for rows in np.split(a, 4)])


SHAPES = [("bf16", 8, True), ("bf16", 64, True), ("bf16", 64, False), ("bf16", 128, False)]
SHAPES += [("f16", 8, True), ("f16", 8, False), ("tf32", 8, True), ("tf32", 8, False)]
CASES = [(*shape, mode, k_major) for shape in SHAPES for mode in PATTERN for k_major in (True, False)]
CASES = [case for case in CASES if case[0] == "bf16" or (case[3] == 1 and (case[4] or case[0] == "f16"))]


@pytest.mark.parametrize(("kind", "n", "a_in_registers", "mode", "k_major"), CASES, ids=lambda x: str(x))
def test_wgmma(kind, n, a_in_registers, mode, k_major):
    """Four warps; with n = 8 eight, in two groups that have an A of their own each."""
    if not k_major and n * 2 < 16 * PATTERN[mode][1]:
        n = 8 * PATTERN[mode][1]  # one row of the pattern at least
    k, groups = 8 if kind == "tf32" else 16, 2 if n == 8 else 1
    a, b, c = whole(groups, 64, k), whole(k, n), whole(groups, 64, n)
    memory = np.zeros(16384, "u2")
    b_at = laid_out(b.T, kind, 16384, mode, k_major, memory)
    places = [laid_out(one, kind, 8192 * g, mode, k_major, memory) for g, one in enumerate(a)]
    held = np.concatenate([a_in_lanes(one, kind) for one in a])
    sums = np.concatenate([in_lanes(one) for one in c])
    left = listed(1, 4) if a_in_registers else "%rd40"
    turns = "" if kind == "tf32" else f", {int(not k_major)}" * (1 if a_in_registers else 2)
    d = np.zeros((128 * groups, n // 2), "f4")
    run(
        f"{copied(128 * groups)} {loads(1, 4, 1)} {loads(2, n // 2, 100)} mov.b64 %rd40, {places[0]};"
        f"shr.u64 %rd41, %tt, 7; mad.lo.u64 %rd40, %rd41, {8192 >> 4}, %rd40; mov.b64 %rd41, {b_at};"
        "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned; mov.pred %p1, -1;"
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{kind}.{kind} {listed(100, n // 2)}, {left}, %rd41,"
        f"%p1, 1, 1{turns};"
        f"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; {stores(3, n // 2, 100)}",
        memory, held, sums, d, threads=128 * groups, shared=32768,
    )  # fmt: skip
    assert np.array_equal(d, np.concatenate([in_lanes(one) for one in a @ b + c]))


def copied(threads: int) -> str:
    """Array 0, 32768 bytes, to shared memory."""
    lines = [at(0, 16, 1), "mad.lo.u32 %r190, %t, 16, smem;"]
    for i in range(32768 // 16 // threads):
        where = i * threads * 16
        lines += [f"ld.global.v4.b32 {listed(191, 4)}, [%rd1+{where}];"]
        lines += [f"st.shared.v4.b32 [%r190+{where}], {listed(191, 4)};"]
    return "\n".join(lines)


ONES = f"mov.b32 %r9, 0x3F803F80; mad.lo.u32 %r8, %t, 4, smem; st.shared.b32 [%r8], %r9; mov.b64 %rd41, {16 << 32};"
ONES += "fence.proxy.async.shared::cta; bar.sync 0; mov.pred %p1, -1;"  # 512 bytes


def product(first: int) -> str:
    """Four registers from `first` on += A, in registers 1 to 4, times a matrix of ones."""
    kinds = "m64n8k16.f32.bf16.bf16"
    return f"wgmma.mma_async.sync.aligned.{kinds} {listed(first, 4)}, {listed(1, 4)}, %rd41, %p1, 1, 1, 0;"


def test_sums_are_cut_off_in_the_pessimistic_mode():
    small = int(bits(np.array(2.0**-24), "bf16")) | int(bits(np.array(2.0**-25), "bf16")) << 16
    a, c, exact, cut = np.zeros((128, 4), "u4"), np.ones((128, 4), "f4"), *np.zeros((2, 128, 4), "f4")
    a[::4, 0] = small  # of the first two columns
    body = f"{loads(0, 4, 1)} {loads(1, 4, 100)} {ONES} {product(100)}"
    body += f"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; {stores(2, 4, 100)}"
    run(body, a, c, exact, threads=128, shared=512)
    run(body, a, c, cut, threads=128, shared=512, pessimistic=True)
    assert (exact[:, :2] == np.float32(1 + 2**-23)).all()  # 1 + 1.5 * 2^-24, to nearest
    assert (cut[:, :2] == 1).all()


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (stores(0, 4, 100), None),
        (stores(0, 4, 104), "register %r104 is read before wgmma.wait_group"),
        ("st.shared.b32 [%r8], %r9;", "written while wgmma may still read it"),
    ],
    ids=["the first is read", "the second is read", "the second's operand is written"],
)
@pytest.mark.parametrize("pending", [1, 0])
def test_a_wait_for_all_but_one(then, words, pending):
    d = np.zeros((128, 4), "f4")
    zeros = "".join(f"mov.b32 %r{i}, 0;" for i in [*range(1, 5), *range(100, 108)])
    commit = "wgmma.commit_group.sync.aligned;"
    body = f"{zeros} {ONES} {product(100)} {commit} {product(104)} {commit} wgmma.wait_group.sync.aligned {pending};"
    if pending and words:
        with pytest.raises(EmulatorError, match=words):
            run(body + then, d, threads=128, shared=512)
    else:
        run(body + then, d, threads=128, shared=512)
