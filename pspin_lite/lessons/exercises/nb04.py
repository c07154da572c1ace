"""Exercises of notebook 04."""

from __future__ import annotations

import math

import torch

from . import Exercise, expect


def share_of_zeros(threshold: float) -> float:
    """Share of standard normal weights within the threshold."""
    return math.erf(threshold / math.sqrt(2))


def grade_zeros(answer) -> None:
    for threshold, share in ((0.0, 0.0), (0.3989, 0.3100), (1.0, 0.6827), (3.0, 0.9973)):
        assert (result := answer(threshold)) is not None, "share_of_zeros returned None: is there a `return`?"
        assert abs(result - share) < 1e-3, f"for a threshold of {threshold} you say {result:.4f}, it is {share:.4f}"


def best_scale(W: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """The s for which codes * s is nearest to W."""
    codes = codes.to(W.dtype)
    return (W * codes).sum() / (codes * codes).sum()


def grade_scale(answer) -> None:
    expect("the scale of [0.9, -1.5, 0.1]", answer(torch.tensor([0.9, -1.5, 0.1]), torch.tensor([1, -1, 0])), 1.2)
    rng = torch.Generator().manual_seed(0)
    W, codes = torch.randn(20, 20, generator=rng), torch.randint(-1, 2, (20, 20), generator=rng)
    s = float(answer(W, codes))
    error = [(W - codes * x).square().sum().item() for x in (s - 0.01, s, s + 0.01)]
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
        grade_zeros, share_of_zeros, "It is P(|z| <= threshold) for a standard normal z; math.erf is not far away."
    ),
    "4.2": Exercise(
        grade_scale,
        best_scale,
        "The squared error is a parabola in s. Set its derivative to zero: only entries whose code is not 0 count.",
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
