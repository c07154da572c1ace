"""The chunked state space with all chunks at once: at batch 1 with 8 heads, walking would leave most of a GPU idle.

What it computes, in three launches, with the very functions that `chunk_walk.walk` calls in its loop:

    chunk_states    all chunks at once    what every chunk writes                      Eq. ssm-state, its second term
    pass_states     along the chunks      h <- carry h + write, keeping every h        Eq. ssm-state
    chunk_outputs   all blocks at once    o from the chunk and the state before it     Eq. ssm-intra, Eq. ssm-cross

and `decay_gradient`, which serves both forms: all chunks are at hand by the time dg is collected.

Glossary: chunk.py, and the table there of how o, dQ, dV and dK are one computation; x, flow, crossed: chunk_walk.py.
Besides:

    name      shape          meaning
    states    [B*H,N,d,d]    first what every chunk writes; then, in place, the state before it (REVERSE: after it)
    h_in      [B*H,N,d,d]    when the gradients of the states are passed along: the states themselves
    W         [BC,BC]        dP * P: what g_i contributes to, wherever j < i <= c
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
import triton
import triton.language as tl

from .chunk import (
    blocks_in,
    carry,
    chunk_cross,
    chunk_intra,
    chunk_write,
    head_of,
    load_heads,
    load_line,
    load_rows,
    load_state,
    mask_across,
    mask_within,
    scores,
    store_state,
)


# fmt: off
@triton.jit
def chunk_states(
    k, v, lines, states, k_strides, v_strides, T, H, tiles: tl.constexpr, REVERSE: tl.constexpr,
):
    # fmt: on
    """One program: chunk n, value columns column.., head bh. Stores what the chunk adds to the state."""
    n, tile, bh = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    b, head, d, N = bh // H, bh % H, tiles.d, tl.num_programs(0)
    t0 = tl.cast(n, tl.int64) * tiles.C  # a sequence may have more than 2^31 numbers
    k_n = head_of(k, k_strides, b, head, tiles) + t0 * k_strides[1]
    v_n = head_of(v, v_strides, b, head, tiles) + t0 * v_strides[1]
    stride = (k_strides[1], k_strides[1], v_strides[1])
    lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(2).to(tl.int64) * N * tiles.C)
    h = ()
    for i in tl.static_range(len(tiles.widths)):
        h += (tl.full([tiles.widths[i], tiles.BV], 0.0, tl.float32),)
    h = chunk_write(h, k_n, v_n, stride, lines_n, (T - t0).to(tl.int32), tile * tiles.BV, tiles, REVERSE)
    store_state(states + (bh * N + n) * d * d, h, tile * tiles.BV, tiles, False)


# fmt: off
@triton.jit
def pass_states(
    states, lines, h_start, h_end, h_in, crossed, T, H, N,
    tiles: tl.constexpr, W: tl.constexpr, REVERSE: tl.constexpr,
):
    # fmt: on
    """One program: W of the d*d numbers of head bh's state, all chunks one after the other."""
    bh, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, size = tile * W + tl.arange(0, W), tiles.d * tiles.d
    inside = i < size
    h = tl.load(h_start + bh * size + i, mask=inside, other=0.0)  # the state to start from: [W]
    for step in range(N):
        n = N - 1 - step if REVERSE else step
        kept = carry((lines + (bh * N + n) * tiles.C, 0), tiles)
        at = (bh * N + n) * size + i
        write = tl.load(states + at, mask=inside, other=0.0)  # what chunk n adds: [W]
        tl.store(states + at, h, mask=inside)
        if REVERSE:
            before = tl.load(h_in + at, mask=inside, other=0.0)  # the state before chunk n: [W]
            tl.store(crossed + (tile * tl.num_programs(0) + bh) * N + n, kept * tl.sum(h * before, 0))
        h = kept * h + write  # Eq. ssm-state
    tl.store(h_end + bh * size + i, h, mask=inside)


# fmt: off
@triton.jit
def chunk_outputs(
    q, k, v, g, lines, states, o, q_strides, k_strides, v_strides, g_strides, x, x_strides, flow, T, H, N,
    tiles: tl.constexpr, TRANSPOSED: tl.constexpr, REVERSE: tl.constexpr, GRADIENT: tl.constexpr,
):
    # fmt: on
    """One program: block r of chunk n, value columns column.., head bh."""
    block, tile, bh = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    b, head, d = bh // H, bh % H, tiles.d
    n, r = block // (tiles.C // tiles.BC), block % (tiles.C // tiles.BC)
    t0, column = tl.cast(n, tl.int64) * tiles.C, tile * tiles.BV
    left = (T - t0).to(tl.int32)
    q_n = head_of(q, q_strides, b, head, tiles) + t0 * q_strides[1]
    k_n = head_of(k, k_strides, b, head, tiles) + t0 * k_strides[1]
    v_n = head_of(v, v_strides, b, head, tiles) + t0 * v_strides[1]
    g_n = g + b * g_strides[0] + head * g_strides[2] + t0 * g_strides[1]
    stride = (q_strides[1], k_strides[1], v_strides[1], g_strides[1])
    lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(2).to(tl.int64) * N * tiles.C)
    t, columns = r * tiles.BC + tl.arange(0, tiles.BC), column + tl.arange(0, tiles.BV)
    h = load_state(states + (bh * N + n) * d * d, column, tiles, TRANSPOSED)  # before the chunk: [W,BV], ..
    o_r = chunk_cross(q_n, h, stride, lines_n, r, left, tiles, REVERSE)
    if GRADIENT:
        x_n = head_of(x, x_strides, b, head, tiles) + t0 * x_strides[1]
        x_r = load_rows(x_n, x_strides[1], r * tiles.BC, left, column, tiles.BV, tiles)  # [BC,BV]
        tl.store(flow + (tile * tl.num_programs(2) + bh) * T + t0 + t, tl.sum(o_r * x_r, 1), mask=t < left)
    o_r = chunk_intra(o_r, q_n, k_n, v_n, g_n, stride, lines_n, r, left, column, tiles, REVERSE)
    o += ((b * T + t0) * H + head) * d  # o is new and contiguous: [B,T,H,d]
    inside = (t[:, None] < left) & (columns[None, :] < d)
    tl.store(o + t[:, None] * H * d + columns[None, :], o_r.to(o.dtype.element_ty), mask=inside)


@triton.jit
def weights(q, k, v, do, stride, r, s, left, tiles: tl.constexpr):
    """Block r of Q and dO with block s of K and V -> (Q K^T) * (dO V^T), [BC,BC]: W but for the decay."""
    q_r = load_heads(q, stride[0], r * tiles.BC, left, tiles)  # [BC,W], ..
    k_s = load_heads(k, stride[1], s * tiles.BC, left, tiles)  # [BC,W], ..
    S = scores(q_r, k_s, tiles)
    do_r = load_heads(do, stride[3], r * tiles.BC, left, tiles)  # [BC,W], ..
    v_s = load_heads(v, stride[2], s * tiles.BC, left, tiles)  # [BC,W], ..
    return S * scores(do_r, v_s, tiles)


# fmt: off
@triton.jit
def decay_gradient(
    q, k, v, do, g, lines, read, wrote, crossed, dg, q_strides, k_strides, v_strides, do_strides, g_strides,
    T, H, N, tiles: tl.constexpr,
):
    # fmt: on
    """One program: dg of block s of chunk n, head bh. g_i lies between any tokens j < i <= c, and dg_i is the sum of
    all that passes from such a j to such a c. Sorted by where j and c are, seen from the block. Sums only:
    nothing cancels, however strong the decay.

        j before, c inside    reads      summed over c >= i
        j inside, c after     writes     summed over j < i
        both inside           W          summed over j < i <= c
        j before, c after     carried    all of it
    """
    block, bh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    b, head, blocks = bh // H, bh % H, tiles.C // tiles.BC
    n, s = block // blocks, block % blocks
    t0, first = tl.cast(n, tl.int64) * tiles.C, s * tiles.BC
    left = (T - t0).to(tl.int32)
    q = head_of(q, q_strides, b, head, tiles) + t0 * q_strides[1]
    k = head_of(k, k_strides, b, head, tiles) + t0 * k_strides[1]
    v = head_of(v, v_strides, b, head, tiles) + t0 * v_strides[1]
    do = head_of(do, do_strides, b, head, tiles) + t0 * do_strides[1]
    g += b * g_strides[0] + head * g_strides[2] + t0 * g_strides[1]
    stride = (q_strides[1], k_strides[1], v_strides[1], do_strides[1])
    lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(1).to(tl.int64) * N * tiles.C)
    read += bh * T + t0
    wrote += bh * T + t0
    reads = load_line(read, 1, first, left, tiles.BC)  # from the state before the chunk: [BC]
    writes = load_line(wrote, 1, first, left, tiles.BC)  # to the state after the chunk: [BC]
    carried = tl.load(crossed + bh * N + n)  # over the whole chunk: one number
    if tiles.C > tiles.BC:
        t = tl.arange(0, tiles.C)
        carried += tl.sum(tl.where(t >= first + tiles.BC, load_line(read, 1, 0, left, tiles.C), 0.0), 0)
        carried += tl.sum(tl.where(t < first, load_line(wrote, 1, 0, left, tiles.C), 0.0), 0)
        for c in tl.range(s, blocks_in(left, tiles), disable_licm=True):
            for j in tl.range(0, s + 1, disable_licm=True):
                if c > j:
                    W = weights(q, k, v, do, stride, c, j, left, tiles) * mask_across(lines_n, c, j, tiles, False)
                    if c == s:
                        reads += tl.sum(W, 1)
                    elif j == s:
                        writes += tl.sum(W, 0)
                    else:
                        carried += tl.sum(tl.sum(W, 1), 0)

    i = tl.arange(0, tiles.BC)
    g_s = load_line(g, g_strides[1], first, left, tiles.BC)  # log decays of the block: [BC]
    W = weights(q, k, v, do, stride, s, s, left, tiles) * mask_within(g_s, False)
    up_to = tl.cumsum(W, 1)  # [c,m]: from all j <= m
    inside = tl.sum(tl.where(i[:, None] > i[None, :], up_to, 0.0), 0)  # [m]: to all c > m; this is what passes g_{m+1}
    gradient = carried + tl.sum(tl.where(i[None, :] == i[:, None] - 1, inside[None, :], 0.0), 1)
    gradient += tl.sum(tl.where(i[None, :] >= i[:, None], reads[None, :], 0.0), 1)
    gradient += tl.sum(tl.where(i[None, :] < i[:, None], writes[None, :], 0.0), 1)
    tl.store(dg + (b * T + t0 + first + i) * H + head, gradient, mask=first + i < left)
