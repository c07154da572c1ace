"""Drawings of the backward pass carry the numbers they explain."""

from __future__ import annotations

import numpy as np
import torch

from pspin_lite import state_space
from pspin_lite.lessons.figures import draw_backward as draw
from pspin_lite.tools.emulator import tensor_cores


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_operands_give_the_gradients_that_are_drawn():
    """In one chunk, where the state does not matter."""
    figure, uses = draw.four_uses()
    tensors = dict(zip(("q", "k", "v", "do"), torch.randn(4, 6, 3, dtype=torch.float64), strict=True))
    inputs = [tensors[name].clone().requires_grad_() for name in "qkv"]
    g = -torch.rand(6, dtype=torch.float64)
    o = state_space.quadratic(*(x[None, :, None] for x in (*inputs, g)))[0, :, 0]
    expected = dict(zip(("dq", "dk", "dv"), torch.autograd.grad((o * tensors["do"]).sum(), inputs), strict=True))
    M = state_space.decay_mask(g)
    for result, (*operands, _) in uses.items():
        q, k, v = (tensors[name] for name in operands)
        mine = (q @ k.T * (M.T if result in draw.BACKWARDS else M)) @ v
        assert torch.allclose(mine, (expected | {"o": o})[result]), result
    assert texts(figure).count(draw.TENSORS["do"][0]) == 3


def test_paths_across_a_gate():
    _, counts = draw.gate_flows(6, 4)
    paths = [(j, i) for j in range(8) for i in range(8) if j < 4 <= i]  # 0 and 7: the neighbouring chunks
    kinds = {(before, beyond): 0 for before in (False, True) for beyond in (False, True)}
    for j, i in paths:
        kinds[j == 0, i == 7] += 1
    assert [counts[word] for word, _ in draw.PATHS] == [kinds[way] for way in draw.PATHS.values()]


def test_sums_are_what_passes():
    flow = np.tril(np.arange(1.0, 17).reshape(4, 4))
    figure, numbers = draw.gate_sums(flow)
    assert numbers["dg"].tolist() == [flow[t:, :t].sum() for t in range(4)]
    assert f"{numbers['dg'][2]:g}" in texts(figure)


def test_threads_hold_what_is_drawn():
    """As the emulator has it, whose layouts are tested from hand-written PTX."""
    figure, owners = draw.tensor_core(thread=5)
    lanes = np.arange(32, dtype=np.float32)[None].view(np.uint32)
    pairs = (lanes >> 16) * 0x10001  # two bfloat16 numbers: small whole ones are exact
    assert (owners["A"] == tensor_cores.matrix_a([pairs] * 4, "bf16", (1, 1))[0, 0]).all()
    assert (owners["B"] == tensor_cores.matrix_b([pairs] * 2, "bf16", (1, 1))[0, 0]).all()
    assert (owners["C"] == tensor_cores.matrix_c([lanes] * 4, "f32", (1, 1))[0, 0]).all()
    dark = [text.get_text() for text in figure.axes[0].texts if text.get_weight() == "bold"]
    assert dark.count("5") == 8 + 4 + 4, "its numbers of A, B and the result"
    assert texts(figure).count("15") == 4 + 2 + 2 + 4, "boxes of thread 15; the last rows, and A's last column"
