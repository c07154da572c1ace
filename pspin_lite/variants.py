"""The p-Spin network with a part exchanged, so that each part can be told from the rest; the paper has none of these.
And `build`, which makes a model of any kind from its configuration.

mixer  "state space" (the paper's)   or "long state space": its gate has a bias, which starts at -4, a decay of 98%;
                                     without one every head starts with a decay near one half. Or "attention" (the
                                     Transformer's, rotary, normalised queries and keys)
mlp    "attractor" (the paper's)     or "spin": its nonlinearity once, Y = spin(W_ext X), which is K = 0 without the
                                     couplings that K = 0 does not use; "swiglu", the Transformer's; or "none"
ternary  True (the paper's)          or False: W_ext and W_int in full precision

The second study mends parts as well: a VariantConfig names them, and its comments say what each is. They are in
_mended.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import _checks as checks
from ._mended import AfterConvolution, GatedAttention, MendedAttractor, MendedStateSpace
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


GATE_START = -4.0  # exp(-softplus(-4)) = 0.982
MIXERS = {"state space": StateSpace, "long state space": LongStateSpace, "attention": Attention}


def mixer_of(cfg: AblationConfig) -> nn.Module:
    if not isinstance(cfg, VariantConfig):
        return MIXERS[cfg.mixer](cfg)
    mended = cfg.gate != "paper" or cfg.norm_qk or cfg.norm_state or cfg.output_gate
    mends = GatedAttention if cfg.mixer == "attention" else MendedStateSpace
    mixer = mends(cfg) if mended else MIXERS[cfg.mixer](cfg)
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
            if isinstance(cfg, VariantConfig) and cfg.mends_attractor:
                self.attractor: Attractor = MendedAttractor(cfg)
            else:
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
                if name.endswith(("w_ext.weight", "w_int.weight")):
                    parameter.data *= self.cfg.coupling_gain
        for module in self.modules():
            if isinstance(module, LongStateSpace):
                nn.init.constant_(module.w_g.bias, GATE_START)

    def gain_of(self, linear: nn.Linear) -> float:
        return self.cfg.ternary_gain if isinstance(linear, TernaryLinear | DenseLinear) else self.cfg.gain

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """In training with the penalty, if there is one."""
        loss, weight = super().loss(tokens, targets), getattr(self.cfg, "penalty", 0.0)
        if not (self.training and weight):
            return loss
        sizes = [module.taken() for module in self.modules() if isinstance(module, MendedAttractor)]
        return loss + weight * torch.stack(sizes).mean()


def build(cfg: Config) -> LanguageModel:
    """A model from a configuration, its weights drawn from torch's global generator."""
    models = {PSpinConfig: PSpinLM, TransformerConfig: TransformerLM}
    models |= {AblationConfig: AblationLM, VariantConfig: AblationLM}
    if type(cfg) in models:
        return models[type(cfg)](cfg)
    raise checks.wrong("cfg", type(cfg).__name__, "a configuration, for instance preset('byte-lite')")
