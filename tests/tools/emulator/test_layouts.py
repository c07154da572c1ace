"""Which lane holds which element: mma, ldmatrix and stmatrix, from hand-written PTX.

Expectations are written element by element, see fragments.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from fragments import EACH, LANES, RNG, a_place, b_place, bits, c_place, listed, loads, registers, stores, whole
from handwritten import at, run

KINDS = [("f16", 16), ("bf16", 16), ("f16", 8), ("bf16", 8), ("tf32", 8), ("tf32", 4)]
KINDS += [("s8", 32), ("s8", 16), ("u8", 32), ("u8", 16)]


@pytest.mark.parametrize(("kind", "k"), KINDS)
def test_mma(kind, k):
    """Numbers are whole, so that the pessimistic mode changes nothing: it does not cut off integers."""
    a, b, c = whole(16, k, kind=kind), whole(k, 8, kind=kind), whole(16, 8)
    a_count, b_count, each = 16 * k // 32, 8 * k // 32, EACH.get(kind, 1)
    out = "s32" if kind in ("s8", "u8") else "f32"
    c += 2**25 + 1 if out == "s32" else 0
    held = [
        registers(a, lambda i, g, t: a_place(i, g, t, kind, k), a_count, kind),
        registers(b, lambda i, g, t: b_place(i, g, t, kind), b_count, kind),
        registers(c, c_place, 4, out),
    ]
    d = np.zeros((32, 4), "u4")
    ra, rb = a_count // each, b_count // each
    run(
        f"{loads(0, ra, 10)} {loads(1, rb, 20)} {loads(2, 4, 30)}"
        f"mma.sync.aligned.m16n8k{k}.row.col.{out}.{kind}.{kind}.{out} "
        f"{listed(40, 4)}, {listed(10, ra)}, {listed(20, rb)}, {listed(30, 4)};"
        f"{stores(3, 4, 40)}",
        *held,
        d,
        pessimistic=True,
    )
    assert np.array_equal(d, registers(a @ b + c, c_place, 4, out))


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
