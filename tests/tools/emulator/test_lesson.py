"""What notebook 03 shows of the compiled kernel is so."""

from __future__ import annotations

import pytest
import torch

from pspin_lite.tools.emulator import lesson


def test_one_instruction_with_a_single_pair():
    """A[1, 2] B[2, 1] = C[1, 1]: thread 5 holds both factors, thread 4 the result."""
    a, b, expected = torch.zeros(32, 8), torch.zeros(32, 4), torch.zeros(32, 4)
    a[5, 0], b[5, 0], expected[4, 1] = 3, 5, 15
    assert torch.equal(lesson.mma(a, b), expected)


def test_the_kernel_executed_counted_and_without_its_barriers(monkeypatch, pytestconfig):
    pytest.importorskip("triton", reason="Triton is published for Linux only")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(pytestconfig.rootpath / "build" / "triton"))
    result = lesson.run(T=64, d=32, chunk=32)
    assert result["error"] < 1e-2
    for triton, ptx in (("q_r = load_heads(", "ldmatrix.sync"), ("o = multiply(q_r", "mma.sync"), ("tl.exp(", "ex2")):
        assert triton in result["listing"]
        assert ptx in result["listing"].partition(triton)[2]
    message = result["races"][result["barrier"]]
    assert f"{result['barrier']} bar.sync" in result["listing"]
    assert message.startswith("race: ")
    assert "chunk.py:" in message
    assert "chunk_walk.py:" in message
    assert sum(text == "" for text in result["races"].values()) == 1, "notebook 03 says so"
    counts = result["counts"]
    assert round(counts["tensor"]["bf16"] / 655_360, 1) == 3.6, "notebook 03 says so"
    assert counts["read"] - 45_056 == 5_120, "notebook 03 says so"
