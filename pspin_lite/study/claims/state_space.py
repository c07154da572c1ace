"""Claims on the state space: its decay, its state, its chunks. Nothing here is trained."""

from __future__ import annotations

import torch

from ... import costs, state_space
from ...config import preset
from ...variants import build
from .verdict import HOLDS, REFUTED, UNTESTABLE, Measured


def decay() -> Measured:
    inputs = torch.arange(-300.0, 301.0)
    g = -torch.nn.functional.softplus(inputs)
    zero = inputs[g == 0].max().item()
    values = dict(low=inputs[0].item(), high=inputs[-1].item(), zero=zero)
    return Measured(HOLDS if g.max() <= 0 else REFUTED, values)


def carried_state() -> Measured:
    cfg = preset("byte-lite")
    torch.manual_seed(0)
    model, sizes = build(cfg).eval(), {}
    for T in (16, 512):
        _, state = model.prefill(torch.zeros(1, T, dtype=torch.long))
        sizes[T] = sum(s.numel() for s in state) * 4
    return Measured(HOLDS if sizes[16] == sizes[512] else REFUTED, dict(kib=sizes[16] / 1024))


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
        outcomes = [[o.detach(), *torch.autograd.grad(o.sin().sum(), inputs)] for o, _ in forms]
        apart[dtype] = max(((b - a).norm() / a.norm()).item() for a, b in zip(*outcomes, strict=True))
    exact = all(apart[dtype] < limit for dtype, limit in limits.items())
    values = {
        "than": "less than" if exact else "more than",
        "double": limits[torch.float64],
        "single": limits[torch.float32],
        "tokens": T,
        "chunk": cfg.chunk,
        "width": d,
    }
    return Measured(HOLDS if exact else REFUTED, values)


def novel() -> Measured:
    """Against linear attention with a scalar decay per head, written out."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 40, 2, 8, dtype=torch.float64)
    g = -torch.nn.functional.softplus(torch.randn(1, 40, 2, dtype=torch.float64))
    total, rows = torch.zeros(1, 2, 8, 8, dtype=torch.float64), []
    for t in range(40):
        total = g[:, t].exp()[..., None, None] * total + k[:, t, :, :, None] * v[:, t, :, None, :]
        rows.append((q[:, t, :, None, :] @ total)[:, :, 0])
    apart = (state_space.recurrent(q, k, v, g)[0] - torch.stack(rows, 1)).abs().max().item()
    return Measured(REFUTED if apart < 1e-12 else HOLDS, dict(limit=1e-12))


def mask() -> Measured:
    """Where a GPU keeps it was not seen."""
    cfg = preset("byte-paper")
    values = dict(mask=4 * cfg.heads * cfg.context * cfg.chunk / costs.MB, row=4 * cfg.context * cfg.width / costs.MB)
    return Measured(UNTESTABLE, values)


MEASURES = {"decay": decay, "state": carried_state, "chunks": chunks, "mask": mask, "novel": novel}
