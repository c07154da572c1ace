"""minimal.py, the specification: the recurrence it stands for, the paper's letters, and the package held against it."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import error
from torch.nn import functional as F

import pspin_lite as ps
from pspin_lite import minimal

SIZE = dict(width=16, heads=2, layers=2, spins=20)


def pair(vocab: int = 256, chunk: int = 8, steps: int = 5, **changes):
    """A model of the package and the minimal one with its weights, in float64, every vector away from its start."""
    cfg = ps.preset("byte-lite").replace(
        width=16, heads=2, layers=2, inner=20, vocab=vocab, chunk=chunk, micro_steps=steps
    )
    torch.manual_seed(3)
    model = ps.build(cfg.replace(gain=2.0, gamma_start=0.8, **changes)).double()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(len(p))).double() * 0.3)
    specification = minimal.PSpin(vocab, **SIZE, steps=steps, chunk=chunk).double()
    specification.load_state_dict(model.state_dict())
    return model, specification


def some_tokens(B: int, T: int, vocab: int = 256, seed: int = 0):
    return torch.randint(vocab, (B, T), generator=torch.Generator().manual_seed(seed))


@pytest.mark.eq("alg-byte", "alg-subword", "rmsnorm", "ssm-qkv", "ssm-gate", "ssm-out")
@pytest.mark.eq("spin-drive", "spin-gamma", "spin-out", "head", "loss", "neumann", "spin-grad", "spin-slopes")
@pytest.mark.parametrize(("B", "T"), [(2, 24), (1, 19), (3, 1)])
@pytest.mark.parametrize("vocab", [256, 8192], ids=["bytes", "subwords"])
def test_the_package_computes_what_the_specification_says(vocab, B, T):
    """Logits, loss, and the gradient of every parameter; at lengths that are no multiple of the chunk, too."""
    model, specification = pair(vocab)
    tokens, targets = some_tokens(B, T, vocab), some_tokens(B, T, vocab, seed=1)
    assert error(model(tokens), specification(tokens)[0]) < 1e-10
    losses = [one.loss(tokens, targets) for one in (model, specification)]
    assert error(*losses) < 1e-12
    for loss in losses:
        loss.backward()
    expected = dict(specification.named_parameters())
    for name, p in model.named_parameters():
        assert error(p.grad, expected[name].grad) < 1e-9, name


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_other_numbers_of_steps(steps):
    model, specification = pair(steps=steps)
    tokens = some_tokens(2, 12)
    for one in (model, specification):
        one.loss(tokens[:, :-1], tokens[:, 1:]).backward()
    expected = dict(specification.named_parameters())
    for name, p in model.named_parameters():
        if p.grad is None:  # K = 0: couplings and damping play no part
            assert steps == 0
            assert not expected[name].grad.any()
        else:
            assert error(p.grad, expected[name].grad) < 1e-9, name


@pytest.mark.eq("ssm-state", "ssm-mask", "ssm-intra", "ssm-cross")
@pytest.mark.parametrize("chunk", [1, 3, 50])
def test_chunks_are_the_recurrence(chunk):
    """h_t = exp(g_t) h_{t-1} + k_t^T v_t, o_t = q_t h_t, written out token by token."""
    torch.manual_seed(0)
    layer = minimal.StateSpace(12, 3, chunk).double()
    x, h = torch.randn(2, 10, 12).double(), torch.randn(2, 3, 4, 4).double()
    out, end = layer(x, h)
    q, k, v, gate = (w(x).view(2, 10, 3, 4) for w in (layer.w_q, layer.w_k, layer.w_v, layer.w_g))
    g = -torch.log(1 + gate.exp()).mean(-1)
    rows = []
    for t in range(10):
        h = g[:, t].exp()[..., None, None] * h + k[:, t, :, :, None] * v[:, t, :, None, :]
        rows.append(torch.einsum("bhk,bhkv->bhv", q[:, t] / math.sqrt(4), h).flatten(1))
    assert error(out, layer.w_o(torch.stack(rows, 1))) < 1e-12
    assert error(end, h) < 1e-12


@pytest.mark.eq("ternary-scale", "ternary-round", "spin-split", "spin-output", "spin-field")
def test_by_hand():
    w = torch.tensor([[0.9, -0.2], [0.1, -1.2]], requires_grad=True)  # mean |w| = 0.6
    rounded = minimal.ternary(w)
    assert rounded.tolist() == [[pytest.approx(0.6), 0], [0, pytest.approx(-0.6)]]
    assert torch.autograd.grad(rounded.sum(), w)[0].tolist() == [[1, 1], [1, 1]], "straight through"
    z, w, gamma = torch.tensor([[1.0, 0.5]]), torch.tensor([[0.6], [-0.6]]), torch.tensor([0.5])
    y0 = math.tanh(1) / (1 + math.exp(-0.5))
    y1 = math.tanh(1 + 0.3 * y0) / (1 + math.exp(-0.5 + 0.3 * y0))
    assert minimal.Equilibrium.apply(z, w, gamma, 0).item() == pytest.approx(y0)
    assert minimal.Equilibrium.apply(z, w, gamma, 1).item() == pytest.approx(y1)


def test_its_gradient_is_that_of_the_fixed_point():
    """Plain autograd through many steps knows nothing of implicit functions."""
    torch.manual_seed(0)
    inputs = [x.double().requires_grad_() for x in (torch.randn(3, 5, 8), 0.4 * torch.randn(8, 4), torch.rand(4) / 2)]
    z, w, gamma = inputs
    y = minimal.spin(z)
    for _ in range(80):
        y = minimal.spin(z + (gamma * y) @ w.T)
    weights = torch.randn(y.shape).double()
    expected = torch.autograd.grad((weights * y).sum(), inputs)
    implicit = torch.autograd.grad((weights * minimal.Equilibrium.apply(*inputs, 80)).sum(), inputs)
    for a, b in zip(implicit, expected, strict=True):
        assert error(a, b) < 1e-9


def test_decoding_carries_all_it_needs():
    _, specification = pair()
    tokens = some_tokens(1, 13)
    whole = specification(tokens)[0]
    state = None
    for t in range(13):
        logits, state = specification(tokens[:, t : t + 1], state)
        assert error(logits[:, 0], whole[:, t]) < 1e-10


def test_it_writes_what_the_package_writes():
    """The likeliest token each time: temperature towards 0 in one, argmax in the other."""
    model, specification = pair()
    prompt = some_tokens(1, 9)[0]
    ours = list(ps.generate(model, prompt, 12, temperature=0))
    assert list(specification.generate(prompt, 12, temperature=1e-6)) == ours


def test_the_papers_sizes():
    for sizes, count in ((minimal.BYTE, 60_963_008), (minimal.SUBWORD, 57_719_072)):
        with torch.device("meta"):
            assert sum(p.numel() for p in minimal.PSpin(**sizes).parameters()) == count


def test_it_learns():
    torch.manual_seed(0)
    model = minimal.PSpin(16, width=16, layers=1, heads=2, spins=16, chunk=8)
    tokens = torch.arange(33).remainder(7)[None]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(16), rel=0.05)
    assert losses[-1] < 0.2
    assert F.one_hot(torch.tensor(list(model.generate(tokens[0, :9], 5, 1e-6)))).argmax(-1).tolist() == [2, 3, 4, 5, 6]


def test_it_is_one_short_file_that_needs_torch_alone():
    source = Path(minimal.__file__).read_text(encoding="utf-8")
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(source))
        for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)])
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported - set(sys.stdlib_module_names) == {"torch"}
    assert len(source.splitlines()) <= 165
    alone = (
        "import importlib.util as u, sys; s = u.spec_from_file_location('m', sys.argv[1]); m = u.module_from_spec(s)"
    )
    alone += "; s.loader.exec_module(m); m.PSpin(256, 16, 1, 2, 16); print('pspin_lite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", alone, minimal.__file__], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
