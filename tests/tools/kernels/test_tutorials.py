"""The runner for Triton's tutorials, on a file of ours: they are not in this repository."""

from __future__ import annotations

import pytest

from pspin_lite.tools.kernels import tutorials

TUTORIAL = '''"""Words."""
import torch

import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def kernel(x, y, out, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + i, tl.load(x + i, mask=i < n) + FACTOR * tl.load(y + i, mask=i < n), mask=i < n)


def add(x, y):
    assert x.device == DEVICE
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
    return out


@triton.testing.perf_report(triton.testing.Benchmark())
def benchmark():
    raise RuntimeError("there is no GPU to be timed")


x = torch.rand(10, device="cuda")
'''


@pytest.mark.parametrize(("factor", "failed"), [("1", 0), ("1.01", 1)])
def test_kernels_run_and_the_rest_does_not(tmp_path, monkeypatch, capsys, factor, failed):
    pytest.importorskip("triton", reason="Triton is published for Linux only")
    (tmp_path / "01-vector-add.py").write_text(TUTORIAL.replace("FACTOR", factor), encoding="utf-8")
    monkeypatch.setattr(tutorials, "TUTORIALS", {"01-vector-add.py": tutorials.vector_sum})
    monkeypatch.setattr(tutorials, "CHIPS", ("sm_80",))
    monkeypatch.setattr(tutorials, "LIMITS", dict(float32=1e-6))
    assert tutorials.main(str(tmp_path)) == failed
    printed = capsys.readouterr().out
    assert "| `01-vector-add.py` | sum | " in printed
    assert f"{failed} above their limits" in printed
