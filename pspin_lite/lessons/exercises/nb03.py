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


def without_diagonal(q, k, v, g, do):
    """What a token reads from itself is left out before anything is summed: there is nothing to cancel."""
    flow = (q @ k.T * state_space.decay_mask(g) * (do @ v.T)).tril(-1)
    dS = flow.sum(1) - flow.sum(0)  # q_i · ∂q_i - k_i · ∂k_i, each without the pair (i, i)
    return dS.flip(0).cumsum(0).flip(0)


def grade_without_diagonal(answer) -> None:
    q, k, v, do = random(4, 64, 16)
    for value in (-0.5, -20.0):
        g = torch.full((64,), value, dtype=torch.float64, device=q.device, requires_grad=True)
        inputs = (x.double()[None, :, None] for x in (q, k, v))
        o = state_space.quadratic(*inputs, g[None, :, None])[0, :, 0]
        (expected,) = torch.autograd.grad((o * do).sum(), g)
        expect(f"the gradient of log decays of {value}", answer(q, k, v, g.detach().float(), do), expected)


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


EXERCISES = {
    "3.1": Exercise(
        grade_shared,
        shared_decay_gradient,
        "How many gates does the path from j to i pass? Each gets flow[i, j], and all of them are the same gate.",
    ),
    "3.2": Exercise(
        grade_without_diagonal,
        without_diagonal,
        "flow[i, j] is a part of q_i · ∂q_i and of k_j · ∂k_j. Set its diagonal to zero first. Then the rows add up to "
        "the one, the columns to the other.",
    ),
    "3.3": Exercise(
        grade_passing,
        passing,
        "A matrix of zeros and ones, earlier[j, t] = j < t, adds up all j < t: tl.dot(flow, earlier) is [i, t]. "
        "Then add up the rows i >= t with tl.where and tl.sum. No shift is needed.",
    ),
}
