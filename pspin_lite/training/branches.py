"""Which parts of a network speak: how large each branch is, what share of the gradient and of a step each part of the
parameters has, and what the loss becomes when a branch is silenced.

A block adds two branches to the stream, which starts as the embedding: its mixer's (state space or attention) and its
MLP's (attractor, spin or SwiGLU).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..language_model import LanguageModel
from . import evaluation, recipe

NAMES = dict(mixer=("state_space", "attention", "mixer"), mlp=("attractor", "mlp"))  # in a block
PARTS = ("embedding", "mixer", "w_ext", "w_int", "gamma_param", "w_down", "mlp", "norm")


def branches(model: LanguageModel) -> dict[str, list[nn.Module]]:
    """The mixers and the MLPs, each from the first block to the last. A network without MLPs has mixers alone."""
    blocks = [dict(block.named_children()) for block in model.blocks]
    kinds = {
        kind: [block[name] for block in blocks for name in names if name in block] for kind, names in NAMES.items()
    }
    return {kind: modules for kind, modules in kinds.items() if modules}


def sizes(model: LanguageModel, tokens: Tensor) -> dict[str, list[float]]:
    """The root mean square of what each branch adds, by layer, and of the stream that enters each block and the last
    norm. tokens: [B,T]"""
    seen: dict[str, list[float]] = {}

    def note(kind: str) -> Callable[..., None]:
        return lambda module, inputs, output: seen.setdefault(kind, []).append(_rms(_features(output)))

    def enter(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.setdefault("stream", []).append(_rms(inputs[0]))

    hooks = [one.register_forward_hook(note(kind)) for kind, modules in branches(model).items() for one in modules]
    hooks += [one.register_forward_pre_hook(enter) for one in (*model.blocks, model.norm)]
    try:
        with evaluation.evaluating(model):
            model.hidden(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


@contextmanager
def silenced(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Within it, these branches add nothing."""

    def silence(module: nn.Module, inputs: object, output: Any) -> Any:
        return (0 * output[0], *output[1:]) if isinstance(output, tuple) else 0 * output

    hooks = [module.register_forward_hook(silence) for module in modules]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def without(model: LanguageModel, score: Callable[[], float]) -> dict[str, list[float]]:
    """What `score()` is with one branch silenced, by kind and layer, and last with all of that kind."""
    result: dict[str, list[float]] = {}
    for kind, modules in branches(model).items():
        result[kind] = []
        for silent in (*([module] for module in modules), modules):
            with silenced(silent):
                result[kind].append(score())
    return result


def part(name: str) -> str:
    """The part that a parameter belongs to, by its name in the model."""
    words = name.split(".")
    if words[0] == "embedding":
        return "embedding"
    if any(word.startswith("norm") for word in words):
        return "norm"
    for word in ("w_ext", "w_int", "gamma_param", "w_down"):
        if word in words:
            return word
    return "mixer" if words[2] in NAMES["mixer"] else "mlp"


def shares(
    model: LanguageModel, optimizer: torch.optim.Optimizer, rate: float, loss: Callable[[LanguageModel], Tensor]
) -> dict[str, dict[str, float]]:
    """gradient: each part's share of the squared norm of the loss's gradient. update: of the squared change that the
    next step of training would make. The step is taken by copies: model and optimizer stay as they are."""
    twin = copy.deepcopy(model)
    stepper = recipe.optimizer(twin)
    stepper.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    stepper.zero_grad()
    loss(twin).backward()
    gradient = {name: _square(p.grad) for name, p in twin.named_parameters() if p.grad is not None}
    recipe.finish_step(twin, stepper, rate, recipe.gradient_norm(twin))
    now = dict(twin.named_parameters())
    update = {name: _square(now[name] - p) for name, p in model.named_parameters()}
    return dict(gradient=_by_part(gradient), update=_by_part(update))


def _by_part(squares: dict[str, float]) -> dict[str, float]:
    total = sum(squares.values())
    sums = {one: sum(value for name, value in squares.items() if part(name) == one) for one in PARTS}
    return {one: value / total if total else 0.0 for one, value in sums.items() if value}


def _features(output: Tensor | tuple) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _rms(x: Tensor) -> float:
    return x.float().pow(2).mean().sqrt().item()


def _square(x: Tensor) -> float:
    return x.detach().double().pow(2).sum().item()
