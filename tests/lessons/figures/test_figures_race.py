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
    assert figure.get_suptitle() == "p-Spin, subwords: lowest before any run cools down"
    assert figure.axes[0].get_ylabel() == "bits per byte, sample of 4,096 tokens"


def test_bits_where_a_curve_passes():
    run = runs("subwords-1")[0]
    steps, bits = records.curve(run)
    assert race.after([run], steps[3], "sequences") == pytest.approx(bits[3])
    assert race.after([run, run], (steps[3] + steps[4]) / 2, "sequences") == pytest.approx((bits[3] + bits[4]) / 2)


def test_each_star_is_at_the_rate_of_its_own_run(monkeypatch):
    made = {
        ("a", 1.0): {4e-4: 3.0, 8e-4: 2.0, 1.6e-3: 2.5, 3.2e-3: 2.6},
        ("b", 1.0): {4e-4: 3.1, 8e-4: 3.0, 1.6e-3: 2.8, 3.2e-3: 2.9},
        ("a", 2.0): {8e-4: 2.1},
        ("b", 2.0): {1.6e-3: 2.7},
    }
    monkeypatch.setattr(records, "rates", lambda group, name, scale: made[name, scale])
    figure, best = race.tuning("any", ("a", "b"))
    assert best == {"a": 8e-4, "b": 1.6e-3}
    stars = [line for line in figure.axes[0].lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert [list(star.get_xdata()) for star in stars] == [[8e-4], [1.6e-3]]
    assert figure.get_suptitle() == "Little to gain beyond 0.0016, 2 times the paper's rate"


def test_a_comparison_says_how_both_were_trained():
    small, large = records.seeds("subwords-1", "p-spin"), records.seeds("subwords-64", "transformer")
    figure, (head, three, one) = race.comparisons({"three": (small, large), "one": ({1: small[1]}, {1: small[1]})})
    row = dict(zip(head, three, strict=True))
    assert (row["batch"], row["sequences"], row["window"]) == ("1 and 64", "8,000 and 64,000", "128")
    assert row["p-Spin"] == f"{records.mean(records.bits('subwords-1', 'p-spin')):.3f}"
    assert " ± " in row["difference"]
    assert one[-1] == "+0.000, one run each"
    held_out, recent, same, _ = (bars.lines[0] for bars in figure.axes[0].containers)
    assert f"{held_out.get_xdata()[0]:+.3f} " in row["difference"]
    assert recent.get_xdata()[0] > held_out.get_xdata()[0]
    assert (same.get_xdata()[0], same.get_markerfacecolor()) == (0, "white")
