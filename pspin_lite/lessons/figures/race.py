"""Figures of notebook 11 on top of study.py's: how the past is weighed, tuning, the difference of two networks, two
networks in two alphabets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...config import Config, preset
from ...study import jobs, networks, records
from ...study.claims.comparisons import FAMILY
from ...study.intervals import Difference
from . import study
from .live import LiveFigure, Panel
from .style import BLUE, GREEN, GREY, ORANGE, styled

SAMPLE = f"bits per byte ({jobs.FULL['validate_tokens']:,} tokens)"  # a sample, validated during a run
COLUMNS = ("batch", "rate", "window", "sequences", "p-Spin", "Transformer", "difference")  # of a comparison
EQUAL = {"sequences": "sequences", "text": "text", "flops": "arithmetic", "seconds": "time"}
HARDLY = 0.05  # bits per byte: networks that a title does not tell apart
PAST, DECAY, SHARPNESS = 24, 0.8, 6.0  # tokens, and made-up constants of `weigh_the_past`
TITLE = dict(loc="left", weight="bold", fontsize=11)
DASHES = {"subwords": "-", "bytes": "--", "subwords, batch 64": ":"}  # of an alphabet

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


def after(runs: Sequence[dict], place: float, unit: str = "text", split: str = records.SPLIT) -> float:
    """Bits per byte, mean over seeds, where the curve passes a place on an axis of study.AXES."""
    steps, _ = records.curve(runs[0], split)
    x = records.axis(runs[0], steps, unit) / study.AXES[unit][1]
    return float(np.interp(place, x, np.mean([records.curve(run, split)[1] for run in runs], 0)))


def ends(runs: Sequence[dict]) -> tuple[float, float, float]:
    """Bits per byte, mean over seeds: where the learning rate begins to fall, at the end, and at the end on more text
    than the sample of the curves."""
    scores = [run["summary"]["validation"][records.SPLIT]["bits_per_byte"] for run in runs]
    plateau = after(runs, cooling(runs[0], "text"))
    model = runs[0]["config"]["model"]
    return plateau, after(runs, model["batch"] * model["steps"], "sequences"), float(np.mean(scores))


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


@styled
def contexts(nats: Mapping[str, np.ndarray], lengths: Sequence[int], size: float) -> tuple[Figure, dict]:
    """study.contexts with bits per byte on the right; size: bytes per token."""
    figure, shown = study.contexts(nats, lengths)
    factor = 1 / (np.log(2) * size)
    axis = figure.axes[0].secondary_yaxis("right", functions=(lambda y: y * factor, lambda y: y / factor))
    axis.set_ylabel("bits per byte")
    figure.axes[0].set_xlabel("tokens of context (logarithmic)")
    figure.axes[0].set_title("p-Spin leads at every length; attention gains more from distant tokens", **TITLE)
    figure.axes[0].annotate("bands: from the lowest to the highest seed", (0.98, 0.68), xycoords="axes fraction",
                            ha="right", fontsize=9.5, color=GREY)  # fmt: skip
    return capitals(figure), shown


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
    settings = [
        [f"{model['batch']}", f"{model['lr']:g}", f"{model['context']}", f"{model['batch'] * model['steps']:,}"]
        for model in models
    ]
    ends = [np.mean([run["summary"]["validation"][records.SPLIT]["bits_per_byte"] for run in one]) for one in runs]
    gap = difference(pair, records.SPLIT)
    width = f" ± {gap.half_width:.3f}" if gap.pairs > 1 else ", one run each"
    merged = [" / ".join(dict.fromkeys(values)) for values in zip(*settings, strict=True)]
    return [*merged, *(f"{end:.3f}" for end in ends), f"{gap.mean:+.3f}{width}"]


@styled
def comparisons(pairs: Mapping[str, tuple[Network, Network]]) -> tuple[Figure, list[list[str]]]:
    """Differences between two networks on both splits, with intervals where there are several seeds; and a table."""
    figure = Figure(figsize=(7.2, 1.4 + 0.7 * len(pairs)), layout="constrained")
    panel = figure.subplots()
    panel.axvline(0, color=GREY, lw=1)
    for i, pair in enumerate(pairs.values()):
        for split, colour, y in (("held-out", GREEN, i - 0.15), ("recent", GREY, i + 0.15)):
            gap = difference(pair, split)
            one = dict(mfc="white") if gap.pairs == 1 else dict(xerr=gap.half_width)
            panel.errorbar(gap.mean, y, fmt="o", color=colour, capsize=3, label="" if i else f"{split} speeches", **one)
    panel.set_yticks(range(len(pairs)), list(pairs))
    panel.set(
        ylim=(len(pairs) - 0.5, -0.5), xlabel="p-Spin minus Transformer, bits per byte (below 0: p-Spin is better)"
    )
    panel.grid(axis="y", visible=False)
    panel.set_title("bars: 95% intervals, the ones used for verdicts; hollow: one run", fontsize=9.5, color=GREY)
    panel.legend(loc="upper right")
    rows = [[name.replace("\n", " "), *_row(pair)] for name, pair in pairs.items()]
    return figure, [["held-out, bits per byte", *COLUMNS], *rows]


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
    panel.set_title(f"Little to gain beyond {highest:g}, {times:g} times the paper's rate", **TITLE)
    return figure, best


def level(runs: study.Runs, unit: str, split: str) -> tuple[float, dict[str, float]]:
    """The place on an axis where the first run begins to cool down, and the bits per byte of all of them there."""
    place = min(cooling(seeds[0], unit) for seeds in runs.values())
    return place, {name: after(seeds, place, unit, split) for name, seeds in runs.items()}


@styled
def alphabets(runs: study.Runs, unit: str, split: str = records.SPLIT) -> tuple[Figure, dict]:
    """study.one_axis for names like "p-spin, bytes": the colour is the network's, the dashes are the alphabet's, and
    the title says which are lowest where the first one begins to cool down. -> what to show beneath: all of them there
    """
    figure, _ = study.one_axis(runs, unit, split)
    panel = figure.axes[0]
    for line, band, name in zip(panel.lines, panel.collections, runs, strict=True):
        network, _, alphabet = name.partition(", ")
        colour = study.OF_ARMS[network]["color"]
        line.set(color=colour, linestyle=DASHES[alphabet], label=proper(name))
        band.set_facecolor(colour)
    _mark(panel, runs, unit)
    panel.legend(fontsize=9.5, title="bands: lowest to highest seed", title_fontsize=9)
    place, bits = level(runs, unit, split)
    lowest = [name for name in bits if bits[name] < min(bits.values()) + HARDLY]
    shared = {name.partition(", ")[2] for name in lowest}
    finding = f"{proper(lowest[0])} leads" if len(lowest) == 1 else f"{' and '.join(shared)} lead"
    finding = "hardly apart" if len(lowest) == len(bits) else finding
    panel.set_title(f"At equal {EQUAL[unit]}: {finding}", **TITLE)
    panel.set_xlabel(f"{panel.get_xlabel()}; ○ learning rate begins to fall")
    panel.set_ylabel(SAMPLE)
    numbers = {f"{proper(name)}": f"{one:.2f}" for name, one in bits.items()}
    where = f"{place:,.0f}" if place >= 100 else f"{place:.3g}"
    return figure, {f"{study.AXES[unit][0]} so far": where} | numbers


def compared(four: study.Runs, large: Sequence[dict]) -> tuple[Callable[..., tuple[Figure, dict]], list[str]]:
    """For an Explorer: draw(networks, axis, split), and the choices of networks. four: two networks in two alphabets;
    large: a Transformer at batch size 64, to be set beside those with subwords."""
    parts = {
        alphabet: {name: runs for name, runs in four.items() if name.endswith(alphabet)}
        for alphabet in ("bytes", "subwords")
    }
    more = parts["subwords"] | {"transformer, subwords, batch 64": large}
    choices = {"bytes and subwords": four, **parts, "subwords, and batch 64": more}

    def draw(networks: str, axis: str, split: str) -> tuple[Figure, dict]:
        return alphabets(choices[networks], axis, split)

    return draw, list(choices)
