"""Taps of the convolution that are switched off, for notebook 15."""

from __future__ import annotations

import ipywidgets as ipw
import numpy as np
import pytest
import torch

import pspin_lite as ps
from pspin_lite.lessons import explore_taps as taps
from pspin_lite.lessons import live


def weights(model) -> list[torch.Tensor]:
    return [block.mixer.convolution.weight.data.clone() for block in model.blocks]


def test_taps_are_off_for_a_while():
    model = ps.load("byte-mended").model
    before = weights(model)
    with taps.switched_off(model, [1, 3], [2]):
        now = weights(model)
        assert not now[1][[0, 2]].any()
        assert torch.equal(now[1][[1, 3]], before[1][[1, 3]])
        assert torch.equal(now[0], before[0])
    assert all(torch.equal(a, b) for a, b in zip(weights(model), before, strict=True))


def test_windows_are_spread_over_a_text():
    found = taps.windows(np.arange(100, dtype=np.uint8), 3, 9)
    assert found[:, 0].tolist() == [0, 45, 90]
    assert found[-1].tolist() == list(range(90, 100))


def test_bits_of_a_uniform_guess():
    model = lambda x: torch.zeros(*x.shape, 256)  # noqa: E731
    assert taps.bits_per_byte(model, torch.zeros(2, 9, dtype=torch.long)) == pytest.approx(8)


def test_the_choice_is_marked_and_live():
    layers = ("all layers", "layer 1", "layer 2")
    measured = {(off, one): (1.5 + 0.1 * i, "text") for i, off in enumerate(taps.OFF) for one in layers}
    draw = taps.explored(measured)
    figure, numbers = draw(off="2 back", where="layer 1")
    assert numbers == {"bits per byte": "1.700", "more than intact": "0.200", "it writes": "text"}
    panel = figure.axes[0]
    assert len(panel.collections) == 12
    full = [bar for bar in panel.collections if bar.get_alpha() == 1]
    assert [bar.get_paths()[0].vertices[:, 1].max() for bar in full] == [pytest.approx(0.2)]
    assert "+0.200" in [text.get_text() for text in panel.texts]
    assert "from 1.50 to 1.90; in layer 1 alone by 0.40" in taps.describe(measured)
    controls = dict(off=ipw.Dropdown(options=list(taps.OFF)), where=ipw.Dropdown(options=taps.places(measured)))
    assert len(live.specify(draw, controls)["frames"]) == 15
