"""Figures of notebook 08: the stream through the blocks, weights, flops and memory. Each returns the figure and what it
shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...config import PSpinConfig
from ...costs import MB, Cost, Footprint, flops, footprint, step_bytes
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, styled

PARTS = {"embedding": PURPLE, "state space": ORANGE, "ternary MLP": GREEN, "non-embedding": BLUE}
NAMES = {  # of parts, in a legend
    "embedding": "embedding",
    "ternary MLP": "ternary: $W_{ext}$, $W_{int}$",
    "state space": "state space + $W_{down}$ + norms (the paper's grouping)",
    "non-embedding": "Transformer blocks",
}
KINDS = (BLUE, "#8CC0E0", GREY, "#C8C8C8")  # of memory; the other colours are for parts of the network
WORK = {"state_space": ORANGE, "attractor": GREEN, "head": PURPLE}


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=12, weight="bold")


def _at_end(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    """The name of a line, behind its last point."""
    axes.annotate(text, (x, y), (8, 0), textcoords="offset points", color=colour, va="center", fontsize=10)


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
    for name, offset, above, colour in (("state space adds", 0, 9, ORANGE), ("attractor adds", 1, 9, GREEN)):
        x, y = at[1 + offset :: 2], pieces[offset::2]
        axes.plot(x, y, "s", color=colour, markersize=5, label=name)
        axes.annotate(f"each {name}", (x[-1], y[-1]), (0, above), textcoords="offset points", color=colour, ha="right")
    axes.annotate("the stream", (at[-1], sizes[-1]), (0, 10), textcoords="offset points", color=BLUE, ha="right")
    apart = np.abs(sizes / independent.clip(1e-9) - 1)[1:].max()
    alone = " as if its pieces were independent (dashed)" if apart < 0.1 else " from block to block"
    _title(axes, f"The stream grows{alone}")
    axes.set(xlabel="half blocks passed", ylabel="root mean square", xlim=(-0.3, len(sizes) - 0.5))
    axes.set_ylim(0, 1.12 * sizes.max())
    axes.set_xticks(at[::4])
    return figure, shown | {"pieces": pieces}


@styled
def peaks(
    vocabs: Sequence[int], peak: Mapping[str, Sequence[float]], width: int
) -> tuple[Figure, Mapping[str, Sequence[float]]]:
    """Peak memory of a loss and its gradient against the vocabulary, both axes logarithmic; width: of the embedding."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for (name, values), colour in zip(peak.items(), (RED, GREY, BLUE), strict=False):
        axes.loglog(vocabs, np.array(values) / MB, "o-", color=colour, markersize=5, label=name)
        _at_end(axes, vocabs[-1], values[-1] / MB, f"{name}: {values[-1] / MB:,.0f} MiB", colour)
    ends = [values[-1] for values in peak.values()]
    _title(axes, f"At D = {width}, the same loss takes {ends[0] / min(ends):.0f} times less memory")
    axes.set_xlim(vocabs[0] / 1.15, vocabs[-1] * 5)
    axes.set_xticks(vocabs, [f"{V:,}" for V in vocabs])
    ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    low, high = axes.get_ylim()
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="tokens in the vocabulary", ylabel="peak memory, MiB")
    return figure, peak


@styled
def footprints(tables: Sequence[Footprint]) -> tuple[Figure, dict[str, dict[str, float]]]:
    """MiB by component: for each model a bar uncompressed and, where it differs, a bar as deployed."""
    figure = Figure(figsize=(7.6, 3.7), layout="constrained")
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
            label = None if part in labelled else NAMES[part]
            labelled.add(part)
            axes.barh(y, size, left=left, color=PARTS[part], label=label, height=0.7)
            left += size
        axes.text(left + 2, y, f"{left:.2f}", va="center", fontsize=10)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    ratios = {table.name.split("-")[0]: table.uncompressed_mb / table.mb for table in tables}
    text = ", ".join(f"the {name} model {ratio:.1f} times" for name, ratio in ratios.items() if ratio != 1)
    figure.suptitle(f"Packing shrinks {text}", fontsize=12, weight="bold", x=0.02, ha="left")
    axes.set(xlabel="MiB", xlim=(0, 1.18 * max(sum(parts.values()) for parts in shown.values())))
    figure.legend(loc="outside lower center", ncols=2)
    return figure, shown


@styled
def shares(costs: Mapping[str, Cost], steps: str = "five") -> tuple[Figure, dict[str, dict[str, float]]]:
    """Per cent of the flops of a forward pass by part, one bar per model; the first takes so many steps."""
    shown = {name: {part: 100 * getattr(cost, part) / cost.total for part in WORK} for name, cost in costs.items()}
    figure = Figure(figsize=(7.4, 1.3 + 0.55 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for y, parts in enumerate(shown.values()):
        left = 0.0
        for part, share in parts.items():
            axes.barh(
                y, share, left=left, color=WORK[part], label=part.replace("_", " ") if y == 0 else None, height=0.7
            )
            if share >= 5:
                axes.text(left + share / 2, y, f"{share:.1f}", ha="center", va="center", fontsize=10)
            left += share
    axes.set_yticks(range(len(shown)), list(shown))
    axes.invert_yaxis()
    axes.grid(visible=False)
    first = next(iter(shown))
    largest = max(shown[first], key=lambda part: shown[first][part]).replace("_", " ")
    figure.suptitle(
        f"With {steps} steps, the {largest} does most of the arithmetic", fontsize=12, weight="bold", x=0.02, ha="left"
    )
    axes.set(xlabel="per cent of the flops of a forward pass", xlim=(0, 100))
    figure.legend(loc="outside lower center", ncols=3)
    return figure, shown


@styled
def training(
    memory: Mapping[str, Mapping[str, float]], files: Mapping[str, float]
) -> tuple[Figure, Mapping[str, Mapping[str, float]]]:
    """MiB at the peak of a training step, by kind, one bar per model; a black mark is the file it is deployed in."""
    figure = Figure(figsize=(7.4, 1.6 + 0.55 * len(memory)), layout="constrained")
    axes = figure.subplots()
    for y, (name, kinds) in enumerate(memory.items()):
        left = 0.0
        for (kind, size), colour in zip(kinds.items(), KINDS, strict=True):
            axes.barh(y, size, left=left, color=colour, height=0.7, label=None if y else kind)
            left += size
        axes.text(left + 15, y, f"{left:,.0f}", va="center", fontsize=10)
        axes.plot([files[name]] * 2, [y - 0.42, y + 0.42], color="black", lw=2.5, label=None if y else "the file")
    axes.set_yticks(range(len(memory)), list(memory))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    ratios = [sum(kinds.values()) / files[name] for name, kinds in memory.items()]
    title = f"Training takes {min(ratios):.0f} to {max(ratios):.0f} times the file"
    figure.suptitle(title, fontsize=12, weight="bold", x=0.02, ha="left")
    axes.set(
        xlabel="MiB at the peak of a training step", xlim=(0, 1.14 * max(sum(k.values()) for k in memory.values()))
    )
    figure.legend(loc="outside lower center", ncols=3)
    return figure, memory


def budgets(cfg: PSpinConfig) -> Callable[..., tuple[Figure, dict[str, str]]]:
    """The widget of notebook 08: MiB and flops of a network of another vocabulary, width, number of spins and steps."""

    @styled
    def draw(vocabulary: int, D: int, I: int, K: int) -> tuple[Figure, dict[str, str]]:
        one = cfg.replace(vocab=vocabulary, width=D, inner=I, micro_steps=K)
        table, work = footprint(one), flops(one)
        training = step_bytes(one).peak / MB
        memory = {"file": (table.mb, GREY), "unpacked": (table.uncompressed_mb, GREY), "training": (training, BLUE)}
        million = 1e6 * one.context
        parts = {part.replace("_", " "): (getattr(work, part) / million, colour) for part, colour in WORK.items()}
        figure = Figure(figsize=(7.6, 2.5))
        for left, bars, most, unit in ((0.13, memory, 2500, "MiB"), (0.63, parts, 1900, "million flops per token")):
            axes = figure.add_axes((left, 0.24, 0.34, 0.6))
            for y, (size, colour) in enumerate(bars.values()):
                axes.fill_between([0, size], -y - 0.3, -y + 0.3, color=colour, lw=0)  # which the live form can draw
                axes.text(
                    size + most / 40, -y, f"{size:,.0f}" if size >= 1 else f"{size:.1f}", va="center", fontsize=10
                )
            axes.set_yticks((0, -1, -2), list(bars))
            axes.set(xlabel=unit, xlim=(0, most), ylim=(-2.5, 0.5))
            axes.grid(axis="y", visible=False)
        _title(figure.axes[0], "Memory")
        _title(figure.axes[1], "Arithmetic, forward")
        return figure, {
            "million parameters": f"{table.params / 1e6:.1f}",
            "MiB of the file": f"{table.mb:.1f}",
            "training / file": f"{training / table.mb:.0f} times",
            "million flops per token": f"{work.total / million:,.0f}",
        }

    return draw


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
