"""Figures of notebook 08 show what they say."""

from __future__ import annotations

import numpy as np
import pytest

import pspin_lite as ps
from pspin_lite import costs
from pspin_lite.lessons.figures import network as draw


def test_stream_adds_independent_pieces_in_squares():
    sizes, pieces = np.array([0.0, 3.0, 6.0]), np.array([3.0, 4.0])
    figure, shown = draw.stream(sizes, pieces)
    assert np.allclose(shown["if the pieces were independent"], [0, 3, 5])
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["stream"].get_ydata().tolist() == [0, 3, 6]
    assert lines["state space adds"].get_xydata().tolist() == [[1, 3]]
    assert lines["attractor adds"].get_xydata().tolist() == [[2, 4]]


def test_footprints_are_the_tables():
    tables = [ps.footprint(ps.preset(name)) for name in ("byte-paper", "transformer-paper")]
    figure, shown = draw.footprints(tables)
    assert list(shown) == ["byte-paper, uncompressed", "byte-paper, deployed", "transformer-paper"]
    totals = [sum(parts.values()) for parts in shown.values()]
    assert totals == pytest.approx([116.62, 41.37, 163.53], abs=0.005)
    widths = [patch.get_width() for patch in figure.axes[0].patches]
    assert sum(widths) == pytest.approx(sum(totals))
    assert [text.get_text() for text in figure.axes[0].texts] == ["116.62", "41.37", "163.53"]


def test_shares_add_up_to_a_hundred():
    figure, shown = draw.shares({"a": costs.Cost(10, 60, 30), "b": costs.Cost(1, 98, 1)})
    assert shown["a"] == {"state_space": 10, "attractor": 60, "head": 30}
    assert [text.get_text() for text in figure.axes[0].texts] == ["10", "60", "30", "98"], "no room for small ones"
    assert sum(patch.get_width() for patch in figure.axes[0].patches) == pytest.approx(200)


def test_lines_are_what_is_given():
    figure, _ = draw.peaks([10, 20], {"plain": [2**20, 2**21], "pieces": [2**19, 2**19]})
    assert [line.get_ydata().tolist() for line in figure.axes[0].lines] == [[1, 2], [0.5, 0.5]]
    figure, _ = draw.kept([1, 2], {"unrolled": [2**20, 2**21], "implicit": [2**20, 2**20]})
    assert [line.get_ydata().tolist() for line in figure.axes[0].lines] == [[1, 2], [1, 1]]
    figure, _ = draw.carried([1, 2, 4], {"state": [1024] * 3, "cache": [1024, 2048, 4096]}, {"cache": [1024, 2048]})
    state, cache, dots = figure.axes[0].lines
    assert state.get_ydata().tolist() == [1, 1, 1]
    assert cache.get_ydata().tolist() == [1, 2, 4]
    assert dots.get_xydata().tolist() == [[1, 1], [2, 2]]
