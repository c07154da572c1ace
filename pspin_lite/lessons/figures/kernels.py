"""Figures of the notebooks on kernels (02, 03, 07): arithmetic for each byte, plans of programs, errors, bytes. Each
returns the figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .style import BLUE, CYCLE, GREEN, GREY, RED, styled


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
    axes.axhline(ridge, color=RED, ls="--")
    axes.text(sides[0], 1.04 * ridge, f"below {ridge:.1f} an A100 waits (without tensor cores)", color=RED, fontsize=10)
    axes.text(sides[-1], 1, "line: predicted\ndots: counted", color=BLUE, ha="right")
    enough = [size for size, value in zip(sizes, line, strict=True) if value >= ridge]
    title = f"Tiles of {enough[0]} reach" if enough else "No tile reaches"
    title += f" {ridge:.1f} flops per byte"
    axes.set_title(title, loc="left", weight="bold")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(xlabel=f"side of a tile; the matrices have {m} × {m} numbers", ylabel="flops per byte", ylim=(0, None))
    return figure, line


def crossing(strengths: Sequence[float], errors: Sequence[float], level: float = 1.0) -> float:
    """Where a rising error passes the level, on a line between the two points around it, both axes logarithmic."""
    above = next(i for i, error in enumerate(errors) if error > level)
    x, y = np.log(strengths[above - 1 : above + 1]), np.log(errors[above - 1 : above + 1])
    return float(np.exp(np.interp(np.log(level), y, x)))


@styled
def decay_errors(
    decays: Sequence[float], errors: Mapping[str, Sequence[float]], ceiling: float = 1e3
) -> tuple[Figure, dict]:
    """Relative error of the gradient of the log decays against the strength of the decay, both axes logarithmic. An
    error above 1 means that no digit is right. Exact zeros are drawn at the bottom; a line that leaves at the top ends
    in an arrow there."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    strengths, floor = [-g for g in decays], 1e-9
    shown = {name: [max(value, floor) for value in values] for name, values in errors.items()}
    for (name, values), colour in zip(shown.items(), (RED, BLUE, GREEN), strict=False):
        leaves = max(values) > ceiling
        inside = sum(value <= ceiling for value in values)
        exit_at = [crossing(strengths, values, ceiling)] if leaves else []
        axes.loglog(strengths[:inside] + exit_at, values[:inside] + [ceiling] * leaves, color=colour)
        axes.loglog(strengths[:inside], values[:inside], "o", color=colour)
        if leaves:
            axes.loglog(exit_at, [ceiling], "^", color=colour, markersize=9, clip_on=False)
        below = name == list(shown)[-1]  # the lowest line has its name underneath
        place = 0.3 * min(values[:3]) if below else 2 * max(values[:3])
        axes.text(strengths[0], place, name, color=colour, fontsize=10.5, va="top" if below else "bottom")
    if any(max(values) > ceiling for values in shown.values()):
        axes.text(strengths[0], ceiling / 2, "▲ off the scale", color=GREY, fontsize=10.5, va="top")
    axes.axhline(1, color=GREY, ls="--")
    axes.text(strengths[0], 2, "above this line no digit is right", color=GREY, fontsize=10.5)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1, 100], [f"$10^{{{n}}}$" for n in (-8, -6, -4, -2, 0, 2)])
    axes.minorticks_off()
    axes.set(xlabel="strength of the decay, −g", ylabel="relative error of ∂g", ylim=(floor / 2, ceiling))
    axes.set_title("The shortcut drowns in rounding, the sums do not", loc="left", weight="bold", pad=14)
    return figure, shown


Samples = Mapping[float, tuple[Sequence[float], Mapping[str, Sequence[float]]]]


def gate_gradients(samples: Samples) -> Callable[..., tuple[Figure, dict[str, float]]]:
    """For an Explorer. samples: strength of the decay -> the reference, and for each method the gradients of all gates.
    Both are drawn in units of the reference's largest entry."""

    @styled
    def draw(strength: float, method: str) -> tuple[Figure, dict[str, float]]:
        reference, methods = samples[strength]
        reference, estimate = np.array(reference, float), np.array(methods[method], float)
        largest = np.abs(reference).max()
        error = float(np.abs(estimate - reference).max() / largest)
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.subplots()
        gates = np.arange(1, len(reference) + 1)
        lines = reference / largest, np.clip(estimate / largest, -1.9, 1.9)
        axes.plot(gates, lines[0], color=GREEN, lw=4, alpha=0.5, label="reference, float64")
        axes.plot(gates, lines[1], color=RED, lw=1.3, label=method)
        figure.legend(loc="outside lower left", ncols=2, fontsize=10.5, labelcolor="linecolor")
        low, high = min(map(np.min, lines)), max(map(np.max, lines))
        size = f"{error:.2g} of" if error < 1 else f"{error:.0f} times"
        axes.set_title(f"Log decays of −{strength:g}: off by {size} the largest", loc="left", weight="bold")
        axes.set_xticks([1, 16, 32, 48, 64], ["1", "16", "32", "48", "64"])
        axes.set_yticks([-1, 0, 1], ["−1", "0", "1"])
        axes.set(xlabel="gate t", ylabel="∂g, largest true entry = 1", ylim=(low - 0.1, high + 0.1))
        return figure, {"relative error": error, "largest true entry": float(largest)}

    return draw


@styled
def stacked_bytes(
    parts: Mapping[str, Mapping[str, float]],
    title: str = "",
    colours: Mapping[str, str] | None = None,
    unit: str = "MiB",
) -> tuple[Figure, dict]:
    """One horizontal bar for each way of doing something, made of what it moves; names of parts in the legend."""
    figure = Figure(figsize=(7.4, 0.55 * len(parts) + 2.0), layout="constrained")
    axes = figure.subplots()
    kinds = list(dict.fromkeys(kind for row in parts.values() for kind in row))
    names = list(parts)
    left = np.zeros(len(names))
    for kind, colour in (colours or dict(zip(kinds, CYCLE, strict=False))).items():
        sizes = np.array([parts[name].get(kind, 0.0) for name in names])
        axes.barh(names, sizes, left=left, color=colour, label=kind, height=0.6)
        left += sizes
    for i, total in enumerate(left):
        axes.text(total, i, f"  {total:.3g} {unit}", va="center")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel=f"moved through memory ({unit})", xlim=(0, 1.2 * left.max()))
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, weight="bold")
    figure.legend(loc="outside lower center", ncols=min(len(kinds), 5))
    return figure, dict(zip(names, left.tolist(), strict=True))


@styled
def steps_taken(count: np.ndarray, tile: int) -> tuple[Figure, np.ndarray]:
    """Steps of each token, and over each tile of tokens, for each of them, the steps of its slowest one."""
    parts = np.split(count, range(tile, len(count), tile))
    slowest = np.concatenate([np.full(len(part), part.max()) for part in parts])
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.bar(np.arange(1, len(count) + 1), count, color=BLUE, label="a token's steps")
    for i, part in enumerate(parts):  # a gap between two tiles, also where both take as long
        ends = i * tile + np.array([0.9, len(part) + 0.1])
        axes.plot(ends, [part.max()] * 2, color=RED, label=f"until its tile of {tile} is done" if i == 0 else None)
    axes.set(xlabel="token, from weakly to strongly driven", ylabel="steps", ylim=(0, 1.35 * slowest.max()))
    axes.set_title(
        f"Tokens take {count.mean():.1f} steps on average, their tiles {slowest.mean():.0f}",
        loc="left",
        fontsize=12,
        weight="bold",
    )
    axes.legend(loc="upper right", ncols=2)
    return figure, slowest
