"""The paper's training recipe: AdamW (SGD to compare), which weights decay, the learning rate of each step, clipping.

A step is: set the gradients to zero, compute those of the loss, then `finish_step`. Whatever trains or times a step of
training goes through here.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .. import _checks as checks
from ..config import Config
from ..language_model import LanguageModel


def parameter_groups(model: LanguageModel) -> list[dict[str, Any]]:
    """For the optimizer. Paper silent on which weights decay: ours do in matrices (see `Config.decay_vectors`)."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    decay = model.cfg.weight_decay
    return [
        dict(params=matrices, weight_decay=decay),
        dict(params=vectors, weight_decay=decay if model.cfg.decay_vectors else 0.0),
    ]


def optimizer(model: LanguageModel) -> torch.optim.Optimizer:
    """As the model's configuration has it. Fused: one pass over the memory, on a CPU many times as fast as a loop over
    tensors. SGD has no momentum, and so no state; both shrink a weight that decays by rate * weight_decay."""
    groups, cfg = parameter_groups(model), model.cfg
    if cfg.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=cfg.lr, fused=True)
    return torch.optim.AdamW(groups, lr=cfg.lr, betas=cfg.betas, fused=True)


def learning_rate(cfg: Config, step: int) -> float:
    """The rate at a step, counted from 0: linear warm-up, plateau, cosine to lr * min_ratio at the last step.

    A run too short for both ends keeps their proportion and has no plateau. With a late_rate other than 1, everything
    from the middle of the run on is multiplied by it."""
    checks.whole("step", step, 0)
    shrink = min(1.0, cfg.steps / max(1, cfg.warmup + cfg.cooldown))
    warm, cool = round(cfg.warmup * shrink), round(cfg.cooldown * shrink)
    plateau = cfg.lr * (getattr(cfg, "late_rate", 1.0) if 2 * step >= cfg.steps else 1.0)
    if step < warm:
        return plateau * (step + 1) / warm
    if step < cfg.steps - cool or cool == 0:
        return plateau
    progress = min(1.0, (step + 1 - (cfg.steps - cool)) / cool)
    return plateau * (cfg.min_ratio + (1 - cfg.min_ratio) * (1 + math.cos(math.pi * progress)) / 2)


def gradient_norm(model: LanguageModel) -> Tensor:
    """The global norm of the gradients, before clipping: a scalar."""
    return torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])


def finish_step(model: LanguageModel, optimizer: torch.optim.Optimizer, rate: float, norm: Tensor) -> None:
    """From gradients to new parameters: clips gradients of global norm `norm`, a scalar, and takes the step at learning
    rate `rate`."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    torch.nn.utils.clip_grads_with_norm_(model.parameters(), model.cfg.clip, norm)
    optimizer.step()
