"""What notebooks 02 and 03 show of the compiled walk is so."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="Triton is published for Linux only")

import torch

from pspin_lite.lessons import compiled


@pytest.fixture(autouse=True)
def cache(monkeypatch, pytestconfig):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(pytestconfig.rootpath / "build" / "triton"))


def test_one_instruction_with_a_single_pair():
    """A[1, 2] B[2, 1] = C[1, 1]: thread 5 holds both factors, thread 4 the result."""
    a, b, expected = torch.zeros(32, 8), torch.zeros(32, 4), torch.zeros(32, 4)
    a[5, 0], b[5, 0], expected[4, 1] = 3, 5, 15
    assert torch.equal(compiled.mma(a, b), expected)


def test_a_product_by_one_instruction():
    A, B = torch.randint(-9, 10, (16, 16)).float(), torch.randint(-9, 10, (16, 8)).float()
    assert torch.equal(compiled.multiply(A, B), A @ B)


def test_the_walk_from_inside_and_without_its_barriers():
    result = compiled.look(T=64, d=32, C=32)
    counts = result["counts"]
    assert counts["least_read"] == 2 * 3 * 64 * 32 + 4 * 64 + 4 * 32**2, "as the notebook counts by hand"
    assert counts["written"] == 2 * 64 * 32 + 4 * 32**2
    triton, *ptx = result["listing"].splitlines()
    assert triton.startswith("before = tl.dot(q, h")
    for opcode in ("bar.sync", "st.shared", "ldmatrix", "mma.sync", "mul.f32"):
        assert any(opcode in row for row in ptx), opcode
    assert f"{result['barrier']} bar.sync" in result["listing"]
    assert result["races"][result["barrier"]].startswith("race: ")
    silent = [number for number, text in result["races"].items() if text == ""]
    assert len(silent) == 2, "notebook 03 says so"
    assert silent == result["unchanged"], "and that without either the outputs are identical"


def test_the_walk_executed_and_counted():
    for C, repeated in ((32, {1: 1, 2: 1, 4: 2, 8: 4}), (64, {1: 1, 2: 1, 4: 1, 8: 2})):  # the table of notebook 02
        result, T, d = compiled.run(T=2 * C, d=C, C=C), 2 * C, C
        assert result["error"] < 1e-2
        counts, read = result["counts"], 2 * 3 * T * d + 4 * d * d + 4 * T
        for count in counts.values():  # as the notebook counts by hand
            assert (count["least_read"], count["written"]) == (read, 2 * T * d + 4 * d * d)
        flops = 2 * 4 * 2 * C**3
        assert {warps: count["tensor"]["bf16"] / flops for warps, count in counts.items()} == repeated
        requested = max(count["asked"]["read"] for count in counts.values())
        assert C == 64 or round(requested / read, 1) == 2.8, "notebook 02 says so"


def test_resources_of_the_walk():
    (row,) = compiled.resources(d=12, chunks=(16,), warps=4)
    assert row["chip"] == "sm_80"
    assert row["tensor"] > 0
    assert row["spills"] == row["stack"] == 0, "a small block fits"
