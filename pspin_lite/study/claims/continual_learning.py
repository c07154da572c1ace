"""Claims on continual learning: the speeches in the order they were given."""

from __future__ import annotations

from .. import continual, intervals, networks, records
from .comparisons import CLOSE, FAMILY, needs_runs, prefixed
from .verdict import HOLDS, NOT_SEEN, UNDECIDED, Measured, Value

IN_TIME = [f"{continual.GROUP}/{model}-time" for model in continual.models()]
MIXED = [f"{continual.GROUP}/{model}-mixed" for model in continual.models()]
ALL = [f"{continual.GROUP}/{arm.name}" for arm in networks.GROUPS[continual.GROUP]]
BySeed = dict[int, float]


def _settings(name: str) -> dict[str, float]:
    """Of each network that reads in order: its learning rate `lr`, or the `gain` of its initial weights."""
    runs = {model: records.seeds(continual.GROUP, f"{model}-time") for model in continual.models()}
    return {model: run[networks.SEEDS[0]]["config"]["model"][name] for model, run in runs.items()}


def _means(prefix: str, costs: dict[str, BySeed]) -> dict[str, Value]:
    return prefixed(prefix, {model: records.mean(cost) for model, cost in costs.items()})


def _gap(prefix: str, gap: intervals.Difference) -> dict[str, Value]:
    return {f"{prefix}gap": gap.mean, f"{prefix}width": gap.half_width}


def _largest_spread(*costs: dict[str, BySeed]) -> float:
    return max(records.spread(cost) for by_model in costs for cost in by_model.values())


@needs_runs(*ALL)
def retention() -> Measured:
    """How much worse old speeches have become since they were known best, and than after the same text mixed."""
    lost = {model: continual.forgotten(model, "time") for model in continual.models()}
    order = {model: continual.lost_to_order(model) for model in continual.models()}
    gaps = {model: [_difference(cost, model) for cost in (lost, order)] for model in continual.models()[1:]}
    values = _means("f_", lost) | _means("o_", order) | prefixed("r_", _settings("lr"))
    values |= _gap("", gaps["transformer"][0]) | _gap("o_", gaps["transformer"][1])
    values |= {
        "replayed": records.mean(continual.forgotten("p-spin", "replay")),
        "windows": networks.arm(continual.GROUP, "p-spin-time").cfg.steps,
        "sd": _largest_spread(lost, order),
    }
    calmer = {model: all(gap.clear and gap.mean < 0 for gap in both) for model, both in gaps.items()}
    own = [intervals.mean(cost["p-spin"], intervals.pooled(cost.values()), FAMILY) for cost in (lost, order)]
    values |= {"width_own": own[0].half_width, "o_width_own": own[1].half_width}
    if all(gap.high < CLOSE for gap in own) or all(calmer.values()):
        return Measured(HOLDS, values)
    return Measured(NOT_SEEN if any(gap.low > CLOSE for gap in own) else UNDECIDED, values)


def _difference(costs: dict[str, BySeed], other: str) -> intervals.Difference:
    """p-Spin minus another network; the variance is pooled over all that are given."""
    return intervals.difference(costs["p-spin"], costs[other], intervals.pooled(costs.values()), family=FAMILY)


@needs_runs(*IN_TIME, *MIXED)
def followed() -> Measured:
    """Every sequence costs what it costs before it is learned: the text, transmitted once. Beside it what the order
    gains: on the same sequences mixed, and on an era when its own text has just been read."""
    models = continual.models()
    cost = {model: continual.followed(model) for model in models}
    mixed = {model: continual.followed(model, "mixed") for model in ("p-spin", "k0-same-size")}
    gain = {model: continual.gain_of_order(model) for model in models}
    lead = {model: _lead_after_arrival(model) for model in models}
    gaps = {model: _difference(cost, model) for model in models if model != "p-spin"}
    rates, start = _settings("lr"), _settings("gain")
    alike, alike_k0 = (records.rates("bytes-1", model)[rates["p-spin"]] for model in mixed)
    values = _means("", cost) | _means("g_", gain) | _means("l_", lead) | prefixed("r_", rates)
    values |= _gap("", gaps["transformer"]) | _gap("k_", gaps["k0-same-size"])
    values |= _gap("g_", _difference(gain, "transformer"))
    values |= _gap("l_", _difference(lead, "transformer"))
    values |= _gap("m_", _difference(mixed, "k0-same-size"))
    values |= {
        "scale": start["k0-same-size"] / start["p-spin"],
        "bin": continual.BIN,
        "alike": alike,
        "alike_k0": alike_k0,
        "sd": _largest_spread(cost),
    }
    best = all(gap.clear and gap.mean < 0 for gap in gaps.values())
    behind = any(gap.low > 0 for gap in gaps.values())
    return Measured(HOLDS if best else NOT_SEEN if behind else UNDECIDED, values)


def _lead_after_arrival(model: str) -> BySeed:
    """By seed, in the first bin of steps after the text has reached an era."""
    arrival = list(continual.BINS).index(0)
    return {seed: lead[arrival] for seed, lead in continual.lead(model)[1].items()}


MEASURES = {"retention": retention, "followed": followed}
