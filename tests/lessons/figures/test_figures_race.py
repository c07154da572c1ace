"""Figures of notebook 11: catching up, differences, and networks told by colour, batch sizes by dashes."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import race
from pspin_lite.lessons.figures.referee import referee
from pspin_lite.study import records
from pspin_lite.study.claims import comparisons, ledger

DIAGONAL = ("subwords-1", "p-spin"), ("subwords-64", "transformer")


def runs(group):
    return list(records.seeds(group, "p-spin").values())


def test_cooling_begins_where_the_schedule_says():
    run = runs("subwords-1")[0]
    assert race.cooling(run, "sequences") == 7000, "1,000 of 8,000 steps cool down"
    assert race.cooling(run, "tokens") == pytest.approx(7000 * 128 / 1e6)
    assert race.cooling(run, "flops") == pytest.approx(7000 * run["summary"]["flops_a_step"] / 1e12)


def test_bits_where_a_curve_passes():
    run = runs("subwords-1")[0]
    steps, bits = records.curve(run)
    assert race.after([run], steps[3]) == pytest.approx(bits[3])
    assert race.after([run, run], (steps[3] + steps[4]) / 2) == pytest.approx((bits[3] + bits[4]) / 2)


def test_comparisons_show_where_a_match_has_to_lie():
    pairs = {"the diagonal": DIAGONAL}
    values = ledger.results()["eight-times"].values
    figure, shown = race.comparisons(pairs)
    held_out, recent = (bars.lines[0] for bars in figure.axes[0].containers)
    assert held_out.get_xdata()[0] == pytest.approx(values["gap"]), "that of the verdict"
    assert recent.get_xdata()[0] > held_out.get_xdata()[0]
    assert [gap.mean for gap in shown["the diagonal"]] == [held_out.get_xdata()[0], recent.get_xdata()[0]]
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
        which = "better" if values["gap"] < 0 else "worse"
        assert f"p-Spin\n{abs(values['gap']):.3f} {which}\n± {values['width']:.3f}" in texts, "that of the verdict"
    across = ledger.results()["eight-times"].values
    for name in ("p-spin", "transformer"):
        assert f"{ends[name, 1] - ends[name, 64]:.3f}\nbetter" in texts
    assert f"the headline\np-Spin\n{across['gap']:.3f} worse\n± {across['width']:.3f}" in texts
    (left, upper), (right, lower) = (texts[f"{ends[end]:.3f}"] for end in (("p-spin", 1), ("transformer", 64)))
    assert left < right
    assert upper > lower
    assert texts["upper left"] < texts["upper right"]
    assert texts["lower left"][1] < texts["upper left"][1]


def test_an_empty_square_shows_what_the_paper_has():
    figure, ends = race.square("subwords", "title", "the headline\n{}", empty=True)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("?") == 2
    shown = {pair for pair, end in ends.items() if f"{end:.3f}" in texts}
    assert shown == {("p-spin", 1), ("transformer", 64)}
    across = ledger.results()["eight-times"].values
    expected = f"the headline\np-Spin\n{across['gap']:.3f} worse\n± {across['width']:.3f}"
    assert [text for text in texts if "±" in text] == [expected]


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
        small, large = (records.seeds(f"subwords-{batch}", name).values() for batch in (1, 64))
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
    draw, rates = referee(DIAGONAL), list(records.rates(*DIAGONAL[0]))
    gaps = {}
    for ours in rates:
        for theirs in rates:
            figure, numbers = draw(ours, theirs)
            ends = race.short_end(DIAGONAL[0], ours), race.short_end(DIAGONAL[1], theirs)
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


def test_rate_and_length_make_a_square():
    slow = ("rate-1-subwords", "p-spin-times-0.25"), ("rate-64-subwords", "transformer-times-0.25")
    figure, ends = race.rate_and_length(DIAGONAL, slow, "title")
    gaps = {where: one - other for where, (one, other) in ends.items()}
    for rate in (8e-4, 32e-4):
        assert ends[rate, "short"] == [race.short_end(network, rate) for network in DIAGONAL]
    assert gaps[32e-4, "full"] == pytest.approx(ledger.results()["eight-times"].values["gap"])
    runs = [records.read(f"{group}/{name}/seed-1")["summary"]["validation"]["held-out"] for group, name in slow]
    assert ends[8e-4, "full"] == [run["bits_per_byte"] for run in runs]
    texts = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    for (rate, length), gap in gaps.items():
        x, y = texts[f"p-Spin\n{abs(gap):.3f} {'worse' if gap > 0 else 'better'}"]
        assert (x > 30) == (length == "full")
        assert (y > 11) == (rate == 8e-4)
    corners = [(rate, length) for rate in (8e-4, 32e-4) for length in ("short", "full")]
    moves = [
        f"{round(gaps[b], 3) - round(gaps[a], 3):.3f}"
        for i, a in enumerate(corners)
        for b in corners[i:]
        if (a[0] == b[0]) != (a[1] == b[1])
    ]
    assert {text.strip() for text in texts} >= set(moves) == {"0.181", "0.190", "0.157", "0.166"}, "as the text tells"
