"""Ternary weights: rounding, straight-through gradients, packing to two bits and back."""

from __future__ import annotations

import pickle

import pytest
import torch
from helpers import message
from hypothesis import given, settings
from hypothesis import strategies as st

from pspin_lite.ternary import TernaryLinear, pack, quantize, ste, unpack


@pytest.mark.eq("ternary-scale", "ternary-round")
def test_by_hand():
    w = torch.tensor([[0.3, -0.1], [2.0, -1.6]])  # mean |w| = 1: nothing above one half survives but the signs
    codes, scale = quantize(w)
    assert scale.item() == pytest.approx(1.0)
    assert codes.tolist() == [[0, 0], [1, -1]]
    assert codes.dtype == torch.int8
    assert ste(w).tolist() == [[0, 0], [1, -1]]


@pytest.mark.eq("ternary-scale")
def test_scale_is_the_mean_of_magnitudes_with_a_floor():
    w = torch.randn(50, 30, generator=torch.Generator().manual_seed(0))
    assert quantize(w)[1].item() == pytest.approx(w.abs().mean().item())
    codes, scale = quantize(torch.zeros(3, 3))
    assert scale.item() == pytest.approx(1e-5)
    assert not codes.any()


@pytest.mark.eq("ternary-round")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_value_is_exactly_ternary_and_gradient_goes_straight_through(dtype):
    w = torch.randn(64, 48, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
    q = ste(w)
    codes, scale = quantize(w)
    assert torch.equal(q, codes.to(dtype) * scale)
    assert set(q.unique().tolist()) == {-scale.item(), 0.0, scale.item()}
    upstream = torch.randn_like(q)
    q.backward(upstream)
    assert torch.equal(w.grad, upstream)


@settings(max_examples=60, deadline=None)
@given(shape=st.lists(st.integers(1, 9), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_packing_round_trip(shape, seed):
    codes = torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(seed)).to(torch.int8)
    packed = pack(codes)
    assert packed.dtype == torch.uint8
    assert packed.shape == (*shape[:-1], -(-shape[-1] // 4))
    assert torch.equal(unpack(packed, tuple(shape)), codes)


def test_packing_by_hand():
    # 00 is -1, 01 is 0, 10 is 1; the first of four in the lowest bits; a partly used byte is filled with zeros.
    assert pack(torch.tensor([1, 0, -1, 1])).tolist() == [0b10_00_01_10]
    assert pack(torch.tensor([-1])).tolist() == [0b01_01_01_00]


def test_linear_computes_with_ternary_weights_and_trains_in_full_precision():
    torch.manual_seed(0)
    layer = TernaryLinear(6, 5)
    x = torch.randn(3, 6)
    codes, scale = quantize(layer.weight)
    assert torch.allclose(layer(x), x @ (codes.float() * scale).T)
    layer(x).sum().backward()
    assert torch.allclose(layer.weight.grad, x.sum(0).expand(5, 6)), "the gradient reaches the full-precision weight"
    assert layer.bias is None


def test_kept_weight_follows_every_change():
    torch.manual_seed(0)
    layer = TernaryLinear(6, 5).eval()
    x = torch.randn(3, 6)

    def fresh():
        return torch.equal(layer(x), x @ ste(layer.weight).T)

    assert layer.quantized() is not layer.quantized(), "with gradients each call has its own graph"
    with torch.no_grad():
        assert layer.quantized() is layer.quantized(), "without them it is quantised once"
        assert fresh()
    layer(x).square().sum().backward()
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    with torch.no_grad():
        assert fresh()
        layer.load_state_dict({"weight": torch.randn(5, 6)})
        assert fresh()
        layer.weight.mul_(-1)
        assert fresh()
        for _ in range(30):  # the allocator likes to give out the same address again
            layer.weight = torch.nn.Parameter(torch.randn(5, 6))
            assert fresh()
            layer.weight.data = torch.randn(5, 6)
            layer.weight.data = torch.randn(5, 6)
            assert fresh()
        other = {"weight": torch.randn(5, 6)}
        assert torch.equal(torch.func.functional_call(layer, other, (x,)), x @ ste(other["weight"]).T)
        assert fresh()


def test_kept_weight_is_left_behind():
    torch.manual_seed(0)
    layer, x = TernaryLinear(6, 5).eval(), torch.randn(3, 6)
    for change in (
        layer.train,
        layer.double,
        lambda: layer.load_state_dict(pickle.loads(pickle.dumps(layer)).state_dict()),
    ):
        with torch.no_grad():
            layer.eval()(x.to(layer.weight.dtype))
        assert layer._kept is not None
        change()
        assert change != layer.train or layer._kept is None
        assert pickle.loads(pickle.dumps(layer))._kept is None
    layer.train()
    with torch.no_grad():
        assert layer.quantized() is not layer.quantized(), "while training nothing is kept"


def test_export_is_what_was_computed():
    torch.manual_seed(0)
    layer = TernaryLinear(7, 5)
    packed, scale = layer.packed()
    assert packed.shape == (5, 2)
    with torch.no_grad():
        assert torch.equal(unpack(packed, (5, 7)) * scale, layer.quantized())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quantize(torch.ones(3, dtype=torch.int64)), ["w", "int64", "floating"]),
        (lambda: quantize(torch.ones(0)), ["w", "[0]", "at least one"]),
        (lambda: ste([1.0]), ["w", "list"]),
        (lambda: quantize(torch.tensor([1.0, float("nan")])), ["w", "nan"]),
        (lambda: pack(torch.tensor([0.5])), ["codes", "float32", "integer"]),
        (lambda: pack(torch.tensor([0, 2])), ["codes", "2", "-1, 0 and 1"]),
        (lambda: unpack(torch.zeros(3, dtype=torch.int8), (12,)), ["packed", "int8", "uint8"]),
        (lambda: unpack(torch.zeros(3, dtype=torch.uint8), (13,)), ["packed", "[3]", "[13]"]),
        (lambda: unpack(torch.full((1,), 255, dtype=torch.uint8), (4,)), ["packed", "11"]),
    ],
)
def test_bad_arguments_are_named(call, words):
    with pytest.raises(ValueError) as raised:
        call()
    assert all(word in message(raised) for word in words), message(raised)
