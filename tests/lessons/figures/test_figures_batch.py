"""Figures of notebook 13 show the records' own numbers, whatever runs there are."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pspin_lite.lessons.figures import batch as draw
from pspin_lite.lessons.figures import noise, wrong_rates
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


def test_noise_has_a_dot_for_every_network_that_was_probed():
    figure, found = noise.noise_over_rate("title")
    [panel] = figure.axes
    assert {where[0] for where in found} <= set(noise.PROBED)
    assert len(panel.lines) == len(found) > 20
    assert [one.fixed_point for one in found.values()].count(True) == sum(
        line.get_markerfacecolor() != "white" for line in panel.lines
    )
    places = {(round(float(line.get_xdata()[0]), 3), round(line.get_ydata()[0], 1)) for line in panel.lines}
    assert len(places) == len(found), "none covers another"
    known = [stability.measures(run)["noise scale"] for run in records.seeds("bytes-1", "p-spin").values()]
    rate = records.read("bytes-1/p-spin/seed-1")["config"]["model"]["lr"]
    assert found["bytes-1", "p-spin"] == noise.Noise(rate, pytest.approx(np.mean(known)), True)
    without = [name for (_, name), one in found.items() if not one.fixed_point]
    assert {"transformer", "swiglu", "no-mlp", "k0"} <= set(without)


def test_roughness_has_a_row_for_each_network():
    _head, *rows = noise.roughness()
    assert [row[:2] for row in rows[:3]] == [
        ["p-Spin", "yes"],
        ["p-Spin, ten steps", "yes"],
        [draw.NAMES["k0-same-size"], "no"],
    ]
    every = [stability.measures(run) for run in records.seeds("bytes-1", "transformer").values()]
    assert rows[-1][2].startswith(f"{np.mean([one['worse steps'] for one in every]):.0%} (")
    assert rows[-1][3].endswith(f"to {max(one['largest'] for one in every):.0f})")
    assert len(rows) == len(noise.FIVE)


def test_shares_add_up():
    figure, found = noise.hidden_mover()
    assert [sum(shares.values()) for shares in found.values()] == pytest.approx([1, 1, 1])
    [panel] = figure.axes
    widths = [share for one in found.values() for share in one.values()]
    assert [bar.get_width() for bar in panel.patches] == pytest.approx(widths)
    last = [run["branches"][-1]["update"] for run in records.seeds("living-bytes", "p-spin").values()]
    others = np.mean([1 - one["embedding"] - one["mixer"] - one["norm"] for one in last])
    assert found["squared step"]["attractor"] == pytest.approx(others)
    assert found["squared gradient"]["attractor"] < 0.01


def test_costs_have_a_row_for_every_answer_and_name_no_run():
    head, *rows = draw.costs()
    assert head[1:3] == list(records.SPLITS)
    assert [row[0] for row in rows[:4]] == [f"cost of 0.95: {name}" for name in answers.NETWORKS.values()]
    assert sum(map(len, draw.payers().values())) == 4
    assert not [cell for row in rows for cell in row if "beta2" in cell]
    assert {len(row) for row in rows} == {4}


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
    figure, shares = noise.jumps(6001, losses, "title", peaks=1)
    assert shares == pytest.approx({"p-spin": 1.0, "transformer": 1.0})
    bands = [panel.lines[0].get_xdata() for panel in figure.axes]
    assert bands == [[6002, 6002]] * 2, "the highest peak of the first, in both"


# Figures of runs that may still be missing


@pytest.fixture
def folder(tmp_path):
    with records.using(tmp_path):
        yield tmp_path


def put(folder, run: str, end: float) -> None:
    path = folder / f"{run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"summary": {"validation": {split: {"bits_per_byte": end} for split in records.SPLITS}}})
    )


def adam(folder) -> None:
    for i, name in enumerate(draw.NETWORKS):
        for beta2 in answers.BETAS:
            put(folder, f"moments/{name}-beta2-{beta2:g}/seed-1", 2 + i / 10)


def ran(folder, group: str, ends: dict[str, float]) -> None:
    """All runs of a group; `ends` are above Adam, of names that end like this."""
    for arm in networks.GROUPS[group]:
        level = 2 + next(i for i, name in enumerate(draw.NETWORKS) if arm.name.startswith(name)) / 10
        put(folder, f"{group}/{arm.name}/seed-1", level + next(x for end, x in ends.items() if arm.name.endswith(end)))


def test_without_runs_there_is_nothing_to_draw_and_it_is_said(folder):
    figure, found = wrong_rates.sgd()
    assert wrong_rates.ends_in_words(found) == "no runs yet"
    assert figure.get_suptitle() == "SGD without momentum: 0 of 16 runs so far"
    figure, found = wrong_rates.rates()
    assert set(map(str, found.values())) == {str({key: {} for key in draw.NETWORKS})}
    assert figure.get_suptitle() == "The price of a wrong rate: 0 of 20 runs so far"
    for rows in (draw.controls(), wrong_rates.wrong_rates(), wrong_rates.plain_sgd()):
        assert all(row[-1].startswith("not run yet: 0 of ") for row in rows[1:])


def test_sgd_is_drawn_over_its_rates_with_adam_as_a_line(folder):
    adam(folder)
    put(folder, "sgd/transformer-rate-0.3/seed-1", 2.4)
    put(folder, "sgd/transformer-rate-3/seed-1", 4.5)
    figure, found = wrong_rates.sgd()
    assert found["transformer"] == {0.3: 2.4, 3: math.inf}
    panel = figure.axes[1]
    line, cross, level = panel.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1], [2.4])
    assert cross.get_marker() == "x"
    assert cross.get_xdata()[0] == 3
    assert list(level.get_ydata()) == [2.1, 2.1]
    assert wrong_rates.ends_in_words(found) == "Transformer 2.40 at 0.3, diverged at 3"
    assert figure.get_suptitle() == "SGD without momentum: 2 of 16 runs so far"
    assert "diverged" in figure.get_supxlabel()
    assert wrong_rates.plain_sgd()[2] == ["Transformer", "", "", "not run yet: 3 of 5 runs"]


@pytest.mark.parametrize(
    ("best", "transformer", "title"),
    [
        (0.05, 0.05, "trains all four networks, nearly as well as Adam"),
        (0.05, 0.2, "trains all four networks, three nearly as well as Adam"),
        (0.2, 0.2, "trains all four networks, but stays far behind Adam"),
        (0.05, 9.0, "trains three of four networks, nearly as well as Adam"),
        (9.0, 9.0, "trains none of the four"),
    ],
)
def test_the_title_of_sgd_follows_the_answers(folder, best, transformer, title):
    adam(folder)
    ran(folder, "sgd", {"rate-1": best, "": max(best, 0.5)})
    for rate in networks.SGD_RATES:
        put(folder, f"sgd/transformer-rate-{rate:g}/seed-1", 2.1 + transformer)
    assert wrong_rates.sgd()[0].get_suptitle().replace("\n", " ") == f"SGD without momentum {title}"


def test_rates_are_drawn_above_the_tuned_one(folder):
    adam(folder)
    ran(folder, "moments-rates", {"0.25": 0.1, "0.5": 0.02, "2": 0.03, "4": 0.2})
    put(folder, "moments-rates/swiglu-beta2-0.95-times-4/seed-1", 4.5)
    figure, found = wrong_rates.rates()
    assert found[0.95]["p-spin"] == pytest.approx({0.25: 0.1, 0.5: 0.02, 1: 0, 2: 0.03, 4: 0.2})
    assert found[0.999]["tanh-tanh"] == pytest.approx({0.25: 0.1, 1: 0, 4: 0.2})
    assert found[0.95]["swiglu"][4] == math.inf
    above, below = figure.axes
    blue = [line for line in above.lines if line.get_color() == draw.COLOURS["p-spin"]]
    assert list(blue[0].get_ydata()) == list(found[0.95]["p-spin"].values())
    assert [line.get_marker() for line in above.lines].count("x") == 1
    assert "x" not in [line.get_marker() for line in below.lines]
    assert figure.get_suptitle() == "p-Spin is not seen to bear wrong rates any better"
    for beta2 in answers.BETAS:
        put(folder, f"moments-rates/transformer-beta2-{beta2:g}-times-4/seed-1", 2.4)
    assert wrong_rates.rates()[0].get_suptitle() == "p-Spin tolerates a wider range of rates"
    assert [row[-1] for row in wrong_rates.wrong_rates()[1:]] == ["**wider**"] * 3


def test_the_controls_fill_their_table(folder):
    for arm in networks.GROUPS["moments-controls"]:
        for n in arm.seeds:
            end = 2.1 if arm.name == "attention-beta2-0.95" else 2.0
            put(folder, f"moments-controls/{arm.name}/seed-{n}", end + n / 1000)
    rows = draw.controls()[1:]
    assert [row[0] for row in rows] == [
        "cost of 0.95: attention before the attractor",
        "cost of 0.95: a fixed point that speaks",
    ]
    assert [row[3].split(",")[0] for row in rows] == ["**costs**", "**free**"]
    assert rows[0][1].startswith("+0.100 ± ")
