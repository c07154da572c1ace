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
def mask_between(g_ptr, out_ptr, R: tl.constexpr):
    i = tl.arange(0, R)
    first, second = tl.load(g_ptr + i), tl.load(g_ptr + R + i)
    to_end = tl.sum(tl.where(i[None, :] > i[:, None], first[None, :], 0.0), 1)  # of the first block, from each j
    from_start = tl.sum(tl.where(i[None, :] <= i[:, None], second[None, :], 0.0), 1)  # of the second, to each i
    tl.store(out_ptr + i[:, None] * R + i[None, :], tl.exp(from_start[:, None] + to_end[None, :]))


def grade_mask_between(answer) -> None:
    g, R = -0.1 * random(32).abs(), 16
    for what, at, value in (
        ("weak decays", 5, 0.0),
        ("a strong decay", 31, -90.0),
        ("a reset in the second block", 24, -torch.inf),
        ("a reset in each block", 11, -torch.inf),
    ):
        g[at] = value
        out = g.new_full((R, R), torch.nan)
        launch(answer, (1,), g, out, R=R)
        expect(f"the mask between the blocks, with {what}", out, state_space.decay_mask(g)[R:, :R])


def product_bytes(rows: int, cols: int, inner: int, tile_rows: int, tile_cols: int) -> int:
    """The left matrix once per column of tiles, the right one once per row of tiles, the result once."""
    return 4 * (rows * inner * (cols // tile_cols) + inner * cols * (rows // tile_rows) + rows * cols)


def grade_product(answer) -> None:
    for sizes, expected in (((128, 128, 128, 32, 32), 589_824), ((64, 256, 32, 16, 64), 229_376)):
        expect(f"bytes for rows, cols, inner, tile_rows, tile_cols = {sizes}", answer(*sizes), expected, 0)


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


EXERCISES = {
    "2.1": Exercise(
        grade_programs, programs_and_idle, "As many programs as blocks, rounded up. Lanes in all, minus m."
    ),
    "2.2": Exercise(
        grade_mask_between,
        mask_between,
        "Each sum has two parts: from j + 1 to the end of the first block, and from the start of the second to i. "
        "`decays` in section 6 makes both kinds. Add the parts and take exp; nothing has to be masked.",
    ),
    "2.3": Exercise(
        grade_product,
        product_bytes,
        "The left matrix is read once per column of tiles. And the others?",
    ),
    "2.4": Exercise(
        grade_step,
        step,
        "c = tl.arange(0, WIDTH): rows are c[:, None], columns c[None, :]. k[:, None] * v[None, :] is what is "
        "written; tl.sum(q[:, None] * h, 0) is what is read. Mask by c < d.",
    ),
}
