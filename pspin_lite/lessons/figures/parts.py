"""Figures of notebook 12 on top of study.py's: products as maps, linear shares, how loud branches are, where networks
with other nonlinearities end, intervals that wait for runs, and what an inexact gradient costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from ...data import sequences
from ...study import records
from ...study.intervals import Difference
from ...study.questions import page
from ...study.questions.question import Row
from .. import probes
from . import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, race, study, styled

TITLE = dict(x=0.01, ha="left", weight="bold", fontsize=11.5)
GATES = {"tanh(u) · σ(a): a slope, bent": lambda a: 1 / (1 + np.exp(-a)), "tanh(u) · tanh(a): a saddle": np.tanh}
PRODUCTS = {  # networks of living-bytes -> how texts call them
    "tanh-sigmoid": "tanh(u) · σ(a)\nthe paper's",
    "tanh-tanh": "tanh(u) · tanh(a)\ntwo spins",
    "tanh-silu": "tanh(u) · silu(a)",
    "linear-silu": "u · silu(a)\nSwiGLU",
}
MLPS = {  # what a network has in the place of the MLP -> group and network
    "Transformer": ("bytes-1", "transformer"),
    "a SwiGLU\nper layer": ("bytes-1", "swiglu"),
    "an attractor\nper layer": ("living-bytes", "p-spin"),
    "no MLP at all": ("living-bytes", "no-mlp"),
}
STEPS = {  # key of an answer -> what it compares
    "equal-parameters bytes 1": "5 steps − none,\nsame parameters",
    "equal-arithmetic bytes": "5 steps − none,\nsame arithmetic",
    "equal-width bytes": "5 steps − none,\nsame width",
    "further-steps bytes": "5 steps − 1 step",
    "implicit bytes": "implicit gradient −\ntrue gradient",
}
WEIGHTS = {"ternary": dict(color=BLUE, marker="o"), "full precision": dict(color=ORANGE, marker="D")}
CLOSE = 0.02  # bits per byte: equivalence (questions/criteria.py)

Ends = Mapping[int, float]  # seed -> bits per byte


def minus(name: str, other: str) -> Difference:
    """The difference of two networks of the group bytes-1 on held-out speeches, as verdicts have it."""
    return race.difference((("bytes-1", name), ("bytes-1", other)), records.SPLIT)


def tell(row: Row) -> None:
    """Prints an answer of the second study: the difference on both sets of speeches, or how many runs it waits for."""
    if row.values:
        held_out, recent = (", ".join(f"{gap.mean:+.3f} ± {gap.half_width:.3f}" for gap in gaps) for gaps in row.values)
        print(f"{row.about}: {held_out}, on recent speeches {recent}")
    else:
        wait = f"waits for {len(row.missing)} of {len(row.runs)} runs" if row.missing else row.verdict
        print(f"{row.about}: {wait}")


def living(name: str) -> list[dict]:
    """The records of a network of the group living-bytes, which have the sizes of branches."""
    return list(records.seeds("living-bytes", name).values())


def ratios(runs: Sequence[dict]) -> str:
    """How large the MLPs' branches are beside the state spaces', before and after training."""
    mlp, mixer = (sizes(runs, kind)[1] for kind in ("mlp", "mixer"))
    return f"{mlp[0] / mixer[0]:.2f} at first, {mlp[-1] / mixer[-1]:.2f} at last"


def silencing(runs: Sequence[dict]) -> tuple[float, float]:
    """Bits per byte on the same windows with MLPs and with all of them silenced, means over seeds."""
    speaking = np.mean([page.whole(run) for run in runs])
    return float(speaking), float(np.mean([run["silenced"]["mlp"][-1] for run in runs]))


def worst(name: str, what: str = "gradient_error") -> list[float]:
    """Of the worst layer at the end of training, or what else records.layers has; of each run of a network of
    bytes-1."""
    return [records.layers(run, what)[-1].max() for run in records.seeds("bytes-1", name).values()]


def trained(name: str) -> tuple[float, float]:
    """Of a trained network of living-bytes: the share of its MLPs' output that a linear map explains, and the size of
    the gate's field. Means over layers and seeds."""
    layers = [layer for seed in records.read("linear-share")["networks"][f"living-bytes/{name}"] for layer in seed]
    return float(np.mean([one["share"] for one in layers])), float(np.mean([one["g"] for one in layers]))


def counting(order: int = 5) -> float:
    """Held-out bits per byte of counting, on what a network of the study has read with seed 1."""
    train = sequences.open("sotu", "bytes", length=128, seed=1)
    seen = np.stack([train.sequence(n) for n in range(8000)]).astype(np.uint8)
    held_out = {"held-out": sequences.open("sotu", "bytes", split="held-out", length=128)}
    return float(probes.count_scores(seen, held_out, order, windows=1024)[0]["held-out"][order])


def ends(
    runs: Mapping[str, Ends], title: str, yardsticks: Mapping[str, float] | None = None
) -> tuple[Figure, dict[str, np.ndarray]]:
    """study.finals, as wide as a page of the book."""
    figure, shown = study.finals(runs, "held-out bits per byte, a dot per seed", yardsticks)
    figure.set_size_inches(5.4, 1.5 + 0.34 * len(runs))
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def products(title: str, reach: float = 1.0) -> tuple[Figure, dict[str, np.ndarray]]:
    """The paper's product and that of two spins over both fields, as maps with contours at the same levels."""
    figure = Figure(figsize=(5.4, 3.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    field, shown = np.linspace(-reach, reach, 101), {}
    for panel, (name, gate) in zip(panels, GATES.items(), strict=True):
        shown[name] = np.tanh(field)[None, :] * gate(field)[:, None]  # [a, u]
        panel.pcolormesh(field, field, shown[name], cmap="PuOr", vmin=-0.7, vmax=0.7, shading="auto", rasterized=True)
        lines = panel.contour(field, field, shown[name], np.linspace(-0.5, 0.5, 11), colors=GREY, linewidths=1)
        panel.clabel(lines, lines.levels[1::2], fontsize=8.5, fmt=_signed)
        panel.set(xlabel="field u", xticks=(-reach, 0, reach), yticks=(-reach, 0, reach))
        panel.set_title(name, fontsize=10.5)
        panel.set_box_aspect(1)
        panel.grid(visible=False)
    panels[0].set_ylabel("field a")
    figure.suptitle(title, **TITLE)
    return figure, shown


def _signed(x: float) -> str:
    return f"{x:+.1f}".replace("-", "−") if abs(x) > 0.01 else "0"


@styled
def linear_shares(
    shares: Mapping[str, Sequence[float]], sizes: Sequence[float], title: str
) -> tuple[Figure, dict[str, np.ndarray]]:
    """How much of a layer's output a linear map explains, over the size of its fields; a line a nonlinearity."""
    figure = Figure(figsize=(5.2, 3.9), layout="constrained")
    panel, shown = figure.subplots(), {}
    for (name, values), colour, marker in zip(shares.items(), CYCLE, "osD^", strict=False):
        shown[name] = 100 * np.asarray(values, float)
        panel.plot(sizes, shown[name], marker=marker, color=colour, label=name)
    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
    panel.set_xticks([], minor=True)
    panel.set(xlabel="size of the fields u and a (rms)", ylabel="explained by a linear map, %", ylim=(-4, 104))
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle(title, **TITLE)
    return figure, shown


def sizes(runs: Sequence[dict], kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(steps, what a kind of branch, "mlp" or "mixer", adds to the stream: rms, the mean over seeds and layers)"""
    steps = np.array([one["step"] for one in runs[0]["branches"]])
    return steps, np.mean([[np.mean(one[kind]) for one in run["branches"]] for run in runs], 0)


@styled
def loudness(runs_of: Mapping[str, Sequence[dict]], title: str) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """How much state spaces and MLPs add to the stream in training, a panel a network. name -> records"""
    figure = Figure(figsize=(2.7 * len(runs_of), 3.2), layout="constrained")
    panels, shown = np.ravel(figure.subplots(1, len(runs_of), sharey=True)), {}
    for panel, (name, runs) in zip(panels, runs_of.items(), strict=True):
        shown[name] = {}
        for kind, label, colour in (("mixer", "state space", PURPLE), ("mlp", "MLP", GREEN)):
            steps, size = sizes(runs, kind)
            shown[name][kind] = size
            panel.semilogy(steps, size, "o-", color=colour, markersize=4, label=label)
            panel.annotate(f"{size[-1]:.3g}", (steps[-1], size[-1]), (5, 0), textcoords="offset points", va="center")
        panel.set(xlabel="steps", xlim=(-300, 10300), xticks=(0, 4000, 8000))
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_title(name, fontsize=10.5)
    panels[0].set_ylabel("size of the branch (rms)")
    panels[0].legend(loc="lower right")
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def nonlinearities(
    runs: Mapping[str, Mapping[str, Ends]], lines: Mapping[str, Ends], title: str
) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """Where networks end by the nonlinearity of their MLP, ternary and in full precision, a mark per seed; lines are
    networks to compare with. Without runs a row says so."""
    figure = Figure(figsize=(5.4, 1.9 + 0.62 * len(runs)), layout="constrained")
    panel, shown, waiting = figure.subplots(), {}, []
    for row, (name, kinds) in enumerate(runs.items()):
        shown[name] = {}
        for (kind, look), shift in zip(WEIGHTS.items(), (-0.17, 0.17), strict=True):
            values = np.array(list(kinds.get(kind, {}).values()))
            shown[name][kind] = values
            panel.plot(values, np.full(len(values), row + shift), ls="", alpha=0.75, **look, label="" if row else kind)
            if len(values):
                panel.plot([values.mean()] * 2, [row + shift - 0.14, row + shift + 0.14], color=GREY, lw=2)
            else:
                waiting.append((row + shift, f"{kind}: runs not finished"))
    at = {name: records.mean(dict(values)) for name, values in lines.items()}
    for name, value in at.items():
        panel.axvline(value, color=GREY, linestyle="--", linewidth=1.2)
        panel.text(value, -0.72, f" {name}\n {value:.2f}", color=GREY, ha="left", va="center", fontsize=9)
    panel.set_yticks(range(len(runs)), list(runs))
    low, high = min(at.values()), max(at.values())
    for y, text in waiting:
        panel.text((low + high) / 2 + 0.03, y, text, color=GREY, va="center", ha="center", fontsize=9)
    panel.set(xlim=(low - 0.02, high + 0.06), ylim=(len(runs) - 0.45, -1.05), xlabel="bits per byte, a mark per seed")
    panel.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def answered(rows: Mapping[str, Row], title: str) -> tuple[Figure, dict[str, list[float]]]:
    """Differences of two networks with their intervals on both sets of speeches; shaded where two networks count as
    equivalent. A row without its runs says how many it waits for. -> label -> means"""
    figure = Figure(figsize=(5.4, 1.9 + 0.54 * len(rows)), layout="constrained")
    panel, shown = figure.subplots(), {}
    panel.axvspan(-CLOSE, CLOSE, color="#EDEDED", lw=0, zorder=0)
    panel.axvline(0, color=GREY, lw=1)
    reach = [0.05]
    for y, (label, row) in enumerate(rows.items()):
        if not row.values:
            wait = f"full: waits for\n{len(row.missing)} of {len(row.runs)} runs" if row.missing else row.verdict
            place = dict(transform=panel.get_yaxis_transform(), va="center", ha="left", fontsize=9)
            panel.text(0.015, y, wait, color=GREY, **place)
            continue
        gaps = [values[0] for values in row.values]
        shown[label] = [gap.mean for gap in gaps]
        for split, gap, colour, shift in zip(records.SPLITS, gaps, (BLUE, GREY), (-0.13, 0.13), strict=True):
            how = dict(fmt="o", color=colour, capsize=3, label=f"{split} speeches")
            panel.errorbar(gap.mean, y + shift, xerr=gap.half_width, **how)
            reach += [abs(gap.low), abs(gap.high)]
    panel.set_yticks(range(len(rows)), list(rows))
    panel.set(xlim=(-1.1 * max(reach), 1.1 * max(reach)), ylim=(len(rows) - 0.5, -0.5))
    panel.set_xlabel("bits per byte (shaded: equivalent)")
    panel.xaxis.set_major_locator(MultipleLocator(0.04))
    panel.grid(axis="y", visible=False)
    named = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))  # each label once
    if named:
        figure.legend(named.values(), named, loc="outside lower center", ncols=2)
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def inexact(names: Mapping[str, str], title: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """Final bits per byte over the gradient error of the worst layer at the end, a mark per seed and a colour per
    network. names: in the group bytes-1 -> to be shown. -> (error, bits) of each"""
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    panel, shown = figure.subplots(), {}
    for (name, label), colour, marker in zip(names.items(), CYCLE, "osD^vP", strict=False):
        shown[label] = np.array([worst(name), list(records.bits("bytes-1", name).values())])
        panel.semilogx(*shown[label], marker, color=colour, label=label)
    middle = np.mean([bits.mean() for _, bits in shown.values()])
    panel.set(ylim=(middle - 0.06, middle + 0.06), xlim=(0.01, 3))
    panel.set(xlabel="relative error of the gradient, worst layer", ylabel="bits per byte")
    panel.set_xticks((0.01, 0.1, 1), ("1%", "10%", "100%"))
    figure.legend(loc="outside lower center", ncols=4, columnspacing=1, handletextpad=0.2)
    figure.suptitle(title, **TITLE)
    return figure, shown
