"""The arms of the study: every network that is compared, at about a million parameters, and how each was tuned.

arm     one of the networks that a group compares, with its data and its schedule, as in a clinical trial
try     a short run of an arm with one learning rate and one initial scale; the best one chooses both
seed    a full run of an arm with what was chosen

Four groups: bytes or subwords, at batch size 1 for 8,000 steps (the paper's recipe for p-Spin) or at batch size 64 for
1,000 steps (its recipe for the Transformer). Bytes at batch size 1 have all the arms, subwords p-Spin, the Transformer
and, at batch size 1, the SwiGLU. Within a group all arms have the same data in the same order, the same
schedule, the same validation and, but for "k0" and the subwords' Transformer (3% fewer), the same number of parameters
within a percent. The presets' contexts are cut to 128 tokens: it is what makes the whole study fit into a day on two
cores (at batch size 1 that is a million bytes, at 64 eight million). The group "continual" is that of notebook 13;
"presets" are runs of presets as they are, for what README says to expect (that of byte-lite ships with the package).
"smoke" and "smoke-continual" take seconds: they show that the machinery works, and a test repeats them.

Every arm gets the same five tries on one seed, in runs a quarter as long: four learning rates, then the best of them
with matrices that start twice as large. The best try by mean bits per byte over both validation splits is then fixed,
and three other seeds are run in full. Where the highest rate was the best, tries go on beyond it, to see what was cut
off; they choose nothing, and stand beside the verdicts that they might change.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from .. import _checks as checks
from ..config import AblationConfig, Config, PSpinConfig, TransformerConfig, preset

RATES, HIGHEST = (4e-4, 8e-4, 1.6e-3, 3.2e-3), 2.56e-2  # the paper's is 8e-4
SCALES = (1.0, 2.0)  # gain and ternary_gain: matrices start at scale / sqrt(fan-in)
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


def _ablation(base: PSpinConfig, **changes: object) -> AblationConfig:
    return AblationConfig(**{f.name: getattr(base, f.name) for f in dataclasses.fields(base)} | changes)


def _bytes() -> tuple[Arm, ...]:
    base = preset("byte-lite").replace(context=CONTEXT)
    transformer = TransformerConfig(
        "byte-transformer",
        **dict(vocab=256, context=CONTEXT, width=128, layers=6, heads=4, inner=338, kv_heads=2, head_width=32),
    )
    made = {
        "p-spin": ("the paper's network, K = 5", base),
        "transformer": ("the Transformer", transformer),
        "swiglu": ("state space, full-precision SwiGLU", _ablation(base, mlp="swiglu", inner=486)),
        "k0": ("p-Spin without recurrence (K = 0), 36% fewer parameters", _ablation(base, mlp="spin")),
        "k0-same-size": ("p-Spin without recurrence, made wider", _ablation(base, mlp="spin", inner=486)),
        "full-precision": ("p-Spin with full-precision weights", _ablation(base, ternary=False)),
        "attention": ("attention with the p-Spin MLP", _ablation(base, mixer="attention", inner=236)),
        "long-gate": ("p-Spin with a gate that starts by keeping 98%", _ablation(base, mixer="long state space")),
        "k1": ("p-Spin, K = 1", base.replace(micro_steps=1)),
        "k2": ("p-Spin, K = 2", base.replace(micro_steps=2)),
        "k10": ("p-Spin, K = 10", base.replace(micro_steps=10)),
    }
    return tuple(Arm(name, says, cfg.replace(**BATCH_1)) for name, (says, cfg) in made.items())


IN_TIME = {"time": "in the order given", "mixed": "in a random order", "replay": "in the order given, half replayed"}


def _in_time(group: str, members: tuple[Arm, ...], validate_every: int, **settings: object) -> tuple[Arm, ...]:
    """236 years of speeches in the order they were given, once, at batch size 1 and a constant learning rate; the same
    text without its history; and in its order with a replayed sequence after every new one (so half as much new)."""
    return tuple(
        Arm(
            f"{arm.name}-{order}",
            f"{arm.says}, {says}",
            arm.cfg.replace(cooldown=0),
            f"{group}/{arm.name}",
            dict(corpus="sotu-eras", order=order, validate_every=validate_every, probe_every=None) | settings,
        )
        for order, says in IN_TIME.items()
        for arm in members
    )


def _at_batch_64(arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
    return tuple(dataclasses.replace(arm, cfg=arm.cfg.replace(**BATCH_64)) for arm in arms)


def _groups() -> dict[str, tuple[Arm, ...]]:
    subwords = (
        Arm("p-spin", "the paper's network, K = 5", preset("subword-lite").replace(context=CONTEXT, **BATCH_1)),
        Arm("transformer", "the Transformer", preset("transformer-lite").replace(context=CONTEXT, **BATCH_1)),
    )
    no_attractor = _ablation(subwords[0].cfg, mlp="swiglu", inner=464)
    base = preset("byte-smoke").replace(steps=60, seed=1)
    shape = dict(vocab=256, context=64, width=32, layers=2, heads=2, inner=64, kv_heads=1, head_width=16, steps=60)
    smoke = (
        Arm("p-spin", "byte-smoke", base),
        Arm("transformer", "a Transformer of that size", TransformerConfig("byte-transformer-smoke", **shape)),
    )
    at_1 = {arm.name: dataclasses.replace(arm, cfg=arm.cfg.replace(steps=4800)) for arm in _bytes()}
    learners = tuple(at_1[name] for name in ("p-spin", "transformer", "swiglu", "k0-same-size"))
    as_is = ("subword-lite", "transformer-lite", "byte-smoke", "subword-smoke", "transformer-smoke")
    plain = tuple(Arm(name, "the preset as it is", preset(name), "") for name in as_is)
    return {
        "smoke": smoke,
        "smoke-continual": _in_time("smoke", smoke[:1], 12),
        "bytes-1": _bytes(),
        "subwords-1": (*subwords, Arm("swiglu", "state space, full-precision SwiGLU", no_attractor)),
        "bytes-64": _at_batch_64(_bytes()[:2]),
        "subwords-64": _at_batch_64(subwords),
        "continual": _in_time("bytes-1", learners, 400, final_tokens=4096),
        "presets": plain,
    }


GROUPS = _groups()


def arm(group: str, name: str) -> Arm:
    arms = {one.name: one for one in GROUPS[checks.choice("group", group, GROUPS)]}
    return arms[checks.choice("arm", name, arms)]


def attempt(cfg: Config, lr: float, scale: float) -> Config:
    """A try: a quarter of the run."""
    return tuned(cfg, lr, scale).replace(steps=cfg.steps // 4, seed=TRY_SEED)


def tuned(cfg: Config, lr: float, scale: float) -> Config:
    scales = dict(gain=scale, ternary_gain=scale) if isinstance(cfg, PSpinConfig) else dict(gain=scale)
    return cfg.replace(lr=lr, **scales)
