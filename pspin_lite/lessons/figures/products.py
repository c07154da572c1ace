"""Figures of notebook 12: products of two fields, how linear they are, how loud branches become, where other products
end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...study import records
from . import CYCLE, GREEN, GREY, PURPLE, styled
from .parts import TITLE, WEIGHTS, Ends, sizes

GATES = {"tanh(u) · σ(a): a slope, bent": lambda a: 1 / (1 + np.exp(-a)), "tanh(u) · tanh(a): a saddle": np.tanh}


@styled
def products(title: str, reach: float = 1.0) -> tuple[Figure, dict[str, np.ndarray]]:
    """The paper's product and that of two spins over both fields, as maps with contours at the same levels."""
    figure = Figure(figsize=(5.4, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    field, shown = np.linspace(-reach, reach, 101), {}
    for panel, (name, gate) in zip(panels, GATES.items(), strict=True):
        shown[name] = np.tanh(field)[None, :] * gate(field)[:, None]  # [a, u]
        panel.pcolormesh(field, field, shown[name], cmap="PuOr", vmin=-0.7, vmax=0.7, shading="auto", rasterized=True)
        lines = panel.contour(field, field, shown[name], np.linspace(-0.5, 0.5, 11), colors=GREY, linewidths=1)
        inner = lines.levels[3:8:2]  # labels of the others would lie at the edge
        panel.clabel(lines, inner, fontsize=8.5, fmt=_signed)
        panel.set(xlabel="field u", xticks=(-reach, 0, reach), yticks=(-reach, 0, reach))
        panel.set_title(name, fontsize=10.5)
        panel.set_box_aspect(1)
        panel.grid(visible=False)
    panels[0].set_ylabel("field a")
    figure.suptitle(title, **TITLE)
    return figure, shown


def _signed(x: float) -> str:
    return f"{x:+.1f}".replace("-", "−") if abs(x) > 0.01 else "0"


@styled
def linear_shares(
    shares: Mapping[str, Sequence[float]], sizes: Sequence[float], title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """How much of a layer's output a linear map explains, over the size of its fields; a line a nonlinearity."""
    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    panel, shown = figure.subplots(), {}
    for (name, values), colour, marker in zip(shares.items(), CYCLE, "osD^", strict=False):
        shown[name] = 100 * np.asarray(values, float)
        panel.plot(sizes, shown[name], marker=marker, color=colour, label=name)
    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
    panel.set_xticks([], minor=True)
    panel.set(xlabel="size of the fields u and a (rms)", ylabel="explained by a linear map, %", ylim=(-4, 104))
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def loudness(runs_of: Mapping[str, Sequence[dict]], title: str) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """How much state spaces and MLPs add to the stream in training, a panel a network. name -> records"""
    figure = Figure(figsize=(2.7 * len(runs_of), 3.2), layout="constrained")
    panels, shown = np.ravel(figure.subplots(1, len(runs_of), sharey=True)), {}
    for panel, (name, runs) in zip(panels, runs_of.items(), strict=True):
        shown[name] = {}
        for kind, label, colour in (("mixer", "state space", PURPLE), ("mlp", "MLP", GREEN)):
            steps, size = sizes(runs, kind)
            shown[name][kind] = size
            panel.semilogy(steps, size, "o-", color=colour, markersize=4, label=label)
            panel.annotate(f"{size[-1]:.3g}", (steps[-1], size[-1]), (5, 0), textcoords="offset points", va="center")
        panel.set(xlabel="sequences", xlim=(-300, 10300), xticks=(0, 4000, 8000))
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_title(name, fontsize=10.5)
    panels[0].set_ylabel("size of the branch (rms)")
    panels[0].legend(loc="lower right")
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def nonlinearities(
    runs: Mapping[str, Mapping[str, Ends]], lines: Mapping[str, Ends], title: str
) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """Where networks end by the nonlinearity of their MLP, ternary and in full precision, a mark per seed; lines are
    networks to compare with. Without runs a row says so."""
    figure = Figure(figsize=(5.4, 1.9 + 0.62 * len(runs)), layout="constrained")
    panel, shown, waiting = figure.subplots(), {}, []
    for row, (name, kinds) in enumerate(runs.items()):
        shown[name] = {}
        for (kind, look), shift in zip(WEIGHTS.items(), (-0.17, 0.17), strict=True):
            values = np.array(list(kinds.get(kind, {}).values()))
            shown[name][kind] = values
            panel.plot(values, np.full(len(values), row + shift), ls="", alpha=0.75, **look, label="" if row else kind)
            if len(values):
                panel.plot([values.mean()] * 2, [row + shift - 0.14, row + shift + 0.14], color=GREY, lw=2)
            else:
                waiting.append((row + shift, f"{kind}: runs not finished"))
    at = {name: records.mean(dict(values)) for name, values in lines.items()}
    for name, value in at.items():
        panel.axvline(value, color=GREY, linestyle="--", linewidth=1.2)
        panel.text(value, -0.72, f" {name}\n {value:.2f}", color=GREY, ha="left", va="center", fontsize=9)
    panel.set_yticks(range(len(runs)), list(runs))
    low, high = min(at.values()), max(at.values())
    for y, text in waiting:
        panel.text((low + high) / 2 + 0.03, y, text, color=GREY, va="center", ha="center", fontsize=9)
    panel.set(xlim=(low - 0.02, high + 0.06), ylim=(len(runs) - 0.45, -1.05), xlabel="bits per byte, a mark per seed")
    panel.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle(title, **TITLE)
    return figure, shown
