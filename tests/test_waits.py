"""The host does not wait for the device: never in the model or around the kernels, once in a step of training and once
for each token that is drawn.

A GPU works through a queue. A question for a value (.item(), bool(), .tolist(), .cpu(), nonzero) waits until the queue
is empty, and afterwards the GPU waits for the host. Here the device is torch's `meta`, whose tensors have no values, so
that every question raises; only those that some test expects are answered, and counted.
"""

from __future__ import annotations

import contextlib
import traceback

import faulty
import pytest
import torch
from torch.optim import optimizer as optimizers
from torch.utils._python_dispatch import TorchDispatchMode

import pspin_lite as ps
from pspin_lite import _backends as backends
from pspin_lite import generation
from pspin_lite.training import distributed, loop, recipe

META = torch.device("meta")
aten = torch.ops.aten


class Waits(TorchDispatchMode):
    """Answers every question for a value by ones, and remembers which function of ours asked."""

    def __init__(self):
        super().__init__()
        self.asked: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        on_device = bool(args) and isinstance(args[0], torch.Tensor) and args[0].device == META
        if on_device and function is aten._local_scalar_dense.default:
            return self.answer(1.0 if args[0].is_floating_point() else 1)
        if on_device and function is aten._to_copy.default and torch.device(kwargs.get("device") or META) != META:
            return self.answer(torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype))
        return function(*args, **kwargs)

    def answer(self, value):
        ours = [frame.name for frame in traceback.extract_stack() if frame.filename.startswith(ps.__path__[0])]
        self.asked.append(ours[-1] if ours else "a test")
        return value


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """meta has no autocast and no fused optimizer."""
    monkeypatch.setattr(torch, "autocast", lambda *args, **kwargs: contextlib.nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)
    monkeypatch.setattr(optimizers, "_get_fused_kernels_supported_devices", lambda: ["meta", "cpu"])


@pytest.fixture(params=["torch", "triton"])
def launches(request, monkeypatch):
    """Which backend "auto" takes. A kernel computes nothing here, but everything around it is done."""
    result: list = []
    if request.param == "triton":
        pytest.importorskip("triton", reason="Triton is published for Linux only")
        from pspin_kernels.ternary import product_kernel

        monkeypatch.setattr(type(product_kernel), "run", lambda kernel, *args, **more: result.append(kernel.__name__))
        monkeypatch.setattr(backends, "choose", lambda backend, x: "torch" if backend == "torch" else "triton")
    yield result
    assert bool(result) == (request.param == "triton")


def small(**changes) -> ps.PSpinConfig:
    return faulty.cfg(**changes)


def token_ids(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64, device=META)


def gradients(cfg) -> list[str]:
    """Who waits during a loss and its backward pass."""
    model = ps.build(cfg).to(META)
    with Waits() as waits:
        model.loss(token_ids(2, 64), token_ids(2, 64)).backward()
    return waits.asked


@pytest.mark.parametrize("changes", [{}, dict(micro_steps=0), dict(implicit=False)], ids=str)
def test_a_loss_and_its_gradients_wait_for_nothing(changes, launches):
    assert gradients(small(**changes)) == []


def test_nor_do_those_of_the_transformer():
    assert gradients(ps.preset("transformer-smoke")) == []


@pytest.mark.parametrize("launches", ["triton"], indirect=True)
def test_a_tolerance_costs_the_kernels_no_wait(launches):
    assert gradients(small(tol=1e-3)) == []
    assert "settle_kernel" in launches


@pytest.fixture
def trainer(tmp_path, texts, monkeypatch):
    """cfg -> the trainer of a run that has not begun, its model and optimizer on the device."""
    monkeypatch.setattr(loop.Trainer, "go", lambda self: self)

    def make(cfg) -> loop.Trainer:
        result = ps.train(cfg, tmp_path / "run", corpus=str(texts), **faulty.SETTINGS)
        result.device, result.model = META, result.model.to(META)
        result.parallel = result.loss = distributed.parallel(result.model, result.world)
        result.optimizer = recipe.optimizer(result.model)
        return result

    return make


def test_a_step_of_training_waits_once(trainer, launches):
    one = trainer(small())
    for _ in range(2):  # the first makes the optimizer's moments
        with Waits() as waits:
            one.one_step(next(one.batches))
        assert waits.asked == ["one_step"]


@pytest.mark.parametrize("launches", ["triton"], indirect=True)
def test_with_a_tolerance_the_steps_are_read_too(trainer, launches):
    one = trainer(small(tol=1e-3))
    with Waits() as waits:
        one.one_step(next(one.batches))
    assert waits.asked == ["one_step", "attractor_steps"]


def test_a_token_is_decoded_without_a_wait_and_drawn_with_one(launches):
    model = ps.build(small()).to(META).eval()
    with Waits() as waits:
        _, state = model.prefill(token_ids(1, 64))
        for _ in range(2):
            _, state = model.step(token_ids(1), state)
    assert waits.asked == []
    with Waits() as waits:
        assert len([*generation.generate(model, [1, 2], 4, top_k=3, top_p=0.9, seed=0)]) == 4
    assert waits.asked == ["choose"] * 4


@pytest.mark.parametrize(
    "question",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: bool((x > 0).all()),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.equal(x, x),
        lambda x: torch.zeros(3).copy_(x),
    ],
    ids=["item", "tolist", "bool", "cpu", "nonzero", "mask", "equal", "copy"],
)
def test_a_question_is_noticed(question):
    x = torch.ones(3, device=META)
    with Waits() as waits, contextlib.suppress(NotImplementedError):
        question(x)
        assert waits.asked == ["a test"]
        return
    assert waits.asked == []
    with pytest.raises(NotImplementedError):  # what nobody may ask
        question(x)
