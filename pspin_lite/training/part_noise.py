"""How noisy the gradient of each part of a network is, as Adam sees it, and how often a step of that part does harm.

Adam divides every entry of the gradient by the root of its mean square, so parts with small gradients take steps as
large as others. Measures over all parameters look at the embedding, which has nearly all of the squared norm. These
look at one part at a time (branches.part), and at all that is in an MLP together, first as the gradient comes and then
divided as Adam's next step would divide it.

share    of the squared norm of single sequences' gradients
scale    noise over signal, as in gradient_noise
tail     the largest norm of the sequences' gradients over the median one
rises    how often the next step at batch size 1, taken by this part alone, raises the loss on a fixed text
change   what it does to that loss on average, in nats per token
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from ..language_model import LanguageModel
from . import branches, recipe
from .gradient_noise import estimates

WHOLE = "whole MLP"
MLP = ("w_ext", "w_int", "gamma_param", "w_down", "mlp")  # the parts of it
STEPS = 16  # sequences with which a step is taken
Loss = Callable[[LanguageModel, Tensor], Tensor]  # of a [1,T+1] tensor


def measure(
    model: LanguageModel,
    optimizer: torch.optim.Optimizer,
    rate: float,
    batch: Tensor,
    loss: Loss,
    score: Callable[[LanguageModel], float],
) -> dict[str, dict[str, float]]:
    """Part -> its measures. batch: [n,T+1]; score: the loss on the fixed text. Model and optimizer stay as they are."""
    noise, harm = _noise(model, optimizer, batch, loss), _harm(model, optimizer, rate, batch[:STEPS], loss, score)
    return {part: noise[part] | harm[part] for part in noise}


def members(model: LanguageModel) -> dict[str, list[str]]:
    """Part -> the names of its parameters."""
    names: dict[str, list[str]] = {}
    for name, _ in model.named_parameters():
        part = branches.part(name)
        for one in (part, WHOLE) if part in MLP else (part,):
            names.setdefault(one, []).append(name)
    return names


def divisors(model: LanguageModel, optimizer: torch.optim.Optimizer) -> dict[str, Tensor | float]:
    """What Adam divides the gradient of each parameter by; 1 if there is no second moment yet."""
    names = {p: name for name, p in model.named_parameters()}
    result: dict[str, Tensor | float] = dict.fromkeys(names.values(), 1.0)
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            if "exp_avg_sq" in state:
                grown = 1 - group["betas"][1] ** float(state["step"])
                result[names[p]] = (state["exp_avg_sq"] / grown).sqrt() + group["eps"]
    return result


def _noise(model: LanguageModel, optimizer: torch.optim.Optimizer, batch: Tensor, loss: Loss) -> dict[str, dict]:
    parameters, scale, parts = dict(model.named_parameters()), divisors(model, optimizer), members(model)
    views: dict[str, dict] = {"": dict.fromkeys(parameters, 1.0), "adam_": scale}
    total = {view: {name: torch.zeros_like(p) for name, p in parameters.items()} for view in views}
    squares: dict[str, dict[str, list[float]]] = {view: {part: [] for part in parts} for view in views}
    for row in batch:
        gradients = torch.autograd.grad(loss(model, row[None]), list(parameters.values()), allow_unused=True)
        for view, by in views.items():
            each = {name: 0 * by[name] if g is None else g / by[name] for name, g in zip(parameters, gradients)}  # noqa: B905
            for name, g in each.items():
                total[view][name] += g
            sizes = {name: float(torch.as_tensor(g).double().pow(2).sum()) for name, g in each.items()}
            for part, names in parts.items():
                squares[view][part].append(sum(sizes[name] for name in names))
    return {part: _of_part(part, names, total, squares, len(batch)) for part, names in parts.items()}


def _of_part(part: str, names: list[str], total: dict, squares: dict, n: int) -> dict[str, float]:
    result: dict[str, float] = {}
    for view, by_part in squares.items():
        mean = sum((total[view][name].double() / n).pow(2).sum().item() for name in names)
        everything = sum(sum(values) for one, values in by_part.items() if one != WHOLE)
        norms = [value**0.5 for value in by_part[part]]
        result |= {
            f"{view}share": sum(by_part[part]) / everything if everything else 0.0,
            f"{view}scale": estimates(mean, statistics.mean(by_part[part]), n)["scale"],
            f"{view}tail": max(norms) / statistics.median(norms) if statistics.median(norms) else 0.0,
        }
    return result


def _harm(
    model: LanguageModel,
    optimizer: torch.optim.Optimizer,
    rate: float,
    batch: Tensor,
    loss: Loss,
    score: Callable[[LanguageModel], float],
) -> dict[str, dict]:
    parts, before = members(model), score(model)
    changes: dict[str, list[float]] = {part: [] for part in parts}
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    for row in batch:
        twin = copy.deepcopy(model)
        stepper = recipe.optimizer(twin)
        stepper.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        stepper.zero_grad()
        loss(twin, row[None]).backward()
        recipe.finish_step(twin, stepper, rate, recipe.gradient_norm(twin))
        after = {name: p.detach().clone() for name, p in twin.named_parameters()}
        for part, names in parts.items():
            twin.load_state_dict(start | {name: after[name] for name in names})
            changes[part].append(score(twin) - before)
    return {
        part: dict(rises=statistics.mean(one > 0 for one in values), change=statistics.mean(values))
        for part, values in changes.items()
    }
