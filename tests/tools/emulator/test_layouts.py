"""Which lane holds which element: mma, ldmatrix, stmatrix and wgmma, from hand-written PTX.

Expectations are written element by element from the formulas of the PTX ISA (groupID = lane / 4, in_group = lane % 4),
and, for matrices that wgmma finds in shared memory, from their description in pieces of 128 bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from handwritten import at, run

RNG = np.random.default_rng(7)
LANES = [(lane, lane // 4, lane % 4) for lane in range(32)]


def bits(x: np.ndarray, kind: str) -> np.ndarray:
    """Small whole numbers, which all types hold exactly -> bits."""
    if kind == "f16":
        return x.astype("f2").view("u2").astype("u4")
    single = x.astype("f4").view("u4")
    return single >> 16 if kind == "bf16" else single


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-8, 9, shape).astype("f8")


def a_place(i: int, group: int, inside: int, kind: str, k: int) -> tuple[int, int]:
    """Row and column of element a_i."""
    if kind == "tf32":  # m16n8k8, m16n8k4
        return group + (8 if i in (1, 3) else 0), inside + (4 if i >= 2 else 0)
    if k == 8:  # m16n8k8
        return group + (8 if i >= 2 else 0), inside * 2 + (i & 1)
    row = group if i < 2 or 4 <= i < 6 else group + 8  # m16n8k16
    return row, inside * 2 + (i & 1) + (8 if i >= 4 else 0)


def b_place(i: int, group: int, inside: int, kind: str) -> tuple[int, int]:
    if kind == "tf32":
        return inside + 4 * i, group
    return inside * 2 + (i & 1) + (8 if i >= 2 else 0), group


def c_place(i: int, group: int, inside: int) -> tuple[int, int]:
    return group + (8 if i >= 2 else 0), inside * 2 + (i & 1)


def registers(matrix: np.ndarray, place, count: int, kind: str) -> np.ndarray:
    """Elements of each lane -> [32, registers]"""
    each = 1 if kind in ("tf32", "f32") else 2
    result = np.zeros((32, count // each), "u4")
    for lane, group, inside in LANES:
        for i in range(count):
            one = int(bits(np.array(matrix[place(i, group, inside)]), kind))
            result[lane, i // each] |= np.uint32(one << 16 * (i % each))
    return result


def listed(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def loads(array: int, count: int, first: int) -> str:
    """All registers of a lane, one after the other in memory."""
    lines = [at(array, 4 * count, 20 + array)]
    lines += [f"ld.global.b32 %r{first + i}, [%rd{20 + array}+{4 * i}];" for i in range(count)]
    return "\n".join(lines)


def stores(array: int, count: int, first: int) -> str:
    lines = [at(array, 4 * count, 20 + array)]
    lines += [f"st.global.b32 [%rd{20 + array}+{4 * i}], %r{first + i};" for i in range(count)]
    return "\n".join(lines)


@pytest.mark.parametrize(("kind", "k"), [("f16", 16), ("bf16", 16), ("f16", 8), ("bf16", 8), ("tf32", 8), ("tf32", 4)])
def test_mma(kind, k):
    a, b, c = whole(16, k), whole(k, 8), whole(16, 8)
    a_count, b_count = 16 * k // 32, 8 * k // 32
    each = 1 if kind == "tf32" else 2
    held = [
        registers(a, lambda i, g, t: a_place(i, g, t, kind, k), a_count, kind),
        registers(b, lambda i, g, t: b_place(i, g, t, kind), b_count, kind),
        registers(c, c_place, 4, "f32"),
    ]
    d = np.zeros((32, 4), "u4")
    ra, rb = a_count // each, b_count // each
    run(
        f"{loads(0, ra, 10)} {loads(1, rb, 20)} {loads(2, 4, 30)}"
        f"mma.sync.aligned.m16n8k{k}.row.col.f32.{kind}.{kind}.f32 "
        f"{listed(40, 4)}, {listed(10, ra)}, {listed(20, rb)}, {listed(30, 4)};"
        f"{stores(3, 4, 40)}",
        *held,
        d,
    )
    assert np.array_equal(d, registers(a @ b + c, c_place, 4, "f32"))


def test_mma_with_float16_sums():
    a, b, c = whole(16, 16), whole(16, 8), whole(16, 8)
    held = [
        registers(a, lambda i, g, t: a_place(i, g, t, "f16", 16), 8, "f16"),
        registers(b, lambda i, g, t: b_place(i, g, t, "f16"), 4, "f16"),
        registers(c, c_place, 4, "f16"),
    ]
    d = np.zeros((32, 2), "u4")
    run(
        f"{loads(0, 4, 10)} {loads(1, 2, 20)} {loads(2, 2, 30)} mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
        f"{listed(40, 2)}, {listed(10, 4)}, {listed(20, 2)}, {listed(30, 2)}; {stores(3, 2, 40)}",
        *held,
        d,
    )
    assert np.array_equal(d, registers(a @ b + c, c_place, 4, "f16"))


def test_tf32_operands_are_cut_off():
    one = np.float32(1 + 2**-10 + 2**-11 + 2**-23)  # between two TF32 numbers, nearer to the upper
    a, b, c = np.zeros((32, 4), "f4"), np.zeros((32, 2), "f4"), np.zeros((32, 4), "f4")
    a[:, 0] = [one if inside == 0 else 0 for _, _, inside in LANES]  # the first column
    b[:, 0] = [1 if inside == 0 else 0 for _, _, inside in LANES]
    d = np.zeros((32, 4), "f4")
    run(
        f"{loads(0, 4, 10)} {loads(1, 2, 20)} {loads(2, 4, 30)} mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        f"{listed(40, 4)}, {listed(10, 4)}, {listed(20, 2)}, {listed(30, 4)}; {stores(3, 4, 40)}",
        a, b, c, d,
    )  # fmt: skip
    assert (d[:, :2] == np.float32(1 + 2**-10)).all()


def test_sums_are_cut_off_in_the_pessimistic_mode():
    a, b, c = np.zeros((32, 4), "u4"), np.zeros((32, 2), "u4"), np.full((32, 4), 1.0, "f4")
    small = int(bits(np.array(2.0**-24), "bf16")) | int(bits(np.array(2.0**-25), "bf16")) << 16
    a[:, 0] = [small if inside == 0 else 0 for _, _, inside in LANES]
    b[:, 0] = [0x3F803F80 if inside == 0 else 0 for _, _, inside in LANES]
    exact, cut = np.zeros((32, 4), "f4"), np.zeros((32, 4), "f4")
    body = (
        f"{loads(0, 4, 10)} {loads(1, 2, 20)} {loads(2, 4, 30)} mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        f"{listed(40, 4)}, {listed(10, 4)}, {listed(20, 2)}, {listed(30, 4)}; {stores(3, 4, 40)}"
    )
    run(body, a, b, c, exact)
    run(body, a, b, c, cut, pessimistic=True)
    assert (exact[:, :2] == np.float32(1 + 2**-23)).all()  # 1 + 1.5 * 2^-24, to nearest
    assert (cut[:, :2] == 1).all()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix(count, trans):
    tiles = RNG.integers(0, 2**16, (count, 8, 8)).astype("u2")
    order = RNG.permutation(8 * count)  # row i of all rows lies at place order[i]
    memory = np.zeros((32, 8), "u2")
    memory[order] = tiles.reshape(-1, 8)
    address = np.zeros(32, "u4")
    address[: 8 * count] = 16 * order
    d = np.zeros((32, count), "u4")
    run(
        f"{at(0, 16, 1)} ld.global.v4.b32 {listed(1, 4)}, [%rd1]; mad.lo.u32 %r5, %t, 16, smem;"
        f"st.shared.v4.b32 [%r5], {listed(1, 4)}; bar.sync 0; {at(1, 4, 2)} ld.global.b32 %r6, [%rd2];"
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {listed(10, count)}, [%r6]; {stores(2, count, 10)}",
        memory, address, d, shared=512,
    )  # fmt: skip
    for lane, group, inside in LANES:
        for i in range(count):
            tile = tiles[i].T if trans else tiles[i]
            assert d[lane, i] == int(tile[group, 2 * inside]) | int(tile[group, 2 * inside + 1]) << 16


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix(count, trans):
    tiles = RNG.integers(0, 2**16, (count, 8, 8)).astype("u2")
    held = np.zeros((32, count), "u4")
    for lane, group, inside in LANES:
        for i in range(count):
            tile = tiles[i].T if trans else tiles[i]
            held[lane, i] = int(tile[group, 2 * inside]) | int(tile[group, 2 * inside + 1]) << 16
    memory = np.zeros((32, 8), "u2")
    run(
        f"{loads(0, count, 10)} mad.lo.u32 %r5, %t, 16, smem;"
        f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r5], {listed(10, count)}; bar.sync 0;"
        f"setp.lt.u32 %p1, %t, {8 * count}; {at(1, 16, 1)}"
        f"@%p1 ld.shared.v4.b32 {listed(30, 4)}, [%r5]; @%p1 st.global.v4.b32 [%rd1], {listed(30, 4)};",
        held, memory, shared=512,
    )  # fmt: skip
    assert np.array_equal(memory[: 8 * count], tiles.reshape(-1, 8))


# wgmma. Swizzle mode of a descriptor -> bits that are exchanged, pieces of 128 bits in a row of the pattern
PATTERN = {0: (0, 1), 1: (3, 8), 2: (2, 4), 3: (1, 2)}


def piece(m: int, k: int, mode: int, k_major: bool, leading: int, stride: int) -> tuple[int, int]:
    """(piece, position in it) of a 16-bit element; leading and stride in pieces. The canonical layouts, in pieces:

    K-major   ((8, n), 2) : ((row, stride), 1)                   none  ((8, n), 2) : ((1, stride), leading)
    MN-major  ((row, n), (8, k)) : ((1, leading), (row, stride))  none  ((1, n), (8, k)) : ((-, stride), (1, leading))
    """
    row = PATTERN[mode][1]
    if k_major:
        return m % 8 * row + m // 8 * stride + k // 8 * (leading if mode == 0 else 1), k % 8
    n = m // 8
    if mode == 0:
        return n * stride + k % 8 + k // 8 * leading, m % 8
    return n % row + n // row * leading + k % 8 * row + k // 8 * stride, m % 8


def swizzled(byte: int, mode: int) -> int:
    """Bits 4.. of an address are exchanged with their XOR with bits 7.., as many as the mode says."""
    many = PATTERN[mode][0]
    return byte ^ (byte >> 7 & (1 << many) - 1) << 4


def laid_out(matrix: np.ndarray, start: int, mode: int, k_major: bool, memory: np.ndarray) -> int:
    """Puts a matrix [size, 16] of bits into shared memory from byte `start` on -> its descriptor."""
    size = len(matrix)
    row = PATTERN[mode][1]
    if k_major:
        leading, stride = (8 * size // 8, 8) if mode == 0 else (1, 8 * row)
    else:
        leading, stride = (size, 8) if mode == 0 else (16 * row, 8 * row)
    for m in range(size):
        for k in range(16):
            where, inside = piece(m, k, mode, k_major, leading, stride)
            memory[(swizzled(start + 16 * where, mode) >> 1) + inside] = matrix[m, k]
    return start >> 4 | leading << 16 | stride << 32 | mode << 62


@pytest.mark.parametrize("k_major", [True, False], ids=["K-major", "MN-major"])
@pytest.mark.parametrize("mode", PATTERN, ids=["no swizzle", "128 bytes", "64 bytes", "32 bytes"])
@pytest.mark.parametrize(("n", "a_in_registers"), [(8, True), (64, True), (64, False), (128, False)])
def test_wgmma(n, a_in_registers, mode, k_major):
    if not k_major and n * 2 < 16 * PATTERN[mode][1]:
        n = 8 * PATTERN[mode][1]  # one row of the pattern at least
    a, b, c = whole(64, 16), whole(16, n), whole(64, n)
    memory = np.zeros(16384, "u2")
    b_at = laid_out(bits(b.T, "bf16").astype("u2"), 8192, mode, k_major, memory)
    a_at = laid_out(bits(a, "bf16").astype("u2"), 0, mode, k_major, memory) if not a_in_registers else 0
    held, sums = np.zeros((128, 4), "u4"), np.zeros((128, n // 2), "f4")
    expected = np.zeros((128, n // 2), "f4")
    for warp in range(4):
        rows = slice(16 * warp, 16 * warp + 16)
        lanes = slice(32 * warp, 32 * warp + 32)
        held[lanes] = registers(a[rows], lambda i, g, t: a_place(i, g, t, "bf16", 16), 8, "bf16")
        for lane, group, inside in LANES:
            for i in range(n // 2):  # d_i: row groupID + 8 if i % 4 >= 2, column 8 (i / 4) + 2 in_group + i % 2
                place = 16 * warp + group + (8 if i % 4 >= 2 else 0), i // 4 * 8 + 2 * inside + i % 2
                sums[32 * warp + lane, i], expected[32 * warp + lane, i] = c[place], (a @ b + c)[place]
    left = listed(1, 4) if a_in_registers else "%rd40"
    turns = f"{int(not k_major)}" if a_in_registers else f"{int(not k_major)}, {int(not k_major)}"
    d = np.zeros((128, n // 2), "f4")
    run(
        f"{copied(128)} {loads(1, 4, 1)} {loads(2, n // 2, 100)} mov.b64 %rd40, {a_at}; mov.b64 %rd41, {b_at};"
        "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned; mov.pred %p1, -1;"
        f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {listed(100, n // 2)}, {left}, %rd41,"
        f"%p1, 1, 1, {turns};"
        f"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; {stores(3, n // 2, 100)}",
        memory, held, sums, d, threads=128, shared=32768,
    )  # fmt: skip
    assert np.array_equal(d, expected)


def copied(threads: int) -> str:
    """Array 0, 32768 bytes, to shared memory."""
    lines = [at(0, 16, 1), "mad.lo.u32 %r190, %t, 16, smem;"]
    for i in range(32768 // 16 // threads):
        where = i * threads * 16
        lines += [f"ld.global.v4.b32 {listed(191, 4)}, [%rd1+{where}];"]
        lines += [f"st.shared.v4.b32 [%r190+{where}], {listed(191, 4)};"]
    return "\n".join(lines)
