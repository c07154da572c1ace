"""Exercises of notebook 02. Some answers are Triton kernels."""

from __future__ import annotations

from pspin_kernels import runtime  # isort: skip

import torch
import triton
import triton.language as tl

from ... import state_space
from . import Exercise, expect, launch


def device() -> torch.device:
    return torch.device("cpu" if runtime.INTERPRETED else "cuda")


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), device="cpu").to(device())


def programs_and_idle(n: int, BLOCK: int) -> tuple[int, int]:
    """⌈n / BLOCK⌉ programs; what their lanes have too much."""
    programs = -(-n // BLOCK)
    return programs, programs * BLOCK - n


def grade_programs(answer) -> None:
    for n, BLOCK, expected in ((10, 4, (3, 2)), (1000, 128, (8, 24)), (64, 64, (1, 0)), (1, 16, (1, 15))):
        result = answer(n, BLOCK)
        assert result is not None, "None came back: is there a `return`?"
        expect(f"{n} numbers in blocks of {BLOCK}", list(result), list(expected), 0)


@triton.jit
def to_end(g, out, C: tl.constexpr):
    i = tl.arange(0, C)
    G = tl.load(g + i)
    after = tl.where(i[None, :] > i[:, None], G[None, :], 0.0)  # [j, i]
    tl.store(out + i, tl.exp(tl.sum(after, 1)))


def grade_to_end(answer) -> None:
    G = -random(32).abs()
    for what, at, value in (("weak decays", 5, 0.0), ("strong decays", 31, -90.0), ("a reset", 11, -torch.inf)):
        G[at] = value
        out = torch.full_like(G, torch.nan)
        launch(answer, (1,), G, out, C=32)
        expect(f"what is left, with {what}", out, state_space.decay_mask(G)[-1])


def product_bytes(M: int, N: int, K: int, BM: int, BN: int) -> int:
    """A once for every column of tiles, B once for every row of tiles, Y once."""
    return 4 * (M * K * (N // BN) + K * N * (M // BM) + M * N)


def grade_product(answer) -> None:
    for sizes, expected in (((128, 128, 128, 32, 32), 589_824), ((64, 256, 32, 16, 64), 229_376)):
        expect(f"bytes for M, N, K, BM, BN = {sizes}", answer(*sizes), expected, 0)


@triton.jit
def step(q, k, v, g, h, o, d, W: tl.constexpr):
    head, c = tl.program_id(0), tl.arange(0, W)
    inside = (c[:, None] < d) & (c[None, :] < d)
    at = h + head * d * d + c[:, None] * d + c[None, :]
    Q = tl.load(q + head * d + c, mask=c < d, other=0.0)  # [W]
    K = tl.load(k + head * d + c, mask=c < d, other=0.0)
    V = tl.load(v + head * d + c, mask=c < d, other=0.0)
    state = tl.exp(tl.load(g + head)) * tl.load(at, mask=inside, other=0.0) + K[:, None] * V[None, :]
    tl.store(at, state, mask=inside)
    tl.store(o + head * d + c, tl.sum(Q[:, None] * state, 0), mask=c < d)


def grade_step(answer) -> None:
    H, d = 3, 20
    q, k, v = random(3, H, d)
    g, h = torch.tensor([-0.5, -2.0, -torch.inf], device=device()), random(H, d, d)
    expected, state = state_space.recurrent(*(x[None, None] for x in (q, k, v, g)), h[None])
    o = torch.full_like(q, torch.nan)
    launch(answer, (H,), q, k, v, g, h, o, d, W=32)
    expect("o after one step", o, expected[0, 0])
    expect("h after one step", h, state[0])


EXERCISES = {
    "2.1": Exercise(
        grade_programs, programs_and_idle, "As many programs as blocks, rounded up. Lanes in all, minus n."
    ),
    "2.2": Exercise(
        grade_to_end,
        to_end,
        "Make a block [C, C] with tl.where that holds g_i where i > j and 0 elsewhere, add up its rows, take exp.",
    ),
    "2.3": Exercise(
        grade_product, product_bytes, "A is read once for each of the N / BN columns of tiles. And B? And Y?"
    ),
    "2.4": Exercise(
        grade_step,
        step,
        "c = tl.arange(0, W): rows are c[:, None], columns c[None, :]. K[:, None] * V[None, :] is what is "
        "written; tl.sum(Q[:, None] * state, 0) is what is read. Mask by c < d.",
    ),
}
