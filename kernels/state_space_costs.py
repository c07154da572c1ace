"""How every state-space kernel is launched at the paper's shapes, and what a launch costs: for `pspin_lite kernels`.

Nothing is launched: the functions of state_space.py run on tensors without memory, and their launches are noted.

    bytes   every tensor once, as if each number travelled once; states that are overwritten in place, twice
    flops   of the matrix products that are done, a multiplication and an addition each, columns of padding included

A chunk has b = C / BC blocks, and each of these products so many times (K columns of keys, BV of values):

    reading the state    2 BC K BV     b
    writing the state    2 BC K BV     b
    scores               2 BC BC K     b (b + 1) / 2             every block with itself and all before it
    scores times values  2 BC BC BV    b (b + 1) / 2
    dg, two scores each  4 BC BC K     b (b + 1) (b + 2) / 6     every block s with all j <= s <= c
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .chunk import Tiles, sum_decays
from .chunk_parallel import chunk_outputs, chunk_states, decay_gradient, pass_states
from .chunk_walk import walk
from .state_space import Launcher, _rows, backward, forward, options

if TYPE_CHECKING:
    from triton.runtime import KernelInterface

POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}


class _Recorder(Launcher):
    """Notes launches instead of making them."""

    def __init__(self, *arguments: Any):
        self.noted: list[tuple[KernelInterface, dict, dict]] = []
        super().__init__(*arguments)

    def run(self, kernel: KernelInterface, grid: tuple[int, ...], **arguments: Any) -> None:
        arguments = dict(T=self.T, H=self.H, tiles=self.tiles) | arguments
        cost = dict(bytes=moved(kernel, arguments), flops=arithmetic(kernel, self), padded=padding(self.tiles))
        self.noted.append((kernel, arguments, dict(programs=prod(grid)) | options(kernel, self.tiles) | cost))


def moved(kernel: KernelInterface, arguments: dict) -> int:
    tensors = {id(x): x for x in arguments.values() if isinstance(x, Tensor)}
    again = [arguments["states"]] if kernel is pass_states else []
    return sum(x.numel() * x.element_size() for x in [*tensors.values(), *again])


def arithmetic(kernel: KernelInterface, launch: Launcher) -> int:
    tiles, chunks = launch.tiles, launch.heads * launch.N
    b, K = tiles.C // tiles.BC, sum(tiles.widths)
    state = 2 * tiles.BC * K * tiles.BV * b * launch.columns  # of one chunk, reading or writing
    intra = 2 * tiles.BC**2 * (K + tiles.BV) * b * (b + 1) // 2 * launch.columns
    each = {
        walk: 2 * state + intra,
        chunk_states: state,
        chunk_outputs: state + intra,
        decay_gradient: 4 * tiles.BC**2 * K * b * (b + 1) * (b + 2) // 6,
        pass_states: 2 * tiles.d**2,  # no product: h <- kept h + write
        sum_decays: 4 * tiles.C**2,  # no product: four sums over the chunk for each token
    }
    return chunks * each[kernel]


def padding(tiles: Tiles) -> int:
    """Columns of a head that are computed with and thrown away: of keys, and of values over all their tiles."""
    return sum(tiles.widths) - tiles.d + -tiles.d % tiles.BV


def specimens(d: int, chunk: int, dtype: torch.dtype) -> list[dict]:
    """Launches at the paper's shapes (byte: heads of 88, 2048 tokens; subword: 68, 1024), batch 1."""
    B, T, H = 1, 1024 if d == 68 else 2048, 8
    result = []
    for form in ("walk", "parallel"):
        q, k, v, do = (_rows(torch.empty(B, T, H, d, dtype=dtype, device="meta")) for _ in range(4))
        g, h, dh = (torch.empty(shape, device="meta") for shape in ((B, T, H), (B, H, d, d), (B, H, d, d)))
        launch = _Recorder(g, d, dtype, chunk, form)
        forward(launch, form, q, k, v, h)
        backward(launch, form, q, k, v, h, do, dh)
        result += [_specimen(form, *noted) for noted in launch.noted]
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
    flags = [name.lower() for name in ("REVERSE", "GRADIENT") if arguments.get(name)]
    name = " ".join([form, kernel.__name__, *flags])
    return dict(name=name, kernel=kernel, signature=signature, constexprs=constexprs, attrs=attrs) | rest
