"""Drawings of the attractor: two spins that settle (notebook 05), the echo of a nudge and what is kept for the backward
pass (notebook 06). Each returns the figure and the numbers in it."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ... import attractor, fixed_points
from .diagram import BACKWARD, DRIVE, FORWARD, INK, PLUS, SPIN, arrow, box, canvas, label, line, tint
from .style import styled

MANY = 500  # steps that count as all of them


@styled
def settling(steps: int = 6, gamma: float = 0.5, scale: float = 4.0) -> tuple[Figure, np.ndarray]:
    """The pair "agree": above, who acts on whom; below, the same loop unrolled in time with the spins after each step.

    Array: the spins y_0 .. y_steps and, last, at rest, [steps + 2, 2]."""
    z, w_int, damping = fixed_points.two_spins("agree", gamma, scale)
    values = [attractor.unrolled(z, w_int, damping, n)[0] for n in (*range(steps + 1), MANY)]
    figure, axes = canvas(7.6, 4.5, "Two spins pull each other along until a step changes nothing")
    feedback = gamma * scale
    for i, (drive, left) in enumerate(((2, 19), (61, 43))):
        u, a = z[0, i].item(), z[0, 2 + i].item()
        box(axes, drive, 28, 13, 8, f"drive\n$u$: {u:g}   $a$: {a:g}", DRIVE, 9.5)
        gate = torch.sigmoid(z[0, 2 + i]).item()
        words = r"$\tanh(u)\,\sigma(a)$" + f"\ngate {100 * gate:.0f}% open"
        box(axes, left, 26.5, 14, 11, f"spin {i + 1}\n{words}", SPIN, 9.5)
    arrow(axes, (15, 32), (18.8, 32), DRIVE)
    arrow(axes, (61, 32), (57.2, 32), DRIVE)
    arrow(axes, (33.2, 34.5), (42.8, 34.5), PLUS, bend=0.25)
    arrow(axes, (42.8, 29.5), (33.2, 29.5), PLUS, bend=0.25)
    label(axes, 38, 32, rf"$\times\,\gamma w = {feedback:g}$", PLUS, 10)
    columns, pitch = 11.0, 8.1
    for n, pair in enumerate(values):
        x, last = columns + pitch * n, n == steps + 1
        label(axes, x + 3, 21, "at rest" if last else f"$y_{n}$", size=10)
        for row, y in enumerate((13, 5)):
            box(axes, x, y, 6, 5, "", SPIN)
            axes.patches[-1].set_facecolor(tint(SPIN, 0.08 + 0.6 * abs(pair[row].item())))
            label(axes, x + 3, y + 2.5, f"{pair[row]:.2f}", size=9.5)
            if last:
                label(axes, x - 1.05, y + 2.5, "…", FORWARD, 11)
            elif n < steps:
                arrow(axes, (x + 6.1, y + 2.5), (x + pitch - 0.1, (13, 5)[1 - row] + 2.5), PLUS, width=1)
    label(axes, 1.5, 15.5, "spin 1", ha="left")
    label(axes, 1.5, 7.5, "spin 2", ha="left")
    label(
        axes, 1.5, 1.6, "each step: the drive again, and the other spin as it was a step ago", FORWARD, 9.5, ha="left"
    )
    return figure, np.stack([pair.numpy() for pair in values])


@styled
def echo(z: float = 0.2, feedback: float = 0.5, terms: int = 5) -> tuple[Figure, dict[str, np.ndarray | float]]:
    """One spin y = tanh(z + feedback * y) at rest: what a nudge of its drive does directly, once around the loop, twice
    around .., laid end to end until they reach the exact gradient.

    Arrays: parts [terms], the exact sum, the factor rho of one round."""
    y = 0.0
    for _ in range(MANY):
        y = math.tanh(z + feedback * y)
    slope = 1 - y * y
    rho = slope * feedback
    parts, exact = slope * rho ** np.arange(terms), slope / (1 - rho)
    figure, axes = canvas(7.6, 3.7, f"The echoes of a nudge add up to the exact gradient, {exact:.3f}")
    box(axes, 2, 13, 8, 6, "nudge\nof $z$", DRIVE)
    box(axes, 15, 12, 10, 8, "spin\n$y$", SPIN)
    arrow(axes, (10.2, 16), (14.8, 16), DRIVE)
    arrow(axes, (24.5, 20.4), (15.5, 20.4), PLUS, bend=-0.75)
    label(axes, 20, 27.5, "once around:\n" + rf"$\times\,\rho = {rho:.2f}$", PLUS)
    label(axes, 13.5, 7.5, rf"direct effect: $\varphi_u = {slope:.3f}$", size=9.5)
    left, wide, top, high = 31.0, 38.0, 27.5, 4.6
    names = ("direct", "echo", "echo of the echo", *(f"{n} times around" for n in range(3, terms)))
    scale = wide / exact
    for n, (name, part) in enumerate(zip(names, parts, strict=True)):
        start, y0 = left + scale * parts[:n].sum(), top - high * n
        axes.add_patch(Rectangle((start, y0), scale * part, 3.2, fc=tint(BACKWARD, 0.35), ec=BACKWARD, lw=1.2))
        inside = n == 0
        text = f"{name}: {part:.3f}" if n == 0 else f"{name}: + {part:.3f}"
        at = start + scale * part / 2 if inside else start - 0.8
        label(axes, at, y0 + 1.6, text, size=9.5, ha="center" if inside else "right")
        if n + 1 < terms:
            line(axes, [start + scale * part] * 2, [y0, y0 - high + 3.2], BACKWARD, ":")
    end = left + wide
    line(axes, [end, end], [3.5, 31.5], INK, "--")
    label(axes, end, 2, f"exact: {exact:.3f}", size=9.5)
    missing = rho**terms
    label(axes, left, 2, f"after {terms - 1} echoes {100 * missing:.1f}% is missing", BACKWARD, 9.5, ha="left")
    return figure, dict(parts=parts, exact=exact, rho=rho)


@styled
def saved(steps: int = 5, tokens: int = 8, spins: int = 32, size: int = 8) -> tuple[Figure, dict[str, int]]:
    """What autograd keeps for the backward pass: of each unrolled step, or once. Numbers: bytes."""
    array = tokens * spins * size
    kept = dict(unrolled=(4 * steps + 2) * array, implicit=3 * array)
    figure, axes = canvas(7.6, 4.3, f"Implicit keeps 3 arrays, {steps} unrolled steps keep {4 * steps + 2}")
    first, pitch = 2.0, 9.6
    rows = {
        "unrolled": (
            24,
            [2] + [4] * steps,
            r"each step: $\tanh u$, $\sigma(a)$, $y$, $\gamma y$; $y_0$ keeps only the first two",
        ),
        "implicit": (7, [0] * steps + [3], "only the end: " + r"$\varphi_u$, $\varphi_a$, $y_K$"),
    }
    for name, (y, counts, words) in rows.items():
        label(axes, first, y + 13, f"{name}", ha="left", weight="bold")
        label(axes, first + 11, y + 13, words, FORWARD, 9.5, ha="left")
        for n, count in enumerate(counts):
            x = first + pitch * n
            box(axes, x, y + 5.2, 7, 5, f"$y_{n}$", SPIN)
            if n:
                arrow(axes, (x - pitch + 7.1, y + 7.7), (x - 0.1, y + 7.7), FORWARD)
            for i in range(count):
                box(axes, x + 1.2 + 2.5 * (i % 2), y + 2.4 - 2.4 * (i // 2), 2.0, 2.0, "", BACKWARD)
        box(axes, 60.5, y, 14, 10.2, f"{sum(counts)} arrays\n{kept[name] / 1024:.0f} KiB", BACKWARD, 11)
    words = f"red-orange: kept for the backward pass; {tokens} tokens, {spins} spins, {size} bytes per number"
    label(axes, first, 2.6, words, FORWARD, 9.5, ha="left")
    return figure, kept
