"""The chunked state space as the paper runs it: one program a head and tile of value columns walks along the chunks
and keeps its tile of the state on chip.

What it computes, for every chunk in turn (Eq. ssm-intra, Eq. ssm-cross, Eq. ssm-state):

    o = chunk_cross(q, h) + chunk_intra(q, k, v)        h = chunk_write(h, k, v)

Glossary: chunk.py, and the table there of how o, dQ, dV and dK are all this one loop. Besides:

    name      shape          meaning
    x         [B,T,H,d]      for gradients: what `o` is the gradient of (Q for dQ, K for dK)
    flow      [tiles,B*H,T]  for gradients: rowsum(cross * x), what passes between a token and the state; summands of dg
    states    [B*H,N,d,d]    for gradients: the state before every chunk; written on the way right, read on the way left
    crossed   [tiles,B*H,N]  for gradients: carry * sum(h_in * h_out'), what passes over a whole chunk; summand of dg
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
import triton
import triton.language as tl

from .chunk import blocks_in, carry, chunk_cross, chunk_intra, chunk_write, head_of, load_rows, load_state, store_state


# fmt: off
@triton.jit
def walk(
    q, k, v, g, lines, h_start, o, h_end, q_strides, k_strides, v_strides, g_strides,
    x, x_strides, flow, states, crossed,
    T, H, tiles: tl.constexpr, TRANSPOSED: tl.constexpr, REVERSE: tl.constexpr, GRADIENT: tl.constexpr,
):
    # fmt: on
    """One program: head bh of B*H, value columns column..column+BV, all chunks one after the other."""
    bh, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    b, head, d = bh // H, bh % H, tiles.d
    column = tile * tiles.BV
    N = tl.cdiv(T, tiles.C)
    q = head_of(q, q_strides, b, head, tiles)
    k = head_of(k, k_strides, b, head, tiles)
    v = head_of(v, v_strides, b, head, tiles)
    g += b * g_strides[0] + head * g_strides[2]
    o += (b * T * H + head) * d  # o is new and contiguous: [B,T,H,d]
    stride = (q_strides[1], k_strides[1], v_strides[1], g_strides[1])
    columns = column + tl.arange(0, tiles.BV)
    h = load_state(h_start + bh * d * d, column, tiles, TRANSPOSED)  # the state before the first chunk: [W,BV], ..

    for step in tl.range(N, disable_licm=True):
        n = N - 1 - step if REVERSE else step
        t0 = n * tiles.C
        left = T - t0
        before = tl.cast(t0, tl.int64)  # a sequence may have more than 2^31 numbers
        q_n, k_n, v_n = q + before * stride[0], k + before * stride[1], v + before * stride[2]
        g_n, o_n = g + before * stride[3], o + before * H * d
        lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(0).to(tl.int64) * N * tiles.C)
        if GRADIENT:
            if REVERSE:
                h_in = load_state(states + (bh * N + n) * d * d, column, tiles, TRANSPOSED)  # [W,BV], ..
                both = 0.0
                for i in tl.static_range(len(h)):
                    both += tl.sum(tl.sum(h[i] * h_in[i], 1), 0)
                tl.store(crossed + (tile * tl.num_programs(0) + bh) * N + n, carry(lines_n, tiles) * both)
            else:
                store_state(states + (bh * N + n) * d * d, h, column, tiles, TRANSPOSED)
        for r in tl.range(blocks_in(left, tiles), disable_licm=True):
            t = r * tiles.BC + tl.arange(0, tiles.BC)
            o_r = chunk_cross(q_n, h, stride, lines_n, r, left, tiles, REVERSE)
            if GRADIENT:
                x_n = head_of(x, x_strides, b, head, tiles) + before * x_strides[1]
                x_r = load_rows(x_n, x_strides[1], r * tiles.BC, left, column, tiles.BV, tiles)  # [BC,BV]
                tl.store(flow + (tile * tl.num_programs(0) + bh) * T + t0 + t, tl.sum(o_r * x_r, 1), mask=t < left)
            o_r = chunk_intra(o_r, q_n, k_n, v_n, g_n, stride, lines_n, r, left, column, tiles, REVERSE)
            inside = (t[:, None] < left) & (columns[None, :] < d)
            tl.store(o_n + t[:, None] * H * d + columns[None, :], o_r.to(o.dtype.element_ty), mask=inside)
        h = chunk_write(h, k_n, v_n, stride, lines_n, left, column, tiles, REVERSE)
    # Zero, but not for the compiler to know: it works out offsets anew here, and keeps none in registers all the way.
    column += tl.multiple_of(tl.maximum(T - N * tiles.C, 0), 16)
    store_state(h_end + bh * d * d, h, column, tiles, TRANSPOSED)
