"""The p-Spin network with a part exchanged, so that each part can be told from the rest; the paper has none of these.
And `build`, which makes a model of any kind from its configuration.

mixer  "state space" (the paper's)   or "long state space": its gate has a bias, which starts at -4, a decay of 98%;
                                     without one every head starts with a decay near one half. Or "attention" (the
                                     Transformer's, rotary, normalised queries and keys)
mlp    "attractor" (the paper's)     or "spin": its nonlinearity once, Y = spin(W_ext X), which is K = 0 without the
                                     couplings that K = 0 does not use; "swiglu", the Transformer's; or "none"
ternary  True (the paper's)          or False: W_ext and W_int in full precision

The second study mends parts as well: a VariantConfig names them, and its comments say what each is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from einops import rearrange, reduce
from torch import Tensor, nn
from torch.nn import functional as F

from . import _checks as checks
from . import state_space
from .config import AblationConfig, Config, PSpinConfig, TransformerConfig, VariantConfig
from .language_model import EPS, LanguageModel
from .model import Attractor, PSpinLM, StateSpace
from .ternary import TernaryLinear
from .transformer import Attention, SwiGLU, TransformerLM


class DenseLinear(nn.Linear):
    """In the place of a TernaryLinear, with the weight as it is."""

    def __init__(self, in_features: int, out_features: int):
        super().__init__(in_features, out_features, bias=False)

    def quantized(self) -> Tensor:
        return self.weight

    def packed_for_kernels(self) -> None:
        """There are no codes: the kernels cannot serve."""


class DenseAttractor(Attractor):
    def __init__(self, cfg: AblationConfig):
        super().__init__(cfg)
        self.w_ext, self.w_int = DenseLinear(cfg.width, 2 * cfg.inner), DenseLinear(cfg.inner, 2 * cfg.inner)


NONLINEARITIES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "tanh sigmoid": (torch.tanh, torch.sigmoid),  # the paper's
    "tanh tanh": (torch.tanh, torch.tanh),  # a product of two spins
    "tanh silu": (torch.tanh, F.silu),
    "linear silu": (lambda u: u, F.silu),  # SwiGLU's
}


class Spin(nn.Module):
    """The attractor at K = 0: [B,T,D] -> [B,T,D]."""

    def __init__(self, cfg: AblationConfig):
        super().__init__()
        linear = TernaryLinear if cfg.ternary else DenseLinear
        self.w_ext = linear(cfg.width, 2 * cfg.inner)
        self.w_down = nn.Linear(cfg.inner, cfg.width, bias=False)
        self.of_u, self.of_g = NONLINEARITIES[getattr(cfg, "nonlinearity", "tanh sigmoid")]
        self.norm = nn.RMSNorm(cfg.inner, EPS) if getattr(cfg, "norm_down", False) else None

    def forward(self, x: Tensor) -> Tensor:
        u, g = self.w_ext(x).chunk(2, -1)
        y = self.of_u(u) * self.of_g(g)
        return self.w_down(y if self.norm is None else self.norm(y))


class LongStateSpace(StateSpace):
    def __init__(self, cfg: AblationConfig):
        super().__init__(cfg)
        self.w_g = nn.Linear(cfg.width, cfg.width)


class MendedStateSpace(StateSpace):
    """The state space with a gate per head whose memories differ in length, norms, and a gate at its output."""

    def __init__(self, cfg: VariantConfig):
        super().__init__(cfg)
        d = cfg.head_width
        self.gate_start = nn.Parameter(gate_starts(cfg.heads)[:, None]) if cfg.gate == "spread" else None
        self.norm_q, self.norm_k = (nn.RMSNorm(d, EPS) if cfg.norm_qk else None for _ in range(2))
        self.norm_o = nn.RMSNorm(d, EPS) if cfg.norm_state else None
        self.w_y = nn.Linear(cfg.width, cfg.width, bias=False) if cfg.output_gate else None

    def forward(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v, gate = (
            rearrange(w(x), "b t (h d) -> b t h d", h=self.heads) for w in (self.w_q, self.w_k, self.w_v, self.w_g)
        )
        if self.norm_q is not None and self.norm_k is not None:
            q, k = self.norm_q(q), self.norm_k(k)
        q = q * q.shape[-1] ** -0.5
        gate = gate if self.gate_start is None else gate + self.gate_start
        g = reduce(-F.softplus(gate), "b t h d -> b t h", "mean")
        if x.shape[1] == 1:
            o, state = state_space.recurrent(q, k, v, g, state)
        else:
            o, state = state_space.chunked(q, k, v, g, self.chunk, state)
        o = rearrange(o if self.norm_o is None else self.norm_o(o), "b t h d -> b t (h d)")
        return self.w_o(o if self.w_y is None else o * F.silu(self.w_y(x))), state


def gate_starts(heads: int, shortest: float = 2.0, longest: float = 200.0) -> Tensor:
    """[H]: what -softplus must be given for half-lives of so many tokens, evenly spaced on a log scale."""
    rates = math.log(2) / torch.logspace(math.log10(shortest), math.log10(longest), heads)
    return torch.log(torch.expm1(rates))


class Convolution(nn.Module):
    """A weighted sum of the last four tokens, per channel: [B,T,D] -> [B,T,D], with the last three as its state. It
    starts as the identity."""

    TAPS = 4

    def __init__(self, width: int, activation: str):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(self.TAPS, width))  # the last row is the token itself
        self.activation = F.silu if activation == "silu" else None
        nn.init.ones_(self.weight[-1])

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        past = x.new_zeros(len(x), self.TAPS - 1, x.shape[-1]) if past is None else past
        seen = torch.cat([past, x], 1)
        y = sum((w * seen[:, i : i + x.shape[1]] for i, w in enumerate(self.weight)), start=x.new_zeros(()))
        return y if self.activation is None else self.activation(y), seen[:, 1 - self.TAPS :]


class AfterConvolution(nn.Module):
    """A mixer that reads what a convolution gives."""

    def __init__(self, cfg: VariantConfig, mixer: nn.Module):
        super().__init__()
        self.convolution, self.mixer = Convolution(cfg.width, cfg.convolution), mixer

    def forward(self, x: Tensor, state: tuple | None) -> tuple[Tensor, tuple]:
        past, inner = (None, None) if state is None else state
        x, past = self.convolution(x, past)
        routed, inner = self.mixer(x, inner)
        return routed, (past, inner)


GATE_START = -4.0  # exp(-softplus(-4)) = 0.982
MIXERS = {"state space": StateSpace, "long state space": LongStateSpace, "attention": Attention}


def mixer_of(cfg: AblationConfig) -> nn.Module:
    if not isinstance(cfg, VariantConfig):
        return MIXERS[cfg.mixer](cfg)
    mended = cfg.gate != "paper" or cfg.norm_qk or cfg.norm_state or cfg.output_gate
    mixer = MendedStateSpace(cfg) if mended else MIXERS[cfg.mixer](cfg)
    return mixer if cfg.convolution == "none" else AfterConvolution(cfg, mixer)


class AblationBlock(nn.Module):
    def __init__(self, cfg: AblationConfig):
        super().__init__()
        self.norm_mixer = nn.RMSNorm(cfg.width, EPS)
        self.mixer = mixer_of(cfg)
        self.mlp: nn.Module | None = None
        if cfg.mlp == "none":
            return
        self.norm_mlp = nn.RMSNorm(cfg.width, EPS)
        if cfg.mlp == "attractor":  # has the name by which attractors are found and measured
            self.attractor = Attractor(cfg) if cfg.ternary else DenseAttractor(cfg)
            self.attractor.gate = getattr(cfg, "nonlinearity", "tanh sigmoid").split()[1]
        else:
            self.mlp = Spin(cfg) if cfg.mlp == "spin" else SwiGLU(cfg)

    def forward(self, x: Tensor, state: object) -> tuple[Tensor, object]:
        routed, state = self.mixer(self.norm_mixer(x), state)
        x = x + routed
        mlp = getattr(self, "attractor", self.mlp)
        return (x if mlp is None else x + mlp(self.norm_mlp(x))), state


class AblationLM(LanguageModel):
    cfg: AblationConfig

    def __init__(self, cfg: AblationConfig):
        super().__init__(cfg, (AblationBlock(cfg) for _ in range(cfg.layers)))

    def init_weights(self) -> None:
        super().init_weights()
        if isinstance(self.cfg, VariantConfig):
            for name, parameter in self.named_parameters():
                if ".mixer." in name and name.endswith(".weight") and ".w_" in name:
                    parameter.data *= self.cfg.mixer_gain
                if name.endswith("w_down.weight"):
                    parameter.data *= self.cfg.down_gain
        for module in self.modules():
            if isinstance(module, LongStateSpace):
                nn.init.constant_(module.w_g.bias, GATE_START)

    def gain_of(self, linear: nn.Linear) -> float:
        return self.cfg.ternary_gain if isinstance(linear, TernaryLinear | DenseLinear) else self.cfg.gain


def build(cfg: Config) -> LanguageModel:
    """A model from a configuration, its weights drawn from torch's global generator."""
    models = {PSpinConfig: PSpinLM, TransformerConfig: TransformerLM}
    models |= {AblationConfig: AblationLM, VariantConfig: AblationLM}
    if type(cfg) in models:
        return models[type(cfg)](cfg)
    raise checks.wrong("cfg", type(cfg).__name__, "a configuration, for instance preset('byte-lite')")
