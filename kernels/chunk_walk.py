"""The chunked state space as the paper runs it: one program a head and tile of value columns walks along the chunks
and keeps its tile of the state on chip.

What it computes, for every chunk in turn (Eq. ssm-intra, Eq. ssm-cross, Eq. ssm-state):

    o = chunk_cross(q, h) + chunk_intra(q, k, v)        h = chunk_write(h, k, v)

Glossary: chunk.py. The backward pass is that of both forms: chunk_gradients.py.
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
import triton
import triton.language as tl

from .chunk import blocks_in, chunk_cross, chunk_intra, chunk_write, head_of, load_state, store_rows, store_state


# fmt: off
@triton.jit
def walk(
    q, k, v, g, lines, h_start, o, h_end, q_strides, k_strides, v_strides, g_strides, T, H, tiles: tl.constexpr,
):
    # fmt: on
    """One program: head bh of B*H, a tile of value columns, all chunks one after the other."""
    bh = tl.program_id(0).to(tl.int64)
    b, head, d = bh // H, bh % H, tiles.d
    column = tl.program_id(1) * tiles.values[0][1]
    N = tl.cdiv(T, tiles.C)
    q = head_of(q, q_strides, b, head, tiles)
    k = head_of(k, k_strides, b, head, tiles)
    v = head_of(v, v_strides, b, head, tiles)
    g += b * g_strides[0] + head * g_strides[2]
    o += (b * T * H + head) * d  # o is new and contiguous: [B,T,H,d]
    stride = (q_strides[1], k_strides[1], v_strides[1], g_strides[1])
    h = load_state(h_start + bh * d * d, 0, column, tiles)  # the state before the first chunk: [W,BV], ..

    for n in tl.range(N, disable_licm=True):
        left = T - n * tiles.C
        before = tl.cast(n, tl.int64) * tiles.C  # a sequence may have more than 2^31 numbers
        q_n, k_n, v_n = q + before * stride[0], k + before * stride[1], v + before * stride[2]
        g_n, o_n = g + before * stride[3], o + before * H * d
        lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(0).to(tl.int64) * N * tiles.C)
        for r in tl.range(blocks_in(left, tiles), disable_licm=True):
            o_r = chunk_cross(q_n, h, stride, lines_n, r, left, tiles)
            o_r = chunk_intra(o_r, q_n, k_n, v_n, g_n, stride, lines_n, r, left, column, tiles)
            store_rows(o_n, o_r, H * d, r * tiles.BC, left, column, tiles)
        h = chunk_write(h, k_n, v_n, stride, lines_n, left, 0, column, tiles, False)
    # Zero, but not for the compiler to know: it works out offsets anew here, and keeps none in registers all the way.
    column += tl.multiple_of(tl.maximum(T - N * tiles.C, 0), 16)
    store_state(h_end + bh * d * d, h, 0, column, tiles)
