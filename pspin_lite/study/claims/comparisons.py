"""Claims that compare two networks: their bits per byte, what context is worth to them, the cost of a step."""

from __future__ import annotations

from collections.abc import Callable

from .. import intervals, jobs, networks, records
from .claim import phrase
from .verdict import HOLDS, NOT_SEEN, PART, REFUTED, UNDECIDED, UNTESTABLE, WAITS, Measured, Value

CLOSE = 0.02  # bits per byte: what counts as parity, about what three seeds of one network spread over
LISTED = 6  # networks whose missing runs are named one by one; beyond that, their groups
NEAR, FAR = 8, 64  # tokens of context
WORTH = 0.01  # nats: what context has to be worth
INTERVALS = {  # that decide verdicts, by claim; together they are one family (intervals.py)
    **dict.fromkeys(("eight-times", "eight-times-bytes", "bytes-behind", "precision", "mixer"), 1),
    **dict.fromkeys(("control", "control-bytes", "control-64", "control-64-bytes", "swiglu", "swiglu-subwords"), 1),
    **dict.fromkeys(("credit", "credit-subwords", "falling-loss", "damped", "ternary-damps"), 1),
    **{"recurrence": 2, "depth": 2, "retention": 8, "followed": 3},
}
FAMILY = sum(INTERVALS.values())
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


Gaps = list[intervals.Difference]  # one for each split: both decide


def pair(one: Network, other: Network) -> tuple[Gaps, dict[str, Value]]:
    """The difference of two networks in bits per byte on both splits; with its values."""
    a, b = records.bits(*one), records.bits(*other)
    gaps = [records.compare(one, other, split, FAMILY) for split in records.SPLITS]
    gap, recent = gaps
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
    return gaps, values


def matches(gaps: Gaps, margin: float = CLOSE) -> str:
    """HOLDS if every interval lies below the margin, NOT_SEEN if every one lies above it."""
    if all(gap.high <= margin for gap in gaps):
        return HOLDS
    return NOT_SEEN if all(gap.low > margin for gap in gaps) else UNDECIDED


def better(gaps: Gaps, worth: float = CLOSE) -> str:
    """HOLDS if every interval lies below zero, NOT_SEEN if none leaves room for a gain that would be worth having."""
    if all(gap.high < 0 for gap in gaps):
        return HOLDS
    return NOT_SEEN if all(gap.low > -worth for gap in gaps) else UNDECIDED


def every(verdicts: list[str]) -> str:
    """Of a claim that needs all of them."""
    return next((one for one in (NOT_SEEN, UNDECIDED) if one in verdicts), HOLDS)


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
    ratio = phrase("double_rate") if rate == 2 * lr else phrase("other_rate", ratio=rate / lr)
    return phrase("higher_rate", best=best, here=here, rate=ratio, start=start, untried=untried)


def compared(ours: Network, other: Network, strict: bool = False) -> Callable[[], Measured]:
    """`ours` is to be as good as `other`, within CLOSE; if strict, better."""

    @needs_runs("/".join(ours), "/".join(other))
    def measured() -> Measured:
        gaps, values = pair(ours, other)
        more = 100 * (_parameters(ours) / _parameters(other) - 1)
        size = phrase("size", more=more) if more >= 1 else ""
        verdict = better(gaps) if strict else matches(gaps)
        return Measured(verdict, values | {"more": more, "size": size, "edge": beyond(ours, other)})

    return measured


def _parameters(name: Network) -> int:
    return records.seeds(*name)[networks.SEEDS[0]]["summary"]["parameters"]


@needs_runs("bytes-1/p-spin", "bytes-1/k0-same-size", "bytes-1/k0", "bytes-1/k1", "bytes-1/k2", "bytes-1/k10")
def recurrence() -> Measured:
    gaps, values = pair(("bytes-1", "p-spin"), ("bytes-1", "k0-same-size"))
    one_step, ones = pair(("bytes-1", "p-spin"), ("bytes-1", "k1"))
    values |= {name: records.mean(records.bits("bytes-1", name)) for name in ("k0", "k1", "k2", "k10")}
    values |= {f"{name}1": ones[name] for name in ("gap", "width", "recent", "recent_width")}
    return Measured(every([better(gaps), better(one_step)]), values)


STEPS = ("p-spin", "k0-same-size", "k1", "k2", "k10")


@needs_runs(*(f"bytes-1/{name}" for name in STEPS))
def depth() -> Measured:
    """Sample efficiency, as the mean of a curve over the whole run: lower, the sooner it falls."""
    values: dict[str, Value] = {}
    verdicts = []
    for other, key in (("k0-same-size", "0"), ("k1", "1")):
        gaps = []
        for split, prefix in zip(records.SPLITS, ("", "recent_"), strict=True):
            means = {name: _mean_of_curve(name, split) for name in STEPS}
            spread = intervals.pooled(means.values())
            gaps.append(intervals.difference(means["p-spin"], means[other], spread, family=FAMILY))
            values |= {f"{prefix}gap{key}": gaps[-1].mean, f"{prefix}width{key}": gaps[-1].half_width}
        verdicts.append(better(gaps))
    return Measured(every(verdicts), values)


def _mean_of_curve(name: str, split: str) -> dict[int, float]:
    """By seed, without the validation before training."""
    return {n: float(records.curve(run, split)[1][1:].mean()) for n, run in records.seeds("bytes-1", name).items()}


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
            gains = {name: gained(group, name) for name in names}
            spread = intervals.pooled(gains.values())
            for name in names:
                gain = intervals.mean(gains[name], spread, FAMILY)
                values |= prefixed(prefix, {name: gain.mean, f"{name}_width": gain.half_width})
        return Measured(credited(values), values)

    return measured


def credited(values: dict[str, Value]) -> str:
    mine, width = values["p_spin"], values["p_spin_width"]
    if mine - width > WORTH:
        return HOLDS if mine > 0.8 * values["transformer"] else PART
    return NOT_SEEN if mine + width <= WORTH else UNDECIDED


@needs_runs("bytes-1/p-spin", "bytes-1/transformer", "bytes-1/swiglu", "bytes-1/attention")
def falling_loss() -> Measured:
    """Whether a loss that falls can tell how far back a network looks."""
    names = ("p-spin", "transformer", "swiglu", "attention")
    gains = {name: gained("bytes-1", name) for name in names}
    gain = intervals.mean(gains["p-spin"], intervals.pooled(gains.values()), FAMILY)
    curves = [records.curve(run)[1] for run in records.seeds("bytes-1", "p-spin").values()]
    first, last = (float(sum(curve[at] for curve in curves) / len(curves)) for at in (0, -1))
    values = {"near": NEAR, "far": FAR, "gain": gain.mean, "width": gain.half_width, "first": first, "last": last}
    if last < first and gain.high <= WORTH:
        return Measured(REFUTED, values)
    return Measured(HOLDS if last < first and gain.low > WORTH else UNDECIDED, values)


def cost() -> Measured:
    """Seconds and flops of a step, in units of the Transformer's. Flops are counted: no run is needed for them."""
    values = {}
    for group in ("bytes-1", "subwords-1"):
        flops = [jobs.flops_a_step(networks.arm(group, name).cfg) for name in ("p-spin", "transformer")]
        values |= {f"time_{group[0]}": _seconds_ratio(group, "p-spin"), f"flops_{group[0]}": flops[0] / flops[1]}
    values["k0"] = _seconds_ratio("bytes-1", "k0-same-size")
    slower = [values["time_b"] > 1, values["time_s"] > 1]
    return Measured(NOT_SEEN if all(slower) else PART if any(slower) else HOLDS, values)


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
    "depth": depth,
    "falling-loss": falling_loss,
    "credit": credit("bytes", "swiglu", "attention"),
    "credit-subwords": credit("subwords", "swiglu"),
    "cost": cost,
}
