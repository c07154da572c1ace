"""Bytes and flops of PyTorch's operations, against numbers counted by hand."""

from __future__ import annotations

import pytest
import torch

from pspin_lite.attractor import equilibrium
from pspin_lite.tools.emulator.counters import RATES
from pspin_lite.tools.kernels import executed_record
from pspin_lite.tools.kernels.operations import Operations
from pspin_lite.tools.kernels.report import SHAPES


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).bfloat16()


@pytest.mark.parametrize(
    ("what", "numbers"),
    [
        (lambda x, y, w, c: x + y, 3 * 12),
        (lambda x, y, w, c: x.add_(y), 3 * 12),
        (lambda x, y, w, c: x.copy_(y), 2 * 12),
        (lambda x, y, w, c: x.zero_(), 12),
        (lambda x, y, w, c: x * x, 2 * 12),
        (lambda x, y, w, c: torch.mul(x, y, out=torch.empty_like(x)), 3 * 12),
        (lambda x, y, w, c: x @ w, 12 + 20 + 15),
        (lambda x, y, w, c: torch.addmm(c, x, w), 5 + 12 + 20 + 15),
        (lambda x, y, w, c: x[:, :2].T, 0),
        (lambda x, y, w, c: x[:, :2].tanh(), 2 * 6),
        (lambda x, y, w, c: c[:1].expand(3, 4).tanh(), 1 + 12),
    ],
    ids=["sum", "in place", "copy", "zero", "square", "out", "product", "addmm", "view", "part", "repeated"],
)
def test_bytes_by_hand(what, numbers):
    arguments = drawn(3, 4), drawn(3, 4), drawn(4, 5), drawn(5)
    with Operations("sm_80") as operations:
        what(*arguments)
    assert operations.bytes == 2 * numbers
    assert operations.count == (numbers > 0)


def test_seconds_by_hand():
    """A wide product takes as long as its flops, a sum as long as its bytes."""
    x, rates = torch.empty(4096, 4096, dtype=torch.bfloat16, device="meta"), RATES["sm_90"]
    with Operations("sm_90") as operations:
        x @ x
    assert operations.flops == 2 * 4096**3
    assert operations.seconds == pytest.approx(2 * 4096**3 / rates.tensor["bf16"])
    with Operations("sm_90") as operations:
        x + x.T
    assert operations.seconds == pytest.approx(3 * 2 * 4096**2 / rates.memory)


def test_a_step_of_the_attractor_is_what_notebook_07_counts():
    """14 arrays of spins, the couplings and gamma; in the backward pass V, the slopes and dH in place of the field."""
    n, D = 6, 8
    inputs = [x.requires_grad_() for x in (drawn(n, 2 * D), drawn(2 * D, D), drawn(D))]
    bytes_ = {}
    for steps in (1, 2):
        with Operations("sm_80") as forward:
            y = equilibrium(*inputs, steps, backend="torch")
        with Operations("sm_80") as backward:
            torch.autograd.grad(y, inputs, drawn(n, D))
        bytes_[steps] = forward.bytes, backward.bytes
    one_step = [after - before for before, after in zip(*bytes_.values(), strict=True)]
    # V phi_u and V phi_a: 3 arrays each. The product: 2 + 1, and the couplings. gamma: 2. dy: 3.
    assert one_step == [2 * (14 * n * D + 2 * D * D + D), 2 * (14 * n * D + 2 * D * D + D)]


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_are_those_that_notebook_07_counts(shape):
    """Its formula, with our tiles and 16-bit numbers: a start, five steps, and what the last one leaves for backward.
    Within a per cent: several lanes ask for the same gamma and scale."""
    kernels = pytest.importorskip("pspin_kernels.attractor", reason="Triton is published for Linux only")
    n, D = SHAPES[shape]["T"], SHAPES[shape]["Dint"]
    tile = kernels.tiles(n, torch.bfloat16)
    rows, cols = -(-n // tile["BM"]), -(-D // tile["BN"])
    read = 2 * ((cols + 2) * n * D + rows * cols * (D + 1)) + rows * 2 * D * D // 4
    expected = 5 * (read + 2 * n * D) + 2 * 2 * n * D + 3 * 2 * n * D
    known = {(row["what"], row["chip"], row["shape"]): row for row in executed_record.load()["attractor"]}
    for chip in RATES:
        assert known["fused", chip, shape]["forward"]["requested"] == pytest.approx(expected, rel=0.01)
