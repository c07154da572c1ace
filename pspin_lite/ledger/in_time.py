"""Claims on continual learning: the speeches in the order they were given."""

from __future__ import annotations

from .. import arms, continual, records
from . import FAILS, HOLDS, PART, Measured
from .trained import CLOSE, named, wants, within

IN_TIME = [f"{continual.GROUP}/{model}-time" for model in continual.models()]
MIXED = [f"{continual.GROUP}/{model}-mixed" for model in continual.models()]
RATES = ". Constant learning rates, the best of each: {r_p_spin:g}, {r_k0_same_size:g}, {r_swiglu:g}, {r_transformer:g}"
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
    text = (
        "after 236 years of speeches in order ({windows:,} windows of them), those of all eras but the last cost "
        "{f_p_spin:.3f} bits per byte more than when they were known best; same-size K = 0 {f_k0_same_size:.3f}, "
        "SwiGLU {f_swiglu:.3f}, Transformer {f_transformer:.3f} (p-Spin against it {gap:+.3f} ± {width:.3f}). At "
        "the end they cost more than after the same sequences mixed, by {o_p_spin:.3f}, {o_k0_same_size:.3f}, "
        "{o_swiglu:.3f} and {o_transformer:.3f}. With every other sequence a replayed one p-Spin ends {replayed:.3f} "
        "above its best" + RATES
    )
    values |= rates() | dict(windows=arms.arm(continual.GROUP, "p-spin-time").cfg.steps)
    calm = {model: all(gap.clear and gap.mean < 0 for gap in both) for model, both in gaps.items()}
    kept = max(values["f_p_spin"], values["o_p_spin"]) < CLOSE
    return Measured(HOLDS if kept or all(calm.values()) else PART if calm["transformer"] else FAILS, text, values)


@wants(*IN_TIME, *MIXED)
def followed() -> Measured:
    """Every sequence costs what it costs before it is learned: the text, transmitted once."""
    cost = {model: continual.followed(model) for model in continual.models()}
    gaps = {model: records.difference(cost["p-spin"], found) for model, found in cost.items() if model != "p-spin"}
    values = named("", {model: records.mean(x) for model, x in cost.items()})
    text = (
        "online bits per byte over 236 years in order, after the warm-up: p-Spin {p_spin:.3f}, same-size K = 0 "
        "{k0_same_size:.3f}, SwiGLU {swiglu:.3f}, Transformer {transformer:.3f}; p-Spin against the Transformer "
        "{gap:+.3f} ± {width:.3f}. Most of that is how well they predict at all: in order the text costs p-Spin "
        "{g_p_spin:.3f} less than the same text mixed, same-size K = 0 {g_k0_same_size:.3f}, SwiGLU {g_swiglu:.3f}, "
        "the Transformer {g_transformer:.3f}" + RATES
    )
    mixed = {model: records.mean(continual.followed(model, "mixed")) for model in continual.models()}
    values |= rates() | named("g_", {model: x - records.mean(cost[model]) for model, x in mixed.items()})
    values |= dict(gap=gaps["transformer"].mean, width=gaps["transformer"].half_width)
    best = all(gap.clear and gap.mean < 0 for gap in gaps.values())
    return Measured(HOLDS if best else PART if within(gaps["transformer"]) == HOLDS else FAILS, text, values)


MEASURES = {"retention": retention, "followed": followed}
