"""Figures of notebook 08: the stream through the blocks, weights, flops and memory. Each returns the figure and what it
shows."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...config import PSpinConfig
from ...costs import MB, Cost, flops, footprint, step_bytes
from .diagram import tint
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, styled

MEMORY = {  # kinds of it; the other colours are for parts of the network
    "weights": BLUE,
    "moments of AdamW": "#8CC0E0",
    "activations": GREY,
    "rounded copies of ternary weights": GREEN,
    "temporary arrays, first gradients": "#C8C8C8",
}
LABELS = {  # of models, where they are not their names
    "transformer-paper": "our Transformer",
    "subword-paper": "the subword model",
    "byte-paper": "the byte model",
}
GOAL = 512  # MiB, of the widget's task
MOST = 1_900  # the end of an axis in MiB or million flops, with room for a number
WORK = {"state_space": ORANGE, "attractor": GREEN, "head": PURPLE}


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=12, weight="bold")


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
    for name, offset, above, colour in (("state space adds", 0, 16, ORANGE), ("attractor adds", 1, 9, GREEN)):
        x, y = at[1 + offset :: 2], pieces[offset::2]
        axes.plot(x, y, "s", color=colour, markersize=5, label=name)
        axes.annotate(f"each {name}", (x[-1], y[-1]), (0, above), textcoords="offset points", color=colour, ha="right")
    axes.annotate("the stream", (at[-1], sizes[-1]), (0, 10), textcoords="offset points", color=BLUE, ha="right")
    middle = len(at) // 2
    where = (at[middle], independent[middle])
    axes.annotate("if independent", where, (-4, 8), textcoords="offset points", color=GREY, ha="right")
    apart = np.abs(sizes / independent.clip(1e-9) - 1)[1:].max()
    alone = " as if its pieces were independent" if apart < 0.1 else " from block to block"
    _title(axes, f"At initialisation, the stream grows{alone}")
    axes.set(xlabel="half blocks passed", ylabel="root mean square", xlim=(-0.3, len(sizes) - 0.5))
    axes.set_ylim(0, 1.12 * sizes.max())
    axes.set_xticks(at[::4])
    return figure, shown | {"pieces": pieces}


@styled
def shares(costs: Mapping[str, Cost], steps: str = "five") -> tuple[Figure, dict[str, dict[str, float]]]:
    """Percentages of the flops of a forward pass by part, one bar per model; the first takes so many steps."""
    shown = {name: {part: 100 * getattr(cost, part) / cost.total for part in WORK} for name, cost in costs.items()}
    figure = Figure(figsize=(7.4, 1.3 + 0.55 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for y, parts in enumerate(shown.values()):
        left = 0.0
        for part, share in parts.items():
            axes.barh(
                y,
                share,
                left=left,
                color=tint(WORK[part], 0.6),
                label=part.replace("_", " ") if y == 0 else None,
                height=0.7,
            )
            if share >= 5:
                axes.text(left + share / 2, y, f"{share:.1f}", ha="center", va="center", fontsize=10)
            elif share >= 0.05:  # too narrow for its number
                axes.text(101, y, f"{part.replace('_', ' ')} {share:.1f}", color=WORK[part], va="center", fontsize=10)
            left += share
    axes.set_yticks(range(len(shown)), list(shown))
    axes.invert_yaxis()
    axes.grid(visible=False)
    first = next(iter(shown))
    largest = max(shown[first], key=lambda part: shown[first][part]).replace("_", " ")
    figure.suptitle(
        f"With {steps} steps, the {largest} does most of the computation", fontsize=12, weight="bold", x=0.02, ha="left"
    )
    axes.set(xlabel="% of the flops of a forward pass", xlim=(0, 112), xticks=range(0, 101, 20))
    figure.legend(loc="outside lower center", ncols=3)
    return figure, shown


@styled
def training(
    step: Mapping[str, tuple[int, int, int, int]],
    files: Mapping[str, float],
    tokens: Mapping[str, int],
    measured: Container[str] = (),
) -> tuple[Figure, dict[str, dict[str, float]]]:
    """MiB at the peak of a training step, by kind, one bar per model; a black mark is the file it is deployed in.
    step: bytes of the weights, of the activations, of the rounded copies, and what rises above weights and moments.
    files: MiB. tokens: of a sequence. measured: the models of which some was; the others are estimated. The title
    compares the second model with the first."""
    memory = {
        name: dict(zip(MEMORY, (w / MB, 2 * w / MB, a / MB, r / MB, (rise - a - r) / MB), strict=True))
        for name, (w, a, r, rise) in step.items()
    }
    figure = Figure(figsize=(7.4, 1.8 + 0.65 * len(memory)), layout="constrained")
    axes = figure.subplots()
    for y, (name, kinds) in enumerate(memory.items()):
        left = 0.0
        for kind, size in kinds.items():
            axes.barh(y, size, left=left, color=MEMORY[kind], height=0.6, label=None if y else kind)
            if size >= 60:
                ink = "white" if kind in ("weights", "activations") else "black"
                middle, mark = left + size / 2, files[name]
                if kind == "weights":  # on the wider side of the mark
                    middle = mark / 2 if mark > size / 2 else (mark + size) / 2
                axes.text(middle, y, f"{size:,.0f}", ha="center", va="center", fontsize=9, color=ink)
            left += size
        how = "partly measured" if name in measured else "estimated"
        axes.text(left + 15, y, f"{left:,.0f}\n{how}", va="center", fontsize=10)
        axes.plot([files[name]] * 2, [y - 0.58, y + 0.3], color="black", lw=2.5, label=None if y else "the file")
        axes.text(files[name] + 10, y - 0.41, f"file {files[name]:.0f}", fontsize=9, weight="bold")
    names = [LABELS.get(name, name) for name in memory]
    axes.set_yticks(
        range(len(names)), [f"{name}\n{tokens[one]:,} tokens" for name, one in zip(names, memory, strict=True)]
    )
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    first, second, *_ = (sum(kinds.values()) for kinds in memory.values())
    length, saved = tokens[next(iter(memory))], 100 * (1 - second / first)
    title = f"At {length:,} tokens, {names[1]} needs {saved:.0f}% less than {names[0]}"
    figure.suptitle(title, fontsize=12, weight="bold", x=0.02, ha="left")
    axes.set(xlabel="MiB at the peak of a training step", xlim=(0, 1.2 * max(sum(k.values()) for k in memory.values())))
    figure.legend(loc="outside lower center", ncols=2)
    return figure, memory


def budgets(cfg: PSpinConfig) -> Callable[..., tuple[Figure, dict[str, str]]]:
    """The widget of notebook 08: MiB and flops of a network with another context, width, number of spins and steps; a
    pale bar where `cfg` itself is, a mark at 512 MiB."""

    def measure(one: PSpinConfig) -> tuple[dict[str, float], dict[str, float]]:
        table, work = footprint(one), flops(one)
        memory = {"file, packed": table.mb, "file, unpacked": table.uncompressed_mb}
        parts = {part.replace("_", " "): getattr(work, part) / one.context / 1e6 for part in WORK}
        return memory | {"training": step_bytes(one).peak / MB}, parts

    @styled
    def draw(tokens: int, D: int, I: int, K: int) -> tuple[Figure, dict[str, str]]:
        one = cfg.replace(context=tokens, width=D, inner=I, micro_steps=K)
        (memory, parts), before = measure(one), measure(cfg)
        times = memory["training"] / memory["file, packed"]
        most, total = max(parts, key=lambda part: parts[part]), sum(parts.values())
        share = f"{most.capitalize()}: {100 * parts[most] / total:.0f}% of the computation"
        figure = Figure(figsize=(7.6, 2.9))
        for left, title, rows, first, unit, colours in (
            (0.04, f"Training takes {times:.0f} times the file", memory, before[0], "MiB", (GREY, GREY, BLUE)),
            (0.54, share, parts, before[1], "million flops per token", WORK.values()),
        ):
            axes = figure.add_axes((left, 0.19, 0.42, 0.69))
            axes.set_xticks(range(0, MOST, 500), [f"{tick:,}" for tick in range(0, MOST, 500)])
            for y, ((name, size), colour) in enumerate(zip(rows.items(), colours, strict=True)):
                axes.fill_between([0, first[name]], -y - 0.24, -y + 0.24, color=tint(colour, 0.4), lw=0)
                axes.fill_between([0, size], -y - 0.15, -y + 0.15, color=colour, lw=0)
                axes.text(0.01 * MOST, -y + 0.29, name, va="bottom", fontsize=10)
                number = f"{size:,.0f}" if size >= 1 else f"{size:.1f}"
                axes.text(max(size, first[name]) + 0.02 * MOST, -y, number, va="center", fontsize=11)
            axes.set_yticks([])
            axes.set(xlabel=unit, xlim=(0, MOST), ylim=(-2.5, 0.7))
            axes.set_title(title, loc="left", fontsize=11, weight="bold")
        figure.axes[0].plot([GOAL] * 2, [-2.4, -1.45], "--", color="black", lw=1.5)
        figure.axes[0].text(1.04 * GOAL, -1.71, f"{GOAL} to spare", va="bottom", fontsize=10)
        return figure, {
            "million parameters": f"{footprint(one).params / 1e6:.1f}",
            "MiB of the file": f"{memory['file, packed']:.1f}",
            "training / file": f"{times:.0f} times",
            "million flops per token": f"{total:,.0f}",
        }

    return draw
