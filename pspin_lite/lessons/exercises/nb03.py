"""Exercises of notebook 03. One answer is a Triton kernel."""

from __future__ import annotations

from pspin_kernels import runtime  # isort: skip

import torch
import triton
import triton.language as tl

from ... import state_space
from . import Exercise, expect, launch


def random(*shape: int) -> torch.Tensor:
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(0), device="cpu")
    return numbers.to("cpu" if runtime.INTERPRETED else "cuda")


def shared_decay_gradient(q, k, v, g, do):
    """A path from j to i passes i - j gates, and all of them are this one."""
    T = len(q)
    t = torch.arange(T, device=q.device)
    apart = (t[:, None] - t[None, :]).clamp(min=0)  # gates between j and i
    flow = (q @ k.T) * torch.exp(g * apart).tril() * (do @ v.T)
    return (apart * flow).sum()


def grade_shared(answer) -> None:
    q, k, v, do = random(4, 8, 3).double()
    for value in (-0.3, -2.0):
        g = torch.full((), value, dtype=q.dtype, device=q.device, requires_grad=True)
        o = state_space.quadratic(*(x[None, :, None] for x in (q, k, v, g.expand(8))))[0, :, 0]
        (expected,) = torch.autograd.grad((o * do).sum(), g)
        expect(f"the gradient of one log decay of {value} for all tokens", answer(q, k, v, g.detach(), do), expected)


@triton.jit
def passing(flow_ptr, out_ptr, C: tl.constexpr):
    t = tl.arange(0, C)
    flow = tl.load(flow_ptr + t[:, None] * C + t[None, :])  # [i, j]
    earlier = (t[:, None] < t[None, :]).to(tl.float32)  # [j, t]: 1 where j < t
    from_earlier = tl.dot(flow, earlier, input_precision="ieee")  # [i, t]: what i reads of all j < t
    tl.store(out_ptr + t, tl.sum(tl.where(t[:, None] >= t[None, :], from_earlier, 0.0), 0))  # all i >= t


def grade_passing(answer) -> None:
    used = getattr(answer, "fn", answer).__code__.co_names
    assert not {"cumsum", "associative_scan"} & set(used), "without tl.cumsum this time"
    flow = random(16, 16).tril()
    expected = torch.stack([flow[t:, :t].double().sum() for t in range(16)])
    for what, diagonal in (("flow", 0.0), ("flow with a huge diagonal", 1e8)):
        flow.fill_diagonal_(diagonal)
        out = torch.full((16,), torch.nan, device=flow.device)
        launch(answer, (1,), flow, out, C=16)
        expect(f"what passes, for {what}", out, expected)


def programs_at_once(registers: int, num_warps: int, shared: int) -> int:
    """The scarcest of three decides."""
    each = -(-registers // 8) * 8 * 32 * num_warps
    return min(65536 // each, 64 // num_warps, 164 * 1024 // (shared + 1024))


def grade_programs(answer) -> None:
    cases = ((128, 4, 0, 4), (255, 8, 13312, 1), (32, 8, 0, 8), (40, 2, 81920, 2), (49, 4, 1024, 9))
    for registers, warps, shared, expected in cases:
        what = f"programs with {registers} registers, {warps} warps, {shared} bytes"
        expect(what, answer(registers, warps, shared), expected, 0)


EXERCISES = {
    "3.1": Exercise(
        grade_shared,
        shared_decay_gradient,
        "How many gates does the path from j to i pass? Each gets flow[i, j], and all of them are the same gate.",
    ),
    "3.2": Exercise(
        grade_passing,
        passing,
        "A matrix of zeros and ones, earlier[j, t] = j < t, adds up all j < t: tl.dot(flow, earlier) is [i, t]. "
        "Then add up the rows i >= t with tl.where and tl.sum. No shift is needed.",
    ),
    "3.3": Exercise(
        grade_programs, programs_at_once, "Three limits, registers, warps and shared memory: the smallest decides."
    ),
}
