"""The widget of notebook 07 on tiles: what the programs of one step ask for, against the size of their tiles. Colours
as in diagram.py: spins green, drive sky blue, couplings blue, the rest grey."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from .diagram import DRIVE, FORWARD, PLUS, SPIN
from .style import styled

COLOURS = {"spins y": SPIN, "drive z": DRIVE, "couplings": PLUS, "γ, scale": FORWARD}


def step_traffic(T: int, I: int, BM: int, BN: int) -> dict[str, float]:
    """MiB that the programs of one fused step load and store, repeated loads included: T tokens in tiles of BM, I spins
    in tiles of BN, float32, couplings packed."""
    rows, cols = -(-T // BM), -(-I // BN)
    counts = {
        "spins y": 4 * (cols + 1) * T * I,
        "drive z": 4 * 2 * T * I,
        "couplings": rows * 2 * I * I // 4,
        "γ, scale": 4 * rows * cols * (I + 1),
    }
    return {name: count / 2**20 for name, count in counts.items()}


def once(T: int, I: int) -> float:
    """MiB if every tensor travels once."""
    return (4 * (4 * T * I + I + 1) + I * I / 2) / 2**20


def tile_traffic(T: int, I: int) -> Callable[[int, int], tuple[Figure, dict[str, str]]]:
    """What the programs ask for, as a bar above the minimum; and what their two sums take on chip."""
    least = once(T, I)

    @styled
    def draw(tokens: int, spins: int) -> tuple[Figure, dict[str, str]]:
        parts = step_traffic(T, I, tokens, spins)
        total = sum(parts.values())
        figure = Figure(figsize=(7.0, 2.5))
        axes = figure.add_axes((0.17, 0.24, 0.79, 0.6))
        left = 0.0
        for name, colour in COLOURS.items():
            axes.fill_between([left, left + parts[name]], 0.7, 1.3, color=colour, lw=0)
            left += parts[name]
        axes.fill_between([0, least], -0.3, 0.3, color="#BDBDBD", lw=0)
        axes.text(total + 20, 1, f"{total:,.0f} MiB", va="center", fontsize=10)
        axes.text(least + 20, 0, f"{least:,.0f} MiB", va="center", fontsize=10)
        axes.set_yticks((1, 0), ["asked for", "minimum"])
        key = "MiB per step (green: spins, sky blue: drive, blue: couplings, grey: γ)"
        axes.set(xlabel=key, xlim=(0, 1650), ylim=(-0.5, 1.5))
        axes.grid(axis="y", visible=False)
        title = f"Tiles of {tokens} × {spins} ask for {total / least:.1f} times the minimum"
        axes.set_title(title, loc="left", fontsize=11.5, weight="bold")
        numbers = {"asked for": f"{total:,.0f} MiB", "two sums on chip": f"{2 * 4 * tokens * spins / 1024:.0f} KiB"}
        return figure, numbers

    return draw
