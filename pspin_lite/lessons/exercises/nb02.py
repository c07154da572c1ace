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


def programs_and_idle(m: int, BLOCK: int) -> tuple[int, int]:
    """⌈m / BLOCK⌉ programs; the lanes they have too many."""
    programs = -(-m // BLOCK)
    return programs, programs * BLOCK - m


def grade_programs(answer) -> None:
    for m, BLOCK, expected in ((10, 4, (3, 2)), (1000, 128, (8, 24)), (64, 64, (1, 0)), (1, 16, (1, 15))):
        result = answer(m, BLOCK)
        assert result is not None, "None came back: is there a `return`?"
        expect(f"{m} numbers in blocks of {BLOCK}", list(result), list(expected), 0)


@triton.jit
def step(q_ptr, k_ptr, v_ptr, g_ptr, h_ptr, o_ptr, d, WIDTH: tl.constexpr):
    head, c = tl.program_id(0), tl.arange(0, WIDTH)
    inside = (c[:, None] < d) & (c[None, :] < d)
    at = h_ptr + head * d * d + c[:, None] * d + c[None, :]
    q = tl.load(q_ptr + head * d + c, mask=c < d, other=0.0)  # [WIDTH]
    k = tl.load(k_ptr + head * d + c, mask=c < d, other=0.0)
    v = tl.load(v_ptr + head * d + c, mask=c < d, other=0.0)
    h = tl.exp(tl.load(g_ptr + head)) * tl.load(at, mask=inside, other=0.0) + k[:, None] * v[None, :]
    tl.store(at, h, mask=inside)
    tl.store(o_ptr + head * d + c, tl.sum(q[:, None] * h, 0), mask=c < d)


def grade_step(answer) -> None:
    H, d = 3, 20
    q, k, v = random(3, H, d)
    g, h = torch.tensor([-0.5, -2.0, -torch.inf], device=device()), random(H, d, d)
    expected, state = state_space.recurrent(*(x[None, None] for x in (q, k, v, g)), h[None])
    o = torch.full_like(q, torch.nan)
    launch(answer, (H,), q, k, v, g, h, o, d, WIDTH=32)
    expect("o after one step", o, expected[0, 0])
    expect("h after one step", h, state[0])


@triton.jit
def pass_on(states_ptr, kept_ptr, h_ptr, chunks, d, WIDTH: tl.constexpr):
    head, c = tl.program_id(0), tl.arange(0, WIDTH)
    inside = (c[:, None] < d) & (c[None, :] < d)
    entries = c[:, None] * d + c[None, :]
    h = tl.load(h_ptr + head * d * d + entries, mask=inside, other=0.0)
    for n in range(chunks):
        at = states_ptr + (head * chunks + n) * d * d + entries
        added, kept = tl.load(at, mask=inside, other=0.0), tl.load(kept_ptr + head * chunks + n)
        tl.store(at, h, mask=inside)  # in its place: the state before chunk n
        h = kept * h + added  # Eq. ssm-state
    tl.store(h_ptr + head * d * d + entries, h, mask=inside)


def grade_pass_on(answer) -> None:
    by_hand = torch.tensor([1.0, 2.0, 3.0], device=device()).view(1, 3, 1, 1)
    half = torch.full((1, 3), 0.5, device=device())
    cases = (
        ("by hand", by_hand, half, torch.zeros(1, 1, 1, device=device())),
        ("two heads of width 5", random(2, 4, 5, 5), random(2, 4).sigmoid(), random(2, 5, 5)),
    )
    for what, added, kept, h in cases:
        (H, chunks, d, _), before, end = added.shape, torch.empty_like(added), h.clone()
        for n in range(chunks):
            before[:, n] = end
            end = kept[:, n, None, None] * end + added[:, n]
        launch(answer, (H,), added, kept, h, chunks, d, WIDTH=16)
        expect(f"the states before each chunk, {what}", added, before)
        expect(f"the state at the end, {what}", h, end)


EXERCISES = {
    "2.1": Exercise(
        grade_programs, programs_and_idle, "As many programs as blocks, rounded up. Lanes in all, minus m."
    ),
    "2.2": Exercise(
        grade_step,
        step,
        "c = tl.arange(0, WIDTH): rows are c[:, None], columns c[None, :]. k[:, None] * v[None, :] is what is "
        "written; tl.sum(q[:, None] * h, 0) is what is read. Mask by c < d.",
    ),
    "2.3": Exercise(
        grade_pass_on,
        pass_on,
        "Load h. For each chunk n: load what it adds from states_ptr + (head * chunks + n) * d * d and its kept, store "
        "h in that place, then h = kept * h + added. Store h after the loop. load_rows and store_rows help.",
    ),
}
