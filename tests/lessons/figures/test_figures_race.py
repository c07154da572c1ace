"""Figures of notebook 11: catching up, differences, and networks told by colour, batch sizes by dashes."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.lessons.exercises.nb11 import overtaken
from pspin_lite.lessons.figures import race, recipes, study
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
    every = recipes.recipes("subwords")
    given = {name: every[name] for name in ("p-spin, batch 1", "p-spin, batch 64")}
    figure, numbers = recipes.curves(given, "sequences")
    [panel] = figure.axes
    small, large = panel.lines[:2]
    assert small.get_color() == large.get_color() == study.OF_ARMS["p-spin"]["color"]
    assert (small.get_linestyle(), large.get_linestyle()) == ("-", ":")
    *dots, dashed = panel.lines[2:]
    assert [dot.get_xdata()[0] for dot in dots] == [race.cooling(one[0], "sequences") for one in given.values()]
    assert [text.get_text() for text in panel.texts] == ["p-Spin, batch 1", "p-Spin, batch 64"]
    assert panel.get_legend() is None
    assert list(numbers) == ["sequences so far", "p-Spin, batch 1", "p-Spin, batch 64"]
    place, bits = recipes.level(given, "sequences", "held-out")
    assert place == race.cooling(given["p-spin, batch 1"][0], "sequences")
    assert list(dashed.get_xdata()) == [place, place], "where the numbers are taken"
    assert numbers["p-Spin, batch 1"] == f"{bits['p-spin, batch 1']:.2f}"
    assert panel.get_title("left") == "At equal sequences: p-Spin, batch 1 leads"
    small = {name: one for name, one in every.items() if name.endswith("batch 1")}
    titles = [recipes.curves(some, "sequences")[0].axes[0].get_title("left") for some in (small, every)]
    assert titles == ["At equal sequences: hardly apart", "At equal sequences: batch 1 leads, with either network"]
    assert panel.get_ylabel() == "bits per byte (4,096 tokens)"


def test_bits_where_a_curve_passes():
    run = runs("subwords-1")[0]
    steps, bits = records.curve(run)
    assert race.after([run], steps[3], "sequences") == pytest.approx(bits[3])
    assert race.after([run, run], (steps[3] + steps[4]) / 2, "sequences") == pytest.approx((bits[3] + bits[4]) / 2)


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
    figure, ends = race.square("subwords", "title", "the headline\n{}", notes)
    assert ends == {
        (name, batch): records.mean(records.bits(f"subwords-{batch}", name))
        for name in ("p-spin", "transformer")
        for batch in (1, 64)
    }
    texts = {text.get_text().strip(): text.get_position() for text in figure.axes[0].texts}
    for claim in ("control", "control-64"):
        values = ledger.results()[claim].values
        assert f"{values['gap']:+.3f} ± {values['width']:.3f}".replace("-", "−") in texts, "the interval of the verdict"
    across = ledger.results()["eight-times"].values
    for name in ("p-spin", "transformer"):
        assert f"{ends[name, 1] - ends[name, 64]:.3f}\nbetter" in texts
    assert f"the headline\n{across['gap']:+.3f}\n± {across['width']:.3f}" in texts
    (left, upper), (right, lower) = (texts[f"{ends[end]:.3f}"] for end in (("p-spin", 1), ("transformer", 64)))
    assert left < right
    assert upper > lower
    assert texts["upper left"] < texts["upper right"]
    assert texts["lower left"][1] < texts["upper left"][1]


def test_an_arrow_leads_to_where_the_large_batch_catches_up():
    figure, curves, levels = race.catching_up("subwords")
    for panel, name in zip(figure.axes, race.BOTH, strict=True):
        [arrow] = [text for text in panel.texts if text.get_text() == ""]
        (place, above), (ring, level) = arrow.xy, arrow.xyann
        assert (ring, above) == (7000, level), "where the rate of batch 1 begins to fall"
        assert level == levels[name] == pytest.approx(np.interp(7000, *curves[name, 1]))
        assert place == 7000 * race.plateau_factor(("subwords-1", name), ("subwords-64", name))
        assert np.interp(place, *curves[name, 64]) == pytest.approx(level, abs=1e-3)
        assert overtaken(*curves[name, 64], level) == pytest.approx(place, rel=0.02), "the exercise's"
        assert f"{place / 7000:.1f} times" in " ".join(text.get_text() for text in panel.texts)
        assert 2.8 < place / 7000 < 3.3, "as the title says"
    assert overtaken(*curves["transformer", 64], levels["transformer"]) == pytest.approx(22_650, abs=50)


def test_an_empty_square_shows_what_the_paper_has():
    figure, ends = race.square("subwords", "title", "the headline\n{}", empty=True)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("?") == 2
    shown = {pair for pair, end in ends.items() if f"{end:.3f}" in texts}
    assert shown == {("p-spin", 1), ("transformer", 64)}
    across = ledger.results()["eight-times"].values
    assert [text for text in texts if "±" in text] == [f"the headline\n{across['gap']:+.3f}\n± {across['width']:.3f}"]


def test_an_explorer_compares_recipes():
    draw = recipes.compared("subwords")
    for axis in recipes.EQUAL:
        figure, numbers = draw(axis)
        names = ["p-Spin, batch 1", "Transformer, batch 1", "p-Spin, batch 64", "Transformer, batch 64"]
        assert list(numbers)[1:] == names
        assert {text.get_text() for text in figure.axes[0].texts} == set(names)
        _, bits = recipes.level(recipes.recipes("subwords"), axis, "held-out")
        assert list(numbers.values())[1:] == [f"{one:.2f}" for one in bits.values()]
    for name in race.BOTH:  # how many times as long, as the text tells
        small, large = (recipes.recipes("subwords")[f"{name}, batch {batch}"] for batch in (1, 64))
        start = race.cooling(small[0], "seconds")
        level = race.after(small, start, "seconds")
        assert race.after(large, 2.0 * start, "seconds") > level > race.after(large, 2.2 * start, "seconds")


def test_a_configuration_is_that_of_the_runs():
    made = records.read("subwords-1/p-spin/seed-1")["config"]["model"]
    assert race.config(("subwords-1", "p-spin")).layers == made["layers"]


def test_ends_of_short_runs_are_those_that_were_tuned_by():
    for network in (("subwords-1", "p-spin"), ("subwords-64", "transformer")):
        ends = [race.short_end(network, 8e-4, split) for split in records.SPLITS]
        assert sum(ends) / 2 == pytest.approx(records.rates(*network)[8e-4]), "the score is their mean"


def test_on_the_plateau_the_large_batch_takes_less_than_at_the_end():
    for name in race.BOTH:
        factor = race.plateau_factor(("subwords-1", name), ("subwords-64", name))
        small, large = (race.runs_of((f"subwords-{batch}", name)).values() for batch in (1, 64))
        level = race.after(list(small), 7000)
        assert race.after(list(large), 7000 * factor) == pytest.approx(level, abs=1e-3)
        assert 7000 * factor < race.cooling(next(iter(large)), "sequences"), "on its plateau"


def test_the_rate_is_worth_most_where_steps_are_few_and_p_spin_leads_from_a_rate_on():
    """As the title tells, and the text: on recent speeches too."""
    figure, ends = race.rates("subwords", 32e-4, "title")
    for panel, batch in zip(figure.axes, (1, 64), strict=True):
        ours, theirs, dashed = panel.lines
        for line, name in ((ours, "p-spin"), (theirs, "transformer")):
            network = (f"subwords-{batch}", name)
            assert list(line.get_xdata()) == list(ends[name, batch]) == sorted(records.rates(*network))
            assert list(line.get_ydata()) == [race.short_end(network, rate) for rate in line.get_xdata()]
        assert dashed.get_xdata()[0] == 32e-4
        for split in records.SPLITS:
            pair = [(f"subwords-{batch}", name) for name in race.BOTH]
            leads = [race.short_end(pair[1], r, split) - race.short_end(pair[0], r, split) for r in ends["p-spin", 1]]
            assert min(leads[1:]) > 0
            assert (leads[0] > 0) == (batch == 1), "at the lowest rate only with many steps"
    for name in race.BOTH:
        few, many = ends[name, 64], ends[name, 1]
        assert few[32e-4] - few[64e-4] > 0.02 > abs(many[32e-4] - many[64e-4]), "flat from there on, or still falling"
        assert few[8e-4] - few[32e-4] > 2 * (many[8e-4] - many[32e-4])
    assert [panel.get_title("left") for panel in figure.axes] == ["batch 1, 2,000 steps", "batch 64, 250 steps"]


def test_a_referee_sets_either_rate():
    diagonal = ("subwords-1", "p-spin"), ("subwords-64", "transformer")
    draw, rates = recipes.referee(diagonal), list(records.rates(*diagonal[0]))
    gaps = {}
    for ours in rates:
        for theirs in rates:
            figure, numbers = draw(ours, theirs)
            ends = race.short_end(diagonal[0], ours), race.short_end(diagonal[1], theirs)
            gaps[ours, theirs] = ends[0] - ends[1]
            assert list(numbers.values())[:2] == [f"{end:.3f}" for end in ends]
            who = "p-Spin" if ends[0] < ends[1] else "Transformer"
            assert figure.panels[0].title == f"{who} wins by {abs(ends[0] - ends[1]):.3f}"
            chosen = [(line.x[0], line.y[0]) for line in figure.lines if line.dot == 6]
            assert chosen == [(rates.index(ours), ends[0]), (rates.index(theirs), ends[1])]
    full = [line.y[0] for line in figure.lines if line.width == 4]
    assert full[0] - full[1] == pytest.approx(ledger.results()["eight-times"].values["gap"])
    assert min(gaps, key=gaps.get) == (rates[-1], rates[0]), "as the text tells: the widest lead"
    assert max(gaps, key=gaps.get) == (rates[0], rates[-1])
    assert [round(gaps[pair], 3) for pair in ((64e-4, 4e-4), (4e-4, 64e-4), (64e-4, 64e-4))] == [-0.417, 0.136, -0.042]


def test_rows_of_tables_are_what_they_are_made_of():
    pair = ("subwords-1", "p-spin"), ("subwords-64", "p-spin")
    row = race.factor_rows([pair], (2000, 7000))[1]
    assert row == ["p-Spin", "p-Spin", f"{race.plateau_factor(*pair, 2000):.1f}", f"{race.plateau_factor(*pair):.1f}"]


def test_rows_of_the_diagonal_are_those_of_the_ledger():
    diagonal = ("subwords-1", "p-spin"), ("subwords-64", "transformer")
    _, short, _, full, presets = race.diagonal_rows(diagonal, (8e-4, 32e-4))
    assert float(short[4]) == pytest.approx(
        race.short_end(diagonal[0], 8e-4) - race.short_end(diagonal[1], 8e-4), abs=5.1e-4
    )
    assert float(full[4]) == pytest.approx(ledger.results()["eight-times"].values["gap"], abs=5.1e-4)
    assert float(presets[4]) == pytest.approx(ledger.results()["eight-times-untuned"].values["gap"], abs=5.1e-4)
