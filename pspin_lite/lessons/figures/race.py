"""Figures of notebook 11 on top of study.py's: how the past is weighed, tuning, two networks at two batch sizes, and
their difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...config import Config, preset
from ...study import jobs, networks, records
from ...study.claims.comparisons import CLOSE, FAMILY
from ...study.intervals import Difference
from . import diagram as d
from . import study
from .live import LiveFigure, Panel
from .style import BLUE, GREEN, GREY, ORANGE, styled

SAMPLE = f"bits per byte ({jobs.FULL['validate_tokens']:,} tokens)"  # a sample, validated during a run
COLUMNS = ("rate", "window", "p-Spin", "Transformer", "difference")  # of a comparison
EQUAL = {"sequences": "sequences", "flops": "arithmetic", "seconds": "time"}
BOTH = ("p-spin", "transformer")
HARDLY = 0.05  # bits per byte: networks that a title does not tell apart
PAST, DECAY, SHARPNESS = 24, 0.8, 6.0  # tokens, and made-up constants of `weigh_the_past`
TITLE = dict(loc="left", weight="bold", fontsize=11)
DASHES = {"batch 1": "-", "batch 64": ":"}
RECIPES = {1: "batch 1\n8,000 sequences", 64: "batch 64\n64,000 sequences"}

Seeds = Mapping[int, dict]  # seed -> record
Network = tuple[str, str]  # group and name, as in networks.py


def proper(text: str) -> str:
    """The names of networks as texts write them."""
    return text.replace("p-spin", "p-Spin").replace("transformer", "Transformer")


def capitals(figure: Figure) -> Figure:
    """The same figure, with such names in its legends."""
    for legend in [*figure.legends, *(panel.get_legend() for panel in figure.axes)]:
        for text in legend.get_texts() if legend else ():
            text.set_text(proper(text.get_text()))
    return figure


def cooling(run: dict, unit: str) -> float:
    """Where on an axis of study.AXES the run's learning rate begins to fall."""
    model = run["config"]["model"]
    return float(records.axis(run, np.array(model["steps"] - model["cooldown"]), unit)) / study.AXES[unit][1]


def _mark(panel: Axes, runs: study.Runs, unit: str) -> dict[str, float]:
    """A hollow dot on each line where its run begins to cool down."""
    places = {}
    for line, (name, seeds) in zip(panel.lines, runs.items(), strict=False):
        places[name] = cooling(seeds[0], unit)
        height = np.interp(places[name], line.get_xdata(), line.get_ydata())
        panel.plot(places[name], height, "o", mfc="white", mec=line.get_color(), ms=7, mew=1.6, zorder=4)
    panel.set_xlabel(f"{panel.get_xlabel()} (logarithmic)")
    return places


def after(runs: Sequence[dict], place: float, unit: str = "sequences", split: str = records.SPLIT) -> float:
    """Bits per byte, mean over seeds, where the curve passes a place on an axis of study.AXES."""
    steps, _ = records.curve(runs[0], split)
    x = records.axis(runs[0], steps, unit) / study.AXES[unit][1]
    return float(np.interp(place, x, np.mean([records.curve(run, split)[1] for run in runs], 0)))


def weigh_the_past(distance: int) -> tuple[LiveFigure, dict[str, float]]:
    """For an Explorer: what two ways of weighing make of the same products of query and key. One token of the past fits
    the query, `distance` tokens back; the products are made up, 1 for it and 0.1 for the others."""
    back = np.arange(1, PAST + 1)
    products = np.where(back == distance, 1.0, 0.1)
    scores = np.exp(SHARPNESS * products)
    weights = {"state space": products * DECAY**back, "attention": scores / scores.sum()}
    titles = ("State space: it fades with distance", "Attention: found at any distance")
    panels, ticks = [], (-24, -18, -12, -6, -1)
    for i, title in enumerate(titles):
        place, label = (0.09 + 0.49 * i, 0.2, 0.41, 0.68), "" if i else "weight"
        panels.append(
            Panel(place, title, "past tokens (−1: the one before)", label, (-PAST - 0.7, 0), (0, 1), ticks, (0, 0.5, 1))
        )
    figure = LiveFigure((7.6, 2.7), tuple(panels))
    for i, (bars, colour) in enumerate(zip(weights.values(), (BLUE, ORANGE), strict=True)):
        for place, weight in zip(-back, bars, strict=True):
            figure.add_line(i, [place, place], [0, weight], colour if place == -distance else GREY, width=5)
    return figure, {f"{name}: weight of the token that matches": bars[distance - 1] for name, bars in weights.items()}


def config(network: Network) -> Config:
    """Of its full runs, but for the seed, and what was tuned."""
    return networks.arm(*network).cfg


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


def _row(pair: tuple[Network, Network]) -> list[str]:
    """Under COLUMNS: how two networks were trained, where they end, and the difference."""
    runs = [list(runs_of(one).values()) for one in pair]
    models = [one[0]["config"]["model"] for one in runs]
    settings = [[f"{model['lr']:g}", f"{model['context']}"] for model in models]
    ends = [np.mean([run["summary"]["validation"][records.SPLIT]["bits_per_byte"] for run in one]) for one in runs]
    gap = difference(pair, records.SPLIT)
    width = f" ± {gap.half_width:.3f}" if gap.pairs > 1 else ", one run each"
    merged = [" / ".join(dict.fromkeys(values)) for values in zip(*settings, strict=True)]
    return [*merged, *(f"{end:.3f}" for end in ends), f"{gap.mean:+.3f}{width}"]


@styled
def square(alphabet: str, title: str, diagonal: str, notes: Sequence[str] = ("",) * 4) -> tuple[Figure, dict]:
    """Where two networks end with two recipes, on held-out speeches, and the differences along the sides and along the
    diagonal. notes: what to write into each box, row by row. -> (network, batch) -> bits per byte"""
    figure, axes = d.canvas(7.4, 3.7, title)
    label = "bits per byte, held-out; on the lines: top minus bottom, right minus left"
    d.label(axes, 1.5, 32.3, label, GREY, 9.5, ha="left")
    high, wide, left, low = 7, 18, {1: 15.5, 64: 53.5}, {"p-spin": 17.5, "transformer": 1.5}
    ends, written = {}, iter(notes)
    for name, colour in zip(BOTH, (BLUE, ORANGE), strict=True):
        d.label(axes, 1.5, low[name] + high / 2, proper(name), size=11, ha="left", weight="bold")
        for batch, x in left.items():
            ends[name, batch] = records.mean(records.bits(f"{alphabet}-{batch}", name))
            note = next(written)
            d.box(axes, x, low[name], wide, high, f"{ends[name, batch]:.3f}" + ("\n" if note else ""), colour, 12)
            d.label(axes, x + wide / 2, low[name] + 1.9, note, GREY, 9)
        y = low[name] + high / 2
        d.arrow(axes, (left[1] + wide, y), (left[64], y))
        d.label(axes, 43.5, y + 1.5, f"{ends[name, 64] - ends[name, 1]:+.3f}")
    white = dict(fc="white", ec="none", pad=1.5)
    for batch, x in left.items():
        d.label(axes, x + wide / 2, 27.8, RECIPES[batch])
        d.line(axes, [x + wide / 2] * 2, [low["transformer"] + high, low["p-spin"]])
        gap = difference(tuple((f"{alphabet}-{batch}", name) for name in BOTH), records.SPLIT)
        d.label(axes, x + wide / 2, 13, f"{gap.mean:+.3f} ± {gap.half_width:.3f}", bbox=white)
    d.line(axes, [left[1] + wide, left[64]], [low["p-spin"], low["transformer"] + high], d.BACKWARD, "--")
    across = ends["p-spin", 1] - ends["transformer", 64]
    d.label(axes, 43.5, 13, f"{diagonal}\n{across:+.3f}", d.BACKWARD, bbox=white)
    return figure, ends


def trained(pairs: Mapping[str, tuple[Network, Network]]) -> list[list[str]]:
    """A table: how the networks of each pair were trained, where they end, and the difference."""
    return [["bits per byte, held-out", *COLUMNS], *([name, *_row(pair)] for name, pair in pairs.items())]


@styled
def comparisons(pairs: Mapping[str, tuple[Network, Network]]) -> tuple[Figure, dict[str, list[Difference]]]:
    """Differences between two networks on both splits, with intervals where there are several seeds; shaded where a
    whole interval has to lie for a match."""
    figure = Figure(figsize=(7.2, 1.4 + 0.6 * len(pairs)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(-1, CLOSE, color=d.tint(GREEN), lw=0, zorder=0)
    panel.axvline(0, color=GREY, lw=1)
    shown = {name: [difference(pair, split) for split in records.SPLITS] for name, pair in pairs.items()}
    for i, gaps in enumerate(shown.values()):
        for split, gap, colour, y in zip(records.SPLITS, gaps, (GREEN, GREY), (i - 0.15, i + 0.15), strict=True):
            one = dict(mfc="white") if gap.pairs == 1 else dict(xerr=gap.half_width)
            panel.errorbar(gap.mean, y, fmt="o", color=colour, capsize=3, label="" if i else f"{split} speeches", **one)
    panel.set_yticks(range(len(pairs)), list(pairs))
    every = [gap for gaps in shown.values() for gap in gaps]
    tips = [x for gap in every for x in ((gap.low, gap.high) if gap.pairs > 1 else (gap.mean,))]
    panel.set(
        xlim=(min(tips) - 0.02, max(tips) + 0.02),
        ylim=(len(pairs) - 0.5, -0.5),
        xlabel="p-Spin minus Transformer, bits per byte (below 0: p-Spin is better)",
    )
    panel.grid(axis="y", visible=False)
    note = f"a match: both bars in the shaded area, below +{CLOSE:g}"
    note += "; hollow: one run" if min(gap.pairs for gap in every) == 1 else ""
    panel.set_title(note, fontsize=9.5, color=GREY, loc="left")
    panel.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure, shown


@styled
def tuning(group: str, names: Sequence[str]) -> tuple[Figure, dict[str, float]]:
    """study.tuning with hollow stars, which hide no dot, at the rate of their own run. -> name -> the best rate that
    the full runs could have"""
    rates, doubled = ({name: records.rates(group, name, scale) for name in names} for scale in networks.SCALES)
    best = {name: min(networks.RATES, key=rates[name].get) for name in names}
    figure = capitals(study.tuning(rates, doubled)[0])
    panel = figure.axes[0]
    for line, name in zip(panel.lines[1::2], names, strict=False):
        line.set_xdata(list(doubled[name]))
    for line in [*panel.lines, *panel.get_legend().get_lines()]:
        if line.get_marker() == "*":
            line.set(markerfacecolor="none", markeredgecolor=line.get_color(), markersize=15)
    panel.set_ylabel("bits per byte, mean of both splits")
    times = (highest := max(best.values())) / preset("subword-lite").lr
    batch = group.rpartition("-")[2]
    panel.set_title(f"Batch {batch}: little to gain beyond {highest:g}, {times:g} times the paper's rate", **TITLE)
    return figure, best


def level(runs: study.Runs, unit: str, split: str) -> tuple[float, dict[str, float]]:
    """The place on an axis where the first run begins to cool down, and the bits per byte of all of them there."""
    place = min(cooling(seeds[0], unit) for seeds in runs.values())
    return place, {name: after(seeds, place, unit, split) for name, seeds in runs.items()}


@styled
def curves(runs: study.Runs, unit: str, split: str = records.SPLIT) -> tuple[Figure, dict]:
    """study.one_axis for names like "p-spin, batch 1": the colour is the network's, the dashes are the batch size's,
    and the title says which are lowest where the first one begins to cool down. -> what to show beneath: all of them
    there"""
    figure, _ = study.one_axis(runs, unit, split)
    panel = figure.axes[0]
    for line, band, name in zip(panel.lines, panel.collections, runs, strict=True):
        network, _, rest = name.partition(", ")
        colour = study.OF_ARMS[network]["color"]
        line.set(color=colour, linestyle=DASHES[rest], label=proper(name))
        band.set_facecolor(colour)
    _mark(panel, runs, unit)
    panel.legend(fontsize=9.5, title="bands: lowest to highest seed", title_fontsize=9)
    place, bits = level(runs, unit, split)
    lowest = [name for name in bits if bits[name] < min(bits.values()) + HARDLY]
    shared = sorted({name.partition(", ")[2] for name in lowest})
    finding = f"{' and '.join(map(proper, lowest))} lead{'s' if len(lowest) == 1 else ''}"
    finding = f"{shared[0]} leads, with either network" if len(lowest) == 2 and len(shared) == 1 else finding
    finding = "hardly apart" if len(lowest) == len(bits) else finding
    panel.set_title(f"At equal {EQUAL[unit]}: {finding}", **TITLE)
    panel.set_xlabel(f"{panel.get_xlabel()}; ○ learning rate begins to fall")
    panel.set_ylabel(SAMPLE)
    numbers = {f"{proper(name)}": f"{one:.2f}" for name, one in bits.items()}
    where = f"{place:,.0f}" if place >= 100 else f"{place:.3g}"
    return figure, {f"{study.AXES[unit][0]} so far": where} | numbers


def recipes(alphabet: str) -> dict[str, list[dict]]:
    """The runs of both networks at both batch sizes, by names that `curves` takes."""
    return {
        f"{name}, batch {batch}": list(records.seeds(f"{alphabet}-{batch}", name).values())
        for batch in RECIPES
        for name in BOTH
    }


def compared() -> Callable[..., tuple[Figure, dict]]:
    """For an Explorer: draw(alphabet, axis, split) of `curves`."""
    choices = {alphabet: recipes(alphabet) for alphabet in ("subwords", "bytes")}

    def draw(alphabet: str, axis: str, split: str) -> tuple[Figure, dict]:
        return curves(choices[alphabet], axis, split)

    return draw
