"""Figures of the study, for notebooks 11 and 12. Each returns the figure and the arrays it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from ... import _checks as checks
from ...study import networks as study
from ...study import records
from . import CYCLE, GREY, styled

AXES = {
    "sequences": ("sequences", 1),
    "tokens": ("million tokens", 1e6),
    "flops": ("10¹² operations", 1e12),
    "seconds": ("minutes, one thread", 60),
    "text": ("megabytes of text", 1e6),
}
PANELS = ("sequences", "flops")  # of `learning`; tokens and sequences would be the same curve

Runs = Mapping[str, Sequence[dict]]  # name -> records, a seed each
COMPARED = {  # what differs -> networks of bytes-1, or of bytes-64
    "the MLP": ("p-spin", "k0-same-size", "full-precision", "swiglu", "transformer"),
    "the mixer": ("p-spin", "long-gate", "attention", "transformer"),
    "the steps": ("p-spin", "k0", "k1", "k2", "k10"),
    "the batch size": ("p-spin", "transformer", "p-spin, batch 64", "transformer, batch 64"),
}
LOOKS = [dict(color=c, linestyle="-") for c in CYCLE] + [dict(color=c, linestyle="--") for c in CYCLE[3:] + CYCLE[:3]]
OF_ARMS = {arm.name: look for arm, look in zip(study.GROUPS["bytes-1"], LOOKS, strict=False)}


def looks(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Colour and line of each name: an arm has the same in every figure, other names what the arms among them leave."""
    arm = {name: name.lower().removesuffix(", batch 1") for name in names}
    if len(arm) > len(LOOKS):
        raise checks.wrong("names", f"{len(arm)} of them", f"at most {len(LOOKS)}: no more can be told apart")
    taken = [OF_ARMS[key] for key in arm.values() if key in OF_ARMS]
    free = iter([look for look in LOOKS if look not in taken])
    return {name: OF_ARMS[key] if key in OF_ARMS else next(free) for name, key in arm.items()}


def _curves(panel, runs: Runs, unit: str, split: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Means over seeds, and as a band from the lowest to the highest. -> (x, bits [seeds, points])"""
    label, size = AXES[unit]
    shown = {}
    drawn = looks(runs)
    for name, seeds in runs.items():
        steps, _ = records.curve(seeds[0], split)
        bits = np.stack([records.curve(record, split)[1] for record in seeds])[:, 1:]  # without step 0
        x = np.mean([records.axis(record, steps[1:], unit) for record in seeds], 0) / size
        panel.plot(x, bits.mean(0), **drawn[name], label=name)
        panel.fill_between(x, bits.min(0), bits.max(0), color=drawn[name]["color"], alpha=0.2, linewidth=0)
        shown[name] = x, bits
    panel.set_xscale("log")
    wide = max(x[-1] for x, _ in shown.values()) / min(x[0] for x, _ in shown.values()) > 50 if shown else False
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 3) if wide else (1, 2, 5)))
    panel.xaxis.set_major_formatter(lambda x, _: f"{x:,g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel(label)
    return shown


@styled
def learning(runs: Runs, split: str = records.SPLIT, units: Sequence[str] = PANELS) -> tuple[Figure, dict[str, dict]]:
    """Validation bits per byte against sequences, arithmetic or other units; where each ends is in the legend.
    Arrays: name -> bits [seeds, points], and each axis."""
    figure = Figure(figsize=(7.8, 4.2), layout="constrained")
    panels, shown = figure.subplots(1, len(units), sharey=True), {}
    for panel, unit in zip(panels, units, strict=True):
        for name, (x, bits) in _curves(panel, runs, unit, split).items():
            shown.setdefault(name, {"bits": bits})[unit] = x
            panel.plot(x[-1], bits[:, -1].mean(), "o", color=looks(runs)[name]["color"], markersize=4)
    panels[0].set_ylabel("bits per byte")
    lines, names = panels[0].get_legend_handles_labels()
    labels = [f"{name}: ends at {shown[name]['bits'][:, -1].mean():.2f}" for name in names]
    figure.legend(lines, labels, loc="outside lower center", ncols=2)
    return figure, shown


@styled
def one_axis(runs: Runs, unit: str, split: str = records.SPLIT) -> tuple[Figure, dict[str, np.ndarray]]:
    """One panel of `learning`, for up to fourteen names. Arrays: name -> bits [seeds, points]."""
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    panel = figure.subplots()
    shown = _curves(panel, runs, unit, split)
    panel.set_ylabel("bits per byte")
    if shown:
        panel.legend()
    return figure, {name: bits for name, (_, bits) in shown.items()}


def compared() -> Callable[[str, str, str], tuple[Figure, dict[str, float]]]:
    """For an Explorer: draw(differs, axis, split) is `one_axis` for networks of COMPARED. -> where each one ends"""
    runs = {}
    for name in {name for names in COMPARED.values() for name in names}:
        network, _, large = name.partition(", batch ")
        runs[name] = list(records.seeds(f"bytes-{large or 1}", network).values())

    def draw(differs: str, axis: str, split: str) -> tuple[Figure, dict[str, float]]:
        figure, shown = one_axis({name: runs[name] for name in COMPARED[differs]}, axis, split)
        return figure, {f"{name}, end": float(bits[:, -1].mean()) for name, bits in shown.items()}

    return draw


def dots(
    panel: Axes, arms: Mapping[str, Mapping[int, float]], label: str, colours: Mapping[str, str] | None = None
) -> dict[str, np.ndarray]:
    """A dot for each seed of each arm and a line at the mean, the best arm on top. Hollow: one seed."""
    shown = {name: np.array(list(values.values())) for name, values in arms.items()}
    order = sorted(shown, key=lambda name: shown[name].mean(), reverse=True)
    for row, name in enumerate(order):
        panel.plot([shown[name].mean()] * 2, [row - 0.3, row + 0.3], color=GREY, linewidth=2)
        one = dict(markerfacecolor="white") if len(shown[name]) == 1 else {}
        panel.plot(
            shown[name], [row] * len(shown[name]), "o", color=(colours or {}).get(name, CYCLE[0]), alpha=0.8, **one
        )
    panel.set_yticks(range(len(order)), order)
    panel.set_xlabel(label)
    panel.grid(axis="y", visible=False)
    return {name: shown[name] for name in reversed(order)}


@styled
def finals(
    arms: Mapping[str, Mapping[int, float]], label: str, yardsticks: Mapping[str, float] | None = None
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Where each network ends, a dot per seed; yardsticks are vertical lines."""
    figure = Figure(figsize=(7.4, 1.3 + 0.36 * len(arms)), layout="constrained")
    panel = figure.subplots()
    shown = dots(panel, arms, label)
    panel.set_ylim(-0.6, len(arms) - (0.4 if not yardsticks else -0.2))
    for name, value in (yardsticks or {}).items():
        panel.axvline(value, color=GREY, linestyle="--", linewidth=1.2)
        panel.text(value, len(arms) - 0.25, f" {name}, {value:.2f}", color=GREY, ha="left", va="center", fontsize=9.5)
    return figure, shown


@styled
def tuning(
    rates: Mapping[str, Mapping[float, float]], doubled: Mapping[str, Mapping[float, float]]
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Bits per byte of the tuning runs over the learning rate, a line per network; a star where the initial weights are
    twice as large, each a little further right, so that none hides another."""
    figure = Figure(figsize=(7.4, 3.9), layout="constrained")
    panel, shown, drawn = figure.subplots(), {}, looks(rates)
    for i, (name, bits) in enumerate(rates.items()):
        shown[name] = np.array(list(bits.values()))
        panel.plot(list(bits), shown[name], marker="o", **drawn[name], label=name)
        star = dict(color=drawn[name]["color"], markersize=12, markeredgecolor="white", markeredgewidth=0.5, zorder=3)
        panel.plot([rate * 1.03**i for rate in doubled[name]], list(doubled[name].values()), "*", **star)
    panel.plot([], [], "*", color=GREY, markersize=12, label="initial weights\ntwice as large")
    ticks = sorted({rate for bits in rates.values() for rate in bits})
    panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{rate:g}" for rate in ticks], minor=False)
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set(xlabel="learning rate", ylabel="bits per byte, short run")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure, shown


@styled
def contexts(
    nats: Mapping[str, np.ndarray], lengths: Sequence[int], token: str = "token"
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Loss over how much of the text a model may see, a line a model over the range of its seeds. nats: [seeds,
    lengths]; token: what one is called."""
    figure = Figure(layout="constrained")
    panel, shown, drawn = figure.subplots(), {}, looks(nats)
    for name, values in nats.items():
        shown[name] = values.mean(0)
        panel.plot(lengths, shown[name], marker="o", **drawn[name], label=name)
        panel.fill_between(lengths, values.min(0), values.max(0), color=drawn[name]["color"], alpha=0.2, linewidth=0)
    panel.set_xscale("log")
    panel.set_xticks(lengths, [str(length) for length in lengths])
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set(xlabel=f"{token}s of context", ylabel=f"nats per {token}")
    panel.legend()
    return figure, shown
