"""Figures of notebook 14 show the records' own numbers, p-Spin minus the others and in order minus mixed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pspin_lite.lessons.figures import eras, fades, replays
from pspin_lite.study import continual, networks, records
from pspin_lite.study.claims import continual_learning
from pspin_lite.study.intervals import Difference

MODELS = continual.models()
YEARS = list(continual.passed())


def test_every_network_has_a_name():
    assert list(eras.NAMES) == list(MODELS)
    assert set(eras.ORDERS) == set(networks.IN_TIME)
    assert [row[0] for row in eras.settings()[1:]] == list(eras.NAMES.values())
    assert eras.settings()[1][3:] == ["0.0016"]


def test_losses_leave_the_test_before_the_first_step_out():
    run = continual.eras(records.seeds("continual", "swiglu-replay")[2])
    assert (eras.losses("swiglu", "replay")[1] == run.bits[:, 1:]).all()
    assert eras.test_steps().tolist() == run.steps[1:].tolist()


def test_the_readers_measure_gives_what_the_ledger_has():
    mine = eras.by_seed("swiglu", lambda A: A[:, -1] - A.min(axis=1))
    assert mine == pytest.approx(continual.forgotten("swiglu", "time"))


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


def test_courses_mark_the_lowest_loss_and_what_is_forgotten():
    steps, bits = np.array([400, 800, 1200]), np.array([[3.0, 2.0, 2.25], [4.0, 3.0, 2.5]])
    figure, shown = eras.courses(bits, ["1803", "2023"], ["1803", "2023"], steps, "title", np.array([2.0, 1.9, 1.8]))
    panel = figure.axes[0]
    assert shown["1803"].tolist() == [3.0, 2.0, 2.25]
    dots = [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in panel.lines
        if line.get_markersize() == 7 and len(line.get_xdata())
    ]
    assert (800, 2.0) in dots
    assert (1200, 2.5) not in dots, "of 2023 nothing is forgotten"
    rings = [line.get_xdata()[0] for line in panel.lines if line.get_markersize() == 8 and len(line.get_xdata())]
    assert rings == [pytest.approx(1200 * continual.passed()["2023"])], "1803 is reached before the first test"
    assert [text.get_text().strip() for text in panel.texts] == ["1803", "0.25", "2023"]


def test_counts_are_the_same_whatever_the_order():
    course = eras.counts()
    assert course.bits.shape == (12, 12)
    assert course.steps.tolist() == eras.test_steps().tolist()
    assert course.bits[:, -1] == pytest.approx(eras.counts("mixed").bits[:, -1])
    assert eras.counts("time", math.inf) is course, "computed once"


def test_by_speech_has_a_line_per_network_and_one_of_counts():
    figure, shown = eras.by_speech(MODELS, YEARS, "title")
    effect = np.mean(list(continual.cost_of_order("p-spin").values()), 0)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["p-Spin"].get_ydata() == pytest.approx(effect)
    assert lines["p-Spin"].get_linewidth() > lines["SwiGLU"].get_linewidth()
    assert shown["counts"] == pytest.approx(np.zeros(12))
    assert len(figure.axes[0].collections) == len(MODELS), "a band for each network"
    assert [text.get_text() for text in figure.axes[0].texts] == ["↑ order hurts", "↓ order helps"]


def test_compared_has_an_interval_for_each():
    gaps = {"forgotten": {"swiglu": Difference(0.1, 0.2, 3)}, "price": {"transformer": Difference(-0.1, 0.1, 3)}}
    figure, shown = eras.compared(gaps, "title")
    assert shown["forgotten", "swiglu"].high == pytest.approx(0.3)
    panel = figure.axes[0]
    assert [text.get_text() for text in panel.texts] == ["forgotten", "price"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["vs SwiGLU", "vs Transformer"]
    [bar] = panel.containers[0].lines[2]
    assert bar.get_segments()[0][:, 0] == pytest.approx([-0.1, 0.3])


def test_the_online_loss_begins_after_the_warm_up():
    steps, points = replays.online_course("p-spin")
    assert steps[0] > continual.WARM
    assert points.mean() == pytest.approx(records.mean(continual.followed("p-spin")), abs=0.02)
    figure, shown = replays.online(MODELS, "title")
    assert shown["p-spin"] == pytest.approx(points.mean(0))
    assert len(shown["counts"]) == len(steps)
    assert figure.axes[0].lines[0].get_label() == "p-Spin, rate 0.0016"


def test_replay_is_compared_with_reading_in_order():
    figure, shown = replays.replayed(MODELS, "title")
    order = np.array(list(continual.cost_of_order("p-spin").values()))
    assert -shown["p-spin", "mixed"][:, 0] == pytest.approx(order[:, :-1].mean(1))
    assert -shown["p-spin", "mixed"][:, 1] == pytest.approx(order[:, -1])
    replay, ordered = (eras.losses("p-spin", order)[:, -1, -1] for order in ("replay", "time"))
    assert shown["p-spin", "replay"][:, 1] == pytest.approx(replay - ordered)
    assert shown["counts", "mixed"] == pytest.approx(np.zeros((1, 2)))
    assert (shown["counts", "replay"] > 0.1).all()
    ways = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    assert ways["p-Spin"] == pytest.approx(
        np.array([(0, 0), *(shown["p-spin", way].mean(0)[::-1] for way in ("replay", "mixed"))])
    )
    assert len(ways["counts"]) == 2, "mixed text leads them back to where they are in order"


def test_forgotten_so_far_ends_with_what_is_forgotten():
    so_far = eras.forgotten_so_far(eras.losses("swiglu"))
    assert so_far[-1] == pytest.approx(records.mean(continual.forgotten("swiglu", "time")), abs=1e-6)
    assert eras.forgotten_so_far(np.array([[3.0, 2.0, 2.5], [1.0, 9.0, 9.0]])).tolist() == [0, 0, 0.5]


def test_the_table_of_the_end_has_a_row_per_learner():
    rows = eras.at_the_end(MODELS)
    assert [row[0] for row in rows[1:]] == [*eras.NAMES.values(), "counts"]
    assert rows[-1][1] == rows[-1][2]
    assert rows[1][3] == f"{eras.losses('p-spin')[:, -1, -1].mean():.2f}"


def test_one_era_tells_what_each_network_has_forgotten():
    figure, numbers = fades.one_era("1903", "time")
    run = [continual.eras(one).forgotten()[5] for one in records.seeds("continual", "swiglu-time").values()]
    assert numbers["SwiGLU: forgotten"] == pytest.approx(np.mean(run))
    panel, right = figure.axes
    forgotten = np.mean(
        [continual.eras(one).forgotten() for one in records.seeds("continual", "p-spin-time").values()], 0
    )
    assert right.lines[0].get_ydata() == pytest.approx(forgotten, abs=1e-6)
    assert (right.lines[1].get_xdata()[0], right.lines[1].get_ydata()[0]) == (5, pytest.approx(forgotten[5], abs=1e-6))
    assert [text.get_text().strip() for text in panel.texts] == ["its year"]
    assert panel.get_legend_handles_labels()[1] == ["p-Spin", "p-Spin, mixed", "the three others"]
    assert panel.get_title("left").endswith(f"{numbers['p-Spin: forgotten']:.2f} forgotten")
    assert min(line.get_xdata()[0] for line in panel.lines if len(line.get_xdata()) > 2) == eras.test_steps()[2]
    mixed = fades.one_era("1903", "mixed")[0].axes[0]
    assert not mixed.texts
    assert "p-Spin, mixed" not in mixed.get_legend_handles_labels()[1]


def test_the_invented_example_adds_up():
    figure, shown = eras.quantities("title")
    assert shown == {"forgotten": 0.4, "effect of order": 0.2}
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"forgotten\n0.4", "effect of order\n+0.2"} <= set(texts)


def test_counts_that_fade_follow_better_and_keep_less():
    figure, numbers = fades.fade(800)
    _, whole = fades.fade(0)
    assert numbers["2023 at the end"] < whole["2023 at the end"] - 0.1
    assert numbers["eleven older at the end"] > whole["eleven older at the end"]
    assert whole["forgotten"] < 0.01 < numbers["forgotten"]
    assert numbers["2023 at the end"] == pytest.approx(eras.counts("time", 800).bits[-1, -1])
    assert [text for text, _ in fades.half_lives()][:2] == ["never", "3,200"]
    rings = [line for line in figure.axes[1].lines if line.get_markersize() == 10]
    assert [line.get_xdata()[0] for line in rings] == [3, 3], "where the slider stands"
    assert [len(line.get_xdata()) for line in figure.axes[1].lines][:3:2] == [4, 4], "what it has passed"
    ends = {h: [f"{fades.fade(h)[1][name]:.2f}" for name in list(numbers)[:2]] for h in (0, 1600, 800, 400)}
    expected = {0: ["2.43", "1.90"], 1600: ["2.30", "1.91"], 800: ["2.24", "1.96"], 400: ["2.22", "2.08"]}
    assert ends == expected, "as the text tells"


def test_online_losses_at_equal_rates_are_those_of_the_runs():
    (rate, ours, theirs, gap, _), other = eras.at_equal_rates()[1:]
    assert (rate, other[0]) == ("0.0008", "0.0016")
    slow = [continual.online(run) for run in records.seeds("continual-rates", "p-spin-time").values()]
    assert ours == f"{np.mean(slow):.3f}"
    assert theirs == f"{records.mean(continual.followed('transformer')):.3f}"
    assert float(gap) == pytest.approx(float(ours) - float(theirs), abs=1.1e-3)
    first = [np.mean(run["loss"][:500]) for run in records.seeds("continual-rates", "transformer-time").values()]
    ours = [np.mean(run["loss"][:500]) for run in records.seeds("continual", "p-spin-time").values()]
    assert float(other[-1]) == pytest.approx((np.mean(ours) - np.mean(first)) / math.log(2), abs=1e-3)
