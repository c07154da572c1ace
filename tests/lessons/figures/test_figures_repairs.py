"""Figures of notebook 15 show the numbers that they are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from pspin_lite.lessons.figures import repairs as draw
from pspin_lite.lessons.live.frames import frames
from pspin_lite.study.intervals import Difference
from pspin_lite.study.questions.question import Row, questions


def test_an_answer_in_words():
    (question,) = (one for one in questions("repair") if one.id == "norms")
    values = ((Difference(0.1, 0.02, 3),), (Difference(-0.05, 0.01, 3),))
    assert draw.in_words(Row(question, "", "undecided", values)) == "undecided: +0.100 ± 0.020, -0.050 ± 0.010"
    assert draw.in_words(Row(question, "", "not run yet")) == "not run yet"
    pairs = ((values[0][0], values[1][0]), (values[1][0], values[0][0]))
    assert draw.in_words(Row(question, "", "yes", pairs)) == "yes: +0.100 ± 0.020, -0.050 ± 0.010"


def test_a_staircase_goes_from_network_to_network():
    steps = [
        ("first", "as it is", {1: 2.0, 2: 2.2}),
        ("second", "worse", {1: 2.3, 2: 2.3}),
        ("goal", "", {1: 1.8}),
    ]
    figure, shown = draw.staircase(steps, {"beside": 1.9, "above": 2.4}, "a title", yardsticks={"counting": 1.7})
    panel = figure.axes[0]
    assert [bar.get_width() for bar in panel.patches] == pytest.approx([0.2, -0.5])
    assert [bar.get_x() for bar in panel.patches] == pytest.approx([2.1, 2.3])
    texts = [text.get_text() for text in panel.texts]
    assert texts == ["+0.200", "−0.500", "beside 1.900", "above 2.400", "counting 1.70"]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["first\nas it is", "second\nworse", "goal\n"]
    assert shown["first"].tolist() == [2.0, 2.2]
    assert figure.get_suptitle() == "a title"


def test_a_staircase_says_how_sure_it_is():
    steps = [("first", "", {1: 2.0}), ("goal", "", {1: 1.8})]
    texts = [text.get_text() for text in draw.staircase(steps, {}, "t", [0.013])[0].axes[0].texts]
    assert texts == ["−0.200 ± 0.013"]


def test_keys_add_up_what_the_bytes_answer():
    figure, said = draw.keys("aba ", {"one": [1, 0, 2, 0], "two": [0, 0, 0, 0.5]}, [1, 2])
    assert said == {"one": "a × 3", "two": "␣ × 0.5"}
    panel = figure.axes[0]
    assert panel.get_title("left") == "After “a ”, by two bytes: “␣” is loudest"
    assert [text.get_text() for text in panel.texts][:7] == ["one", "a", "1", "b", "a", "2", "␣"]
    frames = [line.get_xdata()[:2] for line in panel.lines if line.get_linewidth() > 2]
    assert np.array(frames) == pytest.approx(np.array([[3, 3.92], [2, 3.92]]))
    assert [area.get_alpha() for area in panel.collections] == pytest.approx([0.15, 0.6, 0.6])
    figure, said = draw.keys("ab", {"one": [0, 0]}, [1])
    assert said == {"one": "nothing"}
    assert figure.axes[0].get_title("left").endswith("nothing answers")


def test_keys_move_on_a_page():
    stops = dict(letter=["a", "b"])
    assert frames(lambda letter: draw.keys(f"ab{letter}", {"one": [1, 0, 1]}, [1]), stops)


def test_recall_is_smoothed_over_twenty_steps():
    figure, shown = draw.recall({"without": [0.0] * 40, "with": [0.0] * 20 + [1.0] * 20}, {"guess": 0.25}, "t")
    assert shown["with"][[0, 10, 20]].tolist() == pytest.approx([0, 0.5, 1])
    assert list(figure.axes[0].lines[1].get_xdata()[[0, -1]]) == [20, 40]
    assert figure.axes[0].lines[2].get_ydata()[0] == 25


def test_costs_have_a_panel_for_every_measure():
    panels = {"size": {"p-Spin": 2.0, "mended": 1.5}, "time": {"p-Spin": 10.0, "mended": 20.0}}
    figure, shown = draw.costs(panels, (".2f", ".0f"), "t")
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["2.00", "1.50", "10", "20"]
    assert shown["time"].tolist() == [10, 20]


def test_gaps_have_their_intervals():
    rows = {"one": [Difference(0.1, 0.02, 3), Difference(0.05, 0.01, 3)]}
    figure, shown = draw.gaps(rows, "t")
    assert shown["one"].tolist() == [[0.1, 0.02], [0.05, 0.01]]
    ends = figure.axes[0].collections[0].get_segments()[0][:, 0]
    assert ends.tolist() == pytest.approx([0.08, 0.12])


def test_behind_is_the_distance_to_the_goal():
    bits = {"mended": np.array([[2.0, 1.5], [2.2, 1.7]]), "other": np.array([[2.5, 2.5], [2.5, 2.5]])}
    figure, shown = draw.behind([1, 8], bits, np.array([[2.0, 1.0], [2.0, 1.0]]), "t", [(1, 8)])
    assert shown["mended"].tolist() == pytest.approx([0.1, 0.6])
    panel = figure.axes[0]
    corners = panel.collections[0].get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == pytest.approx((0.0, 0.7)), "the band spans the seeds"
    assert "mended\n+0.500" in [text.get_text() for text in panel.texts]


def test_names_are_kept_apart_and_in_order():
    placed = draw.spaced({"low": 0.0, "middle": 0.01, "lone": 1.0, "high": 0.02}, least=0.1)
    assert list(placed) == ["low", "middle", "high", "lone"]
    assert list(placed.values()) == pytest.approx([-0.09, 0.01, 0.11, 1.0], abs=1e-3)


def test_a_network_has_one_colour():
    sizes = {"p-Spin": 2.0, "mended": 1.5}
    costs, _ = draw.costs({"size": sizes, "time": sizes}, (".2f", ".2f"), "t")
    behind, _ = draw.behind([1, 8], {"mended": np.ones((2, 2))}, np.zeros((2, 2)), "t")
    gaps, _ = draw.gaps({"mended": [Difference(0.1, 0.02, 3)] * 2}, "t")
    steps = [("mended", "", {1: 2.0}), ("goal", "", {1: 1.8})]
    colours = [costs.axes[0].patches[1].get_facecolor(), behind.axes[0].lines[0].get_color()]
    colours += [gaps.axes[0].lines[1].get_color(), draw.staircase(steps, {}, "t")[0].axes[0].lines[0].get_color()]
    assert {to_hex(colour).upper() for colour in colours} == {draw.COLOURS["mended"]}


def test_what_was_tuned_is_in_the_records():
    assert draw.tuned(draw.PATH["p-Spin"]) == "rate 0.0016, weights × 2"
    assert draw.tuned(draw.PATH["tanh · tanh"]) == "rate 0.0008"


def test_expenses_are_those_of_the_networks():
    panels, ternary = draw.expenses(["p-Spin", "Transformer"])
    assert [list(values) for values in panels.values()] == [["p-Spin", "Transformer"]] * 3
    flops, stored, carried = panels.values()
    assert flops["p-Spin"] > flops["Transformer"]
    assert stored["p-Spin"] < stored["Transformer"]
    assert carried["p-Spin"] == pytest.approx(16.384)
    assert draw.expenses(["stacked"])[0].popitem()[1]["stacked"] < carried["Transformer"], "also of what comes further"
    assert ternary["Transformer"] == (0, 0)
    assert 0 < ternary["p-Spin"][1] < ternary["p-Spin"][0] < 1


def test_a_state_is_counted_however_it_is_nested():
    assert draw.count([None, (torch.zeros(2, 3), [torch.zeros(4)])]) == 10
