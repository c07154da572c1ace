"""The chunked gated state space on Triton: launchers, and how PyTorch's autograd reaches them.

What it computes: o, state = chunked(q, k, v, g, state), forward and backward, as pspin_lite/state_space.py does in
PyTorch (Eq. ssm-mask, Eq. ssm-intra, Eq. ssm-cross, Eq. ssm-state; the backward pass is derived there).

    file                what is in it
    chunk.py            what is done with one chunk; the table of o, dQ, dV, dK as one computation
    chunk_walk.py       form "walk": one program walks along the chunks, the state on chip, as in the paper
    chunk_parallel.py   form "parallel": all chunks at once
    chunk_gradients.py  the backward pass, for both forms
    state_space.py      this one: sizes of tiles, launches, autograd

Shapes: q, k, v [B,T,H,d]; g [B,T,H], log decays in [-inf, 0]; state [B,H,d,d], float32. Other names: chunk.py.
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
import math
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable
from triton.runtime import KernelInterface

from .chunk import Tiles, sum_decays
from .chunk_gradients import chunk_gradients, decay_gradient
from .chunk_parallel import chunk_outputs, pass_states
from .chunk_walk import walk

CHUNKS = (16, 32, 64, 128)
FORMS = ("auto", "walk", "parallel")
WIDEST = 128  # columns of a head
WALKED = 16  # value columns of one program of `walk`


def chunked(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor, chunk: int, form: str = "auto"
) -> tuple[Tensor, Tensor]:
    """o [B,T,H,d] in the dtype of q, and the state [B,H,d,d] after the last token in float32."""
    B, _, H, d = q.shape
    if d > WIDEST:
        raise ValueError(f"q: got heads of width {d}, expected at most {WIDEST}")
    if chunk not in CHUNKS or form not in FORMS:
        raise ValueError(f"chunk, form: got {chunk!r}, {form!r}, expected one of {CHUNKS}, one of {FORMS}")
    if form == "auto":
        walking = B * H * triton.cdiv(d, WALKED)  # programs
        form = "parallel" if walking < processors(q) else "walk"
    return _Chunked.apply(q, k, v, g.float(), state.float(), chunk, form)


def processors(x: Tensor) -> int:
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1


def columns(d: int, widest: int = 64) -> tuple[tuple[int, int], ...]:
    """A width d in blocks of columns, where each begins and its width, a power of two from 16 to `widest`. At most 15
    columns are wasted: 64 + 16 for 68, 64 + 32 for 88."""
    left, blocks, first = triton.cdiv(d, 16) * 16, [], 0
    while first < left:
        width = min(widest, 1 << (left - first).bit_length() - 1)
        blocks.append((first, width))
        first += width
    return tuple(blocks)


def tiles_for(kernel: KernelInterface, d: int, chunk: int, dtype: torch.dtype) -> Tiles:
    """Sizes with which no kernel spills registers at the paper's widths (68, 88).

    Large tiles save memory traffic and instructions; small tiles fit into the registers. 64 rows are what a tensor core
    of an H100 takes at once. Products of float32 numbers ("ieee": true float32, never TF32) have no tensor cores, and
    keep operands in registers, a row of one and a column of the other for each thread: 16 rows, and narrower blocks.
    float16 keeps scores and states as TF32, in twice as many registers as bfloat16: narrower blocks, too."""
    exact = dtype == torch.float32
    rows, keys, values = chunk, columns(d), columns(d)
    if kernel is walk:
        rows, keys, values = 16 if exact else 32, columns(d, 32 if exact else 64), ((0, WALKED),)
    elif kernel is pass_states:  # small: a head's state is shared out over as many programs as possible
        keys = values = ((0, 32),)
    elif kernel is chunk_outputs:
        keys = values = columns(d, 32 if exact else 64)
    elif kernel is chunk_gradients:
        keys = values = columns(d, 32 if dtype == torch.bfloat16 else 16)
    return Tiles(d, chunk, min(chunk, rows), keys, values, math.gcd(d, 16 // dtype.itemsize))


def options(kernel: KernelInterface, tiles: Tiles) -> dict[str, int]:
    """How a kernel is launched. Two stages where the next chunk is loaded while this one is computed; else one."""
    exact = tiles.BC == 16
    warps = {sum_decays: 1, decay_gradient: 1, pass_states: 2, walk: 8, chunk_outputs: 4, chunk_gradients: 4}[kernel]
    if exact and kernel is chunk_gradients:
        warps = 8
    settings = dict(num_warps=warps, num_stages=2 if kernel is pass_states else 1)
    # All registers: else NVIDIA's assembler spills some, to fit more programs than there are.
    if (kernel is pass_states or (kernel is walk and exact)) and not torch.version.hip:
        settings["maxnreg"] = 255
    return settings


def block(chunk: int, dtype: torch.dtype) -> int:
    """Tokens in a chunk of the parallel form and of the backward pass, where it is a single block. Results differ from
    those of a longer chunk by rounding only."""
    return min(chunk, 16 if dtype == torch.float32 else 64)


def _rows(x: Tensor) -> Tensor:
    """x [B,T,H,d], or a copy in which columns lie side by side, and everything begins at a multiple of what one load
    may bring: 128 bits, or less for widths that do not divide into them: 64 for 68 halves."""
    each = math.gcd(x.shape[-1], 16 // x.element_size())
    aligned = x.data_ptr() % (each * x.element_size()) == 0
    if x.stride(-1) == 1 and aligned and all(stride % each == 0 for stride in x.stride()[:3]):
        return x
    return x.clone(memory_format=torch.contiguous_format)


class Launcher:
    """Launches kernels for one call: they share shapes. Rows (q, k, v, dO) come through `_rows`."""

    def __init__(self, g: Tensor, d: int, dtype: torch.dtype, chunk: int):
        B, self.T, self.H = g.shape
        self.g, self.d, self.dtype, self.chunk, self.heads = g, d, dtype, chunk, B * self.H
        self.N = triton.cdiv(self.T, chunk)

    def run(self, kernel: KernelInterface, grid: tuple[int, ...], **arguments: Any) -> None:
        tiles = arguments["tiles"]
        kernel[grid](T=self.T, H=self.H, **arguments, **options(kernel, tiles))

    def tiles(self, kernel: KernelInterface) -> Tiles:
        return tiles_for(kernel, self.d, self.chunk, self.dtype)

    def new(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return self.g.new_empty(shape, dtype=dtype)

    def operands(self, **rows: Tensor) -> dict:
        """Tensors and their strides, under the names that kernels give them."""
        return rows | {f"{name}_strides": x.stride()[:3] for name, x in rows.items()}

    def decays(self, kernel: KernelInterface) -> Tensor:
        """Sums of log decays, in blocks as `kernel` has them."""
        tiles = self.tiles(kernel)
        lines = self.new(4 if tiles.C > tiles.BC else 2, self.heads, self.N * self.chunk)
        self.run(sum_decays, (self.N, self.heads), **self.operands(g=self.g), lines=lines, N=self.N, tiles=tiles)
        return lines

    def walk(self, q: Tensor, k: Tensor, v: Tensor, start: Tensor, o: Tensor, end: Tensor) -> None:
        """Fills o and end."""
        rows, given = self.operands(q=q, k=k, v=v, g=self.g), dict(lines=self.decays(walk), h_start=start)
        grid = (self.heads, triton.cdiv(self.d, WALKED))
        self.run(walk, grid, **rows, **given, o=o, h_end=end, tiles=self.tiles(walk))

    def states(self, k: Tensor, v: Tensor, lines: Tensor, start: Tensor, end: Tensor, reverse: bool = False) -> Tensor:
        """Fills end. -> the state before every chunk [B*H,N,d,d]; reverse: after."""
        dtype = torch.bfloat16 if k.dtype == torch.bfloat16 else torch.float32
        states, tiles = self.new(self.heads, self.N, self.d, self.d, dtype=dtype), self.tiles(pass_states)
        grid = (self.heads, triton.cdiv(self.d, tiles.keys[0][1]), triton.cdiv(self.d, tiles.values[0][1]))
        given = dict(lines=lines, h_start=start, h_end=end, states=states, N=self.N, REVERSE=reverse)
        self.run(pass_states, grid, **self.operands(k=k, v=v), **given, tiles=tiles)
        return states

    def outputs(self, q: Tensor, k: Tensor, v: Tensor, lines: Tensor, states: Tensor, o: Tensor) -> None:
        """Fills o."""
        tiles = self.tiles(chunk_outputs)
        given = dict(lines=lines, states=states, o=o, N=self.N, tiles=tiles)
        self.run(chunk_outputs, (self.N, self.heads), **self.operands(q=q, k=k, v=v, g=self.g), **given)

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, do: Tensor, lines: Tensor, h_in: Tensor, dh_out: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """-> dq, dk, dv [B,T,H,d], dg [B,T,H]."""
        tiles = self.tiles(chunk_gradients)
        dq, dk, dv = (q.new_empty(q.shape) for _ in range(3))
        flows = {name: self.new(self.heads, self.T) for name in ("read", "wrote", "inside")}
        flows |= dict(crossed=self.new(self.heads, self.N))
        rows, given = self.operands(q=q, k=k, v=v, do=do, g=self.g), dict(lines=lines, h_in=h_in, dh_out=dh_out)
        rest = dict(dq=dq, dk=dk, dv=dv, N=self.N, tiles=tiles)
        self.run(chunk_gradients, (self.N, self.heads), **rows, **given, **flows, **rest)
        dg = self.new(*self.g.shape)
        self.run(decay_gradient, (self.N, self.heads), **flows, dg=dg, N=self.N, tiles=tiles)
        return dq, dk, dv, dg


def forward(launch: Launcher, form: str, q: Tensor, k: Tensor, v: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    o, end = q.new_empty(q.shape), torch.empty_like(start)
    if form == "walk":
        launch.walk(q, k, v, start, o, end)
    else:
        lines = launch.decays(chunk_outputs)
        launch.outputs(q, k, v, lines, launch.states(k, v, lines, start, end), o)
    return o, end


def backward(
    launch: Launcher, q: Tensor, k: Tensor, v: Tensor, start: Tensor, do: Tensor, dend: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    lines = launch.decays(chunk_gradients)
    dstart, unread = torch.empty_like(start), torch.empty_like(start)
    h_in = launch.states(k, v, lines, start, unread)
    dh_out = launch.states(q, do, lines, dend, dstart, reverse=True)
    return *launch.gradients(q, k, v, do, lines, h_in, dh_out), dstart


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, g: Tensor, start: Tensor, chunk: int, form: str
    ) -> tuple[Tensor, Tensor]:
        q, k, v, start = _rows(q), _rows(k), _rows(v), start.contiguous()
        ctx.save_for_backward(q, k, v, g, start)
        ctx.chunk = chunk
        chunk = chunk if form == "walk" else block(chunk, q.dtype)
        with torch.cuda.device_of(q):
            return forward(Launcher(g, start.shape[-1], q.dtype, chunk), form, q, k, v, start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, do: Tensor, dend: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, g, start = ctx.saved_tensors
        do, dend = _rows(do), dend.contiguous()
        with torch.cuda.device_of(q):
            launch = Launcher(g, start.shape[-1], q.dtype, block(ctx.chunk, q.dtype))
            return *backward(launch, q, k, v, start, do, dend), None, None
