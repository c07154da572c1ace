"""The baseline: a plain modern Transformer, with the shape that gives the paper's parameter counts to the last digit.

RMSNorm, rotary positions, normalised queries and keys, grouped key-value heads, SwiGLU, tied embedding, no biases.

Glossary
    name    shape            meaning
    q       [B,H,T,d]        queries, H heads
    k, v    [B,G,T,d]        keys and values, G key-value heads, each serving H/G query heads
    state   L x (k, v)       everything seen so far: it grows with every token, unlike the p-Spin network's
"""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F

from . import _checks as checks
from .config import Config, TransformerConfig
from .language_model import EPS, LanguageModel

Cache = tuple[Tensor, Tensor]


def rotate(x: Tensor, start: int, base: float) -> Tensor:
    """Rotary positions: turns each pair (x_i, x_{i+d/2}) of token t by an angle t / base**(2i/d). x [B,H,T,d]"""
    T, d = x.shape[-2:]
    rates = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angles = torch.outer(torch.arange(start, start + T, dtype=torch.float64, device=x.device), rates)  # [T, d/2]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    def __init__(self, cfg: TransformerConfig):
        super().__init__()
        self.cfg = cfg
        self.w_q = nn.Linear(cfg.width, cfg.heads * cfg.head_width, bias=False)
        self.w_k = nn.Linear(cfg.width, cfg.kv_heads * cfg.head_width, bias=False)
        self.w_v = nn.Linear(cfg.width, cfg.kv_heads * cfg.head_width, bias=False)
        self.w_o = nn.Linear(cfg.heads * cfg.head_width, cfg.width, bias=False)
        self.norm_q, self.norm_k = nn.RMSNorm(cfg.head_width, EPS), nn.RMSNorm(cfg.head_width, EPS)

    def forward(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        q, k, v = (
            rearrange(w(x), "b t (h d) -> b h t d", d=self.cfg.head_width) for w in (self.w_q, self.w_k, self.w_v)
        )
        past = 0 if cache is None else cache[0].shape[2]
        if cache is not None and len(cache[0]) != len(x):
            raise checks.wrong("state", f"a batch of {len(cache[0])}", f"the batch of the tokens, {len(x)}")
        q, k = rotate(self.norm_q(q), past, self.cfg.rope_base), rotate(self.norm_k(k), past, self.cfg.rope_base)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        T = x.shape[1]
        if past and T > 1:  # a token sees all of the past, and its own piece up to itself
            sees = torch.ones(T, past + T, dtype=torch.bool, device=x.device).tril(past)
            o = F.scaled_dot_product_attention(q, k, v, attn_mask=sees, enable_gqa=True)
        else:
            o = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1, enable_gqa=True)
        return self.w_o(rearrange(o, "b h t d -> b t (h d)")), (k, v)


class SwiGLU(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.w_gate = nn.Linear(cfg.width, cfg.inner, bias=False)
        self.w_up = nn.Linear(cfg.width, cfg.inner, bias=False)
        self.w_down = nn.Linear(cfg.inner, cfg.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_down(F.silu(self.w_gate(x)) * self.w_up(x))


class TransformerBlock(nn.Module):
    def __init__(self, cfg: TransformerConfig):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.RMSNorm(cfg.width, EPS), nn.RMSNorm(cfg.width, EPS)
        self.attention, self.mlp = Attention(cfg), SwiGLU(cfg)

    def forward(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        attended, cache = self.attention(self.norm_attention(x), cache)
        x = x + attended
        return x + self.mlp(self.norm_mlp(x)), cache


class TransformerLM(LanguageModel):
    """The baseline; it has the methods of PSpinLM. Its state grows with every token."""

    def __init__(self, cfg: TransformerConfig):
        super().__init__(cfg, (TransformerBlock(cfg) for _ in range(cfg.layers)))
