"""Claims on the paper's two recipes: batch 1 with 8,000 sequences, and batch 64 with 64,000."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...config import preset
from .. import jobs, networks, records
from .comparisons import CLOSE, Network, beyond, compared, needs_runs, pair
from .verdict import HOLDS, NOT_SEEN, UNDECIDED, UNTESTABLE, WAITS, Measured

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
    return Measured(UNDECIDED, values)


@needs_runs("subwords-64/transformer")
def asymptote() -> Measured:
    """Was the curve flat before the rate came down, and is a whole run no better than a quarter of one?"""
    large = ("subwords-64", "transformer")
    full, cfg = records.seeds(*large), networks.arm(*large).cfg
    [tried] = [one for one in records.tries(*large).values() if _same_start(one, full[networks.SEEDS[0]])]
    gain = jobs.score(tried) - float(np.mean([jobs.score(record) for record in full.values()]))
    level, quarter = cfg.steps - cfg.cooldown, cfg.steps // 4
    before, after = (_after_sequences(*large, cfg.batch * at) for at in (level - quarter, level))
    values = {"gain": gain, "quarter": quarter, "steps": cfg.steps, "level": level, "late": before - after}
    falls = [gain > CLOSE, values["late"] > CLOSE]
    return Measured(NOT_SEEN if all(falls) else UNDECIDED if any(falls) else HOLDS, values)


@needs_runs("subwords-1/transformer", "subwords-64/transformer")
def optimised() -> Measured:
    """For what is compared, the sequences that a loss takes; and what its rate is worth. The paper gives neither."""
    rates = records.rates("subwords-64", "transformer")
    low, high = preset("transformer-lite").lr, networks.RATES[-1]
    after = overtaken(("subwords-1", "transformer"), ("subwords-64", "transformer"))
    values = dict(rate=low, low=rates[low], high=rates[high], times=high / low, after=_after(after), more=after / 8000)
    return Measured(NOT_SEEN if after > 8000 else HOLDS, values)


@needs_runs(*(f"{alphabet}-{batch}/transformer" for alphabet in ("bytes", "subwords") for batch in (1, 64)))
def requirement() -> Measured:
    """Does the Transformer need a large batch? With the same sequences, at batch 1 and at batch 64."""
    values = {}
    for alphabet in ("bytes", "subwords"):
        values |= {
            f"small_{alphabet}": _end(f"{alphabet}-1", "transformer"),
            f"large_{alphabet}": _after_sequences(f"{alphabet}-64", "transformer", 8000),
        }
    needs = [values[f"small_{alphabet}"] > values[f"large_{alphabet}"] for alphabet in ("bytes", "subwords")]
    return Measured(HOLDS if all(needs) else UNDECIDED if any(needs) else NOT_SEEN, values)


def _same_start(one: dict, other: dict) -> bool:
    """At the same learning rate and initial scale."""
    first, second = one["config"]["model"], other["config"]["model"]
    return all(first[key] == second[key] for key in ("lr", "gain"))


def large_batch(alphabet: str) -> Callable[[], Measured]:
    """Batch size and amount of text change together, as in the paper, so neither can be blamed."""
    small, large = f"{alphabet}-1", f"{alphabet}-64"
    every = [(group, name) for group in (small, large) for name in BOTH]

    @needs_runs(*map("/".join, every))
    def measured() -> Measured:
        _, values = pair((small, "p-spin"), (large, "p-spin"))
        _, other = pair((small, "transformer"), (large, "transformer"))
        values |= _cooldown(alphabet) | {
            "other": other["gap"],
            "other_width": other["width"],
            "edge": beyond(*every),
        }
        for name in BOTH:
            key = name.replace("-", "_")
            values |= {f"early_{key}": _after_sequences(large, name, 8000), f"end_{key}": _end(small, name)}
        return Measured(UNTESTABLE, values)

    return measured


@needs_runs("bytes-1/p-spin", "subwords-1/p-spin", "subwords-64/transformer")
def bytes_behind() -> Measured:
    """Against the paper's baseline; beside it against p-Spin with subwords."""
    byte, subword, baseline = ("bytes-1", "p-spin"), ("subwords-1", "p-spin"), ("subwords-64", "transformer")
    gaps, values = pair(byte, baseline)
    _, mine = pair(byte, subword)
    data = records.seeds(*subword)[networks.SEEDS[0]]["data"]["train"]
    values |= {
        "more": data["bytes"] / data["tokens"],
        "mine": mine["gap"],
        "mine_width": mine["width"],
        "edge": beyond(byte, baseline, subword),
    }
    worse, no_worse = (all(gap.low > 0 for gap in gaps), all(gap.high < CLOSE for gap in gaps))
    return Measured(HOLDS if worse else NOT_SEEN if no_worse else UNDECIDED, values)


MEASURES = {
    "eight-times": headline("subwords"),
    "eight-times-bytes": headline("bytes"),
    "eight-times-untuned": at_the_papers_rate,
    "asymptote": asymptote,
    "optimised": optimised,
    "requirement": requirement,
    "control-64": compared(("subwords-64", "p-spin"), ("subwords-64", "transformer")),
    "control-64-bytes": compared(("bytes-64", "p-spin"), ("bytes-64", "transformer")),
    "large-batch": large_batch("subwords"),
    "large-batch-bytes": large_batch("bytes"),
    "bytes-behind": bytes_behind,
}
