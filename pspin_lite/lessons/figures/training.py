"""Figures of notebook 10: the curves of a run, jitter, attractors, the loss byte by byte, and a widget with models that
count. Each returns the figure and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from .live import LiveFigure, Panel, Passage
from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, RED, styled

SPLITS = {"recent": ORANGE, "held-out": BLUE}
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
        axes.annotate(f"{bits:.3f}", (step, bits), (0, -9), textcoords="offset points", ha=side, va="top",
                      fontsize=9.5, weight="bold")  # fmt: skip
    high = f"; ▲ off the scale, up to {max(raw[i - 1] for i in cut):.1f}" if len(cut) else ""
    note = f"dots: 64 windows; grey: loss per step, and its mean over {window}{high}"
    axes.set_title(note, loc="left", color=GREY, fontsize=9.5)
    axes.set(xlabel="step", ylabel="bits per byte", xlim=(0, len(raw)), ylim=(1.0, top))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return figure, {"places": places, "means": means, "cut": cut}


def counting(
    scores: Mapping[str, Sequence[float]],
    levels: Mapping[str, Mapping[str, float]],
    write: Callable[[int], tuple[str, float]],
) -> Callable[..., tuple[LiveFigure, dict]]:
    """For an Explorer: draw(order) -> what counts of that order reach and write. A panel for each split: bits per byte
    of the counts over their order, a ring at the chosen one, and a horizontal line for each of the levels, of which the
    first is the network. write: order -> a text, and the share of real words in a longer one."""
    write, panels, top = cache(write), [], 4.8
    orders = range(len(next(iter(scores.values()))))
    for i, (split, bits) in enumerate(scores.items()):
        network, best = next(iter(levels[split].values())), min(levels[split], key=levels[split].get)
        finding = next((f"counts win from order {n}" for n in orders if bits[n] < network), "the network wins")
        finding = f"{best} wins" if levels[split][best] < min(network, *bits) else finding
        place, name = (0.09 + 0.48 * i, 0.17, 0.41, 0.7), "" if i else "bits per byte"
        panels.append(
            Panel(place, f"{split}: {finding}", "order: bytes of context", name, (-0.3, orders[-1] + 0.3), (1, top),
                  tuple(orders), (1, 2, 3, 4))
        )  # fmt: skip

    def draw(order: int) -> tuple[LiveFigure, dict]:
        figure = LiveFigure((7.8, 3.9), tuple(panels))
        for i, (split, bits) in enumerate(scores.items()):
            named = sorted(
                [*levels[split].items(), (f"counts of order {order}", bits[order])], key=lambda pair: -pair[1]
            )
            colours = dict(zip(levels[split], (BLUE, RED), strict=False))
            for row, (name, value) in enumerate(named):
                colour = colours.get(name, GREEN)
                figure.add_text(i, 0.72 * orders[-1], top - 0.05 - 0.28 * row, f"{name}: {value:.2f}", colour)
                if name in colours:
                    ends = [-0.3, orders[-1] + 0.3]
                    figure.add_line(i, ends, [value, value], colour, width=1.8, dashes=colour != BLUE)
            figure.add_line(i, [order], [bits[order]], GREEN, width=0, dot=8, filled=False)
            figure.add_line(i, list(orders), bits, GREEN, width=1.5, dot=3)
        text, share = write(order)
        return figure, {"real words": f"{share:.0%}", "counts write": Passage(f"…{text}…")}

    return draw


@styled
def jitter(
    first: int, raw: Sequence[float], judges: Mapping[str, Sequence[float]], peaks: int = 6
) -> tuple[Figure, dict[str, float]]:
    """Bits per byte of the same sequences, a row each: at their training step (from `first` on), and by judges; the
    highest peaks of the first are marked in all. -> judge -> share of the first row's variance that it explains"""
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    rows, steps = figure.subplots(1 + len(judges), 1, sharex=True, sharey=True), first + np.arange(len(raw))
    shares = {name: float(np.corrcoef(raw, bits)[0, 1] ** 2) for name, bits in judges.items()}
    headline(figure, "Model and counts find nearly the same sequences hard")
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
    first.text(0.02 * steps[-1], 1.35 * edge, "above 1: small differences grow", fontsize=9)
    for axes in figure.axes[1:]:
        axes.set(ylabel="mean γ", ylim=(0, None))
    return figure, panels


@styled
def surprise(raw: bytes, bits: Sequence[float], wide: int) -> tuple[Figure, np.ndarray]:
    """A text, each byte on a background as dark as it was surprising; rows of `wide` bytes, filled up with NaN."""
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
    bar = figure.colorbar(image, ax=axes, label="bits", ticks=[0, 2, 4, 6, 8], pad=0.01)
    bar.ax.set_yticklabels(["0", "2", "4", "6", "≥ 8"])
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
    left.plot([enough], [by_length[enough]], "o", color="black", fillstyle="none", ms=11, mew=1.5)
    left.annotate(f"{enough} bytes", (enough, by_length[enough]), (1, 11), textcoords="offset points", ha="left",
                  fontsize=9.5, weight="bold")  # fmt: skip
    left.set_title(f"{enough} bytes are nearly enough", **TITLE)
    left.set(xlabel="bytes that the prediction may see (log scale)", ylabel="bits per byte", ylim=(0, None))
    for (name, shares), colour in zip(kept.items(), (GREY, BLUE), strict=False):
        right.semilogx(after, 100 * np.asarray(shares), "o-", color=colour, label=name)
    half = after[len(after) // 2 + 1]
    last = list(kept.values())[-1][after.index(half)]
    right.set_title(f"{last:.0%} of a byte is left {half} bytes later", **TITLE)
    right.set(xlabel="bytes later (log scale)", ylabel="% left, head that keeps most", ylim=(0, None))
    right.legend()
    for axes in figure.axes:
        ticks = [length for length in (by_length if axes is left else after) if length & (length - 1) == 0]
        axes.set_xticks(ticks, [str(length) for length in ticks])
        axes.minorticks_off()
    return figure, {"by_length": dict(by_length), "enough": enough, "last": last}
