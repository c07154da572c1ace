"""What later notebooks import is what the reader wrote in notebook 02."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("triton", reason="Triton is published for Linux only")

import torch

from pspin_lite import state_space
from pspin_lite.lessons import kernels as lesson_kernels
from pspin_lite.lessons.figures.kernels import relative_errors

# isort: split
import triton
import triton.language as tl

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "02_triton_forward.ipynb"


KERNELS = ("load_rows", "decay_mask", "decays", "within", "write", "output", "walk")


@pytest.mark.parametrize("name", KERNELS)
def test_functions_are_those_of_the_notebook(name):
    written = "\n".join(cell.source for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code")
    mine, written = (
        "".join(re.sub(r"  #.*", "", text).split())
        for text in (inspect.getsource(getattr(lesson_kernels, name).fn), written)
    )
    assert mine in written, "lines may break elsewhere, and comments differ; nothing else"


def test_forms_are_differentiated_in_either_layout():
    q, k, v, do = torch.randn(4, 2, 5, 3, dtype=torch.float64)
    g, (h, dh) = -torch.rand(2, 5, dtype=torch.float64), torch.randn(2, 2, 3, 3, dtype=torch.float64)
    function = lesson_kernels.heads_first(state_space.recurrent)
    both = lesson_kernels.differentiate(function, (q, k, v, g, h), do, dh)
    one = lesson_kernels.differentiate(function, (q[1], k[1], v[1], g[1], h[1]), do[1], dh[1])
    lesson_kernels.compare_all("one head", one, {name: x[1] for name, x in both.items()}, 1e-12)
    assert torch.allclose(both["dq"][0, 0], g[0, 0].exp() * h[0] @ do[0, 0] + k[0, 0] * (v[0, 0] @ do[0, 0]))
    with pytest.raises(AssertionError, match="dg is off"):
        lesson_kernels.compare_all("a slip", both | {"dg": 1.001 * both["dg"]}, both)


def test_sums_stay_right_where_the_shortcut_does_not():
    def shortcut(q, k, dq, dk):
        return (q * dq - k * dk).sum(-1).flip(0).cumsum(0).flip(0)

    samples = lesson_kernels.decay_gradients(shortcut, (0.5, 20, torch.inf))
    errors = relative_errors({strength: samples[strength] for strength in (0.5, 20)})
    rounded, single, sums = errors.values()
    assert 1e-4 < rounded[0.5] < 0.1
    assert single[0.5] < 1e-4
    assert min(rounded[20], single[20]) > 1
    assert max(sums.values()) < 1e-5
    assert [bool((dg == 0).all()) for dg in samples[torch.inf][1].values()] == [False, False, True], "at resets"


def test_the_gradients_of_any_gates():
    """Equal gates are the special case; a reset among weak decays, in one head, is a shortcut's noise and our zero."""

    def shortcut(q, k, dq, dk):
        return (q * dq - k * dk).sum(-1).flip(0).cumsum(0).flip(0)

    equal = lesson_kernels.gate_gradients(shortcut, torch.full((64,), -4.0))
    assert torch.equal(equal[0], lesson_kernels.decay_gradients(shortcut, (4,))[4][0])
    g = -torch.rand(20, generator=torch.Generator().manual_seed(0))
    g[7] = -torch.inf
    reference, methods = lesson_kernels.gate_gradients(shortcut, g)
    assert reference[7] == methods["sums (ours), float32"][7] == 0
    assert 0 < methods["shortcut, ∂q and ∂k in bfloat16"][7].abs() < 0.1 * reference.abs().max()


@triton.jit
def weighted_rows(block, C: tl.constexpr):
    return tl.sum(block * tl.arange(0, C)[None, :], 1)


def test_a_function_runs_on_a_block_by_itself():
    block = torch.arange(16.0).view(4, 4)
    assert torch.equal(lesson_kernels.run_on_block(weighted_rows, block), block @ torch.arange(4.0))
    assert torch.equal(lesson_kernels.run_on_block(weighted_rows, block.T), block.T @ torch.arange(4.0))


def test_operands_are_tried(capsys):
    tensors = {"q": torch.ones(2), "k": torch.zeros(2)}
    for guess in (None, ("q", "k"), ("k", "q")):
        lesson_kernels.compare_operands(guess, tensors, lambda a, b, c: (c * (a - b),), [2], torch.full((2,), 2.0))
    said = capsys.readouterr().out.splitlines()
    assert [line[:2] for line in said] == ["no", "ye", "no"]
    assert said[2].endswith("4.0")
