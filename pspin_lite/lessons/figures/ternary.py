"""Figures of notebook 04: what rounding to three values does. Each returns the figure and what it shows.

Thresholds and scales are in units of mean |w|, where the paper's rounding has the threshold 0.5 and the scale 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, styled

RANGE = 4.0  # how far histograms reach, in units of mean |w|
BINS = np.linspace(-RANGE, RANGE, 81)


class Sample:
    """Weights whose rounding is asked for many thresholds: sorted once, then each answer is a look-up."""

    def __init__(self, w):
        w = np.asarray(w, dtype=np.float64).ravel()
        w = w / np.abs(w).mean()
        size = np.sort(np.abs(w))
        self.size = size
        self.square = (size**2).mean()
        above = np.append(np.cumsum(size[::-1])[::-1], 0.0)  # above[i]: sum of all from the i-th on
        self.above = above / len(size)
        self.density = np.histogram(w, BINS)[0] / (len(w) * np.diff(BINS))

    def kept(self, threshold):
        """Share of weights above the threshold, and the sum of their magnitudes over the number of all weights."""
        i = np.searchsorted(self.size, threshold, side="right")
        return 1 - i / len(self.size), self.above[i]

    def error(self, threshold, scale):
        """Norm of (rounded - w) over the norm of w."""
        share, total = self.kept(threshold)
        return np.sqrt(np.maximum(self.square - 2 * scale * total + scale**2 * share, 0) / self.square)

    def best_scale(self, threshold):
        """The scale with the least error: the mean magnitude of what is kept."""
        share, total = self.kept(threshold)
        return total / np.maximum(share, 1e-12)

    def cosine(self, threshold):
        """Of the rounded weights and w. The scale does not matter."""
        share, total = self.kept(threshold)
        return total / np.sqrt(np.maximum(share, 1e-12) * self.square)


def entropy(zeros: float) -> float:
    """Bits a weight that no code can beat, for a share of zeros and equally many of +1 and -1."""
    shares = np.array([zeros, (1 - zeros) / 2, (1 - zeros) / 2])
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0


@styled
def weights(w) -> tuple[Figure, dict[str, np.ndarray]]:
    """Histogram of weights, coloured by what they are rounded to; the three values are marked."""
    sample = Sample(w)
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.subplots()
    zeros = 1 - sample.kept(0.5)[0]
    _histogram(axes, sample, 0.5, 1.0)
    axes.set(xlabel="weight / mean |w|", ylabel="density")
    axes.legend()
    return figure, {"density": sample.density, "zeros": zeros}


def _histogram(axes, sample: Sample, threshold: float, scale: float) -> None:
    middle = (BINS[1:] + BINS[:-1]) / 2
    zero = np.abs(middle) <= threshold
    axes.stairs(np.where(zero, 0, sample.density), BINS, fill=True, color=BLUE, label="becomes −s or s")
    axes.stairs(np.where(zero, sample.density, 0), BINS, fill=True, color=ORANGE, label="becomes 0")
    top = 1.15 * sample.density.max()
    axes.plot([-scale, 0, scale], [0.0] * 3, "^", color=RED, markersize=9, clip_on=False, label="the three values")
    axes.set(xlim=(-RANGE, RANGE), ylim=(0, top))


@styled
def errors(w) -> tuple[Figure, dict[str, np.ndarray]]:
    """Error against threshold: with the paper's scale, with the best one; the paper's choice and the optimum."""
    sample = Sample(w)
    t = np.linspace(0, 2, 201)
    best = sample.error(t, sample.best_scale(t))
    shown = {
        "threshold": t,
        "scale 1": sample.error(t, 1.0),
        "best scale": best,
        "zeros": 1 - sample.kept(t)[0],
        "best": np.array([t[best.argmin()], best.min()]),
    }
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(t, shown["scale 1"], color=BLUE, label="error, scale = mean |w|")
    axes.plot(t, best, color=GREEN, label="error, best scale for each threshold")
    axes.plot(t, shown["zeros"], color=GREY, ls="--", label="share of zeros")
    axes.plot([0.5], [sample.error(0.5, 1.0)], "o", color=BLUE)
    axes.annotate("absmean", (0.5, sample.error(0.5, 1.0)), (6, 8), textcoords="offset points", color=BLUE)
    axes.plot(*shown["best"], "s", color=GREEN)
    axes.annotate("least squares", shown["best"], (8, -14), textcoords="offset points", color=GREEN)
    axes.set(xlabel="threshold / mean |w|", ylabel="relative error, share", xlim=(0, 2), ylim=(0, 1))
    axes.legend(loc="upper left", ncols=1)
    return figure, shown


@styled
def staircase(
    w: np.ndarray, stairs: Sequence[float], free: Sequence[float], at: Sequence[int], slopes: Sequence[float]
) -> tuple[Figure, dict[str, np.ndarray]]:
    """A loss against one weight, rounded and free; and the slopes that straight-through reports, at indices `at`."""
    stairs, at = np.asarray(stairs), list(at)
    shown = {"w": w[at], "loss": stairs[at], "slope": np.array(slopes)}
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot(w, free, color=GREY, ls="--", label="if w could be any number")
    axes.plot(w, stairs, color=BLUE, label="with rounding")
    for x, y, slope in zip(*shown.values(), strict=True):
        run = 0.2 / np.hypot(1, slope / 2) * np.array([-1, 1])
        axes.plot(x + run, y + run * slope, color=RED, lw=2)
    axes.plot(shown["w"], shown["loss"], "o", color=RED, markersize=5, label="slope that straight-through reports")
    axes.set(xlabel="one weight w", ylabel="loss")
    axes.legend()
    return figure, shown


@styled
def training(curves: Mapping[str, np.ndarray], ends: Mapping[str, float]) -> tuple[Figure, Mapping[str, np.ndarray]]:
    """Errors step by step, and errors that are reached without further steps as dashed lines."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    colours = iter(CYCLE)
    for name, values in curves.items():
        axes.plot(np.arange(len(values)), values, color=next(colours), label=name)
    for name, value in ends.items():
        axes.axhline(value, color=next(colours), ls="--", label=name)
    axes.set(xlabel="step", ylabel="relative error", ylim=(0, None))
    figure.legend(loc="outside right upper")
    return figure, curves


@styled
def latent(before, after) -> tuple[Figure, dict[str, np.ndarray]]:
    """Weights behind the rounding, before and after training, in units of their mean magnitude."""
    shown = {"at the start": Sample(before).density, "after training": Sample(after).density}
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    for (name, density), colour in zip(shown.items(), (GREY, BLUE), strict=True):
        axes.stairs(density, BINS, color=colour, lw=1.8, label=name)
    for border in (-0.5, 0.5):
        axes.axvline(border, color=RED, ls=":", label="border of rounding" if border < 0 else None)
    axes.set(xlabel="weight / mean |w|", ylabel="density", xlim=(-RANGE, RANGE), ylim=(0, None))
    axes.legend()
    return figure, shown


def three_values(samples: Mapping[str, object]) -> Callable[..., tuple[Figure, dict[str, object]]]:
    """The widget of notebook 04: draws weights, their rounding and its error, for one of several sets of weights."""
    known = {name: Sample(w) for name, w in samples.items()}
    t = np.linspace(0, 2, 81)
    curves = {name: sample.error(t, sample.best_scale(t)) for name, sample in known.items()}

    @styled
    def draw(threshold: float, scale: float, weights: str) -> tuple[Figure, dict[str, object]]:
        sample, best = known[weights], curves[weights]
        error, zeros = float(sample.error(threshold, scale)), float(1 - sample.kept(threshold)[0])
        figure = Figure(figsize=(8.2, 3.3))
        left, right = (figure.add_axes((x, 0.16, 0.41, 0.78)) for x in (0.07, 0.57))
        _histogram(left, sample, threshold, scale)
        for height, colour, name in ((0.93, BLUE, "■ becomes −s or s"), (0.85, ORANGE, "■ becomes 0")):
            left.text(0.02, height, name, color=colour, transform=left.transAxes)  # a legend takes longer
        left.set(xlabel="weight / mean |w|", ylabel="density", xticks=[-2, 0, 2], yticks=[0, 0.2, 0.4])
        right.plot(t, sample.error(t, scale), color=BLUE)
        right.plot(t, best, color=GREEN)
        right.plot([threshold], [error], "o", color=RED, markersize=8)
        for height, colour, name in ((0.13, BLUE, "━ this scale"), (0.05, GREEN, "━ the best scale")):
            right.text(0.6, height, name, color=colour, transform=right.transAxes)
        right.set(xlabel="threshold / mean |w|", ylabel="relative error", xlim=(0, 2), ylim=(0, 1.02))
        right.set(xticks=[0, 1, 2], yticks=[0, 0.5, 1])
        numbers = {
            "relative error": f"{error:.3f}",
            "share of zeros": f"{100 * zeros:.1f} %",
            "cosine": f"{float(sample.cosine(threshold)):.3f}",
            "best scale here": f"{float(sample.best_scale(threshold)):.2f}",
            "error with it": f"{float(sample.error(threshold, sample.best_scale(threshold))):.3f}",
            "bits a weight": f"{entropy(zeros):.2f}",
        }
        return figure, numbers

    return draw
