"""Claims on continual learning: the speeches in the order they were given."""

from __future__ import annotations

from .. import arms, continual, records
from . import FAILS, HOLDS, PART, Measured
from .trained import CLOSE, named, wants, within

IN_TIME = [f"{continual.GROUP}/{model}-time" for model in continual.models()]
MIXED = [f"{continual.GROUP}/{model}-mixed" for model in continual.models()]
RATES = (
    ". Constant learning rates, taken over from the tries of bytes-1, where they fall at the end: {r_p_spin:g}, "
    "{r_k0_same_size:g}, {r_swiglu:g}, {r_transformer:g}. Standard deviations over seeds: at most {sd:.3f}"
)
ALL = [f"{continual.GROUP}/{arm.name}" for arm in arms.GROUPS[continual.GROUP]]


def rates() -> dict[str, float]:
    first = {model: records.seeds(continual.GROUP, f"{model}-time")[arms.SEEDS[0]] for model in continual.models()}
    return named("r_", {model: record["config"]["model"]["lr"] for model, record in first.items()})


@wants(*ALL)
def retention() -> Measured:
    """How much worse old speeches have become since they were known best, and than after the same text mixed."""
    lost = {model: continual.forgotten(model, "time") for model in continual.models()}
    order = {model: continual.lost_to_order(model) for model in continual.models()}
    gaps = {
        model: [records.difference(found["p-spin"], found[model]) for found in (lost, order)]
        for model in continual.models()[1:]
    }
    values = named("f_", {model: records.mean(x) for model, x in lost.items()})
    values |= named("o_", {model: records.mean(x) for model, x in order.items()})
    values |= dict(replayed=records.mean(continual.forgotten("p-spin", "replay")))
    values |= dict(gap=gaps["transformer"][0].mean, width=gaps["transformer"][0].half_width)
    values |= dict(o_gap=gaps["transformer"][1].mean, o_width=gaps["transformer"][1].half_width)
    text = (
        "after 236 years of speeches in order ({windows:,} windows of them), those of all eras but the last cost "
        "{f_p_spin:.3f} bits per byte more than when they were known best; same-size K = 0 {f_k0_same_size:.3f}, "
        "SwiGLU {f_swiglu:.3f}, Transformer {f_transformer:.3f} (p-Spin against it {gap:+.3f} ± {width:.3f}). At "
        "the end they cost more than after the same sequences mixed, by {o_p_spin:.3f}, {o_k0_same_size:.3f}, "
        "{o_swiglu:.3f} and {o_transformer:.3f} (p-Spin against the Transformer {o_gap:+.3f} ± {o_width:.3f}). With "
        "every other sequence a replayed one p-Spin ends {replayed:.3f} "
        "above its best" + RATES
    )
    values |= rates() | dict(windows=arms.arm(continual.GROUP, "p-spin-time").cfg.steps)
    values |= dict(sd=max(records.spread(x) for found in (lost, order) for x in found.values()))
    calm = {model: all(gap.clear and gap.mean < 0 for gap in both) for model, both in gaps.items()}
    kept = all(_highest(found["p-spin"]) < CLOSE for found in (lost, order))
    return Measured(HOLDS if kept or all(calm.values()) else PART if calm["transformer"] else FAILS, text, values)


def _highest(values: dict[int, float]) -> float:
    """The upper end of the 95% interval of a mean over seeds."""
    gap = records.difference(values, dict.fromkeys(values, 0.0))
    return gap.mean + gap.half_width


@wants(*IN_TIME, *MIXED)
def followed() -> Measured:
    """Every sequence costs what it costs before it is learned: the text, transmitted once. Beside it what the order
    gains: on the same sequences mixed, and on an era when its own text has just been read."""
    cost = {model: continual.followed(model) for model in continual.models()}
    gaps = {model: records.difference(cost["p-spin"], found) for model, found in cost.items() if model != "p-spin"}
    values = named("", {model: records.mean(x) for model, x in cost.items()})
    text = (
        "online bits per byte over 236 years in order, after the warm-up: p-Spin {p_spin:.3f}, same-size K = 0 "
        "{k0_same_size:.3f}, SwiGLU {swiglu:.3f}, Transformer {transformer:.3f}; p-Spin against the Transformer "
        "{gap:+.3f} ± {width:.3f}, against K = 0 {k_gap:+.3f} ± {k_width:.3f}, and mixed {m_gap:+.3f} ± "
        "{m_width:.3f} (K = 0 started at {scale:g} times the scale; in tries of bytes-1 that started alike, at the "
        "same rate, p-Spin ends at {alike:.3f} and it at {alike_k0:.3f}). Most of that is how well they predict at "
        "all: in order the text costs p-Spin {g_p_spin:.3f} less than the same sequences mixed, same-size K = 0 "
        "{g_k0_same_size:.3f}, SwiGLU {g_swiglu:.3f}, the Transformer "
        "{g_transformer:.3f} (p-Spin against it {g_gap:+.3f} ± {g_width:.3f}). In the {bin} steps after the text has "
        "reached an era, that era costs less than after as many sequences mixed, by {l_p_spin:.3f}, "
        "{l_k0_same_size:.3f}, {l_swiglu:.3f} and {l_transformer:.3f} (p-Spin against the Transformer {l_gap:+.3f} ± "
        "{l_width:.3f})" + RATES
    )
    start = {model: records.seeds(continual.GROUP, f"{model}-time")[1]["config"]["model"]["gain"] for model in cost}
    values |= dict(scale=start["k0-same-size"] / start["p-spin"])
    gain = {model: continual.gain_of_order(model) for model in continual.models()}
    values |= rates() | named("g_", {model: records.mean(x) for model, x in gain.items()})
    just_after = list(continual.BINS).index(0)
    lead = {model: {n: x[just_after] for n, x in continual.lead(model)[1].items()} for model in continual.models()}
    values |= named("l_", {model: records.mean(x) for model, x in lead.items()}) | dict(bin=continual.BIN)
    beside = {"": gaps["transformer"], "k_": gaps["k0-same-size"]}
    beside |= {f"{key}_": records.difference(x["p-spin"], x["transformer"]) for key, x in (("g", gain), ("l", lead))}
    mixed = {model: continual.followed(model, "mixed") for model in ("p-spin", "k0-same-size")}
    beside |= {"m_": records.difference(mixed["p-spin"], mixed["k0-same-size"])}
    alike = [records.rates("bytes-1", model)[values["r_p_spin"]] for model in mixed]
    values |= dict(alike=alike[0], alike_k0=alike[1], sd=max(map(records.spread, cost.values())))
    for key, gap in beside.items():
        values |= {f"{key}gap": gap.mean, f"{key}width": gap.half_width}
    best = all(gap.clear and gap.mean < 0 for gap in gaps.values())
    return Measured(HOLDS if best else PART if within(gaps["transformer"]) == HOLDS else FAILS, text, values)


MEASURES = {"retention": retention, "followed": followed}
