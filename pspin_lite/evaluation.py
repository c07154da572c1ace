"""How good a model is on a split, and what state its attractors are in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from . import attractor, metrics
from .distributed import World
from .language_model import LanguageModel

TOGETHER = 4096  # tokens evaluated at once, if that is more than one window


class Stopped(Exception):
    """Evaluation was left halfway."""


@contextlib.contextmanager
def evaluating(model: LanguageModel) -> Iterator[None]:
    """Eval mode without gradients; the mode it was in afterwards."""
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(before)


def evaluate(
    model: LanguageModel,
    data,
    limit: int | None = None,
    world: World = World(),  # noqa: B008  frozen
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, float]:
    """Every token of a split once (or of `limit` windows spread over it), each seeing what precedes it in its window.

    -> what `metrics.score` gives, and the counts of tokens and bytes it is about.
    data: what `sequences.open` gives. stop: asked between windows; if it says so, Stopped is raised everywhere."""
    device = model.embedding.weight.device
    lengths = torch.from_numpy(data.tokenizer.byte_lengths).long()
    sums = torch.zeros(3, dtype=torch.float64)  # nats, tokens, bytes
    with evaluating(model):
        for i, (tokens, targets) in enumerate(_together(data.windows(limit))):
            if world.any(stop()):
                raise Stopped
            if i % world.size == world.rank:
                nats = model.loss(tokens.to(device), targets.to(device)).item() * targets.numel()
                sums += torch.tensor([nats, targets.numel(), lengths[targets].sum().item()], dtype=torch.float64)
    nats, tokens, size = world.sum(sums.to(world.device)).tolist()
    return metrics.score(nats, int(tokens), int(size)) | dict(tokens=int(tokens), bytes=int(size))


PLACES = 4  # in each window, in its second half


def by_context(model: LanguageModel, data, limit: int | None = None) -> dict[str, list[float]]:
    """What context is worth: the same targets, predicted from exactly 1, 2, 4, .. tokens up to half a window, cut off
    from everything before. Four targets in each of `limit` windows that are spread over the split.

    -> context: how many tokens, and nats: the mean over the targets."""
    device, T = model.embedding.weight.device, data.length
    pairs = [(tokens, targets) for tokens, targets in data.windows(limit) if tokens.shape[1] == T]
    tokens, targets = (torch.cat(found).to(device) for found in zip(*pairs, strict=True))  # [n,T]
    places = [T - 1 - i * (T // 2) // PLACES for i in range(PLACES)]
    contexts, nats = [2**i for i in range(T.bit_length()) if 2**i <= T // 2], []
    wanted = targets[:, places].flatten()
    with evaluating(model):
        for c in contexts:
            cut = torch.stack([tokens[:, p - c + 1 : p + 1] for p in places], 1).flatten(0, 1)  # [4n,c]
            last = torch.cat([model(piece)[:, -1].float() for piece in cut.split(max(1, 4096 // c))])
            nats.append(torch.nn.functional.cross_entropy(last, wanted).item())
    return dict(context=contexts, nats=nats)


def _together(windows: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    """Windows of equal length side by side: [b,t], [b,t]."""
    held: list[tuple[Tensor, Tensor]] = []
    for window in windows:
        if held and ((len(held) + 1) * window[0].numel() > TOGETHER or window[0].shape != held[0][0].shape):
            yield tuple(torch.cat(parts) for parts in zip(*held, strict=True))
            held = []
        held.append(window)
    if held:
        yield tuple(torch.cat(parts) for parts in zip(*held, strict=True))


def attractors(model: LanguageModel, tokens: Tensor, sample: int = 64) -> dict[str, list[float]]:
    """One number a layer; empty for a model without attractors. tokens: [B,T], what the model reads to be measured.

    radius     spectral radius of one step's Jacobian, the largest over `sample` tokens: below 1 the step contracts
    residual   relative change of the last of the K steps
    gradient_error   of the implicit gradient with K steps, relative to the one with both iterations converged
    zeros_ext, zeros_int   share of zeros in the weights as they are used
    gamma      mean |gamma|, at most 0.5"""
    inputs: list[Tensor] = []
    layers = [block.attractor for block in model.blocks if hasattr(block, "attractor")]
    if not layers:
        return {}
    hooks = [layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0])) for layer in layers]
    found: dict[str, list[float]] = {}
    try:
        with evaluating(model):
            model.hidden(tokens)
            for layer, x in zip(layers, inputs, strict=True):
                rows = x.flatten(0, -2)
                rows = rows[:: max(1, len(rows) // sample)][:sample]
                z, w_int, gamma = layer.w_ext(rows), layer.w_int.quantized(), layer.gamma()
                radius = attractor.spectral_radius(z, w_int, gamma, layer.cfg.micro_steps, iterations=24)
                changes = attractor.residuals(z, w_int, gamma, layer.cfg.micro_steps)
                values = dict(
                    radius=radius.max().item(),
                    residual=changes[-1].item() if len(changes) else 0.0,
                    gradient_error=gradient_error(z, w_int, gamma, layer.cfg.micro_steps),
                    zeros_ext=_zeros(layer.w_ext.quantized()),
                    zeros_int=_zeros(layer.w_int.quantized()),
                    gamma=gamma.abs().mean().item(),
                )
                for name, value in values.items():
                    found.setdefault(name, []).append(value)
    finally:
        for hook in hooks:
            hook.remove()
    return found


CONVERGED = 64  # steps that count as all of them


def gradient_error(z: Tensor, w_int: Tensor, gamma: Tensor, steps: int) -> float:
    """Of the gradient with respect to the drive, for one random direction a token."""
    z = z.detach().requires_grad_()
    cotangent = torch.randn(len(z), len(gamma), generator=torch.Generator().manual_seed(0)).to(z)
    with torch.enable_grad():
        gradients = [
            torch.autograd.grad(attractor.equilibrium(z, w_int, gamma, K, backend="torch"), z, cotangent)[0]
            for K in (steps, CONVERGED)
        ]
    return ((gradients[0] - gradients[1]).norm() / gradients[1].norm()).item()


def _zeros(weight: Tensor) -> float:
    return (weight == 0).float().mean().item()
