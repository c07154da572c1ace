"""Figures of notebook 11: the past weighed, differences, and networks told by colour, batch sizes by dashes."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import race, study
from pspin_lite.study import records
from pspin_lite.study.claims import comparisons, ledger


def runs(group):
    return list(records.seeds(group, "p-spin").values())


def test_cooling_begins_where_the_schedule_says():
    run = runs("subwords-1")[0]
    assert race.cooling(run, "sequences") == 7000, "1,000 of 8,000 steps cool down"
    assert race.cooling(run, "tokens") == pytest.approx(7000 * 128 / 1e6)
    assert race.cooling(run, "flops") == pytest.approx(7000 * run["summary"]["flops_a_step"] / 1e12)


def test_batch_sizes_share_the_colour_of_their_network():
    every = race.recipes("subwords")
    given = {name: every[name] for name in ("p-spin, batch 1", "p-spin, batch 64")}
    figure, numbers = race.curves(given, "sequences")
    [panel] = figure.axes
    small, large = panel.lines[:2]
    assert small.get_color() == large.get_color() == study.OF_ARMS["p-spin"]["color"]
    assert (small.get_linestyle(), large.get_linestyle()) == ("-", ":")
    *dots, dashed = panel.lines[2:]
    assert [dot.get_xdata()[0] for dot in dots] == [race.cooling(one[0], "sequences") for one in given.values()]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["p-Spin, batch 1", "p-Spin, batch 64"]
    assert list(numbers) == ["sequences so far", "p-Spin, batch 1", "p-Spin, batch 64"]
    place, bits = race.level(given, "sequences", "held-out")
    assert place == race.cooling(given["p-spin, batch 1"][0], "sequences")
    assert list(dashed.get_xdata()) == [place, place], "where the numbers are taken"
    assert numbers["p-Spin, batch 1"] == f"{bits['p-spin, batch 1']:.2f}"
    assert panel.get_title("left") == "At equal sequences: p-Spin, batch 1 leads"
    small = {name: one for name, one in every.items() if name.endswith("batch 1")}
    titles = [race.curves(some, "sequences")[0].axes[0].get_title("left") for some in (small, every)]
    assert titles == ["At equal sequences: hardly apart", "At equal sequences: batch 1 leads, with either network"]
    assert panel.get_ylabel() == "bits per byte (4,096 tokens)"


def test_the_past_is_weighed_in_two_ways():
    near, far = (race.weigh_the_past(distance, 0.8) for distance in (2, 20))
    for figure, numbers in (near, far):
        tops = [line.y[1] for line in figure.lines]
        assert sum(tops[: race.PAST]) == pytest.approx(1, abs=0.01), "on the same scale"
        assert sum(tops[race.PAST :]) == pytest.approx(1, abs=0.01), "a softmax"
        found = numbers["attention: weight of the token that matches"]
        assert max(tops[race.PAST :]) == pytest.approx(found, abs=0.001)
    state = "state space: weight of the token that matches"
    assert far[1][state] < near[1][state]
    latest = {distance: race.weigh_the_past(distance, 0.8)[0].lines[0].y[1] for distance in (11, 12)}
    assert [race.weigh_the_past(n, 0.8)[1][state] > latest[n] for n in (11, 12)] == [True, False], "0.8^12 < 0.08"
    still = [race.weigh_the_past(distance, 1.0) for distance in (2, 20)]
    assert still[0][1][state] == still[1][1][state] == pytest.approx(1 / 3.3), "nothing fades without a decay"
    titles = [one[0].panels[0].title for one in (near, still[0])]
    assert titles == ["State space: the match fades", "State space: nothing fades"]
    assert len({numbers["attention: weight of the token that matches"] for _, numbers in (near, far)}) == 1


def test_bits_where_a_curve_passes():
    run = runs("subwords-1")[0]
    steps, bits = records.curve(run)
    assert race.after([run], steps[3], "sequences") == pytest.approx(bits[3])
    assert race.after([run, run], (steps[3] + steps[4]) / 2, "sequences") == pytest.approx((bits[3] + bits[4]) / 2)


def test_each_star_is_at_the_rate_of_its_own_run(monkeypatch):
    made = {
        ("p-spin", 1.0): {4e-4: 3.0, 8e-4: 2.0, 1.6e-3: 2.5, 3.2e-3: 2.6},
        ("swiglu", 1.0): {4e-4: 3.1, 8e-4: 3.0, 1.6e-3: 2.8, 3.2e-3: 2.9},
        ("p-spin", 2.0): {8e-4: 2.1},
        ("swiglu", 2.0): {1.6e-3: 2.7},
    }
    monkeypatch.setattr(records, "rates", lambda group, name, scale: made[name, scale])
    figure, best = race.tuning(["any-1"], ("p-spin", "swiglu"))
    assert best == {"any-1": {"p-spin": 8e-4, "swiglu": 1.6e-3}}
    stars = [line for line in figure.axes[0].lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert [list(star.get_xdata()) for star in stars] == [[8e-4], [1.6e-3]]
    assert figure.axes[0].get_title("left") == "Batch 1: flat at the end"
    made["swiglu", 1.0][6.4e-3] = 2.7
    assert race.tuning(["any-64"], ("p-spin", "swiglu"))[0].axes[0].get_title("left") == "Batch 64: still falling"


def test_comparisons_show_where_a_match_has_to_lie():
    preset = ("presets", "subword-lite")
    pairs = {"three": (("subwords-1", "p-spin"), ("subwords-64", "transformer")), "one": (preset, preset)}
    values = ledger.results()["eight-times"].values
    figure, shown = race.comparisons(pairs)
    held_out, recent, same, *_ = (bars.lines[0] for bars in figure.axes[0].containers)
    assert held_out.get_xdata()[0] == pytest.approx(values["gap"]), "that of the verdict"
    assert recent.get_xdata()[0] > held_out.get_xdata()[0]
    assert (same.get_xdata()[0], same.get_markerfacecolor()) == (0, "white")
    assert [gap.mean for gap in shown["three"]] == [held_out.get_xdata()[0], recent.get_xdata()[0]]
    [shade] = figure.axes[0].patches
    assert shade.get_x() + shade.get_width() == pytest.approx(comparisons.CLOSE), "where a match has to lie"
    assert figure.axes[0].get_xlim()[0] > shade.get_x(), "to the left it goes on and on"


def test_a_square_has_four_ends_and_what_lies_between_them():
    notes = ["upper left", "upper right", "lower left", "lower right"]
    figure, ends = race.square("subwords", "title", "the headline", notes)
    assert ends == {
        (name, batch): records.mean(records.bits(f"subwords-{batch}", name))
        for name in ("p-spin", "transformer")
        for batch in (1, 64)
    }
    texts = {text.get_text().strip(): text.get_position() for text in figure.axes[0].texts}
    for claim in ("control", "control-64"):
        values = ledger.results()[claim].values
        assert f"{values['gap']:+.3f} ± {values['width']:.3f}" in texts, "the interval of the verdict"
    for name in ("p-spin", "transformer"):
        assert f"{ends[name, 1] - ends[name, 64]:.3f}\nbetter" in texts
    assert f"the headline\n{ledger.results()['eight-times'].values['gap']:+.3f}" in texts
    (left, upper), (right, lower) = (texts[f"{ends[end]:.3f}"] for end in (("p-spin", 1), ("transformer", 64)))
    assert left < right
    assert upper > lower
    assert texts["upper left"] < texts["upper right"]
    assert texts["lower left"][1] < texts["upper left"][1]


def test_an_empty_square_shows_what_the_paper_has():
    figure, ends = race.square("subwords", "title", "the headline", empty=True)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("?") == 2
    shown = {pair for pair, end in ends.items() if f"{end:.3f}" in texts}
    assert shown == {("p-spin", 1), ("transformer", 64)}
    assert f"the headline\n{ledger.results()['eight-times'].values['gap']:+.3f}" in texts
    assert not [text for text in texts if "±" in text]


def test_an_explorer_compares_recipes_in_two_alphabets():
    draw = race.compared()
    for alphabet in ("subwords", "bytes"):
        for axis in race.EQUAL:
            _, numbers = draw(alphabet, axis, "recent")
            names = ["p-Spin, batch 1", "Transformer, batch 1", "p-Spin, batch 64", "Transformer, batch 64"]
            assert list(numbers)[1:] == names
            _, bits = race.level(race.recipes(alphabet), axis, "recent")
            assert list(numbers.values())[1:] == [f"{one:.2f}" for one in bits.values()]


def test_a_configuration_is_that_of_the_runs():
    made = records.read("subwords-1/p-spin/seed-1")["config"]["model"]
    assert race.config(("subwords-1", "p-spin")).layers == made["layers"]


def test_ends_of_short_runs_are_those_that_were_tuned_by():
    for network in (("subwords-1", "p-spin"), ("subwords-64", "transformer")):
        ends = [race.short_end(network, 8e-4, split) for split in records.SPLITS]
        assert sum(ends) / 2 == pytest.approx(records.rates(*network)[8e-4]), "the score is their mean"


def test_on_the_plateau_the_large_batch_takes_less_than_at_the_end():
    for name in race.BOTH:
        factor = race.plateau_factor("subwords", name)
        small, large = (race.runs_of((f"subwords-{batch}", name)).values() for batch in (1, 64))
        level = race.after(list(small), 7000)
        assert race.after(list(large), 7000 * factor) == pytest.approx(level, abs=1e-3)
        assert 7000 * factor < race.cooling(next(iter(large)), "sequences"), "on its plateau"
