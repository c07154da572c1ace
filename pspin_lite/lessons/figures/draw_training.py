"""Drawings of notebooks 10, 11 and 14: a training step and what it keeps, rotated queries and keys, three ways
through a text. Each returns the figure and the numbers it shows.

Colours beside those of diagram.py: PURPLE is what stays from step to step.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ... import costs
from ...config import Config
from ...training import recipe
from . import diagram as d
from .style import GREY, ORANGE, SKY, styled

MIB = 2**20


@styled
def training_step(cfg: Config) -> tuple[Figure, dict[str, float]]:
    """One step as a loop, what each part keeps in MiB of float32, and the learning rate of all steps beneath."""
    memory = costs.step_bytes(cfg)
    kept = dict(weights=memory.weights, gradients=memory.weights, moments=memory.moments)
    kept["activations"] = cfg.layers * sum(costs.saved_bytes(cfg).values())
    mib = {name: size / MIB for name, size in kept.items()}
    figure, axes = d.canvas(7.2, 4.75, "One training step: what is kept and what is thrown away")

    top, low, high = 33, 24.5, 6.5
    d.box(axes, 2, top, 13, high, f"one sequence\n{cfg.context + 1} bytes", d.ZERO)
    d.box(axes, 21.5, top, 21, high, f"network, {cfg.layers} layers\nactivations {mib['activations']:.1f} MiB", GREY)
    d.box(axes, 49, top, 20.5, high, "loss\none number", GREY)
    d.box(axes, 49, low - 1, 20.5, high, f"gradient, clipped\n{mib['gradients']:.1f} MiB", d.BACKWARD)
    d.box(axes, 21.5, low - 1, 21, high, f"AdamW: two means\n{mib['moments']:.1f} MiB", d.STATE)
    d.box(axes, 2, low - 1, 13, high, f"weights\n{mib['weights']:.1f} MiB", d.STATE)
    middle, under = top + high / 2, low - 1 + high / 2
    d.arrow(axes, (15, middle), (21.5, middle))
    d.arrow(axes, (42.5, middle), (49, middle))
    d.arrow(axes, (59.2, top), (59.2, low + high - 1), d.BACKWARD)
    d.arrow(axes, (49, under), (42.5, under), d.BACKWARD)
    d.arrow(axes, (21.5, under), (15, under), d.STATE)
    d.arrow(axes, (13, low + high - 1), (25, top), d.STATE)
    d.label(
        axes,
        2,
        42.2,
        "pink is kept from step to step; grey and orange are recomputed at every step",
        GREY,
        9.5,
        ha="left",
    )

    rates = np.array([recipe.learning_rate(cfg, step) for step in range(cfg.steps)])
    left, width, bottom, tall = 9, 55, 6, 10
    phases = {"warm-up": cfg.warmup, "plateau": cfg.steps - cfg.warmup - cfg.cooldown, "cosine": cfg.cooldown}
    start = 0
    for name, long in phases.items():
        x, w = left + width * start / cfg.steps, width * long / cfg.steps
        axes.add_patch(Rectangle((x, bottom), w, tall, fc=d.tint(SKY if name == "plateau" else ORANGE), ec="none"))
        d.label(axes, x + w / 2, bottom + tall + 3.2, name, size=9.5)
        d.label(axes, x + w / 2, bottom + tall + 1.3, f"{long:,} steps", GREY, 9)
        start += long
    xs = left + width * (np.arange(cfg.steps) + 1) / cfg.steps
    d.line(axes, [left, *xs], [bottom, *(bottom + 0.86 * tall * rates / cfg.lr)], d.INK)
    d.label(axes, left - 1, bottom + 0.86 * tall, f"{cfg.lr:g}", size=9, ha="right")
    d.label(axes, left - 1, bottom, "0", size=9, ha="right")
    d.label(axes, left + width + 0.7, bottom + 0.86 * tall * rates[-1] / cfg.lr, f"{rates[-1]:.5f}", size=9, ha="left")
    for step in np.cumsum([0, *phases.values()]):
        d.label(axes, left + width * step / cfg.steps, bottom - 1.4, f"{step:,}", GREY, 9)
    d.label(axes, left + width / 2, bottom - 3.6, "step", size=9.5)
    d.label(axes, left - 1, bottom + 0.43 * tall, "learning\nrate", size=9.5, ha="right", va="center")
    return figure, mib | {"rates": rates}


@styled
def orders(
    places: Mapping[str, Sequence[int]],
    total: Mapping[str, int],
    notes: Mapping[str, str],
    repeats: Mapping[str, Container[int]] | None = None,
) -> tuple[Figure, dict]:
    """A row of steps for each way through a text; the colour of a step is how far into the text its sequence lies.
    places: name -> number in time of each sequence that is read; total: of how many; notes: what to say of it;
    repeats: the steps that repeat an old sequence, drawn half as high."""
    figure, axes = d.canvas(5.4, 3.3, "One text, three orders")
    colours, shown = mpl.colormaps["viridis"], {}
    left, width = 1.5, 51
    for row, (name, numbers) in enumerate(places.items()):
        top = 27 - 8 * row
        where = np.asarray(numbers) / (total[name] - 1)
        shown[name] = where
        wide = width / len(where)
        d.label(axes, left, top, name, size=10.5, ha="left", weight="bold")
        d.label(axes, left + 7, top, notes[name], GREY, 9.5, ha="left")
        for i, share in enumerate(where):
            high = 1.8 if i in (repeats or {}).get(name, ()) else 3.6
            axes.add_patch(Rectangle((left + i * wide, top - 5), wide, high, fc=colours(share), ec="white", lw=0.6))
    ramp = np.linspace(0, 1, 60)
    for i, share in enumerate(ramp):
        axes.add_patch(Rectangle((17 + 0.4 * i, 1.2), 0.4, 1.6, fc=colours(share), ec="none"))
    d.label(axes, 16, 2, "oldest speeches", size=9.5, ha="right")
    d.label(axes, 42, 2, "newest", size=9.5, ha="left")
    return figure, shown
