"""README's figure: where every network ends, by alphabet. It returns the arrays it shows, too."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from . import CYCLE, GREY, styled
from .study import dots

COLOURS = {"p-Spin": CYCLE[0], "Transformer": CYCLE[1]}  # of README's figure
REPAIRS = dict.fromkeys(("product of spins", "mended: convolution too", "stacked: norms too"), CYCLE[2])
PAIR = ("p-Spin, batch 1", "Transformer, batch 64")  # the paper's comparison
CLOSE = 0.02  # bits per byte: what README's figure calls a difference
ROOM = 0.14  # bits per byte: what a number beside its dots takes up there


def _finding(alphabet: str, shown: Mapping[str, np.ndarray]) -> str:
    """Does the network or the batch size decide, where both networks are shown at both batch sizes?"""
    ends = {(name, batch): f"{name}, batch {batch}" for name in COLOURS for batch in (1, 64)}
    if not set(ends.values()) <= set(shown):
        return f"With {alphabet}"
    bits = {key: shown[end].mean() for key, end in ends.items()}
    gaps = [bits["p-Spin", batch] - bits["Transformer", batch] for batch in (1, 64)]
    if min(gaps) > CLOSE:
        return f"{alphabet.capitalize()}: the Transformer beats\np-Spin at either batch size"
    large = all(bits[name, 64] < bits[name, 1] - CLOSE for name in COLOURS)
    if large and max(map(abs, gaps)) <= CLOSE:
        return f"{alphabet.capitalize()}: batch 64 ends lower,\nwith either network"
    return f"With {alphabet}"


@styled
def front(
    ends: Mapping[str, Mapping[str, Mapping[int, float]]], note: str, counting: Mapping[str, float]
) -> tuple[Figure, dict[str, dict]]:
    """README's figure, by alphabet: where every network ends, all on one scale, the paper's comparison in bold. The
    note goes to the upper right. counting: alphabet -> what models reach that merely count."""
    rows = [len(arms) for arms in ends.values()]
    figure = Figure(figsize=(5.8, 1 + 0.7 * len(rows) + 0.3 * sum(rows)), layout="constrained")
    panels, shown = figure.subplots(len(ends), height_ratios=rows, sharex=True, squeeze=False)[:, 0], {}
    for panel, (alphabet, arms) in zip(panels, ends.items(), strict=True):
        colours = {name: (COLOURS | REPAIRS).get(name.split(",")[0], GREY) for name in arms}
        shown[alphabet] = dots(panel, arms, "", colours)
        for text in panel.get_yticklabels():
            text.set_weight("bold" if text.get_text() in PAIR else "normal")
        for row, bits in enumerate(reversed(shown[alphabet].values())):
            where = dict(textcoords="offset points", va="center", fontsize=10)
            where["bbox"] = dict(fc="white", ec="none", pad=1)  # above the line of what counting reaches
            beside = counting.get(alphabet, bits.max()) - bits.max()  # the line, as far right of the dots
            end, offset, where["ha"] = (bits.min(), -10, "right") if 0 < beside < ROOM else (bits.max(), 10, "left")
            panel.annotate(f"{bits.mean():.3f}", (end, row), (offset, 0), **where)
        panel.set_ylim(-0.6, len(arms) - 0.4)
        panel.set_title(_finding(alphabet, shown[alphabet]), loc="left", fontsize=12, weight="bold")
        if alphabet in counting:
            panel.axvline(counting[alphabet], color=GREY, linestyle="--", linewidth=1.2)
            text = f"counts of the text\nthat batch 1 reads: {counting[alphabet]:.2f}"
            where = dict(textcoords="offset points", ha="right", va="center", fontsize=9.5)
            panel.annotate(text, (counting[alphabet], 0), (-4, 0), color=GREY, **where)
    panels[0].text(0.99, 0.95, note, transform=panels[0].transAxes, ha="right", va="top", color=GREY, fontsize=9.5)
    low, high = panels[0].get_xlim()
    panels[0].set_xlim(low, high + 0.12 * (high - low))  # for the last number
    panels[-1].set_xlabel("bits per byte on held-out speeches,\none dot per run (lower is better)")
    return figure, shown
