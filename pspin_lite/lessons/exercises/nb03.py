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


def gradients(T: int, d: int) -> tuple:
    """Q, K, V, G, h, dO, dh; h_end; the gradients of the first five."""
    Q, K, V, dO = random(4, T, d).double()
    h, dh = random(3, d, d).double()[1:]
    inputs = [x.clone().requires_grad_() for x in (Q, K, V, -V[:, 0].abs(), h)]
    o, end = state_space.recurrent(*(x[None, :, None] for x in inputs[:4]), inputs[4][None, None])
    grads = torch.autograd.grad((o[0, :, 0] * dO).sum() + (end[0, 0] * dh).sum(), inputs)
    return (*(x.detach() for x in inputs), dO, dh, end[0, 0].detach(), grads)


def state_gradient(dh_out, Q, dO, G):
    """What passes over the chunk, and what its tokens read."""
    from_start = G.cumsum(0).exp()[:, None]
    return G.sum().exp() * dh_out + Q.T @ (from_start * dO)


def grade_state(answer) -> None:
    Q, _, _, G, _, dO, dh, _, grads = gradients(8, 4)
    expect("dh before the chunk", answer(dh, Q, dO, G), grads[4])
    expect("dh when nothing is read", answer(dh, 0 * Q, dO, G), G.sum().exp() * dh)


@triton.jit
def passing(F, out, C: tl.constexpr):
    i = tl.arange(0, C)
    up_to = tl.cumsum(tl.load(F + i[:, None] * C + i[None, :]), 1)  # [c, m]: from all j <= m
    inside = tl.sum(tl.where(i[:, None] > i[None, :], up_to, 0.0), 0)  # [m]: to all c > m, through m + 1
    tl.store(out + i, tl.sum(tl.where(i[:, None] == i[None, :] + 1, inside[None, :], 0.0), 1))


def grade_passing(answer) -> None:
    F = random(16, 16).tril()
    expected = torch.stack([F[i:, :i].double().sum() for i in range(16)])
    for what, diagonal in (("F", 0.0), ("F with a huge diagonal", 1e8)):
        F.fill_diagonal_(diagonal)
        out = torch.full((16,), torch.nan, device=F.device)
        launch(answer, (1,), F, out, C=16)
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


def short_cut_with_state(Q, K, dQ, dK, h_end, dh_end):
    """To raise S_T is to scale h_end up; it counts for every gate up to T."""
    by_token = (Q * dQ - K * dK).sum(-1)
    return by_token.flip(0).cumsum(0).flip(0) + (h_end * dh_end).sum()


def grade_short_cut(answer) -> None:
    Q, K, _, _, _, _, dh, end, grads = gradients(8, 4)
    expect("dG", answer(Q, K, grads[0], grads[1], end, dh), grads[3])


EXERCISES = {
    "3.1": Exercise(
        grade_state, state_gradient, "It is Eq. ssm-state with Q for K and dO for V, faded by from_start, not to_end."
    ),
    "3.2": Exercise(
        grade_passing,
        passing,
        "tl.cumsum along j, then add up the rows c > m: that passes through m + 1. Move it by one with tl.where. "
        "To be safe from the diagonal, leave it out: it is in no sum that you need.",
    ),
    "3.3": Exercise(
        grade_programs, programs_at_once, "Three limits, registers, warps and shared memory: the smallest decides."
    ),
    "3.4": Exercise(
        grade_short_cut,
        short_cut_with_state,
        "h_end = sum of exp(S_T - S_j) k_j v_j: raising S_T scales all of it. S_T contains every G_i.",
    ),
}
