"""Figures of notebook 13 show the records' own numbers, whatever runs there are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pspin_lite.lessons.figures import batch as draw
from pspin_lite.study import networks, records, stability
from pspin_lite.study.questions import answers, question, runs


def test_half_lives():
    assert draw.half_life(0.5) == 1
    assert draw.half_life(0.95) == pytest.approx(13.5, abs=0.02)
    assert draw.half_life(0.95 ** (1 / 64)) == pytest.approx(64 * draw.half_life(0.95))


def test_memory_has_a_line_for_each_memory_and_each_batch_size():
    divisors = {"0.95": np.array([1.0, 5.0]), "0.999": np.array([4.0, 4.1])}
    settled = {"batch size 1": {0.9: 0.4, 0.999: 1.0}, "batch size 64": {0.9: 1.0, 0.999: 1.0}}
    figure, _ = draw.memory(divisors, settled, 1.0)
    above, below = figure.axes
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

    monkeypatch.setattr(answers, "answers", rows({"p-spin": "free", "transformer": "costs"}))
    assert draw._title({"p-spin": {0.9: [2.0]}}) == "No run diverges; 0.95 costs the Transformer"
    assert draw._title({"p-spin": {0.9: [2.0, math.inf]}}) == "1 of 2 runs diverge; 0.95 costs the Transformer"
    monkeypatch.setattr(answers, "answers", rows(dict.fromkeys(draw.NETWORKS, "costs")))
    assert draw._title({"p-spin": {0.9: [2.0]}}) == "No run diverges; 0.95 costs all four"
    monkeypatch.setattr(answers, "answers", rows({"p-spin": "undecided"}))
    assert draw._title({}) == "No run diverges"


def test_roughness_is_told_in_multiples_of_p_spin():
    figure, shown = draw.roughness("title")
    assert list(shown) == list(draw.MEASURES)
    panel = figure.axes[0]
    assert np.mean(panel.lines[0].get_xdata()) == pytest.approx(1)
    assert len(shown["tail"]["transformer"]) == len(networks.SEEDS)
    coloured = {line.get_color() for line in panel.lines if line.get_marker() == "o"}
    assert coloured == {draw.COLOURS[name] for name in draw.PAIR}
    assert len(panel.texts) == len(draw.PAIR) * len(draw.MEASURES), "their means"
    nats = [stability.measures(run)["raw jitter"] for run in records.seeds("bytes-1", "p-spin").values()]
    assert shown["raw jitter"]["p-spin"] == pytest.approx([one / math.log(2) for one in nats])


def test_own_jitter_is_that_of_stability_in_bits():
    trio = ("p-spin", "transformer", "swiglu")
    every = {name: records.seeds("bytes-1", name)[1] for name in trio}
    one = stability.own_jitter(every, "p-spin", trio) / math.log(2)
    assert draw.own_jitter(trio)["p-spin"] == pytest.approx(one, rel=0.05), "the mean of three seeds is near the first"
    assert list(draw.own_jitter(trio)) == list(trio)


def test_costs_have_a_row_for_every_answer_and_name_no_run():
    head, *rows = draw.costs()
    assert head[1:3] == list(records.SPLITS)
    assert [row[0] for row in rows[:4]] == [f"cost of 0.95: {name}" for name in answers.NETWORKS.values()]
    assert sum(map(len, draw.payers().values())) == 4
    assert not [cell for row in rows for cell in row if "beta2" in cell]
    assert {len(row) for row in rows} == {4}


def test_recipes_show_what_is_measured_and_what_waits():
    figure, shown = draw.recipes("title")
    waiting = [name for name, effects in shown.items() if all(value is None for value in effects.values())]
    assert [text.get_text() for text in figure.axes[0].texts] == ["not run yet"] * len(waiting)
    assert len(shown) == 8, "seven changes, and all at once"
    subwords = [records.mean(records.bits(f"subwords-{batch}", "transformer")) for batch in (64, 1)]
    assert draw.together()["transformer"] == pytest.approx(subwords[0] - subwords[1])
    [rate] = [effects for (_, label), effects in shown.items() if label.startswith("rate")]
    assert rate["transformer"] == pytest.approx(draw.rate_effect("subwords-64", "transformer"))
    assert rate["p-spin"] == draw.rate_effect("subwords-64", "p-spin")


def test_jumps_say_what_one_network_explains_of_another():
    losses = {"p-spin": np.array([1.0, 3.0, 2.0]), "transformer": np.array([2.0, 6.0, 4.0])}
    figure, shares = draw.jumps(6001, losses, "title", peaks=1)
    assert shares == pytest.approx({"p-spin": 1.0, "transformer": 1.0})
    bands = [panel.lines[0].get_xdata() for panel in figure.axes]
    assert bands == [[6002, 6002]] * 2, "the highest peak of the first, in both"
