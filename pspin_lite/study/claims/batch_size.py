"""Claims on the paper's two recipes: batch 1 with 8,000 sequences, and batch 64 with 64,000."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...config import preset
from .. import jobs, networks, records
from .comparisons import CLOSE, Network, beyond, compared, needs_runs, pair, within
from .verdict import FAILS, HOLDS, PART, UNTESTABLE, WAITS, Measured

BOTH = ("p-spin", "transformer")


def _cooldown(alphabet: str) -> dict[str, float]:
    """Share of the steps over which the rate comes down, at batch 64 and at batch 1."""
    large, small = (networks.arm(f"{alphabet}-{batch}", "p-spin").cfg for batch in (64, 1))
    return {"slow": large.cooldown / large.steps, "fast": small.cooldown / small.steps}


def overtaken(one: Network, other: Network) -> float:
    """Sequences after which the other's mean curve is where the first one's ends; infinite if it never is."""
    end, (sequences, bits) = _end(*one), _mean_curve(*other)
    after = int(np.argmax(bits <= end))
    if bits[after] > end:
        return math.inf
    around = slice(max(0, after - 1), after + 1)
    return float(np.interp(-end, -bits[around], sequences[around]))


def _mean_curve(group: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(sequences, bits per byte), the mean over seeds."""
    runs = list(records.seeds(group, name).values())
    bits = np.mean([records.curve(record)[1] for record in runs], 0)
    return records.axis(runs[0], records.curve(runs[0])[0], "sequences"), bits


def _after_sequences(group: str, name: str, sequences: int) -> float:
    return float(np.interp(sequences, *_mean_curve(group, name)))


def _end(group: str, name: str) -> float:
    return float(_mean_curve(group, name)[1][-1])


def headline(alphabet: str) -> Callable[[], Measured]:
    """The paper's comparison: its two recipes differ in batch size, text and schedule at once."""
    ours, theirs = (f"{alphabet}-1", "p-spin"), (f"{alphabet}-64", "transformer")
    same_batch = (f"{alphabet}-1", "transformer")
    plain = compared(ours, theirs)

    @needs_runs("/".join(ours), "/".join(theirs), "/".join(same_batch))
    def measured() -> Measured:
        data = records.seeds(*theirs)[networks.SEEDS[0]]["data"]["train"]
        values = {
            "passes": 64_000 * (data["length"] + 1) / data["tokens"],
            "passed": _after(overtaken(ours, theirs)),
            "own": _after(overtaken(same_batch, theirs)),
        }
        comparison = plain()
        return Measured(comparison.verdict, comparison.values | values | _cooldown(alphabet))

    return measured


def _after(sequences: float) -> str:
    return f"after about {float(f'{sequences:.2g}'):,.0f}" if math.isfinite(sequences) else "never"


def at_the_papers_rate() -> Measured:
    """The paper's comparison with presets as they are: both learn at the rate that it gives for p-Spin. One seed."""
    presets = {"p-spin": "subword-lite", "transformer": "transformer-lite"}
    runs = {name: f"presets/{one}/seed-{preset(one).seed}" for name, one in presets.items()}
    missing = [presets[name] for name, run in runs.items() if not records.has(run)]
    if missing:
        return Measured(WAITS, {"count": len(missing), "names": ", ".join(missing)})
    ends = {name: records.read(run)["summary"]["validation"] for name, run in runs.items()}
    bits = {name: end[records.SPLIT]["bits_per_byte"] for name, end in ends.items()}
    record = records.read(runs["transformer"])
    model, tokens = record["config"]["model"], record["data"]["train"]["tokens"]
    values = {
        "gap": bits["p-spin"] - bits["transformer"],
        "rate": model["lr"],
        "window": model["context"],
        "tried": networks.CONTEXT,
        "highest": networks.RATES[-1],
        "passes": model["batch"] * model["steps"] * (model["context"] + 1) / tokens,
    }
    for name in BOTH:
        key = name.replace("-", "_")
        values |= {key: bits[name], f"recent_{key}": ends[name]["recent"]["bits_per_byte"]}
        for batch in (1, 64):
            scores = records.rates(f"subwords-{batch}", name)
            values[f"gain_{key}_{batch}"] = scores[model["lr"]] - scores[networks.RATES[-1]]
    return Measured(HOLDS if values["gap"] <= CLOSE else FAILS, values)


@needs_runs("subwords-64/transformer", "subwords-1/transformer")
def asymptote() -> Measured:
    """A run that was flat before its end would say yes, the same network lower elsewhere in the study no. Nothing else
    says what further steps would gain."""
    large, small = ("subwords-64", "transformer"), ("subwords-1", "transformer")
    full, steps = records.seeds(*large), networks.arm(*large).cfg.steps
    [tried] = [one for one in records.tries(*large).values() if _same_start(one, full[networks.SEEDS[0]])]
    gain = jobs.score(tried) - float(np.mean([jobs.score(record) for record in full.values()]))
    gap, values = pair(large, small)
    values |= {"gain": gain, "quarter": steps // 4, "steps": steps, "edge": beyond(large, small)}
    lower = gap.mean - gap.half_width > CLOSE
    return Measured(FAILS if lower else HOLDS if gain <= CLOSE else UNTESTABLE, values)


def _same_start(one: dict, other: dict) -> bool:
    """At the same learning rate and initial scale."""
    first, second = one["config"]["model"], other["config"]["model"]
    return all(first[key] == second[key] for key in ("lr", "gain"))


def large_batch(alphabet: str) -> Callable[[], Measured]:
    """Batch size and amount of text change together, as in the paper; for the Transformer too."""
    small, large = f"{alphabet}-1", f"{alphabet}-64"
    every = [(group, name) for group in (small, large) for name in BOTH]

    @needs_runs(*map("/".join, every))
    def measured() -> Measured:
        lost, values = pair((small, "p-spin"), (large, "p-spin"))
        other, _ = pair((small, "transformer"), (large, "transformer"))
        apart = records.difference(_lost(alphabet, "p-spin"), _lost(alphabet, "transformer"))
        values |= _cooldown(alphabet) | {
            "other": other.mean,
            "other_width": other.half_width,
            "apart": apart.mean,
            "apart_width": apart.half_width,
            "edge": beyond(*every),
        }
        for name in BOTH:
            key = name.replace("-", "_")
            values |= {f"early_{key}": _after_sequences(large, name, 8000), f"end_{key}": _end(small, name)}
        part = apart.clear and apart.mean < 0
        return Measured(HOLDS if within(lost) == HOLDS else PART if part else FAILS, values)

    return measured


def _lost(alphabet: str, name: str) -> dict[int, float]:
    """By seed, bits per byte at batch 1 above those at batch 64."""
    small, large = (records.bits(f"{alphabet}-{batch}", name) for batch in (1, 64))
    return {seed: small[seed] - large[seed] for seed in networks.SEEDS}


@needs_runs("bytes-1/p-spin", "subwords-1/p-spin", "subwords-64/transformer")
def bytes_behind() -> Measured:
    """Against the paper's baseline; beside it against p-Spin with subwords."""
    byte, subword, baseline = ("bytes-1", "p-spin"), ("subwords-1", "p-spin"), ("subwords-64", "transformer")
    gap, values = pair(byte, baseline)
    mine, _ = pair(byte, subword)
    data = records.seeds(*subword)[networks.SEEDS[0]]["data"]["train"]
    values |= {
        "more": data["bytes"] / data["tokens"],
        "mine": mine.mean,
        "mine_width": mine.half_width,
        "edge": beyond(byte, baseline, subword),
    }
    return Measured(HOLDS if gap.clear and gap.mean > 0 else FAILS, values)


MEASURES = {
    "eight-times": headline("subwords"),
    "eight-times-bytes": headline("bytes"),
    "eight-times-untuned": at_the_papers_rate,
    "asymptote": asymptote,
    "control-64": compared(("subwords-64", "p-spin"), ("subwords-64", "transformer")),
    "control-64-bytes": compared(("bytes-64", "p-spin"), ("bytes-64", "transformer")),
    "large-batch": large_batch("subwords"),
    "large-batch-bytes": large_batch("bytes"),
    "bytes-behind": bytes_behind,
}
