"""The chunked state space with all chunks at once: at batch 1 with 8 heads, walking would leave most of a GPU idle.

What it computes, in two launches:

    pass_states    along the chunks     h <- carry h + K^T (to_end * V), keeping every h    Eq. ssm-state
    chunk_outputs  all chunks at once   o from the chunk and the state before it            Eq. ssm-intra, Eq. ssm-cross

One computation, four uses. The backward pass (derived in pspin_lite/state_space.py) consists of the same two lines
with the letters exchanged, and calls the same functions. For dV and dK time runs backwards: the scores are
transposed, and from_start and to_end swap. `outputs` makes every row of this table:

    result   a       y     x    h                       decay
    o        P       V     Q    h, from the left        from_start
    dQ       dA      K     dO   h^T                     from_start
    dV       P^T     dO    K    h', from the right      to_end         h' is the gradient of the state
    dK       dA^T    Q     V    h'^T                    to_end

Glossary: chunk.py. A chunk is a single block here, C = BC: 64 tokens at most, 16 in float32. Besides:

    name      shape          meaning
    states    [B*H,N,d,d]    the state before every chunk. REVERSE, with Q and dO for K and V: the gradient of the state
                             after every chunk. bfloat16 for bfloat16, to which products round it anyway, else float32
    flow      [BC]           rowsum(exp(log_decay) * (x h) * of), what passes between a token and the state
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
import triton
import triton.language as tl

from .chunk import (
    FROM_START,
    as_operand,
    chunk_of,
    chunk_write,
    head_of,
    load_heads,
    load_line,
    load_rows,
    load_state,
    load_sums,
    mask_within,
    multiply,
    scores,
    state_at,
    store_rows,
    store_state,
    this_chunk,
)


# fmt: off
@triton.jit
def outputs(
    x, h, log_decay, a, y, of, o, left, inner: tl.constexpr, outer: tl.constexpr, tiles: tl.constexpr,
    TRANSPOSED: tl.constexpr, GRADIENT: tl.constexpr,
):
    # fmt: on
    """A row of the table: stores o = a y + exp(log_decay) * (x h). `inner` are the blocks of columns of x, `outer`
    those of y and o, made one after the other, since all at once would not fit into registers. x, y, of, o: where the
    chunk begins and how far apart its tokens are. GRADIENT: -> flow [BC]."""
    flow = tl.full([tiles.BC], 0.0, tl.float32)
    for j in tl.static_range(len(outer)):
        if j == 0 or tiles.BC == 16:  # float32: again, since its products keep operands in registers
            parts = load_heads(x[0], x[1], 0, left, 0, inner, tiles)  # [BC,W], ..
        total = tl.full([tiles.BC, outer[j][1]], 0.0, tl.float32)
        for i in tl.static_range(len(inner)):
            if TRANSPOSED:
                at, inside = state_at(outer[j][0], outer[j][1], inner[i][0], inner[i][1], tiles)
                total = multiply(parts[i], tl.trans(tl.load(h + at, mask=inside, other=0.0)), total)
            else:
                at, inside = state_at(inner[i][0], inner[i][1], outer[j][0], outer[j][1], tiles)
                total = multiply(parts[i], tl.load(h + at, mask=inside, other=0.0), total)
        total *= tl.exp(log_decay)[:, None]  # Eq. ssm-cross
        if GRADIENT:
            of_j = load_rows(of[0], of[1], 0, left, outer[j][0], outer[j][1], tiles)
            flow += tl.sum(total * of_j, 1)
        y_j = load_rows(y[0], y[1], 0, left, outer[j][0], outer[j][1], tiles)
        store_rows(o[0], multiply(a, y_j, total), o[1], 0, left, outer[j][0], tiles)  # Eq. ssm-intra
    return flow


# fmt: off
@triton.jit
def pass_states(
    k, v, lines, h_start, h_end, states, k_strides, v_strides, T, H, N, tiles: tl.constexpr, REVERSE: tl.constexpr,
):
    # fmt: on
    """One program: a tile of head bh's state, kept on chip, all chunks one after the other."""
    bh, d = tl.program_id(0).to(tl.int64), tiles.d
    row, column = tl.program_id(1) * tiles.keys[0][1], tl.program_id(2) * tiles.values[0][1]
    k = head_of(k, k_strides, bh // H, bh % H, tiles)
    v = head_of(v, v_strides, bh // H, bh % H, tiles)
    stride = (k_strides[1], k_strides[1], v_strides[1])
    size = tl.num_programs(0).to(tl.int64) * N * tiles.C
    h = load_state(h_start + bh * d * d, row, column, tiles)  # the state to start from: [W,BV], ..
    for step in tl.range(N):
        n = N - 1 - step if REVERSE else step
        t0 = tl.cast(n, tl.int64) * tiles.C  # a sequence may have more than 2^31 numbers
        kept = [as_operand(x, k.dtype.element_ty) for x in h]  # only products read it
        store_state(states + (bh * N + n) * d * d, kept, row, column, tiles)
        k_n, v_n, left = k + t0 * k_strides[1], v + t0 * v_strides[1], (T - t0).to(tl.int32)
        lines_n = (lines + (bh * N + n) * tiles.C, size)
        h = chunk_write(h, k_n, v_n, stride, lines_n, left, row, column, tiles, REVERSE)  # Eq. ssm-state
    store_state(h_end + bh * d * d, h, row, column, tiles)


# fmt: off
@triton.jit
def chunk_outputs(
    q, k, v, g, lines, states, o, q_strides, k_strides, v_strides, g_strides, T, H, N, tiles: tl.constexpr,
):
    # fmt: on
    """One program: chunk n, head bh, all columns."""
    n, bh, b, head, t0, left = this_chunk(T, H, tiles)
    d = tiles.d
    q = chunk_of(q, q_strides, b, head, t0, tiles)
    k = chunk_of(k, k_strides, b, head, t0, tiles)
    v = chunk_of(v, v_strides, b, head, t0, tiles)
    g += b * g_strides[0] + head * g_strides[2] + t0 * g_strides[1]
    o += ((b * T + t0) * H + head) * d  # o is new and contiguous: [B,T,H,d]
    lines_n = (lines + (bh * N + n) * tiles.C, tl.num_programs(1).to(tl.int64) * N * tiles.C)
    q_n = load_heads(q, q_strides[1], 0, left, 0, tiles.keys, tiles)  # [BC,W], ..
    k_n = load_heads(k, k_strides[1], 0, left, 0, tiles.keys, tiles)  # [BC,W], ..
    P = scores(q_n, k_n, tiles) * mask_within(load_line(g, g_strides[1], 0, left, tiles.BC))
    P = as_operand(P, q.dtype.element_ty)
    from_start = load_sums(lines_n, FROM_START, 0, tiles)  # [BC]
    keys: tl.constexpr = tiles.keys
    values: tl.constexpr = tiles.values
    q, v, o = (q, q_strides[1]), (v, v_strides[1]), (o, H * d)
    outputs(q, states + (bh * N + n) * d * d, from_start, P, v, v, o, left, keys, values, tiles, False, False)
