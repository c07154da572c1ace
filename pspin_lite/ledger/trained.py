"""Claims that the study's runs decide. Where runs are missing, the verdict says so and names them."""

from __future__ import annotations

from collections.abc import Callable

from .. import arms, experiments, records
from . import FAILS, HOLDS, PART, UNTESTABLE, WAITS, Measured

CLOSE = 0.02  # bits per byte: what counts as parity, about what three seeds of one arm spread over


def wants(*names: str) -> Callable:
    """Runs of these arms must be there, otherwise the claim waits; and have come to their end."""

    def around(function: Callable) -> Callable:
        def measured() -> Measured:
            gone = records.missing(*names)
            if gone:
                arms_of = sorted({run.rpartition("/")[0] for run in gone})
                if len(arms_of) > 6:  # too many to list: their groups
                    arms_of = sorted({name.partition("/")[0] for name in arms_of})
                return Measured(WAITS, "{count} runs to do: {names}", dict(count=len(gone), names=", ".join(arms_of)))
            lost = dict(names=", ".join(records.failed(*names)))
            return Measured(UNTESTABLE, "left the finite numbers: {names}", lost) if lost["names"] else function()

        return measured

    return around


def pair(one: tuple[str, str], other: tuple[str, str]) -> tuple[records.Difference, dict]:
    """Bits per byte of two arms on held-out speeches, and their difference; beside it that on recent speeches."""
    a, b = records.bits(*one), records.bits(*other)
    gap = records.difference(a, b)
    values = dict(a=records.mean(a), sa=records.spread(a), b=records.mean(b), sb=records.spread(b))
    recent = records.difference(records.bits(*one, "recent"), records.bits(*other, "recent"))
    values |= dict(recent=recent.mean, recent_width=recent.half_width)
    return gap, values | dict(gap=gap.mean, width=gap.half_width)


BOTH = (
    "{a:.3f} ± {sa:.3f} (sd) against {b:.3f} ± {sb:.3f} (sd) bits per byte; difference {gap:+.3f} ± {width:.3f} (95%, "
    "3 seeds; on recent speeches {recent:+.3f} ± {recent_width:.3f})"
)


def within(gap: records.Difference, margin: float = CLOSE) -> str:
    """HOLDS if the whole interval lies below the margin, FAILS if it lies above, PART if three seeds cannot tell."""
    low, high = gap.mean - gap.half_width, gap.mean + gap.half_width
    return HOLDS if high <= margin else FAILS if low > margin else PART


def beyond(*names: tuple[str, str]) -> str:
    """Of the arms whose best rate or scale was the largest of those that choose: what lies beyond, as far as it was
    tried. Empty if there is no such arm."""
    found = [_beyond(group, arm) for group, arm in dict.fromkeys(names)]
    return ". At the edge of what was tried: " + "; ".join(filter(None, found)) if any(found) else ""


def _beyond(group: str, arm: str) -> str:
    model = records.seeds(group, arm)[arms.SEEDS[0]]["config"]["model"]
    lr, gain = model["lr"], model["gain"]
    tried = {(one["config"]["model"]["lr"], one["config"]["model"]["gain"]): one
             for one in records.tries(group, arm).values()}  # fmt: skip
    edges = []
    if lr == arms.RATES[-1]:
        higher = {key: experiments.score(one) for key, one in tried.items() if key[0] > lr}
        if higher:
            (rate, scale), best = min(higher.items(), key=lambda one: one[1])
            how = f"{rate / lr:g} times the rate" + (f" and {scale / gain:g} times the start" if scale != gain else "")
            here = experiments.score(tried[lr, gain])
            last = rate == max(key[0] for key in higher) and best < here
            edges.append(f"{best:.3f} instead of {here:.3f} bits per byte at {how}" + last * ", a higher one untried")
        else:
            edges.append("a higher rate was not tried")
    if gain == arms.SCALES[-1]:
        gained = experiments.score(tried[lr, arms.SCALES[0]]) - experiments.score(tried[lr, gain])
        edges.append(f"the start twice as large gained {gained:.3f}, a larger one was not tried")
    return f"{arm} ({group}), " + ", ".join(edges) if edges else ""


def compared(better: tuple[str, str], other: tuple[str, str], words: str = "", strict: bool = False) -> Callable:
    """`better` is to be as good as `other`, within CLOSE; if strict, clearly better, and in part as good."""

    @wants("/".join(better), "/".join(other))
    def measured() -> Measured:
        gap, values = pair(better, other)
        values |= dict(more=100 * (_parameters(better) / _parameters(other) - 1), edge=beyond(better, other))
        size = ". p-Spin has {more:.0f}% more parameters" if values["more"] >= 1 else ""
        if strict:
            verdict = HOLDS if gap.clear and gap.mean < 0 else PART if within(gap) == HOLDS else FAILS
        else:
            verdict = within(gap)
        return Measured(verdict, BOTH + words + size + "{edge}", values)

    return measured


def _parameters(name: tuple[str, str]) -> int:
    return records.seeds(*name)[arms.SEEDS[0]]["summary"]["parameters"]


@wants("bytes-1/p-spin", "bytes-1/k0-same-size", "bytes-1/k0", "bytes-1/k1", "bytes-1/k2", "bytes-1/k10")
def recurrence() -> Measured:
    gap, values = pair(("bytes-1", "p-spin"), ("bytes-1", "k0-same-size"))
    one, _ = pair(("bytes-1", "p-spin"), ("bytes-1", "k1"))
    text = (
        "K = 5 against K = 0 of the same size: "
        + BOTH
        + "; against K = 1 {gap1:+.3f} ± {width1:.3f}. K = 0, 1, 2, 10: "
        "{k0:.3f}, {k1:.3f}, {k2:.3f}, {k10:.3f}, the first with fewer parameters"
    )
    values |= {name: records.mean(records.bits("bytes-1", name)) for name in ("k0", "k1", "k2", "k10")}
    values |= dict(gap1=one.mean, width1=one.half_width)
    better = [found.clear and found.mean < 0 for found in (gap, one)]
    return Measured(HOLDS if all(better) else PART if better[0] else FAILS, text, values)


def named(prefix: str, found: dict[str, float]) -> dict[str, float]:
    return {prefix + name.replace("-", "_"): x for name, x in found.items()}


NEAR, FAR = 8, 64  # tokens of context


def gained(group: str, arm: str) -> dict[int, float]:
    """By seed, what FAR tokens of context instead of NEAR are worth, in nats, on the same tokens."""
    contexts, nats = records.by_context(group, arm)
    near, far = (nats[:, contexts.index(length)] for length in (NEAR, FAR))
    return dict(zip(records.seeds(group, arm), (near - far).tolist(), strict=True))


def credit(alphabet: str, token: str, others: dict[str, str]) -> Callable:
    """What more context is worth. others: arm -> what it is; beside them both recipes at batch 64."""
    small, large = f"{alphabet}-1", f"{alphabet}-64"
    both = dict.fromkeys(("p-spin", "transformer"))
    names = [f"{small}/{name}" for name in both | others] + [f"{large}/{name}" for name in both]

    @wants(*names)
    def measured() -> Measured:
        values = {}
        for key, group, of in (("", small, both | others), ("l_", large, both)):
            for name in of:
                gain = records.difference(found := gained(group, name), dict.fromkeys(found, 0.0))
                values |= named(key, {name: gain.mean, f"{name}_width": gain.half_width})
        told = lambda name: f"{{{name}:.3f}} ± {{{name}_width:.3f}}"  # noqa: E731
        listed = ", ".join(f"{told(name.replace('-', '_'))} ({words})" for name, words in others.items())
        text = (
            f"from {{near}} {token}s of context to {{far}} the loss of the same {token}s falls by {told('p_spin')} "
            f"nats (p-Spin), {told('transformer')} (Transformer), {listed}. At batch 64: {told('l_p_spin')} (p-Spin) "
            f"and {told('l_transformer')} (Transformer)"
        )
        mine = values["p_spin"]
        verdict = FAILS if mine <= 0.01 else HOLDS if mine > 0.8 * values["transformer"] else PART
        return Measured(verdict, text, values | dict(near=NEAR, far=FAR))

    return measured


def cost() -> Measured:
    """Seconds and flops of a step, in units of the Transformer's. Flops are counted: no run is needed for them."""
    values = {}
    for group in ("bytes-1", "subwords-1"):
        other = records.seconds_a_step(group, "transformer")
        values |= {f"time_{group[0]}": records.seconds_a_step(group, "p-spin") / other}
        flops = [experiments.flops_a_step(arms.arm(group, name).cfg) for name in ("p-spin", "transformer")]
        values |= {f"flops_{group[0]}": flops[0] / flops[1]}
    values |= dict(
        k0=records.seconds_a_step("bytes-1", "k0-same-size") / records.seconds_a_step("bytes-1", "transformer")
    )
    text = (
        "a sequence of bytes costs p-Spin {time_b:.2f} times the time of a Transformer of the same size, on one thread "
        "of a CPU, and {flops_b:.2f} times its flops; of subwords {time_s:.2f} and {flops_s:.2f} times. Without the "
        "recurrence {k0:.2f} times the time (bytes)"
    )
    slower = [values["time_b"] > 1, values["time_s"] > 1]
    return Measured(FAILS if all(slower) else PART if any(slower) else HOLDS, text, values)


B1, S1, SWIGLU = "bytes-1", "subwords-1", "the same state space with a SwiGLU"
MEASURES = {
    "control": compared((S1, "p-spin"), (S1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "control-bytes": compared((B1, "p-spin"), (B1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "swiglu": compared((B1, "p-spin"), (B1, "swiglu"), ". p-Spin; the same state space with a SwiGLU"),
    "swiglu-subwords": compared((S1, "p-spin"), (S1, "swiglu"), ". p-Spin; the same state space with a SwiGLU"),
    "precision": compared((B1, "p-spin"), (B1, "full-precision"), ". Ternary; full-precision"),
    "mixer": compared(
        (B1, "p-spin"), (B1, "attention"), ". State space; attention, both with the p-Spin MLP", strict=True
    ),
    "recurrence": recurrence,
    "credit": credit("bytes", "byte", {"swiglu": SWIGLU, "attention": "attention with the p-Spin MLP"}),
    "credit-subwords": credit("subwords", "token", {"swiglu": SWIGLU}),
    "cost": cost,
}
