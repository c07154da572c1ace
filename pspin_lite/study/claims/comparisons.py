"""Claims that compare two networks: their bits per byte, what context is worth to them, the cost of a step."""

from __future__ import annotations

from collections.abc import Callable

from .. import jobs, networks, records
from .claim import phrase
from .verdict import FAILS, HOLDS, PART, UNTESTABLE, WAITS, Measured, Value

CLOSE = 0.02  # bits per byte: what counts as parity, about what three seeds of one network spread over
LISTED = 6  # networks whose missing runs are named one by one; beyond that, their groups
NEAR, FAR = 8, 64  # tokens of context
Network = tuple[str, str]  # group and name, as in networks.py


def needs_runs(*names: str) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
    """The claim waits while runs of these networks are missing, and cannot be tested if one of them diverged."""

    def decorate(measure: Callable[[], Measured]) -> Callable[[], Measured]:
        def measured() -> Measured:
            missing, diverged = records.missing(*names), records.failed(*names)
            if missing:
                return Measured(WAITS, {"count": len(missing), "names": _listed(missing)})
            if diverged:
                return Measured(UNTESTABLE, {"diverged": ", ".join(diverged)})
            return measure()

        return measured

    return decorate


def _listed(runs: list[str]) -> str:
    names = sorted({run.rpartition("/")[0] for run in runs})
    groups = sorted({name.partition("/")[0] for name in names})
    return ", ".join(names if len(names) <= LISTED else groups)


def pair(one: Network, other: Network) -> tuple[records.Difference, dict[str, Value]]:
    """The difference of two networks in bits per byte on held-out speeches; with its values, also on recent ones."""
    a, b = records.bits(*one), records.bits(*other)
    gap = records.difference(a, b)
    recent = records.difference(records.bits(*one, "recent"), records.bits(*other, "recent"))
    values = {
        "a": records.mean(a),
        "sa": records.spread(a),
        "b": records.mean(b),
        "sb": records.spread(b),
        "recent": recent.mean,
        "recent_width": recent.half_width,
        "gap": gap.mean,
        "width": gap.half_width,
    }
    return gap, values


def within(gap: records.Difference, margin: float = CLOSE) -> str:
    """HOLDS if the whole interval lies below the margin, FAILS if it lies above, PART if three seeds cannot tell."""
    low, high = gap.mean - gap.half_width, gap.mean + gap.half_width
    return HOLDS if high <= margin else FAILS if low > margin else PART


def beyond(*names: Network) -> str:
    """What lies beyond the largest rate and scale, for the networks that did best there, as far as it was tried. Empty
    if there is no such network."""
    edges = [_edge(group, name) for group, name in dict.fromkeys(names)]
    return phrase("edges", edges="; ".join(filter(None, edges))) if any(edges) else ""


def _edge(group: str, name: str) -> str:
    lr, gain = _chosen(records.seeds(group, name)[networks.SEEDS[0]])
    scores = {_chosen(record): jobs.score(record) for record in records.tries(group, name).values()}
    parts = []
    if lr == networks.RATES[-1]:
        parts.append(_higher_rates(scores, lr, gain))
    if gain == networks.SCALES[-1]:
        parts.append(phrase("larger_start", gained=scores[lr, networks.SCALES[0]] - scores[lr, gain]))
    return phrase("edge", arm=name, group=group, parts=", ".join(parts)) if parts else ""


def _chosen(record: dict) -> tuple[float, float]:
    """Learning rate and scale of the initial weights."""
    model = record["config"]["model"]
    return model["lr"], model["gain"]


def _higher_rates(scores: dict[tuple[float, float], float], lr: float, gain: float) -> str:
    """The best run at a higher rate, next to the one that was chosen."""
    higher = {tried: score for tried, score in scores.items() if tried[0] > lr}
    if not higher:
        return phrase("no_higher_rate")
    here, ((rate, scale), best) = scores[lr, gain], min(higher.items(), key=lambda row: row[1])
    start = phrase("other_start", ratio=scale / gain) if scale != gain else ""
    falling = best < here and rate == max(rate for rate, _ in higher)
    untried = phrase("higher_untried") if falling else ""
    return phrase("higher_rate", best=best, here=here, ratio=rate / lr, start=start, untried=untried)


def compared(better: Network, other: Network, strict: bool = False) -> Callable[[], Measured]:
    """`better` is to be as good as `other`, within CLOSE; if strict, clearly better, and in part as good."""

    @needs_runs("/".join(better), "/".join(other))
    def measured() -> Measured:
        gap, values = pair(better, other)
        more = 100 * (_parameters(better) / _parameters(other) - 1)
        size = phrase("size", more=more) if more >= 1 else ""
        if strict:
            verdict = HOLDS if gap.clear and gap.mean < 0 else PART if within(gap) == HOLDS else FAILS
        else:
            verdict = within(gap)
        return Measured(verdict, values | {"more": more, "size": size, "edge": beyond(better, other)})

    return measured


def _parameters(name: Network) -> int:
    return records.seeds(*name)[networks.SEEDS[0]]["summary"]["parameters"]


@needs_runs("bytes-1/p-spin", "bytes-1/k0-same-size", "bytes-1/k0", "bytes-1/k1", "bytes-1/k2", "bytes-1/k10")
def recurrence() -> Measured:
    gap, values = pair(("bytes-1", "p-spin"), ("bytes-1", "k0-same-size"))
    one_step, _ = pair(("bytes-1", "p-spin"), ("bytes-1", "k1"))
    values |= {name: records.mean(records.bits("bytes-1", name)) for name in ("k0", "k1", "k2", "k10")}
    values |= {"gap1": one_step.mean, "width1": one_step.half_width}
    better = [difference.clear and difference.mean < 0 for difference in (gap, one_step)]
    return Measured(HOLDS if all(better) else PART if better[0] else FAILS, values)


def prefixed(prefix: str, values: dict[str, Value]) -> dict[str, Value]:
    """By names that a sentence can use: k0-same-size -> {prefix}k0_same_size."""
    return {prefix + name.replace("-", "_"): value for name, value in values.items()}


def gained(group: str, name: str) -> dict[int, float]:
    """By seed, what FAR tokens of context instead of NEAR are worth, in nats, on the same tokens."""
    contexts, nats = records.by_context(group, name)
    near, far = (nats[:, contexts.index(length)] for length in (NEAR, FAR))
    return dict(zip(records.seeds(group, name), (near - far).tolist(), strict=True))


def credit(alphabet: str, *others: str) -> Callable[[], Measured]:
    """What more context is worth to p-Spin, the Transformer and `others`; to the first two also at batch 64."""
    both = ("p-spin", "transformer")
    small, large = f"{alphabet}-1", f"{alphabet}-64"

    @needs_runs(*(f"{small}/{name}" for name in (*both, *others)), *(f"{large}/{name}" for name in both))
    def measured() -> Measured:
        values = {"near": NEAR, "far": FAR}
        for prefix, group, names in (("", small, (*both, *others)), ("l_", large, both)):
            for name in names:
                gains = gained(group, name)
                gain = records.difference(gains, dict.fromkeys(gains, 0.0))
                values |= prefixed(prefix, {name: gain.mean, f"{name}_width": gain.half_width})
        mine, theirs = values["p_spin"], values["transformer"]
        return Measured(FAILS if mine <= 0.01 else HOLDS if mine > 0.8 * theirs else PART, values)

    return measured


def cost() -> Measured:
    """Seconds and flops of a step, in units of the Transformer's. Flops are counted: no run is needed for them."""
    values = {}
    for group in ("bytes-1", "subwords-1"):
        flops = [jobs.flops_a_step(networks.arm(group, name).cfg) for name in ("p-spin", "transformer")]
        values |= {f"time_{group[0]}": _seconds_ratio(group, "p-spin"), f"flops_{group[0]}": flops[0] / flops[1]}
    values["k0"] = _seconds_ratio("bytes-1", "k0-same-size")
    slower = [values["time_b"] > 1, values["time_s"] > 1]
    return Measured(FAILS if all(slower) else PART if any(slower) else HOLDS, values)


def _seconds_ratio(group: str, name: str) -> float:
    return records.seconds_a_step(group, name) / records.seconds_a_step(group, "transformer")


B1, S1 = "bytes-1", "subwords-1"
MEASURES = {
    "control": compared((S1, "p-spin"), (S1, "transformer")),
    "control-bytes": compared((B1, "p-spin"), (B1, "transformer")),
    "swiglu": compared((B1, "p-spin"), (B1, "swiglu")),
    "swiglu-subwords": compared((S1, "p-spin"), (S1, "swiglu")),
    "precision": compared((B1, "p-spin"), (B1, "full-precision")),
    "mixer": compared((B1, "p-spin"), (B1, "attention"), strict=True),
    "recurrence": recurrence,
    "credit": credit("bytes", "swiglu", "attention"),
    "credit-subwords": credit("subwords", "swiglu"),
    "cost": cost,
}
