"""Claims that the study's runs decide. Where runs are missing, the verdict says so and names them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import arms, experiments, records
from . import FAILS, HOLDS, PART, UNTESTABLE, WAITS, Measured

CLOSE = 0.02  # bits per byte: what counts as parity, about what three seeds of one arm spread over


def wants(*names: str) -> Callable:
    """Runs of these arms must be there, otherwise the claim waits; and have come to their end."""

    def around(function: Callable) -> Callable:
        def measured() -> Measured:
            gone = records.missing(*names)
            if gone:
                arms_of = sorted({run.rpartition("/")[0] for run in gone})
                if len(arms_of) > 6:  # too many to list: their groups
                    arms_of = sorted({name.partition("/")[0] for name in arms_of})
                return Measured(WAITS, "{count} runs to do: {names}", dict(count=len(gone), names=", ".join(arms_of)))
            lost = dict(names=", ".join(records.failed(*names)))
            return Measured(UNTESTABLE, "left the finite numbers: {names}", lost) if lost["names"] else function()

        return measured

    return around


def pair(one: tuple[str, str], other: tuple[str, str]) -> tuple[records.Difference, dict]:
    """Bits per byte of two arms on held-out speeches, and their difference; beside it that on recent speeches."""
    a, b = records.bits(*one), records.bits(*other)
    gap = records.difference(a, b)
    values = dict(a=records.mean(a), sa=records.spread(a), b=records.mean(b), sb=records.spread(b))
    recent = records.difference(records.bits(*one, "recent"), records.bits(*other, "recent"))
    values |= dict(recent=recent.mean, recent_width=recent.half_width)
    return gap, values | dict(gap=gap.mean, width=gap.half_width)


BOTH = (
    "{a:.3f} ± {sa:.3f} (sd) against {b:.3f} ± {sb:.3f} (sd) bits per byte; difference {gap:+.3f} ± {width:.3f} (95%, "
    "3 seeds; on recent speeches {recent:+.3f} ± {recent_width:.3f})"
)


def within(gap: records.Difference, margin: float = CLOSE) -> str:
    """HOLDS if the whole interval lies below the margin, FAILS if it lies above, PART if three seeds cannot tell."""
    low, high = gap.mean - gap.half_width, gap.mean + gap.half_width
    return HOLDS if high <= margin else FAILS if low > margin else PART


def beyond(group: str, arm: str) -> str:
    """Of an arm that was best at the highest of the four rates: how it did at twice that."""
    found, top = records.rates(group, arm), arms.RATES[-1]
    if top != min(arms.RATES, key=found.get) or 2 * top not in found:
        return ""
    return f"{arm} {found[2 * top]:.3f} instead of {found[top]:.3f}"


def overtaken(one: tuple[str, str], other: tuple[str, str]) -> float:
    """Sequences after which the other's mean curve is where the first one's ends; infinite if it never is."""
    end = np.mean([records.curve(record)[1][-1] for record in records.seeds(*one).values()])
    found = list(records.seeds(*other).values())
    bits = np.mean([records.curve(record)[1] for record in found], 0)
    sequences = records.axis(found[0], records.curve(found[0])[0], "sequences")
    after = int(np.argmax(bits <= end))
    if bits[after] > end:
        return math.inf
    return float(np.interp(-end, -bits[max(0, after - 1) : after + 1], sequences[max(0, after - 1) : after + 1]))


def compared(better: tuple[str, str], other: tuple[str, str], words: str = "", strict: bool = False) -> Callable:
    """`better` is to be as good as `other`, within CLOSE; if strict, clearly better, and in part as good."""

    @wants("/".join(better), "/".join(other))
    def measured() -> Measured:
        gap, values = pair(better, other)
        if "{passes" in words:
            data = records.seeds(*other)[arms.SEEDS[0]]["data"]["train"]
            values |= dict(
                passes=64_000 * (data["length"] + 1) / data["tokens"], passed=float(f"{overtaken(better, other):.3g}")
            )
        edge = ", ".join(filter(None, (beyond(*better), beyond(*other))))
        values |= dict(edge=edge)
        if strict:
            verdict = HOLDS if gap.clear and gap.mean < 0 else PART if within(gap) == HOLDS else FAILS
        else:
            verdict = within(gap)
        doubt = ". Best at the highest of the four rates; a try at twice that: {edge}" if edge else ""
        return Measured(verdict, BOTH + words + doubt, values)

    return measured


@wants("bytes-1/p-spin", "bytes-1/k0-same-size", "bytes-1/k0", "bytes-1/k1", "bytes-1/k2", "bytes-1/k10")
def recurrence() -> Measured:
    gap, values = pair(("bytes-1", "p-spin"), ("bytes-1", "k0-same-size"))
    one, _ = pair(("bytes-1", "p-spin"), ("bytes-1", "k1"))
    text = (
        "K = 5 against K = 0 of the same size: "
        + BOTH
        + "; against K = 1 {gap1:+.3f} ± {width1:.3f}. K = 0, 1, 2, 10: "
        "{k0:.3f}, {k1:.3f}, {k2:.3f}, {k10:.3f}, the first with fewer parameters"
    )
    values |= {name: records.mean(records.bits("bytes-1", name)) for name in ("k0", "k1", "k2", "k10")}
    values |= dict(gap1=one.mean, width1=one.half_width)
    better = [found.clear and found.mean < 0 for found in (gap, one)]
    return Measured(HOLDS if all(better) else PART if better[0] else FAILS, text, values)


def named(prefix: str, found: dict[str, float]) -> dict[str, float]:
    return {prefix + name.replace("-", "_"): x for name, x in found.items()}


@wants("subwords-64/transformer", "subwords-1/transformer")
def asymptote() -> Measured:
    """A run that was flat before its end would say yes, the same network lower elsewhere in the study no. Nothing else
    says what further steps would gain."""
    tried = min(experiments.score(record) for record in records.tries("subwords-64", "transformer").values())
    scores = [experiments.score(record) for record in records.seeds("subwords-64", "transformer").values()]
    other, values = pair(("subwords-64", "transformer"), ("subwords-1", "transformer"))
    text = (
        "from {quarter} steps to {steps:,} it gains {gain:.3f} bits per byte (mean of both validation splits). The "
        "same network at batch 64, and at batch 1 with an eighth of the sequences: " + BOTH
    )
    steps = arms.arm("subwords-64", "transformer").cfg.steps
    values |= dict(gain=tried - float(np.mean(scores)), quarter=steps // 4, steps=steps)
    lower = other.mean - other.half_width > CLOSE
    return Measured(FAILS if lower else HOLDS if values["gain"] <= CLOSE else UNTESTABLE, text, values)


@wants(*(f"bytes-{batch}/{name}" for batch in (1, 64) for name in ("p-spin", "transformer")))
def large_batch() -> Measured:
    """Batch size and amount of text change together, as in the paper; for the Transformer too."""
    lost, values = pair(("bytes-1", "p-spin"), ("bytes-64", "p-spin"))
    other, _ = pair(("bytes-1", "transformer"), ("bytes-64", "transformer"))
    by_seed = {}
    for name in ("p-spin", "transformer"):
        small, large = records.bits("bytes-1", name), records.bits("bytes-64", name)
        by_seed[name] = {seed: small[seed] - large[seed] for seed in arms.SEEDS}
    apart = records.difference(by_seed["p-spin"], by_seed["transformer"])
    text = (
        "p-Spin at batch 1 with 8,000 sequences, and at batch 64 with 64,000: " + BOTH + ". The same change makes "
        "{other:+.3f} ± {other_width:.3f} for the Transformer; p-Spin loses {apart:+.3f} ± {apart_width:.3f} more"
    )
    values |= dict(other=other.mean, other_width=other.half_width, apart=apart.mean, apart_width=apart.half_width)
    part = apart.clear and apart.mean < 0
    return Measured(HOLDS if within(lost) == HOLDS else PART if part else FAILS, text, values)


@wants("bytes-1/p-spin", "bytes-1/transformer")
def credit() -> Measured:
    """What more context is worth: the same bytes, predicted from 8 and from 64 bytes before them."""
    values = {}
    for name in ("p-spin", "transformer"):
        contexts, nats = records.by_context("bytes-1", name)
        ends = [dict(enumerate(nats[:, contexts.index(length)])) for length in (8, 64)]
        gain, key = records.difference(*ends), name.replace("-", "_")
        values |= {key: gain.mean, f"{key}_width": gain.half_width}
    text = (
        "from 8 bytes of context to 64 the loss of the same bytes falls by {p_spin:.3f} ± {p_spin_width:.3f} nats "
        "(p-Spin), {transformer:.3f} ± {transformer_width:.3f} (Transformer)"
    )
    worth = values["p_spin"] > 0.01
    return Measured(
        FAILS if not worth else HOLDS if values["p_spin"] > 0.8 * values["transformer"] else PART, text, values
    )


@wants("bytes-1/p-spin", "bytes-1/transformer", "bytes-1/k0-same-size")
def cost() -> Measured:
    """CPU seconds of a step, each arm's mean, in units of the Transformer's."""
    seconds = {
        name: np.mean(
            [r["summary"]["cpu_seconds"] / r["summary"]["steps"] for r in records.seeds("bytes-1", name).values()]
        )
        for name in ("p-spin", "transformer", "k0-same-size")
    }
    flops = {name: records.seeds("bytes-1", name)[1]["summary"]["flops_a_step"] for name in seconds}
    text = (
        "a sequence costs p-Spin {time:.1f} times the CPU time of a Transformer of the same size and {flops:.1f} times "
        "its flops, on one thread; without the recurrence {k0:.1f} times the time"
    )
    values = dict(
        time=float(seconds["p-spin"] / seconds["transformer"]),
        flops=flops["p-spin"] / flops["transformer"],
        k0=float(seconds["k0-same-size"] / seconds["transformer"]),
    )
    return Measured(FAILS if values["time"] > 1 else HOLDS, text, values)


@wants("bytes-1/p-spin", "subwords-1/p-spin", "subwords-64/transformer")
def bytes_behind() -> Measured:
    """Against the paper's baseline; beside it against p-Spin with subwords."""
    gap, values = pair(("bytes-1", "p-spin"), ("subwords-64", "transformer"))
    mine, _ = pair(("bytes-1", "p-spin"), ("subwords-1", "p-spin"))
    data = records.seeds("subwords-1", "p-spin")[arms.SEEDS[0]]["data"]["train"]
    text = (
        "p-Spin with bytes; the Transformer with subwords at batch 64: " + BOTH + ". Against p-Spin with subwords "
        "{mine:+.3f} ± {mine_width:.3f}. A window has {more:.1f} times as much text in it with subwords"
    )
    values |= dict(more=data["bytes"] / data["tokens"], mine=mine.mean, mine_width=mine.half_width)
    return Measured(HOLDS if gap.clear and gap.mean > 0 else FAILS, text, values)


B1, B64, S1, S64 = "bytes-1", "bytes-64", "subwords-1", "subwords-64"
OVER_64 = (
    ". p-Spin: 8,000 sequences; Transformer: 64,000, {passes:.1f} passes over the text; on its way it passes p-Spin's "
    "end after about {passed:,.0f}"
)
MEASURES = {
    "eight-times": compared((S1, "p-spin"), (S64, "transformer"), OVER_64),
    "eight-times-bytes": compared((B1, "p-spin"), (B64, "transformer"), OVER_64),
    "asymptote": asymptote,
    "control": compared((S1, "p-spin"), (S1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "control-bytes": compared((B1, "p-spin"), (B1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "large-batch": large_batch,
    "swiglu": compared((B1, "p-spin"), (B1, "swiglu"), ". p-Spin; the same state space with a SwiGLU"),
    "swiglu-subwords": compared((S1, "p-spin"), (S1, "swiglu"), ". p-Spin; the same state space with a SwiGLU"),
    "precision": compared((B1, "p-spin"), (B1, "full-precision"), ". Ternary; full-precision"),
    "mixer": compared(
        (B1, "p-spin"), (B1, "attention"), ". State space; attention, both with the p-Spin MLP", strict=True
    ),
    "recurrence": recurrence,
    "credit": credit,
    "cost": cost,
    "bytes-behind": bytes_behind,
}
