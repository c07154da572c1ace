"""Figures of the study show the records' own numbers."""

from __future__ import annotations

import pytest

from pspin_lite.lessons.figures import study as draw
from pspin_lite.study import networks, records


def runs():
    return {name: list(records.seeds("smoke", name).values()) for name in ("p-spin", "transformer")}


def test_learning_curves_have_the_axes_of_the_records():
    figure, shown = draw.learning(runs())
    record = records.seeds("smoke", "p-spin")[1]
    assert [axis.get_xlabel() for axis in figure.axes] == ["sequences", "10¹² operations"]
    assert shown["p-spin"]["bits"].shape == (3, 6), "step 0 is left out"
    assert shown["p-spin"]["bits"][0, -1] == records.curve(record)[1][-1]
    assert shown["p-spin"]["sequences"][-1] == 60
    ends = [f"{name}: ends at {one['bits'][:, -1].mean():.2f}" for name, one in shown.items()]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ends
    three = draw.learning(runs(), units=("tokens", "flops", "seconds"))
    assert len(three[0].axes) == 3
    assert three[1]["p-spin"]["tokens"][-1] == pytest.approx(60 * 64 / 1e6)
    assert shown["p-spin"]["flops"][-1] == pytest.approx(60 * record["summary"]["flops_a_step"] / 1e12)


def test_one_axis_is_a_panel_of_both():
    four, one = draw.learning(runs())[1], draw.one_axis(runs(), "flops")
    assert (one[1]["p-spin"] == four["p-spin"]["bits"]).all()
    assert one[0].axes[0].lines[0].get_xdata().tolist() == four["p-spin"]["flops"].tolist()
    assert draw.one_axis({}, "seconds", "recent")[1] == {}, "nothing chosen: an empty panel"


def test_compared_shows_where_networks_end():
    draw_compared = draw.compared()
    for differs, names in draw.COMPARED.items():
        figure, ends = draw_compared(differs, "seconds", "recent")
        assert list(ends) == [f"{name}, end" for name in names]
        assert len(figure.axes[0].lines) == len(names)
    large = [records.curve(run, "recent")[1][-1] for run in records.seeds("bytes-64", "p-spin").values()]
    assert ends["p-spin, batch 64, end"] == pytest.approx(sum(large) / len(large))


def test_an_arm_looks_the_same_everywhere():
    """Whatever stands beside it; no two names of a figure look alike, and none is left out."""
    every = [arm.name for arm in networks.GROUPS["bytes-1"]]
    assert len({tuple(look.items()) for look in draw.looks(every).values()}) == len(every)
    some = draw.looks(["swiglu, batch 64", "Transformer, batch 1", "swiglu", "p-spin, batch 64"])
    assert some["swiglu"] == draw.looks(every)["swiglu"]
    assert some["Transformer, batch 1"] == draw.looks(every)["transformer"]
    assert len({tuple(look.items()) for look in some.values()}) == 4
    chosen = {name: list(records.seeds("bytes-1", name).values()) for name in every}
    figure, shown = draw.one_axis(chosen, "sequences")
    assert list(shown) == every
    assert len(figure.axes[0].lines) == len(every)


def test_finals_are_sorted():
    figure, shown = draw.finals({"bad": {1: 3.0, 2: 3.2}, "good": {1: 2.0, 2: 2.1}, "middle": {1: 2.5, 2: 2.4}}, "bits")
    assert list(shown) == ["good", "middle", "bad"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["bad", "middle", "good"], "best on top"
    assert shown["bad"].tolist() == [3.0, 3.2]
    marked, _ = draw.finals({"one": {1: 2.0}}, "bits", {"counting": 1.9})
    assert marked.axes[0].lines[-1].get_xdata() == [1.9, 1.9]
    assert [text.get_text().strip() for text in marked.axes[0].texts] == ["counting, 1.90"]


def test_tuning_has_every_try():
    rates = {"p-spin": records.rates("smoke", "p-spin")}
    doubled = {"p-spin": records.rates("smoke", "p-spin", 2.0)}
    assert len(rates["p-spin"]) == 4
    assert len(doubled["p-spin"]) == 1
    figure, shown = draw.tuning(rates, doubled)
    line, star = figure.axes[0].lines[:2]
    assert list(line.get_xdata()) == [4e-4, 8e-4, 1.6e-3, 3.2e-3]
    assert line.get_ydata().tolist() == shown["p-spin"].tolist() == list(rates["p-spin"].values())
    assert list(star.get_ydata()) == list(doubled["p-spin"].values())


def test_contexts_are_means_over_seeds():
    lengths, nats = records.by_context("smoke", "p-spin")
    figure, shown = draw.contexts({"p-spin": nats}, lengths)
    assert nats.shape == (3, 6)
    assert shown["p-spin"] == pytest.approx(nats.mean(0))
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["1", "2", "4", "8", "16", "32"]
