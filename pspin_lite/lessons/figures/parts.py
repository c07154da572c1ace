"""Numbers and figures of notebook 12 on top of study.py's: differences between networks and their words, branches, what
context is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from ...data import sequences
from ...study import networks, records
from ...study.intervals import Difference
from ...study.questions import criteria, page
from ...study.questions import runs as measured
from ...study.questions.question import Row
from .. import probes
from . import BLUE, GREY, ORANGE, race, study, styled

TITLE = dict(x=0.01, ha="left", weight="bold", fontsize=11.5)
PRODUCTS = {  # networks of living-bytes -> how texts call them
    "tanh-sigmoid": "tanh(u) · σ(a)\nthe paper's, no steps",
    "tanh-tanh": "tanh(u) · tanh(a)",
    "tanh-silu": "tanh(u) · silu(a)",
    "linear-silu": "u · silu(a)\nSwiGLU",
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


def sizes(runs: Sequence[dict], kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(steps of training, what a kind of branch, "mlp" or "mixer", adds: rms, the mean over seeds and layers)"""
    steps = np.array([one["step"] for one in runs[0]["branches"]])
    return steps, np.mean([[np.mean(one[kind]) for one in run["branches"]] for run in runs], 0)


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
