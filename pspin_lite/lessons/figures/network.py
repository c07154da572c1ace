"""Figures of notebook 08: the stream through the blocks, weights, flops and memory. Each returns the figure and what it
shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...costs import MB, Cost, Footprint
from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, lines_and_dots, styled

PARTS = {"embedding": PURPLE, "state space": ORANGE, "ternary MLP": GREEN, "non-embedding": BLUE}
WORK = {"state_space": ORANGE, "attractor": GREEN, "head": PURPLE}


@styled
def stream(sizes: np.ndarray, pieces: np.ndarray) -> tuple[Figure, dict[str, np.ndarray]]:
    """Root mean square of the residual stream after each half block, of each half's own output, and what pieces that
    are independent of each other would add up to. sizes: one more than pieces (the embedding comes first)."""
    independent = np.sqrt(sizes[0] ** 2 + np.concatenate([[0], np.cumsum(pieces**2)]))
    shown = {"stream": sizes, "if the pieces were independent": independent}
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    at = np.arange(len(sizes))
    axes.plot(at, sizes, "o", color=BLUE, label="stream")
    axes.plot(at, independent, "--", color=GREY, label="if the pieces were independent")
    for name, offset, colour in (("state space adds", 0, ORANGE), ("attractor adds", 1, GREEN)):
        axes.plot(at[1 + offset :: 2], pieces[offset::2], "s", color=colour, markersize=4, label=name)
    axes.set(xlabel="half blocks passed", ylabel="root mean square", xlim=(-0.3, len(sizes) - 0.7), ylim=(0, None))
    axes.legend()
    return figure, shown | {"pieces": pieces}


@styled
def peaks(vocabs: Sequence[int], peak: Mapping[str, Sequence[float]]) -> tuple[Figure, Mapping[str, Sequence[float]]]:
    """Peak memory of a loss and its gradient against the vocabulary, both axes logarithmic."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(peak.items(), (RED, ORANGE, BLUE), strict=False):
        axes.loglog(vocabs, np.array(values) / MB, "o-", color=colour, markersize=5, label=name)
    axes.set_xticks(vocabs, [f"{V:,}" for V in vocabs])
    ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    low, high = axes.get_ylim()
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="vocabulary |V|", ylabel="peak of memory, MB")
    axes.legend()
    return figure, peak


@styled
def carried(
    tokens: Sequence[int], predicted: Mapping[str, Sequence[int]], counted: Mapping[str, Sequence[int]]
) -> tuple[Figure, Mapping[str, Sequence[int]]]:
    """Bytes that decoding carries along, against the length of the text: lines from formulas, dots counted."""
    lines, dots = ({name: np.array(values) / 1024 for name, values in some.items()} for some in (predicted, counted))
    figure = lines_and_dots(tokens, lines, dots, xlabel="tokens so far", ylabel="carried along, KB")
    return figure, predicted


@styled
def footprints(tables: Sequence[Footprint]) -> tuple[Figure, dict[str, dict[str, float]]]:
    """Megabytes by component: for each model a bar uncompressed and, where it differs, a bar as deployed."""
    figure = Figure(figsize=(7.6, 3.0), layout="constrained")
    axes = figure.subplots()
    shown: dict[str, dict[str, float]] = {}
    names = []
    for table in tables:
        same = table.uncompressed_mb == table.mb
        for kind in ("uncompressed",) if same else ("uncompressed", "deployed"):
            name = table.name if same else f"{table.name}, {kind}"
            bits = {row.name: row.uncompressed_bits if kind == "uncompressed" else row.bits for row in table.rows}
            shown[name] = {row.name: row.params * bits[row.name] / 8 / MB for row in table.rows}
            names.append(name)
    labelled: set[str] = set()
    for y, name in enumerate(names):
        left = 0.0
        for part, size in shown[name].items():
            label = None if part in labelled else part
            labelled.add(part)
            axes.barh(y, size, left=left, color=PARTS[part], label=label, height=0.7)
            left += size
        axes.text(left + 2, y, f"{left:.2f}", va="center", fontsize=10)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="MB (2²⁰ bytes)", xlim=(0, 1.12 * max(sum(parts.values()) for parts in shown.values())))
    figure.legend(loc="outside upper center", ncols=4)
    return figure, shown


@styled
def shares(costs: Mapping[str, Cost]) -> tuple[Figure, dict[str, dict[str, float]]]:
    """Per cent of the flops of a forward pass by part, one bar a model."""
    shown = {name: {part: 100 * getattr(cost, part) / cost.total for part in WORK} for name, cost in costs.items()}
    figure = Figure(figsize=(7.4, 0.9 + 0.55 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for y, parts in enumerate(shown.values()):
        left = 0.0
        for part, share in parts.items():
            axes.barh(
                y, share, left=left, color=WORK[part], label=part.replace("_", " ") if y == 0 else None, height=0.7
            )
            if share >= 5:
                axes.text(left + share / 2, y, f"{share:.0f}", ha="center", va="center", fontsize=10)
            left += share
    axes.set_yticks(range(len(shown)), list(shown))
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set(xlabel="per cent of the flops of a forward pass", xlim=(0, 100))
    figure.legend(loc="outside upper center", ncols=3)
    return figure, shown


@styled
def kept(steps: Sequence[int], sizes: Mapping[str, Sequence[int]]) -> tuple[Figure, Mapping[str, Sequence[int]]]:
    """Megabytes kept for the backward pass against the number of steps K, one line a way to differentiate."""
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(sizes.items(), (RED, BLUE, *CYCLE), strict=False):
        axes.plot(steps, np.array(values) / MB, "o-", color=colour, label=name)
    axes.set(xlabel="steps K", ylabel="kept for the backward pass, MB", xticks=steps, xlim=(0, None), ylim=(0, None))
    axes.legend()
    return figure, sizes


@styled
def convergence(residuals: dict[str, np.ndarray]) -> tuple[Figure, dict[str, np.ndarray]]:
    """Relative change per step of the attractor, on a logarithmic axis; one line a name."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for name, values in residuals.items():
        axes.semilogy(np.arange(1, len(values) + 1), values, "o-", markersize=4, label=name)
    axes.set(xlabel="step k", ylabel="relative change in step k")
    figure.legend(loc="outside right upper")
    return figure, residuals
