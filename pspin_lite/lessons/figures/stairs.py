"""Figures and tables of notebook 12: change by change from p-Spin to a Transformer, and what steps earn."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from matplotlib.figure import Figure

from ...study import records
from ...study.questions.question import Row
from . import BLUE, GREEN, GREY, ORANGE, RED, styled
from .parts import TITLE, WEIGHTS, Ends

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


def table(rows: Mapping[str, Row]) -> str:
    """Answers of the second study in Markdown, by what is compared; "not run yet" for those that wait for runs."""
    lines = ["| compared, with bytes | held-out | recent | answer |", "|---|---|---|---|"]
    for label, row in rows.items():
        cells = [" ".join(f"{gap.mean:+.3f} ± {gap.half_width:.3f}" for gap in gaps) for gaps in row.values]
        missing = f": {len(row.runs) - len(row.missing)} of {len(row.runs)} runs" if row.missing else ""
        lines.append(f"| {label} | {' | '.join(cells or ['', ''])} | {row.verdict}{missing} |")
    return "\n".join(lines)


def worst(name: str, what: str = "gradient_error", group: str = "bytes-1") -> np.ndarray:
    """[runs, times] Of the worst layer at each time of training: how far the gradient is off, or what else
    records.layers has."""
    return np.array([records.layers(run, what).max(1) for run in records.seeds(group, name).values()])


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
        panel.text(high + 0.6 * room, 0, f"minus\n{reference}", va="center", fontsize=9, color=GREY)
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
