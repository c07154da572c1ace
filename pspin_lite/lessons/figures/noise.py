"""Figures and tables of notebook 13: how noisy gradients are, who moves under Adam, and how rough training is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...config import Config, TransformerConfig
from ...study import networks, records, stability
from .batch import COLOURS, HEADLINE, NAMES
from .style import BLUE, GREEN, GREY, ORANGE, styled

FIVE = ("p-spin", "k10", "k0-same-size", "swiglu", "transformer")
FIXED_POINT = ("p-spin", "k10")  # of these
PROBED = ("bytes-1", "living-bytes", "steps-bytes", "repair-bytes")  # groups whose runs measure the noise
AGAIN = {("living-bytes", "p-spin")}  # the same runs as those of bytes-1
POINTED = {  # out in the figure of the noise: where, and what they are called
    ("bytes-1", "p-spin"): ("p-Spin", BLUE),
    ("bytes-1", "transformer"): ("Transformer", ORANGE),
    ("bytes-1", "swiglu"): ("SwiGLU", GREEN),
    ("bytes-1", "attention"): ("attention,\nattractor", "#222222"),
    ("living-bytes", "no-mlp"): ("no MLP at all", "#222222"),
}
ATTRACTOR = ("w_ext", "w_int", "gamma_param", "w_down")  # parts of branches.py


@dataclass(frozen=True)
class Noise:
    """Of a network, at the learning rate that was tuned for it: the mean over seeds."""

    rate: float
    scale: float
    fixed_point: bool


def noises() -> dict[tuple[str, str], Noise]:
    """Group and network -> the noise of its single gradients, of all that have all seeds."""
    found = {}
    for group in PROBED:
        for arm in networks.GROUPS[group]:
            each = records.seeds(group, arm.name)
            if len(each) == len(arm.seeds) and (group, arm.name) not in AGAIN:
                scale = np.mean([stability.measures(run)["noise scale"] for run in each.values()])
                rate = next(iter(each.values()))["config"]["model"]["lr"]
                found[group, arm.name] = Noise(rate, float(scale), _has_fixed_point(arm.cfg))
    return found


def _has_fixed_point(cfg: Config) -> bool:
    default = "none" if isinstance(cfg, TransformerConfig) else "attractor"
    return getattr(cfg, "mlp", default) == "attractor"


def _side_by_side(found: Mapping[tuple[str, str], Noise]) -> dict[tuple[str, str], int]:
    """Lanes of dots that would cover each other; those that are pointed out stay nearest to their rate."""
    lanes: dict[tuple[str, str], int] = {}
    for where in sorted(found, key=lambda where: where not in POINTED):
        taken = [lane for other, lane in lanes.items() if _near(found[other], found[where])]
        lanes[where] = min(lane for lane in range(len(lanes) + 1) if lane not in taken)
    return lanes


def _near(one: Noise, other: Noise) -> bool:
    return (one.rate, one.fixed_point) == (other.rate, other.fixed_point) and abs(one.scale - other.scale) < 0.7


@styled
def noise_over_rate(title: str) -> tuple[Figure, dict[tuple[str, str], Noise]]:
    """A dot for each network, over its tuned learning rate: filled if it has a fixed point, to the left of those that
    have none."""
    found = noises()
    rates = sorted({one.rate for one in found.values()})
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    figure.suptitle(fill(title, 52), **HEADLINE)
    panel = figure.subplots()
    lanes = _side_by_side(found)
    for where, one in found.items():
        label, colour = POINTED.get(where, ("", "#A8A8A8"))
        side, align, inside = (-1, "right", colour) if one.fixed_point else (1, "left", "white")
        outermost = max(lane for other, lane in lanes.items() if _near(found[other], one))
        at, beside = (rates.index(one.rate) + side * (0.06 + 0.07 * lane) for lane in (lanes[where], outermost))
        panel.plot(at, one.scale, "o", color=colour, mfc=inside, ms=7, mew=1.6)
        panel.text(beside + 0.06 * side, one.scale, label, color=colour, ha=align, va="center", fontsize=9.5)
    scales = [one.scale for one in found.values()]
    panel.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    panel.set(xlim=(-0.35, len(rates) - 0.6), ylim=(min(scales) - 2, max(scales) + 2))
    panel.set(xlabel="learning rate, tuned for each network", ylabel="noise of single gradients")
    panel.grid(axis="x", visible=False)
    styles = (("#5A5A5A", "with a fixed point"), ("white", "without"))
    handles = [Line2D([], [], marker="o", ls="", color=GREY, mfc=fill, mew=1.6, label=says) for fill, says in styles]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, found


def attractor_shares() -> dict[str, dict[str, float]]:
    """Of p-Spin's parameters, of the squared gradient and of the squared step that Adam takes: the shares of its parts
    at the end of training, means over seeds."""
    every = list(records.seeds("living-bytes", "p-spin").values())
    model, size = every[0]["config"]["model"], every[0]["summary"]["parameters"]
    no_mlp = next(iter(records.seeds("living-bytes", "no-mlp").values()))["summary"]["parameters"]
    embedding, attractor = model["vocab"] * model["width"] / size, 1 - no_mlp / size
    found = {"parameters": {"attractor": attractor, "embedding": embedding, "the rest": 1 - attractor - embedding}}
    for label, kind in (("squared gradient", "gradient"), ("squared step", "update")):
        last = [run["branches"][-1][kind] for run in every]
        attractor = float(np.mean([sum(one[part] for part in ATTRACTOR) for one in last]))
        embedding = float(np.mean([one["embedding"] for one in last]))
        found[label] = {"attractor": attractor, "embedding": embedding, "the rest": 1 - attractor - embedding}
    return found


@styled
def hidden_mover() -> tuple[Figure, dict[str, dict[str, float]]]:
    """`attractor_shares`, a bar for each quantity."""
    found = attractor_shares()
    figure = Figure(figsize=(5.2, 2.7), layout="constrained")
    gradient, step = (found[f"squared {what}"]["attractor"] for what in ("gradient", "step"))
    title = f"The attractor has {gradient:.1%} of the squared gradient and {step:.0%} of Adam's squared step"
    figure.suptitle(fill(title, 52), **HEADLINE)
    panel = figure.subplots()
    colours = {"attractor": BLUE, "embedding": "#222222", "the rest": "#C8C8C8"}
    for row, shares in enumerate(found.values()):
        left = 0.0
        for part, share in shares.items():
            panel.barh(row, share, 0.6, left, color=colours[part])
            if share > 0.1:
                ink = "black" if part == "the rest" else "white"
                panel.text(left + share / 2, row, f"{share:.0%}", color=ink, ha="center", va="center", fontsize=9.5)
            left += share
    panel.set_yticks(range(len(found)), list(found))
    panel.set(xlim=(0, 1), ylim=(len(found) - 0.5, -0.5))
    panel.set_xticks([])
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)
    handles = [Line2D([], [], marker="s", ms=8, ls="", color=colour, label=part) for part, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9.5)
    return figure, found


def roughness(group: str = "bytes-1") -> list[list[str]]:
    """Two measures of how rough training is, as a table: means over seeds, and from the lowest to the highest."""
    rows = [["", "fixed point", "steps that do harm", "largest gradient"]]
    for name in FIVE:
        every = [stability.measures(run) for run in records.seeds(group, name).values()]
        harm, largest = ([one[measure] for one in every] for measure in ("worse steps", "largest"))
        cells = [f"{np.mean(harm):.0%} ({100 * min(harm):.0f} to {100 * max(harm):.0f})"]
        cells += [f"{np.mean(largest):.0f} ({min(largest):.0f} to {max(largest):.0f})"]
        rows.append([NAMES[name], "yes" if name in FIXED_POINT else "no", *cells])
    return rows


@styled
def jumps(first: int, losses: Mapping[str, np.ndarray], title: str, peaks: int = 6) -> tuple[Figure, dict[str, float]]:
    """Losses of several networks on the same sequences, from a step on, a row each; the highest peaks of the first
    are marked in all. -> network -> share of the first one's variance that it explains"""
    figure = Figure(figsize=(5.2, 1.2 + 1.3 * len(losses)), layout="constrained")
    figure.suptitle(title, **HEADLINE)
    rows, raw = figure.subplots(len(losses), 1, sharex=True, sharey=True), next(iter(losses.values()))
    steps = first + np.arange(len(raw))
    shares = {name: float(np.corrcoef(raw, values)[0, 1] ** 2) for name, values in losses.items()}
    for panel, (name, values) in zip(rows, losses.items(), strict=True):
        for place in np.argsort(raw)[-peaks:]:
            panel.axvline(steps[place], color=GREY, lw=5, alpha=0.2)
        panel.plot(steps, values, color=COLOURS[name], lw=1.3)
        panel.set_title(NAMES[name], loc="left", color=COLOURS[name], fontsize=10.5)
    rows[len(losses) // 2].set_ylabel("loss, bits per byte")
    rows[-1].set(xlabel="step (grey: the highest peaks of the top row)", xlim=(steps[0], steps[-1]))
    rows[-1].xaxis.set_major_formatter("{x:,.0f}")
    return figure, shares
