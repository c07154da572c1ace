"""The p-spin attractor on Triton: launchers, the autograd function, and what each kernel needs (`specimens`).

The kernels, and the glossary, are in attractor_forward.py and attractor_backward.py. A call is

    forward     start (Y_0 = spin(Z)),  K times: spin (Eq. spin-field, Eq. spin-output)     [+ settle, with a tolerance]
    backward    K times: neumann (Eq. neumann) [+ settle],  field (Eq. spin-grad),  dA = dH^T Y,  coupling (dW, dgamma)

With a tolerance all K steps are launched, whatever happens; where every token of a tile has stopped, its programs
return at once. So the host never waits for the device.
Between forward and backward are kept acts, Y, gamma and the packed couplings: two bits each instead of 16 or 32.
"""

from __future__ import annotations

from . import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from .attractor_backward import coupling_kernel, field_kernel, neumann_kernel
from .attractor_forward import settle_kernel, spin_kernel, start_kernel
from .ternary import DTYPES, aligned, grid, integers, specimen

ELEMENTWISE = dict(BM=32, BN=64, num_warps=4)
COUPLING = dict(SPAN=256, BR=32, BN=64, num_warps=4)


@dataclass
class Progress:
    """Who still runs, on the device; see the glossary of attractor_forward.py."""

    running: Tensor
    change: Tensor
    count: Tensor
    live: Tensor
    moved: Tensor
    size: Tensor

    @classmethod
    def begin(cls, n: int, row_tiles: int, col_tiles: int, like: Tensor) -> Progress:
        def full(value: int, size: int) -> Tensor:
            return torch.full((size,), value, device=like.device, dtype=torch.int32)

        sums = torch.empty(2, col_tiles, n, device=like.device)
        change = torch.ones(n, device=like.device)
        return cls(full(1, n), change, full(0, n), full(2, row_tiles), sums[0], sums[1])

    def settle(self, tol: float, limits: torch.finfo, BM: int) -> None:
        sums = (self.moved, self.size, self.count.numel(), len(self.moved), tol, limits.tiny, 4 * limits.eps)
        settle_kernel[(len(self.live),)](
            self.running, self.change, self.count, self.live, *sums, BM=BM, BT=16, num_warps=4
        )


def forward(
    z: Tensor, packed: Tensor, scale: Tensor, gamma: Tensor, steps: int, tol: float | None = None
) -> tuple[Tensor, Tensor, Progress | None]:
    """z [n, 2*D], packed [2*D, ..], gamma [D]; steps >= 1 -> y [n, D], acts [n, 2*D], Progress (None without tol)."""
    n, D = len(z), gamma.shape[0]
    z = z if z.stride(1) == 1 else z.contiguous()
    y, out, acts = z.new_empty(n, D), z.new_empty(n, D), z.new_empty(n, 2 * D)
    start_kernel[grid(n, D, ELEMENTWISE)](z, y, n, D, z.stride(0), **ELEMENTWISE)

    tile = tiles(n, z.dtype)

    def step(y: Tensor, out: Tensor, state: tuple, k: int) -> None:
        args = (z, y, out, acts, packed, scale, gamma, *state, n, D, z.stride(0), packed.shape[1])
        spin_kernel[grid(n, D, tile)](*args, TOL=tol is not None, KEEP=tol is not None or k == steps, **tile)

    y, progress = _iterate(step, y, out, steps, tol, tile)
    return y, acts, progress


def backward(
    dy: Tensor, acts: Tensor, packed: Tensor, scale: Tensor, gamma: Tensor, steps: int, tol: float | None = None
) -> tuple[Tensor, Progress | None]:
    """dy [n, D], acts [n, 2*D] -> dh [n, 2*D], the gradient of z, and Progress (None without tol)."""
    n, D = dy.shape
    dy = dy if dy.stride(1) == 1 else dy.contiguous()
    # The first step reads dy itself as V_0. Its buffer is not ours to write to, so a third takes its turn.
    v = dy.clone(memory_format=torch.contiguous_format)
    out = torch.empty_like(v)

    tile = tiles(n, dy.dtype, backward=True)

    def step(v: Tensor, out: Tensor, state: tuple, k: int) -> None:
        args = (dy, v, out, acts, packed, scale, gamma, *state, n, D, dy.stride(0), packed.shape[1])
        neumann_kernel[grid(n, D, tile)](*args, TOL=tol is not None, **tile)

    v, progress = _iterate(step, v, out, steps, tol, tile)
    dh = torch.empty_like(acts)
    field_kernel[grid(n, D, ELEMENTWISE)](v, acts, dh, n, D, **ELEMENTWISE)
    return dh, progress


def coupling_gradients(da: Tensor, packed: Tensor, scale: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """da [2*D, D], which is overwritten -> the gradients of W [2*D, D] and of gamma [D]."""
    M, D = da.shape
    programs = coupling_grid(M, D)
    partial = torch.empty(programs[0], D, device=da.device)
    coupling_kernel[programs](da, packed, scale, gamma, partial, M, D, packed.shape[1], **COUPLING)
    return da, partial.sum(0).to(gamma.dtype)


def _iterate(
    step: Callable[[Tensor, Tensor, tuple, int], None],
    x: Tensor,
    out: Tensor,
    steps: int,
    tol: float | None,
    tile: dict[str, int],
) -> tuple[Tensor, Progress | None]:
    """x <- step(x) into two buffers that take turns."""
    n, D = x.shape
    if tol is None:
        for k in range(1, steps + 1):
            step(x, out, (x,) * 4, k)  # no state: the kernel does not look at these four
            x, out = out, x
        return x, None
    progress = Progress.begin(n, *grid(n, D, tile), x)
    for k in range(1, steps + 1):
        step(x, out, (progress.running, progress.live, progress.moved, progress.size), k)
        progress.settle(tol, torch.finfo(x.dtype), tile["BM"])
        x, out = out, x
    return x, progress


class Equilibrium(torch.autograd.Function):
    """Rows are tokens: z [n, 2*D] -> y [n, D]. w_int is not read: it is there to receive the gradient of the couplings
    that `packed` and `scale` hold. report, if any, gets .forward, .residual and .backward: scalars on the device."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, w_int: Tensor, gamma: Tensor, packed: Tensor, scale: Tensor, *how: Any) -> Tensor:
        steps, tol, report = how
        packed, scale, gamma = aligned(packed), scale.reshape(1).float(), gamma.contiguous()
        with torch.cuda.device_of(z):
            y, acts, progress = forward(z, packed, scale, gamma, steps, tol)
        if report is not None:
            report.forward = float(steps) if progress is None else progress.count.double().mean()
            report.residual = float("nan") if progress is None else progress.change.max()
        ctx.save_for_backward(acts, y, gamma, packed, scale)
        ctx.steps, ctx.tol, ctx.report = steps, tol, report
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        acts, y, gamma, packed, scale = ctx.saved_tensors
        with torch.cuda.device_of(dy), torch.autocast(dy.device.type, enabled=False):  # dA in the inputs' dtype
            dh, progress = backward(dy, acts, packed, scale, gamma, ctx.steps, ctx.tol)
            wanted = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
            dw, dgamma = coupling_gradients(dh.T @ y, packed, scale, gamma) if wanted else (None, None)
        if ctx.report is not None:
            ctx.report.backward = float(ctx.steps) if progress is None else progress.count.double().mean()
        return dh, dw, dgamma, None, None, None, None, None


def equilibrium(
    z: Tensor,
    w_int: Tensor,
    gamma: Tensor,
    packed: Tensor,
    scale: Tensor,
    steps: int,
    tol: float | None = None,
    report: Any = None,
) -> Tensor:
    """K >= 1 fused steps, differentiated implicitly. See `Equilibrium`; z.dtype is float32, float16 or bfloat16."""
    if z.dtype not in DTYPES:
        raise ValueError(f"z: got {z.dtype}, expected one of {', '.join(map(str, DTYPES))}")
    return Equilibrium.apply(z, w_int, gamma, packed, scale, steps, tol, report)


def tiles(n: int, dtype: torch.dtype, backward: bool = False) -> dict[str, int]:
    """Sizes of the tiles of the two big kernels for n tokens. A few tokens get the least that a tensor core takes.

    Chosen for registers (`python -m pspin_lite kernels`): on sm_80, forward, BK=64 takes 212, BK=32 takes 168. Backward
    has products of BN/8 columns (`add_product`), of which a tensor core of gfx942 wants 16."""
    rows = 16 if n <= 16 else 64
    if dtype == torch.float32:
        return dict(BM=min(rows, 32), BN=64, BK=16, num_warps=4, num_stages=2)
    return dict(BM=rows, BN=128 if backward else 64, BK=32, num_warps=4, num_stages=3)


def coupling_grid(M: int, D: int) -> tuple[int, int]:
    return triton.cdiv(M, COUPLING["SPAN"]), triton.cdiv(D, COUPLING["BN"])


def specimens(n: int, D: int, dtype: torch.dtype) -> list[dict]:
    """What to compile, and what it costs, for n tokens of D spins. bytes: every tensor once."""
    p, size, tile, wide = "*" + DTYPES[dtype], dtype.itemsize, tiles(n, dtype), tiles(n, dtype, backward=True)
    row_bytes = triton.cdiv(D, 64) * 16
    spins, field, weights = n * D * size, 2 * n * D * size, 2 * D * row_bytes  # bytes of y, of z or acts, of the codes
    grids, wide_grids = grid(n, D, tile), grid(n, D, wide)
    sums, wide_sums = (2 * n * programs[1] * 4 for programs in (grids, wide_grids))
    whole = integers(n=n, D=D)
    couplings = dict(codes="*u8", scale="*fp32", gamma=p)
    flags = dict(running="*i32", live="*i32", moved="*fp32", size="*fp32")
    step = whole | integers(row_bytes=row_bytes)
    spin = dict(z=p, y=p, out=p, acts=p) | couplings | flags | step | integers(z_stride=2 * D)
    neumann = dict(dy=p, v=p, out=p, acts=p) | couplings | flags | step | integers(dy_stride=D)
    settle = (
        dict(change="*fp32", count="*i32")
        | flags
        | integers(n=n, tiles=grids[1])
        | dict(tol="fp32", tiny="fp32", floor="fp32")
    )
    coupling = dict(da=p, dgamma="*fp32") | couplings | integers(M=2 * D, D=D, row_bytes=row_bytes)
    product = 4 * n * D * D
    start = dict(z=p, y=p) | whole | integers(z_stride=2 * D)

    def make(name: str, *args: Any, **cost: int) -> dict:
        return specimen(f"attractor {name}", *args, **cost)

    return [
        make("start", start_kernel, start, ELEMENTWISE, grid(n, D, ELEMENTWISE),
             bytes=field + spins, flops=20 * n * D),
        make("spin", spin_kernel, spin, tile | dict(TOL=False, KEEP=False), grids,
             bytes=field + 2 * spins + weights, flops=product),
        make("spin, last", spin_kernel, spin, tile | dict(TOL=False, KEEP=True), grids,
             bytes=2 * field + 2 * spins + weights, flops=product),
        make("spin, tol", spin_kernel, spin, tile | dict(TOL=True, KEEP=True), grids,
             bytes=2 * field + 2 * spins + weights + sums, flops=product),
        make("settle", settle_kernel, settle, dict(BM=tile["BM"], BT=16, num_warps=4), grids[:1],
             bytes=sums + 20 * n, flops=4 * n * grids[1]),
        make("neumann", neumann_kernel, neumann, wide | dict(TOL=False), wide_grids,
             bytes=field + 3 * spins + weights, flops=product),
        make("neumann, tol", neumann_kernel, neumann, wide | dict(TOL=True), wide_grids,
             bytes=field + 3 * spins + weights + wide_sums, flops=product),
        make("field", field_kernel, dict(v=p, acts=p, dh=p) | whole, ELEMENTWISE, grid(n, D, ELEMENTWISE),
             bytes=2 * field + spins, flops=8 * n * D),
        make("coupling", coupling_kernel, coupling, COUPLING, coupling_grid(2 * D, D),
             bytes=4 * D * D * size + weights, flops=6 * D * D),
    ]  # fmt: skip
