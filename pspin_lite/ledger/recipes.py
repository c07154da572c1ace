"""Claims on the paper's two recipes: batch 1 with 8,000 sequences, and batch 64 with 64,000."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import arms, experiments, records
from ..config import preset
from . import FAILS, HOLDS, PART, UNTESTABLE, WAITS, Measured
from .trained import BOTH, CLOSE, beyond, compared, pair, wants, within

RECIPES = (
    ". p-Spin: 8,000 sequences; Transformer: 64,000, {passes:.1f} passes over the text; it passes p-Spin's end "
    "{passed}, where the Transformer itself ends at batch 1 {own}"
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
    end, (sequences, bits) = _end(*one), _mean_curve(*other)
    after = int(np.argmax(bits <= end))
    if bits[after] > end:
        return math.inf
    return float(np.interp(-end, -bits[max(0, after - 1) : after + 1], sequences[max(0, after - 1) : after + 1]))


def _mean_curve(group: str, arm: str) -> tuple[np.ndarray, np.ndarray]:
    """(sequences, bits per byte), the mean over seeds."""
    found = list(records.seeds(group, arm).values())
    bits = np.mean([records.curve(record)[1] for record in found], 0)
    return records.axis(found[0], records.curve(found[0])[0], "sequences"), bits


def _after_sequences(group: str, arm: str, sequences: int) -> float:
    return float(np.interp(sequences, *_mean_curve(group, arm)))


def _end(group: str, arm: str) -> float:
    return float(_mean_curve(group, arm)[1][-1])


def headline(alphabet: str) -> Callable:
    """The paper's comparison: its two recipes differ in batch size, text and schedule at once."""
    ours, theirs = (f"{alphabet}-1", "p-spin"), (f"{alphabet}-64", "transformer")
    plain = compared(ours, theirs)

    @wants("/".join(ours), "/".join(theirs), f"{ours[0]}/{theirs[1]}")
    def measured() -> Measured:
        found, after = plain(), overtaken(ours, theirs)
        data = records.seeds(*theirs)[arms.SEEDS[0]]["data"]["train"]
        values = dict(passes=64_000 * (data["length"] + 1) / data["tokens"]) | _cooldown(theirs[0])
        values |= dict(passed=_after(after), own=_after(overtaken((ours[0], theirs[1]), theirs)))
        text = found.text.removesuffix("{edge}") + RECIPES + COOLDOWN + "{edge}"
        return Measured(found.verdict, text, found.values | values)

    return measured


def _after(sequences: float) -> str:
    return f"after about {float(f'{sequences:.2g}'):,.0f}" if math.isfinite(sequences) else "never"


def at_the_papers_rate() -> Measured:
    """The paper's comparison with presets as they are: both learn at the rate that it gives for p-Spin. One seed."""
    names = {"p_spin": "subword-lite", "transformer": "transformer-lite"}
    gone = [name for name in names.values() if not records.has(f"presets/{name}/seed-{preset(name).seed}")]
    if gone:
        return Measured(WAITS, "{count} runs to do: {names}", dict(count=len(gone), names=", ".join(gone)))
    found = {key: records.read(f"presets/{name}/seed-{preset(name).seed}") for key, name in names.items()}
    ends = {key: one["summary"]["validation"] for key, one in found.items()}
    values = {key: end[records.SPLIT]["bits_per_byte"] for key, end in ends.items()}
    values |= {f"recent_{key}": end["recent"]["bits_per_byte"] for key, end in ends.items()}
    model, data = found["transformer"]["config"]["model"], found["transformer"]["data"]["train"]
    values |= dict(gap=values["p_spin"] - values["transformer"], rate=model["lr"], window=model["context"])
    values |= dict(tried=arms.CONTEXT, highest=arms.RATES[-1])
    values |= dict(passes=model["batch"] * model["steps"] * (model["context"] + 1) / data["tokens"])
    for key, arm in (("p_spin", "p-spin"), ("transformer", "transformer")):
        for batch in (1, 64):
            rates = records.rates(f"subwords-{batch}", arm)
            values |= {f"gain_{key}_{batch}": rates[model["lr"]] - rates[arms.RATES[-1]]}
    text = (
        "p-Spin {p_spin:.3f}, Transformer {transformer:.3f} bits per byte ({gap:+.3f}; on recent speeches "
        "{recent_p_spin:.3f} and {recent_transformer:.3f}), one seed, windows of {window} tokens, {passes:.1f} passes "
        "over the text for the Transformer. Both learn at {rate:g}, the paper's rate for p-Spin; for the baseline it "
        "gives none. In the tries, with windows of {tried}, a rate of {highest:g} instead gains p-Spin "
        "{gain_p_spin_1:.3f} at batch 1 and {gain_p_spin_64:.3f} at batch 64, the Transformer {gain_transformer_1:.3f} "
        "and {gain_transformer_64:.3f} (at batch 64 there are an eighth of the steps; tries are a quarter as long, and "
        "at batch 64 their schedule may favour high rates)"
    )
    return Measured(HOLDS if values["gap"] <= CLOSE else FAILS, text, values)


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
            "{other:+.3f} ± {other_width:.3f} for the Transformer; p-Spin loses {apart:+.3f} ± {apart_width:.3f} more. "
            "After 8,000 sequences, all that batch 1 gets, p-Spin is at {early_p_spin:.2f} at batch 64 and ends at "
            "{end_p_spin:.2f} at batch 1, the Transformer at {early_transformer:.2f} and {end_transformer:.2f} (on a "
            "smaller part of the text; batch 64 still at its full rate)"
        )
        for name in ("p-spin", "transformer"):
            key = name.replace("-", "_")
            values |= {f"early_{key}": _after_sequences(large, name, 8000), f"end_{key}": _end(small, name)}
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
    "eight-times-untuned": at_the_papers_rate,
    "asymptote": asymptote,
    "control-64": compared(("subwords-64", "p-spin"), ("subwords-64", "transformer"), ALIKE),
    "control-64-bytes": compared(("bytes-64", "p-spin"), ("bytes-64", "transformer"), ALIKE),
    "large-batch": large_batch("subwords"),
    "large-batch-bytes": large_batch("bytes"),
    "bytes-behind": bytes_behind,
}
