"""Claims that the study's runs decide. Where runs are missing, the verdict says so and names them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import arms, experiments, records
from . import FAILS, HOLDS, PART, WAITS, Measured

CLOSE = 0.02  # bits per byte: what counts as parity, about what three seeds of one arm spread over


def wants(*names: str) -> Callable:
    """Runs of these arms must be there; otherwise the claim waits."""

    def around(function: Callable) -> Callable:
        def measured() -> Measured:
            gone = records.missing(*names)
            if gone:
                arms_of = sorted({run.rpartition("/")[0] for run in gone})
                if len(arms_of) > 6:  # too many to list: their groups
                    arms_of = sorted({name.partition("/")[0] for name in arms_of})
                return Measured(WAITS, "{count} runs to do: {names}", dict(count=len(gone), names=", ".join(arms_of)))
            return function()

        return measured

    return around


def pair(one: tuple[str, str], other: tuple[str, str]) -> tuple[records.Difference, dict]:
    """Bits per byte of two arms, and their difference."""
    a, b = records.bits(*one), records.bits(*other)
    gap = records.difference(a, b)
    values = dict(a=records.mean(a), sa=records.spread(a), b=records.mean(b), sb=records.spread(b))
    return gap, values | dict(gap=gap.mean, width=gap.half_width)


BOTH = (
    "{a:.3f} ± {sa:.3f} (sd) against {b:.3f} ± {sb:.3f} (sd) bits per byte; difference {gap:+.3f} ± {width:.3f} (95%, "
    "3 seeds)"
)


def within(gap: records.Difference, margin: float = CLOSE) -> str:
    """HOLDS if the whole interval lies below the margin, FAILS if it lies above, PART if three seeds cannot tell."""
    low, high = gap.mean - gap.half_width, gap.mean + gap.half_width
    return HOLDS if high <= margin else FAILS if low > margin else PART


def compared(better: tuple[str, str], other: tuple[str, str], words: str = "", strict: bool = False) -> Callable:
    """`better` is to be as good as `other`, within CLOSE; if strict, clearly better, and in part as good."""

    @wants("/".join(better), "/".join(other))
    def measured() -> Measured:
        gap, values = pair(better, other)
        if "{passes" in words:
            data = records.seeds(*other)[arms.SEEDS[0]]["data"]["train"]
            values |= dict(passes=64_000 * (data["length"] + 1) / data["tokens"])
        if strict:
            verdict = HOLDS if gap.clear and gap.mean < 0 else PART if within(gap) == HOLDS else FAILS
        else:
            verdict = within(gap)
        return Measured(verdict, BOTH + words, values)

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


@wants("subwords-64/transformer")
def asymptote() -> Measured:
    """A run that has reached its asymptote gains nothing from being longer."""
    tried = min(experiments.score(record) for record in records.tries("subwords-64", "transformer").values())
    scores = [experiments.score(record) for record in records.seeds("subwords-64", "transformer").values()]
    text = (
        "a run a quarter as long ends at {tried:.3f} bits per byte, the whole at {whole:.3f}: four times the steps "
        "gain {gain:.3f} (mean of both validation splits)"
    )
    values = dict(tried=tried, whole=float(np.mean(scores)), gain=tried - float(np.mean(scores)))
    return Measured(HOLDS if values["gain"] <= CLOSE else FAILS, text, values)


@wants("bytes-1/p-spin", "bytes-1/transformer")
def credit() -> Measured:
    """What more context is worth: the same bytes, predicted from 8 and from 64 bytes before them."""
    gain = {}
    for name in ("p-spin", "transformer"):
        contexts, nats = records.by_context("bytes-1", name)
        gain[name] = nats.mean(0)[contexts.index(8)] - nats.mean(0)[contexts.index(64)]
    text = (
        "from 8 bytes of context to 64 the loss of the same bytes falls by {p_spin:.3f} nats (p-Spin), "
        "{transformer:.3f} (Transformer)"
    )
    values = dict(p_spin=float(gain["p-spin"]), transformer=float(gain["transformer"]))
    verdict = HOLDS if values["p_spin"] > 0.8 * values["transformer"] else PART if values["p_spin"] > 0.01 else FAILS
    return Measured(verdict, text, values)


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


@wants("bytes-1/p-spin", "subwords-1/p-spin")
def bytes_behind() -> Measured:
    gap, values = pair(("bytes-1", "p-spin"), ("subwords-1", "p-spin"))
    data = records.seeds("subwords-1", "p-spin")[arms.SEEDS[0]]["data"]["train"]
    text = "bytes; subwords: " + BOTH + ". A window has {more:.1f} times as much text in it with subwords"
    values |= dict(more=data["bytes"] / data["tokens"])
    return Measured(HOLDS if gap.clear and gap.mean > 0 else FAILS, text, values)


B1, B64, S1, S64 = "bytes-1", "bytes-64", "subwords-1", "subwords-64"
OVER_64 = ". p-Spin: 8,000 sequences; Transformer: 64,000, {passes:.1f} passes over the text"
MEASURES = {
    "eight-times": compared((S1, "p-spin"), (S64, "transformer"), OVER_64),
    "eight-times-bytes": compared((B1, "p-spin"), (B64, "transformer"), OVER_64),
    "asymptote": asymptote,
    "control": compared((S1, "p-spin"), (S1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "control-bytes": compared((B1, "p-spin"), (B1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "large-batch": compared((B1, "p-spin"), (B64, "p-spin"), ". Batch 1, 8,000 sequences; batch 64, 64,000"),
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
