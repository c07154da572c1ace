"""Tables of `make bench` on whole models: a training step, a decoded token, early stopping once trained."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from ... import _fast_linear as fast_linear
from ... import attractor, costs, deploy, fixed_points
from ...config import Config, preset
from ...training import recipe
from ...training.train import train
from ...variants import build
from .. import measure
from .tables import both_ways, product, show


def steps(quick: bool) -> None:
    rows = [["", "s a step", "TFLOP", "rate"]]
    for name in ("byte-paper", "subword-paper"):
        cfg = preset(name)
        if quick:
            cfg = cfg.replace(width=64, heads=2, inner=64, vocab=256, context=128)
        model = build(cfg)
        optimizer = recipe.optimizer(model)
        tokens = torch.randint(cfg.vocab, (1, cfg.context + 1))
        matmul, matmul_flops = product(256 if quick else 4096)

        def step(model=model, optimizer=optimizer, tokens=tokens, cfg=cfg) -> None:
            optimizer.zero_grad()
            model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
            recipe.finish_step(model, optimizer, cfg.lr, recipe.gradient_norm(model))

        times = measure.Race(2)({"step": step, "matmul": matmul})
        flops = costs.flops(cfg, backward=True).total
        rate = flops / times["step"] / (matmul_flops / times["matmul"])
        rows.append([name, f"{times['step']:.2f}", f"{flops / 1e12:.2f}", f"{rate:.0%}"])
    show("A whole training step at batch 1 (loss, gradients, clipping, AdamW), rate of its products alone", rows)


def decoding(quick: bool) -> None:
    """Milliseconds a token at batch 1 after a prompt: as trained (float32), and loaded from the file of `export`."""
    names = [f"{kind}-{size}" for size in ("paper", "lite") for kind in ("byte", "subword", "transformer")]
    prompt, rounds = (16, 2) if quick else (512, 15)
    rows, times = [["", "float32 ms", "deployed ms", "ratio", "to the Transformer", "float32 MB", "file MB"]], {}
    for name in reversed(names):  # the Transformer of each size first: the others are compared with it
        cfg = preset(name)
        if quick and name.endswith("paper"):
            cfg = cfg.replace(vocab=256, inner=512, layers=2)
        calls, sizes = _decoders(cfg, prompt)
        times[name] = measure.Race(rounds)(calls)
        peer = times[f"transformer-{name.rpartition('-')[2]}"]["deployed"]
        seconds = times[name]
        cells = [f"{seconds['float32'] * 1e3:.2f}", f"{seconds['deployed'] * 1e3:.2f}"]
        ratios = [f"{seconds['float32'] / seconds['deployed']:.2f}", f"{peer / seconds['deployed']:.2f}"]
        rows.insert(1, [name, *cells, *ratios, *(f"{size / costs.MB:.2f}" for size in sizes)])
    products = "FBGEMM's products" if fast_linear.has_fbgemm() else "float32 products, for want of FBGEMM"
    show(
        f"A token at batch 1 after a prompt of {prompt}; deployed with {products}.\n"
        "ratio: float32 / deployed. To the Transformer: of the same size, both deployed. More is faster",
        rows,
    )


def _decoders(cfg: Config, prompt: int) -> tuple[dict, tuple[int, int]]:
    """A call that decodes one token for each form of a model, and the bytes of each."""
    model = build(cfg).eval()
    with tempfile.TemporaryDirectory() as folder:
        size = deploy.export(model, Path(folder) / "model.safetensors")
        loaded = deploy.load(Path(folder) / "model.safetensors")
    tokens = torch.randint(cfg.vocab, (1, prompt))
    calls = {}
    for name, form in (("float32", model), ("deployed", loaded)):
        _, state = form.prefill(tokens)
        calls[name] = lambda form=form, state=state: form.step(tokens[:, 0], state)
    return calls, (sum(4 * p.numel() for p in model.parameters()), size)


def early(quick: bool) -> None:
    train_steps, T = (3, 64) if quick else (1500, 512)
    cfg = preset("byte-lite").replace(steps=train_steps, context=T)
    with tempfile.TemporaryDirectory() as folder:
        run = train(cfg, folder, show=False, validate_every=train_steps, validate_tokens=T, final_tokens=T)
        losses = [record["loss"] for record in run.metrics("step")[-100:]]
        model, loss = run.model, sum(losses) / len(losses)
        tokens = next(run.data()["recent"].batches(batch=4))  # [4, T+1], not seen in training
    exact = _gradient(model, tokens, micro_steps=100)
    settings = {
        "fixed K = 5": {},
        "tol = 1e-2": dict(tol=1e-2),
        "tol = 1e-3": dict(tol=1e-3),
        "tol = 1e-4": dict(tol=1e-4),
    }
    step_calls = {name: (lambda change=change: _gradient(model, tokens, **change)) for name, change in settings.items()}
    step_times = measure.Race(2 if quick else 9)(step_calls)

    rows = [["", "gradient error", "steps a token, forward + backward, by layer", "attractor", "whole step"]]
    spin_times = dict.fromkeys(settings, 0.0)
    for layer in fixed_points.layers(model, tokens[:, :-1]):
        args = [x.detach().requires_grad_() for x in layer]
        upstream = torch.randn(len(layer.z), len(layer.gamma))
        calls = {
            name: both_ways(lambda *x, c=change: attractor.equilibrium(*x, 5, c.get("tol")), args, upstream)
            for name, change in settings.items()
        }
        for name, seconds in measure.Race(2 if quick else 9)(calls).items():
            spin_times[name] += seconds
    for name, change in settings.items():
        error = ((_gradient(model, tokens, **change) - exact).norm() / exact.norm()).item()
        reports = [block.attractor.report for block in model.blocks]
        used = ", ".join(f"{float(report.forward):.1f} + {float(report.backward):.1f}" for report in reports)
        speeds = [f"{times['fixed K = 5'] / times[name]:.2f}" for times in (spin_times, step_times)]
        rows.append([name, f"{error:.1e}", used, *speeds])
    show(
        f"Early stopping on byte-lite after {train_steps} steps at batch 1 (training loss {loss:.2f} nats a byte).\n"
        "Error: of the whole model's gradient, relative to K = 100. Speed: relative to K = 5, more is faster",
        rows,
    )


def _gradient(model: nn.Module, tokens: Tensor, **changes) -> Tensor:
    """The gradient of all parameters as one vector, with other settings for the attractors."""
    kept = [block.attractor.cfg for block in model.blocks]
    for block in model.blocks:
        block.attractor.cfg = block.attractor.cfg.replace(**changes)
    grads = torch.autograd.grad(model.loss(tokens[:, :-1], tokens[:, 1:]), list(model.parameters()))
    for block, cfg in zip(model.blocks, kept, strict=True):
        block.attractor.cfg = cfg
    return torch.cat([grad.flatten() for grad in grads])
