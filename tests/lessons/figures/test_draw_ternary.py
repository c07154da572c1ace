"""The drawings of notebooks 04 and 07 show what the package computes."""

from __future__ import annotations

import ipywidgets as ipw
import numpy as np
import pytest
import torch

from pspin_lite import ternary
from pspin_lite.lessons import live
from pspin_lite.lessons.figures import draw_ternary as draw


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_weight_moves_by_the_straight_through_gradient():
    """Beside a second weight that keeps the scale at 1, and with PyTorch's gradient."""
    figure, walk = draw.staircase_walk(start=-0.9, target=0.8, lr=0.15)
    assert {"push +0.27", "push +0.12", "push −0.03"} <= set(texts(figure))
    for before, after in zip(walk["w"][:-1], walk["w"][1:], strict=True):
        w = torch.tensor([before, 2 - abs(before)], requires_grad=True)
        (0.5 * (ternary.ste(w)[0] - 0.8) ** 2).backward()
        assert after == pytest.approx(before - 0.15 * w.grad[0].item())


def test_the_flicker_has_the_wanted_mean():
    walk = draw.climb(start=-0.9, target=0.8, lr=0.15, steps=60)
    assert walk["code"][10:60].mean() == pytest.approx(0.8)
    assert set(walk["code"][10:]) == {0, 1}
    assert set(np.round(walk["push"], 9)) == {0.27, 0.12, -0.03}, "one push per tread"


@pytest.mark.parametrize(("target", "rate"), [(0.2, 0.15), (0.5, 0.6), (0.8, 0.3), (1.0, 0.15)])
def test_the_widget_says_how_often_each_code_is_used(target, rate):
    _, numbers = draw.flicker(target, rate)
    assert numbers["mean code"] == f"{target:.2f}"
    assert numbers["code 1 in the long run"] == f"{100 * target:.0f}%"
    controls = dict(
        target=ipw.SelectionSlider(options=[0.5, 0.8], value=0.8), rate=ipw.SelectionSlider(options=[0.15], value=0.15)
    )
    assert len(live.specify(draw.flicker, controls)["frames"]) == 2, "it has a live form"


@pytest.mark.parametrize("place", range(4))
def test_the_byte_is_the_package_s(place):
    codes = (1, -1, 0, 1)
    figure, shown = draw.packed_byte(codes, place)
    assert shown["byte"] == ternary.pack(torch.tensor(codes)).item()
    assert shown["code"] == codes[place]
    assert f"= {shown['shifted']}" in texts(figure)


def test_a_step_moves_fourteen_arrays_or_four():
    spins, couplings = 4 * 64 * 32 / 2**20, 2 * 32 * 32 / 2**20
    _, totals = draw.step_on_chip(64, 32)
    assert totals["operation by operation"] == pytest.approx(14 * spins + 4 * couplings)
    assert totals["one kernel, packed"] == pytest.approx(4 * spins + couplings / 4)
    sizes = [
        size
        for plan in draw.step_bytes(2048, 2048).values()
        for _, *both in plan
        for one in both
        for size in one.values()
    ]
    shown = texts(draw.step_on_chip(2048, 2048)[0])
    assert [text for text in shown if text.isdigit()] == [f"{size:.0f}" for size in sizes]


def test_packing_pays_with_one_token_and_fusing_with_many():
    draw_savings = draw.savings(2048)
    assert draw_savings(1)[1] == {
        "fusing saves": "0.1 MiB",
        "packing saves": "30.0 MiB",
        "both save": "30.1 MiB",
    }
    figure, numbers = draw_savings(2048)
    assert numbers == {"fusing saves": "160.0 MiB", "packing saves": "30.0 MiB", "both save": "190.0 MiB"}
    widths = [np.ptp(bar.get_paths()[0].vertices[:, 0]) for bar in figure.axes[0].collections[:14]]
    assert widths == [64, 32, 128, 32, 32, 32, 32, 64, 32, 128, 2, 32, 32, 2], "spins, drive, field, couplings"
    titles = [draw_savings(tokens)[0].axes[0].get_title(loc="left") for tokens in (256, 384, 512)]
    assert titles == [
        "256 tokens: packing saves more than fusing",
        "384 tokens: both save the same",
        "512 tokens: fusing saves more than packing",
    ]
