"""Figures and tables of notebook 12 on top of study.py's: products as maps, linear shares, how loud branches are, where
networks with other nonlinearities end, change by change from p-Spin to a Transformer, what steps earn and whether they
settle, what context is worth, answers that wait for runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...data import sequences
from ...study import networks, records
from ...study.intervals import Difference
from ...study.questions import criteria, page
from ...study.questions import runs as measured
from ...study.questions.question import Row
from .. import probes
from . import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, race, study, styled

TITLE = dict(x=0.01, ha="left", weight="bold", fontsize=11.5)
GATES = {"tanh(u) · σ(a): a slope, bent": lambda a: 1 / (1 + np.exp(-a)), "tanh(u) · tanh(a): a saddle": np.tanh}
PRODUCTS = {  # networks of living-bytes -> how texts call them
    "tanh-sigmoid": "tanh(u) · σ(a)\nthe paper's, no steps",
    "tanh-tanh": "tanh(u) · tanh(a)",
    "tanh-silu": "tanh(u) · silu(a)",
    "linear-silu": "u · silu(a)\nSwiGLU",
}
STAIR = {  # each network differs from the one before it by what the label says -> group and network
    "p-Spin": ("bytes-1", "p-spin"),
    "weights not rounded": ("bytes-1", "full-precision"),
    "no attractor steps,\nmade wider instead": ("living-bytes", "tanh-sigmoid-full"),
    "tanh in place of σ": ("living-bytes", "tanh-tanh-full"),
    "a SwiGLU": ("living-bytes", "linear-silu-full"),
    "attention: this is\na Transformer": ("bytes-1", "transformer"),
}
STEPS = {  # key of an answer -> what it compares
    "equal-parameters bytes 1": "five steps − none, as many parameters",
    "equal-arithmetic bytes": "five steps − none, as much arithmetic",
    "equal-width bytes": "five steps − none, as wide",
    "equal-parameters bytes 2": "one step − none, as many parameters",
    "further-steps bytes": "five steps − one",
    "implicit bytes": "the paper's gradient − the true one, through all five steps",
}
PALE_STAIR = {  # the same networks as in STAIR with ternary weights
    "no attractor steps,\nmade wider instead": ("living-bytes", "tanh-sigmoid"),
    "tanh in place of σ": ("living-bytes", "tanh-tanh"),
    "a SwiGLU": ("living-bytes", "linear-silu"),
}
PAIRS = {  # what is compared -> networks of living-bytes, and by weights where planned answers are: key and place
    "tanh(u) tanh(a) − tanh(u) σ(a)": (
        ("tanh-tanh", "tanh-sigmoid"),
        {"ternary": ("wakes bytes", 0), "full precision": ("sigmoid bytes", 0)},
    ),
    "SwiGLU − tanh(u) σ(a)": (("linear-silu", "tanh-sigmoid"), {"full precision": ("sigmoid bytes", 1)}),
    "tanh(u) silu(a) − SwiGLU": (("tanh-silu", "linear-silu"), {"full precision": ("squashing bytes", 0)}),
    "tanh(u) σ(a) − no MLP": (("tanh-sigmoid", "no-mlp"), {}),
}
WITHOUT = "no steps"  # how the labels of networks without any begin
HELD_EQUAL = {  # what networks have as much of as five steps do -> label -> group and network
    "equal parameters": {
        f"{WITHOUT}, twice as wide": ("living-bytes", "tanh-tanh"),
        "one step": ("steps-bytes", "k1"),
        "two steps": ("steps-bytes", "k2"),
        "five steps": ("steps-bytes", "k5"),
        "five, true gradient": ("steps-bytes", "k5-unrolled"),
    },
    "equal arithmetic": {f"{WITHOUT}, five times as wide": ("steps-bytes", "wide")},
    "equal width": {WITHOUT: ("steps-bytes", "narrow")},
}
MLPS = {  # of the networks of bytes-1 that have another than the paper's
    "swiglu": "SwiGLU",
    "transformer": "SwiGLU",
}
WEIGHTS = {"ternary": dict(color=BLUE, marker="o"), "full precision": dict(color=ORANGE, marker="D")}

Ends = Mapping[int, float]  # seed -> bits per byte


def minus(name: str, other: str, split: str = records.SPLIT) -> Difference:
    """The difference of two networks of the group bytes-1, as verdicts have it."""
    return race.difference((("bytes-1", name), ("bytes-1", other)), split)


def tell(row: Row) -> None:
    """Prints an answer of the second study: the difference on both sets of speeches, or how many runs it waits for."""
    if row.values:
        held_out, recent = (", ".join(f"{gap.mean:+.3f} ± {gap.half_width:.3f}" for gap in gaps) for gaps in row.values)
        print(f"{row.about}: {held_out}, on recent speeches {recent}")
    else:
        wait = f"waits for {len(row.missing)} of {len(row.runs)} runs" if row.missing else row.verdict
        print(f"{row.about}: {wait}")


def table(rows: Mapping[str, Row]) -> str:
    """Answers of the second study in Markdown, by what is compared; "not run yet" for those that wait for runs."""
    lines = ["| compared, with bytes | held-out | recent | answer |", "|---|---|---|---|"]
    for label, row in rows.items():
        cells = [" ".join(f"{gap.mean:+.3f} ± {gap.half_width:.3f}" for gap in gaps) for gaps in row.values]
        missing = f": {len(row.runs) - len(row.missing)} of {len(row.runs)} runs" if row.missing else ""
        lines.append(f"| {label} | {' | '.join(cells or ['', ''])} | {row.verdict}{missing} |")
    return "\n".join(lines)


def living_gap(name: str, other: str, intervals: int, split: str = records.SPLIT) -> Difference:
    """The difference of two networks, made as for a question with so many intervals. They are of living-bytes where no
    group is named."""
    one, two = (name if "/" in name else f"living-bytes/{name}" for name in (name, other))
    return measured.difference(one, two, split, intervals)


def tuning_gap(name: str, other: str, rate: float) -> float:
    """The difference of two networks, GROUP/NAME or a name of living-bytes, after short runs at the same rate and from
    the same scale, mean over both sets of speeches."""
    names = [one if "/" in one else f"living-bytes/{one}" for one in (name, other)]
    sources = [networks.arm(*one.split("/")).tuned_as or one for one in names]
    one, two = (records.rates(*source.split("/"))[rate] for source in sources)
    return one - two


def word(gaps: Sequence[Difference]) -> str:
    """What notebook 12 calls a difference, one for each set of speeches: all of them decide."""
    if criteria.met(gaps, "better") or criteria.met(gaps, "worse"):
        return "clear"
    return "equivalent" if criteria.met(gaps, "equivalent") else criteria.UNDECIDED


def pairs(rows: Mapping[str, Row]) -> str:
    """What one nonlinearity is worth beside another, with either kind of weights, in Markdown: on held-out speeches,
    with the word that both sets of speeches give. Planned comparisons are as they were answered, others are marked."""
    lines = ["| first − second | ternary | full precision |", "|---|---|---|"]
    for label, (names, planned) in PAIRS.items():
        cells = []
        for kind in WEIGHTS:
            if kind in planned:
                key, place = planned[kind]
                gaps, mark = [values[place] for values in rows[key].values], ""
            else:
                end = "-full" if kind == "full precision" else ""
                both = [name if name == "no-mlp" else name + end for name in names]
                gaps = [living_gap(*both, intervals=4, split=split) for split in records.SPLITS]
                mark = ", not planned"
            gap = f"{gaps[0].mean:+.3f} ± {gaps[0].half_width:.3f} {word(gaps)}" if gaps else "not run yet"
            cells.append(gap + mark)
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


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


def worst(name: str, what: str = "gradient_error", group: str = "bytes-1") -> np.ndarray:
    """[runs, times] Of the worst layer at each time of training: how far the gradient is off, or what else
    records.layers has."""
    return np.array([records.layers(run, what).max(1) for run in records.seeds(group, name).values()])


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


@styled
def ends(
    runs: Mapping[str, Ends], title: str, yardsticks: Mapping[str, float] | None = None
) -> tuple[Figure, dict[str, np.ndarray]]:
    """study.finals, as wide as a page of the book, in the colours of their MLPs."""
    figure, shown = study.finals(runs, "held-out bits per byte, a mark per seed", yardsticks)
    figure.set_size_inches(5.4, 1.8 + 0.34 * len(runs))
    panel, names = figure.axes[0], iter(reversed(shown))
    for line in panel.lines:
        line.set_zorder(3 if line.get_marker() == "None" else 2)  # means on top of the dots
        if line.get_marker() != "None" and next(names) in MLPS:
            line.set(color=ORANGE, marker="D")
    for label, colour, marker in (("MLP of p-Spin's kind", BLUE, "o"), ("SwiGLU", ORANGE, "D")):
        panel.plot([], [], marker, color=colour, alpha=0.8, label=label)
    figure.legend(loc="outside lower center", ncols=2)
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
        inner = lines.levels[3:8:2]  # labels of the others would lie at the edge
        panel.clabel(lines, inner, fontsize=8.5, fmt=_signed)
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
    """(steps of training, what a kind of branch, "mlp" or "mixer", adds: rms, the mean over seeds and layers)"""
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
        panel.set(xlabel="sequences", xlim=(-300, 10300), xticks=(0, 4000, 8000))
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
def stair(
    rows: Mapping[str, Ends],
    title: str,
    beside: Mapping[str, Ends] | None = None,
    rounded: Collection[str] = ("p-Spin",),
) -> tuple[Figure, dict[str, np.ndarray]]:
    """Where networks end of which each differs from the one before by what its label says: a mark per seed, and on the
    way down how far each change moves the mean. All are in full precision but those that are rounded. Networks beside
    them, pale, are the same with ternary weights. -> label -> bits of its seeds"""
    figure = Figure(figsize=(5.4, 1.1 + 0.56 * len(rows)), layout="constrained")
    panel, shown, before = figure.subplots(), {}, None
    for y, (name, bits) in enumerate(rows.items()):
        shown[name] = np.array(list(bits.values()))
        mean = shown[name].mean()
        look = WEIGHTS["ternary" if name in rounded else "full precision"]
        panel.plot(shown[name], [y] * len(shown[name]), ls="", alpha=0.8, **look)
        panel.plot([mean] * 2, [y - 0.24, y + 0.24], color=GREY, lw=2, zorder=3)
        if before is not None:
            change, colour = mean - before, RED if mean > before else GREEN
            panel.plot([before, before, mean], [y - 0.76, y - 0.5, y - 0.5], color=GREY, lw=1, zorder=1)
            panel.plot([before, mean], [y - 0.5] * 2, color=colour, lw=4, solid_capstyle="butt", zorder=2)
            panel.plot([mean] * 2, [y - 0.5, y - 0.24], color=GREY, lw=1, zorder=1)
            text = f"{change:+.3f}".replace("-", "−")
            right = max(before, mean)
            panel.annotate(text, (right, y - 0.5), (6, 0), textcoords="offset points", va="center", color=colour)
        before = mean
    pale = {name: np.array(list(bits.values())) for name, bits in (beside or {}).items()}
    for name, values in pale.items():
        y = list(rows).index(name)
        panel.plot(values, [y] * len(values), ls="", alpha=0.45, markersize=5, zorder=1, **WEIGHTS["ternary"])
    for label, look in WEIGHTS.items():
        panel.plot([], [], ls="", alpha=0.8, label=label, **look)
    figure.legend(loc="outside lower center", ncols=2)
    panel.set_yticks(range(len(rows)), list(rows))
    low, high = (end(np.concatenate([*shown.values(), *pale.values()])) for end in (min, max))
    panel.set(ylim=(len(rows) - 0.5, -0.5), xlim=(low - 0.012, high + 0.052))
    panel.set_xlabel("held-out bits per byte, a mark per seed")
    panel.locator_params(axis="x", nbins=5)
    panel.grid(axis="y", visible=False)
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def held_equal(
    groups: Mapping[str, Mapping[str, Ends]], title: str, reference: str = "five steps"
) -> tuple[Figure, dict[tuple[str, str], np.ndarray]]:
    """Where networks end, grouped by what is held equal: a dot per seed, and how far each mean lies from that of the
    reference, a dashed line. Networks without runs are left out, and groups without networks.
    -> group, label -> bits of its seeds"""
    present = {name: {label: bits for label, bits in group.items() if bits} for name, group in groups.items()}
    present = {name: group for name, group in present.items() if group}
    shown = {
        (name, label): np.array([*bits.values()]) for name, group in present.items() for label, bits in group.items()
    }
    base = next((values.mean() for (_, label), values in shown.items() if label == reference), None)
    low, high = (end(np.concatenate(list(shown.values()))) for end in (min, max))
    room, y, ticks = 0.08 * (high - low) or 0.01, 0.0, {}
    figure = Figure(figsize=(5.4, 1.2 + 0.32 * (len(shown) + len(present))), layout="constrained")
    panel = figure.subplots()
    for name, group in present.items():
        ticks[y] = name
        for label in group:
            y += 1
            values, without = shown[name, label], label.startswith(WITHOUT)
            hollow = dict(mfc="white") if len(values) == 1 else {}
            look = dict(color=ORANGE, marker="D") if without else dict(color=BLUE, marker="o")
            panel.plot(values, [y] * len(values), ls="", alpha=0.8, **look, **hollow)
            panel.plot([values.mean()] * 2, [y - 0.3, y + 0.3], color=GREY, lw=2, zorder=3)
            ticks[y] = label
            if base is not None and label != reference:
                gap = values.mean() - base
                text = f"{gap:+.3f}".replace("-", "−")
                panel.text(high + 0.6 * room, y, text, va="center", color=RED if gap > 0 else GREEN)
        y += 1.15
    if base is not None:
        panel.axvline(base, color=GREY, linestyle="--", linewidth=1.2, zorder=1)
    panel.set_yticks(list(ticks), list(ticks.values()))
    for tick, label in zip(panel.yaxis.get_major_ticks(), panel.get_yticklabels(), strict=True):
        if label.get_text() in present:
            label.set(style="italic", color=GREY)
            tick.tick1line.set_visible(False)
    panel.set(ylim=(y - 0.55, -0.6), xlim=(low - room, high + 4 * room))
    panel.locator_params(axis="x", nbins=5)
    panel.set_xlabel("held-out bits per byte, a mark per seed")
    panel.grid(axis="y", visible=False)
    figure.suptitle(title, **TITLE)
    return figure, shown


@styled
def settling(runs_of: Mapping[str, tuple[str, str]], title: str) -> tuple[Figure, dict[str, dict[str, np.ndarray]]]:
    """Of the worst layer in training: the spectral radius, and how far its gradient is off. A line per seed.
    label -> group and network"""
    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    panels, shown = figure.subplots(1, 2), {}
    for (label, (group, name)), colour in zip(runs_of.items(), (BLUE, ORANGE), strict=True):
        times = [one["step"] for one in next(iter(records.seeds(group, name).values()))["attractor"]]
        shown[label] = {what: worst(name, what, group) for what in ("radius", "gradient_error")}
        for panel, values, factor in zip(panels, shown[label].values(), (1, 100), strict=True):
            for i, one in enumerate(factor * values):
                panel.plot(times, one, color=colour, alpha=0.8, label="" if i else label)
    for panel, mark, name in zip(panels, (1, 100), ("spectral radius", "gradient off by, %"), strict=True):
        panel.axhline(mark, color=GREY, linestyle="--", linewidth=1.2)
        panel.set_title(name, fontsize=10.5)
        panel.set(xlabel="sequences", xlim=(0, 8000), xticks=(0, 4000, 8000))
        panel.xaxis.set_major_formatter("{x:,.0f}")
    panels[0].set_ylim(bottom=0)
    panels[1].set_yscale("log")
    panels[1].set_ylim(1e-4, 2e3)
    panels[1].yaxis.set_major_formatter("{x:g}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle(title, **TITLE)
    return figure, shown


def beyond(names: Sequence[str], short: int = 8, long: int = 64) -> dict[str, Ends]:
    """By how many nats per byte networks of bytes-1 predict better from `long` bytes than from `short`, by seed."""
    gained = {}
    for name in names:
        lengths, nats = records.by_context("bytes-1", name)
        one, other = (list(lengths).index(length) for length in (short, long))
        gained[name] = dict(enumerate((nats[:, one] - nats[:, other]).tolist(), 1))
    return gained


@styled
def gains(gained: Mapping[str, Ends], title: str, label: str) -> tuple[Figure, dict[str, np.ndarray]]:
    """What networks gain, a dot per seed, with a line at nothing."""
    figure = Figure(figsize=(5.4, 1.1 + 0.36 * len(gained)), layout="constrained")
    panel = figure.subplots()
    shown = study.dots(panel, gained, label)
    for line in panel.lines:
        line.set_zorder(3 if line.get_marker() == "None" else 2)
    panel.axvline(0, color=GREY, linestyle="--", linewidth=1.2)
    figure.suptitle(title, **TITLE)
    return figure, shown
