"""Figures of notebook 05: their numbers."""

from __future__ import annotations

import numpy as np

from pspin_lite.lessons.figures import attractor as figures


def test_cobweb_iterates_the_map():
    figure, paths = figures.cobweb({"a": (1.0, 0.5, [0.0]), "b": (0.1, 2.0, [-0.05, -0.2])}, steps=30)
    assert np.allclose(paths["a"][0, :3], [0, np.tanh(1), np.tanh(1 + 0.5 * np.tanh(1))])
    assert paths["b"].shape == (2, 31)
    assert np.sign(paths["b"][:, -1]).tolist() == [1, -1]
    drawn = figure.axes[0].lines[2]
    assert np.allclose(drawn.get_ydata()[1], np.tanh(1)), "first up to the curve"
    assert np.allclose(drawn.get_xdata()[2], np.tanh(1)), "then across to the diagonal"


def test_portraits_have_their_fixed_points():
    figure, found = figures.portraits(["alone", "frustrated"], gamma=0.5, scale=4, K=8)
    assert len(figure.axes) == 2
    assert {kind: len(one["points"]) for kind, one in found.items()} == {"alone": 9, "frustrated": 1}
    assert found["alone"]["paths"].shape == (5, 9, 2)
    for one in found.values():
        assert np.ptp(one["other"], axis=0).max() > 0.4, "the other start's path can be seen"


def test_regimes():
    figure, found = figures.regimes(np.array([0.5, 3.0, 8.0]))
    assert np.allclose(found["bound"] / found["bound"][0], [1, 6, 16])
    assert (found["radius"] < found["bound"]).all()
    assert found["settles"].tolist()[:2] == [1, 1]
    assert found["settles"][2] < 1
    assert np.allclose(figure.axes[1].lines[0].get_ydata(), 100 * found["settles"])
