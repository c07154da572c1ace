"""Products with a packed ternary matrix: two bits a weight are read from memory and become -1, 0 or 1 on chip.

    product      Y = X (C s)^T    [n, in]  x [out, in]^T -> [n, out]       a layer, forward
    transposed   X = Y (C s)      [n, out] x [out, in]   -> [n, in]        the same layer, backward

Glossary
    name     shape                 paper    meaning
    codes    [out, row_bytes]      W^Q / s  uint8, four codes a byte along `in`, the first in the lowest bits:
                                            00 is -1, 01 is 0, 10 is 1 (Eq. ternary-round, packed)
    scale    [1] float32           s        one for the whole matrix (Eq. ternary-scale), applied after the sum
    x, y     [n, in], [n, out]              float32, float16 or bfloat16; sums are float32 in any case
    BM BN BK                                rows, output columns and summed columns of one program's tiles

A row of codes is filled up to a multiple of 16 bytes with zeros (byte 0x55: four times code 0), so that 64 codes are
one load of 128 bits. The codes beyond `in` meet zeros of x, whatever they hold.
"""

from __future__ import annotations

from . import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

from math import prod

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime import KernelInterface

FOUR_ZEROS = 0x55  # four codes 01
DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}  # and Triton's names for them


@triton.jit
def number(bits, dtype: tl.constexpr, at: tl.constexpr = 0):
    """Two bits, at this place in a word, all others 0 -> -1, 0 or 1, without a conversion (slow on GPUs): as digits of
    a large power of two. bfloat16 has seven digits, so `at` is 4 at most."""
    if dtype == tl.float32:
        power: tl.constexpr = 0x4B000000 - (at << 23)  # 2^23, if `at` is 0
        return (bits.to(tl.int32) | power).to(tl.float32, bitcast=True) - (2.0 ** (23 - at) + 1)
    elif dtype == tl.float16:
        power: tl.constexpr = 0x6400 - (at << 10)  # 2^10
        return (bits.to(tl.int16) | power).to(tl.float16, bitcast=True) - (2.0 ** (10 - at) + 1)
    else:
        power: tl.constexpr = 0x4300 - (at << 7)  # 2^7
        return (bits.to(tl.int16) | power).to(tl.bfloat16, bitcast=True) - (2.0 ** (7 - at) + 1)


@triton.jit
def unpack(four, dtype: tl.constexpr):
    """Bytes [R, C] -> codes [R, 4*C] in `dtype`, each -1, 0 or 1."""
    even = tl.interleave(number(four & 3, dtype), number((four >> 4) & 3, dtype))  # codes 0, 2 of every byte
    odd = tl.interleave(number((four >> 2) & 3, dtype), number((four >> 6) & 3, dtype))  # codes 1, 3
    return tl.interleave(even, odd)


@triton.jit
def load_codes(codes, rows, out, start, row_bytes, BYTES: tl.constexpr, dtype: tl.constexpr):
    """Codes [len(rows), 4*BYTES] of the given rows, from byte `start` of each; zeros outside the matrix."""
    bytes_ = start + tl.arange(0, BYTES)
    inside = (rows[:, None] < out) & (bytes_[None, :] < row_bytes)
    four = tl.load(codes + rows[:, None] * row_bytes + bytes_[None, :], mask=inside, other=0x55)  # codes [R, BYTES]
    return unpack(four, dtype)


@triton.jit
def load_words(codes, rows, out, first, row_bytes, WORDS: tl.constexpr):
    """Codes as they are stored, eight a word of 16 bits: [len(rows), WORDS], from code `first` (of a word's) on."""
    words, row_words = first // 8 + tl.arange(0, WORDS), row_bytes // 2
    inside = (rows[:, None] < out) & (words[None, :] < row_words)
    at = codes.to(tl.pointer_type(tl.int16)) + rows[:, None] * row_words + words[None, :]
    return tl.load(at, mask=inside, other=0x5555)  # codes [R, WORDS]


@triton.jit
def code(words, i: tl.constexpr, dtype: tl.constexpr):
    """The i-th code of every word. Not each of them is shifted: three fit into the digits of a bfloat16."""
    at: tl.constexpr = i % 3 * 2
    return number((words >> (2 * i - at)) & (3 << at), dtype, at)


@triton.jit
def no_products(BM: tl.constexpr, BN: tl.constexpr, dtype: tl.constexpr):
    """Where `add_product` begins: one tile [BM, BN], or for 16 bits eight tiles [BM, BN/8], of every eighth column."""
    if dtype == tl.float32:
        totals = (tl.zeros((BM, BN), tl.float32),)
    else:
        totals = ()
        for _ in tl.static_range(8):
            totals += (tl.zeros((BM, BN // 8), tl.float32),)
    return totals


@triton.jit
def add_product(totals, a, codes, rows, out, first, row_bytes, BN: tl.constexpr):
    """totals + a [BM, BK] times codes [BK, BN]. A tensor core wants codes of one column side by side, and memory has
    those of one row. Words turn on their way through shared memory, as numbers of 16 bits do and bytes do not. Then
    each place in a word makes a tile of its own, so that codes stay with the thread that loaded them."""
    if a.dtype == tl.float32:
        b = load_codes(codes, rows, out, first // 4, row_bytes, BN // 4, a.dtype)
        new = (tl.dot(a, b, totals[0], input_precision="ieee"),)
    else:
        words = load_words(codes, rows, out, first, row_bytes, BN // 8)
        new = ()
        for i in tl.static_range(8):
            new += (tl.dot(a, code(words, i, a.dtype), totals[i]),)
    return new


@triton.jit
def in_order(x):
    """What `add_product` has added up -> [BM, BN]."""
    total = x[0]
    if len(x) == 8:
        even = tl.interleave(tl.interleave(x[0], x[4]), tl.interleave(x[2], x[6]))
        odd = tl.interleave(tl.interleave(x[1], x[5]), tl.interleave(x[3], x[7]))
        total = tl.interleave(even, odd)
    return total


# fmt: off
@triton.jit
def product_kernel(
    x, codes, scale, y, n, K, N, x_stride, y_stride, row_bytes,
    TRANSPOSED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # fmt: on
    """One tile of Y = X (C s)^T: K, summed over, is `in`, and N is `out`. TRANSPOSED: of Y = X (C s), the other way."""
    first = tl.program_id(0).to(tl.int64) * BM
    x += first * x_stride
    y += first * y_stride
    rows, cols = tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    real = (first + rows < n)[:, None]
    totals = no_products(BM, BN, x.dtype.element_ty if TRANSPOSED else tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        a = tl.load(x + rows[:, None] * x_stride + ks[None, :], mask=real & (ks < K)[None, :], other=0.0)  # x [BM, BK]
        if TRANSPOSED:
            totals = add_product(totals, a, codes, ks, K, tl.program_id(1) * BN, row_bytes, BN)  # codes [BK, BN]
        else:
            b = tl.trans(load_codes(codes, cols, N, k // 4, row_bytes, BK // 4, a.dtype))  # codes [BN, BK], turned
            totals = (tl.dot(a, b, totals[0], input_precision="ieee"),)
    total = in_order(totals)
    total = total * tl.load(scale)  # s, a scalar
    inside = real & (cols < N)[None, :]
    tl.store(y + rows[:, None] * y_stride + cols[None, :], total.to(y.dtype.element_ty), mask=inside)


def pack(codes: Tensor) -> Tensor:
    """Codes [out, in] of any dtype, each -1, 0 or 1 -> uint8 [out, row_bytes], filled up to a multiple of 16 bytes.

    No check, and so no wait for the device. The first ceil(in/4) bytes of a row are the usual ones, without padding."""
    padded = torch.nn.functional.pad((codes + 1).to(torch.uint8), (0, -codes.shape[-1] % 64), value=1)
    fours = padded.unflatten(-1, (-1, 4))
    return fours[..., 0] | fours[..., 1] << 2 | fours[..., 2] << 4 | fours[..., 3] << 6


def aligned(packed: Tensor) -> Tensor:
    """Packed rows with no padding, or with any -> contiguous rows of a multiple of 16 bytes."""
    packed = torch.nn.functional.pad(packed, (0, -packed.shape[-1] % 16), value=FOUR_ZEROS)
    return packed.contiguous()


def product(x: Tensor, packed: Tensor, scale: Tensor) -> Tensor:
    """x [n, in], packed [out, ceil(in/4) or more], scale -> x (codes * scale)^T, [n, out] in x's dtype."""
    return _launch(x, packed, scale, x.shape[1], packed.shape[0], False)


def transposed(x: Tensor, packed: Tensor, scale: Tensor, width: int) -> Tensor:
    """x [n, out], packed [out, ..] of a matrix with `width` columns -> x (codes * scale), [n, width] in x's dtype."""
    return _launch(x, packed, scale, packed.shape[0], width, True)


def _launch(x: Tensor, packed: Tensor, scale: Tensor, K: int, N: int, turned: bool) -> Tensor:
    if x.dtype not in DTYPES:
        raise ValueError(f"x: got {x.dtype}, expected one of {', '.join(map(str, DTYPES))}")
    if x.shape[1] != K:
        raise ValueError(f"x: got {x.shape[1]} columns, expected {K}, the rows of packed")
    width = N if turned else K
    if not 4 * packed.shape[1] >= width:
        raise ValueError(f"packed: got {packed.shape[1]} bytes a row, expected at least {triton.cdiv(width, 4)}")
    x = x if x.stride(1) == 1 else x.contiguous()
    packed, scale, n = aligned(packed), scale.reshape(1).float(), len(x)
    y = x.new_empty(n, N)
    tile = tiles(n, x.dtype, turned)
    with torch.cuda.device_of(x):
        sizes = (n, K, N, x.stride(0), N, packed.shape[1])
        product_kernel[grid(n, N, tile)](x, packed, scale, y, *sizes, TRANSPOSED=turned, **tile)
    return y


def tiles(n: int, dtype: torch.dtype, turned: bool = False) -> dict[str, int]:
    """Sizes of the tiles for n rows. A few rows (decoding) get the least that a tensor core takes: turned, that is 16
    columns for each of the eight products of `add_product` (gfx942)."""
    rows = 16 if n <= 16 else 64
    if dtype == torch.float32:
        return dict(BM=min(rows, 32), BN=64, BK=16, num_warps=4, num_stages=2)
    return dict(BM=rows, BN=128 if turned and rows == 16 else 64, BK=64, num_warps=4, num_stages=3)


def grid(n: int, columns: int, tile: dict[str, int]) -> tuple[int, int]:
    """Programs: tiles of rows, tiles of columns."""
    return triton.cdiv(n, tile["BM"]), triton.cdiv(columns, tile["BN"])


def specimens(n: int, width: int, out: int, dtype: torch.dtype) -> list[dict]:
    """What to compile, and what it costs, for x [n, width] and a matrix [out, width]. bytes: every tensor once."""
    p, size = "*" + DTYPES[dtype], dtype.itemsize
    row_bytes = triton.cdiv(width, 64) * 16
    pointers = dict(x=p, codes="*u8", scale="*fp32", y=p)
    cost = dict(bytes=n * (width + out) * size + out * row_bytes, flops=2 * n * width * out)
    result = []
    for name, turned, K, N in (("product", False, width, out), ("transposed", True, out, width)):
        sizes = integers(n=n, K=K, N=N, x_stride=K, y_stride=N, row_bytes=row_bytes)
        tile = tiles(n, dtype, turned)
        how = tile | dict(TRANSPOSED=turned)
        result.append(specimen(f"ternary {name}", product_kernel, pointers | sizes, how, grid(n, N, tile), **cost))
    return result


def integers(**values: int) -> dict[str, str]:
    """Types of integer arguments, as a launch tells them to the compiler: ":16" for a multiple of 16."""
    return {name: "i32:16" if value % 16 == 0 else "i32" for name, value in values.items()}


def specimen(
    name: str, kernel: KernelInterface, signature: dict[str, str], tile: dict, grid: tuple[int, ...], **cost: int
) -> dict:
    """One entry of `specimens`. tile: constexprs, and how to launch."""
    launch = {key: tile[key] for key in ("num_warps", "num_stages") if key in tile}
    constexprs = {key: value for key, value in tile.items() if key not in launch}
    return (
        dict(name=name, kernel=kernel, signature=signature, constexprs=constexprs, programs=prod(grid)) | launch | cost
    )
