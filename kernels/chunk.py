"""What all state-space kernels do with a chunk: loading, its decays, its scores, its output, its write.

What it computes, for a chunk of C tokens with the state h_in before it

    o     = (Q K^T * M) V + from_start * (Q h_in)        Eq. ssm-mask, Eq. ssm-intra, Eq. ssm-cross
    h_out = carry h_in + K^T (to_end * V)                Eq. ssm-state

Glossary
    name     shape           meaning
    q, k, v  [BC,W], ..      rows of a block. A head's width d is held as blocks of W columns, W a power of two
                             from 16 on: 64 + 16 for d = 68, 64 + 32 for d = 88 (not 128). Zeros past d
    h        [W,BV], ..      a tile of the state: blocks of its rows (keys), BV of its columns (values)
    g        [BC]            log decays, each in [-inf, 0]; zero past the end of the sequence
    lines    [4,B*H,N*C]     log decays added up, see `sum_decays`; two lines where a chunk is a single block
    M        [BC,BC]         one block of the decay mask; M[c,j] = what is left of token j at token c
    P        [BC,BC]         decayed scores, Q K^T * M
    C, BC    int             tokens in a chunk, in a block: `walk` works in C / BC blocks, to keep tiles small
    r, s     int             numbers of blocks inside the chunk
    left     int             tokens from the chunk's first to the end of the sequence; nothing beyond is loaded
    tiles    Tiles           all these sizes

Strong decay is exact. Every exponent is a sum of log decays, all <= 0, and nothing is ever subtracted: exp(-inf) is 0,
there is no inf - inf. Between two blocks the segment j+1..c is cut in three: the rest of j's block (TAIL), whole blocks
in between, the beginning of c's block (HEAD).
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
from typing import NamedTuple

import triton
import triton.language as tl

FROM_START, TO_END, HEAD, TAIL = (tl.constexpr(i) for i in range(4))  # the four lines of `lines`


class Tiles(NamedTuple):
    """How one kernel cuts up a chunk: known when it is compiled."""

    d: int  # width of a head
    C: int  # tokens in a chunk
    BC: int  # tokens in a block
    keys: tuple[tuple[int, int], ...]  # blocks of columns of q and k, rows of a state: where each begins, its width W
    values: tuple[tuple[int, int], ...]  # blocks of columns of v and o, of a state
    each: int  # elements that one load may bring: tokens, heads and batch entries begin at multiples of it


@triton.jit
def blocks_in(left, tiles: tl.constexpr):
    """Blocks of a chunk that have any tokens."""
    return tl.minimum(tl.cdiv(left, tiles.BC), tiles.C // tiles.BC)


@triton.jit
def head_of(x, strides, b, head, tiles: tl.constexpr):
    """Where a head of batch entry b begins in x [B,T,H,d]."""
    each: tl.constexpr = tiles.each
    return x + tl.multiple_of(b * strides[0] + head * strides[2], each)


@triton.jit
def chunk_of(x, strides, b, head, t0, tiles: tl.constexpr):
    """The same for the chunk that begins with token t0."""
    return head_of(x, strides, b, head, tiles) + t0 * strides[1]


@triton.jit
def this_chunk(T, H, tiles: tl.constexpr):
    """Of a program for each chunk of each head: chunk n, head bh = (b, head), its first token, `left`."""
    n, bh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    t0 = tl.cast(n, tl.int64) * tiles.C  # a sequence may have more than 2^31 numbers
    return n, bh, bh // H, bh % H, t0, (T - t0).to(tl.int32)


@triton.jit
def load_rows(x, stride, first, left, column, W: tl.constexpr, tiles: tl.constexpr, KEEP: tl.constexpr = ""):
    """Rows first.., columns column.. of a head -> [BC,W]; zero past the sequence and the width."""
    each: tl.constexpr = tiles.each
    t, c = first + tl.arange(0, tiles.BC), column + tl.arange(0, W)
    inside = (t[:, None] < left) & (c[None, :] < tiles.d)
    at = tl.multiple_of(t[:, None] * stride, (each, each))
    return tl.load(x + at + c[None, :], mask=inside, other=0.0, eviction_policy=KEEP)


@triton.jit
def load_heads(
    x, stride, first, left, column, blocks: tl.constexpr, tiles: tl.constexpr, KEEP: tl.constexpr = ""
):  # fmt: skip
    """The same for each of the blocks of columns -> [BC,W], .."""
    parts = ()
    for i in tl.static_range(len(blocks)):
        parts += (load_rows(x, stride, first, left, column + blocks[i][0], blocks[i][1], tiles, KEEP),)
    return parts


@triton.jit
def store_rows(x, part, stride, first, left, column, tiles: tl.constexpr):
    t, c = first + tl.arange(0, tiles.BC), column + tl.arange(0, part.shape[1])
    inside = (t[:, None] < left) & (c[None, :] < tiles.d)
    tl.store(x + t[:, None] * stride + c[None, :], part.to(x.dtype.element_ty), mask=inside)


@triton.jit
def load_line(x, stride, first, left, W: tl.constexpr):
    """One number a token (a decay, a flow) -> [W]; zero past the sequence."""
    t = first + tl.arange(0, W)
    return tl.load(x + t * stride, mask=t < left, other=0.0)


@triton.jit
def state_at(row, rows: tl.constexpr, column, columns: tl.constexpr, tiles: tl.constexpr):
    """Offsets and mask of one block of a state [d,d]."""
    r, c = row + tl.arange(0, rows)[:, None], column + tl.arange(0, columns)[None, :]
    return r * tiles.d + c, (r < tiles.d) & (c < tiles.d)


@triton.jit
def state_block(i: tl.constexpr, row, column, tiles: tl.constexpr):
    """The same for block i of a tile, keys from `row` and values from `column` on, a row of blocks after the other."""
    key: tl.constexpr = i // len(tiles.values)
    value: tl.constexpr = i % len(tiles.values)
    first_row, first_column = row + tiles.keys[key][0], column + tiles.values[value][0]
    return state_at(first_row, tiles.keys[key][1], first_column, tiles.values[value][1], tiles)


@triton.jit
def load_state(h, row, column, tiles: tl.constexpr):
    """A tile of a state -> [W,W], .., its blocks."""
    parts = ()
    for i in tl.static_range(len(tiles.keys) * len(tiles.values)):
        at, inside = state_block(i, row, column, tiles)
        parts += (tl.load(h + at, mask=inside, other=0.0),)
    return parts


@triton.jit
def store_state(h, parts, row, column, tiles: tl.constexpr):
    for i in tl.static_range(len(parts)):
        at, inside = state_block(i, row, column, tiles)
        tl.store(h + at, parts[i].to(h.dtype.element_ty), mask=inside)


@triton.jit
def sum_decays(g, lines, g_strides, T, H, N, tiles: tl.constexpr):
    """One program: the log decays of chunk n of head bh, added up once for all kernels that follow. For every token c:

    FROM_START  g_0 + ... + g_c over the chunk       HEAD  the same over c's block only
    TO_END      g_{c+1} + ... + g_last of the chunk  TAIL  the same over c's block only
    """
    _, bh, b, head, t0, left = this_chunk(T, H, tiles)
    g += b * g_strides[0] + head * g_strides[2] + t0 * g_strides[1]
    lines += bh * N * tiles.C + t0
    size = tl.num_programs(1).to(tl.int64) * N * tiles.C
    c = tl.arange(0, tiles.C)
    here = load_line(g, g_strides[1], 0, left, tiles.C)  # g_c: [C]
    after = tl.load(g + (c + 1) * g_strides[1], mask=(c + 1 < left) & (c + 1 < tiles.C), other=0.0)  # g_{c+1}: [C]
    tl.store(lines + FROM_START * size + c, tl.cumsum(here, 0))
    tl.store(lines + TO_END * size + c, tl.cumsum(after, 0, reverse=True))
    if tiles.C > tiles.BC:
        rest = tl.where(c % tiles.BC < tiles.BC - 1, after, 0.0)
        blocks: tl.constexpr = tiles.C // tiles.BC
        at = tl.arange(0, blocks)[:, None] * tiles.BC + tl.arange(0, tiles.BC)[None, :]
        tl.store(lines + HEAD * size + at, tl.cumsum(tl.reshape(here, [blocks, tiles.BC]), 1))
        tl.store(lines + TAIL * size + at, tl.cumsum(tl.reshape(rest, [blocks, tiles.BC]), 1, reverse=True))


@triton.jit
def load_sums(lines, line: tl.constexpr, first, tiles: tl.constexpr):
    """One of the four lines, from token `first` of the chunk on -> [BC]. `lines`: the chunk's place, a line's size."""
    return tl.load(lines[0] + line * lines[1] + first + tl.arange(0, tiles.BC))


@triton.jit
def carry(lines, tiles: tl.constexpr):
    """What is left at the chunk's end of the state before it: one number."""
    return tl.exp(tl.load(lines[0] + FROM_START * lines[1] + tiles.C - 1))


@triton.jit
def mask_within(g):
    """Eq. ssm-mask inside one block: [BC] -> [BC,BC]. Each column j adds up g_{j+1}..g_c by itself."""
    i = tl.arange(0, g.shape[0])
    segment = tl.cumsum(tl.where(i[:, None] > i[None, :], g[:, None], 0.0), 0)  # [c,j]
    return tl.where(i[:, None] >= i[None, :], tl.exp(segment), 0.0)


@triton.jit
def mask_across(lines, r, s, tiles: tl.constexpr):
    """Eq. ssm-mask between block r (rows, reading) and an earlier block s (columns, writing): [BC,BC]."""
    block = tl.arange(0, tiles.C // tiles.BC)
    at = block * tiles.BC + tiles.BC - 1
    sums = tl.load(lines[0] + HEAD * lines[1] + at)  # log decay of each whole block: [C/BC]
    between = tl.sum(tl.where((block > s) & (block < r), sums, 0.0), 0)
    reading = load_sums(lines, HEAD, r * tiles.BC, tiles)  # [BC]
    writing = load_sums(lines, TAIL, s * tiles.BC, tiles)  # [BC]
    return tl.exp((reading + between)[:, None] + writing[None, :])


@triton.jit
def multiply(a, b, total):
    """a b + total, in float32. An operand computed here is float32 where inputs have 16 bits. bfloat16 has the same
    range: it is rounded. float16 ends at 65504, which a state or a score may exceed: TF32 products have float16's ten
    bits and float32's range. They cut the other bits off, for which `as_operand` prepares a number."""
    if a.dtype == b.dtype:
        total = tl.dot(a, b, total, input_precision="ieee")
    elif a.dtype == tl.bfloat16 or b.dtype == tl.bfloat16:
        total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
    else:
        total = tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="tf32")
    return total


@triton.jit
def as_operand(x, dtype: tl.constexpr):
    """A float32 x as `multiply` takes it beside factors of this dtype: bfloat16 if that is bfloat16, to keep fewer
    registers. For float16, enlarged by a third of TF32's last digit, so that cutting off rounds: the error of a number
    is 2/3 of that digit at most, where it was a whole one and always towards zero. Infinities and nan stay."""
    if dtype == tl.bfloat16:
        x = x.to(tl.bfloat16)
    elif dtype == tl.float16:
        x = x * (1 + 2.0**-10 / 3)
    return x


@triton.jit
def scores(q, k, tiles: tl.constexpr):
    """[BC,W].. twice -> [BC,BC], every row of q with every row of k."""
    S = tl.full([tiles.BC, tiles.BC], 0.0, tl.float32)
    for i in tl.static_range(len(q)):
        S = multiply(q[i], tl.trans(k[i]), S)
    return S


@triton.jit
def chunk_cross(q, h, stride, lines, r, left, tiles: tl.constexpr):
    """Eq. ssm-cross: what block r reads from the state -> [BC,BV]. Here and below, q, k, v, g point to the chunk's
    first token, and `stride` says how far apart tokens are in each of them."""
    q_r = load_heads(q, stride[0], r * tiles.BC, left, 0, tiles.keys, tiles, "evict_last")  # queries of block r
    o = tl.full([tiles.BC, tiles.values[0][1]], 0.0, tl.float32)
    for i in tl.static_range(len(h)):
        o = multiply(q_r[i], as_operand(h[i], q.dtype.element_ty), o)
    return o * tl.exp(load_sums(lines, FROM_START, r * tiles.BC, tiles))[:, None]


@triton.jit
def chunk_intra(o, q, k, v, g, stride, lines, r, left, column, tiles: tl.constexpr):
    """Eq. ssm-intra: adds to o [BC,BV] what block r reads from its own chunk."""
    BV: tl.constexpr = tiles.values[0][1]
    if tiles.C > tiles.BC:
        for s in tl.range(0, r, disable_licm=True):  # whole blocks before r
            q_r = load_heads(q, stride[0], r * tiles.BC, left, 0, tiles.keys, tiles)  # again: saves registers
            k_s = load_heads(k, stride[1], s * tiles.BC, left, 0, tiles.keys, tiles)  # keys of block s: [BC,W], ..
            P = scores(q_r, k_s, tiles) * mask_across(lines, r, s, tiles)
            v_s = load_rows(v, stride[2], s * tiles.BC, left, column, BV, tiles)  # its values: [BC,BV]
            o = multiply(as_operand(P, q.dtype.element_ty), v_s, o)
    q_r = load_heads(q, stride[0], r * tiles.BC, left, 0, tiles.keys, tiles)  # queries of block r: [BC,W], ..
    k_r = load_heads(k, stride[1], r * tiles.BC, left, 0, tiles.keys, tiles)  # keys of block r itself: [BC,W], ..
    g_r = load_line(g, stride[3], r * tiles.BC, left, tiles.BC)  # its log decays: [BC]
    P = scores(q_r, k_r, tiles) * mask_within(g_r)
    v_r = load_rows(v, stride[2], r * tiles.BC, left, column, BV, tiles)  # its values: [BC,BV]
    return multiply(as_operand(P, q.dtype.element_ty), v_r, o)


@triton.jit
def chunk_write(h, k, v, stride, lines, left, row, column, tiles: tl.constexpr, REVERSE: tl.constexpr):
    """Eq. ssm-state: a tile of the state before the chunk -> the same tile after it (REVERSE: the other way)."""
    kept = carry(lines, tiles)
    h = [x * kept for x in h]
    for s in tl.range(tiles.C // tiles.BC, disable_licm=True):
        k_s = load_heads(k, stride[1], s * tiles.BC, left, row, tiles.keys, tiles)  # keys of block s: [BC,W], ..
        v_s = load_rows(v, stride[2], s * tiles.BC, left, column, tiles.values[0][1], tiles)  # its values: [BC,BV]
        decay = tl.exp(load_sums(lines, FROM_START if REVERSE else TO_END, s * tiles.BC, tiles))  # [BC]
        v_s = (v_s * decay[:, None]).to(v_s.dtype)  # no larger than before: it fits
        new = ()
        for i in tl.static_range(len(h)):
            new += (multiply(tl.trans(k_s[i]), v_s, h[i]),)
        h = new
    return h
