"""What the tables of `make bench` share: a matrix product to compare with, and how a table is printed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Calls = dict[str, Callable[[], object]]


def product(n: int) -> tuple[Callable[[], object], float]:
    """A large matrix product to compare rates with, and its flops."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return (lambda: a @ b), 2.0 * n**3


def both_ways(function: Callable[..., Tensor], inputs: list[Tensor], upstream: Tensor) -> Callable[[], None]:
    """A call that runs `function` forward and backward and leaves no gradients behind."""

    def run() -> None:
        torch.autograd.grad(function(*inputs), inputs, upstream)

    return run


def show(title: str, rows: list[list[str]]) -> None:
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(
            "  "
            + row[0].ljust(widths[0])
            + "".join("  " + cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        )
