"""Drawings of notebook 01: a state that is written and read, and that chunks pass on. Each returns the
figure and the numbers in it. Colours as in diagram.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .diagram import INK, KEY, PAIR, QUERY, STATE, VALUE, arrow, canvas, grid, label
from .style import styled

CELL = 3.4


@styled
def write_and_read(
    keys: Sequence[Sequence[float]], values: Sequence[Sequence[float]], query: Sequence[float]
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Two tokens of width two write the products of key and value; a query reads."""
    k, v, q = (np.array(rows, float) for rows in (keys, values, query))
    written = k[:, :, None] * v[:, None, :]
    h = written.sum(0)
    numbers = {"written": written, "h": h, "o": q @ h}
    figure, axes = canvas(7.6, 2.9, "Tokens write products, a query reads them back")
    top = 16.0
    for n, x in enumerate((7.0, 28.0)):
        label(axes, x + CELL, top + 7, f"token {n + 1} writes", size=10.5)
        grid(axes, x - 4.4, top, k[n][:, None], KEY, CELL)
        grid(axes, x, top + 4.4, v[n], VALUE, CELL)
        grid(axes, x, top, written[n], STATE, CELL)
        label(axes, x - 2.7, top + 1.3, f"$k_{n + 1}^\\top$", KEY, 11)
        label(axes, x + 2 * CELL + 2, top + 2.8, f"$v_{n + 1}$", VALUE, 11)
    label(axes, 19.3, top - CELL, "+", size=14)
    label(axes, 40.0, top - CELL, "=", size=14)
    label(axes, 61 + CELL, top + 7, "the query reads", size=10.5)
    label(axes, 44 + CELL, top + 2, "state $h$", STATE, 11)
    grid(axes, 44, top, h, STATE, CELL)
    arrow(axes, (44 + 2 * CELL + 1, top - CELL), (60, top - CELL))
    grid(axes, 61, top + 1.6, q, QUERY, CELL)
    label(axes, 61 + 2 * CELL + 2, top, "$q$", QUERY, 11)
    label(axes, 61 + CELL, top - CELL - 0.2, "$q h$", size=11)
    grid(axes, 61, top - 2 * CELL + 1.4, numbers["o"], VALUE, CELL)
    label(axes, 61 + 2 * CELL + 2, top - 2 * CELL - 0.3, "$o$", VALUE, 11)
    match = q @ k.T
    said = ", ".join(f"$q \\cdot k_{n + 1}$ = {one:g}" for n, one in enumerate(match))
    label(axes, 38, 3.6, f"{said}: each value comes back scaled by how well its key matches the query", size=10)
    return figure, numbers


@styled
def three_forms(T: int, decay: float, forms: dict[str, int]) -> tuple[Figure, dict[str, dict[str, int]]]:
    """One T x T triangle per form (name -> chunk): which pairs are computed (grey), what comes through the state
    (pink), and where the state is passed on (arrows)."""
    figure, axes = canvas(7.8, 3.6, "Three forms, one triangle: only the size of the squares differs")
    rows, columns = np.indices((T, T))
    M = np.where(rows >= columns, decay ** (rows - columns).clip(0), np.nan)
    cell, counts = 20.8 / T, {}
    for n, (name, chunk) in enumerate(forms.items()):
        x, top = 4.5 + 24.8 * n, 26.6
        pair = rows // chunk == columns // chunk
        grid(axes, x, top, M, np.where(pair, PAIR, STATE), cell, form="")
        starts = range(0, T, chunk)
        for start in starts:
            side = min(chunk, T - start) * cell
            corner = (x + start * cell, top - start * cell - side)
            axes.add_patch(Rectangle(corner, side, side, fc="none", ec=INK, lw=1.3))
            if start:
                at = (x + start * cell, top - start * cell)
                reach = 0.55 * cell
                arrow(axes, (at[0] - reach, at[1] + reach), (at[0] + reach, at[1] - reach), STATE, width=2)
        here = {"pairs": int((pair & (rows >= columns)).sum()), "passes": len(starts) - 1}
        counts[name] = here
        label(axes, x + 10.4, top + 2.6, name, size=11, weight="bold")
        times = {0: "no state needed", 1: "■ state passed on once"}
        label(axes, x + 10.4, 2.5, f"■ {here['pairs']} pairs used", PAIR, 10)
        label(axes, x + 10.4, 0.9, times.get(here["passes"], f"■ state passed on {here['passes']} times"), STATE, 10)
    label(axes, 2.2, 15.5, "token $i$ (reading)", size=9.5, rotation="vertical")
    label(axes, 14.9, 4.4, "token $j$ (written)", size=9.5)
    return figure, counts
