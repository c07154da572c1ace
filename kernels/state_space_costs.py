"""How every state-space kernel is launched at the paper's shapes, and what a launch costs: for `pspin_lite kernels`.

Nothing is launched: the functions of state_space.py run on tensors without memory, and their launches are noted.

    bytes   every tensor once, as if each number travelled once
    flops   of the matrix products that are done, a multiplication and an addition each, columns of padding included

A chunk has b = C / BC blocks, one in all kernels but `walk`, and each of these products so many times (K columns of
keys, V of values):

    reading the state      2 BC K V     b               `chunk_gradients`: three times
    writing the state      2 BC K V     b
    scores                 2 BC BC K    b (b + 1) / 2   every block with itself and all before it
    scores times values    2 BC BC V    b (b + 1) / 2
    gradients              10 BC BC K   1               scores, their gradient, and a product for each of dq, dk and dv
    dg                     2 BC BC BC   1               a product with a triangle of ones
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .chunk import Tiles, sum_decays
from .chunk_gradients import chunk_gradients, decay_gradient
from .chunk_parallel import chunk_outputs, pass_states
from .chunk_walk import walk
from .state_space import Launcher, _rows, backward, block, forward, options

if TYPE_CHECKING:
    from triton.runtime import KernelInterface

POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}


class _Recorder(Launcher):
    """Notes launches instead of making them."""

    def __init__(self, *arguments: Any):
        self.noted: list[tuple[KernelInterface, dict, dict]] = []
        super().__init__(*arguments)

    def run(self, kernel: KernelInterface, grid: tuple[int, ...], **arguments: Any) -> None:
        tiles = arguments["tiles"]
        cost = dict(bytes=moved(arguments), flops=arithmetic(kernel, self, tiles), padded=padding(tiles))
        launched = dict(programs=prod(grid)) | options(kernel, tiles)
        self.noted.append((kernel, dict(T=self.T, H=self.H) | arguments, launched | cost))


def moved(arguments: dict) -> int:
    tensors = {id(x): x for x in arguments.values() if isinstance(x, Tensor)}
    return sum(x.numel() * x.element_size() for x in tensors.values())


def arithmetic(kernel: KernelInterface, launch: Launcher, tiles: Tiles) -> int:
    b, K, V = tiles.C // tiles.BC, width(tiles.keys, tiles.d), width(tiles.values, tiles.d)
    state = 2 * tiles.C * K * V  # of one chunk, reading or writing
    square, pairs = 2 * tiles.BC**2, b * (b + 1) // 2
    programs = V // tiles.values[0][1] if kernel is walk else 1  # each of them makes all the scores
    intra = square * pairs * (programs * K + V)
    each = {
        walk: 2 * state + intra,
        chunk_outputs: state + intra,
        pass_states: state,
        chunk_gradients: 3 * state + square * (5 * K + tiles.BC),
        decay_gradient: 2 * tiles.C,  # no products: running sums
        sum_decays: 2 * tiles.C,
    }
    return launch.heads * launch.N * each[kernel]


def width(blocks: tuple[tuple[int, int], ...], d: int) -> int:
    """Columns of a head that are computed with, over all programs that share them."""
    tile = sum(width for _, width in blocks)
    return -(-d // tile) * tile


def padding(tiles: Tiles) -> int:
    """Those that are thrown away, of keys and of values."""
    return width(tiles.keys, tiles.d) + width(tiles.values, tiles.d) - 2 * tiles.d


def specimens(d: int, chunk: int, dtype: torch.dtype) -> list[dict]:
    """Launches at the paper's shapes (byte: heads of 88, 2048 tokens; subword: 68, 1024), batch 1."""
    B, T, H = 1, 1024 if d == 68 else 2048, 8
    result = []
    for form in ("walk", "parallel"):
        q, k, v, do = (_rows(torch.empty(B, T, H, d, dtype=dtype, device="meta")) for _ in range(4))
        g, h, dh = (torch.empty(shape, device="meta") for shape in ((B, T, H), (B, H, d, d), (B, H, d, d)))
        launch = _Recorder(g, d, dtype, chunk if form == "walk" else block(chunk, dtype))
        forward(launch, form, q, k, v, h)
        result += [_specimen(form, *noted) for noted in launch.noted]
    launch = _Recorder(g, d, dtype, block(chunk, dtype))
    backward(launch, q, k, v, h, do, dh)
    result += [_specimen("backward", *noted) for noted in launch.noted]
    return list({x["name"]: x for x in result}.values())


def _specimen(form: str, kernel: KernelInterface, arguments: dict, rest: dict) -> dict:
    signature, constexprs, attrs = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr:
            signature[parameter.name], constexprs[(place,)] = "constexpr", value
        elif isinstance(value, Tensor):
            signature[parameter.name], attrs[(place,)] = POINTERS[value.dtype], [["tt.divisibility", 16]]
        else:  # as at a launch: ones are constants, multiples of 16 are known to be that
            numbers = value if isinstance(value, tuple) else (value,)
            kinds = tuple("constexpr" if x == 1 else "i32" for x in numbers)
            signature[parameter.name] = kinds if isinstance(value, tuple) else kinds[0]
            for i, x in enumerate(numbers):
                path = (place, i) if isinstance(value, tuple) else (place,)
                if x == 1:
                    constexprs[path] = 1
                elif x % 16 == 0:
                    attrs[path] = [["tt.divisibility", 16]]
    flags = [name.lower() for name in ("REVERSE",) if arguments.get(name)]
    name = " ".join([form, kernel.__name__, *flags])
    return dict(name=name, kernel=kernel, signature=signature, constexprs=constexprs, attrs=attrs) | rest
