"""The chunked gated state space on Triton: launchers, and how PyTorch's autograd reaches them.

What it computes: o, state = chunked(q, k, v, g, state), forward and backward, as pspin_lite/state_space.py does in
PyTorch (Eq. ssm-mask, Eq. ssm-intra, Eq. ssm-cross, Eq. ssm-state; the backward pass is derived there).

    file                what is in it
    chunk.py            what is done with one chunk; the table of o, dQ, dV, dK as one computation
    chunk_walk.py       form "walk": one program walks along the chunks, the state on chip, as in the paper
    chunk_parallel.py   form "parallel": all chunks at once; and dg, for both forms
    state_space.py      this one: sizes of tiles, launches, autograd

Shapes: q, k, v [B,T,H,d]; g [B,T,H], log decays in [-inf, 0]; state [B,H,d,d], float32. Other names: chunk.py.
"""

from __future__ import annotations

from . import runtime  # noqa: F401  first: decides how kernels run before any of them is defined

# isort: split
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad
from triton.runtime import KernelInterface

from .chunk import Tiles, sum_decays
from .chunk_parallel import chunk_outputs, chunk_states, decay_gradient, pass_states
from .chunk_walk import walk

CHUNKS = (16, 32, 64, 128)
FORMS = ("auto", "walk", "parallel")
WIDEST = 128  # columns of a head
PASS = 256  # numbers of a state in one program of pass_states


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
        walking = B * H * triton.cdiv(d, tiles_for(d, chunk, q.dtype, "walk").BV)  # programs
        form = "parallel" if walking < processors(q) else "walk"
    return _Chunked.apply(q, k, v, g.float(), state.float(), chunk, form)


def processors(x: Tensor) -> int:
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1


def key_columns(d: int, widest: int = 64) -> tuple[int, ...]:
    """A width d in blocks of columns, powers of two from 16 to `widest`, at most 15 of them wasted: 64 + 16 for 68,
    64 + 32 for 88."""
    left, widths = triton.cdiv(d, 16) * 16, []
    while left:
        widths.append(min(widest, 1 << left.bit_length() - 1))
        left -= widths[-1]
    return tuple(widths)


def value_columns(d: int) -> int:
    """Tiles of 32, or of 16 where those waste less: 5 * 16 for 68, 3 * 32 for 88."""
    return 16 if 0 < d % 32 <= 16 else 32


def tiles_for(d: int, chunk: int, dtype: torch.dtype, form: str) -> Tiles:
    """Sizes with which no kernel spills registers at the paper's widths (68, 88) and chunks (64, 128).

    Blocks of 32 rows: the more rows, the fewer programs fit beside each other, and the more is computed above the
    diagonal. Products of float32 numbers ("ieee": true float32, never TF32) have no tensor cores, and keep operands in
    registers, a row of one and a column of the other for each thread: 16 rows and, walking, where the state takes up
    registers as well, blocks of 32 columns."""
    rows, columns, widths = 32, value_columns(d), key_columns(d)
    if dtype == torch.float32:
        rows, columns, widths = 16, 32, key_columns(d, 32 if form == "walk" else 64)
    if form == "walk":
        columns = 16
    each = 16 // dtype.itemsize
    return Tiles(d, chunk, min(chunk, rows), widths, firsts(widths), columns, each, triton.cdiv(d, each) * each)


def firsts(widths: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(widths[:i]) for i in range(len(widths)))


def options(kernel: KernelInterface, tiles: Tiles) -> dict[str, int]:
    """More warps where more registers are needed. One stage: what a load brings is used at once."""
    if kernel in (sum_decays, walk, decay_gradient):
        warps = 8
    else:
        warps = 2 if tiles.BC == 16 and kernel is not pass_states else 4
    settings = dict(num_warps=warps, num_stages=1)
    # All registers for `walk` of float32: else NVIDIA's assembler spills some, to fit more programs than there are.
    if kernel is walk and tiles.BC == 16 and not torch.version.hip:
        settings["maxnreg"] = 255
    return settings


def _rows(x: Tensor) -> Tensor:
    """x [B,T,H,d], or a copy, such that 128 bits are one load: everything begins at a multiple of 16 bytes, and columns
    lie side by side. Other strides are kept. A width of 68 halves, 136 bytes, is filled up to 72 with zeros."""
    each = 16 // x.element_size()
    if x.shape[-1] % each:
        return pad(x, (0, -x.shape[-1] % each))
    if x.stride(-1) == 1 and x.data_ptr() % 16 == 0 and all(stride % each == 0 for stride in x.stride()[:3]):
        return x
    return x.clone(memory_format=torch.contiguous_format)


class Launcher:
    """Launches kernels for one call: they share shapes and sizes of tiles. Rows (q, k, v, dO) come through `_rows`."""

    def __init__(self, g: Tensor, d: int, dtype: torch.dtype, chunk: int, form: str):
        B, self.T, self.H = g.shape
        self.g, self.heads = g, B * self.H
        self.N = triton.cdiv(self.T, chunk)
        self.tiles = tiles_for(d, chunk, dtype, form)
        # For kernels with no tile of the state, which takes up registers: the same in both forms.
        self.plain = self.tiles._replace(widths=key_columns(d), firsts=firsts(key_columns(d)), BV=16)
        self.columns = triton.cdiv(d, self.tiles.BV)  # tiles of value columns
        self.blocks = triton.cdiv(self.T, self.tiles.BC)  # those that have any tokens
        self.lines = self.new(4, self.heads, self.N * chunk)
        self.run(sum_decays, (self.N, self.heads), **self.operands(), lines=self.lines, N=self.N, tiles=self.plain)

    def run(self, kernel: KernelInterface, grid: tuple[int, ...], **arguments: Any) -> None:
        arguments = dict(T=self.T, H=self.H, tiles=self.tiles) | arguments
        kernel[grid](**arguments, **options(kernel, self.tiles))

    def new(self, *shape: int) -> Tensor:
        return self.g.new_empty(shape)

    def operands(self, **rows: Tensor) -> dict:
        """Tensors and their strides, under the names that kernels give them."""
        rows |= dict(g=self.g)
        return rows | {f"{name}_strides": x.stride()[:3] for name, x in rows.items()}

    def walk(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        start: Tensor,
        o: Tensor,
        end: Tensor,
        *,
        x: Tensor | None = None,
        states: Tensor | None = None,
        transposed: bool = False,
        reverse: bool = False,
    ) -> tuple[Tensor, Tensor] | None:
        """Fills o and end. For gradients (x, states given): -> flow [B*H,T], crossed [B*H,N]."""
        gradient = x is not None
        flow = self.new(self.columns, self.heads, self.T) if gradient else self.g
        crossed = self.new(self.columns, self.heads, self.N) if gradient else self.g
        self.run(
            walk,
            (self.heads, self.columns),
            **self.operands(q=q, k=k, v=v, x=x if gradient else q),
            **dict(
                lines=self.lines,
                h_start=start,
                o=o,
                h_end=end,
                flow=flow,
                states=states if gradient else self.g,
                crossed=crossed,
            ),
            **dict(TRANSPOSED=transposed, REVERSE=reverse, GRADIENT=gradient),
        )
        return (flow.sum(0), crossed.sum(0)) if gradient else None

    def states(
        self, k: Tensor, v: Tensor, start: Tensor, end: Tensor, *, h_in: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Fills end. -> the state before every chunk [B*H,N,d,d]. With h_in, backwards: the gradient of the state after
        every chunk, and crossed [B*H,N]."""
        reverse = h_in is not None
        d = self.tiles.d
        states = self.new(self.heads, self.N, d, d)
        grid = (self.N, self.columns, self.heads)
        rows = dict(k=k, v=v, k_strides=k.stride()[:3], v_strides=v.stride()[:3])
        self.run(chunk_states, grid, **rows, lines=self.lines, states=states, REVERSE=reverse)
        parts = triton.cdiv(d * d, PASS)
        crossed = self.new(parts, self.heads, self.N) if reverse else self.g
        self.run(
            pass_states,
            (self.heads, parts),
            **dict(
                lines=self.lines,
                states=states,
                h_start=start,
                h_end=end,
                h_in=h_in if reverse else self.g,
                crossed=crossed,
            ),
            **dict(N=self.N, W=PASS, REVERSE=reverse),
        )
        return (states, crossed.sum(0)) if reverse else states

    def outputs(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        states: Tensor,
        o: Tensor,
        *,
        x: Tensor | None = None,
        transposed: bool = False,
        reverse: bool = False,
    ) -> Tensor | None:
        """Fills o. For gradients (x given): -> flow [B*H,T]."""
        gradient = x is not None
        flow = self.new(self.columns, self.heads, self.T) if gradient else self.g
        self.run(
            chunk_outputs,
            (self.blocks, self.columns, self.heads),
            **self.operands(q=q, k=k, v=v, x=x if gradient else q),
            **dict(lines=self.lines, states=states, o=o, flow=flow, N=self.N),
            **dict(TRANSPOSED=transposed, REVERSE=reverse, GRADIENT=gradient),
        )
        return flow.sum(0) if gradient else None

    def decay_gradient(
        self, q: Tensor, k: Tensor, v: Tensor, do: Tensor, read: Tensor, wrote: Tensor, crossed: Tensor
    ) -> Tensor:
        """-> dg [B,T,H]."""
        dg = self.new(*self.g.shape)
        self.run(
            decay_gradient,
            (self.blocks, self.heads),
            **self.operands(q=q, k=k, v=v, do=do),
            **dict(lines=self.lines, N=self.N, read=read, wrote=wrote, crossed=crossed, dg=dg, tiles=self.plain),
        )
        return dg


def forward(launch: Launcher, form: str, q: Tensor, k: Tensor, v: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    o, end = q.new_empty(*q.shape[:3], launch.tiles.d), torch.empty_like(start)
    if form == "walk":
        launch.walk(q, k, v, start, o, end)
    else:
        launch.outputs(q, k, v, launch.states(k, v, start, end), o)
    return o, end


def backward(
    launch: Launcher, form: str, q: Tensor, k: Tensor, v: Tensor, start: Tensor, do: Tensor, dend: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The table in chunk.py, row by row."""
    dq, dk, dv = (q.new_empty(*q.shape[:3], launch.tiles.d) for _ in range(3))
    dstart, unread = torch.empty_like(start), torch.empty_like(start)
    if form == "walk":
        h_in = launch.new(launch.heads, launch.N, *start.shape[2:])
        read, _ = launch.walk(do, v, k, start, dq, unread, x=q, states=h_in, transposed=True)
        launch.walk(k, q, do, dend, dv, dstart, reverse=True)
        wrote, crossed = launch.walk(v, do, q, dend, dk, unread, x=k, states=h_in, transposed=True, reverse=True)
    else:
        h_in = launch.states(k, v, start, unread)
        read = launch.outputs(do, v, k, h_in, dq, x=q, transposed=True)
        dh_out, crossed = launch.states(q, do, dend, dstart, h_in=h_in)
        launch.outputs(k, q, do, dh_out, dv, reverse=True)
        wrote = launch.outputs(v, do, q, dh_out, dk, x=k, transposed=True, reverse=True)
    return dq, dk, dv, launch.decay_gradient(q, k, v, do, read, wrote, crossed), dstart


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, g: Tensor, start: Tensor, chunk: int, form: str
    ) -> tuple[Tensor, Tensor]:
        q, k, v, start = _rows(q), _rows(k), _rows(v), start.contiguous()
        ctx.save_for_backward(q, k, v, g, start)
        ctx.chunk, ctx.form = chunk, form
        with torch.cuda.device_of(q):
            return forward(Launcher(g, start.shape[-1], q.dtype, chunk, form), form, q, k, v, start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, do: Tensor, dend: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, g, start = ctx.saved_tensors
        do, dend = _rows(do), dend.contiguous()
        with torch.cuda.device_of(q):
            launch = Launcher(g, start.shape[-1], q.dtype, ctx.chunk, ctx.form)
            return *backward(launch, ctx.form, q, k, v, start, do, dend), None, None
