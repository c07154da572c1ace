"""Figures of notebook 14: words that are new, the price of eras as training goes through the years, what the order
costs, how networks compare, and replay. Each returns the figure and the arrays it shows. In every difference between
networks p-Spin comes first, in every difference between orders `time`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ...study import continual, intervals, networks, records
from ...study.claims.comparisons import FAMILY
from ...study.intervals import Difference
from ...study.questions.answers import answers
from . import study
from .style import GREY, styled

NAMES = {"p-spin": "p-Spin", "transformer": "Transformer", "swiglu": "SwiGLU", "k0-same-size": "no recurrence"}
ORDERS = {"time": "in order", "replay": "replay", "mixed": "mixed"}
TITLE = dict(x=0.01, ha="left", weight="bold", fontsize=11.5)
SMALL = (5.2, 3.5)  # inches: readable on a phone
STRETCH = 200  # steps that a point of the online price is the mean over

ByModel = Mapping[str, np.ndarray]
BySeed = dict[int, float]


def prices(model: str, order: str = "time") -> np.ndarray:
    """Bits per byte [seeds, eras, tests], without the test before the first step."""
    runs = records.seeds(continual.GROUP, f"{model}-{order}").values()
    return np.stack([continual.eras(run).bits[:, 1:] for run in runs])


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


def _titled(figure: Figure, panel: Axes, title: str, xlabel: str, ylabel: str, columns: int = 2) -> None:
    figure.suptitle(title, **TITLE)
    panel.set(xlabel=xlabel, ylabel=ylabel)
    if columns:
        figure.legend(loc="outside lower center", ncols=columns)


@styled
def new_words(share: np.ndarray, years: Sequence[str], title: str) -> tuple[Figure, np.ndarray]:
    """Per cent of the words of each row's speech that are not in the language of each column."""
    figure = Figure(figsize=(5.2, 4.3), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1)
    panel, last = figure.subplots(), len(years) - 1
    image = panel.imshow(share, cmap="viridis_r", origin="lower")
    figure.colorbar(image, ax=panel, label="% of its words that are new", shrink=0.85)
    panel.set_yticks(range(len(years)), years)
    panel.set_xticks(range(0, len(years), 2), years[::2])
    panel.grid(visible=False)
    for era in range(len(years)):
        panel.add_patch(Rectangle((era - 0.5, era - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=2))
    for row, column in ((0, 0), (last, last), (last, 0), (0, last)):
        colour = "white" if share[row, column] > share.mean() else "black"
        panel.text(column, row, f"{share[row, column]:.0f}", color=colour, ha="center", va="center", fontsize=9.5)
    _titled(figure, panel, title, "known: speeches from around", "speech of", 0)
    return figure, share


@styled
def courses(
    bits: np.ndarray, years: Sequence[str], chosen: Sequence[str], steps: np.ndarray, title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """The price of some eras over training, coloured by time; a ring where training reaches an era, a dot where it is
    cheapest, and at the right what is forgotten. bits: [eras, tests]"""
    figure = Figure(figsize=(5.2, 3.7), layout="constrained")
    panel, shown, at = figure.subplots(), {}, continual.passed()
    for year in chosen:
        row = shown[year] = bits[list(years).index(year)]
        colour = mpl.colormaps["viridis"](0.88 * at[year])
        panel.plot(steps, row, color=colour, linewidth=1.8)
        reached = at[year] * steps[-1]
        if reached >= steps[0]:
            panel.plot(reached, np.interp(reached, steps, row), "o", mfc="white", mec=colour, ms=8, mew=1.8)
        panel.plot(steps[row.argmin()], row.min(), "o", color=colour, ms=7)
        panel.text(steps[0] - 60, row[0], year, color=colour, ha="right", va="center", weight="bold", fontsize=10)
        lost, right = row[-1] - row.min(), 1.02 * steps[-1]
        if lost > 0:
            panel.plot([steps[row.argmin()], right], [row.min()] * 2, color=colour, linewidth=1, linestyle=":")
            panel.plot([right] * 2, [row.min(), row[-1]], color=colour, marker="_", ms=9, mew=1.8, linewidth=1.8)
            panel.text(1.01 * right, row.min(), f" {lost:.2f}", color=colour, va="bottom", fontsize=10)
    ring = dict(linestyle="", marker="o", color=GREY)
    panel.plot([], [], **ring, mfc="white", ms=8, mew=1.8, label="training reaches the era")
    panel.plot([], [], **ring, ms=7, label="lowest price")
    panel.set_xlim(-350, 1.14 * steps[-1])
    panel.set_xticks(range(0, steps[-1] + 1, 1200), [f"{n:,}" for n in range(0, steps[-1] + 1, 1200)])
    _titled(figure, panel, title, "training steps, in order", "price, bits per byte")
    return figure, shown


@styled
def by_era(costs: ByModel, years: Sequence[str], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """What the order costs each era in the end, a line per network."""
    figure = Figure(figsize=SMALL, layout="constrained")
    panel = figure.subplots()
    for model, cost in costs.items():
        panel.plot(range(len(years)), cost, marker="o", markersize=4, **look(model), label=NAMES[model])
    _zero(panel, "order hurts", "order helps")
    panel.set_xticks(range(0, len(years), 2), years[::2])
    _titled(figure, panel, title, "speech of", "cost of order, bits per byte")
    return figure, dict(costs)


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
            shown[measure, model], ticks[y] = gap, f"− {NAMES[model]}"
        y += 1.4
    panel.axvline(0, color=GREY, linewidth=1)
    panel.set_yticks(list(ticks), list(ticks.values()))
    panel.set_ylim(y - 0.9, -0.7)
    panel.grid(axis="y", visible=False)
    _titled(figure, panel, title, "p-Spin minus the other, bits per byte\n(above 0: p-Spin does worse)", "", 0)
    return figure, shown


def online_course(model: str, order: str = "time") -> tuple[np.ndarray, np.ndarray]:
    """(steps, bits per byte of sequences before they are learned, [seeds, points]), means over stretches of steps."""
    loss = np.array([run["loss"] for run in records.seeds(continual.GROUP, f"{model}-{order}").values()])
    points = loss.reshape(len(loss), -1, STRETCH).mean(2) / math.log(2)
    steps = STRETCH * (np.arange(points.shape[1]) + 0.5)
    kept = steps > continual.WARM
    return steps[kept], points[:, kept]


@styled
def online(models: Sequence[str], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """What new text costs as it comes, over the years that are being read."""
    figure = Figure(figsize=SMALL, layout="constrained")
    panel, shown, at = figure.subplots(), {}, continual.passed()
    for model in models:
        steps, points = online_course(model)
        shown[model] = points.mean(0)
        panel.plot(steps, shown[model], **look(model), label=NAMES[model])
    written = [year for year in at if year in ("1843", "1883", "1923", "1963", "2003")]
    panel.set_xticks([at[year] * test_steps()[-1] for year in written], written)
    _titled(figure, panel, title, "speeches being read", "online price, bits per byte")
    return figure, shown


@styled
def around_arrival(models: Sequence[str], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """What the order costs an era before and after training reaches it, means over eras; p-Spin's seeds as a band."""
    figure = Figure(figsize=SMALL, layout="constrained")
    panel, shown = figure.subplots(), {}
    for model in models:
        since, lead = continual.lead(model)
        cost = -np.stack(list(lead.values()))
        shown[model] = cost.mean(0)
        panel.plot(since, shown[model], marker="o", markersize=4, **look(model), label=NAMES[model])
        if model == "p-spin":
            panel.fill_between(since, cost.min(0), cost.max(0), color=look(model)["color"], alpha=0.2, linewidth=0)
    _zero(panel, "order hurts", "order helps")
    panel.axvline(0, color=GREY, linestyle="--", linewidth=1)
    place = ((0, 0.97), (4, 0), ("data", "axes fraction"), "offset points")
    panel.annotate("the era's own text arrives", *place, color=GREY, fontsize=9.5, va="top")
    panel.set_xticks([-1000, 0, 1000], ["−1,000", "0", "+1,000"])
    _titled(figure, panel, title, "steps since training reached the era", "cost of order, bits per byte")
    return figure, shown


def following(model: str) -> tuple[float, list[int]]:
    """The cost of order in the bin of steps after training reached an era; and by seed, for how many steps of those
    bins it is below zero."""
    since, lead = continual.lead(model)
    arrival = list(continual.BINS).index(0)
    costs = [-one[since > 0] for one in lead.values()]
    ahead = [continual.BIN * int((one < 0).sum()) for one in costs]
    return -float(np.mean([one[arrival] for one in lead.values()])), ahead


def ends(model: str, order: str) -> tuple[float, float]:
    """Price at the end of the eras but the last, and of the last; means over seeds."""
    price = prices(model, order)[:, :, -1].mean(0)
    return float(price[: -continual.LAST].mean()), float(price[-continual.LAST :].mean())


@styled
def replayed(models: Sequence[str], title: str) -> tuple[Figure, dict[tuple[str, str], np.ndarray]]:
    """Prices at the end after each order minus those after `time`: (model, order) -> older eras, the last."""
    figure = Figure(figsize=(5.2, 3.7), layout="constrained")
    panels, shown = figure.subplots(1, 2, sharey=True), {}
    for model in models:
        base = np.array(ends(model, "time"))
        for order in ORDERS:
            shown[model, order] = np.array(ends(model, order)) - base
        for column, panel in enumerate(panels):
            change = [shown[model, order][column] for order in ORDERS]
            label = "" if column else NAMES[model]
            panel.plot(range(len(ORDERS)), change, marker="o", markersize=4, **look(model), label=label)
    for panel, what in zip(panels, ("eleven older eras", "2023"), strict=True):
        panel.axhline(0, color=GREY, linewidth=1, zorder=1)
        panel.set_xticks(range(len(ORDERS)), list(ORDERS.values()))
        panel.set_xlim(-0.5, len(ORDERS) - 0.5)
        panel.set_title(what, fontsize=10.5)
    _titled(figure, panels[0], title, "", "change of price, bits per byte")
    return figure, shown


@styled
def one_era(year: str, order: str) -> tuple[Figure, dict[str, float]]:
    """For an Explorer: the price of one era over training, a line per network over the range of its seeds."""
    figure, numbers = Figure(figsize=(7.6, 3.6), layout="constrained"), {}
    panel, at, steps = figure.subplots(), continual.passed()[year], test_steps()
    for model in continual.models():
        bits = prices(model, order)[:, list(continual.passed()).index(year)]
        looks = study.OF_ARMS[model]
        panel.plot(steps, bits.mean(0), marker="o", markersize=3, **looks, label=NAMES[model])
        panel.fill_between(steps, bits.min(0), bits.max(0), color=looks["color"], alpha=0.2, linewidth=0)
        numbers[f"{NAMES[model]}: forgotten"] = float((bits[:, -1] - bits.min(1)).mean())
    if order != "mixed":
        panel.axvline(at * steps[-1], color=GREY, linestyle="--", linewidth=1)
        low, high = panel.get_ylim()
        panel.text(at * steps[-1], low + 0.02 * (high - low), " training reaches it", color=GREY, fontsize=9.5)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.set(xlabel="training steps", ylabel="price, bits per byte")
    panel.legend()
    return figure, numbers


def equal_rates() -> list[list[str]]:
    """A table: what the order costs p-Spin and the Transformer at equal rates, where the runs are there."""
    rows = [["text and rate", "p-Spin", "Transformer", "p-Spin minus Transformer", "p-Spin's cost is"]]
    for row, (about, *pair) in zip(answers("order"), answers("order")[0].question.differences, strict=True):
        means, gap = ["", ""], ""
        if row.values:
            costs = [continual.lost_to_order(name, group) for group, name in (one.split("/") for one in pair)]
            means = [f"{records.mean(cost):+.3f}" for cost in costs]
            gap = f"{row.values[0][0].mean:+.3f} ± {row.values[0][0].half_width:.3f}"
        rows.append([about, *means, gap, row.verdict])
    return rows


def settings() -> list[list[str]]:
    """A table of the networks: size, learning rate, and the scale of the initial weights."""
    rows = [["network", "layers", "parameters", "learning rate", "initial weights"]]
    for model in continual.models():
        run = records.seeds(continual.GROUP, f"{model}-time")[networks.SEEDS[0]]
        cfg = run["config"]["model"]
        size = f"{run['summary']['parameters']:,}"
        rows.append([NAMES[model], f"{cfg['layers']}", size, f"{cfg['lr']:g}", f"times {cfg['gain']:g}"])
    return rows
