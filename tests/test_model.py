"""The whole network and its baseline: the paper's algorithms, loss, decoding, causality, what each setting does."""

from __future__ import annotations

import math

import pytest
import torch
from helpers import error, message
from torch.nn import functional as F

import pspin_lite as ps
from pspin_lite.attractor import equilibrium
from pspin_lite.loss import linear_cross_entropy
from pspin_lite.tools import measure
from pspin_lite.training import recipe

SMALL = dict(width=16, heads=2, layers=2, inner=20)
TINY_TRANSFORMER = dict(width=16, heads=4, kv_heads=2, head_width=6, layers=2, inner=20, vocab=50)


def small(**changes):
    cfg = ps.preset("byte-lite").replace(**SMALL, **changes)
    torch.manual_seed(3)
    return ps.build(cfg).double()


def tiny_transformer(**changes):
    torch.manual_seed(3)
    return ps.build(ps.preset("transformer-lite").replace(**TINY_TRANSFORMER | changes)).double()


def some_tokens(B, T, vocab=50, seed=0):
    return torch.randint(vocab, (B, T), generator=torch.Generator().manual_seed(seed))


BOTH = pytest.mark.parametrize("make", [small, tiny_transformer])


@BOTH
@pytest.mark.eq("loss")
def test_loss_is_cross_entropy_of_the_logits(make):
    tokens, targets = some_tokens(3, 19), some_tokens(3, 19, seed=1)
    grads = {}
    for way in ("ours", "plain"):
        model = make()
        if way == "ours":
            loss = model.loss(tokens, targets)
        else:
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        grads[way] = {"loss": loss.detach()} | {name: p.grad for name, p in model.named_parameters()}
    for name, expected in grads["plain"].items():
        assert error(grads["ours"][name], expected) < 1e-10, name


def test_first_loss_is_that_of_a_blind_guess():
    for name in ("byte-lite", "subword-lite", "transformer-lite"):
        torch.manual_seed(0)
        cfg = ps.preset(name)
        tokens = some_tokens(2, 65, cfg.vocab)
        assert ps.build(cfg).loss(tokens[:, :-1], tokens[:, 1:]).item() == pytest.approx(math.log(cfg.vocab), rel=0.03)


@pytest.mark.eq("loss")
def test_pieces_of_the_loss(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    x, w = torch.randn(37, 8, generator=rng), torch.randn(100, 8, generator=rng)
    targets = torch.randint(100, (37,), generator=rng)
    for piece in (1, 700, 10**6):  # one row, seven rows with a remainder, all at once
        monkeypatch.setattr("pspin_lite.loss.PIECE", piece)
        a, b = (t.clone().double().requires_grad_() for t in (x, w))
        (3 * linear_cross_entropy(a, b, targets)).backward(retain_graph=True)
        c, d = (t.clone().double().requires_grad_() for t in (x, w))
        loss = 3 * F.cross_entropy(c @ d.T, targets)
        loss.backward()
        assert error(a.grad, c.grad) < 1e-12
        assert error(b.grad, d.grad) < 1e-12
    ours = linear_cross_entropy(a, b, targets)
    first = torch.autograd.grad(ours, (a, b), retain_graph=True)
    again = torch.autograd.grad(ours, (a, b))
    assert all(torch.equal(p, q) for p, q in zip(first, again, strict=True))
    assert not linear_cross_entropy(a.detach(), b.detach(), targets).requires_grad


def test_loss_without_gradients_computes_none():
    x, w = torch.randn(20, 8), torch.randn(100, 8, requires_grad=True)
    targets = torch.zeros(20, dtype=torch.long)
    training = measure.flops(lambda: linear_cross_entropy(x, w, targets))
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            assert measure.flops(lambda: linear_cross_entropy(x, w, targets)) * 2 == training


def test_loss_of_many_halves_does_not_overflow():
    x, w = torch.zeros(20_000, 4).half(), torch.zeros(300, 4).half()
    assert linear_cross_entropy(x, w, torch.zeros(20_000).long()).item() == pytest.approx(math.log(300), rel=1e-3)


@BOTH
def test_autocast(make):
    model, tokens = make().float(), some_tokens(2, 70)
    exact = model.loss(tokens[:, :-1], tokens[:, 1:])
    with torch.autocast("cpu", torch.bfloat16):
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
    assert loss.item() != exact.item()
    assert loss.item() == pytest.approx(exact.item(), rel=0.01)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_loss_is_stable_for_large_logits():
    x, w = torch.tensor([[1e4, -1e4]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert linear_cross_entropy(x, w, torch.tensor([0])).item() == 0
    assert linear_cross_entropy(x, w, torch.tensor([1])).item() == pytest.approx(2e4)


def test_loss_takes_under_a_third_of_the_plain_memory():
    # The paper's subword head: T = 1024, D = 544, |V| = 49152.
    x = torch.randn(1024, 544, requires_grad=True)
    w = torch.randn(49152, 544).mul_(0.02).requires_grad_()
    targets = some_tokens(1, 1024, 49152)[0]
    grads = {}

    def run(way):
        loss = linear_cross_entropy(x, w, targets) if way == "ours" else F.cross_entropy(x @ w.T, targets)
        grads[way] = (loss.detach(), *torch.autograd.grad(loss, (x, w)))

    plain, ours = measure.peak_bytes(lambda: run("plain")), measure.peak_bytes(lambda: run("ours"))
    assert ours < plain / 3, f"{ours / 1e6:.0f} MB against {plain / 1e6:.0f} MB"
    for a, b in zip(grads["ours"], grads["plain"], strict=True):
        assert error(a, b) < 1e-5


@BOTH
def test_decoding_agrees_with_forward(make):
    model, tokens = make(), some_tokens(2, 40)
    with torch.no_grad():
        expected = model(tokens)
        state = None
        for t in range(40):
            logits, state = model.step(tokens[:, t], state)
            assert error(logits, expected[:, t]) < 1e-9
        for cut in (1, 17, 39):  # a prompt read at once, in two pieces, then token by token
            _, state = model.prefill(tokens[:, :cut])
            logits, _ = model.prefill(tokens[:, cut:], state)
            assert error(logits, expected[:, -1]) < 1e-9


def test_decoding_costs_the_same_at_every_position():
    model = small()
    costs, sizes, state = [], [], None
    for t in range(60):
        token, before = torch.tensor([t]), state
        costs.append(measure.flops(lambda: model.step(token, before)))  # noqa: B023
        _, state = model.step(token, state)
        sizes.append(sum(h.numel() for h in state))
    assert len(set(costs)) == 1
    assert len(set(sizes)) == 1


@BOTH
def test_decoding_does_not_touch_the_state_it_was_given(make):
    model = make()
    _, state = model.prefill(some_tokens(1, 9))
    a, _ = model.step(torch.tensor([5]), state)
    b, _ = model.step(torch.tensor([5]), state)
    assert torch.equal(a, b)


@BOTH
def test_causal(make):
    model, tokens = make(), some_tokens(1, 30)
    changed = tokens.clone()
    changed[0, 20] = (changed[0, 20] + 1) % 50
    with torch.no_grad():
        a, b = model(tokens), model(changed)
    assert torch.allclose(a[:, :20], b[:, :20], rtol=0, atol=1e-14)
    assert (a[:, 20:] - b[:, 20:]).abs().amax(-1).min() > 1e-6


@BOTH
def test_sequences_of_a_batch_are_independent(make):
    model, tokens = make(), some_tokens(3, 21)
    with torch.no_grad():
        together = model(tokens)
        for i in range(3):
            assert error(model(tokens[i : i + 1]), together[i : i + 1]) < 1e-10


def test_early_stopping_is_causal_too():
    model, tokens = small(tol=1e-2, micro_steps=20, ternary_gain=4.0), some_tokens(1, 30)
    changed = tokens.clone()
    changed[0, 20:] = some_tokens(1, 10, seed=9)
    with torch.no_grad():
        a, b = model(tokens), model(changed)
    assert torch.allclose(a[:, :20], b[:, :20], rtol=0, atol=1e-13)
    assert 0 < model.blocks[0].attractor.report.forward < 20


def loss_and_gradient(**changes):
    model = small(**changes)
    tokens = some_tokens(1, 25)
    loss = model.loss(tokens[:, :-1], tokens[:, 1:])
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize(
    ("change", "value", "gradient"),
    [
        (dict(micro_steps=2), True, True),
        (dict(tol=0.3), True, True),
        (dict(implicit=False, micro_steps=1), True, True),
        (dict(gain=2.0), True, True),
        (dict(ternary_gain=2.0), True, True),
        (dict(gamma_start=1.0), True, True),
        (dict(chunk=7), False, False),
    ],
    ids=str,
)
def test_every_setting_matters(change, value, gradient):
    loss, grad = loss_and_gradient()
    other_loss, other_grad = loss_and_gradient(**change)
    assert (abs(loss - other_loss) > 1e-9) == value
    assert (len(grad) != len(other_grad) or error(other_grad, grad) > 1e-6) == gradient


def test_implicit_setting_changes_the_gradient_alone():
    (a, grad_a), (b, grad_b) = (loss_and_gradient(implicit=i, micro_steps=1, gamma_start=2.0) for i in (True, False))
    assert a == pytest.approx(b, rel=1e-12)
    assert error(grad_a, grad_b) > 1e-4


def test_weights_come_from_the_seed_alone():
    a, b = small(), small()
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_initial_scales():
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-lite").replace(gain=0.5, ternary_gain=3.0))
    block = model.blocks[0]
    assert block.state_space.w_q.weight.std().item() == pytest.approx(0.5 * 128**-0.5, rel=0.05)
    assert block.attractor.w_ext.weight.std().item() == pytest.approx(3 * 128**-0.5, rel=0.05)
    assert block.attractor.w_int.weight.std().item() == pytest.approx(3 * 224**-0.5, rel=0.05)
    assert model.embedding.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_a_few_steps_of_training_lower_the_loss():
    model = small()
    tokens = some_tokens(4, 33)
    optimizer = torch.optim.AdamW(recipe.parameter_groups(model), lr=3e-3)
    losses = []
    for _ in range(15):
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.3


def test_the_transformer_is_that_of_textbooks():
    """Written once more, plainly, for one sequence: rotary positions, normalised grouped queries, SwiGLU, tied head."""

    def rotate(x):  # (heads, T, d)
        T, d = x.shape[-2:]
        rates = 10_000.0 ** (-torch.arange(0, d, 2) / d)
        angles = torch.outer(torch.arange(T).double(), rates.double())
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

    def attention(x, layer, d):  # (T, D)
        q, k, v = (w(x).unflatten(-1, (-1, d)).transpose(0, 1) for w in (layer.w_q, layer.w_k, layer.w_v))
        q, k = rotate(layer.norm_q(q)), rotate(layer.norm_k(k))
        k, v = (one.repeat_interleave(len(q) // len(one), 0) for one in (k, v))
        o = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        return layer.w_o(o.transpose(0, 1).flatten(1))

    model, tokens = tiny_transformer(), torch.arange(9)
    x = model.embedding.weight[tokens[:-1]]
    for block in model.blocks:
        x = x + attention(block.norm_attention(x), block.attention, model.cfg.head_width)
        normed, mlp = block.norm_mlp(x), block.mlp
        x = x + mlp.w_down(mlp.w_up(normed) * F.silu(mlp.w_gate(normed)))
    mine = F.cross_entropy(model.norm(x) @ model.embedding.weight.T, tokens[1:])
    assert mine.item() == pytest.approx(model.loss(tokens[None, :-1], tokens[None, 1:]).item(), rel=1e-5)


def test_transformer_heads_share_keys_and_rotate():
    model = tiny_transformer()
    attention = model.blocks[0].attention
    assert attention.w_k.weight.shape == (2 * 6, 16)
    tokens = torch.full((1, 12), 7)
    with torch.no_grad():
        same_token = model(tokens)
        assert torch.allclose(same_token[:, 0], same_token[:, 11]), "equal values attend to the same thing"
        tokens[0, 3] = 8
        different = model(tokens)
        assert not torch.allclose(different[:, 5], different[:, 11]), "distance matters"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m(torch.tensor([[0, 256]])), ["tokens", "256", "0 to 255"]),
        (lambda m: m(torch.tensor([[-1]])), ["tokens", "-1"]),
        (lambda m: m(torch.tensor([0])), ["tokens", "[1]", "[B, T]"]),
        (lambda m: m(torch.zeros(1, 0, dtype=torch.long)), ["tokens", "[1, 0]"]),
        (lambda m: m(torch.zeros(1, 4)), ["tokens", "float32", "integer"]),
        (lambda m: m("abc"), ["tokens", "str"]),
        (lambda m: m.loss(torch.zeros(1, 4).long(), torch.zeros(1, 5).long()), ["targets", "[1, 5]", "[1, 4]"]),
        (lambda m: m.loss(torch.zeros(1, 4).long(), torch.full((1, 4), -100)), ["targets", "-100"]),
        (lambda m: m.step(torch.tensor([[1]])), ["token", "[1, 1]", "[B]"]),
        (lambda m: m.step(torch.tensor([1]), state=[]), ["state", "0", "2 layers"]),
        (lambda m: m.step(torch.tensor([1]), state=5), ["state", "int", "2 layers"]),
        (
            lambda m: tiny_transformer().step(torch.tensor([1, 2]), tiny_transformer().step(torch.tensor([1]))[1]),
            ["state", "batch of 1", "2"],
        ),
        (lambda m: m.step(torch.tensor([1, 2]), state=m.step(torch.tensor([1]))[1]), ["state", "[1, 2, 8, 8]"]),
        (lambda m: ps.build("byte-lite"), ["cfg", "str", "configuration"]),
    ],
)
def test_bad_arguments_are_named(call, words):
    with pytest.raises(ValueError) as raised:
        call(small())
    assert all(word in message(raised) for word in words), message(raised)


def test_integer_tokens_of_any_width():
    model = small()
    tokens = some_tokens(1, 5)
    assert torch.equal(model(tokens), model(tokens.to(torch.uint8)))


def test_attractor_module_is_the_function():
    model = small()
    layer = model.blocks[1].attractor
    x = torch.randn(2, 3, 16, dtype=torch.float64)
    z = x @ ps.ternary.ste(layer.w_ext.weight).T
    y = equilibrium(z, ps.ternary.ste(layer.w_int.weight), 0.5 * torch.tanh(layer.gamma_param), 5)
    assert error(layer(x), y @ layer.w_down.weight.T) < 1e-12
