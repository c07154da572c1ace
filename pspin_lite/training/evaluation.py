"""How good a model is on a split, and what state its attractors are in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .. import attractor, fixed_points
from ..data.sequences import Packed
from ..language_model import LanguageModel
from . import metrics
from .distributed import World

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
    data: Packed,
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


def by_window(model: LanguageModel, data: Packed, limit: int | None = None) -> list[list[float]]:
    """The windows that `evaluate` reads, one by one: [number of the document it begins in, its nats, its bytes]."""
    device, lengths = model.embedding.weight.device, torch.from_numpy(data.tokenizer.byte_lengths).long()
    rows: list[list[float]] = []
    with evaluating(model):
        for tokens, targets in _together(data.windows(limit)):
            logits = model(tokens.to(device)).float().flatten(0, 1)
            nats = torch.nn.functional.cross_entropy(logits, targets.to(device).flatten(), reduction="none")
            columns = (nats.view(targets.shape).sum(1).tolist(), lengths[targets].sum(1).tolist())
            rows += [[n, size] for n, size in zip(*columns, strict=True)]
    return [[document, *row] for document, row in zip(data.documents_of_windows(limit), rows, strict=True)]


PLACES = 4  # in each window, in its second half


def by_context(model: LanguageModel, data: Packed, limit: int | None = None) -> dict[str, list[float]]:
    """What context is worth: the same targets, predicted from exactly 1, 2, 4, .. tokens up to half a window, cut off
    from everything before. Four targets in each of `limit` windows that are spread over the split.

    -> context: how many tokens, and nats: the mean over the targets."""
    device, T = model.embedding.weight.device, data.length
    pairs = [(tokens, targets) for tokens, targets in data.windows(limit) if tokens.shape[1] == T]
    tokens, targets = (x.to(device) for x in _joined(pairs))  # [n,T]
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
            yield _joined(held)
            held = []
        held.append(window)
    if held:
        yield _joined(held)


def _joined(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    tokens, targets = zip(*pairs, strict=True)
    return torch.cat(tokens), torch.cat(targets)


def attractors(model: LanguageModel, tokens: Tensor, sample: int = 64) -> dict[str, list[float]]:
    """One number per layer; empty for a model without attractors. tokens: [B,T], what the model reads to be measured.

    radius     spectral radius of one step's Jacobian, the largest over `sample` tokens: below 1 the step contracts
    residual   relative change of the last of the K steps
    gradient_error   of the implicit gradient with K steps, relative to the one with both iterations converged; for a
        single random direction in place of what a loss sends back, always the same
    zeros_ext, zeros_int   share of zeros in the weights as they are used
    gamma      mean |gamma|, at most 0.5"""
    result: dict[str, list[float]] = {}
    with evaluating(model):
        for module, layer in zip(
            fixed_points.attractors(model), fixed_points.layers(model, tokens, sample), strict=True
        ):
            K, gate = module.cfg.micro_steps, module.gate
            y = attractor.unrolled(*layer, K, gate)
            radius = fixed_points.spectral_radius(y, *layer, iterations=24, gate=gate)
            changes = fixed_points.residuals(*layer, K, gate)
            values = dict(
                radius=radius.max().item(),
                residual=changes[-1].item() if len(changes) else 0.0,
                gradient_error=fixed_points.gradient_error(*layer, K, gate=gate),
                zeros_ext=_zeros(module.w_ext.quantized()),
                zeros_int=_zeros(module.w_int.quantized()),
                gamma=layer.gamma.abs().mean().item(),
            )
            for name, value in values.items():
                result.setdefault(name, []).append(value)
    return result


def _zeros(weight: Tensor) -> float:
    return (weight == 0).float().mean().item()
