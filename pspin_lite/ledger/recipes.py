"""Claims on the paper's two recipes: batch 1 with 8,000 sequences, and batch 64 with 64,000."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import arms, experiments, records
from . import FAILS, HOLDS, PART, UNTESTABLE, Measured
from .trained import BOTH, CLOSE, beyond, compared, pair, wants, within

RECIPES = (
    ". p-Spin: 8,000 sequences; Transformer: 64,000, {passes:.1f} passes over the text; it passes p-Spin's end {passed}"
)
ALIKE = ". Both: batch 64, 64,000 sequences"
COOLDOWN = (
    ". The rate comes down over {slow:.0%} of the steps at batch 64, over {fast:.1%} at batch 1 (the paper gives the "
    "latter only)"
)


def _cooldown(group: str) -> dict[str, float]:
    share = lambda cfg: cfg.cooldown / cfg.steps  # noqa: E731
    return dict(slow=share(arms.arm(group, "p-spin").cfg), fast=share(arms.arm(group[:-2] + "1", "p-spin").cfg))


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


def headline(alphabet: str) -> Callable:
    """The paper's comparison: its two recipes differ in batch size, text and schedule at once."""
    ours, theirs = (f"{alphabet}-1", "p-spin"), (f"{alphabet}-64", "transformer")
    plain = compared(ours, theirs)

    @wants("/".join(ours), "/".join(theirs))
    def measured() -> Measured:
        found, after = plain(), overtaken(ours, theirs)
        data = records.seeds(*theirs)[arms.SEEDS[0]]["data"]["train"]
        values = dict(passes=64_000 * (data["length"] + 1) / data["tokens"]) | _cooldown(theirs[0])
        values |= dict(passed=f"after about {float(f'{after:.3g}'):,.0f}" if math.isfinite(after) else "never")
        text = found.text.removesuffix("{edge}") + RECIPES + COOLDOWN + "{edge}"
        return Measured(found.verdict, text, found.values | values)

    return measured


@wants("subwords-64/transformer", "subwords-1/transformer")
def asymptote() -> Measured:
    """A run that was flat before its end would say yes, the same network lower elsewhere in the study no. Nothing else
    says what further steps would gain."""
    name, other_name = ("subwords-64", "transformer"), ("subwords-1", "transformer")
    full = records.seeds(*name)
    same = [full[arms.SEEDS[0]]["config"]["model"][key] for key in ("lr", "gain")]
    [tried] = (
        experiments.score(one)
        for one in records.tries(*name).values()
        if [one["config"]["model"][key] for key in ("lr", "gain")] == same
    )
    scores = [experiments.score(record) for record in full.values()]
    other, values = pair(name, other_name)
    text = (
        "from {quarter} steps to {steps:,} it gains {gain:.3f} bits per byte (mean of both validation splits). The "
        "same network at batch 64, and at batch 1 with an eighth of the sequences: " + BOTH + "{edge}. What more steps "
        "would gain was not tried"
    )
    steps = arms.arm(*name).cfg.steps
    values |= dict(gain=tried - float(np.mean(scores)), quarter=steps // 4, steps=steps, edge=beyond(name, other_name))
    lower = other.mean - other.half_width > CLOSE
    return Measured(FAILS if lower else HOLDS if values["gain"] <= CLOSE else UNTESTABLE, text, values)


def large_batch(alphabet: str) -> Callable:
    """Batch size and amount of text change together, as in the paper; for the Transformer too."""
    small, large = f"{alphabet}-1", f"{alphabet}-64"
    every = [(group, name) for group in (small, large) for name in ("p-spin", "transformer")]

    @wants(*map("/".join, every))
    def measured() -> Measured:
        lost, values = pair((small, "p-spin"), (large, "p-spin"))
        other, _ = pair((small, "transformer"), (large, "transformer"))
        by_seed = {}
        for name in ("p-spin", "transformer"):
            before, after = records.bits(small, name), records.bits(large, name)
            by_seed[name] = {seed: before[seed] - after[seed] for seed in arms.SEEDS}
        apart = records.difference(by_seed["p-spin"], by_seed["transformer"])
        text = (
            "p-Spin at batch 1 with 8,000 sequences, and at batch 64 with 64,000: " + BOTH + ". The same change makes "
            "{other:+.3f} ± {other_width:.3f} for the Transformer; p-Spin loses {apart:+.3f} ± {apart_width:.3f} more"
        )
        values |= dict(other=other.mean, other_width=other.half_width, apart=apart.mean, apart_width=apart.half_width)
        values |= _cooldown(large) | dict(edge=beyond(*every))
        part = apart.clear and apart.mean < 0
        verdict = HOLDS if within(lost) == HOLDS else PART if part else FAILS
        return Measured(verdict, text + COOLDOWN + "{edge}", values)

    return measured


@wants("bytes-1/p-spin", "subwords-1/p-spin", "subwords-64/transformer")
def bytes_behind() -> Measured:
    """Against the paper's baseline; beside it against p-Spin with subwords."""
    gap, values = pair(("bytes-1", "p-spin"), ("subwords-64", "transformer"))
    mine, _ = pair(("bytes-1", "p-spin"), ("subwords-1", "p-spin"))
    data = records.seeds("subwords-1", "p-spin")[arms.SEEDS[0]]["data"]["train"]
    text = (
        "p-Spin with bytes; the Transformer with subwords at batch 64: " + BOTH + ". Against p-Spin with subwords "
        "{mine:+.3f} ± {mine_width:.3f}. A window has {more:.1f} times as much text in it with subwords{edge}"
    )
    values |= dict(more=data["bytes"] / data["tokens"], mine=mine.mean, mine_width=mine.half_width)
    values |= dict(edge=beyond(("bytes-1", "p-spin"), ("subwords-64", "transformer"), ("subwords-1", "p-spin")))
    return Measured(HOLDS if gap.clear and gap.mean > 0 else FAILS, text, values)


MEASURES = {
    "eight-times": headline("subwords"),
    "eight-times-bytes": headline("bytes"),
    "asymptote": asymptote,
    "control-64": compared(("subwords-64", "p-spin"), ("subwords-64", "transformer"), ALIKE),
    "control-64-bytes": compared(("bytes-64", "p-spin"), ("bytes-64", "transformer"), ALIKE),
    "large-batch": large_batch("subwords"),
    "large-batch-bytes": large_batch("bytes"),
    "bytes-behind": bytes_behind,
}
