"""Which networks the study compares, as configurations of about a million parameters, and how each was tuned.
What an arm, a try and a seed are is in arms.py.

Four groups: bytes or subwords, at batch size 1 for 8,000 steps (the paper's recipe for p-Spin) or at batch size 64 for
1,000 steps (its recipe for the Transformer). Bytes at batch size 1 have all the arms, subwords p-Spin, the Transformer
and, at batch size 1, the SwiGLU. Within a group all arms have the same data in the same order, the same
schedule, the same validation and, but for "k0" and the subwords' Transformer (3% fewer), the same number of parameters
within a percent. The presets' contexts are cut to 128 tokens: it is what makes the whole study fit into a day on two
cores (at batch size 1 that is a million bytes, at 64 eight million). The group "continual" is that of notebook 14;
"presets" are runs of presets as they are, for what README says to expect (that of byte-lite ships with the package).
"smoke" and "smoke-continual" take seconds: they show that the machinery works, and a test repeats them. The groups
"living-", "steps-" and "repair-" are those of the second study (docs/second_study.md), with bytes and with subwords:
what brings the MLP to life, what its steps are worth then, and what else has to be mended. "moments", its relatives and
"sgd" ask what makes batch size 1 stable, in runs as short as tries. further.py has the groups that were written down
last.

Every arm gets the same five tries on one seed, in runs a quarter as long: four learning rates, then the best of them
with matrices that start twice as large. The best try by mean bits per byte over both validation splits is then fixed,
and three other seeds are run in full. Where the highest rate was the best, tries go on beyond it, to see what was cut
off; they choose nothing, and stand beside the verdicts that they might change.
"""

from __future__ import annotations

import dataclasses

from .. import _checks as checks
from ..config import Config, PSpinConfig, TransformerConfig, preset
from . import further
from .arms import BATCH_1 as BATCH_1
from .arms import BATCH_64, SEEDS, TRY_SEED, Arm, in_bytes, in_subwords, in_time, variant
from .arms import CONTEXT as CONTEXT
from .arms import HIGHEST as HIGHEST
from .arms import IN_TIME as IN_TIME
from .arms import RATES as RATES
from .arms import SCALES as SCALES
from .arms import SGD_RATES as SGD_RATES


def _living(group: str, base: PSpinConfig, inner: int) -> tuple[Arm, ...]:
    """The MLP left out, and with each of four nonlinearities; `inner` is its width without recurrence, at which a
    network has as many parameters as `base`. Arms of the first study are run again with its tries, for what records of
    the second keep in addition."""
    first = {"p-spin": "p-spin", "tanh-sigmoid": "k0-same-size", "linear-silu-full": "swiglu"}
    had = {one.name for one in (in_bytes() if group == "bytes-1" else in_subwords())}
    made: dict[str, tuple[str, Config]] = {
        "no-mlp": ("the state space alone, without any MLP", variant(base, mlp="none")),
        "p-spin": ("the paper's network, K = 5", base),
    }
    for nonlinearity in ("tanh tanh", "linear silu", "tanh sigmoid", "tanh silu"):
        for ternary in (True, False):
            u, a = ({"linear": "u", "tanh": "tanh(u)"}[nonlinearity.split()[0]], nonlinearity.split()[1])
            says = f"{u} {a}(a), {'ternary' if ternary else 'in full precision'}, without recurrence"
            cfg = variant(base, mlp="spin", nonlinearity=nonlinearity, ternary=ternary, inner=inner)
            made[nonlinearity.replace(" ", "-") + ("" if ternary else "-full")] = (says, cfg)
    return tuple(
        Arm(name, says, cfg, f"{group}/{first[name]}" if first.get(name) in had else None)
        for name, (says, cfg) in made.items()
    )


def _steps(group: str, base: PSpinConfig, wide: int) -> tuple[Arm, ...]:
    """The recurrence on a layer that speaks, tanh(u) tanh(a): with K steps at the size of `base`, and without any, as
    narrow as it is with them, or so wide that it does as much arithmetic as K = 5."""
    living = dict(nonlinearity="tanh tanh")
    made = {
        "k5": ("tanh(u) tanh(a), K = 5", variant(base, **living)),
        "k1": ("tanh(u) tanh(a), K = 1", variant(base, **living, micro_steps=1)),
        "narrow": ("tanh(u) tanh(a), as wide as with steps, without them", variant(base, **living, mlp="spin")),
        "wide": ("tanh(u) tanh(a), the arithmetic of K = 5", variant(base, **living, mlp="spin", inner=wide)),
        "k5-unrolled": ("tanh(u) tanh(a), K = 5, autograd through them", variant(base, **living, implicit=False)),
        "k2": ("tanh(u) tanh(a), K = 2", variant(base, **living, micro_steps=2)),
    }
    return tuple(
        Arm(name, says, cfg, f"{group}/k5" if name == "k5-unrolled" else None) for name, (says, cfg) in made.items()
    )


def _repair(base: PSpinConfig, inner: int, attention_inner: int) -> tuple[Arm, ...]:
    """One change at a time on p-Spin, then together, and what lies outside the attractor given to the others too."""
    tanh_tanh, silu = dict(mlp="spin", nonlinearity="tanh tanh"), dict(convolution="silu")
    made = {
        "mended": ("tanh(u) tanh(a), ternary, behind a convolution", variant(base, **tanh_tanh, **silu, inner=inner)),
        "convolution": ("the paper's network behind a convolution", variant(base, **silu)),
        "swiglu-convolution": (
            "state space, full-precision SwiGLU, behind a convolution",
            variant(base, mlp="swiglu", **silu, inner=inner),
        ),
        "attention-convolution": (
            "attention, full-precision SwiGLU, behind a convolution",
            variant(base, mixer="attention", mlp="swiglu", **silu, inner=attention_inner),
        ),
        "mended-norms": (
            "tanh(u) tanh(a), ternary, behind a convolution; long gates, norms on q, k and the state",
            variant(base, **tanh_tanh, **silu, inner=inner, gate="spread", norm_qk=True, norm_state=True),
        ),
        "attention-swiglu": (
            "attention, full-precision SwiGLU",
            variant(base, mixer="attention", mlp="swiglu", inner=attention_inner),
        ),
    }
    return tuple(Arm(name, says, cfg) for name, (says, cfg) in made.items())


def _at_batch_64(arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
    return tuple(dataclasses.replace(arm, cfg=arm.cfg.replace(**BATCH_64)) for arm in arms)


def _groups() -> dict[str, tuple[Arm, ...]]:
    bytes_1, subwords_1 = in_bytes(), in_subwords()
    base = preset("byte-smoke").replace(steps=60, seed=1)
    shape = dict(vocab=256, context=64, width=32, layers=2, heads=2, inner=64, kv_heads=1, head_width=16, steps=60)
    smoke = (
        Arm("p-spin", "byte-smoke", base),
        Arm("transformer", "a Transformer of that size", TransformerConfig("byte-transformer-smoke", **shape)),
    )
    at_1 = {arm.name: dataclasses.replace(arm, cfg=arm.cfg.replace(steps=4800)) for arm in bytes_1}
    learners = tuple(at_1[name] for name in ("p-spin", "transformer", "swiglu", "k0-same-size"))
    as_is = ("subword-lite", "transformer-lite", "byte-smoke", "subword-smoke", "transformer-smoke")
    plain = tuple(Arm(name, "the preset as it is", preset(name), "") for name in as_is)
    return {
        "smoke": smoke,
        "smoke-continual": in_time("smoke", smoke[:1], 12),
        "bytes-1": bytes_1,
        "subwords-1": subwords_1,
        "bytes-64": _at_batch_64(bytes_1[:2]),
        "subwords-64": _at_batch_64(subwords_1[:2]),
        "continual": in_time("bytes-1", learners, 400, final_tokens=4096),
        "presets": plain,
    }


def _second_groups() -> dict[str, tuple[Arm, ...]]:
    byte, subword = in_bytes()[0].cfg, in_subwords()[0].cfg
    return {
        "living-bytes": _living("bytes-1", byte, 486),
        "living-subwords": _living("subwords-1", subword, 464),
        "steps-bytes": _steps("steps-bytes", byte, 1182),
        "steps-subwords": _steps("steps-subwords", subword, 1228),
        "repair-bytes": _repair(byte, 485, 527),
        "repair-subwords": _repair(subword, 462, 486),
    }


def _moments() -> dict[str, tuple[Arm, ...]]:
    """Adam's second moment, and SGD without momentum, in short runs with bytes: four networks, each at the rate and
    scale that its tries chose with a beta2 of 0.999."""
    tuned_as = {
        "p-spin": "bytes-1/p-spin",
        "transformer": "bytes-1/transformer",
        "tanh-tanh": "living-bytes/tanh-tanh",
        "swiglu": "bytes-1/swiglu",
    }
    of = {one.name: one for one in (*_living("bytes-1", in_bytes()[0].cfg, 486), *in_bytes())}

    def made(network: str, label: str, beta2: float = 0.999, times: float = 1.0, seeds: tuple = (1,), **changes) -> Arm:
        cfg = of[network].cfg
        cfg = cfg.replace(**dict(betas=(cfg.betas[0], beta2), steps=2000) | changes)
        return Arm(f"{network}-{label}", of[network].says, cfg, tuned_as[network], {}, seeds, True, times)

    two, others = ("p-spin", "transformer"), ("tanh-tanh", "swiglu")
    order = [(names, betas) for betas in ((0.95, 0.99, 0.999), (0.9, 0.9999)) for names in (two, others)]
    # As many sequences; the root of the batch times the rate (arXiv 2205.10287)
    at_8, root = dict(batch=8, steps=250, warmup=62, cooldown=125), 8**0.5
    return {
        "moments": tuple(
            made(name, f"beta2-{beta2:g}", beta2, seeds=SEEDS)
            for names, some in order
            for beta2 in some
            for name in names
        ),
        "moments-rates": tuple(
            made(name, f"beta2-{beta2:g}-times-{times:g}", beta2, times)
            for names in (two, others)
            for beta2 in (0.95, 0.999)
            for times in ((0.25, 0.5, 2, 4) if names == two and beta2 == 0.95 else (0.25, 4))
            for name in names
        ),
        "moments-8": tuple(
            made(name, f"beta2-{beta2:g}", beta2, root, **at_8)
            for beta2 in (0.95, 0.999, round(0.95**8, 4), round(0.999**8, 4))  # 8 batches forget as 8 steps do
            for name in two
        ),
        "sgd": tuple(
            made(name, f"rate-{lr:g}", optimizer="sgd", lr=lr, weight_decay=0.0)
            for lr in SGD_RATES
            for name in tuned_as
        ),
    }


FIRST, SECOND = _groups(), _second_groups() | _moments() | further.groups()  # of the two studies
GROUPS = FIRST | SECOND


def arm(group: str, name: str) -> Arm:
    arms = {one.name: one for one in GROUPS[checks.choice("group", group, GROUPS)]}
    return arms[checks.choice("arm", name, arms)]


def attempt(cfg: Config, lr: float, scale: float) -> Config:
    """A try: a quarter of the run."""
    return tuned(cfg, lr, scale).replace(steps=cfg.steps // 4, seed=TRY_SEED)


def run(arm: Arm, lr: float, scale: float, seed: int) -> Config:
    """With what was tuned. SGD keeps a rate of its own: Adam's says nothing about it."""
    lr = arm.cfg.lr if arm.cfg.optimizer == "sgd" else arm.times * lr
    return tuned(arm.cfg, lr, scale).replace(seed=seed)


def tuned(cfg: Config, lr: float, scale: float) -> Config:
    scales = dict(gain=scale, ternary_gain=scale) if isinstance(cfg, PSpinConfig) else dict(gain=scale)
    return cfg.replace(lr=lr, **scales)
