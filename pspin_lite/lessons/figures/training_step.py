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
from .style import RED, styled

COPIES, TEMPORARY = "rounded copies", "temporary arrays"
COLOURS = {  # from the bottom up
    "weights": MEMORY["weights"],
    "moments of AdamW": MEMORY["moments of AdamW"],
    "gradients": RED,
    "activations": MEMORY["activations"],
    COPIES: MEMORY["rounded copies of ternary weights"],
    TEMPORARY: MEMORY["temporary arrays, first gradients"],
}
PALE = 0.55  # all moments but the chosen one
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
    """The explorer: all moments of a step, the chosen one in full colour; beside them what it consists of."""
    adamw, file = moments(cfg), footprint(cfg).mb
    most = max(sum(kinds.values()) for kinds in adamw.values())
    widest = max(size for kinds in adamw.values() for size in kinds.values())

    @styled
    def draw(moment: int, recipe: str) -> tuple[Figure, dict[str, str]]:
        memory = with_recipe(adamw, recipe)
        names, totals = list(memory), [sum(kinds.values()) for kinds in memory.values()]
        here, peak = moment - 1, max(totals)
        now = memory[names[here]]
        figure = Figure(figsize=(7.6, 3.7))
        axes = figure.add_axes((0.12, 0.16, 0.52, 0.74))
        edges = [x for n in range(len(memory)) for x in (n + 0.5, n + 1.5)]
        low = [0.0] * len(memory)
        for kind, colour in COLOURS.items():
            high = [a + kinds[kind] for a, kinds in zip(low, memory.values(), strict=True)]
            if high == low:
                continue
            sides = ([y for y in side for _ in "ab"] for side in (low, high))
            axes.fill_between(edges, *sides, color=colour, alpha=PALE, lw=0)
            axes.fill_between([moment - 0.5, moment + 0.5], low[here], high[here], color=colour, lw=0)
            low = high
        last = len(memory) + 0.5
        axes.plot([0.5, last], [file, file], "--", color="black", lw=1.3)
        axes.text(last - 0.1, file + 0.03 * most, f"the file: {file:.0f}", ha="right", va="bottom", fontsize=10)
        above = totals[here] + 0.02 * most
        axes.text(moment, above, f"{totals[here]:,.0f}", ha="center", va="bottom", fontsize=11)
        axes.set_xticks(range(1, len(memory) + 1), [name.split()[-1] for name in names])
        axes.tick_params(axis="x", labelsize=9.5)
        levels = range(0, round(1.15 * most), 500)
        axes.set_yticks(levels, [f"{level:,}" for level in levels])
        axes.set(xlim=(0.5, last), ylim=(0, 1.15 * most), ylabel="MiB")
        axes.set_xlabel("blocks forward, loss, blocks backward, update")
        when = "as backward begins" if "backward" in names[totals.index(peak)] else "with the loss"
        axes.set_title(f"Highest {when}: {peak:,.0f} MiB", loc="left", fontsize=11, weight="bold")

        parts = figure.add_axes((0.69, 0.16, 0.28, 0.74))
        for y, (kind, size) in enumerate(now.items()):
            parts.fill_between([0, size], y + 0.05, y + 0.36, color=COLOURS[kind], lw=0)
            parts.text(0, y + 0.49, kind, ha="left", va="bottom", fontsize=10)
            parts.text(widest, y + 0.49, f"{size:,.0f}", ha="right", va="bottom", fontsize=10)
        parts.set(xlim=(0, widest), ylim=(0, len(now) + 0.05), xticks=[], yticks=[])
        parts.set_title(f"{names[here]}: {totals[here]:,.0f} MiB", loc="left", fontsize=11, weight="bold")
        for side in ("left", "bottom"):
            parts.spines[side].set_visible(False)
        numbers = {"moment": names[here], "in total": f"{totals[here]:,.0f} MiB"}
        return figure, numbers | {"peak / file": f"{peak / file:.0f} times"}

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
