"""Claims that the study's runs decide. Where runs are missing, the verdict says so and names them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from .. import arms, continual, evaluation, records, runs, stability
from . import FAILS, HOLDS, PART, WAITS, Measured

STILL = 0.05  # nats: a raw loss that jumps by less would look smooth beside a fall of several nats
CLOSE = 0.02  # bits per byte: what counts as parity, about what three seeds of one arm spread over


def wants(*names: str) -> Callable:
    """Runs of these arms must be there; otherwise the claim waits."""

    def around(function: Callable) -> Callable:
        def measured() -> Measured:
            gone = records.missing(*names)
            if gone:
                return Measured(WAITS, "{count} runs to do: {names}", dict(count=len(gone), names=", ".join(gone)))
            return function()

        return measured

    return around


def _pair(one: tuple[str, str], other: tuple[str, str]) -> tuple[records.Difference, dict]:
    """Bits per byte of two arms, and their difference."""
    a, b = records.bits(*one), records.bits(*other)
    gap = records.difference(a, b)
    values = dict(a=records.mean(a), sa=records.spread(a), b=records.mean(b), sb=records.spread(b))
    return gap, values | dict(gap=gap.mean, width=gap.half_width)


BOTH = "{a:.3f} ± {sa:.3f} against {b:.3f} ± {sb:.3f} bits per byte; difference {gap:+.3f} ± {width:.3f} (95%, 3 seeds)"


def compared(better: tuple[str, str], other: tuple[str, str], words: str = "") -> Callable:
    """`better` is to be at least as good as `other`."""

    @wants("/".join(better), "/".join(other))
    def measured() -> Measured:
        gap, values = _pair(better, other)
        verdict = HOLDS if gap.mean < CLOSE else FAILS if gap.clear else PART
        return Measured(verdict, BOTH + words, values)

    return measured


@wants("bytes-1/p-spin", "bytes-1/k0-same-size", "bytes-1/k0", "bytes-1/k1", "bytes-1/k2", "bytes-1/k10")
def recurrence() -> Measured:
    gap, values = _pair(("bytes-1", "p-spin"), ("bytes-1", "k0-same-size"))
    text = (
        "K = 5 against K = 0 of the same size: " + BOTH + ". K = 0, 1, 2, 10: {k0:.3f}, {k1:.3f}, {k2:.3f}, {k10:.3f}"
    )
    values |= {name: records.mean(records.bits("bytes-1", name)) for name in ("k0", "k1", "k2", "k10")}
    return Measured(HOLDS if gap.clear and gap.mean < 0 else FAILS, text, values)


COMPARED = ("p-spin", "transformer", "swiglu", "k0-same-size", "full-precision")


def _steadiness(name: str) -> dict[str, float]:
    """Means over seeds."""
    found = [stability.measures(record) for record in records.seeds("bytes-1", name).values()]
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


@wants(*(f"bytes-1/{name}" for name in COMPARED))
def smooth() -> Measured:
    """Smooth and monotonic as they stand: every step, every validation."""
    curves = [records.curve(record)[1] for record in records.seeds("bytes-1", "p-spin").values()]
    mine, other = _steadiness("p-spin"), _steadiness("transformer")
    values = dict(
        raw=mine["raw jitter"],
        other=other["raw jitter"],
        rises=100 * mine["rises"],
        points=sum(len(bits) - 1 for bits in curves),
        up=sum(int((np.diff(bits) > 0).sum()) for bits in curves),
    )
    text = (
        "the raw loss of p-Spin at batch 1 jumps by {raw:.2f} nats (standard deviation about its running mean; the "
        "Transformer's by {other:.2f}) and rises in {rises:.0f}% of the steps; {up} of {points} validations are worse "
        "than the one before"
    )
    verdict = FAILS if values["up"] else PART if values["raw"] > STILL else HOLDS
    return Measured(verdict, text, values)


@wants(*(f"bytes-1/{name}" for name in COMPARED))
def damped() -> Measured:
    """Jitter that is the model's own, after the text's difficulty is taken away."""
    runs = {seed: {name: records.seeds("bytes-1", name)[seed] for name in COMPARED} for seed in arms.SEEDS}
    own = [stability.own_jitter(found) for found in runs.values()]
    means = {name: float(np.mean([one[name] for one in own])) for name in COMPARED}
    scale = {name: _steadiness(name)["noise scale"] for name in COMPARED}
    text = (
        "own jitter in nats (same sequences for all, the common part removed): p-Spin {p_spin:.3f}, same-size K = 0 "
        "{k0_same_size:.3f}, full-precision {full_precision:.3f}, SwiGLU {swiglu:.3f}, Transformer {transformer:.3f}. "
        "Gradient noise scale in sequences: {n_p_spin:.0f}, {n_k0_same_size:.0f}, {n_full_precision:.0f}, "
        "{n_swiglu:.0f}, {n_transformer:.0f}"
    )
    values = {name.replace("-", "_"): x for name, x in means.items()}
    values |= {f"n_{name.replace('-', '_')}": x for name, x in scale.items()}
    least = min(x for name, x in means.items() if name != "p-spin")
    calm = means["p-spin"] < 0.9 * least and scale["p-spin"] < 0.9 * min(scale[n] for n in scale if n != "p-spin")
    some = means["p-spin"] < means["k0-same-size"] * 0.9 or scale["p-spin"] < scale["k0-same-size"] * 0.9
    return Measured(HOLDS if calm else PART if some else FAILS, text, values)


@wants(*(f"bytes-1/{name}" for name in COMPARED))
def gradients() -> Measured:
    """Catastrophic gradients, and steps that do harm."""
    values = {}
    for name in COMPARED:
        found = _steadiness(name)
        values |= {
            f"t_{name.replace('-', '_')}": found["tail"],
            f"w_{name.replace('-', '_')}": 100 * found["worse steps"],
        }
    text = (
        "99th percentile of the gradient norm over its median: p-Spin {t_p_spin:.2f}, full-precision weights "
        "{t_full_precision:.2f}, SwiGLU {t_swiglu:.2f}, Transformer {t_transformer:.2f}. Steps that make a held-out "
        "loss worse: {w_p_spin:.0f}%, {w_full_precision:.0f}%, {w_swiglu:.0f}%, {w_transformer:.0f}%"
    )
    rest = [name.replace("-", "_") for name in COMPARED[1:]]
    best = values["t_p_spin"] < 0.9 * min(values[f"t_{name}"] for name in rest)
    some = values["t_p_spin"] < 0.9 * values["t_full_precision"]
    return Measured(HOLDS if best else PART if some else FAILS, text, values)


def exact_trained() -> Measured:
    """In the model that ships, which was trained with the paper's recipe at T = 512."""
    run = runs.trained("byte-lite")
    windows = torch.cat([tokens for tokens, _ in run.data()[records.SPLIT].windows(4)])
    found = evaluation.attractors(run.model, windows, sample=256)
    errors = found["gradient_error"]
    text = (
        "in the trained model, layer by layer, the gradient at K = 5 is off by {e0:.4%}, {e1:.3%}, {e2:.2%} and "
        "{e3:.0%}, with spectral radii {r0:.2f}, {r1:.2f}, {r2:.2f} and {r3:.2f}"
    )
    values = {f"e{i}": error for i, error in enumerate(errors)} | {f"r{i}": r for i, r in enumerate(found["radius"])}
    return Measured(HOLDS if max(errors) < 1e-3 else PART if min(errors) < 1e-3 else FAILS, text, values)


def contracts() -> Measured:
    shipped = [one["radius"] for one in runs.trained("byte-lite").metrics("attractor")]
    study = [one["radius"] for record in records.seeds("bytes-1", "p-spin").values() for one in record["attractor"]]
    over = sum(max(row) >= 1 for row in shipped + study)
    text = (
        "spectral radius in training: at most {largest:.2f}, and 1 or more in {over} of {count} validations (of "
        "{trained} networks). It starts at {start:.2f}; training drives it up, towards the border of contraction"
    )
    values = dict(largest=max(map(max, shipped + study)), count=len(shipped + study), over=over)
    values |= dict(trained=1 + len(records.seeds("bytes-1", "p-spin")), start=max(shipped[0]))
    return Measured(HOLDS if not over else PART if over < len(shipped + study) / 2 else FAILS, text, values)


@wants("bytes-1/p-spin", "bytes-1/transformer")
def credit() -> Measured:
    """What more context is worth: the same bytes, predicted from 8 and from 64 bytes before them."""
    gain = {}
    for name in ("p-spin", "transformer"):
        contexts, nats = records.by_context("bytes-1", name)
        gain[name] = nats.mean(0)[contexts.index(8)] - nats.mean(0)[contexts.index(64)]
    text = (
        "from 8 bytes of context to 64 the loss of the same bytes falls by {p_spin:.3f} nats (p-Spin), "
        "{transformer:.3f} (Transformer)"
    )
    values = dict(p_spin=float(gain["p-spin"]), transformer=float(gain["transformer"]))
    verdict = HOLDS if values["p_spin"] > 0.8 * values["transformer"] else PART if values["p_spin"] > 0.01 else FAILS
    return Measured(verdict, text, values)


@wants("bytes-1/p-spin", "bytes-1/transformer", "bytes-1/k0-same-size")
def cost() -> Measured:
    """CPU seconds of a step, each arm's mean, in units of the Transformer's."""
    seconds = {
        name: np.mean(
            [r["summary"]["cpu_seconds"] / r["summary"]["steps"] for r in records.seeds("bytes-1", name).values()]
        )
        for name in ("p-spin", "transformer", "k0-same-size")
    }
    flops = {name: records.seeds("bytes-1", name)[1]["summary"]["flops_a_step"] for name in seconds}
    text = (
        "a sequence costs p-Spin {time:.1f} times the CPU time of a Transformer of the same size and {flops:.1f} times "
        "its flops, on one thread; without the recurrence {k0:.1f} times the time"
    )
    values = dict(
        time=float(seconds["p-spin"] / seconds["transformer"]),
        flops=flops["p-spin"] / flops["transformer"],
        k0=float(seconds["k0-same-size"] / seconds["transformer"]),
    )
    return Measured(FAILS if values["time"] > 1 else HOLDS, text, values)


IN_TIME = [f"{continual.GROUP}/{model}-time" for model in continual.models()]


@wants(*IN_TIME, *(name.replace("-time", "-replay") for name in IN_TIME))
def retention() -> Measured:
    """How much worse old speeches have become since they were known best."""
    lost = {model: continual.forgotten(model, "time") for model in continual.models()}
    mine = lost.pop("p-spin")
    gaps = [records.difference(mine, other) for other in lost.values()]
    values = {f"f_{model.replace('-', '_')}": records.mean(x) for model, x in lost.items()}
    values |= dict(mine=records.mean(mine), spread=records.spread(mine))
    values |= dict(replayed=records.mean(continual.forgotten("p-spin", "replay")))
    values |= dict(gap=gaps[0].mean, width=gaps[0].half_width)
    text = (
        "after 236 years in order, speeches of earlier eras cost {mine:.3f} ± {spread:.3f} bits per byte more than "
        "when they were known best; same-size K = 0 {f_k0_same_size:.3f}, SwiGLU {f_swiglu:.3f}, Transformer "
        "{f_transformer:.3f} (p-Spin against it {gap:+.3f} ± {width:.3f}). With every other sequence a replayed one: "
        "{replayed:.3f}"
    )
    calm = all(gap.clear and gap.mean < 0 for gap in gaps)
    kept = values["mine"] < CLOSE
    return Measured(HOLDS if kept or calm else PART if gaps[0].clear and gaps[0].mean < 0 else FAILS, text, values)


@wants(*IN_TIME)
def followed() -> Measured:
    """Every sequence costs what it costs before it is learned: the text, transmitted once."""
    cost = {model: continual.followed(model) for model in continual.models()}
    gap = records.difference(cost["p-spin"], cost["transformer"])
    values = {model.replace("-", "_"): records.mean(x) for model, x in cost.items()}
    text = (
        "online bits per byte over 236 years in order: p-Spin {p_spin:.3f}, same-size K = 0 {k0_same_size:.3f}, SwiGLU "
        "{swiglu:.3f}, Transformer {transformer:.3f}; p-Spin against the Transformer {gap:+.3f} ± {width:.3f}"
    )
    values |= dict(gap=gap.mean, width=gap.half_width)
    return Measured(HOLDS if gap.mean < CLOSE else FAILS if gap.clear else PART, text, values)


B1, B64, S1, S64 = "bytes-1", "bytes-64", "subwords-1", "subwords-64"
MEASURES = {
    "eight-times": compared((S1, "p-spin"), (S64, "transformer"), ". p-Spin: 8,000 sequences; Transformer: 64,000"),
    "eight-times-bytes": compared(
        (B1, "p-spin"), (B64, "transformer"), ". p-Spin: 8,000 sequences; Transformer: 64,000"
    ),
    "control": compared((S1, "p-spin"), (S1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "control-bytes": compared((B1, "p-spin"), (B1, "transformer"), ". Both: batch 1, 8,000 steps"),
    "large-batch": compared((B1, "p-spin"), (B64, "p-spin"), ". Batch 1, 8,000 sequences; batch 64, 64,000"),
    "swiglu": compared((B1, "p-spin"), (B1, "swiglu"), ". p-Spin; the same state space with a SwiGLU"),
    "precision": compared((B1, "p-spin"), (B1, "full-precision"), ". Ternary; full-precision"),
    "mixer": compared((B1, "p-spin"), (B1, "attention"), ". State space; attention, both with the p-Spin MLP"),
    "recurrence": recurrence,
    "smooth": smooth,
    "damped": damped,
    "gradients": gradients,
    "exact-trained": exact_trained,
    "contracts": contracts,
    "credit": credit,
    "cost": cost,
    "retention": retention,
    "followed": followed,
}
