"""Exercises of notebook 15."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._mended import Convolution
from . import Exercise, expect


def rule(held_out: tuple[float, float], recent: tuple[float, float], margin: float = 0.02) -> str:
    """Each is (low, high), an interval of a difference in bits per byte. Both have to agree."""
    if max(held_out[1], recent[1]) < margin:
        return "yes"
    return "no" if min(held_out[0], recent[0]) > margin else "undecided"


def grade_rule(answer) -> None:
    cases = {
        "both below the margin": ((-0.01, 0.01), (-0.05, 0.019), "yes"),
        "both above it": ((0.033, 0.061), (0.021, 0.051), "no"),
        "one above it, one across": ((0.033, 0.061), (0.018, 0.051), "undecided"),
        "one below it, one above": ((-0.01, 0.01), (0.033, 0.061), "undecided"),
        "above zero, and across the margin": ((0.01, 0.03), (0.01, 0.03), "undecided"),
    }
    for what, (held_out, recent, word) in cases.items():
        said = answer(held_out, recent)
        assert said == word, f"{what}: got {said!r}, expected {word!r}"
    assert answer((0.0, 0.04), (0.0, 0.04), margin=0.05) == "yes", "the margin is not always 0.02"


def decode(past: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """past [n-1,D], the tokens before; x [D], the new one; w [n,D]. -> what it gives for x, and its new past."""
    seen = torch.cat([past, x[None]])
    return (w * seen).sum(0), seen[1:]


def grade_decode(answer) -> None:
    past, x = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([4.0])
    y, after = answer(past, x, torch.tensor([[1000.0], [100.0], [10.0], [1.0]]))
    expect("tokens 1, 2, 3, then 4", y, torch.tensor([1234.0]))
    expect("the past after it", after, torch.tensor([[2.0], [3.0], [4.0]]))
    whole, layer = torch.randn(7, 5, generator=torch.Generator().manual_seed(0)), Convolution(5, "plain")
    layer.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    past, each = torch.zeros(3, 5), []
    for token in whole:
        y, past = answer(past, token, layer.weight.data)
        each.append(y)
    expect("seven tokens one by one", torch.stack(each), layer(whole[None], None)[0][0])


def reach(layers: int, taps: int) -> int:
    """Every layer adds the taps before the token itself."""
    return layers * (taps - 1)


def grade_reach(answer) -> None:
    expect("one layer of four taps", answer(1, 4), 3)
    expect("four layers of four taps", answer(4, 4), 12)
    expect("one tap looks nowhere", answer(6, 1), 0)
    expect("three layers of two taps", answer(3, 2), 3)


EXERCISES = {
    "15.1": Exercise(grade_rule, rule, "A yes looks at both upper ends, a no at both lower ends; the rest is easy."),
    "15.2": Exercise(grade_reach, reach, "A layer's input has already seen what the layer below it could see."),
    "15.3": Exercise(grade_decode, decode, "Append x to its past; multiply by w and add up; drop the oldest row."),
}
