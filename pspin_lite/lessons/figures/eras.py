"""Figures of notebook 14: words that are new, the loss on speeches as training goes through the years, the effect of
order, how networks compare, and replay. Each returns the figure and the arrays it shows. In every difference between
networks p-Spin comes first, in every difference between orders `time`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...data import sequences
from ...study import continual, intervals, networks, records
from ...study.claims.comparisons import FAMILY
from ...study.intervals import Difference
from ...study.questions.answers import answers
from .. import fading
from . import study
from .style import BLUE, GREY, ORANGE, styled

NAMES = {"p-spin": "p-Spin", "transformer": "Transformer", "swiglu": "SwiGLU", "k0-same-size": "no feedback"}
ORDERS = {"time": "in order", "replay": "replay", "mixed": "mixed"}
TITLE = dict(x=0.01, ha="left", weight="bold", fontsize=11.5)
SMALL = (5.2, 3.5)  # inches: readable on a phone
LENGTH, WINDOWS = 128, 32  # of a sequence, in bytes; of each speech, for tests
STEP = "1943"  # the first speech after the step of the vocabulary
OTHERS = "#9a9a9a"  # networks that are not looked at, behind the one that is
OF_LEGEND = ("p-spin", "transformer")  # one name for all that are grey
COUNTS = dict(color="black", linestyle=(0, (2, 1.5)), linewidth=1.5)
BySeed = dict[int, float]


def losses(model: str, order: str = "time") -> np.ndarray:
    """Bits per byte [seeds, eras, tests], without the test before the first step."""
    runs = records.seeds(continual.GROUP, f"{model}-{order}").values()
    return np.stack([continual.eras(run).bits[:, 1:] for run in runs])


def by_seed(model: str, measure: Callable[[np.ndarray], np.ndarray]) -> BySeed:
    """What is forgotten in order, by the reader's own measure ([speeches, tests] -> [speeches]); mean but the last."""
    seeds = records.seeds(continual.GROUP, f"{model}-time")
    return {seed: float(measure(A)[: -continual.LAST].mean()) for seed, A in zip(seeds, losses(model), strict=True)}


def test_steps() -> np.ndarray:
    return continual.eras(records.seeds(continual.GROUP, "p-spin-time")[1]).steps[1:]


def against(costs: Mapping[str, BySeed]) -> dict[str, Difference]:
    """p-Spin minus each other network, as the ledger has it: the variance is pooled over all networks, and the
    intervals are widened for all that decide something."""
    spread, first = intervals.pooled(costs.values()), costs["p-spin"]
    return {
        model: intervals.difference(first, other, spread, family=FAMILY)
        for model, other in costs.items()
        if model != "p-spin"
    }


def look(model: str) -> dict[str, object]:
    """p-Spin stands out."""
    first = model == "p-spin"
    return study.OF_ARMS[model] | dict(linewidth=2.6 if first else 1.4, zorder=3 if first else 2)


def titled(figure: Figure, panel: Axes, title: str, xlabel: str, ylabel: str, columns: int = 2) -> None:
    figure.suptitle(title, **TITLE)
    panel.set(xlabel=xlabel, ylabel=ylabel)
    if columns:
        figure.legend(loc="outside lower center", ncols=columns)


def counts(order: str = "time", half_life: float = math.inf) -> fading.Course:
    """The yardstick: counts of order 4 that learn the sequences of an order (of seed 1), and are tested as the networks
    are."""
    return _counts(order, half_life)


@cache
def _counts(order: str, half_life: float) -> fading.Course:
    total, length = networks.arm(continual.GROUP, f"p-spin-{order}").cfg.steps, LENGTH
    how = dict(length=length, seed=networks.SEEDS[0], order=order, total=total)
    data = sequences.open(continual.CORPUS, "bytes", **how)
    splits = {year: sequences.open(continual.CORPUS, "bytes", split=year, length=length) for year in continual.passed()}
    seen = np.stack([data.sequence(i) for i in range(total)]).astype(np.uint8)
    return fading.learn(seen, fading.windows(splits, WINDOWS), half_life)


def year_axis(panel: Axes, last: int = 4800, written: Sequence[str] = ("1843", "1883", "1923", "1963", "2003")) -> None:
    """On the axis of steps, the speeches that are being read."""
    at = continual.passed()
    panel.set_xticks([at[year] * last for year in written], written)


@styled
def new_words(share: np.ndarray, years: Sequence[str], title: str) -> tuple[Figure, np.ndarray]:
    """Per cent of the words of each row's speech that are not in the language of each column; lines at the step."""
    figure = Figure(figsize=(5.2, 4.3), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1)
    panel, last = figure.subplots(), len(years) - 1
    image = panel.imshow(share, cmap="Blues", origin="lower")
    figure.colorbar(image, ax=panel, label="% of its words that are new", shrink=0.85)
    panel.set_yticks(range(len(years)), years)
    panel.set_xticks(range(0, len(years), 2), years[::2])
    panel.grid(visible=False)
    for era in range(len(years)):
        panel.add_patch(Rectangle((era - 0.5, era - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2))
    if STEP in years:
        for line in (panel.axvline, panel.axhline):
            line(list(years).index(STEP) - 0.5, color="black", linestyle="--", linewidth=1.2)
    for row, column in ((0, 0), (last, last), (last, 0), (0, last)):
        colour = "white" if share[row, column] > share.mean() else "black"
        panel.text(column, row, f"{share[row, column]:.0f}", color=colour, ha="center", va="center", fontsize=9.5)
    titled(figure, panel, title, "compared with speeches from around", "speech of", 0)
    return figure, share


@styled
def quantities(title: str) -> tuple[Figure, dict[str, float]]:
    """What is measured, by an invented example: the loss on a speech at four tests, in order and on mixed text."""
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    panel, x, shown = figure.subplots(), np.arange(1, 5), {}
    in_order, mixed = np.array([2.6, 2.1, 2.2, 2.5]), np.array([2.9, 2.7, 2.4, 2.3])
    panel.plot(x, in_order, marker="o", color=BLUE, linewidth=2.2)
    panel.plot(x, mixed, marker="o", color=GREY, linewidth=1.6, linestyle="--")
    panel.text(1.4, 2.45, "in order", color=BLUE, weight="bold")
    panel.text(1.75, 2.77, "mixed text", color=GREY, weight="bold")
    end, bold = in_order[-1], dict(ha="center", weight="bold", fontsize=10)
    panel.plot([4, 4.95], [end, end], color=GREY, linewidth=1, linestyle=":", zorder=1)
    bars = (("forgotten", 2, in_order.min(), 4.3, BLUE, ""), ("effect of order", 4, mixed[-1], 4.95, ORANGE, "+"))
    for name, since, start, place, colour, sign in bars:
        shown[name] = round(float(end - start), 3)
        panel.plot([since, place], [start, start], color=GREY, linewidth=1, linestyle=":", zorder=1)
        panel.plot([place] * 2, [start, end], color=colour, marker="_", ms=10, mew=2, linewidth=2.4)
        low = name == "forgotten"
        text = f"{name}\n{sign}{shown[name]:.1f}"
        panel.text(
            place, start - 0.03 if low else end + 0.03, text, color=colour, va="top" if low else "bottom", **bold
        )
    for i, above in enumerate((True, False, False, True)):
        how = dict(textcoords="offset points", ha="center", va="bottom" if above else "top", fontsize=9.5, color=BLUE)
        panel.annotate(f"{in_order[i]}", (x[i], in_order[i]), (0, 5 if above else -6), **how)
    panel.annotate(f"{mixed[-1]}", (4, mixed[-1]), (-4, -6), **how | dict(va="top", color=GREY))
    panel.set(xlim=(0.7, 5.6), ylim=(1.85, 3.0), xticks=x)
    titled(figure, panel, title, "test", "loss on one speech, bits per byte", 0)
    return figure, shown


@styled
def courses(
    bits: np.ndarray, years: Sequence[str], chosen: Sequence[str], steps: np.ndarray, title: str, yardstick: np.ndarray
) -> tuple[Figure, dict[str, np.ndarray]]:
    """The loss on some speeches over training, coloured by time; a ring where training reaches their year; if
    something is forgotten, a dot at the lowest loss, and at the right how much. bits: [speeches, tests]; yardstick:
    that of counts on the first of them."""
    figure = Figure(figsize=(5.2, 4.0), layout="constrained")
    panel, shown, at = figure.subplots(), {}, continual.passed()
    for year in chosen:
        row = shown[year] = bits[list(years).index(year)]
        colour = mpl.colormaps["viridis"](0.88 * at[year])
        panel.plot(steps, row, color=colour, linewidth=1.8)
        reached = at[year] * steps[-1]
        if reached >= steps[0]:
            panel.plot(reached, np.interp(reached, steps, row), "o", mfc="white", mec=colour, ms=8, mew=1.8)
        panel.text(steps[0] - 60, row[0], year, color=colour, ha="right", va="center", weight="bold", fontsize=10)
        lost, right = row[-1] - row.min(), 1.02 * steps[-1]
        if lost > 0:
            panel.plot(steps[row.argmin()], row.min(), "o", color=colour, ms=7)
            panel.plot([steps[row.argmin()], right], [row.min()] * 2, color=colour, linewidth=1, linestyle=":")
            panel.plot([right] * 2, [row.min(), row[-1]], color=colour, marker="_", ms=9, mew=1.8, linewidth=1.8)
            panel.text(1.01 * right, row.min(), f" {lost:.2f}", color=colour, va="bottom", fontsize=10)
    panel.plot(steps, yardstick, **COUNTS, label=f"counts on {chosen[0]}")
    ring = dict(linestyle="", marker="o", color=GREY)
    panel.plot([], [], **ring, mfc="white", ms=8, mew=1.8, label="its year is read")
    panel.plot([], [], **ring, ms=7, label="lowest loss")
    panel.set_xlim(-350, 1.14 * steps[-1])
    year_axis(panel, steps[-1])
    titled(figure, panel, title, "speeches being read, in order", "loss, bits per byte", 3)
    return figure, shown


@styled
def by_speech(models: Sequence[str], years: Sequence[str], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """The effect of order on each speech at the end: a line per network with the range of its seeds, and counts."""
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    panel, shown, x = figure.subplots(), {}, range(len(years))
    for model in models:
        effect = np.array(list(continual.cost_of_order(model).values()))
        shown[model] = effect.mean(0)
        panel.plot(x, shown[model], marker="o", markersize=4, **look(model), label=NAMES[model])
        panel.fill_between(x, effect.min(0), effect.max(0), color=look(model)["color"], alpha=0.15, linewidth=0)
    shown["counts"] = counts("time").bits[:, -1] - counts("mixed").bits[:, -1]
    _zero(panel, "order hurts", "order helps")
    panel.plot(x, shown["counts"], **COUNTS | dict(linewidth=2.4), zorder=4, label="counts")
    panel.set_xticks(range(0, len(years), 2), years[::2])
    titled(figure, panel, title, "speech of", "effect of order, bits per byte", 3)
    return figure, shown


def _zero(panel: Axes, above: str, below: str) -> None:
    """The line at zero, and what lies on either side of it."""
    panel.axhline(0, color=GREY, linewidth=1)
    place = dict(xycoords=("axes fraction", "data"), textcoords="offset points", color=GREY, fontsize=9.5)
    panel.annotate(f"↑ {above}", (0.01, 0), (0, 4), va="bottom", **place)
    panel.annotate(f"↓ {below}", (0.01, 0), (0, -4), va="top", **place)


@styled
def compared(
    measures: Mapping[str, Mapping[str, Difference]], title: str
) -> tuple[Figure, dict[tuple[str, str], Difference]]:
    """p-Spin minus each other network by several measures, with intervals."""
    figure = Figure(figsize=(5.2, 4.1), layout="constrained")
    panel, shown, ticks = figure.subplots(), {}, {}
    y, white = 0.0, dict(fc="white", ec="none", pad=1.5)
    header = dict(transform=panel.get_yaxis_transform(), weight="bold", fontsize=10.5, va="center", bbox=white)
    for measure, gaps in measures.items():
        panel.text(0.02, y, measure, **header)
        for model, gap in gaps.items():
            y += 1
            colour = study.OF_ARMS[model]["color"]
            panel.errorbar(gap.mean, y, xerr=gap.half_width, fmt="o", color=colour, capsize=3)
            shown[measure, model], ticks[y] = gap, f"vs {NAMES[model]}"
        y += 1.4
    panel.axvline(0, color=GREY, linewidth=1)
    panel.set_yticks(list(ticks), list(ticks.values()))
    panel.set_ylim(y - 0.9, -0.7)
    panel.grid(axis="y", visible=False)
    titled(figure, panel, title, "p-Spin minus the other, bits per byte\n(right of 0: p-Spin does worse)", "", 0)
    return figure, shown


def end_losses(learner: str, order: str) -> np.ndarray:
    """[seeds, 2]: loss at the end on the speeches but the last, and on the last."""
    end = counts(order).bits[None, :, -1] if learner == "counts" else losses(learner, order)[:, :, -1]
    return np.stack([end[:, : -continual.LAST].mean(1), end[:, -continual.LAST :].mean(1)], 1)


def at_the_end(models: Sequence[str]) -> list[list[str]]:
    """A table: bits per byte at the end on old text and new, after reading in order and after mixed text."""
    rows = [["learner", "older, in order", "older, mixed", "2023, in order", "2023, mixed"]]
    for learner in [*models, "counts"]:
        ends = np.array([end_losses(learner, order).mean(0) for order in ("time", "mixed")])
        rows.append([NAMES.get(learner, learner), *(f"{value:.2f}" for value in ends.T.ravel())])
    return rows


def forgotten_so_far(bits: np.ndarray) -> np.ndarray:
    """[.., speeches, tests] -> [tests]: loss minus the lowest up to then, mean over seeds and speeches but the last."""
    lost = bits - np.minimum.accumulate(bits, -1)
    return lost[..., : -continual.LAST, :].reshape(-1, bits.shape[-1]).mean(0)


def at_equal_rates() -> list[list[str]]:
    """A table: the online loss of p-Spin and the Transformer with bytes, after the warm-up and during it."""
    rows = [["both at", "p-Spin", "Transformer", "difference", "difference during warm-up"]]
    warm = dict(start=0, end=continual.WARM)
    for about, *pair in answers("order")[0].question.differences[:2]:
        ends = [one.split("/")[::-1] for one in pair]
        after = [records.mean(continual.followed(name, group=group)) for name, group in ends]
        during = [records.mean(continual.followed(name, group=group, **warm)) for name, group in ends]
        gaps = [f"{one - other:+.3f}" for one, other in (after, during)]
        rows.append([_rate(about).removeprefix("bytes, both at "), *(f"{x:.3f}" for x in after), *gaps])
    return rows


def _rate(text: str) -> str:
    """Ends with a learning rate: as texts write it."""
    words, _, rate = text.rpartition(" ")
    return f"{words} {float(rate):g}"


def settings() -> list[list[str]]:
    """A table of the networks: size and learning rate."""
    rows = [["network", "layers", "parameters", "learning rate"]]
    for model in continual.models():
        run = records.seeds(continual.GROUP, f"{model}-time")[networks.SEEDS[0]]
        cfg = run["config"]["model"]
        size = f"{run['summary']['parameters']:,}"
        rows.append([NAMES[model], f"{cfg['layers']}", size, f"{cfg['lr']:g}"])
    return rows
