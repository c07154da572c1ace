"""Figures of notebook 12: what they show is what records and answers say, also while runs are missing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import pspin_lite as ps
from pspin_lite.lessons.figures import parts, products, stairs
from pspin_lite.study import intervals, jobs, linear_share, networks, records
from pspin_lite.study.claims import ledger
from pspin_lite.study.questions import answers, page


def answer(mean=0.06, width=0.01, missing=()):
    gaps = () if missing else tuple((intervals.Difference(x, width, 3),) for x in (mean, mean / 2))
    return SimpleNamespace(about="a − b", values=gaps, missing=missing, runs=("x",) * 6, verdict="costs")


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_products_are_those_of_the_table():
    figure, shown = products.products("title")
    sigmoid, tanh = shown.values()
    place = {x: int(np.argmin(abs(np.linspace(-1, 1, 101) - x))) for x in (-0.5, 0, 0.5)}
    rows = [(sigmoid[place[g], place[0.5]], tanh[place[g], place[0.5]]) for g in place]
    known = [np.tanh(u) * np.array([1 / (1 + np.exp(-g)), np.tanh(g)]) for u, g in ((0.5, g) for g in (-0.5, 0, 0.5))]
    assert np.array(rows) == pytest.approx(np.array(known), abs=0.01)
    assert np.round(known, 3).tolist() == [[0.174, -0.214], [0.231, 0.0], [0.288, 0.214]], "as the notebook says"
    assert len(figure.axes) == 2
    assert [products._signed(x) for x in (-0.2, 1e-17, 0.2)] == ["−0.2", "0", "+0.2"]


def test_linear_shares_are_per_cents():
    figure, shown = products.linear_shares({"a": [1.0, 0.5], "b": [0, 0.25]}, (0.1, 1), "title")
    assert shown["a"].tolist() == [100, 50]
    assert figure.axes[0].lines[1].get_ydata().tolist() == [0, 25]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["0.1", "1"]


def test_loudness_is_that_of_the_page():
    """docs/second_study.md has the same numbers, rounded."""
    runs = parts.living("p-spin")
    figure, shown = products.loudness({"p-Spin": runs, "again": runs}, "title")
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
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["MLP of p-Spin's kind", "SwiGLU"]


def test_ends_mark_the_networks_with_a_swiglu():
    mlps = {arm.name: getattr(arm.cfg, "mlp", "") for arm in networks.GROUPS["bytes-1"]}
    mlps |= {"transformer": "swiglu"}  # a preset of its own
    assert {name for name, mlp in mlps.items() if mlp == "swiglu"} == {*parts.MLPS}
    figure, _ = parts.ends({"swiglu": {1: 1.8, 2: 1.9}, "b": {1: 2.0}}, "title")
    marked = [line.get_xdata().tolist() for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert marked == [[1.8, 1.9], []], "the last is the legend's"


def test_nonlinearities_say_what_has_not_been_run():
    runs = {"σ": {"ternary": {1: 2.0, 2: 2.2}, "full precision": {}}, "tanh": {"full precision": {1: 1.9}}}
    figure, shown = products.nonlinearities(runs, {"no MLP": {1: 2.0, 2: 2.1}, "Transformer": {1: 1.8}}, "title")
    assert shown["σ"]["ternary"].tolist() == [2.0, 2.2]
    assert shown["tanh"]["ternary"].size == 0
    waiting = [text for text in texts(figure) if "not finished" in text]
    assert waiting == ["full precision: runs not finished", "ternary: runs not finished"]
    lines = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert lines == pytest.approx([2.05, 1.8]), "means over seeds"


def test_answers_with_and_without_their_runs():
    rows = {"done": answer(), "waits": answer(missing=("x",) * 3)}
    rows["waits"].verdict = "not run yet"
    assert stairs.table(rows).splitlines()[2:] == [
        "| done | +0.060 ± 0.010 | +0.030 ± 0.010 | costs |",
        "| waits |  |  | not run yet: 3 of 6 runs |",
    ]


def test_a_stair_says_how_far_each_change_goes():
    figure, shown = stairs.stair({"a": {1: 2.0, 2: 2.2}, "b": {1: 1.9}, "c": {1: 1.95}}, "title")
    assert shown["a"].tolist() == [2.0, 2.2]
    assert texts(figure) == ["−0.200", "+0.050"], "of the means"
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]
    low, high = figure.axes[0].get_xlim()
    assert low < 1.9 < 2.2 < high
    pale, again = stairs.stair({"a": {1: 2.0}, "b": {1: 1.9}}, "title", {"b": {1: 2.3, 2: 2.4}}, rounded=["a"])
    assert list(again) == ["a", "b"]
    assert [text.get_text() for text in pale.legends[0].get_texts()] == ["ternary", "full precision"]
    look = {tuple(line.get_xdata()): line.get_marker() for line in pale.axes[0].lines if len(line.get_xdata())}
    assert (look[2.0,], look[1.9,], look[2.3, 2.4]) == ("o", "D", "o"), "rounded, not rounded, rounded again"
    assert pale.axes[0].get_xlim()[1] > 2.4


def test_pairs_say_what_was_planned():
    rows = {row.key: row for row in answers.answers("living")}
    lines = parts.pairs(rows).splitlines()[2:]
    assert [line.count("not planned") for line in lines] == [0, 1, 1, 2]
    gap = rows["wakes bytes"].values[0][0]
    assert f"{gap.mean:+.3f} ± {gap.half_width:.3f} clear |" in lines[0]
    waits = {**rows, "sigmoid bytes": answer(missing=("x",))}
    assert "not run yet" in parts.pairs(waits)


def test_both_sets_of_speeches_make_the_word():
    def word(*means, widths=(0.012, 0.012)):
        return parts.word([intervals.Difference(mean, width, 3) for mean, width in zip(means, widths, strict=True)])

    assert [word(mean, mean) for mean in (0.02, -0.02, 0.005, 0.011)] == ["clear", "clear", "equivalent", "undecided"]
    assert word(0.02, -0.02) == word(0.02, 0.01) == "undecided"
    assert word(0.0, 0.0, widths=(0.014, 0.026)) == "undecided", "as in section 2: the second cannot be within 0.02"
    words = {name: page_word(name) for name in ("k1", "k2", "k10", "k0", "full-precision", "attention", "swiglu")}
    assert words == dict.fromkeys(words, "undecided") | {"swiglu": "clear"}


def page_word(name):
    return parts.word([parts.minus(name, "p-spin", split) for split in records.SPLITS])


def test_short_runs_are_compared_at_the_same_rate_and_scale():
    tries = [records.tries(*at)["try-0.0008-1"] for at in (("living-bytes", "tanh-tanh"), ("bytes-1", "k0-same-size"))]
    one, other = map(records.score, tries)
    assert parts.tuning_gap("tanh-tanh", "tanh-sigmoid", 8e-4) == pytest.approx(one - other)
    assert len({(run["config"]["model"]["lr"], run["config"]["model"]["gain"]) for run in tries}) == 1


def test_what_is_held_equal_is_equal():
    five = networks.arm("steps-bytes", "k5").cfg
    members = {name: [networks.arm(*at).cfg for at in of.values()] for name, of in stairs.HELD_EQUAL.items()}
    sizes = [sum(p.numel() for p in ps.build(cfg).parameters()) for cfg in (five, *members["equal parameters"])]
    assert max(sizes) < 1.01 * min(sizes)
    [wide], [narrow] = members["equal arithmetic"], members["equal width"]
    assert jobs.flops_a_step(wide) == pytest.approx(jobs.flops_a_step(five), rel=0.01)
    assert narrow.inner == five.inner
    twice, *_ = members["equal parameters"]
    assert (round(twice.inner / five.inner), round(wide.inner / five.inner)) == (2, 5), "as the labels say"


def test_what_is_held_equal_is_drawn_as_far_as_it_has_run():
    runs = {"a": {"no steps": {1: 1.9, 2: 2.0}, "five steps": {1: 2.0, 2: 2.1}, "one": {}}, "b": {"no steps": {}}}
    figure, shown = stairs.held_equal(runs, "title")
    assert {key: values.tolist() for key, values in shown.items()} == {
        ("a", "no steps"): [1.9, 2.0],
        ("a", "five steps"): [2.0, 2.1],
    }
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["a", "no steps", "five steps"], "neither networks nor groups without runs"
    assert texts(figure) == ["−0.100", "minus\nfive steps"]
    [line] = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert line.get_xdata()[0] == pytest.approx(2.05)
    figure, _ = stairs.held_equal(runs | {"b": {"no steps": {1: 2.3}}}, "title")
    assert texts(figure) == ["−0.100", "+0.250", "minus\nfive steps"]
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in hollow] == [[2.3]], "one seed"
    assert texts(stairs.held_equal({"a": {"no steps": {1: 1.9}}}, "title")[0]) == []


def test_what_is_held_equal_can_be_drawn_from_the_records():
    runs = {name: {label: records.bits(*at) for label, at in of.items()} for name, of in stairs.HELD_EQUAL.items()}
    _, shown = stairs.held_equal(runs, "title")
    row = {row.key: row for row in answers.answers("steps")}["equal-parameters bytes 1"]
    five, none = (shown["equal parameters", label].mean() for label in ("five steps", "no steps, twice as wide"))
    assert five - none == pytest.approx(row.values[0][0].mean)


def test_settling_shows_the_worst_layer_at_every_time():
    figure, shown = stairs.settling({"a": ("bytes-1", "p-spin"), "b": ("steps-bytes", "k5")}, "title")
    for label, network in (("a", ("bytes-1", "p-spin")), ("b", ("steps-bytes", "k5"))):
        for what in ("radius", "gradient_error"):
            known = [records.layers(run, what).max(1) for run in records.seeds(*network).values()]
            assert shown[label][what].tolist() == np.array(known).tolist()
    errors = figure.axes[1].lines[0].get_ydata()
    assert errors == pytest.approx(100 * shown["a"]["gradient_error"][0]), "in per cent"
    assert [len(panel.lines) for panel in figure.axes] == [7, 7], "three seeds twice, and a dashed line"


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
    assert {*stairs.STEPS, "earns bytes", "wakes bytes", "squashing bytes"} <= keys
    assert {"rounding bytes 1", "rounding bytes 2", "sigmoid bytes"} <= keys
    assert {*stairs.PALE_STAIR} <= {*stairs.STAIR}
    for network in (*stairs.STAIR.values(), *stairs.PALE_STAIR.values()):
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
