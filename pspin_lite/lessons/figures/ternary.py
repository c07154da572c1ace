"""Figures of notebook 04: what rounding to three values does. Each returns the figure and what it shows.

Thresholds and scales are in units of mean |w|, where the paper's rounding has the threshold 0.5 and the scale 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ...costs import Footprint
from .diagram import INK, MINUS, PLUS, tint
from .style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, styled

RANGE = 4.0  # how far histograms reach, in units of mean |w|
BINS = np.linspace(-RANGE, RANGE, 81)
TAILS = np.linspace(-10, 10, 101)  # bins of trained weights, which reach further
ZERO = "#8A8A8A"  # darker than diagram.py's: it is text here too
BECOMES = ((-1, MINUS, "becomes −s"), (0, ZERO, "becomes 0"), (1, PLUS, "becomes s"))
KEYS = (*((f"■ {name}", colour) for _, colour, name in BECOMES), ("▲ −s, 0 and s", "black"))  # of the widget
WAYS = (PURPLE, GREEN)  # rounded afterwards, trained with rounding: blue and orange are codes
LINES = (("━ this scale", BLUE), ("━ best scale", GREEN), ("● you are here", RED))
Numbers = float | np.ndarray


class Sample:
    """Weights whose rounding is asked for many thresholds: sorted once, then each answer is a look-up."""

    def __init__(self, w: ArrayLike, bins: np.ndarray = BINS):
        w = np.asarray(w, dtype=np.float64).ravel()
        w = w / np.abs(w).mean()
        size = np.sort(np.abs(w))
        self.size = size
        self.square = (size**2).mean()
        above = np.append(np.cumsum(size[::-1])[::-1], 0.0)  # above[i]: sum of all from the i-th on
        self.above = above / len(size)
        self.density = np.histogram(w, bins)[0] / (len(w) * np.diff(bins))

    def kept(self, threshold: Numbers) -> tuple[Numbers, Numbers]:
        """Share of weights above the threshold, and the sum of their magnitudes over the number of all weights."""
        i = np.searchsorted(self.size, threshold, side="right")
        return 1 - i / len(self.size), self.above[i]

    def error(self, threshold: Numbers, scale: Numbers) -> Numbers:
        """Norm of (rounded - w) over the norm of w."""
        share, total = self.kept(threshold)
        return np.sqrt(np.maximum(self.square - 2 * scale * total + scale**2 * share, 0) / self.square)

    def best_scale(self, threshold: Numbers) -> Numbers:
        """The scale with the least error: the mean magnitude of what is kept."""
        share, total = self.kept(threshold)
        return total / np.maximum(share, 1e-12)

    def cosine(self, threshold: Numbers) -> Numbers:
        """Of the rounded weights and w. The scale does not matter."""
        share, total = self.kept(threshold)
        return total / np.sqrt(np.maximum(share, 1e-12) * self.square)


def entropy(zeros: float) -> float:
    """Bits per weight that no code can beat, for a share of zeros and equally many of +1 and -1."""
    shares = np.array([zeros, (1 - zeros) / 2, (1 - zeros) / 2])
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0


PARTS = {
    "ternary MLP": GREEN,
    "embedding": tint(PURPLE, 0.5),
    "state space": tint(ORANGE, 0.5),
}  # as in architecture.py


@styled
def sizes(models: Mapping[str, Footprint]) -> tuple[Figure, dict[str, np.ndarray]]:
    """MiB of each part of some models, end to end: above as without rounding, below packed. Arrays: MiB of the parts,
    in the order of PARTS, [2, parts]."""
    figure = Figure(figsize=(7.0, 3.2))
    axes = figure.add_axes((0.28, 0.27, 0.68, 0.6))
    names, places, shown = [], [], {}
    for i, (name, model) in enumerate(models.items()):
        rows = {row.name: row for row in model.rows}
        bits = np.array([[getattr(rows[part], kind) for part in PARTS] for kind in ("uncompressed_bits", "bits")])
        shown[name] = bits * [rows[part].params for part in PARTS] / 8 / 2**20
        for j, values in enumerate(shown[name]):
            y, left = -2.7 * i - j, 0.0
            for value, (part, colour) in zip(values, PARTS.items(), strict=True):
                axes.barh(y, value, 0.8, left, color=colour, label=part if i == j == 0 else None)
                left += value
            axes.text(left + 2, y, f"{left:.0f}", va="center", fontsize=10)
            names.append(f"{name}, {'ternary' if j else 'unrounded'}")
            places.append(y)
    axes.set_yticks(places, names)
    axes.set(xlabel="MiB", xlim=(0, 180))
    axes.grid(axis="y", visible=False)
    figure.text(0.02, 0.93, "Only the green part shrinks by 8", fontsize=12, weight="bold")
    figure.legend(loc="lower center", ncols=3, fontsize=9.5, handlelength=1)
    return figure, shown


def _title(axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=12, weight="bold")


def _histogram(axes: Axes, sample: Sample, threshold: float, scale: float) -> None:
    middle = (BINS[1:] + BINS[:-1]) / 2
    code = np.sign(middle) * (np.abs(middle) > threshold)
    for value, colour, name in BECOMES:
        axes.stairs(np.where(code == value, sample.density, 0), BINS, fill=True, color=colour, label=name)
    top = 1.15 * sample.density.max()
    marks = dict(color=INK, markeredgecolor="white", markersize=11, clip_on=False, label="the three values")
    axes.plot([-scale, 0, scale], [0.0] * 3, "^", **marks)
    axes.set(xlim=(-RANGE, RANGE), ylim=(0, top))


@styled
def race(errors: Mapping[str, Mapping[str, ArrayLike]]) -> tuple[Figure, dict[str, np.ndarray]]:
    """Test errors of ways of rounding, task by task: a dot for each seed, and their mean, [seeds, 2] each: with the
    matrix's own scale (filled) and with a fitted one (hollow)."""
    figure = Figure(figsize=(7.0, 3.0))
    panels = np.atleast_1d(figure.subplots(1, len(errors), sharey=True))
    figure.subplots_adjust(left=0.27, right=0.97, bottom=0.19, top=0.74, wspace=0.12)
    shown = {}
    for axes, (task, ways) in zip(panels, errors.items(), strict=True):
        for i, (way, values) in enumerate(ways.items()):
            values = shown[f"{task}: {way}"] = np.asarray(values)
            colour, y = WAYS[i], len(ways) - 1 - i
            for column, lift in ((0, 0.16), (1, -0.16)):
                face = colour if column == 0 else "white"
                axes.plot(values[:, column], [y + lift] * len(values), "o", color=colour, mfc=face, ms=6)
        axes.set_yticks(range(len(ways)), list(ways)[::-1])
        axes.set(xlim=(0, 0.62), ylim=(-0.6, len(ways) - 0.4), xticks=[0, 0.2, 0.4, 0.6], xlabel="test error")
        axes.set_title(task, fontsize=10.5)
    figure.text(0.02, 0.93, "Rounding in training pays where few directions matter", fontsize=12, weight="bold")
    figure.text(0.02, 0.86, "filled: scale mean |w|; hollow: fitted scale; one dot per seed", fontsize=9.5, color=GREY)
    return figure, shown


@styled
def latent(dense: ArrayLike, hidden: ArrayLike) -> tuple[Figure, dict[str, np.ndarray]]:
    """Trained weights, in full precision and behind the rounding, in units of their mean magnitude. Below, a tick for
    each weight: tails are too thin for a density. Arrays: the densities, over TAILS."""
    figure, shown = Figure(figsize=(7.0, 3.4), layout="constrained"), {}
    axes = figure.subplots()
    for i, (name, w) in enumerate({"full precision": dense, "hidden, trained with rounding": hidden}.items()):
        w = np.asarray(w, dtype=np.float64).ravel()
        shown[name] = Sample(w, TAILS).density
        axes.stairs(shown[name], TAILS, color=WAYS[i], lw=1.8, label=name)
        axes.plot(w / np.abs(w).mean(), [-0.09 - 0.1 * i] * len(w), "|", color=WAYS[i], ms=7, mew=0.8)
    for border in (-0.5, 0.5):
        axes.axvline(border, color="black", ls=":", lw=1, label="rounding threshold" if border < 0 else None)
    axes.set(xlabel="weight / mean |w|", ylabel="density", xlim=(TAILS[0], TAILS[-1]), ylim=(-0.26, None))
    axes.set(xticks=range(-8, 9, 2), yticks=[0, 0.5, 1])
    axes.text(TAILS[-1], -0.14, "a tick per weight", color=GREY, fontsize=9, ha="right", va="center")
    _title(axes, "Hidden weights pile up at the rounding thresholds")
    axes.legend(fontsize=9.5)
    return figure, shown


@styled
def cost(bits: Mapping[str, ArrayLike], difference: float, margin: float) -> tuple[Figure, dict[str, np.ndarray]]:
    """Final bits per byte of two networks, a dot for each seed and a line at the mean; beside them the difference of
    the first from the second, with its interval. Arrays: the dots."""
    shown = {name: np.asarray(values) for name, values in bits.items()}
    figure = Figure(figsize=(7.0, 2.3))
    left, right = figure.add_axes((0.14, 0.26, 0.4, 0.46)), figure.add_axes((0.6, 0.26, 0.37, 0.46))
    for y, colour, values in zip((1, 0), WAYS[::-1], shown.values(), strict=True):
        left.plot([values.mean()] * 2, [y - 0.3, y + 0.3], color=GREY, lw=2)
        left.plot(values, [y] * len(values), "o", color=colour, ms=7, alpha=0.8)
    left.set_yticks((1, 0), list(shown))
    left.set(ylim=(-0.6, 1.6), xlabel="bits per byte")
    left.locator_params(axis="x", nbins=4)
    right.axvline(0, color=GREY, ls="--", lw=1.2)
    right.errorbar([difference], [0], xerr=[margin], fmt="o", color=INK, ms=7, lw=2, capsize=5)
    right.text(0, 0.72, " no cost", color=GREY, fontsize=9.5, va="center")
    wide = 1.25 * (abs(difference) + margin)
    right.set(xlim=(-wide, wide), ylim=(-1, 1), yticks=[], xlabel="difference in bits per byte")
    right.locator_params(axis="x", nbins=5)
    left.set_title("three seeds each", fontsize=10.5)
    right.set_title("{} minus {}, with interval".format(*shown), fontsize=10.5)
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
    figure.text(0.02, 0.9, "Three seeds detect no cost of rounding", fontsize=12, weight="bold")
    return figure, shown


@styled
def growth(fresh: ArrayLike, trained: ArrayLike) -> tuple[Figure, np.ndarray]:
    """The scale of each layer before and after training, an arrow each. Array: by which factor each has grown."""
    fresh, trained = np.asarray(fresh), np.asarray(trained)
    factors = trained / fresh
    figure = Figure(figsize=(7.0, 2.5), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(fresh))[::-1]
    for y, start, end, factor in zip(places, fresh, trained, factors, strict=True):
        axes.annotate("", (end, y), (start, y), arrowprops=dict(arrowstyle="-|>", color=GREEN, lw=2.2, shrinkA=4))
        axes.text(1.02 * end, y, f"× {factor:.1f}", va="center", fontsize=10)
    axes.plot(fresh, places, "o", color=GREEN, mfc="white", ms=7)
    axes.set_yticks(places, [f"layer {i}" for i in range(len(fresh))])
    axes.set(xlabel=r"scale $s$ of $W_{\mathrm{int}}$, fresh → trained", xlim=(0, 1.15 * trained.max()))
    axes.set_ylim(-0.6, len(fresh) - 0.4)
    axes.grid(axis="y", visible=False)
    _title(axes, "Training raised the scale in every layer" if (factors > 1).all() else "The scale before and after")
    return figure, factors


def three_values(samples: Mapping[str, object]) -> Callable[..., tuple[Figure, dict[str, object]]]:
    """The widget of notebook 04: draws weights, their rounding and its error, for one of several sets of weights."""
    known = {name: Sample(w) for name, w in samples.items()}
    t = np.linspace(0, 2, 41)  # the stops of the slider
    curves = {name: sample.error(t, sample.best_scale(t)) for name, sample in known.items()}

    @styled
    def draw(threshold: float, scale: float, weights: str) -> tuple[Figure, dict[str, object]]:
        sample, best = known[weights], curves[weights]
        error, zeros = float(sample.error(threshold, scale)), float(1 - sample.kept(threshold)[0])
        figure = Figure(figsize=(8.2, 3.5))
        left, right = (figure.add_axes((x, 0.15, 0.41, 0.74)) for x in (0.07, 0.57))
        _histogram(left, sample, threshold, scale)
        for i, (text, colour) in enumerate(KEYS):  # quicker than a legend
            left.text(0.02, 0.93 - 0.08 * i, text, color=colour, transform=left.transAxes)
        left.set(xlabel="weight / mean |w|", ylabel="density", xticks=[-2, 0, 2], yticks=[0, 0.2, 0.4])
        right.plot(t, sample.error(t, scale), color=BLUE)
        right.plot(t, best, color=GREEN)
        right.plot([threshold], [error], "o", color=RED, markersize=8)
        for i, (text, colour) in enumerate(LINES):
            right.text(0.53, 0.21 - 0.08 * i, text, color=colour, transform=right.transAxes)
        right.set(xlabel="threshold / mean |w|", ylabel="relative error", xlim=(0, 2), ylim=(0, 1.02))
        right.set(xticks=[0, 1, 2], yticks=[0, 0.5, 1])
        _title(left, f"{100 * zeros:.0f}% of the weights become 0")
        _title(right, f"error {error:.3f}, lowest possible {best.min():.3f}")
        numbers = {
            "relative error": f"{error:.3f}",
            "share of zeros": f"{100 * zeros:.1f} %",
            "cosine": f"{float(sample.cosine(threshold)):.3f}",
            "best scale here": f"{float(sample.best_scale(threshold)):.2f}",
            "error with it": f"{float(sample.error(threshold, sample.best_scale(threshold))):.3f}",
            "bits per weight": f"{entropy(zeros):.2f}",
        }
        return figure, numbers

    draw.samples = known  # for the live form (lessons/live)
    return draw
