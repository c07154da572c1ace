"""Figures of notebook 11 mark where runs begin to cool down, and tell networks by colour, alphabets by dashes."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import race, study
from pspin_lite.study import records


def runs(group):
    return list(records.seeds(group, "p-spin").values())


def test_cooling_begins_where_the_schedule_says():
    run = runs("subwords-1")[0]
    assert race.cooling(run, "sequences") == 7000, "1,000 of 8,000 steps cool down"
    assert race.cooling(run, "tokens") == pytest.approx(7000 * 128 / 1e6)
    assert race.cooling(run, "flops") == pytest.approx(7000 * run["summary"]["flops_a_step"] / 1e12)


def test_learning_marks_it_on_the_line():
    figure, places = race.learning({"p-spin": runs("subwords-1")})
    assert places["sequences"] == {"p-spin": 7000}
    for panel in figure.axes:
        line, *_, dot = panel.lines
        [x], [y] = dot.get_xdata(), dot.get_ydata()
        assert min(line.get_ydata()) < y < max(line.get_ydata())
        assert x == pytest.approx(7 / 8 * line.get_xdata()[-1])
        assert "logarithmic" in panel.get_xlabel()


def test_alphabets_share_the_colour_of_their_network():
    given = {"p-spin, bytes": runs("bytes-1"), "p-spin, subwords": runs("subwords-1")}
    figure, shown = race.alphabets(given, "text")
    bytes_, subwords = figure.axes[0].lines[:2]
    assert bytes_.get_color() == subwords.get_color() == study.OF_ARMS["p-spin"]["color"]
    assert (bytes_.get_linestyle(), subwords.get_linestyle()) == ("--", "-")
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["p-Spin, bytes", "p-Spin, subwords"]
    assert list(shown) == list(given)
    assert race.alphabets({}, "text")[1] == {}
