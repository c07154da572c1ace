"""Figures of notebook 11: the past weighed, differences, and networks told by colour, alphabets by dashes."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import race, study
from pspin_lite.study import records
from pspin_lite.study.claims import ledger


def runs(group):
    return list(records.seeds(group, "p-spin").values())


def test_cooling_begins_where_the_schedule_says():
    run = runs("subwords-1")[0]
    assert race.cooling(run, "sequences") == 7000, "1,000 of 8,000 steps cool down"
    assert race.cooling(run, "tokens") == pytest.approx(7000 * 128 / 1e6)
    assert race.cooling(run, "flops") == pytest.approx(7000 * run["summary"]["flops_a_step"] / 1e12)


def test_alphabets_share_the_colour_of_their_network():
    given = {"p-spin, bytes": runs("bytes-1"), "p-spin, subwords": runs("subwords-1")}
    figure, numbers = race.alphabets(given, "text")
    [panel] = figure.axes
    bytes_, subwords = panel.lines[:2]
    assert bytes_.get_color() == subwords.get_color() == study.OF_ARMS["p-spin"]["color"]
    assert (bytes_.get_linestyle(), subwords.get_linestyle()) == ("--", "-")
    dots = panel.lines[2:]
    assert [dot.get_xdata()[0] for dot in dots] == [race.cooling(one[0], "text") for one in given.values()]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["p-Spin, bytes", "p-Spin, subwords"]
    assert list(numbers) == ["megabytes of text so far", "p-Spin, bytes", "p-Spin, subwords"]
    place, bits = race.level(given, "text", "held-out")
    assert place == race.cooling(given["p-spin, bytes"][0], "text")
    assert numbers["p-Spin, bytes"] == f"{bits['p-spin, bytes']:.2f}"
    assert panel.get_title("left") == "At equal text: p-Spin, subwords leads"
    subwords = {f"{name}, subwords": given["p-spin, subwords"] for name in ("p-spin", "transformer")}
    titles = [race.alphabets(some, "text")[0].axes[0].get_title("left") for some in (subwords, given | subwords)]
    assert titles == ["At equal text: hardly apart", "At equal text: subwords lead"]
    assert panel.get_ylabel() == "bits per byte (4,096 tokens)"


def test_the_past_is_weighed_in_two_ways():
    near, far = (race.weigh_the_past(distance) for distance in (2, 20))
    for figure, numbers in (near, far):
        tops = [line.y[1] for line in figure.lines]
        assert sum(tops[race.PAST :]) == pytest.approx(1), "a softmax"
        assert max(tops[race.PAST :]) == numbers["attention: weight of the token that matches"]
    state = "state space: weight of the token that matches"
    assert far[1][state] == pytest.approx(near[1][state] * race.DECAY**18)
    assert len({numbers["attention: weight of the token that matches"] for _, numbers in (near, far)}) == 1


def test_contexts_have_bits_per_byte_too():
    lengths, nats = records.by_context("smoke", "p-spin")
    [right] = race.contexts({"p-spin": nats}, lengths, 4.0)[0].axes[0].child_axes
    assert right.get_ylabel() == "bits per byte"


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
    assert figure.axes[0].get_title("left") == "Little to gain beyond 0.0016, 2 times the paper's rate"


def test_a_comparison_says_how_both_were_trained():
    small, large, preset = ("subwords-1", "p-spin"), ("subwords-64", "transformer"), ("presets", "subword-lite")
    figure, (head, three, one) = race.comparisons({"three": (small, large), "one": (preset, preset)})
    row = dict(zip(head, three, strict=True))
    assert (row["batch"], row["sequences"], row["window"]) == ("1 / 64", "8,000 / 64,000", "128")
    assert row["p-Spin"] == f"{records.mean(records.bits(*small)):.3f}"
    values = ledger.results()["eight-times"].values
    assert row["difference"] == f"{values['gap']:+.3f} ± {values['width']:.3f}", "the interval of the verdict"
    assert one[-1] == "+0.000, one run each"
    held_out, recent, same, _ = (bars.lines[0] for bars in figure.axes[0].containers)
    assert f"{held_out.get_xdata()[0]:+.3f} " in row["difference"]
    assert recent.get_xdata()[0] > held_out.get_xdata()[0]
    assert (same.get_xdata()[0], same.get_markerfacecolor()) == (0, "white")


def test_an_explorer_compares_alphabets_and_batches():
    four = {f"{network}, {alphabet}": list(records.seeds(f"{alphabet}-1", network).values())
            for alphabet in ("bytes", "subwords") for network in ("p-spin", "transformer")}  # fmt: skip
    large = list(records.seeds("subwords-64", "transformer").values())
    draw, choices = race.compared(four, large)
    numbers = [list(draw(one, "text", "held-out")[1])[1:] for one in choices]
    assert [len(one) for one in numbers] == [4, 2, 2, 3]
    assert numbers[-1][-1] == "Transformer, subwords, batch 64"


def test_a_configuration_is_that_of_the_runs():
    made = records.read("subwords-1/p-spin/seed-1")["config"]["model"]
    assert race.config(("subwords-1", "p-spin")).layers == made["layers"]


def test_ends_are_on_the_sample_and_on_the_full_text():
    first = runs("subwords-1")
    plateau, sample, full = race.ends(first)
    assert plateau == race.after(first, 7000, "sequences")
    assert sample == pytest.approx(sum(records.curve(run)[1][-1] for run in first) / len(first))
    assert full == pytest.approx(records.mean(records.bits("subwords-1", "p-spin")))
