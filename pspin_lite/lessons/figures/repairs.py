"""Figures of notebook 15: the steps from the paper's network to a Transformer, keys that know their predecessors, what
a short convolution learns, what the mended network costs, and where it is still behind. Each returns the figure and the
arrays it shows. And a table of what is planned, with the answers that there are."""

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
    """An answer of the study: its word, and the difference that it rests on (the first, if there are several), on
    held-out and on recent speeches."""
    gaps = [f"{one.mean:+.3f} ± {one.half_width:.3f}" for one, *_ in row.values if isinstance(one, Difference)]
    return f"{row.verdict}: {', '.join(gaps)}" if gaps else row.verdict


@styled
def staircase(
    steps: Sequence[tuple[str, str, Mapping[int, float]]],
    beside: Mapping[str, float],
    title: str,
    half_widths: Sequence[float] = (),
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Networks, each a change away from the one above: (name, change, bits by seed), the last of which is the goal. A
    bar is what the change is worth, half_widths are of its interval; beside: other networks, as lines at the bottom."""
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
            worth += f" ± {half_widths[row - 1]:.3f}" if half_widths else ""
            white = dict(facecolor="white", edgecolor="none", pad=0.5)
            panel.text(middle, row - 0.3, worth, ha=align, va="bottom", fontsize=10.5, bbox=white)
        panel.plot(shown[name], [row] * len(bits), "o", color=BLUE, markersize=5, zorder=3)
    panel.set_yticks(range(len(steps)), [f"{name}\n{change}" for name, change, _ in steps])
    for number, (name, value) in enumerate(sorted(beside.items(), key=lambda one: one[1])):
        panel.axvline(value, 0, 0.13, color=GREY, linestyle="--", linewidth=1.1, zorder=0)
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
def keys(
    text: str, rows: Mapping[str, Sequence[float]], asked: Sequence[int], title: str
) -> tuple[Figure, dict[str, dict[str, float]]]:
    """For each way to make keys, how strongly every byte of the text answers the query, and what the answers add up
    to. asked: of how many bytes at the text's end each query is made. Arrays: row -> byte -> weight."""
    figure = Figure(figsize=(7.4, 1.1 + 1.05 * len(rows)), layout="constrained")
    panel, sums = figure.subplots(), {}
    for row, ((label, weights), last) in enumerate(zip(rows.items(), asked, strict=True)):
        y = -1.5 * row
        panel.text(0, y + 0.62, label, fontsize=10.5, va="bottom")
        for i, (letter, weight) in enumerate(zip(text, weights, strict=True)):
            shade = dict(facecolor=BLUE, alpha=min(1, 0.35 * weight)) if weight else dict(facecolor="white")
            panel.add_patch(Rectangle((i, y - 0.4), 0.92, 0.9, linewidth=0, **shade))
            panel.add_patch(Rectangle((i, y - 0.4), 0.92, 0.9, fill=False, edgecolor=GREY, linewidth=0.8))
            shown = "␣" if letter == " " else letter
            panel.text(i + 0.46, y + 0.05, shown, ha="center", va="center", family="monospace", fontsize=13)
        frame = dict(fill=False, edgecolor=ORANGE, linewidth=2.4)
        panel.add_patch(Rectangle((len(text) - last, y - 0.4), last - 0.08, 0.9, **frame))
        sums[label] = {}
        for letter, weight in zip(text, weights, strict=True):
            if weight:
                sums[label][letter] = sums[label].get(letter, 0.0) + float(weight)
        said = "\n".join(f"{letter!r} × {weight:.2g}" for letter, weight in sums[label].items())
        panel.text(len(text) + 0.4, y + 0.05, "reads", va="center", fontsize=11, color=BLUE)
        panel.text(len(text) + 2.0, y + 0.05, said, va="center", fontsize=11, color=BLUE)
    end = -1.5 * (len(rows) - 1) - 0.7
    panel.text(0, end, "orange frame: the query; the darker, the better a byte's key fits it", va="top", fontsize=10)
    panel.set(xlim=(-0.1, len(text) + 4.6), ylim=(end - 0.45, 1.05))
    panel.axis("off")
    headline(figure, title)
    return figure, sums


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
        panel.text(1.4 * most, 100 * share + 0.6, name, color=ORANGE, ha="right", va="bottom", fontsize=9)
    panel.set(xlim=(0, 1.41 * most), ylim=(0, 104), xlabel="training steps", ylabel="right answers, %")
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
    """Networks minus the Transformer, with intervals: filled on held-out speeches, hollow on recent ones. The first is
    the one that counts. Arrays: name -> [splits, (mean, half-width)]."""
    figure = Figure(figsize=(7.4, 1.9 + 0.6 * len(rows)), layout="constrained")
    panel, shown = figure.subplots(), {}
    panel.axvspan(-0.05, MARGIN, color=GREEN, alpha=0.15, linewidth=0)
    panel.axvline(0, color=GREY, linewidth=1)
    panel.text(-0.047, -0.72, "a match", color=GREEN, va="center", fontsize=10.5)
    for row, (name, splits) in enumerate(rows.items()):
        shown[name], colour = np.array([(one.mean, one.half_width) for one in splits]), GREY if row else BLUE
        for (mean, half), shift, face in zip(shown[name], (-0.15, 0.15), (colour, "white"), strict=False):
            panel.errorbar(
                mean, row + shift, xerr=half, fmt="o", color=colour, markerfacecolor=face, capsize=3, markersize=6
            )
    for label, face in (("held-out", GREY), ("recent", "white")):
        panel.plot([], [], "o", color=GREY, markerfacecolor=face, label=label)
    panel.legend(loc="upper right")
    panel.set_yticks(range(len(rows)), list(rows))
    panel.set(ylim=(len(rows) - 0.45, -1.0), xlim=(-0.05, None))
    panel.set_xlabel("bits per byte above the Transformer (95% intervals over seeds)")
    panel.grid(axis="y", visible=False)
    headline(figure, title)
    return figure, shown


@styled
def behind(
    lengths: Sequence[int], bits: Mapping[str, np.ndarray], goal: np.ndarray, title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Bits per byte above the goal when all may see the last 1, 2, 4, ... bytes. bits and goal: [seeds, lengths]; a
    band from the lowest to the highest seed."""
    figure = Figure(figsize=(7.4, 4.0), layout="constrained")
    panel, shown = figure.subplots(), {}
    colours = (ORANGE, CYCLE[5], BLUE, GREY)
    places = np.arange(len(lengths))
    for (name, values), colour in zip(bits.items(), colours, strict=False):
        apart = values - goal
        shown[name] = apart.mean(0)
        panel.plot(places, shown[name], "o-", color=colour, linewidth=2)
        panel.fill_between(places, apart.min(0), apart.max(0), color=colour, alpha=0.15, linewidth=0)
    least = 0.017  # between two names, in bits
    ends = [*np.sort([values[-1] for values in shown.values()]), 0.0]
    for name, colour in zip([*shown, "Transformer"], (*colours[: len(shown)], GREY), strict=True):
        end = shown[name][-1] if name in shown else 0.0
        close = [other for other in ends if 0 < abs(other - end) < least]
        shift = np.sign(end - close[0]) * (least - abs(end - close[0])) / 2 if close else 0.0
        panel.text(places[-1] + 0.12, end + shift, name, color=colour, va="center" if name in shown else "bottom")
    panel.axhline(0, color=GREY, linewidth=1)
    panel.set_xticks(places, [str(n) for n in lengths])
    panel.set(ylabel="bits per byte above\nthe Transformer", xlim=(-0.2, places[-1] + 1.9))
    panel.set_xlabel("bytes of context; bands: from the lowest to the highest of the paired seeds")
    headline(figure, title)
    return figure, shown


PLANNED = {  # key of an answer -> what is tried, and why
    "mended subwords": ("the Transformer, with subwords", "is the gap as wide with longer tokens?"),
    "mended-attention bytes": ("attention behind the same convolution", "a fair comparison mends both"),
    "mended-swiglu bytes": ("SwiGLU behind the same convolution", "a fair comparison mends both"),
    "stacked bytes": ("the Transformer, against all repairs below", "each alone may be too little"),
    "convolution bytes": ("convolution on the paper's network", "does it help a layer whose gate says little?"),
    "norms bytes": (
        "long gates, norms on q, k and state",
        "with decays near a half, little older than eight bytes is left",
    ),
    "paper-norms bytes": ("the same on the paper's network", "is the short memory its only fault?"),
    "output-gate bytes": ("a gate at the state's output", "lets a layer discard what it read when nothing matched"),
    "norm-down bytes": ("a norm before W_down", "keeps the scale of spins from drifting"),
    "two-stage bytes": ("learning rate in two stages", "small late steps let ternary weights settle"),
    "steps-behind bytes": ("five steps behind the convolution", "the paper's idea, with two spins"),
    "wider bytes": ("γ up to 1 instead of a half", "the bound may hold the steps back"),
    "penalty bytes": ("a penalty on the Jacobian", "without it a layer may cease to contract"),
    "equal-parameters bytes 1": ("five steps, without the convolution", "the paper's idea, with two spins"),
    "rounding bytes 1": ("two spins in full precision", "what does the rounding cost?"),
}


def plan(rows: Mapping[str, Row]) -> str:
    """What is planned, as Markdown: a table of what has an answer, and a folded one of what is open."""
    head = "| tried | why | answer |\n|---|---|---|\n"
    lines = {True: [], False: []}
    for key, (tried, why) in PLANNED.items():
        lines[rows[key].verdict == "not run yet"].append(f"| {tried} | {why} | {in_words(rows[key])} |\n")
    answered, still = "".join(lines[False]), "".join(lines[True])
    top = head + answered if answered else "None of them has an answer yet.\n"
    more = f"\n<details><summary>{len(lines[True])} of {len(PLANNED)} are open</summary>\n\n{head}{still}\n</details>"
    return top + (more if still else "")
