"""Exercises of notebook 15."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._mended import Convolution
from . import Exercise, expect


def spread_taps(x: Tensor, w: Tensor, gap: int) -> Tensor:
    """x [T,D], w [n,D], the last row for the token itself; the taps lie `gap` tokens apart."""
    n, T = len(w), len(x)
    seen = torch.cat([x.new_zeros((n - 1) * gap, x.shape[1]), x])
    return sum((w[i] * seen[i * gap : i * gap + T] for i in range(n)), start=torch.zeros_like(x))


def grade_spread_taps(answer) -> None:
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    w = torch.tensor([[10.0], [1.0]])
    expect("two taps side by side", answer(x, w, 1), torch.tensor([[1.0], [12.0], [23.0], [34.0]]))
    expect("two taps with a token between them", answer(x, w, 2), torch.tensor([[1.0], [2.0], [13.0], [24.0]]))
    x = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    layer = Convolution(5, "plain")
    layer.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    expect("four taps on five channels", answer(x, layer.weight.data, 1), layer(x[None], None)[0][0])
    late = x.clone()
    late[-1] += 1
    expect(
        "nothing before a token changes with it",
        answer(late, layer.weight.data, 3)[:-1],
        spread_taps(x, layer.weight.data, 3)[:-1],
    )


def decode(past: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """past [n-1,D], the tokens before; x [D], the new one; w [n,D]. -> what it gives for x, and its new past."""
    seen = torch.cat([past, x[None]])
    return (w * seen).sum(0), seen[1:]


def grade_decode(answer) -> None:
    past, x = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([4.0])
    y, after = answer(past, x, torch.tensor([[1000.0], [100.0], [10.0], [1.0]]))
    expect("tokens 1, 2, 3, then 4", y, torch.tensor([1234.0]))
    expect("the past after it", after, torch.tensor([[2.0], [3.0], [4.0]]))
    whole = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    w, past, each = torch.randn(4, 5, generator=torch.Generator().manual_seed(1)), torch.zeros(3, 5), []
    for token in whole:
        y, past = answer(past, token, w)
        each.append(y)
    expect("seven tokens one by one", torch.stack(each), spread_taps(whole, w, 1))


def reach(layers: int, taps: int) -> int:
    """Every layer adds the taps before the token itself."""
    return layers * (taps - 1)


def grade_reach(answer) -> None:
    expect("one layer of four taps", answer(1, 4), 3)
    expect("four layers of four taps", answer(4, 4), 12)
    expect("one tap looks nowhere", answer(6, 1), 0)
    expect("three layers of two taps", answer(3, 2), 3)


EXERCISES = {
    "15.1": Exercise(
        grade_spread_taps, spread_taps, "Put (n - 1) * gap rows of zeros in front; tap i starts at row i * gap."
    ),
    "15.2": Exercise(grade_decode, decode, "Append x to its past; multiply by w and add up; drop the oldest row."),
    "15.3": Exercise(grade_reach, reach, "A layer's input has already seen what the layer below it could see."),
}
