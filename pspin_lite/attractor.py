"""The p-spin attractor: a layer whose output is the fixed point of a gated, ternary map.

    y = tanh(u) * sigmoid(a)      [u | a] = f = z + (gamma * y) W^T

Glossary (rows are tokens; ".." stands for any leading dimensions; I is the number of spins)
    name    shape        paper       meaning
    z       [.., 2I]     Z           external drive, constant during the iteration
    w_int   [2I, I]      W_int^Q     internal couplings, already quantised
    gamma   [I]          gamma       frustration, already 0.5*tanh(gamma_param)
    y       [.., I]      Y           spins; y_0 = spin(z), y_K is the answer
    phi     [.., 2I]     phi         derivatives of y with respect to u and a at the last step
    steps   int          K           products with w_int, forward and again backward

`unrolled` is the reference: autograd through all K steps, memory proportional to K.
`equilibrium` has the same forward pass and the paper's implicit gradient: with J the Jacobian of one step, taken at the
last field f_K, the gradient of the loss L with respect to f is phi * V, where V solves V = dL/dy + J^T V. The Neumann
series adds up its first K + 1 terms, dL/dy + J^T dL/dy + .. + (J^T)^K dL/dy. It is the exact gradient of the fixed
point only if both iterations have converged; where they have not, it is neither that nor the gradient of the K steps
that were run. It computes in the dtype of its inputs, also under autocast, and is differentiable once.

Where it departs from the paper
    * `tol` (the paper has a fixed K). Every token stops by itself, forward and backward, so that a token's result
      depends on no other token: a common stopping rule would let later tokens change earlier ones, by how many steps
      they ask for.
    * `gate="tanh"`: a product of two spins, tanh(u) * tanh(a), for networks of our second study. The paper's gate is
      the sigmoid, and the kernels know no other.
    * The gradient of gamma needs no further product: with A = W diag(gamma), dgamma is the column sum of dA * W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _backends as backends
from . import _checks as checks


@dataclass
class Report:
    """What a call of `equilibrium` did; pass one as `report` and read it afterwards, through float().

    What the kernels counted is a tensor and stays on the device until then: only float() waits for it."""

    forward: float | Tensor = 0.0  # steps per token, on average
    backward: float | Tensor = 0.0
    residual: float | Tensor = float("nan")  # largest relative change of the last step over all tokens; nan without tol


GATES = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}


def spin(h: Tensor, gate: str = "sigmoid") -> Tensor:
    """One evaluation of the nonlinearity, tanh(u) times the gate of a: h [.., 2I], a field [u | a] -> spins [.., I]."""
    u, g = h.chunk(2, -1)  # Eq. spin-split
    return torch.tanh(u) * GATES[gate](g)  # Eq. spin-output


def step(y: Tensor, z: Tensor, w_int: Tensor, gamma: Tensor, gate: str = "sigmoid") -> Tensor:
    """The map whose fixed point is the layer's answer: y [.., I], z [.., 2I], w_int [2I, I], gamma [I] -> [.., I]."""
    return spin(z + (gamma * y) @ w_int.T, gate)  # Eq. spin-field


def unrolled(z: Tensor, w_int: Tensor, gamma: Tensor, steps: int, gate: str = "sigmoid") -> Tensor:
    """K steps through plain autograd: the definition. Its gradient is that of the K steps.
    z [.., 2I], w_int [2I, I], gamma [I] -> the spins after the last step, [.., I]."""
    check_map(z, w_int, gamma, steps, gate)
    y = spin(z, gate)
    for _ in range(steps):
        y = step(y, z, w_int, gamma, gate)
    return y


def equilibrium(
    z: Tensor,
    w_int: Tensor,
    gamma: Tensor,
    steps: int,
    tol: float | None = None,
    backend: str = "auto",
    report: Report | None = None,
    packed: tuple[Tensor, Tensor] | None = None,
    gate: str = "sigmoid",
) -> Tensor:
    """K steps, differentiated implicitly: memory does not depend on K.
    z [.., 2I], w_int [2I, I], gamma [I] -> the spins after the last step, [.., I].
    tol: a token stops once all further relative changes |y_n - y_{n-1}| / |y_n| together are expected to be below tol
    (see `iterate`); the backward iteration stops in the same way. `steps` remains the most that is done.
    report: filled with the steps taken, forward at once and backward when the gradient is computed.
    backend: "triton" runs each step as one kernel over packed couplings (pspin_kernels.attractor). That needs a ternary
    w_int and the paper's gate; "auto" takes "torch" where they are not.
    packed: the couplings as `TernaryLinear.packed_for_kernels` gives them, for the kernels. Then w_int is not read, it
    only receives the gradient. Without it the codes are recovered from w_int, and the host waits for the device once.
    """
    check_map(z, w_int, gamma, steps, gate)
    if tol is not None and not (isinstance(tol, float | int) and 0 < tol < 1):
        raise checks.wrong("tol", repr(tol), "None or a number between 0 and 1")
    if backend == "triton" and gate != "sigmoid":
        raise checks.wrong("gate", f"{gate!r} with backend='triton'", "'sigmoid', the only one that the kernels know")
    chosen = backends.choose(backend, z) if gate == "sigmoid" else "torch"
    report = Report() if report is None else report
    if steps == 0:  # no recurrence: w_int and gamma take no part, and have no gradient
        report.forward, report.backward, report.residual = 0.0, 0.0, float("nan")
        return spin(z, gate)
    rows = z.reshape(-1, z.shape[-1])
    if chosen == "triton" and packed is None:
        packed = _recover_codes(w_int)
        if packed is None and backend != "auto":
            raise checks.wrong("w_int", "values other than -s, 0 and s", "ternary couplings, as ternary.ste gives them")
    if chosen == "triton" and packed is not None:
        from pspin_kernels import attractor as fused

        y = fused.equilibrium(rows, w_int, gamma, *packed, steps, tol, report)
    else:
        y = _Equilibrium.apply(rows, w_int, gamma, steps, tol, report, gate)
    return y.view(*z.shape[:-1], -1)


@torch.no_grad()
def _recover_codes(w_int: Tensor) -> tuple[Tensor, Tensor] | None:
    """What the kernels take, codes of two bits and their scale, from couplings in floats; None if not ternary."""
    if w_int.dtype == torch.float64:
        raise checks.wrong("backend", "'triton' with float64", "'torch': the kernels add up in float32")
    from pspin_kernels.ternary import pack

    scale = w_int.abs().max()
    codes = (w_int / scale.clamp_min(torch.finfo(w_int.dtype).tiny)).round_()
    if not torch.equal(codes * scale, w_int):  # the host waits for the device
        return None
    return pack(codes), scale


class _Equilibrium(torch.autograd.Function):
    """Rows are tokens: z [n, 2I], y [n, I]."""

    @staticmethod
    @backends.without_autocast
    def forward(
        ctx: Any, z: Tensor, w_int: Tensor, gamma: Tensor, steps: int, tol: float | None, report: Report, gate: str
    ) -> Tensor:
        D, of_g = gamma.shape[0], dict(sigmoid=torch.sigmoid_, tanh=torch.tanh_)[gate]
        acts = torch.empty_like(z)  # [tanh u | sigmoid a] of each token's last step

        def step(y: Tensor, rows: Tensor | None) -> Tensor:
            drive, out = (z, acts) if rows is None else (z[rows], None)
            h = torch.addmm(drive, y * gamma, w_int.T, out=out)  # Eq. spin-field
            h[:, :D].tanh_()  # Eq. spin-split
            of_g(h[:, D:])
            if rows is not None:
                acts[rows] = h
            return h[:, :D] * h[:, D:]  # Eq. spin-output

        y, report.forward, report.residual = iterate(step, spin(z, gate), steps, tol)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(slopes_(acts, y, gate), y, w_int, gamma)  # all that the backward pass needs
        ctx.steps, ctx.tol, ctx.report = steps, tol, report
        return y

    @staticmethod
    @once_differentiable
    @backends.without_autocast
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        phi, y, w_int, gamma = ctx.saved_tensors
        D = gamma.shape[0]
        dh = torch.empty_like(phi)  # [V * phi_u | V * phi_a]
        buffer = torch.empty_like(dy) if ctx.tol is None else None  # V_k may take the place of V_{k-1}, once spread

        def spread(V: Tensor, p: Tensor) -> Tensor:
            out = dh[: len(V)]
            torch.mul(V, p[:, :D], out=out[:, :D])
            torch.mul(V, p[:, D:], out=out[:, D:])
            return out

        def step(V: Tensor, rows: Tensor | None) -> Tensor:
            p, start = (phi, dy) if rows is None else (phi[rows], dy[rows])
            return torch.mm(spread(V, p), w_int, out=buffer).mul_(gamma).add_(start)  # Eq. neumann

        V, ctx.report.backward, _ = iterate(step, dy, ctx.steps, ctx.tol)
        spread(V, phi)  # Eq. spin-grad
        del V
        buffer = None  # both given back before the next large one
        dA = dh.T @ y  # gradient of A = w_int * gamma, [2I, I]
        dgamma = sum((a * w).sum(0) for a, w in zip(dA.split(512), w_int.split(512), strict=True))  # no second dA
        return dh, dA.mul_(gamma), dgamma, None, None, None, None


def slopes(h: Tensor, gate: str = "sigmoid") -> tuple[Tensor, Tensor]:
    """phi_u and phi_a of a field: [.., 2I] -> two [.., I]."""
    u, g = h.chunk(2, -1)
    phi_u, phi_a = slopes_(torch.cat([u.tanh(), GATES[gate](g)], -1), spin(h, gate), gate).chunk(2, -1)
    return phi_u, phi_a


def slopes_(acts: Tensor, y: Tensor, gate: str = "sigmoid") -> Tensor:
    """Derivatives of y with respect to u and a, in the place of acts = [tanh u | sigmoid a]: [.., 2I]."""
    t, s = acts.chunk(2, -1)
    if gate == "tanh":  # phi_u = s - t y as below; phi_a = t (1 - s^2) = t - s y
        return acts.copy_(torch.cat([s - t * y, t - s * y], -1))
    torch.addcmul(s, t, y, value=-1, out=t)  # Eq. spin-slopes: phi_u = (1 - t^2) s = s - t y, since y = t s
    torch.addcmul(y, s, y, value=-1, out=s)  # phi_a = t s (1 - s) = y - s y
    return acts


def iterate(step: Callable, x: Tensor, steps: int, tol: float | None) -> tuple[Tensor, float, float]:
    """x <- step(x, rows) for at most `steps` steps; with tol, each row only as long as it needs.

    A row that changed by c relative to its size, and by b in the step before, shrinks its changes by r = c/b a step.
    (For the first step b = 1, since the start is itself a step, from 0.) All further changes together are expected to
    be c (r + r^2 + ..) = c r / (1 - r). A row stops when that is below tol, so that tol is about the error that is
    left, or when it changes by rounding alone. Returns x, the steps a row on average, and the largest last change.
    `rows` are the indices still running, None for all."""
    if tol is None:
        for _ in range(steps):
            x = step(x, None)
        return x, float(steps), float("nan")
    n, rows, taken = len(x), None, 0
    everything, before, residual = x, x.new_ones(()), x.new_zeros(())
    limits = torch.finfo(x.dtype)
    for k in range(1, steps + 1):
        new = step(x, rows)
        taken += len(x)
        change = (new - x).norm(dim=-1) / new.norm(dim=-1).clamp_min(limits.tiny)
        if rows is None:
            everything = new
        else:
            everything[rows] = new
        running = (change * change > tol * (before - change)) & (change > 4 * limits.eps) & (k < steps)
        residual = torch.maximum(residual, change.masked_fill(running, 0).max())  # nan stays nan
        still = running.nonzero().squeeze(-1)
        if len(still) == 0:
            break
        if len(still) == len(x):
            x, before = new, change
        else:
            x, before, rows = new[still], change[still], still if rows is None else rows[still]
    return everything, taken / n, residual.item()


def check_map(z: Tensor, w_int: Tensor, gamma: Tensor, steps: int, gate: str = "sigmoid") -> None:
    """Shapes, dtypes and devices fit together; else an error names the argument."""
    two_d, D = checks.tensor("w_int", w_int, 2, "[2I, I]").shape
    if two_d != 2 * D:
        raise checks.wrong("w_int", f"shape {checks.shape(w_int)}", "[2I, I]: twice as many rows as columns")
    if not isinstance(z, Tensor) or z.ndim < 1 or z.shape[-1] != two_d or z.numel() == 0:
        came = f"shape {checks.shape(z)}" if isinstance(z, Tensor) else type(z).__name__
        raise checks.wrong("z", came, f"[.., {two_d}], as many columns as w_int has rows")
    checks.same("gamma", gamma, (D,), "one for each column of w_int")
    checks.alike("z", z, "w_int", w_int)
    checks.alike("gamma", gamma, "w_int", w_int)
    checks.whole("steps", steps, 0)
    checks.choice("gate", gate, GATES)
