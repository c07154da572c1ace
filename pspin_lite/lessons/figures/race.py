"""Figures of notebook 11 on top of study.py's: two networks at two batch sizes, how much text one takes to catch up
with the other, what a learning rate is worth, and their difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...config import Config, preset
from ...study import jobs, networks, records
from ...study.claims.comparisons import CLOSE, FAMILY
from ...study.intervals import Difference
from . import diagram as d
from . import study
from .style import BLUE, GREEN, GREY, ORANGE, styled

SAMPLE = f"bits per byte ({jobs.FULL['validate_tokens']:,} tokens)"  # a sample, validated during a run
BOTH = ("p-spin", "transformer")
MIDDLE = "#949494"  # beside black
TITLE = dict(loc="left", weight="bold", fontsize=11)
DASHES = {"batch 1": "-", "batch 64": ":"}
PAPER = (("p-spin", 1), ("transformer", 64))  # its two corners of the square
RECIPES = {1: "batch 1\n8,000 sequences", 64: "batch 64\n64,000 sequences"}
Seeds = Mapping[int, dict]  # seed -> record
Network = tuple[str, str]  # group and name, as in networks.py


def display_name(text: str) -> str:
    """The names of networks as texts write them."""
    return text.replace("p-spin", "p-Spin").replace("transformer", "Transformer")


def cooling(run: dict, unit: str) -> float:
    """Where on an axis of study.AXES the run's learning rate begins to fall."""
    model = run["config"]["model"]
    return float(records.axis(run, np.array(model["steps"] - model["cooldown"]), unit)) / study.AXES[unit][1]


def after(runs: Sequence[dict], place: float, unit: str = "sequences", split: str = records.SPLIT) -> float:
    """Bits per byte, mean over seeds, where the curve passes a place on an axis of study.AXES."""
    steps, _ = records.curve(runs[0], split)
    x = records.axis(runs[0], steps, unit) / study.AXES[unit][1]
    return float(np.interp(place, x, np.mean([records.curve(run, split)[1] for run in runs], 0)))


def short_end(network: Network, rate: float, split: str = records.SPLIT) -> float:
    """Bits per byte at the end of the tuning run at a learning rate, with the smaller initial weights."""
    runs = [(one["config"]["model"], one["summary"]) for one in records.tries(*network).values()]
    chosen = (rate, networks.SCALES[0])
    [end] = [end for model, end in runs if (model["lr"], model["gain"]) == chosen]
    return end["validation"][split]["bits_per_byte"]


def plateau_factor(one: Network, other: Network, start: float | None = None) -> float:
    """How many times as many sequences the other takes to the loss that the first one has after `start` of them (None:
    when its learning rate begins to fall); infinite if the other's begins to fall first."""
    small, large = (list(records.seeds(*network).values()) for network in (one, other))
    start, end = start or cooling(small[0], "sequences"), cooling(large[0], "sequences")
    level, warm = after(small, start), large[0]["config"]["model"]["warmup"] * large[0]["config"]["model"]["batch"]
    places = (place for place in np.arange(min(start, warm), end + 1, 10) if after(large, place) <= level)
    return float(next(places, np.inf)) / start


def factor_rows(pairs: Sequence[tuple[Network, Network]], places: Sequence[int]) -> list[list[str]]:
    """How many times the text the second of each pair takes to get as far as the first after so many sequences, as a
    table with a head."""
    rows = [["batch 1", "batch 64", *(f"times the text, after {place:,}" for place in places)]]
    for one, other in pairs:
        factors = [f"{plateau_factor(one, other, place):.1f}" for place in places]
        rows.append([*(display_name(name) for _, name in (one, other)), *factors])
    return rows


def diagonal_rows(pair: tuple[Network, Network], rates: Sequence[float]) -> list[list[str]]:
    """Where a pair ends on held-out speeches, as a table with a head: short runs at each learning rate, full runs at
    the last of them, and the presets of the two networks, at theirs."""
    ends = {("short", rate): [short_end(network, rate) for network in pair] for rate in rates}
    ends["full", rates[-1]] = [records.mean(records.bits(*network)) for network in pair]
    presets = [("presets", name) for name in ("subword-lite", "transformer-lite")]
    ends["full, windows of 256 (notebook 00)", tuned(presets[0])] = [
        next(iter(runs_of(one).values()))["summary"]["validation"][records.SPLIT]["bits_per_byte"] for one in presets
    ]
    rows = [["runs", "rate for both", *(display_name(name) for _, name in pair), "p-Spin − Transformer"]]
    for (length, rate), (ours, theirs) in ends.items():
        rows.append([length, f"{rate:g}", f"{ours:.3f}", f"{theirs:.3f}", f"{ours - theirs:+.3f}"])
    return rows


def signed(gap: Difference) -> str:
    """A difference and its interval, with the sign that figures have."""
    return f"{gap.mean:+.3f} ± {gap.half_width:.3f}".replace("-", "−")


def config(network: Network) -> Config:
    """Of its full runs, but for the seed, and what was tuned."""
    return networks.arm(*network).cfg


def tuned(network: Network) -> float:
    """The learning rate of its full runs."""
    return next(iter(runs_of(network).values()))["config"]["model"]["lr"]


def runs_of(network: Network) -> Seeds:
    """All full runs of a network, or the one run of a preset."""
    group, name = network
    if group == "presets":
        return {1: records.read(f"presets/{name}/seed-{preset(name).seed}")}
    return records.seeds(group, name)


def difference(pair: tuple[Network, Network], split: str) -> Difference:
    """As verdicts have it: the interval from the variance of whole groups, widened for all that decide something."""
    ends = [
        {n: run["summary"]["validation"][split]["bits_per_byte"] for n, run in runs_of(one).items()} for one in pair
    ]
    if min(map(len, ends)) == 1:
        return records.difference(*ends)
    return records.compare(*pair, split, FAMILY)


@styled
def square(
    alphabet: str, title: str, diagonal: str, notes: Sequence[str] = ("",) * 4, empty: bool = False
) -> tuple[Figure, dict]:
    """Where two networks end with two recipes, on held-out speeches, and the differences along the sides and along the
    diagonal. diagonal: what to write there, with {} for the difference. notes: what to write into each box, row by row.
    empty: only the paper's two corners and the diagonal.
    -> (network, batch) -> bits per byte"""
    figure, axes = d.canvas(5.2, 4.3, title)
    label = "bits per byte on held-out speeches: lower is better\n"
    label += f"{'' if empty else 'down and '}diagonal: p-Spin minus Transformer"
    d.label(axes, 1.5, 36.9, label, GREY, ha="left")
    high, wide, left, low = 7.5, 14, {1: 13.5, 64: 37.3}, {"p-spin": 20, "transformer": 1.5}
    middle, ends, written = (left[1] + wide + left[64]) / 2, {}, iter(notes)
    for name, colour in zip(BOTH, (BLUE, ORANGE), strict=True):
        d.label(axes, 0.8, low[name] + high / 2, display_name(name), size=11, ha="left", weight="bold")
        for batch, x in left.items():
            ends[name, batch] = records.mean(records.bits(f"{alphabet}-{batch}", name))
            note = next(written)
            known = not empty or (name, batch) in PAPER
            shown = f"{ends[name, batch]:.3f}" if known else "?"
            d.box(axes, x, low[name], wide, high, shown + ("\n" if note else ""), colour if known else GREY, 13)
            d.label(axes, x + wide / 2, low[name] + 1.9, note, GREY)
        if empty:
            continue
        y = low[name] + high / 2
        d.arrow(axes, (left[1] + wide, y), (left[64], y))
        gain = ends[name, 1] - ends[name, 64]
        d.label(axes, middle, y + 2.6, f"{abs(gain):.3f}\n{'better' if gain > 0 else 'worse'}", size=10.5)
    white = dict(fc="white", ec="none", pad=1.5)
    between = (low["p-spin"] + low["transformer"] + high) / 2
    d.line(axes, [left[1] + wide, left[64]], [low["p-spin"], low["transformer"] + high], d.BACKWARD, "--")
    across = difference(((f"{alphabet}-1", "p-spin"), (f"{alphabet}-64", "transformer")), records.SPLIT)
    gap = signed(across).replace(" ± ", "\n± ")  # as narrow as it can be, between two others
    d.label(axes, middle, between, diagonal.format(gap), d.BACKWARD, bbox=white)
    for batch, x in left.items():
        d.label(axes, x + wide / 2, 30.4, RECIPES[batch])
        if empty:
            continue
        d.line(axes, [x + wide / 2] * 2, [low["transformer"] + high, low["p-spin"]])
        gap = difference(tuple((f"{alphabet}-{batch}", name) for name in BOTH), records.SPLIT)
        d.label(axes, x + wide / 2, between, signed(gap), bbox=white)
    return figure, ends


@styled
def catching_up(alphabet: str) -> tuple[Figure, dict[tuple[str, int], tuple[np.ndarray, np.ndarray]], dict[str, float]]:
    """Learning curves of each network with both batch sizes, a panel per network. An arrow goes from the ring, where
    the rate of batch 1 begins to fall, to where batch 64 gets as low.
    -> (network, batch) -> sequences, bits per byte; network -> bits per byte at the ring"""
    figure, curves, levels = Figure(figsize=(5.2, 5.4), layout="constrained"), {}, {}
    panels = figure.subplots(2, 1, sharex=True)
    for panel, name in zip(panels, BOTH, strict=True):
        colour, pair = study.OF_ARMS[name]["color"], tuple((f"{alphabet}-{batch}", name) for batch in RECIPES)
        for batch in RECIPES:
            runs = list(records.seeds(f"{alphabet}-{batch}", name).values())
            steps, _ = records.curve(runs[0])
            x = records.axis(runs[0], steps, "sequences")[1:]
            curves[name, batch] = x, np.mean([records.curve(run)[1][1:] for run in runs], 0)
            panel.plot(*curves[name, batch], color=colour, ls=DASHES[f"batch {batch}"], lw=2)
        (x, small), (_, large) = curves[name, 1], curves[name, 64]
        ring = cooling(next(iter(records.seeds(*pair[0]).values())), "sequences")
        level, place = float(np.interp(ring, x, small)), ring * plateau_factor(*pair)
        levels[name] = level
        how = dict(arrowstyle="-|>", lw=2, shrinkA=0, shrinkB=0, color=d.INK)
        panel.annotate("", (place, level), (ring, level), arrowprops=how, zorder=5)
        later = cooling(next(iter(records.seeds(*pair[1]).values())), "sequences")
        for at, height in ((ring, level), (later, np.interp(later, *curves[name, 64]))):
            panel.plot(at, height, "o", mfc="white", mec=colour, ms=7, mew=1.6, zorder=6)
        text = f"{place / ring:.1f} times\nthe text"
        panel.text(1.1 * place, level + 0.03, text, color=d.INK, ha="left", va="bottom")
        panel.text(x[1], small[1] + 0.06, "batch 1", color=colour, ha="left", va="bottom")
        panel.text(3800, large[0], "batch 64", color=colour, ha="left", va="center")
        panel.set_ylim(1.2, 2.35)
        panel.set_title(display_name(name), **TITLE)
        panel.set_ylabel(SAMPLE)
        panel.set_xscale("log")
        panel.set_xlim(330, 150_000)
    places = (400, 2000, 7000, 22_000, 64_000)
    panels[-1].set_xticks(places, [f"{place:,}" for place in places])
    panels[-1].set_xticks([], minor=True)
    panels[-1].set_xlabel("sequences read (logarithmic); ○ rate begins to fall")
    title = "Batch 64 needs about three times the text\nto reach the same loss"
    figure.suptitle(title, x=0.01, ha="left", weight="bold", fontsize=12)
    return figure, curves, levels


@styled
def rates(alphabet: str, chosen: float, title: str) -> tuple[Figure, dict[tuple[str, int], dict[float, float]]]:
    """Where short runs end over the learning rate they had, a panel per batch size; dashed, the chosen rate.
    -> (network, batch) -> learning rate -> bits per byte on held-out speeches"""
    figure, ends = Figure(figsize=(5.2, 3.9), layout="constrained"), {}
    for panel, batch in zip(figure.subplots(1, 2, sharey=True), RECIPES, strict=True):
        for name in BOTH:
            network, colour = (f"{alphabet}-{batch}", name), study.OF_ARMS[name]["color"]
            ends[name, batch] = {rate: short_end(network, rate) for rate in records.rates(*network)}
            curve = ends[name, batch]
            panel.plot(list(curve), list(curve.values()), "o-", color=colour, lw=2, ms=4, label=display_name(name))
        panel.axvline(chosen, color=GREY, ls="--", lw=1.2)
        panel.set_xscale("log")
        every = list(ends[BOTH[0], batch])
        panel.set_xticks(every[::2], [f"{rate:g}" for rate in every[::2]])
        panel.set_xticks([], minor=True)
        steps = next(iter(records.tries(f"{alphabet}-{batch}", BOTH[0]).values()))["config"]["model"]["steps"]
        panel.set_title(f"batch {batch}, {steps:,} steps", **TITLE)
    figure.axes[0].set_ylabel("bits per byte, held-out")
    figure.axes[0].legend(loc="lower left", handlelength=1.0, fontsize=10)
    figure.supxlabel(f"learning rate (logarithmic); dashed: {chosen:g}, of the full runs", fontsize=11)
    figure.suptitle(title, x=0.01, ha="left", weight="bold", fontsize=12)
    return figure, ends


@styled
def comparisons(pairs: Mapping[str, tuple[Network, Network]]) -> tuple[Figure, dict[str, list[Difference]]]:
    """Differences between two networks on both splits, with intervals where there are several seeds; shaded where a
    whole interval has to lie for a match."""
    figure = Figure(figsize=(5.2, 2 + 0.6 * len(pairs)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(-1, CLOSE, color=d.tint(GREEN), lw=0, zorder=0)
    panel.axvline(0, color=GREY, lw=1)
    shown = {name: [difference(pair, split) for split in records.SPLITS] for name, pair in pairs.items()}
    for i, gaps in enumerate(shown.values()):
        for split, gap, colour, y in zip(records.SPLITS, gaps, (d.INK, MIDDLE), (i - 0.15, i + 0.15), strict=True):
            one = dict(mfc="white") if gap.pairs == 1 else dict(xerr=gap.half_width)
            panel.errorbar(gap.mean, y, fmt="o", color=colour, capsize=3, label="" if i else f"{split} speeches", **one)
    panel.set_yticks(range(len(pairs)), list(pairs))
    every = [gap for gaps in shown.values() for gap in gaps]
    tips = [x for gap in every for x in ((gap.low, gap.high) if gap.pairs > 1 else (gap.mean,))]
    panel.set(
        xlim=(min(tips) - 0.02, max(tips) + 0.02),
        ylim=(len(pairs) - 0.5, -0.5),
        xlabel="p-Spin minus Transformer, bits per byte\n(below 0: p-Spin is better)",
    )
    panel.grid(axis="y", visible=False)
    note = f"a match: both bars in the shaded area, below +{CLOSE:g}"
    note += "; hollow: one run" if min(gap.pairs for gap in every) == 1 else ""
    panel.set_title(note, fontsize=10, color=GREY, loc="left")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.12), ncols=2)
    return figure, shown
