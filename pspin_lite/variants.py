"""The p-Spin network with one part exchanged, so that each part can be told from the rest. The paper has none of these.
And `build`, which makes a model of any kind from its configuration.

mixer  "state space" (the paper's)   or "long state space": its gate has a bias, which starts at -4, a decay of 98%;
                                     without one every head starts with a decay near one half. Or "attention" (the
                                     Transformer's, rotary, normalised queries and keys)
mlp    "attractor" (the paper's)     or "spin": its nonlinearity once, Y = spin(W_ext X), which is K = 0 without the
                                     couplings that K = 0 does not use; or "swiglu", the Transformer's
ternary  True (the paper's)          or False: W_ext and W_int in full precision
"""

from __future__ import annotations

from torch import Tensor, nn

from . import _checks as checks
from .attractor import spin
from .config import AblationConfig, Config, PSpinConfig, TransformerConfig
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


class Spin(nn.Module):
    """The attractor at K = 0: [B,T,D] -> [B,T,D]."""

    def __init__(self, cfg: AblationConfig):
        super().__init__()
        linear = TernaryLinear if cfg.ternary else DenseLinear
        self.w_ext = linear(cfg.width, 2 * cfg.inner)
        self.w_down = nn.Linear(cfg.inner, cfg.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_down(spin(self.w_ext(x)))


class LongStateSpace(StateSpace):
    def __init__(self, cfg: AblationConfig):
        super().__init__(cfg)
        self.w_g = nn.Linear(cfg.width, cfg.width)


GATE_START = -4.0  # exp(-softplus(-4)) = 0.982
MIXERS = {"state space": StateSpace, "long state space": LongStateSpace, "attention": Attention}


class AblationBlock(nn.Module):
    def __init__(self, cfg: AblationConfig):
        super().__init__()
        self.norm_mixer, self.norm_mlp = nn.RMSNorm(cfg.width, EPS), nn.RMSNorm(cfg.width, EPS)
        self.mixer = MIXERS[cfg.mixer](cfg)
        if cfg.mlp == "attractor":  # has the name by which attractors are found and measured
            self.attractor = Attractor(cfg) if cfg.ternary else DenseAttractor(cfg)
        else:
            self.mlp = Spin(cfg) if cfg.mlp == "spin" else SwiGLU(cfg)

    def forward(self, x: Tensor, state: object) -> tuple[Tensor, object]:
        routed, state = self.mixer(self.norm_mixer(x), state)
        x = x + routed
        mlp = self.attractor if hasattr(self, "attractor") else self.mlp
        return x + mlp(self.norm_mlp(x)), state


class AblationLM(LanguageModel):
    cfg: AblationConfig

    def __init__(self, cfg: AblationConfig):
        super().__init__(cfg, (AblationBlock(cfg) for _ in range(cfg.layers)))

    def init_weights(self) -> None:
        super().init_weights()
        for module in self.modules():
            if isinstance(module, LongStateSpace):
                nn.init.constant_(module.w_g.bias, GATE_START)

    def gain_of(self, linear: nn.Linear) -> float:
        return self.cfg.ternary_gain if isinstance(linear, TernaryLinear | DenseLinear) else self.cfg.gain


def build(cfg: Config) -> LanguageModel:
    """A model from a configuration, its weights drawn from torch's global generator."""
    models = {PSpinConfig: PSpinLM, TransformerConfig: TransformerLM, AblationConfig: AblationLM}
    if type(cfg) in models:
        return models[type(cfg)](cfg)
    raise checks.wrong("cfg", type(cfg).__name__, "a configuration, for instance preset('byte-lite')")
