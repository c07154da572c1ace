"""A training step of notebook 08: its memory at each moment, with an explorer, and the peaks of several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.figure import Figure

from ...config import Config, PSpinConfig
from ...costs import MB, footprint, saved_bytes, step_bytes
from ...tools import measure
from ...variants import build
from .network import MEMORY, training
from .style import GREY, RED, styled

COPIES, TEMPORARY = "rounded copies", "temporary arrays"
COLOURS = {  # from the bottom up
    "weights": MEMORY["weights"],
    "moments of AdamW": MEMORY["moments of AdamW"],
    "gradients": RED,
    "activations": MEMORY["activations"],
    COPIES: MEMORY["rounded copies of ternary weights"],
    TEMPORARY: MEMORY["temporary arrays, first gradients"],
}
PALE, STRONG = 0.3, 0.75  # all moments, and the chosen one
LABELS = {  # of areas: at which moment they stand, counted from 0, and how
    "weights": (0, "left"),
    "moments of AdamW": (0, "left"),
    "gradients": (-1, "right"),
    "activations": (4, "center"),
    COPIES: (4, "center"),
}
RECIPES = {  # -> bytes of moments per weight, and what part of everything but the weights is left
    "AdamW, 32 bits": (8, 1.0),
    "SGD, 32 bits": (0, 1.0),
    "SGD, 16 bits": (0, 0.5),
}


def moments(cfg: PSpinConfig) -> dict[str, dict[str, float]]:
    """MiB by kind at each moment of a step with AdamW in float32 on one sequence: after each block forward, at the
    highest point of the loss and of each block backward, and in the update. Its peak is that of costs.step_bytes."""
    D, L, inner = cfg.width, cfg.layers, cfg.inner
    saved, whole = saved_bytes(cfg), step_bytes(cfg)
    copies = saved["weights"]
    kept = sum(saved.values()) - copies
    embedding, down = 4 * cfg.vocab * D, 4 * D * inner
    block = copies + down + 4 * 5 * D * D  # gradients of its matrices
    made = {"start": (0, 0, 0, 0)}
    made |= {f"forward {l}": (0, l * kept, l * copies, 0) for l in range(1, L + 1)}
    made["loss"] = (embedding, L * kept, L * copies, whole.forward - L * (kept + copies) - embedding)
    # The highest point of a block's backward pass is in its attractor, whose arrays are as large in every block.
    arrays = whole.backward - L * (kept + copies) - embedding - down
    for l in range(L, 0, -1):
        gradients = embedding + down + (L - l) * block
        made[f"backward {l}"] = (gradients, l * kept, l * copies, arrays)
    made["update"] = (whole.weights, 0, 0, 0)
    always = (whole.weights, whole.moments)
    return {name: {kind: b / MB for kind, b in zip(COLOURS, always + some, strict=True)} for name, some in made.items()}


def with_recipe(memory: Mapping[str, Mapping[str, float]], recipe: str) -> dict[str, dict[str, float]]:
    """The same moments, estimated for a leaner recipe."""
    per_weight, part = RECIPES[recipe]
    factors = {"weights": 1, "moments of AdamW": per_weight / 8}
    return {
        name: {kind: size * factors.get(kind, part) for kind, size in kinds.items()} for name, kinds in memory.items()
    }


def walk(cfg: PSpinConfig) -> Callable[..., tuple[Figure, dict[str, str]]]:
    """The explorer: all moments of a step pale, the chosen one in full colour."""
    adamw, file = moments(cfg), footprint(cfg).mb
    most = max(sum(kinds.values()) for kinds in adamw.values())

    @styled
    def draw(moment: int, recipe: str) -> tuple[Figure, dict[str, str]]:
        memory = with_recipe(adamw, recipe)
        names, totals = list(memory), [sum(kinds.values()) for kinds in memory.values()]
        here, peak, label = moment - 1, max(totals), file + 0.077 * most  # above the line of the file
        figure = Figure(figsize=(7.6, 3.7))
        axes = figure.add_axes((0.1, 0.16, 0.88, 0.74))
        edges = [x for n in range(len(memory)) for x in (n + 0.5, n + 1.5)]
        low = [0.0] * len(memory)
        for kind, colour in COLOURS.items():
            high = [a + kinds[kind] for a, kinds in zip(low, memory.values(), strict=True)]
            if high == low:
                continue
            sides = ([y for y in side for _ in "ab"] for side in (low, high))
            axes.fill_between(edges, *sides, color=colour, alpha=PALE, lw=0)
            axes.fill_between([moment - 0.5, moment + 0.5], low[here], high[here], color=colour, alpha=STRONG, lw=0)
            if kind in LABELS:
                at, how = LABELS[kind]
                middle = label if kind == "weights" else (low[at] + high[at]) / 2
                x = at % len(memory) + dict(left=0.6, center=1, right=1.4)[how]
                axes.text(x, middle, kind, ha=how, va="center", color=GREY, fontsize=10)
            low = high
        last, top = len(memory) + 0.5, totals[-2]
        axes.plot([last - 1.08, last - 0.95], [top - 20, top + 0.17 * most], color=GREY, lw=0.8)
        axes.text(last - 0.1, top + 0.18 * most, TEMPORARY, ha="right", va="bottom", color=GREY, fontsize=10)
        axes.plot([0.5, last], [file, file], "--", color=GREY, lw=1.3)
        axes.text(last - 0.1, label, f"the file: {file:.0f}", ha="right", va="center", color=GREY, fontsize=10)
        axes.text(
            moment,
            totals[here] + 0.02 * most,
            f"{totals[here]:,.0f}",
            ha="center",
            va="bottom",
            color=GREY,
            fontsize=11,
        )
        axes.set_xticks(range(1, len(memory) + 1), [name.split()[-1] for name in names])
        axes.set(xlim=(0.5, last), ylim=(0, 1.15 * most), ylabel="MiB")
        axes.set_xlabel("blocks forward, loss, blocks backward, update")
        when = "as the backward pass begins" if "backward" in names[totals.index(peak)] else "with the loss"
        axes.set_title(f"The peak, {peak:,.0f} MiB, comes {when}", loc="left", fontsize=12, weight="bold")
        now = memory[names[here]]
        sizes = {"kept for the backward pass": now["activations"] + now[COPIES], "gradients": now["gradients"]}
        numbers = {name: f"{size:,.0f} MiB" for name, size in (sizes | {"in total": totals[here]}).items()}
        return figure, {"moment": names[here]} | numbers | {"peak / file": f"{peak / file:.0f} times"}

    return draw


def peaks(measured: Sequence[Config], estimated: Sequence[PSpinConfig]) -> tuple[Figure, dict[str, dict[str, float]]]:
    """What is in memory at the peak of a training step on one sequence of each model's length. What rises above weights
    and moments is measured for some models, which takes seconds, and estimated for the others."""
    step = {cfg.name: _peak(cfg, cfg in measured) for cfg in (*measured, *estimated)}
    files = {cfg.name: footprint(cfg).mb for cfg in (*measured, *estimated)}
    contexts = {cfg.name: cfg.context for cfg in (*measured, *estimated)}
    return training(step, files, contexts, measured=[cfg.name for cfg in measured])


def _peak(cfg: Config, measured: bool) -> tuple[int, int, int, int]:
    """Bytes of the weights, the activations, the rounded copies, and all that rises above weights and moments."""
    weights, copies = 4 * footprint(cfg).params, 0
    model = build(cfg) if measured else None
    words = torch.randint(cfg.vocab, (1, cfg.context))
    if isinstance(cfg, PSpinConfig):
        saved = saved_bytes(cfg)
        copies = cfg.layers * saved.pop("weights")
        activations, whole = cfg.layers * sum(saved.values()), step_bytes(cfg)
        rise = whole.peak - whole.weights - whole.moments
    else:
        activations = measure.saved_bytes(lambda: model.hidden(words), besides=tuple(model.parameters()))
    if measured:
        rise = measure.peak_bytes(lambda: model.loss(words, words).backward())
    return weights, activations, copies, rise
