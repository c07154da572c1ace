"""The gated state space: each form against the next, values and every gradient."""

from __future__ import annotations

import math

import pytest
import torch
from helpers import DECAYS, SHAPES, assert_same, error, message, ssm_inputs, with_grads
from hypothesis import given, settings
from hypothesis import strategies as st

from pspin_lite import _backends as backends
from pspin_lite.state_space import chunked, decay_mask, quadratic, recurrent


@pytest.mark.eq("ssm-state")
def test_recurrence_by_hand():
    # One number as state, a decay of one half, inputs 1, 0, 0, 1: the state goes 1, 0.5, 0.25, 1.125.
    one = torch.ones(1, 4, 1, 1)
    v = torch.tensor([1.0, 0, 0, 1]).view(1, 4, 1, 1)
    g = torch.full((1, 4, 1), math.log(0.5))
    o, state = recurrent(one, one, v, g)
    assert o.flatten().tolist() == pytest.approx([1, 0.5, 0.25, 1.125])
    assert state.item() == pytest.approx(1.125)
    # Read from the state that came in, decayed by the very first gate.
    o, _ = recurrent(one, one, 0 * v, g, state=torch.full((1, 1, 1, 1), 8.0))
    assert o.flatten().tolist() == pytest.approx([4, 2, 1, 0.5])


def test_rows_of_the_state_belong_to_keys():
    q, k, v, g, _ = ssm_inputs(1, 1, 1, 3)
    _, state = recurrent(q, k, v, g)
    assert torch.allclose(state[0, 0], torch.outer(k[0, 0, 0], v[0, 0, 0]))


@pytest.mark.eq("ssm-mask")
@pytest.mark.parametrize("decay", DECAYS)
def test_decay_mask_is_what_is_left_of_each_token(decay):
    g = ssm_inputs(1, 9, 1, 1, decay)[3][0, :, 0]
    M = decay_mask(g)
    for c in range(9):
        for j in range(9):
            expected = math.exp(math.fsum(g[j + 1 : c + 1].tolist())) if c >= j else 0.0
            assert M[c, j].item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.eq("ssm-intra")
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_quadratic_is_recurrent(shape, decay):
    inputs = ssm_inputs(*shape[:4], decay)[:4]
    expected = with_grads(lambda *x: recurrent(*x)[0], inputs)
    assert_same(with_grads(quadratic, inputs), expected, 1e-9)


@pytest.mark.eq("ssm-intra", "ssm-cross", "ssm-state", "ssm-mask")
@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_chunked_is_recurrent(shape, decay):
    *dims, chunk = shape
    inputs = ssm_inputs(*dims, decay)
    expected = with_grads(recurrent, inputs)
    assert_same(with_grads(lambda q, k, v, g, h: chunked(q, k, v, g, chunk, h), inputs), expected, 1e-9)


@settings(max_examples=40, deadline=None)
@given(
    dims=st.tuples(st.integers(1, 3), st.integers(1, 70), st.integers(1, 3), st.integers(1, 12)),
    chunk=st.integers(1, 80),
    decay=st.sampled_from(sorted(DECAYS)),
    seed=st.integers(0, 9),
)
def test_chunked_is_recurrent_on_any_shape(dims, chunk, decay, seed):
    inputs = ssm_inputs(*dims, decay, seed=seed)
    expected = with_grads(recurrent, inputs)
    assert_same(with_grads(lambda q, k, v, g, h: chunked(q, k, v, g, chunk, h), inputs), expected, 1e-9)


@pytest.mark.parametrize(("dims", "decay"), [((1, 2048, 2, 88), "learned"), ((1, 1024, 2, 68), "slow")])
def test_float32_keeps_its_digits(dims, decay):
    # Segment sums keep 5e-7 in the norm, at the paper's lengths and widths.
    exact = with_grads(lambda *x: chunked(*x[:4], 64, x[4]), ssm_inputs(*dims, decay))
    single = with_grads(lambda *x: chunked(*x[:4], 64, x[4]), ssm_inputs(*dims, decay, dtype=torch.float32))
    for name, value in exact.items():
        relative = ((single[name].double() - value).norm() / value.norm()).item()
        assert relative < 5e-7, f"{name}: {relative:.1e}"


@pytest.mark.parametrize("log_decay", [-5.0, -20.0, -40.0])
def test_gradient_of_strong_decay_is_no_noise(log_decay):
    # exp(-40) = 4e-18: the shorter formula, a difference of numbers of order one, has nothing right here in float32.
    inputs = ssm_inputs(1, 96, 1, 8)
    inputs[3] = torch.full_like(inputs[3], log_decay)
    exact = with_grads(recurrent, inputs)["gradient 3"]
    single = with_grads(lambda *x: chunked(*x[:4], 32, x[4]), [x.float() for x in inputs])["gradient 3"]
    assert error(single, exact) < 1e-5


@pytest.mark.parametrize("form", ["recurrent", "quadratic", "chunked"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("log_decay", [0.0, -1e-8, -1.0, -88.0, -104.0, -745.0, -1e4, -math.inf])
def test_no_decay_gives_inf_or_nan(form, dtype, log_decay):
    function = dict(recurrent=recurrent, quadratic=quadratic, chunked=lambda *x: chunked(*x, chunk=16))[form]
    inputs = ssm_inputs(1, 40, 1, 4, dtype=dtype)[:4]
    inputs[3] = torch.full_like(inputs[3], log_decay)
    for name, value in with_grads(function, inputs).items():
        assert value.isfinite().all(), name


@pytest.mark.parametrize("form", ["recurrent", "quadratic", "chunked"])
def test_minus_infinity_is_a_hard_reset(form):
    function = dict(
        recurrent=lambda *x: recurrent(*x)[0], quadratic=quadratic, chunked=lambda *x: chunked(*x, chunk=16)[0]
    )[form]
    q, k, v, g, _ = ssm_inputs(2, 50, 2, 6)
    g[:, 21] = -math.inf
    inputs = [x.requires_grad_() for x in (q, k, v, g)]
    o = function(*inputs)
    alone = function(*(x[:, 21:] for x in (q, k, v, g)))
    assert torch.allclose(o[:, 21:], alone, rtol=1e-12, atol=1e-13)
    grads = torch.autograd.grad(o[:, 21:].square().sum(), inputs)
    assert all((x[:, :21] == 0).all() for x in grads), "the past still matters"


@pytest.mark.parametrize("form", ["recurrent", "chunked"])
@settings(max_examples=25, deadline=None)
@given(T=st.integers(2, 60), cut=st.integers(1, 59), chunk=st.integers(1, 20), decay=st.sampled_from(sorted(DECAYS)))
def test_splitting_and_carrying_the_state_changes_nothing(form, T, cut, chunk, decay):
    cut = min(cut, T - 1)
    function = recurrent if form == "recurrent" else lambda q, k, v, g, state: chunked(q, k, v, g, chunk, state)

    def in_two(q, k, v, g, state):
        first, state = function(*(x[:, :cut] for x in (q, k, v, g)), state)
        second, state = function(*(x[:, cut:] for x in (q, k, v, g)), state)
        return torch.cat([first, second], 1), state

    inputs = ssm_inputs(2, T, 1, 3, decay)
    assert_same(with_grads(in_two, inputs), with_grads(function, inputs), 1e-9)


@pytest.mark.parametrize("form", ["recurrent", "quadratic", "chunked"])
def test_causal(form):
    function = dict(
        recurrent=lambda *x: recurrent(*x)[0], quadratic=quadratic, chunked=lambda *x: chunked(*x, chunk=16)[0]
    )[form]
    inputs = ssm_inputs(1, 50, 2, 4)[:4]
    before = function(*inputs)
    for t in (0, 15, 16, 37):
        for i in range(4):
            changed = [x.clone() for x in inputs]
            changed[i][:, t] = changed[i][:, t] * 2 - (1 if i == 3 else 0.5)
            after = function(*changed)
            assert torch.equal(after[:, :t], before[:, :t]), "the future leaks"
            expected_to_matter = t > 0 or i != 3  # nothing to forget before the first token
            assert torch.equal(after[:, t:], before[:, t:]) != expected_to_matter


def test_every_argument_matters():
    q, k, v, g, state = ssm_inputs(1, 30, 1, 4)
    o, _ = chunked(q, k, v, g, 8, state)
    assert not torch.allclose(o, chunked(q, k, v, g, 8)[0])
    assert torch.equal(chunked(q, k, v, g, 8)[0], chunked(q, k, v, g, 8, torch.zeros_like(state), backend="torch")[0])
    single = [x.float() for x in (q, k, v, g, state)]
    o8, o16 = (chunked(*single[:4], chunk, single[4])[0] for chunk in (8, 16))
    assert not torch.equal(o8, o16), "the chunk length changes the rounding"
    assert torch.allclose(o8, o16, atol=1e-5)
    long = ssm_inputs(1, 200, 1, 4, dtype=torch.float32)[:4]
    assert torch.equal(chunked(*long, chunk=None)[0], chunked(*long, chunk=64)[0])
    assert torch.equal(chunked(*long)[0], chunked(*long, chunk=128)[0])
    assert torch.equal(chunked(*long)[0], chunked(*long, chunk=64)[0]), "a CPU takes 128 as two of 64"


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 90, 2, 6, 40), (1, 96, 2, 5, 24), (1, 150, 2, 4, 128)], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)], ids=str)
def test_without_a_gradient_it_is_the_same(shape, decay, dtype, tolerance):
    *dims, chunk = shape
    inputs = ssm_inputs(*dims, decay, dtype=dtype)
    before = [x.clone() for x in inputs]
    for form in (lambda q, k, v, g, h: chunked(q, k, v, g, chunk, h), lambda q, k, v, g, h: chunked(q, k, v, g, None)):
        expected = form(*(x.clone().requires_grad_() for x in inputs))
        with torch.no_grad():
            results = [form(*inputs), form(*(x.clone().requires_grad_() for x in inputs))]
        results.append(form(*inputs))  # gradients are enabled, but nothing asks for one
        for result in results:
            for a, b in zip(result, expected, strict=True):
                assert (a.requires_grad, b.requires_grad) == (False, True)
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                assert (a - b).norm() <= tolerance * b.norm()
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True)), "an argument was written to"


@pytest.mark.parametrize(("T", "d"), [(2048, 88), (1024, 68)])
@pytest.mark.parametrize("chunk", [64, 128])
def test_without_a_gradient_float32_keeps_its_digits(T, d, chunk):
    inputs = ssm_inputs(1, T, 2, d)
    for single, exact in zip(
        chunked(*(x.float() for x in inputs[:4]), chunk, inputs[4].float()), recurrent(*inputs), strict=True
    ):
        assert ((single - exact).norm() / exact.norm()).item() < 5e-7


@pytest.mark.parametrize("asks", range(5))
def test_any_argument_may_ask_for_a_gradient(asks):
    inputs = ssm_inputs(1, 20, 1, 3)
    inputs[asks].requires_grad_()
    o, _ = chunked(*inputs[:4], 8, inputs[4])
    exact = torch.autograd.grad(recurrent(*inputs)[0].sin().sum(), inputs[asks])[0]
    assert error(torch.autograd.grad(o.sin().sum(), inputs[asks])[0], exact) < 1e-9


@pytest.mark.parametrize("function", [recurrent, lambda q, k, v, g, h: chunked(q, k, v, g, 3, h)])
def test_gradcheck(function):
    inputs = [x.requires_grad_() for x in ssm_inputs(1, 7, 1, 2)]
    torch.autograd.gradcheck(function, inputs)


def test_strided_inputs():
    q, k, v, g, state = ssm_inputs(2, 40, 3, 6)
    expected = chunked(q, k, v, g, 16, state)
    strided = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v, g)]
    assert not strided[0].is_contiguous()
    for a, b in zip(chunked(*strided, 16, state.mT.contiguous().mT), expected, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", [recurrent, chunked])
def test_half_precision_is_computed_in_float32(form, dtype):
    inputs = ssm_inputs(1, 100, 2, 8, dtype=dtype)[:4]
    o, state = form(*inputs)
    assert (o.dtype, state.dtype) == (dtype, torch.float32)
    exact, _ = form(*(x.double() for x in inputs))
    assert error(o, exact) < 2 * torch.finfo(dtype).eps, "only the result is rounded"


@pytest.mark.parametrize("form", [recurrent, lambda *x: (quadratic(*x),), chunked])
def test_autocast_does_not_lower_the_precision(form):
    inputs = ssm_inputs(1, 80, 2, 8, dtype=torch.float32)[:4]

    def under_autocast(*x):
        with torch.autocast("cpu", torch.bfloat16):
            return form(*x)[0]

    assert_same(with_grads(under_autocast, inputs), with_grads(lambda *x: form(*x)[0], inputs), 1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(q=torch.zeros(2, 3)), ["q", "[2, 3]", "[B, T, H, d]"]),
        (dict(q="text"), ["q", "str", "tensor"]),
        (dict(q=torch.zeros(1, 0, 2, 4)), ["q", "[1, 0, 2, 4]", "at least 1"]),
        (dict(q=torch.zeros(1, 6, 2, 4, dtype=torch.int64)), ["q", "int64", "floating"]),
        (dict(k=torch.zeros(1, 6, 2, 5)), ["k", "[1, 6, 2, 5]", "[1, 6, 2, 4]"]),
        (dict(v=torch.zeros(1, 5, 2, 4)), ["v", "[1, 5, 2, 4]", "[1, 6, 2, 4]"]),
        (dict(v=torch.zeros(1, 6, 2, 4).double()), ["v", "float64", "float32"]),
        (dict(g=torch.zeros(1, 6, 2, 4)), ["g", "[1, 6, 2, 4]", "[1, 6, 2]"]),
        (dict(g=torch.full((1, 6, 2), 0.5)), ["g", "0.5", "<= 0"]),
        (dict(g=torch.full((1, 6, 2), math.nan)), ["g", "nan", "<= 0"]),
        (dict(g=torch.zeros(1, 6, 2, dtype=torch.int64)), ["g", "int64"]),
        (dict(state=torch.zeros(1, 2, 4, 5)), ["state", "[1, 2, 4, 5]", "[1, 2, 4, 4]"]),
        (dict(state=torch.zeros(1, 2, 4, 4, dtype=torch.int32)), ["state", "int32", "floating"]),
        (dict(chunk=0), ["chunk", "0", ">= 1"]),
        (dict(chunk=1.5), ["chunk", "1.5", "integer"]),
        (dict(chunk=True), ["chunk", "True", "integer"]),
        (dict(backend="cuda"), ["backend", "cuda", "auto, torch, triton"]),
        (dict(backend="trition"), ["did you mean 'triton'"]),
    ],
    ids=str,
)
def test_bad_arguments_are_named(change, words):
    arguments = dict(q=torch.zeros(1, 6, 2, 4), k=torch.zeros(1, 6, 2, 4), v=torch.zeros(1, 6, 2, 4))
    arguments |= dict(g=torch.zeros(1, 6, 2)) | change
    with pytest.raises(ValueError) as raised:
        chunked(**arguments)
    assert all(word in message(raised) for word in words), message(raised)


def test_kernels_for_a_gpu_refuse_tensors_on_the_cpu(monkeypatch):
    monkeypatch.setattr(backends, "triton_mode", lambda: ("compiled", "for a made-up GPU"))
    q, k, v, g, _ = ssm_inputs(1, 3, 1, 4, dtype=torch.float32)
    with pytest.raises(ValueError) as raised:
        chunked(q, k, v, g, 16, backend="triton")
    for word in ("backend", "cpu", "GPU", "TRITON_INTERPRET"):
        assert word in message(raised)
    assert torch.equal(chunked(q, k, v, g)[0], chunked(q, k, v, g, backend="torch")[0])
