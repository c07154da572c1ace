"""The backward pass of the chunked state space, for both forms: one kernel makes dq, dk and dv of a chunk, and the
flows that dg consists of, from the same scores.

What it computes, for every chunk at once (derived in pspin_lite/state_space.py; D = dO, A = Q K^T, P = A * M)

    P'  = D V^T       A' = P' * M        W  = P' * P
    V'  = P^T D   +  to_end * (K h')         h and h': the states before the chunk, and the gradients of those after it,
    K'  = A'^T Q  +  to_end * (V h'^T)       both from `pass_states`
    Q'  = A' K    +  from_start * (D h^T)

The last three are rows of the table in chunk_parallel.py, made by the function that makes o.

dg_i is the sum of all that passes from a token j < i, or from before the chunk, to a token c >= i, or beyond the chunk.
Sums only: nothing cancels, however strong the decay.

    from           to           flow
    before         c            read [B*H,T]     rowsum(from_start * (D h^T) * Q), summed over c >= i
    j              beyond       wrote [B*H,T]    rowsum(to_end * (V h'^T) * K), summed over j < i
    j              c            inside [B*H,T]   W, summed over j < i <= c
    before         beyond       crossed [B*H,N]  carry * sum(h * h'), all of it

Glossary: chunk.py. A chunk is a single block here, C = BC: 64 tokens at most, 16 in float32.
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
import triton
import triton.language as tl

from .chunk import (
    FROM_START,
    TO_END,
    as_operand,
    carry,
    chunk_of,
    load_heads,
    load_line,
    load_state,
    load_sums,
    mask_within,
    multiply,
    scores,
    this_chunk,
)
from .chunk_parallel import outputs


@triton.jit
def flow_inside(W, dtype: tl.constexpr):
    """[BC,BC] -> [BC]: what passes g_i inside the block, the sum of W over j < i <= c. The first sum is a product with
    a triangle of ones."""
    i = tl.arange(0, W.shape[0])
    earlier = multiply(W, (i[:, None] < i[None, :]).to(dtype), tl.zeros_like(W))  # [c,i], over j < i
    return tl.sum(tl.where(i[:, None] >= i[None, :], earlier, 0.0), 0)


# fmt: off
@triton.jit
def chunk_gradients(
    q, k, v, do, g, lines, h_in, dh_out, dq, dk, dv, read, wrote, inside, crossed,
    q_strides, k_strides, v_strides, do_strides, g_strides, T, H, N, tiles: tl.constexpr,
):
    # fmt: on
    """One program: dq, dk and dv of chunk n, head bh, and the flows that dg consists of."""
    n, bh, b, head, t0, left = this_chunk(T, H, tiles)
    d = tiles.d
    q = chunk_of(q, q_strides, b, head, t0, tiles)
    k = chunk_of(k, k_strides, b, head, t0, tiles)
    v = chunk_of(v, v_strides, b, head, t0, tiles)
    do = chunk_of(do, do_strides, b, head, t0, tiles)
    g += b * g_strides[0] + head * g_strides[2] + t0 * g_strides[1]
    lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(1).to(tl.int64) * N * tiles.C)
    state, place, flows = (bh * N + n) * d * d, ((b * T + t0) * H + head) * d, bh * T + t0
    t = tl.arange(0, tiles.BC)

    q_r = load_heads(q, q_strides[1], 0, left, 0, tiles.keys, tiles)
    k_r = load_heads(k, k_strides[1], 0, left, 0, tiles.keys, tiles)
    A = scores(q_r, k_r, tiles)
    v_r = load_heads(v, v_strides[1], 0, left, 0, tiles.values, tiles)
    do_r = load_heads(do, do_strides[1], 0, left, 0, tiles.values, tiles)
    dP = scores(do_r, v_r, tiles)
    M = mask_within(load_line(g, g_strides[1], 0, left, tiles.BC))
    P, dA = A * M, dP * M
    passed = flow_inside(dP * P, q.dtype.element_ty)
    P, dA = as_operand(P, q.dtype.element_ty), as_operand(dA, q.dtype.element_ty)
    tl.store(inside + flows + t, passed, mask=t < left)
    to_end, from_start = load_sums(lines_n, TO_END, 0, tiles), load_sums(lines_n, FROM_START, 0, tiles)
    keys: tl.constexpr = tiles.keys
    values: tl.constexpr = tiles.values
    h, dh = h_in + state, dh_out + state
    q, k, v, do = (q, q_strides[1]), (k, k_strides[1]), (v, v_strides[1]), (do, do_strides[1])
    dq, dk, dv = (dq + place, H * d), (dk + place, H * d), (dv + place, H * d)
    outputs(k, dh, to_end, tl.trans(P), do, do, dv, left, keys, values, tiles, False, False)
    flow = outputs(v, dh, to_end, tl.trans(dA), q, k, dk, left, values, keys, tiles, True, True)
    tl.store(wrote + flows + t, flow, mask=t < left)
    flow = outputs(do, h, from_start, dA, k, q, dq, left, values, keys, tiles, True, True)
    tl.store(read + flows + t, flow, mask=t < left)

    before, after, both = load_state(h, 0, 0, tiles), load_state(dh, 0, 0, tiles), 0.0
    for i in tl.static_range(len(before)):
        both += tl.sum(tl.sum(before[i].to(tl.float32) * after[i].to(tl.float32), 1), 0)
    tl.store(crossed + bh * N + n, carry(lines_n, tiles) * both)


@triton.jit
def decay_gradient(read, wrote, inside, crossed, dg, T, H, N, tiles: tl.constexpr):
    """One program: dg of chunk n, head bh."""
    n, bh, b, head, t0, left = this_chunk(T, H, tiles)
    flows = bh * T + t0
    i = tl.arange(0, tiles.C)
    gradient = tl.load(crossed + bh * N + n) + load_line(inside + flows, 1, 0, left, tiles.C)
    gradient += tl.cumsum(load_line(read + flows, 1, 0, left, tiles.C), 0, reverse=True)
    before = tl.load(wrote + flows + i - 1, mask=(i > 0) & (i <= left), other=0.0)
    gradient += tl.cumsum(before, 0)
    tl.store(dg + (b * T + t0 + i) * H + head, gradient, mask=i < left)
