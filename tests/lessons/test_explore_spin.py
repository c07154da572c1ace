"""The one spin of notebook 00: it settles, or it swings."""

from __future__ import annotations

from math import tanh

import ipywidgets as ipw
import pytest
import torch

import pspin_lite as ps
from pspin_lite.lessons import explore_spin, live


def test_the_path_is_the_attractors():
    z, w_int, gamma = torch.tensor([[1.0, 20.0]]), torch.tensor([[-2.0], [0.0]]), torch.tensor([0.3])
    values = explore_spin.path(-2.0, 0.3)
    assert values[0] == tanh(1)
    for steps in (1, 5, 30):
        assert ps.attractor.unrolled(z, w_int, gamma, steps).item() == pytest.approx(values[steps], abs=1e-6)


@pytest.mark.parametrize(
    ("coupling", "gamma", "settles"),
    [
        (1, 0.5, "from step 4 on"),
        (-6, 0.0, "from step 1 on"),
        (-6, 0.5, "not within 30 steps"),
        (6, 0.5, "from step 3 on"),
    ],
)
def test_it_settles_or_swings(coupling, gamma, settles):
    figure, numbers = explore_spin.draw_spin(coupling, gamma)
    assert numbers["changes by less than 0.001"] == settles
    last = figure.lines[0].y[-3:]
    assert (abs(last[2] - last[1]) < explore_spin.SETTLED) == settles.startswith("from")
    assert abs(last[2] - last[0]) < 1e-2, "what does not settle goes back and forth"


@pytest.mark.parametrize(
    ("coupling", "ending", "slope"),
    [(-2, "Settled at step 25", "−0.77"), (-2.25, "Settles slowly", "−0.89"), (-2.5, "Never settles", "−1.02")],
)
def test_the_titles_say_how_it_ends(coupling, ending, slope):
    left, right = explore_spin.draw_spin(coupling, 0.5)[0].panels
    assert (left.title, right.title) == (ending, f"Slope at the crossing: {slope}")


def test_the_way_stays_on_the_curve():
    figure, _ = explore_spin.draw_spin(-3, 0.4)
    way = figure.lines[-2]
    for x, y in list(zip(way.x, way.y, strict=True))[::2]:
        assert y == pytest.approx(x) or y == pytest.approx(tanh(1 - 1.2 * x))


@pytest.mark.parametrize(("coupling", "gamma"), [(-6, 0.5), (-1, 0.5), (0, 0.0), (6, 0.5)])
def test_the_fixed_point_stays_where_it_is(coupling, gamma):
    at = explore_spin.fixed_point(coupling, gamma)
    assert tanh(1 + coupling * gamma * at) == pytest.approx(at)
    if coupling > -6:
        assert explore_spin.path(coupling, gamma)[-1] == pytest.approx(at), "where it settles"
    dot = explore_spin.draw_spin(coupling, gamma)[0].lines[-1]
    assert (dot.x.tolist(), dot.y.tolist()) == ([at], [at])


def test_it_is_live_on_a_page_without_a_kernel():
    coupling = ipw.FloatSlider(-2, min=-3, max=1, step=0.25)
    controls = dict(coupling=coupling, gamma=ipw.FloatSlider(0.5, min=0.1, max=0.5, step=0.1))
    spec = live.specify(explore_spin.draw_spin, controls)
    assert spec["form"] == "frames"
    assert len(spec["frames"]) == 85
