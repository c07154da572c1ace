"""Figures of the notebooks on kernels (02, 03, 07): arithmetic for each byte, plans of programs, errors, bytes. Each
returns the figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .style import BLUE, GREEN, GREY, RED, styled


@styled
def intensity(sizes: Sequence[int], counted: Mapping[int, float], m: int, ridge: float) -> tuple[Figure, np.ndarray]:
    """Flops per byte of a float32 product of two m x m matrices against the side of a tile; dots were counted."""

    def formula(sides: np.ndarray) -> np.ndarray:
        return 2 * m**3 / (4 * (2 * m**3 / sides + m**2))

    line, sides = formula(np.array(sizes, dtype=float)), np.geomspace(sizes[0], sizes[-1], 50)
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot(sides, formula(sides), color=BLUE)
    axes.plot(list(counted), list(counted.values()), "o", color=BLUE)
    axes.plot(sides, sides / 4, color=GREY, ls=":", zorder=0)
    axes.text(0.6 * sides[-1], 0.19 * sides[-1], "a quarter of the side", color=GREY, ha="right", fontsize=10)
    axes.axhline(ridge, color=RED, ls="--")
    axes.text(sides[0], 1.04 * ridge, f"below {ridge:.1f} an A100 waits, if no cache helps", color=RED, fontsize=10)
    axes.text(sides[-1], 1, "line: predicted\ndots: counted", color=BLUE, ha="right")
    enough = [size for size, value in zip(sizes, line, strict=True) if value >= ridge]
    title = f"Tiles of {enough[0]} reach" if enough else "No tile reaches"
    title += f" {ridge:.1f} flops per byte"
    axes.set_title(title, loc="left", weight="bold")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(xlabel=f"side of a tile; the matrices have {m} × {m} numbers", ylabel="flops per byte", ylim=(0, None))
    return figure, line


METHODS = (RED, BLUE, GREEN)  # of three methods, in this order, in both figures; the reference is grey


def crossing(strengths: Sequence[float], errors: Sequence[float], level: float = 1.0) -> float:
    """Where a rising error passes the level, on a line between the two points around it, both axes logarithmic."""
    above = next(i for i, error in enumerate(errors) if error > level)
    x, y = np.log(strengths[above - 1 : above + 1]), np.log(errors[above - 1 : above + 1])
    return float(np.exp(np.interp(np.log(level), y, x)))


# strength of the decay -> the reference, and for each method the gradients of all gates
Samples = Mapping[float, tuple[Sequence[float], Mapping[str, Sequence[float]]]]


def relative_errors(samples: Samples) -> dict[str, dict[float, float]]:
    """For each method and strength the largest error, relative to the largest entry of the reference."""
    errors: dict[str, dict[float, float]] = {}
    for strength, (reference, methods) in samples.items():
        exact = np.asarray(reference, float)
        for name, gradients in methods.items():
            error = np.abs(np.asarray(gradients, float) - exact).max() / np.abs(exact).max()
            errors.setdefault(name, {})[strength] = float(error)
    return errors


@styled
def decay_errors(errors: Mapping[str, Mapping[float, float]], ceiling: float = 1e3) -> tuple[Figure, dict]:
    """Largest error of the gradient of the log decays, in units of its largest entry, against the strength of the
    decay, both axes logarithmic. Above 1 the error is larger than any true entry; a tick marks where a line gets there.
    Exact zeros are drawn at the bottom."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    strengths, floor = list(next(iter(errors.values()))), 1e-9
    shown = {name: [max(value, floor) for value in values.values()] for name, values in errors.items()}
    for (name, values), colour in zip(shown.items(), METHODS, strict=False):
        inside = sum(value <= ceiling for value in values)
        leaves = [crossing(strengths, values, ceiling)] if inside < len(values) else []  # where the line ends
        axes.loglog(strengths[:inside] + leaves, values[:inside] + [ceiling] * len(leaves), color=colour)
        axes.loglog(strengths[:inside], values[:inside], "o", color=colour)
        if max(values) > 1:
            passed = crossing(strengths, values)
            axes.loglog([passed], [1], "|", color=colour, markersize=14, markeredgewidth=2)
            axes.text(1.08 * passed, 0.6, f"{passed:.2g}", color=colour, fontsize=10.5, va="top")
        below = name == list(shown)[-1]  # the lowest line has its name underneath
        place = 0.3 * min(values[:3]) if below else 2 * max(values[:3])
        axes.text(strengths[0], place, name, color=colour, fontsize=10.5, va="top" if below else "bottom")
    axes.axhline(1, color=GREY, ls="--")
    axes.text(strengths[0], 2, "above: larger than any true gradient", color=GREY, fontsize=10.5)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1, 100], [f"$10^{{{n}}}$" for n in (-8, -6, -4, -2, 0, 2)])
    axes.minorticks_off()
    axes.set(
        xlabel="how strongly the head forgets, −g", ylabel="largest error of ∂g / largest ∂g", ylim=(floor / 2, ceiling)
    )
    axes.set_title("The shortcut drowns in rounding, the sums do not", loc="left", weight="bold", pad=14)
    return figure, shown


def gate_gradients(samples: Samples) -> Callable[..., tuple[Figure, dict[str, float]]]:
    """For an Explorer: the reference and a method, in units of the reference's largest entry."""
    errors = relative_errors(samples)

    @styled
    def draw(strength: float, method: str) -> tuple[Figure, dict[str, float]]:
        reference, methods = samples[strength]
        reference, estimate = np.asarray(reference, float), np.asarray(methods[method], float)
        largest = np.abs(reference).max()
        error = errors[method][strength]
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.subplots()
        gates = np.arange(1, len(reference) + 1)
        lines = reference / largest, np.clip(estimate / largest, -1.9, 1.9)
        colour = METHODS[list(methods).index(method)]
        axes.plot(gates, lines[0], color=GREY, lw=4, alpha=0.4, label="reference, float64")
        axes.plot(gates, lines[1], color=colour, lw=1.3, label=method)
        figure.legend(loc="outside lower left", ncols=2, fontsize=10.5, labelcolor="linecolor")
        low, high = min(map(np.min, lines)), max(map(np.max, lines))
        size = f"{error:.2g} of" if error < 1 else f"{error:.0f} times"
        axes.set_title(f"Log decays of −{strength:g}: off by {size} the largest", loc="left", weight="bold")
        axes.set_xticks([1, 16, 32, 48, 64], ["1", "16", "32", "48", "64"])
        axes.set_yticks([-1, 0, 1], ["−1", "0", "1"])
        axes.set(xlabel="gate t", ylabel="∂g, largest true entry = 1", ylim=(low - 0.1, high + 0.1))
        return figure, {"relative error": error, "largest true entry": float(largest)}

    return draw
