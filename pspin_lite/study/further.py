"""The groups of the second study that were written down last, in the order in which they are worth running.

ladder-    one repair at a time, in short runs
stack-     the repairs together, and what lies outside the attractor given to the controls, in full runs
data-      batch size against amount of text: 8,000 or 64,000 sequences at batch size 64, and 64,000 at batch size 1
rate-      the paper's diagonal at the paper's learning rate
gains-     one kind of matrix at a time starts at half, twice or four times its tuned scale
noise-     noise, tail and harm of each part of the network
moments-   Adam's second moment at batch sizes 8 and 64, and with two controls
context-   windows of 512 tokens
sizes-     a quarter of the parameters, and four times as many
continual- the speeches in the order of time, at equal rates and with subwords

Arms take over the tries of the network they vary. Those that change what is tuned have tries of their own.
"""

from __future__ import annotations

import dataclasses

from ..config import Config, PSpinConfig, TransformerConfig
from .arms import BATCH_64, SEEDS, Arm, in_bytes, in_subwords, in_time, variant

TANH_TANH = dict(mlp="spin", nonlinearity="tanh tanh")
SILU = dict(convolution="silu")
NORMS = dict(gate="spread", norm_qk=True, norm_state=True)
GAINS, TIMES = {"mixer": "mixer_gain", "couplings": "coupling_gain", "down": "down_gain"}, (0.5, 2.0, 4.0)
SIZES = {"quarter": (64, 2, 112, 242, 169, 2.0), "four": (256, 8, 448, 970, 676, 0.5)}
TWO = ("p-spin", "transformer")
LOOKS = dict(probe_every=1000)  # of a short run: how loud its branches are at the start, halfway and at the end


def groups() -> dict[str, tuple[Arm, ...]]:
    byte, subword = in_bytes()[0].cfg, in_subwords()[0].cfg
    return {
        "ladder-bytes": _ladder(byte),
        "stack-bytes": _stack(byte),
        "stack-subwords": _stack_subwords(subword),
        **_data(),
        "gains-bytes": _gains(byte),
        "noise-bytes": _noise(byte),
        **_moments(byte),
        "context-bytes": _context(byte),
        **_sizes(byte),
        **_continual(),
    }


def _mended(base: PSpinConfig, inner: int = 485, **changes: object) -> PSpinConfig:
    return variant(base, **TANH_TANH | SILU | dict(inner=inner) | changes)


def _ladder(base: PSpinConfig) -> tuple[Arm, ...]:
    """On the mended network, and on it with five steps of recurrence; at last on the paper's. All as large as the
    paper's."""
    k5 = dict(mlp="attractor", inner=base.inner)
    made: dict[str, tuple[str, Config, str | None]] = {
        "mended": ("the mended network", _mended(base), "repair-bytes/mended"),
        "output-gate": ("with a gate at the state's output", _mended(base, 442, output_gate=True), None),
        "norm-down": ("with a norm before W_down", _mended(base, 483, norm_down=True), None),
        "k5": ("with five steps", _mended(base, **k5), None),
        "wider": (
            "with five steps, gamma up to 1",
            _mended(base, **k5, gamma_range=1.0, gamma_start=0.05),
            "ladder-bytes/k5",
        ),
        "penalty": ("with five steps, a penalty on the Jacobian", _mended(base, **k5, penalty=1.0), "ladder-bytes/k5"),
        "p-spin-norms": ("the paper's network with long gates and norms", variant(base, **NORMS), None),
    }
    return tuple(_short(name, *rest) for name, rest in made.items())


def _short(name: str, says: str, cfg: Config, tuned_as: str | None, seeds: tuple = SEEDS, times: float = 1.0) -> Arm:
    return Arm(name, says, cfg.replace(steps=2000), tuned_as, LOOKS, seeds, True, times)


def _stack(base: PSpinConfig) -> tuple[Arm, ...]:
    stack = SILU | NORMS | dict(output_gate=True)
    attention = dict(mixer="attention", mlp="swiglu", output_gate=True, inner=484)
    return (
        Arm("stacked", "all repairs together, ternary", _mended(base, 441, **NORMS, output_gate=True, norm_down=True)),
        Arm("attention-stacked", "attention behind a convolution, with a gate", variant(base, **SILU, **attention)),
        Arm("swiglu-stacked", "that state space, SwiGLU", variant(base, **stack, mlp="swiglu", inner=442)),
        Arm("two-stage", "mended, a third of the rate in the second half", _mended(base, late_rate=1 / 3)),
    )


def _stack_subwords(base: PSpinConfig) -> tuple[Arm, ...]:
    cfg = _mended(base, 436, **NORMS, output_gate=True, norm_down=True)
    return (Arm("stacked", "all repairs together, ternary", cfg),)


def _data() -> dict[str, tuple[Arm, ...]]:
    """With subwords, and the shares of warm-up and cool-down of the paper's recipe at batch size 1. The fourth cell,
    batch size 1 with 8,000 sequences, is in subwords-1."""
    of = {one.name: one for one in in_subwords()}

    def made(batch: int, seeds: tuple, times: float = 1.0, **schedule: int) -> tuple[Arm, ...]:
        end = f"-times-{times:g}" if times != 1 else ""
        return tuple(
            dataclasses.replace(
                of[name],
                name=name + end,
                cfg=of[name].cfg.replace(batch=batch, **schedule),
                tuned_as=f"subwords-{batch}/{name}",
                seeds=seeds,
                times=times,
            )
            for name in TWO
        )

    few = dict(steps=125, warmup=8, cooldown=16)
    return {
        "data-64-subwords": (*made(64, SEEDS, **few), *made(64, (1,), 2.0, **few)),
        "data-64-subwords-long": made(64, (1,), steps=1000, warmup=62, cooldown=125),
        "data-1-subwords-long": made(1, (1,), steps=64_000, warmup=4000, cooldown=8000),
        "rate-1-subwords": made(1, (1,), 0.25)[:1],
        "rate-64-subwords": made(64, (1,), 0.25, steps=1000, warmup=100, cooldown=500)[1:],
    }


def _gains(base: PSpinConfig) -> tuple[Arm, ...]:
    return tuple(
        _short(f"{name}-{part}-{times:g}", f"{name}, {part} times {times:g}", cfg, tuned_as, (1,))
        for name, changes, tuned_as in (
            ("p-spin", {}, "bytes-1/p-spin"),
            ("tanh-tanh", TANH_TANH | dict(inner=486), "living-bytes/tanh-tanh"),
        )
        for part, gain in GAINS.items()
        for times in TIMES
        for cfg in [variant(base, **changes, **{gain: times})]
    )


def _noise(base: PSpinConfig) -> tuple[Arm, ...]:
    """A fixed point and the same layer without one, for either nonlinearity, and the Transformer."""
    of = {one.name: one for one in in_bytes()}
    made = {
        "p-spin": (base, "bytes-1/p-spin"),
        "tanh-sigmoid": (of["k0-same-size"].cfg, "bytes-1/k0-same-size"),
        "k5": (variant(base, nonlinearity="tanh tanh"), "steps-bytes/k5"),
        "tanh-tanh": (variant(base, **TANH_TANH, inner=486), "living-bytes/tanh-tanh"),
        "transformer": (of["transformer"].cfg, "bytes-1/transformer"),
    }
    settings = dict(probe_parts=True)
    return tuple(
        Arm(name, "as in the group of its tries", cfg.replace(steps=2000), tuned_as, settings, (1, 2))
        for name, (cfg, tuned_as) in made.items()
    )


def _moments(base: PSpinConfig) -> dict[str, tuple[Arm, ...]]:
    """At batch size 8 the two further seeds of three values of moments-8, and at 64 runs as long as its tries. As
    controls at batch size 1, attention in front of the attractor, and a fixed point that speaks."""
    of = {one.name: one for one in in_bytes()}
    at_8, at_64 = dict(batch=8, steps=250, warmup=62, cooldown=125), BATCH_64 | dict(steps=250)

    def made(name: str, beta2: float, source: str, seeds: tuple, times: float, schedule: dict) -> Arm:
        cfg = of[name].cfg.replace(betas=(0.9, beta2), **schedule)
        return Arm(f"{name}-beta2-{beta2:g}", of[name].says, cfg, f"{source}/{name}", {}, seeds, True, times)

    controls = {
        "attention": (of["attention"].cfg, "bytes-1/attention"),
        "k5": (variant(base, nonlinearity="tanh tanh"), "steps-bytes/k5"),
    }

    return {
        "moments-controls": tuple(
            _short(f"{name}-beta2-{beta2:g}", "a control", cfg.replace(betas=(0.9, beta2)), tuned_as)
            for beta2 in (0.95, 0.999)
            for name, (cfg, tuned_as) in controls.items()
        ),
        "moments-8-seeds": tuple(
            made(name, beta2, "bytes-1", (2, 3), 8**0.5, at_8)
            for beta2 in (0.95, round(0.999**8, 4), 0.999)
            for name in TWO
        ),
        "moments-64": tuple(
            made(name, beta2, "bytes-64", (1, 2), 1.0, at_64) for beta2 in (0.95, 0.999) for name in TWO
        ),
    }


def _context(base: PSpinConfig) -> tuple[Arm, ...]:
    """As many tokens as 8,000 steps with windows of 128."""
    made = {
        "mended": (_mended(base), "repair-bytes/mended"),
        "mended-norms": (_mended(base, **NORMS), "repair-bytes/mended-norms"),
        "transformer": ({one.name: one for one in in_bytes()}["transformer"].cfg, "bytes-1/transformer"),
    }
    return tuple(
        Arm(name, "with windows of 512", cfg.replace(context=512, steps=2000), tuned_as)
        for name, (cfg, tuned_as) in made.items()
    )


def _sizes(base: PSpinConfig) -> dict[str, tuple[Arm, ...]]:
    """Half and twice the width, at the rate tuned at the width between, and at the rate that 1 / width gives."""
    of = {one.name: one for one in in_bytes()}

    def members(size: str) -> dict[str, tuple[Config, str]]:
        width, heads, inner, mended, swiglu, _ = SIZES[size]
        paper = base.replace(width=width, heads=heads, inner=inner)
        baseline: TransformerConfig = of["transformer"].cfg  # type: ignore[assignment]
        baseline = baseline.replace(width=width, heads=heads, kv_heads=heads // 2, inner=swiglu)
        return {
            "p-spin": (paper, "bytes-1/p-spin"),
            "mended": (_mended(paper, mended), "repair-bytes/mended"),
            "transformer": (baseline, "bytes-1/transformer"),
        }

    def made(size: str, steps: int, rates: tuple[float, ...], seeds: tuple) -> tuple[Arm, ...]:
        return tuple(
            dataclasses.replace(
                _short(f"{name}-times-{times:g}", f"{name}, {size}", cfg, tuned_as, seeds, times),
                cfg=cfg.replace(steps=steps),
            )
            for name, (cfg, tuned_as) in members(size).items()
            for times in rates
        )

    return {
        "sizes-quarter": made("quarter", 2000, (1.0, 2.0), (1, 2)),
        "sizes-four": made("four", 2000, (1.0, 0.5), (1, 2)),
        "sizes-quarter-long": made("quarter", 8000, (1.0, 2.0), (1,)),
        "sizes-four-long": made("four", 8000, (0.5,), (1,)),
    }


def _continual() -> dict[str, tuple[Arm, ...]]:
    """p-Spin at the Transformer's rate, the Transformer at p-Spin's; and both with subwords, where the rates are the
    same already."""
    of, orders = {one.name: one for one in in_bytes()}, ("time", "mixed")
    slow, fast = (
        dataclasses.replace(of[name], cfg=of[name].cfg.replace(steps=4800), seeds=(1, 2), times=times)
        for name, times in (("p-spin", 0.5), ("transformer", 2.0))
    )
    subwords = tuple(
        dataclasses.replace(one, cfg=one.cfg.replace(steps=4800), seeds=(1, 2))
        for one in in_subwords()
        if one.name in TWO
    )
    return {
        "continual-rates": in_time("bytes-1", (slow, fast), 400, orders, final_tokens=4096),
        "continual-subwords": in_time("subwords-1", subwords, 400, orders, final_tokens=4096),
    }
