"""Figures of notebook 12: what they show is what records and answers say, also while runs are missing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pspin_lite.lessons.figures import parts
from pspin_lite.study import intervals, linear_share, records
from pspin_lite.study.claims import ledger
from pspin_lite.study.questions import answers, page


def answer(mean=0.06, width=0.01, missing=()):
    gaps = () if missing else tuple((intervals.Difference(x, width, 3),) for x in (mean, mean / 2))
    return SimpleNamespace(about="a − b", values=gaps, missing=missing, runs=("x",) * 6, verdict="costs")


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_products_are_those_of_the_table():
    figure, shown = parts.products("title")
    sigmoid, tanh = shown.values()
    place = {x: int(np.argmin(abs(np.linspace(-1, 1, 101) - x))) for x in (-0.5, 0, 0.5)}
    rows = [(sigmoid[place[g], place[0.5]], tanh[place[g], place[0.5]]) for g in place]
    known = [np.tanh(u) * np.array([1 / (1 + np.exp(-g)), np.tanh(g)]) for u, g in ((0.5, g) for g in (-0.5, 0, 0.5))]
    assert np.array(rows) == pytest.approx(np.array(known), abs=0.01)
    assert np.round(known, 3).tolist() == [[0.174, -0.214], [0.231, 0.0], [0.288, 0.214]], "as the notebook says"
    assert len(figure.axes) == 2
    assert [parts._signed(x) for x in (-0.2, 1e-17, 0.2)] == ["−0.2", "0", "+0.2"]


def test_linear_shares_are_per_cents():
    figure, shown = parts.linear_shares({"a": [1.0, 0.5], "b": [0, 0.25]}, (0.1, 1), "title")
    assert shown["a"].tolist() == [100, 50]
    assert figure.axes[0].lines[1].get_ydata().tolist() == [0, 25]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["0.1", "1"]


def test_loudness_is_that_of_the_page():
    """docs/second_study.md has the same numbers, rounded."""
    runs = parts.living("p-spin")
    figure, shown = parts.loudness({"p-Spin": runs, "again": runs}, "title")
    row = next(line for line in page.branches().splitlines() if line.startswith("| `p-spin`, bytes"))
    for kind in ("mlp", "mixer"):
        assert f"{shown['p-Spin'][kind][0]:.3g} → {shown['p-Spin'][kind][-1]:.3g}" in row
    for bits in parts.silencing(runs):
        assert f"| {bits:.3f} |" in row
    first, last = (shown["p-Spin"]["mlp"] / shown["p-Spin"]["mixer"])[[0, -1]]
    assert parts.ratios(runs) == f"{first:.2f} at first, {last:.2f} at last"
    assert [panel.get_title() for panel in figure.axes] == ["p-Spin", "again"]


def test_ends_have_the_width_of_a_page():
    figure, shown = parts.ends({"a": {1: 2.0, 2: 2.1}, "b": {1: 1.9}}, "title", {"counting": 1.8})
    assert list(shown) == ["b", "a"]
    assert figure.get_figwidth() == 5.4
    assert texts(figure)[0].strip() == "counting, 1.80"


def test_nonlinearities_say_what_has_not_been_run():
    runs = {"σ": {"ternary": {1: 2.0, 2: 2.2}, "full precision": {}}, "tanh": {"full precision": {1: 1.9}}}
    figure, shown = parts.nonlinearities(runs, {"no MLP": {1: 2.0, 2: 2.1}, "Transformer": {1: 1.8}}, "title")
    assert shown["σ"]["ternary"].tolist() == [2.0, 2.2]
    assert shown["tanh"]["ternary"].size == 0
    waiting = [text for text in texts(figure) if "not finished" in text]
    assert waiting == ["full precision: runs not finished", "ternary: runs not finished"]
    lines = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert lines == pytest.approx([2.05, 1.8]), "means over seeds"


def test_answers_with_and_without_their_runs():
    rows = {"done": answer(), "waits": answer(missing=("x",) * 3)}
    rows["waits"].verdict = "not run yet"
    assert parts.table(rows).splitlines()[2:] == [
        "| done | +0.060 ± 0.010 | +0.030 ± 0.010 | costs |",
        "| waits |  |  | not run yet: 3 of 6 runs |",
    ]


def test_a_stair_says_how_far_each_change_goes():
    figure, shown = parts.stair({"a": {1: 2.0, 2: 2.2}, "b": {1: 1.9}, "c": {1: 1.95}}, "title")
    assert shown["a"].tolist() == [2.0, 2.2]
    assert texts(figure) == ["−0.200", "+0.050"], "of the means"
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]
    low, high = figure.axes[0].get_xlim()
    assert low < 1.9 < 2.2 < high
    pale, again = parts.stair({"a": {1: 2.0}, "b": {1: 1.9}}, "title", {"b": {1: 2.3, 2: 2.4}}, "ternary")
    assert list(again) == ["a", "b"]
    assert [text.get_text() for text in pale.legends[0].get_texts()] == ["ternary"]
    dots = next(line for line in pale.axes[0].lines if line.get_marker() == "D")
    assert (dots.get_xdata().tolist(), list(dots.get_ydata())) == ([2.3, 2.4], [1, 1])
    assert pale.axes[0].get_xlim()[1] > 2.4


def test_pairs_say_what_was_planned():
    rows = {row.key: row for row in answers.answers("living")}
    lines = parts.pairs(rows).splitlines()[2:]
    assert [line.count("not planned") for line in lines] == [0, 1, 1, 2]
    gap = rows["wakes bytes"].values[0][0]
    assert f"{gap.mean:+.3f} ± {gap.half_width:.3f} clear |" in lines[0]
    waits = {**rows, "sigmoid bytes": answer(missing=("x",))}
    assert "not run yet" in parts.pairs(waits)
    words = [parts.word(intervals.Difference(mean, 0.012, 3)) for mean in (0.02, 0.005, 0.011)]
    assert words == ["clear", "equivalent", "undecided"]


def test_what_context_is_worth():
    gained = parts.beyond(("p-spin", "transformer"))
    values = ledger.results()["credit"].values
    for name, key in (("p-spin", "p_spin"), ("transformer", "transformer")):
        assert np.mean(list(gained[name].values())) == pytest.approx(values[key], abs=1e-6)
    figure, shown = parts.gains(gained, "title", "label")
    assert shown["p-spin"].tolist() == list(gained["p-spin"].values())
    assert figure.axes[0].get_xlabel() == "label"


def test_a_gap_within_living_bytes_is_that_of_the_answer():
    row = {row.key: row for row in answers.answers("living")}["earns bytes"]
    assert parts.living_gap("p-spin", "no-mlp", row.question.intervals) == row.values[0][0]


def test_an_answer_is_told(capsys):
    parts.tell(answer())
    parts.tell(answer(missing=("x", "y")))
    assert capsys.readouterr().out == (
        "a − b: +0.060 ± 0.010, on recent speeches +0.030 ± 0.010\na − b: waits for 2 of 6 runs\n"
    )


def test_what_a_linear_map_explains_is_that_of_the_record():
    record = records.read("linear-share")
    means = {name.split("/")[1]: share for name, share in linear_share.means(record).items()}
    for name in parts.PRODUCTS:
        share, size = parts.trained(f"{name}-full")
        assert share == pytest.approx(means[f"{name}-full"])
        assert 1 < size < 6


def test_keys_and_names_are_those_of_the_study():
    keys = {row.key for section in ("living", "steps") for row in answers.answers(section)}
    assert {*parts.STEPS, "earns bytes", "wakes bytes", "squashing bytes"} <= keys
    assert {"rounding bytes 1", "rounding bytes 2", "sigmoid bytes"} <= keys
    assert {*parts.PALE_STAIR} <= {*parts.STAIR}
    for network in (*parts.STAIR.values(), *parts.PALE_STAIR.values()):
        assert len(records.bits(*network)) == 3


def test_differences_are_those_of_the_verdicts():
    gap = parts.minus("p-spin", "k0-same-size")
    values = ledger.results()["recurrence"].values
    assert (gap.mean, gap.half_width) == pytest.approx((values["gap"], values["width"]))


def test_counting_reads_what_a_network_has_read(monkeypatch):
    def scores(seen, held_out, order, windows):
        return {"held-out": [0.0, float(seen.size), 0.0]}, None

    monkeypatch.setattr(parts.probes, "count_scores", scores)
    assert parts.counting(order=1) == 8000 * 129, "windows, each with the byte to be predicted last"
