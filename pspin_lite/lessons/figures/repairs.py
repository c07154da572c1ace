"""Figures of notebook 15: the steps from the paper's network to a Transformer, keys that know their predecessors, what
a short convolution learns, what the mended network costs, and where it is still behind. Each returns the figure and the
arrays it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ... import costs as costing
from ... import variants
from ...study import networks, records
from ...study.intervals import Difference
from ...study.questions.question import Row
from . import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, styled
from .training import headline

MARGIN = 0.02  # bits per byte, of the criterion
PATH = {  # from the paper's network to the Transformer: group and network in the records
    "p-Spin": ("living-bytes", "p-spin"),
    "no steps": ("living-bytes", "tanh-sigmoid"),
    "tanh · tanh": ("living-bytes", "tanh-tanh"),
    "mended": ("repair-bytes", "mended"),
    "Transformer": ("bytes-1", "transformer"),
}
FURTHER = {
    "mended, norms": ("repair-bytes", "mended-norms"),
    "stacked": ("stack-bytes", "stacked"),
    "tanh · tanh, wide": ("steps-bytes", "wide"),
    "SwiGLU, convolution": ("repair-bytes", "swiglu-convolution"),
    "attention, convolution": ("repair-bytes", "attention-convolution"),
}
BESIDE = {"SwiGLU": ("bytes-1", "swiglu"), "no MLP": ("living-bytes", "no-mlp")}
COLOURS = {  # in every figure; others are grey
    "mended": BLUE,
    "stacked": PURPLE,
    "tanh · tanh": ORANGE,
    "SwiGLU": RED,
    "SwiGLU, convolution": GREEN,
}


def in_words(row: Row) -> str:
    """An answer of the study: its word, and the difference that it rests on (the first, if there are several), on
    held-out and on recent speeches."""
    gaps = [f"{one.mean:+.3f} ± {one.half_width:.3f}" for one, *_ in row.values if isinstance(one, Difference)]
    return f"{row.verdict}: {', '.join(gaps)}" if gaps else row.verdict


def tuned(where: tuple[str, str]) -> str:
    """What the short runs chose for a network, on one line."""
    model = next(iter(records.seeds(*where).values()))["config"]["model"]
    return f"rate {model['lr']:g}" + (f", weights × {model['gain']:g}" if model["gain"] != 1 else "")


@styled
def staircase(
    steps: Sequence[tuple[str, str, Mapping[int, float]]],
    beside: Mapping[str, float],
    title: str,
    half_widths: Sequence[float] = (),
    yardsticks: Mapping[str, float] | None = None,
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Networks, each a change away from the one above: (name, change, bits by seed), the last of which is the goal. A
    bar is what the change is worth, half_widths are of its interval; beside: other networks, as lines at the bottom;
    yardsticks: lines from top to bottom."""
    figure = Figure(figsize=(7.4, 1.7 + 0.74 * len(steps)), layout="constrained")
    panel, shown = figure.subplots(), {}
    means = [float(np.mean(list(bits.values()))) for _, _, bits in steps]
    for row, (name, _, bits) in enumerate(steps):
        shown[name] = np.array(list(bits.values()))
        if row:
            change, last = means[row] - means[row - 1], row == len(steps) - 1
            colour = GREY if last else GREEN if change < 0 else RED
            fill = dict(facecolor="white", hatch="///") if last else dict(facecolor=colour)
            panel.barh(row, change, left=means[row - 1], height=0.3, alpha=0.55, edgecolor=colour, **fill)
            panel.plot([means[row - 1]] * 2, [row - 0.85, row + 0.15], color=GREY, linewidth=1)
            worth = f"{change:+.3f}".replace("-", "−")
            worth += f" ± {half_widths[row - 1]:.3f}" if half_widths else ""
            white = dict(facecolor="white", edgecolor="none", pad=0.5)
            middle = (means[row] + means[row - 1]) / 2
            panel.text(middle, row - 0.22, worth, ha="center", va="bottom", fontsize=10.5, bbox=white)
        colour = COLOURS["mended"] if name == "mended" else GREY
        panel.plot(shown[name], [row + (0.28 if row else 0)] * len(bits), "o", color=colour, markersize=5, zorder=3)
    panel.set_yticks(range(len(steps)), [f"{name}\n{change}" for name, change, _ in steps])
    for number, (name, value) in enumerate(sorted(beside.items(), key=lambda one: one[1])):
        panel.axvline(value, 0, 0.12, color=GREY, linestyle="--", linewidth=1.1, zorder=0)
        panel.text(
            value + (0.003, -0.003)[number % 2],
            len(steps) - 0.3,
            f"{name} {value:.3f}",
            **dict(color=GREY, ha=("left", "right")[number % 2], fontsize=10),
        )
    for name, value in (yardsticks or {}).items():
        panel.axvline(value, color=ORANGE, linestyle="--", linewidth=1.3, zorder=0)
        panel.text(value + 0.003, -0.42, f"{name} {value:.2f}", color="#8A5F00", fontsize=10, va="center")
    panel.set(ylim=(len(steps) - 0.1, -0.65), xlabel="held-out bits per byte, a dot per seed")
    panel.margins(x=0.1)
    panel.grid(axis="y", visible=False)
    headline(figure, title)
    return figure, shown


@styled
def keys(text: str, rows: Mapping[str, Sequence[float]], asked: Sequence[int]) -> tuple[Figure, dict[str, str]]:
    """For each way to make keys, how strongly every byte of the text answers the query, and what the answers add up
    to, in words. asked: of how many bytes at the text's end each query is made. The title says what the last row reads
    loudest."""
    figure = Figure(figsize=(5.2, 0.9 + 0.95 * len(rows)), layout="constrained")
    panel, said = figure.subplots(), {}
    for row, ((label, weights), last) in enumerate(zip(rows.items(), asked, strict=True)):
        y, sums = -1.7 * row, {}
        panel.text(0, y + 0.92, label, fontsize=10.5, va="center")
        for i, (letter, weight) in enumerate(zip(text, weights, strict=True)):
            x, shown = [i, i + 0.92], "␣" if letter == " " else letter
            panel.plot([*x, *x[::-1], i], [y - 0.5, y - 0.5, y + 0.5, y + 0.5, y - 0.5], color=GREY, linewidth=0.8)
            panel.text(i + 0.46, y + 0.2, shown, ha="center", va="center", fontsize=12)
            if weight:
                panel.fill_between(
                    x, y - 0.5, y + 0.5, color=BLUE, alpha=0.6 * (weight / max(weights)) ** 2, linewidth=0
                )
                panel.text(i + 0.46, y - 0.25, f"{weight:.2g}", ha="center", va="center", fontsize=9.5)
                sums[shown] = sums.get(shown, 0.0) + float(weight)
        x = [len(text) - last, len(text) - 0.08]
        panel.plot([*x, *x[::-1], x[0]], [y - 0.5, y - 0.5, y + 0.5, y + 0.5, y - 0.5], color=ORANGE, linewidth=2.4)
        said[label] = ", ".join(f"{letter} × {total:.2g}" for letter, total in sums.items()) or "nothing"
    loudest = f"“{max(sums, key=sums.get)}” is loudest" if sums else "nothing answers"
    panel.set(xlim=(-0.1, len(text)), ylim=(y - 0.6, 1.15), xticks=[], yticks=[])
    panel.set_xlabel("orange: the query; numbers: how loudly a byte answers")
    panel.spines[:].set_visible(False)
    panel.grid(visible=False)
    panel.set_title(f"After “{text[-2:]}”, by two bytes: {loudest}", loc="left", fontsize=12, weight="bold")
    return figure, said


@styled
def recall(
    accuracy: Mapping[str, Sequence[float]], guesses: Mapping[str, float], title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """The share of right answers over training steps, as means over 20 steps; guesses: name -> share, as lines."""
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    panel, shown = figure.subplots(), {}
    for (name, values), colour in zip(accuracy.items(), (GREY, BLUE), strict=False):
        shown[name] = np.convolve(values, np.ones(20) / 20, "valid")
        steps = np.arange(len(shown[name])) + 20
        panel.plot(steps, 100 * shown[name], color=colour, linewidth=2)
        panel.text(steps[-1] + 4, 100 * shown[name][-1] - 1, name, color=colour, va="top")
    most = max(map(len, accuracy.values()))
    for name, share in guesses.items():
        panel.axhline(100 * share, color=ORANGE, linestyle="--", linewidth=1)
        panel.text(1.33 * most, 100 * share + 0.6, name, color="#8A5F00", ha="right", va="bottom", fontsize=9)
    panel.set(xlim=(0, 1.34 * most), ylim=(0, 104), xlabel="training steps", ylabel="right answers, %")
    panel.set_xticks(range(0, most + 1, 100))
    headline(figure, title)
    return figure, shown


@styled
def costs(
    panels: Mapping[str, Mapping[str, float]], digits: Sequence[str], title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """What networks cost: a panel per measure, name -> value. digits: how each panel writes its numbers."""
    figure = Figure(figsize=(7.4, 2.3), layout="constrained")
    shown = {}
    for number, (panel, (label, values)) in enumerate(
        zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True)
    ):
        shown[label] = np.array(list(values.values()))
        colours = [COLOURS.get(name, GREY) for name in values]
        panel.barh(range(len(values)), shown[label], color=colours, height=0.6, alpha=0.85)
        for row, value in enumerate(shown[label]):
            panel.text(value + 0.03 * max(shown[label]), row, f"{value:{digits[number]}}", va="center", fontsize=10)
        panel.set_yticks(range(len(values)), list(values))
        panel.set(xlabel=label, xlim=(0, 1.38 * max(shown[label])), ylim=(len(values) - 0.4, -0.6))
        panel.xaxis.set_major_locator(NullLocator())
        panel.grid(visible=False)
    headline(figure, title)
    return figure, shown


@styled
def gaps(rows: Mapping[str, Sequence[Difference]], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """Networks minus the Transformer, with intervals: filled on held-out speeches, hollow on recent ones. The first is
    the one that counts. Arrays: name -> [splits, (mean, half-width)]."""
    figure = Figure(figsize=(7.4, 1.7 + 0.5 * len(rows)), layout="constrained")
    panel, shown = figure.subplots(), {}
    panel.axvspan(-0.05, MARGIN, color=GREEN, alpha=0.15, linewidth=0)
    panel.axvline(0, color=GREY, linewidth=1)
    panel.text(-0.047, -0.72, "a match", color=GREEN, va="center", fontsize=10.5)
    for row, (name, splits) in enumerate(rows.items()):
        shown[name], colour = (
            np.array([(one.mean, one.half_width) for one in splits]),
            COLOURS.get(name, COLOURS.get(name.partition(",")[0], GREY)),
        )
        for (mean, half), shift, face in zip(shown[name], (-0.15, 0.15), (colour, "white"), strict=False):
            panel.errorbar(
                mean, row + shift, xerr=half, fmt="o", color=colour, markerfacecolor=face, capsize=3, markersize=6
            )
    for label, face in (("held-out", GREY), ("recent", "white")):
        panel.plot([], [], "o", color=GREY, markerfacecolor=face, label=label)
    panel.legend(loc="lower right")
    panel.set_yticks(range(len(rows)), list(rows))
    panel.set(ylim=(len(rows) - 0.45, -1.0), xlim=(-0.05, None))
    panel.set_xlabel("bits per byte above the Transformer (95% intervals over seeds)")
    panel.grid(axis="y", visible=False)
    headline(figure, title)
    return figure, shown


@styled
def behind(
    lengths: Sequence[int],
    bits: Mapping[str, np.ndarray],
    goal: np.ndarray,
    title: str,
    stretches: Sequence[tuple[int, int]] = (),
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Bits per byte above the goal when all may see the last 1, 2, 4, ... bytes. bits and goal: [seeds, lengths]. The
    first network has a band from its lowest to its highest seed, and in each stretch how much its distance grows."""
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    panel, shown = figure.subplots(), {}
    places = np.arange(len(lengths))
    for number, (name, values) in enumerate(bits.items()):
        apart, colour = values - goal, COLOURS.get(name, GREY)
        shown[name] = apart.mean(0)
        style = dict(linewidth=2.4, marker="o") if number == 0 else dict(linewidth=1.5, linestyle="--")
        panel.plot(places, shown[name], color=colour, zorder=3, **style)
        if number == 0:
            panel.fill_between(places, apart.min(0), apart.max(0), color=colour, alpha=0.15, linewidth=0)
    ends = {name: values[-1] for name, values in shown.items()}
    for name, height in spaced(ends, least=0.016).items():
        panel.text(places[-1] + 0.12, height, name, color=COLOURS.get(name, GREY), va="center")
    panel.text(places[-1] + 0.12, 0, "Transformer", color=GREY, va="bottom")
    panel.axhline(0, color=GREY, linewidth=1)
    first, values = next(iter(shown.items()))
    for number, (start, end) in enumerate(stretches):
        left, right = lengths.index(start), lengths.index(end)
        grows = f"{values[right] - values[left]:+.3f}"
        panel.axvspan(left, right, color=GREY, alpha=(0.16, 0.07)[number % 2], linewidth=0, zorder=0)
        where = dict(ha="center", va="bottom", fontsize=10.5, color=COLOURS.get(first, GREY))
        panel.text((left + right) / 2, 0.03, f"{first}\n{grows}", transform=panel.get_xaxis_transform(), **where)
    panel.set_xticks(places, [str(n) for n in lengths])
    panel.set(ylabel="bits per byte above\nthe Transformer", xlim=(-0.2, places[-1] + 1.7))
    panel.set_xlabel(f"bytes of context; band: {first}, its three seeds")
    headline(figure, title)
    return figure, shown


def spaced(heights: Mapping[str, float], least: float) -> dict[str, float]:
    """Where to write names that would stand too close: moved apart in order, around where they belong."""
    order = sorted(heights, key=heights.__getitem__)
    placed = [heights[name] for name in order]
    for _ in range(100):
        for i in range(len(placed) - 1):
            push = max(0.0, least - (placed[i + 1] - placed[i])) / 2
            placed[i], placed[i + 1] = placed[i] - push, placed[i + 1] + push
    return dict(zip(order, map(float, placed), strict=True))


def expenses(names: Sequence[str]) -> tuple[dict[str, dict[str, float]], dict[str, tuple[float, float]]]:
    """What networks of PATH or FURTHER cost: measure -> name -> value, for `costs`. And the ternary share of parameters
    and of stored bytes by name."""
    flops, stored, carried, ternary = {}, {}, {}, {}
    for name in names:
        place = (PATH | FURTHER)[name]
        cfg = networks.arm(*place).cfg
        footprint = costing.footprint(cfg)
        record = records.read("/".join([*place, "seed-1"]))["summary"]
        flops[name], stored[name] = record["flops_a_step"] / cfg.context / 1e6, footprint.mb
        state = variants.build(cfg).prefill(torch.zeros(1, 128, dtype=torch.long))[1]
        carried[name] = count(state) / 1000
        rows = {row.name: row.params * row.bits for row in footprint.rows}
        bits = rows.get("ternary MLP", 0)
        ternary[name] = bits / 2 / footprint.params, bits / sum(rows.values())
    panels = {
        "million operations\nper byte, training": flops,
        "MiB as stored": stored,
        "thousand numbers carried\nafter 128 bytes": carried,
    }
    return panels, ternary


def count(state: object) -> int:
    """How many numbers a state has, however it is nested."""
    if isinstance(state, torch.Tensor):
        return state.numel()
    return sum(map(count, state)) if state is not None else 0
