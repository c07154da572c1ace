"""Figures of notebook 10: the curves of a run, yardsticks, jitter, attractors, the loss byte by byte, and a
widget for sampling. Each returns the figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure

from ... import generation
from ...data.tokenizers import Tokenizer
from ...language_model import LanguageModel
from .live import LiveFigure, Panel
from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, styled

SPLITS = {"recent": ORANGE, "held-out": BLUE}
LIKELIEST = 12  # bytes that the widget shows
TITLE = dict(loc="left", weight="bold", fontsize=11)


def headline(figure: Figure, text: str) -> None:
    """The finding, above all panels."""
    figure.suptitle(text, x=0.01, ha="left", weight="bold", fontsize=12)


def running(values: Sequence[float], window: int) -> tuple[np.ndarray, np.ndarray]:
    """(places, means) of `window` values in a row; the place is their middle."""
    means = np.convolve(values, np.ones(window) / window, "valid")
    return np.arange(len(means)) + (window + 1) / 2, means


@styled
def curves(
    raw: Sequence[float],
    validation: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    window: int,
    falling: int,
    marks: Mapping[int, float],
    top: float = 4.2,
) -> tuple[Figure, dict]:
    """Bits per byte against steps: every step's own, their running mean, and validations of each split as dots. From
    step `falling` on the learning rate falls. marks: step -> bits, ringed and named. What lies above `top` is cut off;
    later spikes get a triangle there."""
    figure = Figure(figsize=(7.4, 4.0), layout="constrained")
    axes, steps, (places, means) = figure.subplots(), np.arange(1, len(raw) + 1), running(raw, window)
    axes.plot(steps, raw, color="#BBBBBB", lw=0.5)
    axes.plot(places, means, color=GREY, lw=2)
    cut = steps[(np.asarray(raw) > top) & (steps > 0.1 * len(raw))]
    axes.plot(cut, np.full(len(cut), 0.99 * top), "^", color=GREY, ms=5)
    axes.axvspan(falling, len(raw), color=ORANGE, alpha=0.15, lw=0)
    axes.text((falling + len(raw)) / 2, 0.97 * top, "learning\nrate falls", ha="center", va="top", fontsize=9.5)
    for name, (at, bits) in validation.items():
        axes.plot(at, bits, "o-", ms=3.5, color=SPLITS[name])
        x, y = 0.4 * len(raw), 2.85 if name == "recent" else 1.15  # clear of the grey, with a line to the curve
        leader = dict(arrowstyle="-", color=SPLITS[name], lw=1.2)
        axes.annotate(f"{name} speeches", (x, float(np.interp(x, at, bits))), (x, y), color=SPLITS[name],
                      ha="center", arrowprops=leader)  # fmt: skip
    axes.plot(list(marks), list(marks.values()), "o", color="black", fillstyle="none", ms=9, mew=1.5, clip_on=False)
    for step, bits in marks.items():
        side = "right" if step == len(raw) else "center"
        axes.annotate(f"{bits:.2f}", (step, bits), (0, -9), textcoords="offset points", ha=side, va="top",
                      fontsize=9.5, weight="bold")  # fmt: skip
    high = f"; ▲ above the frame, up to {max(raw[i - 1] for i in cut):.1f}" if len(cut) else ""
    note = f"dots: 64 windows; grey: loss of each step, and its mean over {window}{high}"
    axes.set_title(note, loc="left", color=GREY, fontsize=9.5)
    axes.set(xlabel="step", ylabel="bits per byte", xlim=(0, len(raw)), ylim=(1.0, top))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return figure, {"places": places, "means": means, "cut": cut}


@styled
def yardsticks(
    counted: Mapping[str, Mapping[str, Sequence[float]]], levels: Mapping[str, Mapping[str, float]]
) -> tuple[Figure, dict]:
    """A panel for each split. Bits per byte of counting models over their order, one line per text they have counted;
    horizontal lines for what has no order, the first of them the network. Both: split -> name -> value. The names are
    listed in each panel from the highest line to the lowest, in the colours of the lines."""
    figure = Figure(figsize=(7.8, 4.4), layout="constrained")
    for axes, split in zip(figure.subplots(1, len(counted), sharey=True), counted, strict=True):
        for (name, bits), colour in zip(counted[split].items(), (GREEN, SKY), strict=False):
            axes.plot(range(len(bits)), bits, "o-", color=colour)
            listed = [(min(bits), f"{name}, at best", colour)]
        for (name, bits), colour in zip(levels[split].items(), (BLUE, RED, PURPLE, ORANGE, GREY), strict=False):
            axes.axhline(bits, color=colour, ls="-" if colour == BLUE else "--", lw=1.8)
            listed.append((bits, name, colour))
        for row, (bits, name, colour) in enumerate(sorted(listed, reverse=True)):
            how = dict(color=colour, transform=axes.transAxes, ha="right", va="top", fontsize=9.5)
            axes.text(0.99, 0.97 - 0.075 * row, f"{name}: {bits:.2f}", **how)
        network, counts = next(iter(levels[split].values())), next(iter(counted[split].values()))
        beats = [order for order, bits in enumerate(counts) if bits < network]
        finding = f"counting {beats[0]} bytes back beats the network" if beats else "counting does not beat the network"
        best = min(levels[split], key=levels[split].get)
        if levels[split][best] < min(network, *counts):
            finding = f"{best} beats network and counts"
        axes.set_title(f"{split} speeches:\n{finding}", **(TITLE | dict(fontsize=10.5)))
        axes.set(xlabel="bytes of context of the counts", ylim=(1.2, 4.6))
    figure.axes[0].set_ylabel("bits per byte")
    return figure, {"counted": counted, "levels": levels}


@styled
def jitter(
    first: int, raw: Sequence[float], judges: Mapping[str, Sequence[float]], peaks: int = 6
) -> tuple[Figure, dict[str, float]]:
    """Bits per byte of the same sequences, a row each: at their training step (from `first` on), and by judges; the
    highest peaks of the first are marked in all. -> judge -> share of the first row's variance that it explains"""
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    rows, steps = figure.subplots(1 + len(judges), 1, sharex=True, sharey=True), first + np.arange(len(raw))
    shares = {name: float(np.corrcoef(raw, bits)[0, 1] ** 2) for name, bits in judges.items()}
    headline(figure, "The jumps come from the text: whoever reads it, the same sequences are hard")
    titles = ["the loss in training", *(f"{name}: {share:.0%} of the variance above" for name, share in shares.items())]
    for axes, title, bits, colour in zip(rows, titles, [raw, *judges.values()], (GREY, BLUE, GREEN), strict=False):
        for place in np.argsort(raw)[-peaks:]:
            axes.axvline(steps[place], color=ORANGE, lw=5, alpha=0.25)
        axes.plot(steps, bits, color=colour, lw=1.5)
        axes.set_title(title, loc="left", color=colour, fontsize=10.5)
    rows[len(judges) // 2].set_ylabel("bits per byte")
    rows[-1].set(xlabel="step (orange: the highest peaks of the loss in training)", xlim=(steps[0], steps[-1]))
    rows[-1].xaxis.set_major_formatter("{x:,.0f}")
    return figure, shares


@styled
def attractors(steps: Sequence[int], panels: Mapping[str, np.ndarray], edge: float = 1.0) -> tuple[Figure, Mapping]:
    """One panel per measure, each [steps, layers], its name the panel's title; the first is the radius, logarithmic,
    with the edge of stability."""
    figure = Figure(figsize=(7.6, 3.5), layout="constrained")
    for axes, (name, values) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for layer, colour in zip(range(values.shape[1]), CYCLE, strict=False):
            axes.plot(steps, values[:, layer], color=colour)
            axes.text(steps[-1] * 1.02, values[-1, layer], f"layer {layer}", color=colour, va="center", fontsize=9.5)
        axes.set_title(name, **TITLE)
        axes.set(xlabel="step", xlim=(0, steps[-1]), xticks=[steps[0], steps[-1] // 2, steps[-1]])
        axes.xaxis.set_major_formatter("{x:,.0f}")
    first = figure.axes[0]
    first.set(yscale="log", ylabel="largest ρ of 64 tokens (logarithmic)")
    first.yaxis.set_major_formatter("{x:g}")
    first.axhline(edge, color="black", ls="--", lw=1)
    first.set_ylim(None, 2 * edge)
    first.text(0.02 * steps[-1], 1.15 * edge, "above 1: small differences grow", fontsize=9)
    for axes in figure.axes[1:]:
        axes.set(ylabel="mean γ", ylim=(0, None))
    return figure, panels


@styled
def surprise(raw: bytes, bits: Sequence[float], wide: int) -> tuple[Figure, np.ndarray]:
    """A text, each byte on a ground as dark as it was surprising; rows of `wide` bytes, filled up with NaN."""
    high = -(-len(raw) // wide)
    grid = np.full(high * wide, np.nan)
    grid[: len(raw)] = bits
    grid = grid.reshape(high, wide)
    figure = Figure(figsize=(7.8, 0.8 + 0.3 * high), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(grid, cmap="YlOrRd", vmin=0, vmax=8, aspect="auto")
    for i, byte in enumerate(raw):
        shown = chr(byte) if 32 <= byte < 127 else "↵" if byte == 10 else "·"
        dark = bits[i] > 5.5
        axes.text(i % wide, i // wide, shown, ha="center", va="center", family="monospace", fontsize=10,
                  color="white" if dark else "black")  # fmt: skip
    axes.axis("off")
    axes.set_title("It hesitates where a word begins, then finishes it easily", **TITLE)
    figure.colorbar(image, ax=axes, label="bits", ticks=[0, 2, 4, 6, 8], pad=0.01)
    return figure, grid


@styled
def memory(
    by_length: Mapping[int, float], whole: float, after: Sequence[int], kept: Mapping[str, Sequence[float]]
) -> tuple[Figure, dict]:
    """Left: bits of the same bytes, predicted from no more than so many before them, and from the whole window. Right:
    the share of a byte that is left `after` so many, a line per network."""
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.axhline(whole, color=GREY, ls="--", lw=1.2)
    left.text(1, whole - 0.1, f"these bytes with the\nwhole window: {whole:.2f}", color=GREY, va="top", fontsize=9.5)
    left.semilogx(list(by_length), list(by_length.values()), "o-", color=RED)
    enough = next(length for length, bits in by_length.items() if bits < 1.01 * whole)
    left.set_title(f"{enough} bytes are nearly enough", **TITLE)
    left.set(xlabel="bytes that the prediction may see", ylabel="bits per byte", ylim=(0, None))
    for (name, shares), colour in zip(kept.items(), (GREY, BLUE), strict=False):
        right.semilogx(after, 100 * np.asarray(shares), "o-", color=colour, label=name)
    half = after[len(after) // 2 + 1]
    last = list(kept.values())[-1][after.index(half)]
    right.set_title(f"{last:.0%} of a byte is left {half} bytes later", **TITLE)
    right.set(xlabel="bytes later", ylabel="per cent left, best head", ylim=(0, None))
    right.legend()
    for axes in figure.axes:
        ticks = [length for length in (by_length if axes is left else after) if length & (length - 1) == 0]
        axes.set_xticks(ticks, [str(length) for length in ticks])
        axes.minorticks_off()
    return figure, {"by_length": dict(by_length), "enough": enough, "last": last}


def spell(byte: int) -> str:
    """A byte as a tick's label."""
    known = {32: "space", 10: "line end", 255: "end"}
    return known.get(byte, chr(byte) if 33 <= byte < 127 else f"{byte:#04x}")


def sampler(
    model: LanguageModel, tokenizer: Tokenizer, tokens: int = 8, seed: int = 1
) -> Callable[..., tuple[LiveFigure, dict]]:
    """For an Explorer: draw(prompt, temperature, top_k) -> the likeliest next bytes at temperature 1 (rings) and as
    they are drawn from (bars), and a completion of `tokens` bytes. A prompt is read once, and then remembered."""

    @cache
    def read(prompt: str) -> tuple[torch.Tensor, list, torch.Tensor, Panel]:
        logits, state = model.prefill(torch.as_tensor(tokenizer.encode(prompt))[None])
        logits = logits[0].double()
        ids = logits.argsort(descending=True, stable=True)
        labels = tuple(spell(int(i)) for i in ids[:LIKELIEST].flip(0))
        return logits, state, ids, labels

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
        logits, _, ids, labels = read(prompt)
        said, p = logits.softmax(-1)[ids], drawn_from(logits[ids], temperature, top_k)
        most = max(p[0].item(), said[0].item())
        limit = next(limit for limit in (0.2, 0.4, 1) if most <= limit + 1e-9)
        place, ticks = (0.13, 0.16, 0.84, 0.73), tuple(limit * part / 4 for part in range(5))
        title = "Temperature and top-k change the odds, not the ranking"
        label = f"probability of the byte after “{prompt}”; rings: at temperature 1"
        panel = Panel(place, title, label, "", (0, limit), (-0.6, LIKELIEST - 0.4), ticks,
                      tuple(range(LIKELIEST)), labels)  # fmt: skip
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
