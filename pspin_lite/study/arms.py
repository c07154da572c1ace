"""What the study compares: networks as configurations of about a million parameters, and how each is trained.

arm     one of the networks that a group compares, with its data and its schedule, as in a clinical trial
try     a short run of an arm with one learning rate and one initial scale; the best one chooses both
seed    a full run of an arm with what was chosen

The groups are in networks.py, those that came last in further.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..config import AblationConfig, Config, PSpinConfig, TransformerConfig, VariantConfig, preset

RATES, HIGHEST = (4e-4, 8e-4, 1.6e-3, 3.2e-3), 2.56e-2  # the paper's is 8e-4
SCALES = (1.0, 2.0)  # gain and ternary_gain: matrices start at scale / sqrt(fan-in)
SGD_RATES = (0.1, 0.3, 1.0, 3.0)
CONTEXT = 128
TRY_SEED, SEEDS = 1337, (1, 2, 3)
BATCH_64 = dict(batch=64, steps=1000, warmup=100, cooldown=500)  # as in the preset transformer-paper
BATCH_1 = dict(batch=1, steps=8000, warmup=500, cooldown=1000)


@dataclass(frozen=True)
class Arm:
    name: str
    says: str  # what it is, in a few words
    cfg: Config
    tuned_as: str | None = None  # GROUP/ARM whose tries it takes over; None: it has its own; "": neither, one run as is
    settings: dict = field(default_factory=dict)  # of training, besides those of every full run
    seeds: tuple[int, ...] = SEEDS
    short: bool = False  # its seeds are trained and recorded as tries are, without curves, and come first of its group
    times: float = 1.0  # the tuned rate


def ablation(base: PSpinConfig, **changes: object) -> AblationConfig:
    return AblationConfig(**{f.name: getattr(base, f.name) for f in dataclasses.fields(base)} | changes)


def in_bytes() -> tuple[Arm, ...]:
    base = preset("byte-lite").replace(context=CONTEXT)
    transformer = TransformerConfig(
        "byte-transformer",
        **dict(vocab=256, context=CONTEXT, width=128, layers=6, heads=4, inner=338, kv_heads=2, head_width=32),
    )
    made = {
        "p-spin": ("the paper's network, K = 5", base),
        "transformer": ("the Transformer", transformer),
        "swiglu": ("state space, full-precision SwiGLU", ablation(base, mlp="swiglu", inner=486)),
        "k0": ("p-Spin without recurrence (K = 0), 36% fewer parameters", ablation(base, mlp="spin")),
        "k0-same-size": ("p-Spin without recurrence, made wider", ablation(base, mlp="spin", inner=486)),
        "full-precision": ("p-Spin with full-precision weights", ablation(base, ternary=False)),
        "attention": ("attention with the p-Spin MLP", ablation(base, mixer="attention", inner=236)),
        "long-gate": ("p-Spin with a gate that starts by keeping 98%", ablation(base, mixer="long state space")),
        "k1": ("p-Spin, K = 1", base.replace(micro_steps=1)),
        "k2": ("p-Spin, K = 2", base.replace(micro_steps=2)),
        "k10": ("p-Spin, K = 10", base.replace(micro_steps=10)),
    }
    return tuple(Arm(name, says, cfg.replace(**BATCH_1)) for name, (says, cfg) in made.items())


def variant(base: PSpinConfig, **changes: object) -> VariantConfig:
    return VariantConfig(**{f.name: getattr(base, f.name) for f in dataclasses.fields(base)} | changes)


def in_subwords() -> tuple[Arm, ...]:
    base = preset("subword-lite").replace(context=CONTEXT, **BATCH_1)
    return (
        Arm("p-spin", "the paper's network, K = 5", base),
        Arm("transformer", "the Transformer", preset("transformer-lite").replace(context=CONTEXT, **BATCH_1)),
        Arm("swiglu", "state space, full-precision SwiGLU", ablation(base, mlp="swiglu", inner=464)),
    )


IN_TIME = {"time": "in the order given", "mixed": "in a random order", "replay": "in the order given, half replayed"}


def in_time(
    group: str, members: tuple[Arm, ...], validate_every: int, orders: Iterable[str] = IN_TIME, **settings: object
) -> tuple[Arm, ...]:
    """236 years of speeches in the order they were given, once, at batch size 1 and a constant learning rate; the same
    text without its history; and in its order with a replayed sequence after every new one (so half as much new)."""
    return tuple(
        dataclasses.replace(
            arm,
            name=f"{arm.name}-{order}",
            says=f"{arm.says}, {IN_TIME[order]}",
            cfg=arm.cfg.replace(cooldown=0),
            tuned_as=f"{group}/{arm.name}",
            settings=dict(corpus="sotu-eras", order=order, validate_every=validate_every, probe_every=None) | settings,
        )
        for order in orders
        for arm in members
    )
