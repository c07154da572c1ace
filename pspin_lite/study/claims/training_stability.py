"""Claims on how noisy training is: damped, without catastrophic gradients. Decided by records of every step."""

from __future__ import annotations

import numpy as np

from .. import intervals, networks, records, stability
from .comparisons import FAMILY, better, needs_runs, prefixed
from .verdict import HOLDS, NOT_SEEN, REFUTED, Measured, Value

LOWER = 0.1  # of a logarithm, so about a tenth: what would count as damping
WILD = 10  # times the median: a gradient that could be called catastrophic
TERNARY = ("p-spin", "k0", "k0-same-size", "k1", "k2", "k10")
COMPARED = ("p-spin", "k0-same-size", "full-precision", "swiglu", "transformer")
EVERY = tuple(arm.name for arm in networks.GROUPS["bytes-1"])
LAST = 300  # steps
REFERENCES = ("transformer", "swiglu", "p-spin")  # to measure jitter against: one of each family
FIVE = {"raw jitter": ".2f", "tail": ".2f", "largest": ".1f", "worse steps": ".0%", "noise scale": ".0f"}
BySeed = dict[int, float]


def measure(name: str, quantity: str, group: str = "bytes-1") -> BySeed:
    """A measure of stability by seed."""
    return {seed: stability.measures(record)[quantity] for seed, record in records.seeds(group, name).items()}


def own_jitter(
    name: str, references: tuple[str, ...] = REFERENCES, group: str = "bytes-1", last: int | None = None
) -> BySeed:
    """By seed; at full learning rate, or over the `last` steps."""
    by_name = {one: records.seeds(group, one) for one in (name, *references)}
    return {
        seed: stability.own_jitter({one: by_name[one][seed] for one in by_name}, name, references, last)
        for seed in networks.SEEDS
    }


def _means(by_name: dict[str, BySeed]) -> dict[str, float]:
    return {name: records.mean(values) for name, values in by_name.items()}


def with_range(values: BySeed, form: str) -> str:
    """Mean, and in brackets the lowest and the highest seed."""
    return f"{records.mean(values):{form}} ({min(values.values()):{form}} to {max(values.values()):{form}})"


def _model(name: str, group: str = "bytes-1") -> dict:
    return records.seeds(group, name)[networks.SEEDS[0]]["config"]["model"]


def rates(group: str, *names: str) -> str:
    """Learning rates, each the best that was tried with its network."""
    return ", ".join(f"{_model(name, group)['lr']:g}" for name in names)


@needs_runs(*(f"bytes-1/{name}" for name in EVERY))
def damped() -> Measured:
    """Decided by the noise of gradients next to the same network without a fixed point. A model's own jitter is told
    as well, but it does not fall with the learning rate as noise of steps would: much of it is taste in texts."""
    jitter = {name: own_jitter(name) for name in EVERY}
    noise = {name: measure(name, "noise scale") for name in COMPARED}
    jitter_gaps = {name: records.difference(jitter["p-spin"], jitter[name]) for name in COMPARED[1:]}
    noise_gaps = {name: records.difference(noise["p-spin"], noise[name]) for name in COMPARED[1:]}
    without = noise_gaps["k0-same-size"]
    gap = _log_gap(noise, "k0-same-size")
    values = prefixed("", _means(jitter)) | prefixed("n_", _means(noise))
    values |= _clear_differences([*jitter_gaps.values(), *noise_gaps.values()])
    values |= _next_to_no_fixed_point(jitter, jitter_gaps["k0-same-size"], without)
    values |= _other_views_of_jitter()
    values |= {
        "low": min(_means(jitter).values()),
        "high": max(_means(jitter).values()),
        "arms": len(jitter),
        "sd": max(map(records.spread, jitter.values())),
        "n_sd": max(map(records.spread, noise.values())),
        "rates": rates("bytes-1", *COMPARED),
    }
    values |= {
        "ratio": float(np.exp(gap.mean)),
        "low_ratio": float(np.exp(gap.low)),
        "high_ratio": float(np.exp(gap.high)),
    }
    return Measured(better([gap], LOWER), values)


def _log_gap(noise: dict[str, BySeed], other: str) -> intervals.Difference:
    """p-Spin's noise scale over that of another network, in logarithms: its scatter grows with its size."""
    logs = {name: {seed: float(np.log(x)) for seed, x in runs.items()} for name, runs in noise.items()}
    return intervals.difference(logs["p-spin"], logs[other], intervals.pooled(logs.values()), family=FAMILY)


@needs_runs(*(f"bytes-1/{name}" for name in COMPARED))
def ternary_damps() -> Measured:
    noise = {name: measure(name, "noise scale") for name in COMPARED}
    gap = _log_gap(noise, "full-precision")
    values = prefixed("n_", _means({name: noise[name] for name in ("p-spin", "full-precision")}))
    values |= {"ratio": float(np.exp(gap.mean)), "low": float(np.exp(gap.low)), "high": float(np.exp(gap.high))}
    return Measured(better([gap], LOWER), values)


def _clear_differences(gaps: list[records.Difference]) -> dict[str, Value]:
    means = [gap.mean for gap in gaps if gap.clear]
    return {"calmer": sum(x < 0 for x in means), "rougher": sum(x > 0 for x in means), "of": len(gaps)}


def _next_to_no_fixed_point(
    jitter: dict[str, BySeed], gap: records.Difference, noise: records.Difference
) -> dict[str, Value]:
    """Next to K = 0 of the same size, and to the smaller K = 0 that started at the same scale."""
    alike = records.difference(jitter["p-spin"], jitter["k0"])
    return {
        "gap": gap.mean,
        "width": gap.half_width,
        "n_gap": noise.mean,
        "n_width": noise.half_width,
        "k0_gap": alike.mean,
        "k0_width": alike.half_width,
        "gain": _model("p-spin")["gain"] / _model("k0-same-size")["gain"],
    }


def _other_views_of_jitter() -> dict[str, Value]:
    """Against networks that are kin to p-Spin, and while the learning rate falls."""
    kin = ("k0-same-size", "full-precision")
    return {
        "kin": records.mean(own_jitter("p-spin", kin)),
        "stranger": records.mean(own_jitter("transformer", kin)),
        "last": LAST,
        "late": records.mean(own_jitter("p-spin", last=LAST)),
    }


@needs_runs(*(f"bytes-1/{name}" for name in EVERY))
def gradients() -> Measured:
    """Catastrophic gradients, and steps that do harm."""
    tail, largest, harm = (
        {name: measure(name, quantity) for name in EVERY} for quantity in ("tail", "largest", "worse steps")
    )
    tails, maxima = _means(tail), _means(largest)
    shorter = {
        name: tails["p-spin"] < 0.9 * tails[name] and maxima["p-spin"] < 0.9 * maxima[name]
        for name in EVERY
        if name != "p-spin"
    }
    few_steps = [x for name in ("k0", "k0-same-size", "k1", "k2") for x in largest[name].values()]
    values = prefixed("t_", tails) | prefixed("l_", maxima) | prefixed("w_", _means(harm))
    for suffix, name in (("5", "p-spin"), ("10", "k10"), ("_f", "full-precision")):
        values |= {f"low{suffix}": min(largest[name].values()), f"high{suffix}": max(largest[name].values())}
    values |= {
        "high": max(few_steps),
        "rates": rates("bytes-1", "p-spin", "full-precision", "k0-same-size", "swiglu", "transformer"),
        "others": len(shorter),
        "calmer": sum(shorter.values()),
    }
    rounded = max(x for name in TERNARY for x in largest[name].values())
    values |= {"wild": WILD, "rounded": rounded}
    prevented = values["high_f"] > WILD
    return Measured(REFUTED if rounded > WILD else HOLDS if prevented else NOT_SEEN, values)


def _five(name: str, group: str = "bytes-1") -> str:
    return ", ".join(with_range(measure(name, quantity, group), form) for quantity, form in FIVE.items())


def _wilder(name: str) -> int:
    """Measures, of the five, by which a network with bytes is more than a tenth above p-Spin."""
    ours, theirs = ({one: records.mean(measure(network, one)) for one in FIVE} for network in ("p-spin", name))
    return sum(theirs[one] > 1.1 * ours[one] for one in FIVE)


def _clipped(name: str, group: str) -> float:
    """Share of the steps whose gradient was scaled down, over all seeds."""
    steps = [np.array(run["norm"]) > run["config"]["model"]["clip"] for run in records.seeds(group, name).values()]
    return float(np.mean(steps))


@needs_runs(
    *(f"bytes-1/{name}" for name in ("p-spin", "transformer", "swiglu", "k0-same-size")),
    *(f"subwords-1/{name}" for name in ("p-spin", "transformer", "swiglu")),
    "bytes-64/transformer",
)
def chaotic() -> Measured:
    """What the paper says of ordinary networks at batch 1, held against p-Spin by five measures."""
    names = ("p-spin", "transformer", "swiglu")
    values = {
        "rates": rates("bytes-1", *names),
        "s_rates": rates("subwords-1", *names),
        "wilder": _wilder("transformer"),
        "k0": with_range(measure("k0-same-size", "noise scale"), ".0f"),
        "large": records.mean(measure("transformer", "raw jitter", "bytes-64")),
    }
    for prefix, clipped, group in (("", "c_", "bytes-1"), ("s_", "cs_", "subwords-1")):
        values |= prefixed(prefix, {name: _five(name, group) for name in names})
        values |= prefixed(clipped, {name: _clipped(name, group) for name in ("p-spin", "transformer")})
    return Measured(HOLDS if values["wilder"] > 2 else NOT_SEEN, values)


@needs_runs("bytes-1/p-spin", "bytes-1/swiglu", "bytes-1/k0-same-size")
def others_unstable() -> Measured:
    """The two techniques that the paper builds on, without its fixed point."""
    others = ("swiglu", "k0-same-size")
    wilder = {name: _wilder(name) for name in others}
    values = prefixed("", {name: _five(name) for name in ("p-spin", *others)}) | prefixed("w_", wilder)
    values["rates"] = rates("bytes-1", "p-spin", *others)
    fewest = min(wilder.values())
    return Measured(HOLDS if fewest > 2 else NOT_SEEN, values)


@needs_runs("bytes-1/transformer", "subwords-1/transformer")
def bytes_unstable() -> Measured:
    """Of the Transformer, at batch 1. The cause that the paper names, long sequences, is not varied here."""
    values = {"tokens": networks.arm("bytes-1", "transformer").cfg.context}
    wilder = []
    for row, quantity in (("t", "tail"), ("w", "worse steps")):
        by_group = {column: measure("transformer", quantity, f"{column}-1") for column in ("bytes", "subwords")}
        values |= {f"{row}_{column[0]}": with_range(by_group[column], FIVE[quantity]) for column in by_group}
        wilder.append(records.mean(by_group["bytes"]) > 1.1 * records.mean(by_group["subwords"]))
    return Measured(HOLDS if all(wilder) else NOT_SEEN, values)


MEASURES = {
    "damped": damped,
    "ternary-damps": ternary_damps,
    "gradients": gradients,
    "bytes-unstable": bytes_unstable,
    "chaotic": chaotic,
    "others-unstable": others_unstable,
}
