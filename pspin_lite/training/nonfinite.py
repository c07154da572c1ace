"""When a loss or a gradient is not finite: which tensor was the first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..language_model import LanguageModel


class NonFinite(ArithmeticError):
    """Training met nan or inf, and stopped before the optimizer could spread it."""


def first(model: LanguageModel, tokens: Tensor, targets: Tensor) -> str | None:
    """The first tensor that is not finite: a parameter, an activation, or a gradient (as `backward` left them, the
    last layer's first)."""
    for name, parameter in model.named_parameters():
        if not parameter.isfinite().all():
            return f"parameter {name} ({_count(parameter)})"
    places: list[str] = []

    def look(name: str) -> Callable[[nn.Module, tuple, object], None]:
        def hook(module: nn.Module, inputs: tuple, outputs: object) -> None:
            values = outputs if isinstance(outputs, tuple) else (outputs,)
            for value in values:
                if isinstance(value, Tensor) and not places and not value.isfinite().all():
                    places.append(f"output of {name} ({_count(value)})")

        return hook

    hooks = [module.register_forward_hook(look(name)) for name, module in model.named_modules() if name]
    try:
        with torch.no_grad(), contextlib.suppress(ValueError):  # the model may notice by itself
            model.loss(tokens, targets)
    finally:
        for handle in hooks:
            handle.remove()
    if places:
        return places[0]
    for name, parameter in reversed(list(model.named_parameters())):
        if parameter.grad is not None and not parameter.grad.isfinite().all():
            return f"gradient of {name} ({_count(parameter.grad)})"
    return None


def _count(x: Tensor) -> str:
    return f"{int((~x.isfinite()).sum())} of {x.numel()} entries"
