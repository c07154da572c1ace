"""Figures of notebook 14 show the records' own numbers, p-Spin minus the others and in order minus mixed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pspin_lite.lessons.figures import eras
from pspin_lite.study import continual, networks, records
from pspin_lite.study.claims import continual_learning
from pspin_lite.study.intervals import Difference
from pspin_lite.study.questions.answers import answers

MODELS = continual.models()
YEARS = list(continual.passed())


def test_every_network_has_a_name():
    assert list(eras.NAMES) == list(MODELS)
    assert set(eras.ORDERS) == set(networks.IN_TIME)
    assert [row[0] for row in eras.settings()[1:]] == list(eras.NAMES.values())
    assert eras.settings()[1][3:] == ["0.0016", "times 2"]


def test_prices_leave_the_test_before_the_first_step_out():
    run = continual.eras(records.seeds("continual", "swiglu-replay")[2])
    assert (eras.prices("swiglu", "replay")[1] == run.bits[:, 1:]).all()
    assert eras.test_steps().tolist() == run.steps[1:].tolist()


def test_differences_are_those_of_the_ledger():
    retention, followed = continual_learning.retention().values, continual_learning.followed().values
    forgotten = eras.against({model: continual.forgotten(model, "time") for model in MODELS})
    price = eras.against({model: continual.followed(model) for model in MODELS})
    assert list(price) == list(MODELS[1:])
    for gap, values in ((forgotten, retention), (price, followed)):
        assert gap["transformer"].mean == pytest.approx(values["gap"])
        assert gap["transformer"].half_width == pytest.approx(values["width"])


def test_new_words_outlines_each_era_and_numbers_the_corners():
    share = np.arange(9.0).reshape(3, 3)
    figure, shown = eras.new_words(share, ["1803", "1823", "1843"], "drift")
    panel = figure.axes[0]
    assert shown is share
    assert [patch.get_xy() for patch in panel.patches] == [(-0.5, -0.5), (0.5, 0.5), (1.5, 1.5)]
    assert [text.get_text() for text in panel.texts] == ["0", "8", "6", "2"]


def test_courses_mark_the_lowest_price_and_what_is_forgotten():
    steps, bits = np.array([400, 800, 1200]), np.array([[3.0, 2.0, 2.25], [4.0, 3.0, 2.5]])
    figure, shown = eras.courses(bits, ["1803", "2023"], ["1803", "2023"], steps, "title")
    panel = figure.axes[0]
    assert shown["1803"].tolist() == [3.0, 2.0, 2.25]
    dots = [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in panel.lines
        if line.get_markersize() == 7 and len(line.get_xdata())
    ]
    assert {(800, 2.0), (1200, 2.5)} <= set(dots)
    rings = [line.get_xdata()[0] for line in panel.lines if line.get_markersize() == 8 and len(line.get_xdata())]
    assert rings == [pytest.approx(1200 * continual.passed()["2023"])], "1803 is reached before the first test"
    assert [text.get_text().strip() for text in panel.texts] == ["1803", "0.25", "2023"]


def test_by_era_has_a_line_per_network():
    costs = {"p-spin": np.array([0.1, -0.2]), "swiglu": np.array([0.0, 0.3])}
    figure, _ = eras.by_era(costs, ["1803", "1823"], "title")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["p-Spin"].get_ydata().tolist() == [0.1, -0.2]
    assert lines["p-Spin"].get_linewidth() > lines["SwiGLU"].get_linewidth()
    assert [text.get_text() for text in figure.axes[0].texts] == ["↑ order hurts", "↓ order helps"]


def test_compared_has_an_interval_for_each():
    gaps = {"forgotten": {"swiglu": Difference(0.1, 0.2, 3)}, "price": {"transformer": Difference(-0.1, 0.1, 3)}}
    figure, shown = eras.compared(gaps, "title")
    assert shown["forgotten", "swiglu"].high == pytest.approx(0.3)
    panel = figure.axes[0]
    assert [text.get_text() for text in panel.texts] == ["forgotten", "price"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["− SwiGLU", "− Transformer"]
    [bar] = panel.containers[0].lines[2]
    assert bar.get_segments()[0][:, 0] == pytest.approx([-0.1, 0.3])


def test_the_online_price_begins_after_the_warm_up():
    steps, points = eras.online_course("p-spin")
    assert steps[0] > continual.WARM
    assert points.mean() == pytest.approx(records.mean(continual.followed("p-spin")), abs=0.02)
    _, shown = eras.online(MODELS, "title")
    assert shown["p-spin"] == pytest.approx(points.mean(0))


def test_around_arrival_is_the_lead_with_the_opposite_sign():
    _, shown = eras.around_arrival(MODELS[:1], "title")
    _, lead = continual.lead("p-spin")
    assert shown["p-spin"] == pytest.approx(-np.mean(list(lead.values()), 0))


def test_following_counts_the_steps_after_arrival(monkeypatch):
    middles = continual.BIN * (np.array(continual.BINS) + 0.5)
    lead = np.where(middles > 0, [-1, -1, -1, 1, 0.2, 0.1, -0.1, -0.2, -0.3], 9)
    monkeypatch.setattr(continual, "lead", lambda model: (middles, {1: lead, 2: np.where(middles == 200, 0.4, -1)}))
    cost, ahead = eras.following("p-spin")
    assert cost == pytest.approx(-0.3)
    assert ahead == [800, 400], "what lies before the arrival does not count"


def test_replay_is_compared_with_reading_in_order():
    figure, shown = eras.replayed(MODELS, "title")
    assert shown["p-spin", "time"].tolist() == [0, 0]
    order = np.mean(list(continual.cost_of_order("p-spin").values()), 0)
    assert -shown["p-spin", "mixed"] == pytest.approx([order[:-1].mean(), order[-1]])
    assert [panel.get_title() for panel in figure.axes] == ["eleven older eras", "2023"]
    assert len(YEARS) == 12


def test_one_era_tells_what_each_network_has_forgotten():
    figure, numbers = eras.one_era("1903", "time")
    run = [continual.eras(one).forgotten()[5] for one in records.seeds("continual", "swiglu-time").values()]
    assert numbers["SwiGLU: forgotten"] == pytest.approx(np.mean(run))
    assert [text.get_text().strip() for text in figure.axes[0].texts] == ["training reaches it"]
    assert not eras.one_era("1903", "mixed")[0].axes[0].texts


def test_equal_rates_show_what_is_there(monkeypatch):
    rows = [dataclasses.replace(row, verdict="not run yet", values=()) for row in answers("order")]
    monkeypatch.setattr(eras, "answers", lambda section: rows)
    assert [row[1:] for row in eras.equal_rates()[1:]] == [["", "", "", "not run yet"]] * 3
    rows[0] = dataclasses.replace(rows[0], verdict="as much", values=((Difference(-0.01, 0.004, 2),),))
    cost = {"continual-rates": {1: 0.16, 2: 0.18}, "continual": {1: 0.18, 2: 0.18}}
    monkeypatch.setattr(continual, "lost_to_order", lambda model, group: cost[group])
    assert eras.equal_rates()[1] == ["bytes, both at 8e-4", "+0.170", "+0.180", "-0.010 ± 0.004", "as much"]
