"""The gated state space: one recurrence, three ways to compute it.

What it computes: a matrix-valued memory h. Before each token the memory is scaled down by a gate,
then the token's key-value product is added; the query reads the result.

    h_t = exp(g_t) h_{t-1} + k_t^T v_t           o_t = q_t h_t

Glossary
    name    shape       paper       meaning
    q       [B,T,H,d]   Q           queries, already scaled by d**-0.5
    k, v    [B,T,H,d]   K, V        keys and values
    g       [B,T,H]     G           log decay, from -inf (forget everything) to 0 (keep everything)
    state   [B,H,d,d]   h           memory; rows belong to keys, columns to values
    M       [..,C,C]    M           causal decay mask of a chunk; M[c,j] = what is left of token j at token c
    P       [..,C,C]    QK^T * M    decayed scores
    C, N    int         C, N        chunk length, number of chunks

Where it departs from the paper
    * The paper writes M[c,j] = exp(Gcs[c] - Gcs[j]) with one cumulative sum Gcs. In float32 that difference loses a
      digit, and after a hard reset (g = -inf) it is inf - inf = nan. `decay_mask` adds up the decays of each segment
      j+1..c by itself. Nothing is subtracted, so -inf is exact and no gradient is nan.
    * T need not be a multiple of C: the last chunk is filled up with tokens that neither write (k = v = 0) nor decay
      (g = 0).

The backward pass of `chunked`, by hand (D = gradient of o, X' = gradient of X, A = Q K^T, * is elementwise)
    P'  = D V^T                 V'  = P^T D  +  to_end * (K h_out')
    A'  = P' * M                Q'  = A' K   +  (from_start * D) h_in^T
                                K'  = A'^T Q +  (to_end * V) h_out'^T
    h_in' = exp(sum g) h_out' + Q^T (from_start * D)           walked from the last chunk to the first
    g'_i collects every product of decays that contains g_i: the mask entries with j < i <= c, the reads from the
    incoming state at c >= i, the writes to the outgoing state at j < i, and the carried state. All four are plain sums.
    The usual short cut, a reverse cumulative sum of rowsum(q' q) - rowsum(k' k), subtracts large numbers that nearly
    cancel, and is noise under strong decay.
16-bit inputs are computed in float32, also under autocast. Gradients are differentiable no further.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from einops import rearrange
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from . import _backends as backends
from . import _checks as checks
from . import _fast_chunks as fast


@backends.without_autocast
def recurrent(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Token by token, through plain autograd: the definition. O(T d^2) time, one step after another.
    q, k, v [B,T,H,d], g [B,T,H] log decays, at most 0; state [B,H,d,d], None: zeros. q is scaled by d**-0.5 already.
    Returns the outputs [B,T,H,d] and the state [B,H,d,d] after the last token."""
    h = _check(q, k, v, g, state)
    out_dtype = q.dtype
    q, k, v, g = (x.to(h.dtype) for x in (q, k, v, g))
    outputs = []
    for t in range(q.shape[1]):
        decay = g[:, t].exp()[..., None, None]  # [B,H,1,1]
        h = decay * h + k[:, t, :, :, None] * v[:, t, :, None, :]  # Eq. ssm-state, one token at a time: [B,H,d,d]
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], h))  # [B,H,d]
    return torch.stack(outputs, 1).to(out_dtype), h


@backends.without_autocast
def quadratic(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
    """All pairs of tokens at once, like attention with a decay instead of a softmax. O(T^2) time and memory.
    q, k, v [B,T,H,d], g [B,T,H] log decays, at most 0 -> the outputs [B,T,H,d]."""
    dtype = _check(q, k, v, g, None).dtype
    Q, K, V = (rearrange(x.to(dtype), "b t h d -> b h t d") for x in (q, k, v))
    M = decay_mask(rearrange(g.to(dtype), "b t h -> b h t"))  # [B,H,T,T]
    o = (Q @ K.transpose(-1, -2) * M) @ V  # Eq. ssm-intra with a single chunk
    return rearrange(o, "b h t d -> b t h d").to(q.dtype)


def chunked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    chunk: int | None = 128,
    state: Tensor | None = None,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Quadratic inside chunks of `chunk` tokens, recurrent from chunk to chunk. O(T (C d + d^2)) time, O(T) memory.
    q, k, v [B,T,H,d], g [B,T,H] log decays, at most 0; state [B,H,d,d], None: zeros. q is scaled by d**-0.5 already.
    chunk=None takes what is fastest on the device (64 on a CPU, 128 on a GPU): results differ by rounding only. Without
    a gradient, a CPU takes longer chunks in pieces of 64.
    Returns the outputs [B,T,H,d] and the state [B,H,d,d] after the last token."""
    h = _check(q, k, v, g, state)
    if chunk is None:
        chunk = 64 if q.device.type == "cpu" else 128
    checks.whole("chunk", chunk, 1)
    if backends.choose(backend, q) == "triton":
        from pspin_kernels import state_space as kernels  # only here: without Triton everything else still works

        complaint = _beyond_kernels(q, chunk, kernels)
        if complaint is None:
            return kernels.chunked(q, k, v, g, h, chunk)
        if backend == "triton":
            raise complaint
    args = [x.to(h.dtype) for x in (q, k, v, g)]
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (*args, h))
    quick = q.device.type == "cpu" and not learns  # evaluation and prompts: the same to rounding, nothing is kept
    chunk = min(chunk, T := q.shape[1], fast.LONGEST if quick else chunk)
    pad = -T % chunk
    if pad:
        args = [F.pad(x, (0, 0) * (x.ndim - 2) + (0, pad)) for x in args]  # k = v = 0, g = 0: no write, no decay
    o, h = fast.forward(args, h, chunk, decay_mask) if quick else _Chunked.apply(*args, h, chunk)
    return (o[:, :T] if pad else o).to(q.dtype), h


def decay_mask(g: Tensor) -> Tensor:
    """Eq. ssm-mask: g [.., C] log decays -> [.., C, C] with M[c,j] = exp(g_{j+1} + ... + g_c) for c >= j, else 0.

    Each segment j+1..c is summed by itself, and everything outside it is set to 0 *before* the exponential."""
    C = g.shape[-1]
    after_j = g.unsqueeze(-2).expand(*g.shape, C).triu(1)  # [.., j, i]: g_i where i > j, else 0
    return after_j.cumsum(-1).exp_().triu().transpose(-1, -2)  # [.., c, j]


class _Chunked(torch.autograd.Function):
    """The chunked form with the backward pass derived above. T is a multiple of C here."""

    @staticmethod
    @backends.without_autocast
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, C: int) -> tuple[Tensor, Tensor]:
        B, _, H, d = q.shape
        Q, K, V = (_to_chunks(x, C) for x in (q, k, v))  # [B*H*N, C, d]
        G = rearrange(g, "b (n c) h -> (b h n) c", c=C)
        Mt = decay_mask(G).mT  # [B*H*N, j, c]: the way round in which it lies in memory
        from_start = G.cumsum(-1).exp().unsqueeze(-1)  # what is left at token c of the state before the chunk
        to_end = Mt[:, :, -1:]  # what is left at the chunk's end of token j
        carry = from_start[:, -1].view(B * H, -1, 1, 1)  # [B*H, N, 1, 1], over a whole chunk

        writes = torch.bmm(K.mT, V * to_end).view(B * H, -1, d, d)  # what each chunk adds
        h_in, h = torch.empty_like(writes), state.reshape(B * H, d, d)
        for i in range(h_in.shape[1]):
            h_in[:, i] = h
            h = torch.addcmul(writes[:, i], h, carry[:, i])  # Eq. ssm-state
        h_in = h_in.view(-1, d, d)

        Pt = torch.bmm(K, Q.mT).mul_(Mt)
        o = torch.bmm(Q, h_in).mul_(from_start)  # Eq. ssm-cross
        o.baddbmm_(Pt.mT, V)  # Eq. ssm-intra
        ctx.save_for_backward(Q, K, V, Mt, Pt, h_in, from_start)
        ctx.C = C
        return _from_chunks(o, B, H), h.view(B, H, d, d)

    @staticmethod
    @once_differentiable
    @backends.without_autocast
    def backward(ctx: Any, do: Tensor, dstate: Tensor) -> tuple[Tensor | None, ...]:
        Q, K, V, Mt, Pt, h_in, from_start = ctx.saved_tensors
        B, _, H, d, C = *do.shape, ctx.C
        dO = _to_chunks(do, C)
        to_end = Mt[:, :, -1:]
        carry = from_start[:, -1].view(B * H, -1, 1, 1)
        dO_start = dO * from_start

        # The gradient of the state walks back from the last chunk to the first.
        reads = torch.bmm(Q.mT, dO_start).view(B * H, -1, d, d)
        dh_out, dh = torch.empty_like(reads), dstate.reshape(B * H, d, d)
        for i in reversed(range(dh_out.shape[1])):
            dh_out[:, i] = dh
            dh = torch.addcmul(reads[:, i], dh, carry[:, i])
        dh_out = dh_out.view(-1, d, d)

        dPt = torch.bmm(V, dO.mT)
        dAt = dPt * Mt
        dV = torch.bmm(K, dh_out).mul_(to_end).baddbmm_(Pt, dO)
        dQ = torch.bmm(dO_start, h_in.mT)
        dK = torch.bmm(V * to_end, dh_out.mT)
        read = (dQ * Q).sum(-1)  # [B*H*N, C], through from_start
        wrote = (dK * K).sum(-1)  # through to_end
        dQ.baddbmm_(dAt.mT, K)
        dK.baddbmm_(dAt, Q)

        # dG_i, by sums only. Those over c >= i are products with a triangle of ones.
        from_i = torch.ones(C, C, dtype=dO.dtype, device=dO.device).tril_()  # [c, i]
        inside = (dPt.mul_(Pt) @ from_i).triu_(1).sum(-2)  # mask entries with j < i <= c
        dG = inside + read @ from_i  # reads at c >= i
        dG[:, 1:] += wrote.cumsum(-1)[:, :-1]  # writes at j < i
        dG += from_start[:, -1] * (dh_out * h_in).sum((1, 2)).unsqueeze(-1)  # the carried state
        dG = rearrange(dG, "(b h n) c -> b (n c) h", b=B, h=H)
        return *(_from_chunks(x, B, H) for x in (dQ, dK, dV)), dG, dh.view(B, H, d, d), None


def _beyond_kernels(q: Tensor, chunk: int, kernels: ModuleType) -> ValueError | None:
    """What about these arguments the Triton kernels cannot do, if anything."""
    if q.dtype == torch.float64:
        return checks.wrong("q", "dtype torch.float64", "float32, float16 or bfloat16 for backend 'triton'")
    if q.shape[-1] > kernels.WIDEST:
        return checks.wrong("q", f"heads of width {q.shape[-1]}", f"at most {kernels.WIDEST} for backend 'triton'")
    if chunk not in kernels.CHUNKS:
        return checks.wrong("chunk", chunk, f"one of {', '.join(map(str, kernels.CHUNKS))} for backend 'triton'")
    return None


def _to_chunks(x: Tensor, C: int) -> Tensor:
    return rearrange(x, "b (n c) h d -> (b h n) c d", c=C)


def _from_chunks(x: Tensor, B: int, H: int) -> Tensor:
    return rearrange(x, "(b h n) c d -> b (n c) h d", b=B, h=H)


def _check(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor | None) -> Tensor:
    """Checks every argument; returns the state to start from, whose dtype is the one to compute in."""
    B, T, H, d = checks.tensor("q", q, 4, "[B, T, H, d]").shape
    for name, x in (("k", k), ("v", v)):
        checks.same(name, x, (B, T, H, d), "the shape of q")
        checks.alike(name, x, "q", q)
    checks.same("g", g, (B, T, H), "B, T, H of q")
    checks.alike("g", g.to(q.dtype) if g.is_floating_point() else g, "q", q)
    asked = g.device.type == "cpu" and not torch.compiler.is_compiling()  # on a GPU the question would stall the stream
    if asked and not bool((g <= 0).all()):
        raise checks.wrong("g", f"a largest value of {g.max().item():g}", "log decays, each <= 0 and not nan")
    dtype = torch.float64 if q.dtype == torch.float64 else torch.float32  # 16-bit inputs are computed in float32
    if state is None:
        return q.new_zeros(B, H, d, d, dtype=dtype)
    checks.same("state", state, (B, H, d, d), "B, H, d, d of q")
    if not state.is_floating_point() or state.device != q.device:
        raise checks.wrong("state", f"{state.dtype} on {state.device}", f"floating point on {q.device}")
    return state.to(dtype)
