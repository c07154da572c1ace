"""How noisy the gradient of one sequence is.

The noise scale tr(Sigma) / |G|^2, with G the mean gradient and Sigma the covariance of single sequences' gradients, is
the batch size at which the noise in a gradient is as large as its signal (McCandlish et al. 2018, arXiv:1812.06162).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .. import _checks as checks


def noise_scale(loss: Callable[[Tensor], Tensor], parameters: Sequence[Tensor], batch: Tensor) -> dict[str, float]:
    """Unbiased estimates of |G|^2 and tr(Sigma) from the gradients of the rows of `batch`, one by one.

    loss: of a [1,T+1] tensor. -> signal, noise, and scale, their ratio (inf where the signal's estimate is not above 0:
    then the batch was too small to see it)."""
    n = len(batch)
    if n < 2:
        raise checks.wrong("batch", f"{n} sequences", "at least 2: a covariance needs them")
    parameters = [p for p in parameters if p.requires_grad]
    total, squares = [torch.zeros_like(p) for p in parameters], 0.0
    for row in batch:
        gradients = torch.autograd.grad(loss(row[None]), parameters, allow_unused=True)
        for t, g in zip(total, gradients, strict=True):
            if g is not None:
                t += g
                squares += g.pow(2).sum().item()
    return estimates(sum((t / n).pow(2).sum().item() for t in total), squares / n, n)


def estimates(of_mean: float, mean_of: float, n: int) -> dict[str, float]:
    """From the squared norm of the mean of n gradients, and the mean of their squared norms."""
    noise = (mean_of - of_mean) * n / (n - 1)
    signal = of_mean - noise / n
    return dict(signal=signal, noise=noise, scale=noise / signal if signal > 0 else float("inf"), sequences=n)
