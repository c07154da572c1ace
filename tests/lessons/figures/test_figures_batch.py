"""Figures of notebook 13 show the records' own numbers, whatever runs there are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pspin_lite.lessons.figures import batch as draw
from pspin_lite.study import intervals, networks, records, stability
from pspin_lite.study.questions import answers, question, runs


def test_half_lives():
    assert draw.half_life(0.5) == 1
    assert draw.half_life(0.95) == pytest.approx(13.5, abs=0.02)
    assert draw.half_life(0.95 ** (1 / 64)) == pytest.approx(64 * draw.half_life(0.95))


def test_memory_has_a_line_for_each_memory_and_each_batch_size():
    divisors = {"0.95": np.array([1.0, 5.0]), "0.999": np.array([4.0, 4.1])}
    settled = {"batch size 1": {0.9: 0.4, 0.999: 1.0}, "batch size 64": {0.9: 1.0, 0.999: 1.0}}
    pushes = {"0.95": (3.0, 5.0), "0.999": (4.0, 4.0)}
    figure, _ = draw.memory(divisors, pushes, settled, 1.0)
    above, middle, below = figure.axes
    assert [bar.get_width() for bar in middle.patches] == [3.0, 5.0, 4.0, 4.0]
    assert [text.get_text() for text in middle.texts][:2] == ["rare, up: 3.0", "common, down: 5.0"]
    assert [line.get_ydata().tolist() for line in above.lines] == [[1.0, 5.0], [4.0, 4.1]]
    assert [list(line.get_ydata()) for line in below.lines[1:]] == [[0.4, 1.0], [1.0, 1.0]]
    assert [label.get_text() for label in below.get_xticklabels()] == ["0.9\n7", "0.999\n693"]


def test_forgetting_draws_what_is_on_record():
    figure, ends = draw.forgetting()
    [panel] = figure.axes
    level = np.mean(ends["transformer"][draw.USUAL])
    dots = [line for line in panel.lines if line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in dots) == len(records.names("moments"))
    mine = [line.get_ydata() for line in dots if line.get_color() == draw.COLOURS["transformer"]]
    assert mine[list(ends["transformer"]).index(0.95)].tolist() == [x - level for x in ends["transformer"][0.95]]
    assert ends["transformer"][0.95] == list(runs.results("moments/transformer-beta2-0.95", "held-out").values())
    assert f"Transformer {np.mean(ends['transformer'][0.95]):.2f}" not in draw.forgotten_in_words({})
    assert f"{np.mean(ends['transformer'][0.95]):.2f} at 0.95" in draw.forgotten_in_words(ends)


def test_the_title_of_forgetting_follows_the_answers(monkeypatch):
    def rows(verdicts):
        [asked] = [one for one in question.questions("moments") if one.id == "forgetting"]
        names = [f"bytes: `{name}-beta2-0.95` − `{name}-beta2-0.999`" for name in verdicts]
        return lambda _: [
            question.Row(asked, name, verdict, ((0.1,),))
            for name, verdict in zip(names, verdicts.values(), strict=True)
        ]

    only = "only the Transformer clearly pays for a short memory"
    monkeypatch.setattr(answers, "answers", rows({"p-spin": "free", "transformer": "costs"}))
    assert draw._title({"p-spin": {0.9: [2.0]}}) == f"No run diverges; {only}"
    assert draw._title({"p-spin": {0.9: [2.0, math.inf]}}) == f"1 of 2 runs diverge; {only}"
    monkeypatch.setattr(answers, "answers", rows(dict.fromkeys(draw.NETWORKS, "costs")))
    assert draw._title({"p-spin": {0.9: [2.0]}}) == "No run diverges; all four pay for a short memory"
    monkeypatch.setattr(answers, "answers", rows({"p-spin": "undecided"}))
    assert draw._title({}) == "No run diverges"


def test_roughness_is_told_in_multiples_of_p_spin():
    figure, shown = draw.roughness("title")
    assert list(shown) == list(draw.MEASURES)
    panel = figure.axes[0]
    assert np.mean(panel.lines[0].get_xdata()) == pytest.approx(1)
    assert len(shown["largest"]["transformer"]) == len(networks.SEEDS)
    assert len({line.get_color() for line in panel.lines if line.get_marker() == "o"}) == len(draw.PAIR + draw.OTHERS)
    assert len(panel.texts) == len(draw.PAIR + draw.OTHERS) * len(draw.MEASURES), "their means"
    known = [stability.measures(run)["noise scale"] for run in records.seeds("bytes-1", "p-spin").values()]
    assert shown["noise scale"]["p-spin"] == pytest.approx(known)


def test_costs_have_a_row_for_every_answer_and_name_no_run():
    head, *rows = draw.costs()
    assert head[1:3] == list(records.SPLITS)
    assert [row[0] for row in rows[:4]] == [f"cost of 0.95: {name}" for name in answers.NETWORKS.values()]
    assert sum(map(len, draw.payers().values())) == 4
    assert not [cell for row in rows for cell in row if "beta2" in cell]
    assert {len(row) for row in rows} == {4}


def test_the_effect_of_a_rate_is_that_of_two_short_runs():
    ends = [runs.end(f"subwords-64/p-spin/try-{rate}-1", "held-out") for rate in (0.0032, 0.0008)]
    assert draw.rate_effect("subwords-64", "p-spin") == pytest.approx(ends[0] - ends[1])


def test_the_scatter_of_one_network_makes_its_own_interval():
    ends, how = draw.forgotten(), draw.scatter("transformer")
    pair = [ends["transformer"][beta2] for beta2 in (0.95, draw.USUAL)]
    assert how.own**2 == pytest.approx(np.mean([np.var(bits, ddof=1) for bits in ends["transformer"].values()]))
    every = [np.var(bits, ddof=1) for values in ends.values() for bits in values.values()]
    assert how.all_networks**2 == pytest.approx(np.mean(every))
    assert np.mean(how.by_seed) == pytest.approx(np.mean(pair[0]) - np.mean(pair[1]))
    variance = np.mean([np.var(bits, ddof=1) for bits in pair]) * 2 / 3
    assert how.half_width_pair == pytest.approx(intervals.student(0.99, 4) * math.sqrt(variance))
    assert how.half_width < how.half_width_pair


def test_jumps_say_what_one_network_explains_of_another():
    losses = {"p-spin": np.array([1.0, 3.0, 2.0]), "transformer": np.array([2.0, 6.0, 4.0])}
    figure, shares = draw.jumps(6001, losses, "title", peaks=1)
    assert shares == pytest.approx({"p-spin": 1.0, "transformer": 1.0})
    bands = [panel.lines[0].get_xdata() for panel in figure.axes]
    assert bands == [[6002, 6002]] * 2, "the highest peak of the first, in both"
