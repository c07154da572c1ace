"""Which backend serves a call, also where Triton cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch

from pspin_lite import _backends as backends

ON_A_GPU = SimpleNamespace(is_cuda=True, dtype=torch.float32, device="cuda:0")


@pytest.fixture(autouse=True)
def asked_anew():
    backends._compiles.cache_clear()
    yield
    backends._compiles.cache_clear()


@pytest.fixture
def gpu(monkeypatch):
    """As if there were one."""
    monkeypatch.setattr(backends, "triton_mode", lambda: ("compiled", "for a GPU"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def test_auto_takes_triton_on_a_gpu(gpu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backends.choose("auto", ON_A_GPU) == "triton"
        assert backends.choose("auto", torch.zeros(1)) == "torch"


@pytest.mark.fault(19)
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "pspin_lite._backends.triton_mode",
            lambda: ("absent", "the package triton is not installed"),
            "not installed",
        ),
        ("torch.cuda.get_device_capability", lambda: (7, 5), "compute capability 7.5, and Triton needs 8.0"),
        ("shutil.which", lambda name: None, "needs a C compiler"),
    ],
)
def test_falls_back_with_one_warning(gpu, monkeypatch, name, value, words):
    monkeypatch.setattr(name, value)
    with pytest.warns(UserWarning, match=words) as caught:
        assert [backends.choose("auto", ON_A_GPU) for _ in range(3)] == ["torch"] * 3
    assert len(caught) == 1


ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "triton":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "triton" else real(name, *more)
import torch, pspin_lite as ps
model = ps.build(ps.preset("byte-smoke"))
tokens = torch.zeros(1, 9, dtype=torch.long)
model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
try:
    ps.state_space.chunked(*(torch.zeros(1, 2, 1, 2) for _ in range(3)), torch.zeros(1, 2, 1), backend="triton")
except ValueError as error:
    print(error)
"""


@pytest.mark.fault(19)
def test_without_triton():
    result = subprocess.run([sys.executable, "-W", "error", "-c", ABSENT], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "backend: got 'triton', expected 'auto' or 'torch' on this machine" in result.stdout
