"""Figures of the notebooks on kernels (02, 03, 07): arithmetic for each byte, plans of programs, errors, bytes. Each
returns the figure and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, styled


@styled
def intensity(
    sizes: Sequence[int], counted: Mapping[int, float], M: int, N: int, K: int, ridge: float
) -> tuple[Figure, np.ndarray]:
    """Flops for each byte of a float32 product (M, K) x (K, N) against the side of square tiles; dots were counted."""
    sides = np.array(sizes, dtype=float)
    line = 2 * M * N * K / (4 * (M * N * K * 2 / sides + M * N))
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot(sides, line, color=BLUE, label="predicted")
    axes.plot(list(counted), list(counted.values()), "o", color=BLUE, label="counted")
    axes.axhline(ridge, color=RED, ls="--", label=f"an A100 needs {ridge:.1f}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set(xlabel="side of a tile", ylabel="flops for each byte", ylim=(0, None))
    axes.legend(loc="upper left")
    return figure, line


Plan = list[tuple[str, int, float, float]]  # kind of work, program, start, end


@styled
def schedule(heads: int, chunks: int) -> tuple[Figure, dict[str, Plan]]:
    """Who works when, in the two forms of the chunked kernel. One unit of time is a chunk's write or its read; that
    the pass along the chunks takes a fifth of that for each chunk is for the drawing only."""
    fifth = 0.2
    walk = [("read and write", head, 2.0 * n, 2.0 * n + 2) for head in range(heads) for n in range(chunks)]
    programs = range(heads * chunks)
    at_once = [("write", p, 0.0, 1.0) for p in programs]
    at_once += [("pass", head, 1.0, 1.0 + fifth * chunks) for head in range(heads)]
    at_once += [("read", p, 1 + fifth * chunks, 2 + fifth * chunks) for p in programs]
    plans = {"walk": walk, "all chunks at once": at_once}
    colours = {"read and write": BLUE, "write": ORANGE, "pass": RED, "read": GREEN}
    figure = Figure(figsize=(8.0, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    shown: dict[str, object] = {}
    for axes, (name, plan) in zip(panels, plans.items(), strict=True):
        for kind, program, start, end in plan:
            bar = axes.barh(
                program + 1, end - start, left=start, height=0.75, color=colours[kind], ec="white", label=kind
            )
            shown.setdefault(kind, bar)
        axes.set(title=name, xlabel="time (a chunk's read = 1)")
        axes.grid(axis="y", visible=False)
    panels[0].set(ylabel="program", ylim=(heads * chunks + 0.7, 0.3), xlim=(0, 2 * chunks))
    panels[0].set_yticks(range(1, heads * chunks + 1))
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=4)
    return figure, plans


@styled
def decay_errors(decays: Sequence[float], errors: Mapping[str, Sequence[float]]) -> tuple[Figure, dict]:
    """Relative error of the gradient of the log decays against the strength of the decay, both axes logarithmic. An
    error above 1 means that no digit is right. Exact zeros are drawn at the bottom."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    strengths, floor = [-g for g in decays], 1e-9
    shown = {name: [max(value, floor) for value in values] for name, values in errors.items()}
    for (name, values), colour in zip(shown.items(), (RED, BLUE, GREEN), strict=False):
        axes.loglog(strengths, values, "o-", color=colour, label=name)
    axes.axhline(1, color=GREY, ls="--")
    axes.text(strengths[0], 4, "above this line no digit is right", color=GREY, fontsize=9.5)
    axes.set(xlabel="strength of the decay, −G", ylabel="relative error of dG", ylim=(floor / 2, 1e8))
    axes.legend(loc="upper left")
    return figure, shown


@styled
def stacked_bytes(parts: Mapping[str, Mapping[str, float]], unit: str = "MB") -> tuple[Figure, dict]:
    """One horizontal bar for each way of doing something, made of what it moves; names of parts in the legend."""
    figure = Figure(figsize=(8.0, 0.55 * len(parts) + 1.9), layout="constrained")
    axes = figure.subplots()
    kinds = list(dict.fromkeys(kind for row in parts.values() for kind in row))
    names = list(parts)
    left = np.zeros(len(names))
    for kind, colour in zip(kinds, CYCLE, strict=False):
        sizes = np.array([parts[name].get(kind, 0.0) for name in names])
        axes.barh(names, sizes, left=left, color=colour, label=kind, height=0.6)
        left += sizes
    for i, total in enumerate(left):
        axes.text(total, i, f"  {total:.3g} {unit}", va="center")
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel=f"moved through memory ({unit})", xlim=(0, 1.18 * left.max()))
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
        axes.plot(ends, [part.max()] * 2, color=RED, label=f"until its tile of {tile} rests" if i == 0 else None)
    axes.set(xlabel="token, from weakly to strongly driven", ylabel="steps", ylim=(0, 1.35 * slowest.max()))
    axes.legend(loc="upper right", ncols=2)
    return figure, slowest
