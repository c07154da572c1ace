"""Configurations: every hyperparameter of the paper's appendix, and the choices the paper leaves open, in one place.

A configuration is frozen; `cfg.replace(steps=2)` gives a variation. Wrong values are refused when it is made.
What the paper does not say is marked "paper silent" with our reason (and listed in docs/equations.md).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from . import _checks as checks

Values = dict[str, Any]
Rule = Callable[[str, object], object]  # raises an error that names the field, what came and what was expected


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rule(fits: Callable[[Any], bool], expected: str) -> Rule:
    def check(name: str, value: object) -> None:
        if not fits(value):
            raise checks.wrong(name, repr(value), expected)

    return check


def _at_least(least: int) -> Rule:
    return lambda name, value: checks.whole(name, value, least)


def _one_of(*words: str) -> Rule:
    return lambda name, value: checks.choice(name, value, words)


_POSITIVE = _rule(lambda x: _number(x) and x > 0, "a finite number above 0")
_FRACTION = _rule(lambda x: _number(x) and 0 <= x <= 1, "a number from 0 to 1")
_SWITCH = _rule(lambda x: isinstance(x, bool), "True or False")
_BETAS = _rule(
    lambda x: isinstance(x, tuple) and len(x) == 2 and all(_number(b) and 0 <= b < 1 for b in x),
    "a tuple of two numbers from 0 to below 1",
)
_RULES: dict[str, Rule] = {
    "name": _rule(lambda x: isinstance(x, str) and bool(x), "a non-empty string"),
    **dict.fromkeys(("vocab", "context", "width", "layers", "heads", "inner", "kv_heads", "head_width"), _at_least(1)),
    **dict.fromkeys(("batch", "steps"), _at_least(1)),
    **dict.fromkeys(("warmup", "cooldown", "micro_steps", "seed"), _at_least(0)),
    **dict.fromkeys(("lr", "clip", "gain", "ternary_gain", "mixer_gain", "down_gain", "rope_base"), _POSITIVE),
    **dict.fromkeys(("coupling_gain", "gamma_range", "late_rate"), _POSITIVE),
    **dict.fromkeys(("min_ratio", "weight_decay"), _FRACTION),
    **dict.fromkeys(("decay_vectors", "implicit", "ternary"), _SWITCH),
    **dict.fromkeys(("norm_qk", "norm_state", "norm_down", "output_gate"), _SWITCH),
    "betas": _BETAS,
    "optimizer": _one_of("adamw", "sgd"),
    "chunk": lambda name, value: value is None or checks.whole(name, value, 1),
    "tol": _rule(lambda x: x is None or (_number(x) and 0 < x < 1), "None or a number between 0 and 1"),
    "gamma_start": _rule(_number, "a finite number"),
    "penalty": _rule(lambda x: _number(x) and x >= 0, "a finite number, 0 or above"),
    "mixer": _one_of("state space", "long state space", "attention"),
    "mlp": _one_of("attractor", "spin", "swiglu", "none"),
    "nonlinearity": _one_of("tanh sigmoid", "tanh tanh", "tanh silu", "linear silu"),
    "convolution": _one_of("none", "plain", "silu"),
    "gate": _one_of("paper", "spread"),
}


@dataclass(frozen=True)
class Config:
    """What both architectures share."""

    name: str
    vocab: int  # N, ids of tokens
    context: int  # T, tokens per sequence
    width: int  # D, of the stream
    layers: int  # L, blocks
    heads: int  # H
    inner: int  # I, spins of an attractor; for the Transformer the width of its SwiGLU

    # Training, from the paper's appendix
    batch: int = 1  # B, sequences per step
    steps: int = 8000
    lr: float = 8e-4  # at the plateau
    warmup: int = 500  # steps of linear warm-up
    cooldown: int = 1000  # steps of cosine decay at the end
    min_ratio: float = 0.1  # of lr, where the cosine ends
    weight_decay: float = 0.05
    clip: float = 1.0  # global norm of the gradient
    seed: int = 1337  # the paper's, for shuffling; a training run seeds everything with it, `build` does not use it

    # Paper silent
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW: PyTorch's default, the likeliest reading of "AdamW"
    decay_vectors: bool = False  # weight decay on matrices only: on gamma it would pull the attractor towards K = 0
    gain: float = 1.0  # dense matrices start at a standard deviation of gain / sqrt(fan-in)

    optimizer: str = "adamw"  # the paper's; or "sgd", without momentum

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _RULES[field.name](field.name, getattr(self, field.name))

    def replace(self, **changes: Any) -> Self:
        """A copy with some values changed."""
        names = [f.name for f in dataclasses.fields(self)]
        for key in changes:
            checks.choice("configuration key", key, names)
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class PSpinConfig(Config):
    """The p-Spin Glass Network: all that `Config` has, and its own."""

    micro_steps: int = 5  # K, steps of the attractor
    chunk: int | None = 128  # C, tokens per chunk; None: what is fastest on the device
    tol: float | None = None  # let the attractor stop early; None: always K steps, as in the paper
    implicit: bool = True  # the paper's implicit gradient; False: autograd through the K steps

    # Paper silent
    ternary_gain: float = 1.0  # ternary matrices start at a standard deviation of ternary_gain / sqrt(fan-in)
    gamma_start: float = 0.1  # gamma_param; gamma = 0.05, well inside contraction. At 0 W_int would have no gradient

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise checks.wrong("width", self.width, f"a multiple of heads ({self.heads})")
        if self.tol is not None and not self.implicit:
            raise checks.wrong("tol", self.tol, "None with implicit=False: the unrolled steps do not stop early")

    @property
    def head_width(self) -> int:  # d_h
        return self.width // self.heads


@dataclass(frozen=True)
class TransformerConfig(Config):
    """The Transformer: all that `Config` has, and its own. The paper gives only its parameter counts; this ordinary
    modern shape has exactly those."""

    kv_heads: int = 4
    head_width: int = 64
    rope_base: float = 10_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.heads % self.kv_heads:
            raise checks.wrong("kv_heads", self.kv_heads, f"a divisor of heads ({self.heads})")
        if self.head_width % 2:
            raise checks.wrong("head_width", self.head_width, "an even number (rotary positions turn pairs)")


@dataclass(frozen=True)
class AblationConfig(PSpinConfig):
    """The p-Spin network with a part exchanged, to find out which part earns what. The paper has none of these."""

    mixer: str = "state space"  # or "long state space", whose gate has a bias and starts by keeping 98% a token; or
    # "attention": the Transformer's, with as many key-value heads as heads
    mlp: str = "attractor"  # or "spin": Y = spin(Z) without recurrence (K = 0), so without W_int; "swiglu"; "none"
    ternary: bool = True  # False: W_ext and W_int in full precision

    kv_heads = property(lambda self: self.heads)
    rope_base = TransformerConfig.rope_base

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mixer == "attention" and self.head_width % 2:
            raise checks.wrong("heads", self.heads, "heads of an even width (rotary positions turn pairs)")


@dataclass(frozen=True)
class VariantConfig(AblationConfig):
    """The p-Spin network with parts mended, to find out what would make it work. The paper has none of these."""

    nonlinearity: str = "tanh sigmoid"  # of (u, g), the paper's; or a product of two others
    convolution: str = "none"  # of four tokens per channel, before the mixer's projections; "silu": that follows it
    gate: str = "paper"  # or "spread": a bias per head, so that half-lives start between 2 and 200 tokens
    norm_qk: bool = False  # queries and keys of the state space normalised per head
    norm_state: bool = False  # what the state gives, normalised per head
    output_gate: bool = False  # what the state or the attention gives, times silu(W_y x)
    norm_down: bool = False  # the spins normalised before W_down
    mixer_gain: float = 1.0  # times `gain`, of the mixer's matrices
    down_gain: float = 1.0  # times `gain`, of W_down
    coupling_gain: float = 1.0  # times `ternary_gain`, of W_ext and W_int
    gamma_range: float = 0.5  # gamma = gamma_range * tanh(gamma_param)
    penalty: float = 0.0  # on the squared size of the attractor's Jacobian, added to the loss in training
    late_rate: float = 1.0  # times the learning rate, in the second half of a run

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mlp == "attractor" and self.nonlinearity not in ("tanh sigmoid", "tanh tanh"):
            expected = "'tanh sigmoid' or 'tanh tanh' with mlp='attractor': the others are not bounded"
            raise checks.wrong("nonlinearity", repr(self.nonlinearity), expected)
        if self.norm_down and self.mlp != "spin":
            raise checks.wrong("norm_down", f"True with mlp={self.mlp!r}", "False, or mlp='spin'")
        if self.mixer == "attention" and (self.gate != "paper" or self.norm_qk or self.norm_state):
            raise checks.wrong("mixer", repr(self.mixer), "a state space, with a gate or norms that only it has")
        if self.mends_attractor and not (self.mlp == "attractor" and self.ternary and self.tol is None):
            came = f"mlp={self.mlp!r}, ternary={self.ternary}, tol={self.tol}"
            raise checks.wrong("gamma_range or penalty", came, "mlp='attractor', ternary=True, tol=None with them")

    @property
    def mends_attractor(self) -> bool:
        return (self.gamma_range, self.penalty) != (0.5, 0.0)


_LATER = dict(optimizer="adamw", coupling_gain=1.0, gamma_range=0.5, penalty=0.0, late_rate=1.0)  # added later
_KINDS = {"p-spin": PSpinConfig, "transformer": TransformerConfig, "ablation": AblationConfig, "variant": VariantConfig}


def to_dict(cfg: Config) -> dict:
    """For a JSON file; `from_dict` gives the configuration back. What was added later is not mentioned unless it was
    chosen: so files from before there was a choice stay as they are."""
    kind = next(name for name, made in _KINDS.items() if type(cfg) is made)
    values = dict(kind=kind) | dataclasses.asdict(cfg)
    return {key: value for key, value in values.items() if key not in _LATER or value != _LATER[key]}


def from_dict(values: dict) -> PSpinConfig | TransformerConfig:
    """What `to_dict` gave; every key is checked, and none may be missing but what was added later."""
    values = dict(values)
    made = _KINDS[checks.choice("kind", values.pop("kind", None), _KINDS)]
    names = [f.name for f in dataclasses.fields(made)]
    for key in values:
        checks.choice("configuration key", key, names)
    missing = [name for name in names if name not in values and name not in _LATER]
    if missing:
        raise checks.wrong("configuration", "a dict without " + ", ".join(missing), "every key")
    if isinstance(values["betas"], list):  # JSON has no tuples
        values["betas"] = tuple(values["betas"])
    return made(**values)


_PRESETS = {
    cfg.name: cfg
    for cfg in (
        # The paper's appendix
        PSpinConfig("byte-paper", vocab=256, context=2048, width=704, layers=4, heads=8, inner=2048),
        PSpinConfig("subword-paper", vocab=49152, context=1024, width=544, layers=4, heads=8, inner=1408),
        # Its recipe for the baseline is "community standard" and 1,000 steps: 500 + 1,000 steps of ramps do not fit
        TransformerConfig(
            "transformer-paper",
            **Values(vocab=49152, context=1024, width=512, layers=12, heads=8, inner=1408),
            **Values(batch=64, steps=1000, warmup=100, cooldown=500),
        ),
        # The same architectures at about 1M parameters, for two CPU cores
        PSpinConfig("byte-lite", vocab=256, context=512, width=128, layers=4, heads=4, inner=224, chunk=None),
        PSpinConfig("subword-lite", vocab=8192, context=256, width=72, layers=4, heads=4, inner=176, chunk=None),
        TransformerConfig(
            "transformer-lite",
            **Values(vocab=8192, context=256, width=72, layers=8, heads=4, inner=200, kv_heads=2, head_width=18),
            **Values(batch=64, steps=1000, warmup=100, cooldown=500),
        ),
        # Ours: byte-lite mended. A convolution in front of the state space, and a ternary MLP that is a product of two
        # spins, without recurrence; at the rate that its tries chose
        VariantConfig(
            "byte-mended",
            **Values(vocab=256, context=512, width=128, layers=4, heads=4, inner=485, chunk=None, lr=1.6e-3),
            **Values(mlp="spin", nonlinearity="tanh tanh", convolution="silu"),
        ),
        # Seconds: they show that everything runs, and nothing else
        PSpinConfig("byte-smoke", vocab=256, context=64, width=32, layers=2, heads=2, inner=32, chunk=None, steps=30),
        PSpinConfig(
            "subword-smoke", vocab=512, context=32, width=32, layers=2, heads=2, inner=32, chunk=None, steps=30
        ),
        TransformerConfig(
            "transformer-smoke",
            **Values(vocab=512, context=32, width=32, layers=2, heads=2, inner=64, kv_heads=1, head_width=16),
            **Values(batch=8, steps=30, warmup=100, cooldown=500),
        ),
    )
}


def presets() -> list[str]:
    """The names `preset` knows."""
    return list(_PRESETS)


def preset(name: str) -> PSpinConfig | TransformerConfig:
    """A configuration by name."""
    return _PRESETS[checks.choice("preset", name, _PRESETS)]
