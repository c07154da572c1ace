"""Figures of notebook 15: the steps from the paper's network to a Transformer, keys that know their predecessors, what
a short convolution learns, what the mended network costs, and where it is still behind. Each returns the figure and the
arrays it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from ...study.intervals import Difference
from ...study.questions.question import Row
from . import BLUE, CYCLE, GREEN, GREY, ORANGE, styled
from .training import headline

MARGIN = 0.02  # bits per byte, of the criterion


def in_words(row: Row) -> str:
    """An answer of the study: its word, and the differences on held-out and recent speeches that it rests on."""
    gaps = [f"{one.mean:+.3f} ± {one.half_width:.3f}" for (one,) in row.values if isinstance(one, Difference)]
    return f"{row.verdict}: {', '.join(gaps)}" if gaps else row.verdict


@styled
def staircase(
    steps: Sequence[tuple[str, str, Mapping[int, float]]], beside: Mapping[str, float], title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Networks that differ from the one above in one change: (name, change, bits by seed), the last of which is the
    goal. A bar is what the change is worth; beside: other networks, as vertical lines."""
    figure = Figure(figsize=(7.4, 1.5 + 0.68 * len(steps)), layout="constrained")
    panel, shown = figure.subplots(), {}
    means = [float(np.mean(list(bits.values()))) for _, _, bits in steps]
    for row, (name, _, bits) in enumerate(steps):
        shown[name] = np.array(list(bits.values()))
        if row:
            change, last = means[row] - means[row - 1], row == len(steps) - 1
            colour = GREY if last else GREEN if change < 0 else ORANGE
            fill = dict(facecolor="white", hatch="///") if last else dict(facecolor=colour)
            panel.barh(row, change, left=means[row - 1], height=0.42, alpha=0.55, edgecolor=colour, **fill)
            panel.plot([means[row - 1]] * 2, [row - 1, row + 0.21], color=GREY, linewidth=1)
            middle, align = ((means[row] + means[row - 1]) / 2, "center") if change < 0 else (means[row], "right")
            worth = f"{change:+.3f}".replace("-", "−")
            white = dict(facecolor="white", edgecolor="none", pad=0.5)
            panel.text(middle, row - 0.3, worth, ha=align, va="bottom", fontsize=10.5, bbox=white)
        panel.plot(shown[name], [row] * len(bits), "o", color=BLUE, markersize=5, zorder=3)
    panel.set_yticks(range(len(steps)), [f"{name}\n{change}" for name, change, _ in steps])
    for number, (name, value) in enumerate(sorted(beside.items(), key=lambda one: one[1])):
        panel.axvline(value, color=GREY, linestyle="--", linewidth=1.1, zorder=0)
        panel.text(
            value + (0.003, -0.003)[number % 2],
            len(steps) - 0.42,
            f"{name} {value:.3f}",
            **dict(color=GREY, ha=("left", "right")[number % 2], fontsize=10),
        )
    panel.set(ylim=(len(steps) - 0.2, -0.6), xlabel="held-out bits per byte, a dot per seed")
    panel.grid(axis="y", visible=False)
    headline(figure, title)
    return figure, shown


@styled
def keys(text: str, rows: Mapping[str, Sequence[float]], title: str) -> tuple[Figure, dict[str, dict[str, float]]]:
    """For each way to make keys, how strongly every byte of the text answers the query that its end puts, and what the
    answers add up to. Arrays: row -> byte -> weight."""
    figure = Figure(figsize=(7.4, 0.9 + 1.05 * len(rows)), layout="constrained")
    panel, sums = figure.subplots(), {}
    for row, (label, weights) in enumerate(rows.items()):
        y = -1.5 * row
        panel.text(0, y + 0.62, label, fontsize=10.5, va="bottom")
        for i, (letter, weight) in enumerate(zip(text, weights, strict=True)):
            shade = dict(facecolor=BLUE, alpha=0.3 * weight) if weight else dict(facecolor="white")
            panel.add_patch(Rectangle((i, y - 0.4), 0.92, 0.9, linewidth=0))
            panel.patches[-1].set(**shade)
            panel.add_patch(Rectangle((i, y - 0.4), 0.92, 0.9, fill=False, edgecolor=GREY, linewidth=0.8))
            shown = "␣" if letter == " " else letter
            panel.text(i + 0.46, y + 0.05, shown, ha="center", va="center", family="monospace", fontsize=13)
        sums[label] = {}
        for letter, weight in zip(text, weights, strict=True):
            if weight:
                sums[label][letter] = sums[label].get(letter, 0.0) + float(weight)
        said = ", ".join(f"{letter!r} {weight:g}×" for letter, weight in sums[label].items())
        panel.text(len(text) + 0.4, y + 0.05, f"reads {said}", va="center", fontsize=11, color=BLUE)
    panel.set(xlim=(-0.1, len(text) + 5.4), ylim=(-1.5 * (len(rows) - 1) - 0.6, 1.05))
    panel.axis("off")
    headline(figure, title)
    return figure, sums


@styled
def recall(
    accuracy: Mapping[str, Sequence[float]], guessing: float, title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """The share of right answers over training steps, as means over 20 steps; and a line for a clever guess."""
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    panel, shown = figure.subplots(), {}
    for (name, values), colour in zip(accuracy.items(), (GREY, BLUE), strict=False):
        shown[name] = np.convolve(values, np.ones(20) / 20, "valid")
        steps = np.arange(len(shown[name])) + 20
        panel.plot(steps, 100 * shown[name], color=colour, linewidth=2)
        panel.text(steps[-1] + 4, 100 * shown[name][-1], name, color=colour, va="center")
    panel.axhline(100 * guessing, color=GREY, linestyle="--", linewidth=1)
    most = max(map(len, accuracy.values()))
    panel.text(0.6 * most, 100 * guessing - 3, "one of the digits just seen", color=GREY, va="top", fontsize=10)
    panel.set(xlim=(0, 1.3 * most), ylim=(0, 104), xlabel="training steps", ylabel="right answers, %")
    panel.set_xticks(range(0, most + 1, 100))
    headline(figure, title)
    return figure, shown


@styled
def taps(weights: Sequence[np.ndarray], title: str) -> tuple[Figure, np.ndarray]:
    """How far each channel's convolution looks, a panel per layer. weights: of each layer [taps, channels], the last
    tap the byte itself. Arrays: the mean size of each tap [layers, taps]."""
    sizes = np.stack([np.abs(one).mean(1)[::-1] for one in weights])
    figure = Figure(figsize=(7.4, 3.0), layout="constrained")
    panels = figure.subplots(1, len(weights), sharey=True)
    for layer, panel in enumerate(np.atleast_1d(panels)):
        panel.bar(range(sizes.shape[1]), sizes[layer], color=[GREY] + [BLUE] * (sizes.shape[1] - 1), width=0.7)
        for back, size in enumerate(sizes[layer]):
            panel.text(back, size + 0.01, f"{size:.2f}", ha="center", fontsize=9)
        panel.set_title(f"layer {layer + 1}", fontsize=11)
        panel.set_xticks(range(sizes.shape[1]))
        panel.grid(axis="x", visible=False)
    figure.supxlabel("bytes back", fontsize=11)
    np.atleast_1d(panels)[0].set_ylabel("mean size of the tap")
    headline(figure, title)
    return figure, sizes


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
        colours = [ORANGE if name == "mended" else GREY for name in values]
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
    """Networks minus the Transformer, with intervals: filled on held-out speeches, hollow on recent ones. Arrays: name
    -> [splits, (mean, half-width)]."""
    figure = Figure(figsize=(7.4, 1.7 + 0.55 * len(rows)), layout="constrained")
    panel, shown = figure.subplots(), {}
    panel.axvspan(-0.05, MARGIN, color=GREEN, alpha=0.15, linewidth=0)
    panel.axvline(0, color=GREY, linewidth=1)
    panel.text(-0.047, -0.72, "a match", color=GREEN, va="center", fontsize=10.5)
    for row, (name, splits) in enumerate(rows.items()):
        shown[name] = np.array([(one.mean, one.half_width) for one in splits])
        for (mean, half), shift, face in zip(shown[name], (-0.13, 0.13), (BLUE, "white"), strict=False):
            panel.errorbar(
                mean, row + shift, xerr=half, fmt="o", color=BLUE, markerfacecolor=face, capsize=3, markersize=6
            )
    for label, face in (("held-out", BLUE), ("recent", "white")):
        panel.plot([], [], "o", color=BLUE, markerfacecolor=face, label=label)
    panel.legend(loc="lower right")
    panel.set_yticks(range(len(rows)), list(rows))
    panel.set(ylim=(len(rows) - 0.45, -1.0), xlim=(-0.05, None), xlabel="bits per byte above the Transformer")
    panel.grid(axis="y", visible=False)
    headline(figure, title)
    return figure, shown


@styled
def behind(
    lengths: Sequence[int], bits: Mapping[str, np.ndarray], goal: np.ndarray, title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Bits per byte above the goal when all may see the last 1, 2, 4, ... bytes. bits and goal: [seeds, lengths]; a
    band from the lowest to the highest seed."""
    figure = Figure(figsize=(7.4, 3.7), layout="constrained")
    panel, shown = figure.subplots(), {}
    colours = (GREY, CYCLE[5], ORANGE)
    places = np.arange(len(lengths))
    for (name, values), colour in zip(bits.items(), colours, strict=False):
        apart = values - goal
        shown[name] = apart.mean(0)
        panel.plot(places, shown[name], "o-", color=colour, linewidth=2)
        panel.fill_between(places, apart.min(0), apart.max(0), color=colour, alpha=0.2, linewidth=0)
        panel.text(places[-1] + 0.12, shown[name][-1], name, color=colour, va="center")
    panel.axhline(0, color=GREY, linewidth=1)
    panel.text(places[-1] + 0.12, -0.004, "Transformer", color=GREY, va="top")
    panel.set_xticks(places, [str(n) for n in lengths])
    panel.set(xlabel="bytes of context", ylabel="bits per byte above\nthe Transformer", xlim=(-0.2, places[-1] + 1.9))
    headline(figure, title)
    return figure, shown
