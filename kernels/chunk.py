"""What both forms of the chunked state space do with one chunk: its decays, its output, its write, its part of dg.

`chunk_walk.py` calls these functions in a loop along the sequence, `chunk_parallel.py` once per chunk in separate programs.
Nothing here knows which of the two it serves: that is why they are the same computation.

What it computes, for a chunk of C tokens with the state h_in before it

    o     = (Q K^T * M) V + from_start * (Q h_in)        Eq. ssm-mask, Eq. ssm-intra, Eq. ssm-cross
    h_out = carry h_in + K^T (to_end * V)                Eq. ssm-state

One function, four uses. The backward pass (derived in pspin_lite/state_space.py) consists of the same two lines with the letters
exchanged; for dk and dv time runs backwards, so that M is transposed, from_start and to_end change places (REVERSE):

    result  "q"  "k"  "v"  "h"               REVERSE
    o       Q    K    V    h  from the left  no
    dQ      dO   V    K    h^T               no
    dV      K    Q    dO   h' from the right yes         h' = gradient of the state
    dK      V    dO   Q    h'^T              yes

Glossary
    name        shape       meaning
    q, k, v     [BC,A]+[BC,B]  rows of a block. A head's width d is held as two blocks of columns, A + B, both powers of two and
                            at least 16: 64 + 16 for d = 68 and 64 + 32 for d = 88, instead of one of 128. Columns past d are zero
    h           [A,BV]+[B,BV]  a tile of the state: all rows (keys), BV columns (values)
    G           [C]         log decays of the chunk, each in [-inf, 0]; zero past the end of the sequence
    M           [BC,BC]     one block of the decay mask; M[c,j] = what is left of token j at token c
    P           [BC,BC]     decayed scores, Q K^T * M
    tiles       Tiles       all these sizes
    C, BC       int         chunk length, block length: a chunk is worked on in C / BC blocks of rows, so that tiles stay small
    r, s        int         number of a block inside its chunk
    left        int         tokens from the chunk's first to the end of the sequence; what lies beyond is never loaded

Strong decay is exact. Every exponent is a sum of log decays, all <= 0, and nothing is ever subtracted: exp(-inf) is 0, there is no
inf - inf. Between two blocks the segment j+1..c is cut in three: the rest of j's block (`tail`), whole blocks in between
(`total`), the beginning of c's block (`head`).
"""

from __future__ import annotations

from . import runtime  # noqa: F401, I001  first: decides how kernels run before any is defined

from typing import NamedTuple

import triton
import triton.language as tl


class Tiles(NamedTuple):
    """How a chunk is cut up: known when a kernel is compiled."""

    d: int  # width of a head
    C: int  # tokens in a chunk
    BC: int  # tokens in a block
    A: int  # columns of a head in its first block
    B: int  # and in its second
    BV: int  # columns of values in one program
    aligned: int  # heads begin at multiples of this many elements: what a single load may bring


@triton.jit
def head_of(x, strides, b, head, tiles: tl.constexpr):
    """Where a head of batch entry b begins in x [B,T,H,d]."""
    return x + tl.multiple_of(b * strides[0] + head * strides[2], tiles.aligned)


@triton.jit
def load_rows(x, stride, first, left, column, W: tl.constexpr, tiles: tl.constexpr):
    """Rows first.., columns column.. of a head -> [BC,W]; zero past the sequence and past the width d."""
    t = first + tl.arange(0, tiles.BC)
    c = column + tl.arange(0, W)
    return tl.load(x + t[:, None] * stride + c[None, :], mask=(t[:, None] < left) & (c[None, :] < tiles.d), other=0.0)


@triton.jit
def load_heads(x, stride, first, left, tiles: tl.constexpr):
    """Rows first.., the whole width of a head -> [BC,A], [BC,B]."""
    return (
        load_rows(x, stride, first, left, 0, tiles.A, tiles),
        load_rows(x, stride, first, left, tiles.A, tiles.B, tiles),
    )


@triton.jit
def load_line(x, stride, first, left, W: tl.constexpr):
    """One number a token (a log decay, a flow) -> [W]; zero past the sequence."""
    t = first + tl.arange(0, W)
    return tl.load(x + t * stride, mask=t < left, other=0.0)


@triton.jit
def state_at(strides, row, W: tl.constexpr, column, tiles: tl.constexpr):
    """Offsets and mask of W rows, BV columns of a state. A state is read transposed by exchanging its strides."""
    i, c = row + tl.arange(0, W), column + tl.arange(0, tiles.BV)
    return i[:, None] * strides[0] + c[None, :] * strides[1], (i[:, None] < tiles.d) & (c[None, :] < tiles.d)


@triton.jit
def load_state(h, strides, column, tiles: tl.constexpr):
    """A tile of a state -> [A,BV], [B,BV]."""
    at_a, in_a = state_at(strides, 0, tiles.A, column, tiles)
    at_b, in_b = state_at(strides, tiles.A, tiles.B, column, tiles)
    return tl.load(h + at_a, mask=in_a, other=0.0), tl.load(h + at_b, mask=in_b, other=0.0)


@triton.jit
def store_state(h, tile, strides, column, tiles: tl.constexpr):
    at_a, in_a = state_at(strides, 0, tiles.A, column, tiles)
    at_b, in_b = state_at(strides, tiles.A, tiles.B, column, tiles)
    tl.store(h + at_a, tile[0], mask=in_a)
    tl.store(h + at_b, tile[1], mask=in_b)


@triton.jit
def scores(q, k):
    """[BC,A]+[BC,B] twice -> [BC,BC], every row of q with every row of k. "ieee": float32 stays float32, never TF32."""
    return tl.dot(q[1], tl.trans(k[1]), tl.dot(q[0], tl.trans(k[0]), input_precision="ieee"), input_precision="ieee")


@triton.jit
def head(g):
    """[BC] -> [BC]: log decay from before the block to token c, g_0 + ... + g_c."""
    return tl.cumsum(g, 0)


@triton.jit
def tail(g):
    """[BC] -> [BC]: log decay from token j to the end of the block, g_{j+1} + ... + g_last. Summed, not subtracted."""
    i = tl.arange(0, g.shape[0])
    return tl.sum(tl.where(i[None, :] > i[:, None], g[None, :], 0.0), 1)


@triton.jit
def reading(g, REVERSE: tl.constexpr):
    """Log decay between a row that reads and the edge of its block where the state comes in."""
    return tail(g) if REVERSE else head(g)


@triton.jit
def writing(g, REVERSE: tl.constexpr):
    """Log decay between a row that writes and the edge of its block where the state goes out."""
    return head(g) if REVERSE else tail(g)


@triton.jit
def total(G, first, end):
    """Sum over the tokens first..end-1 of the chunk: whole blocks."""
    i = tl.arange(0, G.shape[0])
    return tl.sum(tl.where((i >= first) & (i < end), G, 0.0), 0)


@triton.jit
def mask_within(g, REVERSE: tl.constexpr):
    """Eq. ssm-mask inside one block: [BC] -> [BC,BC]. Each column j (REVERSE: row j) adds up g_{j+1}..g_c by itself."""
    i = tl.arange(0, g.shape[0])
    if REVERSE:
        segment = tl.cumsum(tl.where(i[None, :] > i[:, None], g[None, :], 0.0), 1)  # [j,c]
        M = tl.where(i[None, :] >= i[:, None], tl.exp(segment), 0.0)
    else:
        segment = tl.cumsum(tl.where(i[:, None] > i[None, :], g[:, None], 0.0), 0)  # [c,j]
        M = tl.where(i[:, None] >= i[None, :], tl.exp(segment), 0.0)
    return M


@triton.jit
def mask_across(g_r, g_s, G, r, s, tiles: tl.constexpr, REVERSE: tl.constexpr):
    """Eq. ssm-mask between block r (rows, reading) and block s (columns, writing): [BC,BC]."""
    if REVERSE:
        between = total(G, (r + 1) * tiles.BC, s * tiles.BC)
    else:
        between = total(G, (s + 1) * tiles.BC, r * tiles.BC)
    return tl.exp((reading(g_r, REVERSE) + between)[:, None] + writing(g_s, REVERSE)[None, :])


@triton.jit
def chunk_output(q, k, v, g, stride, G, h, r, left, column, tiles: tl.constexpr, REVERSE: tl.constexpr):
    """Block r of a chunk's output -> intra [BC,BV], cross [BC,BV]. q, k, v, g point to the chunk's first token, and
    `stride` says how far apart tokens are in each of them."""
    first = r * tiles.BC
    q_r = load_heads(q, stride[0], first, left, tiles)  # queries of block r: [BC,A], [BC,B]
    g_r = load_line(g, stride[3], first, left, tiles.BC)  # its log decays: [BC]
    edge = total(G, first + tiles.BC, tiles.C) if REVERSE else total(G, 0, first)  # between the block and the state
    dtype = q_r[0].dtype  # 16-bit inputs meet 16-bit operands on the tensor cores; decays, sums and the state are float32
    cross = tl.dot(q_r[0], h[0].to(dtype), input_precision="ieee")
    cross = tl.dot(q_r[1], h[1].to(dtype), cross, input_precision="ieee")
    cross *= tl.exp(edge + reading(g_r, REVERSE))[:, None]  # Eq. ssm-cross

    k_r = load_heads(k, stride[1], first, left, tiles)  # keys of the same block: [BC,A], [BC,B]
    v_r = load_rows(v, stride[2], first, left, column, tiles.BV, tiles)  # values of the same block: [BC,BV]
    P = scores(q_r, k_r) * mask_within(g_r, REVERSE)
    intra = tl.dot(P.to(dtype), v_r, input_precision="ieee")  # Eq. ssm-intra
    if tiles.C > tiles.BC:
        for s in range(r + 1 if REVERSE else 0, tiles.C // tiles.BC if REVERSE else r):  # the blocks that block r reads
            k_s = load_heads(k, stride[1], s * tiles.BC, left, tiles)  # [BC,A], [BC,B]
            v_s = load_rows(v, stride[2], s * tiles.BC, left, column, tiles.BV, tiles)  # [BC,BV]
            g_s = load_line(g, stride[3], s * tiles.BC, left, tiles.BC)  # [BC]
            P = scores(q_r, k_s) * mask_across(g_r, g_s, G, r, s, tiles, REVERSE)
            intra = tl.dot(P.to(dtype), v_s, intra, input_precision="ieee")
    return intra, cross


@triton.jit
def chunk_write(h, k, v, g, stride, G, left, column, tiles: tl.constexpr, REVERSE: tl.constexpr):
    """Eq. ssm-state: a tile of the state before the chunk -> the same tile after it (REVERSE: the other way)."""
    carry = tl.exp(tl.sum(G, 0))
    h = (h[0] * carry, h[1] * carry)
    for s in range(tiles.C // tiles.BC):
        first = s * tiles.BC
        k_s = load_heads(k, stride[1], first, left, tiles)  # keys of block s: [BC,A], [BC,B]
        v_s = load_rows(v, stride[2], first, left, column, tiles.BV, tiles)  # its values: [BC,BV]
        g_s = load_line(g, stride[3], first, left, tiles.BC)  # its log decays: [BC]
        edge = total(G, 0, first) if REVERSE else total(G, first + tiles.BC, tiles.C)
        kept = (v_s * tl.exp(edge + writing(g_s, REVERSE))[:, None]).to(v_s.dtype)  # [BC,BV]
        h = (
            tl.dot(tl.trans(k_s[0]), kept, h[0], input_precision="ieee"),
            tl.dot(tl.trans(k_s[1]), kept, h[1], input_precision="ieee"),
        )
    return h
