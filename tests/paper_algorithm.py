"""Algorithms 1 and 2 of the paper, written down line by line with plain tensor operations: slow, literal, and
independent of the package. It takes the weights of a model by name."""

from __future__ import annotations

import torch
from torch import Tensor


def rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def quantize_158b(w: Tensor) -> Tensor:
    s = torch.clamp(w.abs().mean(), min=1e-5)
    return torch.clamp(torch.round(w / s), -1, 1) * s


def p_spin_logits(weights: dict[str, Tensor], tokens: Tensor, H: int, K: int, C: int) -> Tensor:
    """[B,T] -> [B,T,V]. T is a multiple of C, as the paper has it."""
    W_emb = weights["embedding.weight"]
    x = W_emb[tokens]  # X^(0)
    B, T, D = x.shape
    d = D // H
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
    for l in range(layers):
        W = {name.removeprefix(f"blocks.{l}."): w for name, w in weights.items() if name.startswith(f"blocks.{l}.")}
        # 1. Gated state-space integration
        n = rmsnorm(x, W["norm_ssm.weight"])
        q, k, v, gate = (
            (n @ W[f"state_space.w_{name}.weight"].T).view(B, T, H, d).transpose(1, 2) for name in "qkvg"
        )  # [B,H,T,d]
        q = q * d**-0.5
        g = (-torch.log(1 + torch.exp(gate))).sum(-1) / d  # [B,H,T]
        h = torch.zeros(B, H, d, d, dtype=x.dtype)
        outputs = []
        for i in range(T // C):
            piece = slice(i * C, (i + 1) * C)
            q_i, k_i, v_i = q[:, :, piece], k[:, :, piece], v[:, :, piece]
            gcs = g[:, :, piece].cumsum(-1)  # [B,H,C]
            M = torch.exp(gcs[..., :, None] - gcs[..., None, :]) * torch.ones(C, C, dtype=x.dtype).tril()
            o_intra = (q_i @ k_i.transpose(-1, -2) * M) @ v_i
            o_cross = (q_i @ h) * torch.exp(gcs)[..., None]
            outputs.append(o_intra + o_cross)
            to_end = torch.exp(gcs[..., -1:] - gcs)[..., None]
            h = h * torch.exp(gcs[..., -1])[..., None, None] + (k_i * to_end).transpose(-1, -2) @ v_i
        o = torch.cat(outputs, 2).transpose(1, 2).reshape(B, T, D)
        x = x + o @ W["state_space.w_o.weight"].T
        # 2. p-Spin equilibrium
        n = rmsnorm(x, W["norm_spin.weight"])
        w_ext, w_int = quantize_158b(W["attractor.w_ext.weight"]), quantize_158b(W["attractor.w_int.weight"])
        gamma = 0.5 * torch.tanh(W["attractor.gamma_param"])
        D_int = len(gamma)
        z = n @ w_ext.T
        y = torch.tanh(z[..., :D_int]) * torch.sigmoid(z[..., D_int:])
        for _ in range(K):
            field = z + (gamma * y) @ w_int.T
            y = torch.tanh(field[..., :D_int]) * torch.sigmoid(field[..., D_int:])
        x = x + y @ W["attractor.w_down.weight"].T
    return rmsnorm(x, weights["norm.weight"]) @ W_emb.T
