"""Drawings of training: their numbers are those of the package."""

from __future__ import annotations

import numpy as np
import pytest

import pspin_lite as ps
from pspin_lite.lessons.figures import draw_training as draw


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_step_keeps_what_the_costs_say():
    cfg = ps.preset("byte-paper")
    figure, shown = draw.training_step(cfg)
    assert shown["weights"] * 2**20 == 4 * ps.footprint(cfg).params
    assert shown["moments"] == 2 * shown["weights"] == 2 * shown["gradients"]
    assert f"weights\n{shown['weights']:.1f} MiB" in texts(figure)
    assert f"network, 4 layers\nactivations {shown['activations']:.1f} MiB" in texts(figure)
    assert shown["rates"][[0, 499, 6999]] == pytest.approx([cfg.lr / 500, cfg.lr, cfg.lr])
    assert shown["rates"][-1] == pytest.approx(0.1 * cfg.lr)
    assert {"warm-up", "plateau", "cosine", "500 steps", "6,500 steps", "1,000 steps"} <= set(texts(figure))


def test_orders_are_coloured_by_their_place():
    places = {"time": [0, 1, 2, 3], "replay": [0, 0, 1, 0]}
    figure, shown = draw.orders(places, {"time": 4, "replay": 2}, {"time": "as it came", "replay": "half old"})
    assert shown["time"] == pytest.approx(np.arange(4) / 3)
    assert shown["replay"].tolist() == [0, 0, 1, 0]
    first, second = (figure.axes[0].patches[i].get_facecolor() for i in (0, 4))
    assert first == second, "both begin with the oldest"
    marked, _ = draw.orders(places, {"time": 4, "replay": 2}, {"time": "", "replay": ""}, {"replay": {1, 3}})
    heights = [patch.get_height() for patch in marked.axes[0].patches[:8]]
    assert heights == [3.6] * 4 + [3.6, 1.8, 3.6, 1.8], "repeats are half as high"
    assert {"time", "as it came", "half old"} <= set(texts(figure))
