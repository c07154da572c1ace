"""Parts of the network that the second study mends (see `VariantConfig`), each with the reason that literature gives.

attractor      gamma in a wider range, and a penalty on the Jacobian (Bai et al. 2021, arXiv:2106.14342)
state space    a memory per head, norms and a gate at the output, as in RetNet (Sun et al. 2023, arXiv:2307.08621)
attention      the same gate (Qiu et al. 2025, arXiv:2505.06708)
convolution    of four tokens in front of either, as in flash-linear-attention's layers
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from einops import rearrange, reduce
from torch import Tensor, nn
from torch.nn import functional as F

from . import attractor, state_space
from .config import VariantConfig
from .language_model import EPS
from .model import Attractor, StateSpace
from .transformer import Attention


class MendedAttractor(Attractor):
    """With its own range of gamma, and a penalty on its Jacobian, which pulls the iteration towards contraction."""

    cfg: VariantConfig
    size: Tensor | None = None  # of the Jacobian at the latest call in training

    def gamma(self) -> Tensor:
        return self.cfg.gamma_range * torch.tanh(self.gamma_param)

    def forward(self, x: Tensor) -> Tensor:
        z, w_int, K = self.w_ext(x), self.w_int.quantized(), self.cfg.micro_steps
        solve = attractor.equilibrium if self.cfg.implicit else attractor.unrolled
        y = solve(z, w_int, self.gamma(), K, gate=self.gate)
        if self.training and self.cfg.penalty:
            self.size = jacobian_size(y, z, w_int, self.gamma(), self.gate)
        return self.w_down(y)

    def taken(self) -> Tensor:
        """The size, once: nothing keeps the graph that it belongs to."""
        size, self.size = self.size, None
        if size is None:
            raise ValueError("size: the layer has not been called in training")
        return size


def jacobian_size(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor, gate: str) -> Tensor:
    """The squared Frobenius norm of one step's Jacobian J at y, per spin: the mean over tokens of |e^T J|^2 / Dint,
    with one random direction e for each token. Differentiable in all but y."""
    y = y.detach().requires_grad_()
    (row,) = torch.autograd.grad(attractor.step(y, z, w_int, gamma, gate), y, torch.randn_like(y), create_graph=True)
    return row.pow(2).mean()


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


class GatedAttention(nn.Module):
    """Attention with a gate at its output, as the mended state space has it."""

    def __init__(self, cfg: VariantConfig):
        super().__init__()
        self.attention = Attention(cast(Any, cfg))  # it has all that a Transformer's has
        self.w_o, self.attention.w_o = self.attention.w_o, cast(Any, nn.Identity())
        self.w_y = nn.Linear(cfg.width, cfg.width, bias=False)

    def forward(self, x: Tensor, cache: tuple | None) -> tuple[Tensor, tuple]:
        o, cache = self.attention(x, cache)
        return self.w_o(o * F.silu(self.w_y(x))), cache


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
