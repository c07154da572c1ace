"""The p-Spin Glass Network: embedding, L blocks of a gated state space and an attractor, norm, tied head.

Glossary
    name        shape      paper    meaning
    x           [B,T,D]    X        residual stream; X^(l-1) into block l, X_mid between its halves, X^(l) out of it
    state       L x [B,H,d,d]  h    memory of every block: all that decoding carries from token to token
    gamma_param [I]        gamma_param   unbounded; gamma = 0.5 * tanh(gamma_param)

Paper silent: what the gate's bias starts at. It has none (the parameter counts of the paper's appendix leave no room
for one), so every head starts with a decay near one half.
"""

from __future__ import annotations

from typing import Protocol

import torch
from einops import rearrange, reduce
from torch import Tensor, nn
from torch.nn import functional as F

from . import _backends as backends
from . import attractor, state_space
from .config import PSpinConfig
from .language_model import EPS, LanguageModel
from .ternary import TernaryLinear


class StateSpace(nn.Module):
    """First half of a block: [B,T,D] -> [B,T,D], with a state [B,H,d,d]."""

    def __init__(self, cfg: PSpinConfig):
        super().__init__()
        self.heads, self.chunk = cfg.heads, cfg.chunk
        self.w_q, self.w_k, self.w_v, self.w_g, self.w_o = (
            nn.Linear(cfg.width, cfg.width, bias=False) for _ in range(5)
        )

    def forward(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        q, k, v, gate = (
            rearrange(w(x), "b t (h d) -> b t h d", h=self.heads) for w in (self.w_q, self.w_k, self.w_v, self.w_g)
        )
        q = q * q.shape[-1] ** -0.5  # Eq. ssm-qkv
        g = reduce(-F.softplus(gate), "b t h d -> b t h", "mean")  # Eq. ssm-gate
        if x.shape[1] == 1:  # decoding: one token needs no chunk
            o, state = state_space.recurrent(q, k, v, g, state)
        else:
            o, state = state_space.chunked(q, k, v, g, self.chunk, state)
        o = rearrange(o, "b t h d -> b t (h d)")
        return self.w_o(o), state


class Coupling(Protocol):
    """What an attractor asks of its matrices: a TernaryLinear, or what stands in its place."""

    weight: Tensor

    def __call__(self, x: Tensor) -> Tensor: ...
    def quantized(self) -> Tensor: ...
    def packed_for_kernels(self) -> tuple[Tensor, Tensor] | None: ...


class Attractor(nn.Module):
    """Second half of a block: [B,T,D] -> [B,T,D], no state."""

    gate = "sigmoid"  # variants have others

    def __init__(self, cfg: PSpinConfig):
        super().__init__()
        self.cfg = cfg
        self.w_ext: Coupling = TernaryLinear(cfg.width, 2 * cfg.inner)
        self.w_int: Coupling = TernaryLinear(cfg.inner, 2 * cfg.inner)
        self.gamma_param = nn.Parameter(torch.full((cfg.inner,), float(cfg.gamma_start)))
        self.w_down = nn.Linear(cfg.inner, cfg.width, bias=False)
        self.report = attractor.Report()  # steps taken by the latest call

    def forward(self, x: Tensor) -> Tensor:
        z = self.w_ext(x)  # Eq. spin-drive
        gamma, K = self.gamma().to(z.dtype), self.cfg.micro_steps  # z is 16 bits under autocast
        if not self.cfg.implicit:
            return self.w_down(attractor.unrolled(z, self.w_int.quantized().to(z.dtype), gamma, K, self.gate))
        kernels = self.gate == "sigmoid" and backends.choose("auto", z) == "triton"
        packed = self.w_int.packed_for_kernels() if kernels else None
        w_int = (self.w_int.quantized() if packed is None else self.w_int.weight).to(z.dtype)
        backend = "torch" if packed is None else "triton"
        y = attractor.equilibrium(z, w_int, gamma, K, self.cfg.tol, backend, self.report, packed, self.gate)
        return self.w_down(y)

    def gamma(self) -> Tensor:
        return 0.5 * torch.tanh(self.gamma_param)  # Eq. spin-gamma


class Block(nn.Module):
    def __init__(self, cfg: PSpinConfig):
        super().__init__()
        self.norm_ssm, self.norm_spin = nn.RMSNorm(cfg.width, EPS), nn.RMSNorm(cfg.width, EPS)  # Eq. rmsnorm
        self.state_space, self.attractor = StateSpace(cfg), Attractor(cfg)

    def forward(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        routed, state = self.state_space(self.norm_ssm(x), state)
        x = x + routed  # Eq. ssm-out
        return x + self.attractor(self.norm_spin(x)), state  # Eq. spin-out


class PSpinLM(LanguageModel):
    """The p-Spin network, algorithms 1 and 2 of the paper, in any size. Eq. alg-subword, Eq. alg-byte"""

    cfg: PSpinConfig

    def __init__(self, cfg: PSpinConfig):
        super().__init__(cfg, (Block(cfg) for _ in range(cfg.layers)))

    def gain_of(self, linear: nn.Linear) -> float:
        return self.cfg.ternary_gain if isinstance(linear, TernaryLinear) else self.cfg.gain
