"""Figures of notebook 10: the schedule, the curves of a run, yardsticks, gradient norms, jitter, attractors, the loss
byte by byte, two sizes of the model, and a widget for sampling. Each returns the figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ... import generation
from ...training import recipe
from .live import LiveFigure, Panel
from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, styled

PHASES = ("warm-up", "plateau", "cosine")
SPLITS = {"recent": ORANGE, "held-out": BLUE}
LIKELIEST = 12  # bytes that the widget shows


@styled
def schedule(cfg) -> tuple[Figure, np.ndarray]:
    """The learning rate of every step, its three phases named."""
    rates = np.array([recipe.learning_rate(cfg, step) for step in range(cfg.steps)])
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(cfg.steps), 1e4 * rates, color=BLUE)
    ends = (0, cfg.warmup, cfg.steps - cfg.cooldown, cfg.steps)
    for name, a, b in zip(PHASES, ends, ends[1:], strict=False):
        axes.axvspan(a, b, color=SKY if name == "plateau" else ORANGE, alpha=0.15, lw=0)
        side, at = ("left", a + 0.005 * cfg.steps) if a == 0 else ("center", (a + b) / 2)
        axes.text(at, 1e4 * cfg.lr * 1.06, name, ha=side)
    axes.set(xlabel="step", ylabel="learning rate, 1e-4", xlim=(0, cfg.steps), ylim=(0, 1.18e4 * cfg.lr))
    return figure, rates


def running(values: Sequence[float], window: int) -> tuple[np.ndarray, np.ndarray]:
    """(places, means) of `window` values in a row; the place is their middle."""
    means = np.convolve(values, np.ones(window) / window, "valid")
    return np.arange(len(means)) + (window + 1) / 2, means


@styled
def curves(
    raw: Sequence[float], validation: Mapping[str, tuple[Sequence[int], Sequence[float]]], window: int, zoom: int
) -> tuple[Figure, dict]:
    """Bits per byte against steps: every step's own, their running mean, and validations of each split as dots. Left
    the whole run, right from step `zoom` on."""
    figure = Figure(figsize=(9.0, 3.7), layout="constrained")
    steps, (places, means) = np.arange(1, len(raw) + 1), running(raw, window)
    for axes, start in zip(figure.subplots(1, 2), (0, zoom), strict=True):
        seen = steps > start
        axes.plot(steps[seen], np.asarray(raw)[seen], color="#BBBBBB", lw=0.5, label="each step")
        seen = places > start
        axes.plot(places[seen], means[seen], color=GREY, lw=2, label=f"mean of {window} steps")
        for name, (at, bits) in validation.items():
            keep = np.asarray(at) >= start
            axes.plot(np.asarray(at)[keep], np.asarray(bits)[keep], "o-", ms=3.5, color=SPLITS[name], label=name)
        axes.set(xlabel="step", xlim=(start, len(raw)))
    figure.axes[0].set(ylabel="bits per byte", ylim=(0, None))
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure, {"places": places, "means": means}


@styled
def rulers(
    steps: Sequence[int], bits: Mapping[str, Sequence[float]], a_step: Mapping[str, float]
) -> tuple[Figure, dict]:
    """The same curves over several axes: `a_step` says how much of each unit a step takes."""
    figure = Figure(figsize=(7.4, 5.4))
    axes = figure.add_axes((0.08, 0.46, 0.85, 0.51))
    for name, values in bits.items():
        axes.plot(steps, values, "o-", ms=3.5, color=SPLITS[name], label=name)
    (first, scale), *others = a_step.items()
    ticks = np.asarray(steps[:: max(1, len(steps) // 5)])
    axes.set(xlabel=first, ylabel="bits per byte", xlim=(0, steps[-1]))
    axes.set_xticks(ticks, [f"{scale * tick:,.0f}" for tick in ticks])
    axes.xaxis.labelpad = 1
    axes.legend()
    for i, (name, one) in enumerate(others, 1):
        ruler = axes.secondary_xaxis(-0.25 * i)
        ruler.set_xlabel(name, labelpad=1)
        ruler.set_xticks(ticks, [f"{one * tick:,.0f}" if one * tick < 1e7 else f"{one * tick:.1e}" for tick in ticks])
    return figure, {name: one * np.asarray(steps) for name, one in a_step.items()}


@styled
def yardsticks(
    counted: Mapping[str, Mapping[str, Sequence[float]]], levels: Mapping[str, Mapping[str, float]]
) -> tuple[Figure, dict]:
    """A panel for each split. Bits per byte of counting models over their order, one line a text they have counted;
    horizontal lines for what has no order. Both: split -> name -> value."""
    figure = Figure(figsize=(9.0, 3.9), layout="constrained")
    for axes, split in zip(figure.subplots(1, len(counted), sharey=True), counted, strict=True):
        for (name, bits), colour in zip(counted[split].items(), (GREEN, SKY), strict=False):
            axes.plot(range(len(bits)), bits, "o-", color=colour, label=name)
        for (name, bits), colour in zip(levels[split].items(), (BLUE, RED, PURPLE, ORANGE, GREY), strict=False):
            axes.axhline(bits, color=colour, ls="-" if colour == BLUE else "--", lw=1.8, label=name)
        axes.set(title=split, xlabel="bytes of context of the counts", ylim=(1.2, 4.6))
    figure.axes[0].set_ylabel("bits per byte")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure, {"counted": counted, "levels": levels}


@styled
def norms(values: Sequence[float], clip: float, window: int) -> tuple[Figure, dict]:
    """The gradient's norm at every step before clipping, its running mean, and the norm it is clipped to."""
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    places, means = running(values, window)
    axes.semilogy(np.arange(1, len(values) + 1), values, color="#BBBBBB", lw=0.5, label="each step")
    axes.plot(places, means, color=GREY, lw=2, label=f"mean of {window} steps")
    axes.axhline(clip, color=RED, label=f"clipped to {clip:g}")
    ticks = [0.5, 1, 2, 5, 10]
    axes.set(xlabel="step", ylabel="norm of the gradient", xlim=(0, len(values)), ylim=(0.7, 10))
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    figure.legend(loc="outside upper center", ncols=3)
    return figure, {"means": means}


@styled
def jitter(first: int, raw: Sequence[float], again: Sequence[float]) -> tuple[Figure, np.ndarray]:
    """Losses of the same sequences: at their training step (from `first` on), and by the final model."""
    raw, again = np.asarray(raw), np.asarray(again)
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    steps = first + np.arange(len(raw))
    left.plot(steps, raw, color=GREY, lw=1.4, label="when it was trained on")
    left.plot(steps, again, color=BLUE, lw=1.4, label="read by the final model")
    left.plot(steps, raw - again, color=RED, lw=1.4, label="difference")
    left.set(xlabel="step", ylabel="nats per byte", xlim=(steps[0], steps[-1]), ylim=(0, None))
    right.plot(again, raw, "o", ms=3, color=BLUE)
    right.set(xlabel="final model, nats", ylabel="at its step, nats")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure, raw - again


@styled
def attractors(steps: Sequence[int], panels: Mapping[str, np.ndarray], edge: float = 1.0) -> tuple[Figure, Mapping]:
    """One panel a measure, each [steps, layers]; "radius" and "residual" on logarithmic axes."""
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    for axes, (name, values) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        for layer, colour in zip(range(values.shape[1]), CYCLE, strict=False):
            axes.plot(steps, values[:, layer], color=colour, label=f"layer {layer}")
        if name in ("radius", "residual"):
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 0.5)
        if name == "radius":
            axes.axhline(edge, color="black", ls="--", lw=1)
        axes.set(title=name, xlim=(0, steps[-1]))
    for axes in figure.axes[2:]:
        axes.set_xlabel("step")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure, panels


@styled
def surprise(raw: bytes, bits: Sequence[float], wide: int) -> tuple[Figure, np.ndarray]:
    """A text, each byte on a ground as dark as it was surprising; rows of `wide` bytes, filled up with NaN."""
    high = -(-len(raw) // wide)
    grid = np.full(high * wide, np.nan)
    grid[: len(raw)] = bits
    grid = grid.reshape(high, wide)
    figure = Figure(figsize=(9.0, 0.9 + 0.3 * high), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(grid, cmap="YlOrRd", vmin=0, vmax=8, aspect="auto")
    for i, byte in enumerate(raw):
        shown = chr(byte) if 32 <= byte < 127 else "↵" if byte == 10 else "·"
        dark = bits[i] > 5.5
        axes.text(i % wide, i // wide, shown, ha="center", va="center", family="monospace", fontsize=10,
                  color="white" if dark else "black")  # fmt: skip
    axes.axis("off")
    figure.colorbar(image, ax=axes, label="bits", ticks=[0, 2, 4, 6, 8], pad=0.01)
    return figure, grid


@styled
def where(
    letters: Sequence[float], starts: Sequence[int], by_position: Sequence[float], exactly: Mapping[int, float]
) -> tuple[Figure, dict]:
    """Left: bits by a letter's place in its word. Right: bits by the number of bytes seen: by place in the window
    (ranges that begin at `starts`, counted from 0), and of the same bytes each time, cut off from what came earlier."""
    figure = Figure(figsize=(9.0, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.bar(range(1, len(letters) + 1), letters, color=BLUE)
    left.set(xlabel="letter of the word", ylabel="bits", xticks=range(1, len(letters) + 1))
    left.grid(axis="x", visible=False)
    seen = np.asarray(starts) + 1  # a byte at place p has p + 1 before it
    right.semilogx(seen, by_position, "o-", color=SKY, label="by place in the window")
    right.semilogx(list(exactly), list(exactly.values()), "o-", color=RED, label="the same bytes, cut off")
    ticks = [2**i for i in range(10)]
    right.set_xticks(ticks, [str(tick) for tick in ticks])
    right.minorticks_off()
    right.set(xlabel="bytes that the prediction sees", ylim=(0, None))
    right.legend()
    return figure, {"letters": np.asarray(letters), "seen": seen, "exactly": dict(exactly)}


@styled
def sizes(runs: Mapping[str, Mapping], window: int) -> tuple[Figure, dict]:
    """Bits per byte of several runs, left over the bytes read, as far as all of them came, right over the flops spent.
    Of each: "raw" (every step's own), "held-out" (steps, bits), and what a step takes, "bytes" and "flops". Lines are
    means of the raw ones over `window` bytes."""
    figure = Figure(figsize=(9.0, 3.7), layout="constrained")
    shown = {}
    for axes, unit in zip(figure.subplots(1, 2, sharey=True), ("bytes", "flops"), strict=True):
        for (name, run), colour in zip(runs.items(), (BLUE, RED), strict=False):
            places, means = running(run["raw"], window // run["bytes"])
            axes.plot(run[unit] * places, means, color=colour, lw=1.8, label=name)
            at, bits = (np.asarray(x) for x in run["held-out"])
            axes.plot(run[unit] * at, bits, "o", ms=5, color=colour, mec="white", label=f"{name}, held-out")
            shown[name, unit] = run[unit] * places, means
    left, right = figure.axes
    left.set(xlabel="bytes read (millions)", ylabel="bits per byte (logarithmic)", yscale="log")
    left.set_yticks((2, 3, 4, 6, 8), labels=("2", "3", "4", "6", "8"), minor=False)
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set_xlim(0, min(run["bytes"] * len(run["raw"]) for run in runs.values()))
    left.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:g}")
    right.set(xlabel="arithmetic (flops, logarithmic)", xscale="log")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure, shown


def spell(byte: int) -> str:
    """A byte as a tick's label."""
    known = {32: "space", 10: "line end", 255: "end"}
    return known.get(byte, chr(byte) if 33 <= byte < 127 else f"{byte:#04x}")


def sampler(model, tokenizer, tokens: int = 8, seed: int = 1) -> Callable[..., tuple[LiveFigure, dict]]:
    """For an Explorer: draw(prompt, temperature, top_k) -> the likeliest next bytes at temperature 1 (hollow) and as
    they are drawn from (bars), and a completion of `tokens` bytes. A prompt is read once, and then remembered."""

    @cache
    def read(prompt: str):
        logits, state = model.prefill(torch.as_tensor(tokenizer.encode(prompt))[None])
        logits = logits[0].double()
        ids = logits.argsort(descending=True, stable=True)
        labels = tuple(spell(int(i)) for i in ids[:LIKELIEST].flip(0))
        place, ticks = (0.13, 0.16, 0.84, 0.73), tuple(range(LIKELIEST))
        title = "the likeliest next bytes: dots as the model says, bars as drawn from"
        panel = Panel(place, title, "probability", "", (0, 1), (-0.6, LIKELIEST - 0.4), (0, 0.25, 0.5, 0.75, 1), ticks,
                      labels)  # fmt: skip
        return logits, state, ids, panel

    @cache
    def complete(prompt: str, temperature: float, top_k: int) -> str:
        logits, state, _, _ = read(prompt)
        rng, chosen = torch.Generator().manual_seed(seed), []
        for _ in range(tokens):
            chosen.append(generation.choose(logits, temperature, top_k, None, rng))
            if chosen[-1] == tokenizer.end:
                break
            logits, state = model.step(torch.tensor(chosen[-1:]), state)
            logits = logits[0]
        return tokenizer.decode(chosen)

    def draw(prompt: str, temperature: float, top_k: int) -> tuple[LiveFigure, dict]:
        logits, _, ids, panel = read(prompt)
        said, p = logits.softmax(-1)[ids], drawn_from(logits[ids], temperature, top_k)
        figure = LiveFigure((7.0, 3.4), (panel,))
        for place in range(LIKELIEST):
            y = LIKELIEST - 1 - place
            figure.add_line(0, [0, float(p[place])], [y, y], BLUE, width=9)
        rows = range(LIKELIEST - 1, -1, -1)
        figure.add_line(0, said[:LIKELIEST].numpy(), list(rows), RED, width=0, dot=3.5, filled=False)
        entropy = -(p * p.clamp_min(1e-300).log2()).sum()
        text = repr(prompt[-20:] + complete(prompt, temperature, top_k))[1:-1]
        return figure, {"bits of the choice": float(entropy) + 0.0, "bytes above 1%": str(int((p > 0.01).sum())),
                        "one way to go on": f"…{text}…"}  # fmt: skip

    return draw


def drawn_from(ordered: torch.Tensor, temperature: float, top_k: int | None) -> torch.Tensor:
    """Probabilities from logits, the largest first: divided by the temperature, cut to the top_k, brought back to a sum
    of 1. What `generation.choose` draws from."""
    if temperature == 0:
        return torch.nn.functional.one_hot(torch.tensor(0), len(ordered)).double()
    p = ((ordered - ordered[0]) / temperature).softmax(-1)
    if top_k is not None:
        p[top_k:] = 0
    return p / p.sum()
