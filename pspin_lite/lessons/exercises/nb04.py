"""Exercises of notebook 04."""

from __future__ import annotations

from statistics import NormalDist

import torch

from . import Exercise, expect


def threshold_for(zeros: float) -> float:
    """The threshold below which a given share of standard normal weights lies, in magnitude."""
    return NormalDist().inv_cdf((1 + zeros) / 2)


def grade_threshold(answer) -> None:
    for zeros, threshold in ((0.0, 0.0), (0.3101, 0.3989), (0.5, 0.6745), (0.9973, 3.0)):
        assert (result := answer(zeros)) is not None, "threshold_for returned None: is there a `return`?"
        assert abs(result - threshold) < 1e-3, f"for {zeros:.0%} zeros you say {result:.4f}, it is {threshold:.4f}"


def fitted_scale(codes: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The s for which the outputs s x codesᵀ are nearest to y."""
    outputs = x @ codes.to(x.dtype).T
    return (outputs * y).sum() / (outputs * outputs).sum()


def grade_scale(answer) -> None:
    x, y = torch.tensor([[1.0, 2.0], [3.0, 1.0]]), torch.tensor([[-3.0], [5.0]])
    expect("the scale for two inputs", answer(torch.tensor([[1, -1]]), x, y), 2.6)
    rng = torch.Generator().manual_seed(0)
    codes = torch.randint(-1, 2, (5, 8), generator=rng)
    x, y = torch.randn(20, 8, generator=rng), torch.randn(20, 5, generator=rng)
    s = float(answer(codes, x, y))
    error = [(t * x @ codes.float().T - y).square().sum().item() for t in (s - 0.01, s, s + 0.01)]
    assert error[1] < min(error[0], error[2]), "for random codes a slightly different scale has a smaller error"


def pack_five(codes: torch.Tensor) -> torch.Tensor:
    """int8 codes (n,) -> uint8 (n/5,): digits of a number in base 3, the first one the lowest."""
    digits = codes.view(-1, 5).to(torch.int16) + 1
    return (digits * torch.tensor([1, 3, 9, 27, 81], dtype=torch.int16)).sum(-1).to(torch.uint8)


def grade_five(answer) -> None:
    small = torch.tensor([-1, 0, 1, 0, -1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1], dtype=torch.int8)
    expect("the bytes of fifteen codes", answer(small), [48, 242, 0], 0)
    assert answer(small).dtype == torch.uint8, f"bytes are uint8, yours are {answer(small).dtype}"
    codes = torch.randint(-1, 2, (500,), generator=torch.Generator().manual_seed(0)).to(torch.int8)
    rest, back = answer(codes).long(), []
    for _ in range(5):
        back.append(rest % 3 - 1)
        rest = rest // 3
    expect("500 codes, packed and unpacked", torch.stack(back, 1).flatten(), codes, 0)


def clipped(W: torch.Tensor) -> torch.Tensor:
    """Ternary values; the gradient passes only where |W| <= s."""
    s = W.detach().abs().mean()
    rounded = (W.detach() / s).round().clamp(-1, 1) * s
    open_ = W * (W.detach().abs() <= s)  # its derivative is 1 or 0
    return rounded + open_ - open_.detach()


def grade_clipped(answer) -> None:
    W = torch.tensor([0.9, -0.2, 0.05, -1.4, 0.45, 0.0], requires_grad=True)
    result = answer(W)
    expect("the values", result, [0.5, 0, 0, -0.5, 0.5, 0])
    (result * torch.arange(1.0, 7)).sum().backward()
    expect("the gradient", W.grad, [0.0, 2, 3, 0, 5, 6])


EXERCISES = {
    "4.1": Exercise(
        grade_threshold,
        threshold_for,
        "Half of what is not zero lies above the threshold. Which quantile is that? See statistics.NormalDist.",
    ),
    "4.2": Exercise(
        grade_scale,
        fitted_scale,
        "With p = x @ codes.T, the squared error of s p against y is a parabola in s. Set its derivative to zero.",
    ),
    "4.3": Exercise(
        grade_five,
        pack_five,
        "Add 1 to each code: five digits of a number in base 3. Their weights are 1, 3, 9, 27, 81.",
    ),
    "4.4": Exercise(
        grade_clipped,
        clipped,
        "x - x.detach() is 0 but has the gradient of x. Add it to the rounded values, for x = W times a mask.",
    ),
}
