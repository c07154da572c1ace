"""Figures of notebook 05. Each function returns the figure and the arrays it shows."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure

from ... import fixed_points
from .. import explore_attractor
from . import BLUE, GREEN, GREY, ORANGE, RED, SKY, styled
from .live import LiveFigure, Panel


@styled
def cobweb(maps: dict[str, tuple[float, float, list[float]]], steps: int) -> tuple[Figure, dict[str, np.ndarray]]:
    """One panel for each map y -> tanh(drive + a y), given as (drive, a, starts): curve, diagonal, steps between them.

    Arrays: name -> states [starts, steps + 1]."""
    figure = Figure(figsize=(3.1 * len(maps), 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(maps), sharey=True))
    y, found = np.linspace(-1, 1, 201), {}
    for axes, (name, (drive, a, starts)) in zip(panels, maps.items(), strict=True):
        states = [np.array(starts, float)]
        for _ in range(steps):
            states.append(np.tanh(drive + a * states[-1]))
        found[name] = np.stack(states, 1)
        axes.plot(y, y, color=GREY, lw=1)
        axes.plot(y, np.tanh(drive + a * y), color=BLUE, lw=2)
        for path, colour in zip(found[name], (ORANGE, GREEN), strict=False):
            x = np.repeat(path, 2)  # up to the curve, across to the diagonal
            axes.plot(x[:-1], np.concatenate([path[:1], x[2:]]), color=colour, lw=1.4)
            axes.plot(path[:1], path[:1], "o", color=colour, ms=5)
        axes.set(xlabel="spin before a step", xlim=(-1, 1), ylim=(-1, 1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        axes.set_title(name, fontsize=11)
        axes.set_box_aspect(1)
    panels[0].set_ylabel("spin after it")
    return figure, found


def portraits(kinds: list[str], gamma: float, scale: float, K: int) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """Phase portraits of two-spin maps side by side; arrays by kind as `explore_attractor.portrait` gives them."""
    wide = 3.1 * len(kinds)
    places = [((0.55 + 3.1 * i) / wide, 0.17, 2.3 / wide, 2.3 / 3.3) for i in range(len(kinds))]
    ends = dict(xlim=(-1, 1), ylim=(-1, 1), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    panels = tuple(Panel(place, kind, "spin 1", "spin 2", **ends) for place, kind in zip(places, kinds, strict=True))
    figure, found = LiveFigure((wide, 3.3), panels), {}
    for i, kind in enumerate(kinds):
        found[kind] = explore_attractor.portrait(figure, i, *fixed_points.two_spins(kind, gamma, scale), K)
    return figure.still(), found


@styled
def spectra(scales: list[float], gamma: float = 0.5) -> tuple[Figure, dict[float, np.ndarray]]:
    """Eigenvalues of the Jacobian of a step, at the fixed point of each of eight tokens on 32 random spins.

    Arrays: scale -> complex [8, 32]."""
    figure = Figure(figsize=(3.1 * len(scales), 3.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(scales), sharey=True))
    circle, found = np.exp(2j * np.pi * np.linspace(0, 1, 200)), {}
    for axes, scale in zip(panels, scales, strict=True):
        z, w_int, damping = fixed_points.random_map(gamma, scale)
        J = fixed_points.jacobian(fixed_points.follow(z, w_int, damping), z, w_int, damping)
        found[scale] = torch.linalg.eigvals(J).numpy()
        axes.plot(circle.real, circle.imag, color=GREY, lw=1)
        axes.plot(found[scale].real.ravel(), found[scale].imag.ravel(), "o", ms=2.5, color=BLUE, alpha=0.6)
        axes.set(xlabel="real part", xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        axes.set_title(f"scale {scale:g}", fontsize=11)
        axes.set_box_aspect(1)
    panels[0].set_ylabel("imaginary part")
    return figure, found


@styled
def regimes(scales: np.ndarray, gamma: float = 0.5) -> tuple[Figure, dict[str, np.ndarray]]:
    """Over the scale of the couplings: Lipschitz bound, largest spectral radius, share of tokens that settle."""
    looked = [fixed_points.examine(*fixed_points.random_map(gamma, scale), K=1) for scale in scales]
    found = dict(
        bound=np.array([each.bound for each in looked]),
        radius=np.array([np.nanmax(each.radius) for each in looked]),
        settles=np.array([each.settles.mean() for each in looked]),
    )
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.axhline(1, color=GREY, lw=1)
    axes.plot(scales, found["bound"], color=ORANGE, lw=2, label="Lipschitz bound")
    axes.plot(scales, found["radius"], color=BLUE, lw=2, label="largest spectral radius")
    axes.plot(scales, found["settles"], color=GREEN, lw=2, ls="--", label="share of tokens that settle")
    axes.set(xlabel="scale of the couplings", ylabel="factor of a step; share", ylim=(0, 3))
    axes.set_xlim(scales[0], scales[-1])
    figure.legend(loc="outside right upper")
    return figure, found


@styled
def stopping(steps: np.ndarray, common: int) -> tuple[Figure, dict[str, np.ndarray]]:
    """How many tokens stop after how many steps; the step at which a rule for all together would have stopped."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    values, counts = np.unique(steps, return_counts=True)
    axes.bar(values, counts, color=SKY)
    axes.axvline(common, color=RED, lw=1.5, ls="--", label="all together")
    axes.set(xlabel="steps taken", ylabel="tokens", xticks=np.arange(0, max(common, values.max()) + 2, 2))
    axes.legend()
    return figure, dict(steps=values, tokens=counts)


@styled
def over_training(records: list[dict]) -> tuple[Figure, dict[str, np.ndarray]]:
    """The radius of each layer's attractor as a run recorded it. Arrays: steps [n], values [n, layers]."""
    found = dict(steps=np.array([r["step"] for r in records]), values=np.array([r["radius"] for r in records]))
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.axhline(1, color=GREY, lw=1)
    for layer, line in enumerate(found["values"].T):
        axes.semilogy(found["steps"], line, lw=2, label=f"layer {layer}")
    axes.set(xlabel="step of training", ylabel="largest spectral radius", xlim=(0, found["steps"][-1]))
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    figure.legend(loc="outside right upper", reverse=True)
    return figure, found
