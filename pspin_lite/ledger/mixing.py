"""Claims on the state space: its decay, its state, its chunks. Nothing here is trained."""

from __future__ import annotations

import torch

from .. import state_space
from ..config import preset
from ..language_model import build
from . import FAILS, HOLDS, UNTESTABLE, Measured


def decay() -> Measured:
    inputs = torch.arange(-300.0, 301.0)
    g = -torch.nn.functional.softplus(inputs)
    zero = inputs[g == 0].max().item()
    text = "never above 0 for inputs from {low:.0f} to {high:.0f}; in float32 it is 0 (nothing fades) up to {zero:.0f}"
    values = dict(low=inputs[0].item(), high=inputs[-1].item(), zero=zero)
    return Measured(HOLDS if g.max() <= 0 else FAILS, text, values)


def carried_state() -> Measured:
    cfg = preset("byte-lite")
    torch.manual_seed(0)
    model, sizes = build(cfg).eval(), {}
    for T in (16, 512):
        _, state = model.prefill(torch.zeros(1, T, dtype=torch.long))
        sizes[T] = sum(s.numel() for s in state) * 4
    text = "decoding carries {kb:.0f} kB whatever the length of the text (byte-lite, counted at 16 and 512 bytes)"
    return Measured(HOLDS if sizes[16] == sizes[512] else FAILS, text, dict(kb=sizes[16] / 1000))


def chunks() -> Measured:
    """Against the recurrence, forward and gradients, at a length that is no multiple of the chunk."""
    cfg = preset("byte-paper")
    T, H, d = 300, 2, cfg.head_width
    limits, apart = {torch.float64: 1e-12, torch.float32: 1e-5}, {}  # of rounding, which differs between processors
    for dtype in limits:
        torch.manual_seed(0)
        q, k, v, g = (torch.randn(1, T, H, d, dtype=dtype) for _ in range(4))
        inputs = [x.requires_grad_() for x in (q * d**-0.5, k, v, -torch.nn.functional.softplus(g.mean(-1)))]
        forms = [state_space.recurrent(*inputs), state_space.chunked(*inputs, chunk=cfg.chunk, backend="torch")]
        found = [[o.detach(), *torch.autograd.grad(o.sin().sum(), inputs)] for o, _ in forms]
        apart[dtype] = max(((b - a).norm() / a.norm()).item() for a, b in zip(*found, strict=True))
    values = dict(double=limits[torch.float64], single=limits[torch.float32], tokens=T, chunk=cfg.chunk, width=d)
    less = all(apart[dtype] < limit for dtype, limit in limits.items())
    text = (
        "outputs and gradients of all inputs differ from the recurrence's by "
        + ("less than " if less else "more than ")
        + "{double:.0e} of their size in 64 bits, {single:.0e} in 32 ({tokens} tokens in chunks of {chunk}, heads of "
        "{width})"
    )
    return Measured(HOLDS if less else FAILS, text, values)


def mask() -> Measured:
    """Where a GPU keeps it was not seen."""
    cfg = preset("byte-paper")
    values = dict(mask=4 * cfg.heads * cfg.context * cfg.chunk / 1e6, row=4 * cfg.context * cfg.width / 1e6)
    text = (
        "not seen on a GPU. By reading the code, none of our Triton kernels takes or returns a tensor of masks or "
        "scores, and notebook 02 counts what they store. A layer's masks would have {mask:.1f} MB in byte-paper, its "
        "outputs have {row:.1f}. Without Triton, as in all runs here, they are in memory"
    )
    return Measured(UNTESTABLE, text, values)


MEASURES = {"decay": decay, "state": carried_state, "chunks": chunks, "mask": mask}
