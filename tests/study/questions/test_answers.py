"""Answers from made-up records, and the questions against the page that was written before the runs."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from pathlib import Path

import pytest

from pspin_lite.cli import main
from pspin_lite.study import intervals, networks, records
from pspin_lite.study.claims import ledger
from pspin_lite.study.questions import answers, criteria, page
from pspin_lite.study.questions.question import criterion, questions, texts

QUESTIONS = {question.id: question for question in questions()}
SCATTER = {1: -0.001, 2: 0.0, 3: 0.001}  # of seeds about a network's mean: a variance of 1e-6
TIMES = itertools.count(10**18)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "second_study.md"


@pytest.fixture
def folder(tmp_path):
    with records.using(tmp_path):
        yield tmp_path


def result(held_out: float, recent: float | None = None, **more: object) -> dict:
    ends = {"held-out": held_out, "recent": held_out if recent is None else recent}
    validation = {split: {"bits_per_byte": value} for split, value in ends.items()}
    return {"summary": {"validation": validation}} | more


def put(folder: Path, run: str, held_out: float, recent: float | None = None, **more: object) -> None:
    write(folder, run, result(held_out, recent, **more))


def write(folder: Path, run: str, record: dict) -> None:
    """As `store.write`, without waiting for the disk. Every file has a time of its own, so that none is taken for the
    one before it."""
    path = folder / f"{run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    os.utime(path, ns=(next(TIMES),) * 2)


def network(folder: Path, name: str, held_out: float, recent: float | None = None, **more: object) -> None:
    """All its seeds."""
    for n in networks.arm(*name.split("/")).seeds:
        second = None if recent is None else recent + SCATTER[n]
        put(folder, f"{name}/seed-{n}", held_out + SCATTER[n], second, **more)


def everything(folder: Path) -> None:
    """Every run that any question is about, all alike: one file per group, as they are published. What is put beside
    them counts instead."""
    for group in (*networks.SECOND, "bytes-1", "subwords-1", "subwords-64", "continual"):
        runs = {
            f"{group}/{arm.name}/seed-{n}": result(2.0 + SCATTER[n], **LOOKS)
            for arm in networks.GROUPS[group]
            for n in arm.seeds
        }
        if group == "subwords-64":
            runs |= {f"{group}/transformer/try-{rate}-1": result(2.0) for rate in ("0.0008", "0.0032")}
        lines = (json.dumps(dict(name=name) | run) + "\n" for name, run in runs.items())
        (folder / f"{group}.jsonl").write_text("".join(lines))


def forget(folder: Path, run: str) -> None:
    (folder / f"{run}.json").unlink(missing_ok=True)
    published = folder / f"{run.partition('/')[0]}.jsonl"
    if published.exists():
        lines = published.read_text().splitlines(keepends=True)
        published.write_text("".join(line for line in lines if f'"{run}"' not in line))


def parts(scale: float = 20.0, **measures: float) -> list[dict]:
    whole = dict(adam_scale=10.0, adam_tail=3.0, rises=0.5) | measures
    return [dict(scale=scale, parts={"whole MLP": whole})] * 3


def at_rate(lr: float) -> dict:
    return dict(config=dict(model=dict(lr=lr)))


def eras(*ends: float) -> list[dict]:
    """Validations at the end of eras that start at 2."""
    return [
        dict(step=step, split=str(year), bits_per_byte=2.0 if step == 0 else end)
        for step in (0, 400)
        for year, end in enumerate(ends)
    ]


LOOKS = dict(noise=parts(), context=dict(context=[8, 32, 256], nats=[3.0, 2.0, 1.9]), validation=eras(1.5, 1.5, 1.5))
LOOKS |= at_rate(8e-4) | dict(attractor=[dict(radius=[0.5, 0.4], gradient_error=[0.01, 0.02])] * 2)


def answered(name: str) -> dict[str, answers.Row]:
    return {row.key: row for row in answers.answer(QUESTIONS[name])}


def verdict(name: str, key: str | None = None) -> str:
    return answered(name)[key or name].verdict


# The questions and the page


def test_every_network_of_a_question_exists():
    for question in QUESTIONS.values():
        for alphabet in question.alphabets:
            for name in (name.format(alphabet=alphabet) for pair in question.differences for name in pair):
                if question.kind in ("intervals", "half", "interaction", "noise", "context"):
                    seeds = networks.arm(*name.split("/")).seeds
                    assert len(seeds) == len(networks.SEEDS) or question.section in ("noise", "batches")
        assert question.kind in answers.KINDS
        assert all(test in criteria.TESTS for tests in question.words.values() for test in tests)


def test_the_questions_are_those_of_the_page():
    """In its order, with the networks and the words of its criteria."""
    rows = [row.strip("| ").split(" | ") for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    asked = {row[0]: row for row in rows if len(row) == 3 and row[0].endswith("?")}
    assert list(asked) == [question.asks for question in QUESTIONS.values()]
    aliases = {"yes": "lies below +0.02", "no": "lies below +0.02"}
    for question in QUESTIONS.values():
        _, about, criterion = asked[question.asks]
        if question.asks in ("At equal arithmetic?", "At equal width?", "Do further steps help?"):
            criterion = asked["At equal parameters?"][2]  # "the same words"
        for word, tests in question.words.items():
            said = f"*{word}*" in criterion or aliases.get(word, word) in criterion
            assert said or (word, tests) == ("equivalent", ["equivalent"]), (question.id, word)
        apart = ("moments", "controls", "batches", "data")  # the page names their networks without what was changed
        if question.kind in ("intervals", "half") and question.section not in apart:
            for name in (name for pair in question.differences for name in pair):
                assert f"{name.partition('/')[2]}`" in about, (question.id, name)


def test_families_are_as_large_as_the_page_says():
    assert {name: question.intervals for name, question in QUESTIONS.items() if question.section == "living"} == {
        "earns": 2, "wakes": 2, "squashing": 2, "rounding": 4, "sigmoid": 4,
    }  # fmt: skip
    assert QUESTIONS["mended"].intervals == 2, "the page names both Transformers"
    assert QUESTIONS["equal-parameters"].intervals == 4
    five = [QUESTIONS["more"], QUESTIONS["forgetting"]]
    assert {question.intervals for question in five} == {5} == {1 + len(five[1].differences)}


# Intervals


def test_a_difference_and_its_interval_by_hand(folder):
    """Two networks alone in their group: a variance of 1e-6 with 4 degrees of freedom, at 1 - 0.05 / 2."""
    network(folder, "living-bytes/p-spin", 1.9, 2.4)
    network(folder, "living-bytes/no-mlp", 2.0, 2.45)
    row = answered("earns")["earns bytes"]
    half = intervals.student(1 - 0.05 / 2, 4) * math.sqrt(1e-6 * 2 / 3)
    for (gap,), mean in zip(row.values, (-0.1, -0.05), strict=True):
        assert gap.mean == pytest.approx(mean)
        assert gap.half_width == pytest.approx(half, rel=1e-6)
    assert row.verdict == "earns"
    assert row.moving, "eight networks are missing"
    assert row.speeches == (None, None), "no windows were kept"
    network(folder, "living-bytes/tanh-silu", 5.0)
    assert answered("earns")["earns bytes"].values == row.values, "a network that diverged tells nothing"
    for arm in networks.GROUPS["living-bytes"]:
        network(folder, f"living-bytes/{arm.name}", 1.9, 2.4)
    row = answered("earns")["earns bytes"]
    assert row.values[0][0].half_width == pytest.approx(
        half * intervals.student(0.975, 20) / intervals.student(0.975, 4)
    )
    assert not row.moving
    assert row.verdict == "silent"


def test_both_splits_decide(folder):
    network(folder, "living-bytes/no-mlp", 2.0)
    for held_out, recent, word in (
        (1.9, 1.9, "earns"),
        (1.9, 2.0, "undecided"),
        (2.0, 1.9, "undecided"),
        (2.0, 2.0, "silent"),
    ):
        network(folder, "living-bytes/p-spin", held_out, recent)
        assert verdict("earns", "earns bytes") == word


def test_two_groups_have_two_variances(folder):
    network(folder, "repair-bytes/mended", 2.01)
    network(folder, "bytes-1/transformer", 2.0)
    row = answered("mended")["mended bytes"]
    welch = intervals.difference(SCATTER, SCATTER, intervals.Spread(1e-6, 2), intervals.Spread(1e-6, 2), family=2)
    assert row.values[0][0].half_width == pytest.approx(welch.half_width, rel=1e-6)
    assert (row.verdict, row.facts) == ("yes", ("above 0", "within 0.02"))
    network(folder, "repair-bytes/mended", 2.03)
    assert verdict("mended", "mended bytes") == "no"
    network(folder, "repair-bytes/mended", 2.03, 2.02)
    assert verdict("mended", "mended bytes") == "undecided"


def test_missing_runs_are_named(folder):
    network(folder, "living-bytes/p-spin", 1.9)
    network(folder, "living-bytes/no-mlp", 2.0)
    forget(folder, "living-bytes/no-mlp/seed-2")
    row = answered("earns")["earns bytes"]
    assert row.verdict == criteria.NOT_RUN
    assert row.missing == ("living-bytes/no-mlp/seed-2",)
    assert len(row.runs) == 6
    assert not row.values
    row = answered("earns")["earns subwords"]
    assert len(row.missing) == len(row.runs) == 6


def test_an_answer_for_both_alphabets_needs_both(folder):
    for alphabet in ("bytes", "subwords"):
        network(folder, f"living-{alphabet}/tanh-sigmoid", 2.0)
    network(folder, "living-bytes/tanh-tanh", 1.9)
    joint = answered("wakes")["wakes together"]
    assert joint.verdict == criteria.NOT_RUN
    assert {run.rpartition("/")[0] for run in joint.missing} == {"living-subwords/tanh-tanh"}
    network(folder, "living-subwords/tanh-tanh", 2.0)
    assert [row.verdict for row in answered("wakes").values()] == ["better", "equivalent", "undecided"]
    network(folder, "living-subwords/tanh-tanh", 1.9)
    assert [row.verdict for row in answered("wakes").values()] == ["better", "better", "better"]


def test_speeches_stand_beside_seeds(folder):
    bit = math.log(2)
    kept = {f"windows {split}": [[n, 20 * bit, 10] for n in range(9)] for split in records.SPLITS}
    other = {name: [[n, (20 + n) * bit, 10] for n in range(9)] for name in kept}  # worse by n / 10 in speech n
    network(folder, "living-bytes/p-spin", 2.0, **kept)
    network(folder, "living-bytes/no-mlp", 2.4, **other)
    one, two = answered("earns")["earns bytes"].speeches
    assert one == two == intervals.over_speeches([kept["windows recent"]] * 3, [other["windows recent"]] * 3, 2)[1:]
    assert -0.8 < one[0] < -0.4 < one[1] < 0
    run = "living-bytes/p-spin/seed-3"
    write(folder, run, records.read(run) | {"windows recent": []})
    assert answered("earns")["earns bytes"].speeches == (one, None), "a run that kept none"


# Divergence


@pytest.mark.parametrize(
    ("held_out", "recent", "lost"), [(4.36, 4.55, False), (4.361, 2.0, True), (2.0, 4.551, True), (math.nan, 2.0, True)]
)
def test_a_run_that_ends_above_counting_bytes_diverged(held_out, recent, lost):
    ends = {"held-out": {"bits_per_byte": held_out}, "recent": {"bits_per_byte": recent}}
    assert answers.diverged({"summary": {"validation": ends}}) is lost
    assert answers.diverged({"summary": None})


@pytest.mark.parametrize("name", ["earns", "sigmoid", "more", "forgetting"])
def test_a_difference_with_a_run_that_diverged_is_not_computed(folder, name):
    everything(folder)
    first = QUESTIONS[name].differences[0][0].format(alphabet="bytes")
    put(folder, f"{first}/seed-2", 4.4, 2.0)
    row = next(iter(answered(name).values()))
    assert row.verdict == criteria.NOT_COMPUTED
    assert f"{first}/seed-2" in row.facts
    assert not row.values


# The other kinds


def test_half_of_what_swiglu_brings(folder):
    everything(folder)
    network(folder, "living-bytes/linear-silu-full", 1.8)
    assert verdict("sigmoid", "sigmoid bytes") == "no"
    network(folder, "living-bytes/tanh-tanh-full", 1.89)
    assert verdict("sigmoid", "sigmoid bytes") == "yes"
    network(folder, "living-bytes/tanh-tanh-full", 1.89, 1.95)
    assert verdict("sigmoid", "sigmoid bytes") == "undecided"
    row = answered("sigmoid")["sigmoid bytes"]
    assert [gap.mean for gap in row.values[0]] == pytest.approx([-0.11, -0.2])
    assert row.values[0][0].half_width == pytest.approx(intervals.student(1 - 0.05 / 4, 20) * math.sqrt(1e-6 * 2 / 3))


def test_a_difference_of_differences(folder):
    everything(folder)
    network(folder, "moments/transformer-beta2-0.95", 2.1)
    network(folder, "moments/p-spin-beta2-0.95", 2.03)
    (row,) = answered("more").values()
    gap = row.values[0][0]
    assert gap.mean == pytest.approx(0.1 - 0.03)
    assert gap.half_width == pytest.approx(intervals.student(1 - 0.05 / 5, 40) * math.sqrt(1e-6 * 4 / 3), rel=1e-6)
    assert row.verdict == "more"
    assert not row.moving
    network(folder, "moments/p-spin-beta2-0.95", 2.1)
    assert verdict("more") == "as much"
    network(folder, "moments/p-spin-beta2-0.95", 2.2)
    assert verdict("more") == "less"
    network(folder, "moments/p-spin-beta2-0.95", 2.2, 2.0)
    assert verdict("more") == "undecided"
    costs = answered("forgetting")
    assert [row.verdict for row in costs.values()] == ["undecided", "costs", "free", "free"]
    half = intervals.student(0.99, 40) * math.sqrt(1e-6 * 2 / 3)
    assert costs["forgetting bytes 2"].values[1][0].half_width == pytest.approx(half, rel=1e-6)


def test_stability_of_the_transformer(folder):
    name = "moments/transformer-beta2-0.999"
    put(folder, f"{name}/seed-1", 2.0)
    put(folder, f"{name}/seed-2", 2.04)
    assert answered("stable")["stable"].missing == (f"{name}/seed-3",)
    put(folder, f"{name}/seed-3", 2.01)
    (row,) = answered("stable").values()
    assert row.verdict == "stable"
    assert [value for (value,) in row.values] == pytest.approx([0.04, 0.04])
    put(folder, f"{name}/seed-3", 2.01, 2.06)
    assert verdict("stable") == "not stable"
    put(folder, f"{name}/seed-3", 2.01, 4.6)
    (row,) = answered("stable").values()
    assert (row.verdict, row.values) == ("not stable", ((math.inf,), (math.inf,)))


def test_one_run_that_diverged_is_enough(folder):
    everything(folder)
    assert verdict("divergence") == "no"
    forget(folder, "moments/swiglu-beta2-0.9/seed-3")
    assert answered("divergence")["divergence"].missing == ("moments/swiglu-beta2-0.9/seed-3",)
    put(folder, "moments/p-spin-beta2-0.9/seed-1", 4.5)
    (row,) = answered("divergence").values()
    assert (row.verdict, row.facts) == ("yes", ("moments/p-spin-beta2-0.9/seed-1",))


def test_the_worse_of_two_rates_counts(folder):
    everything(folder)
    assert verdict("rates", "rates 3") == "no difference seen"
    for beta2 in ("0.95", "0.999"):
        put(folder, f"moments-rates/transformer-beta2-{beta2}-times-0.25/seed-1", 2.06)
        put(folder, f"moments-rates/transformer-beta2-{beta2}-times-4/seed-1", 2.15)
        put(folder, f"moments-rates/p-spin-beta2-{beta2}-times-4/seed-1", 2.04)
        expected = "wider" if beta2 == "0.999" else "no difference seen"
        assert verdict("rates", "rates 3") == expected, "at both beta2"
    assert [value for (value,) in answered("rates")["rates 1"].values] == pytest.approx([-0.11, -0.11])
    put(folder, "moments-rates/p-spin-beta2-0.95-times-0.25/seed-1", 2.04, 2.12)
    assert verdict("rates", "rates 3") == "no difference seen", "on both splits"
    put(folder, "moments/p-spin-beta2-0.95/seed-1", 4.5)
    assert [row.verdict for row in answered("rates").values()] == ["not computed", "wider", "not computed"]
    forget(folder, "moments-rates/transformer-beta2-0.95-times-4/seed-1")
    assert [row.verdict for row in answered("rates").values()] == ["not run yet", "wider", "not run yet"]


def test_the_best_rate_of_sgd_counts(folder):
    everything(folder)
    put(folder, "sgd/p-spin-rate-0.3/seed-1", 2.15, 1.8)
    row = answered("sgd")["sgd 1"]
    assert (row.verdict, row.facts) == ("trains", ("rate 0.3",)), "the best on average, and above on one split"
    assert [value for (value,) in row.values] == pytest.approx([0.151, -0.199])
    put(folder, "sgd/p-spin-rate-3/seed-1", 1.9)
    row = answered("sgd")["sgd 1"]
    assert (row.verdict, row.facts) == ("works", ("rate 3, the largest",))
    for rate in networks.SGD_RATES:
        put(folder, f"sgd/p-spin-rate-{rate:g}/seed-1", 4.5)
    assert verdict("sgd", "sgd 1") == "fails"
    put(folder, "moments/p-spin-beta2-0.999/seed-1", 4.5)
    assert verdict("sgd", "sgd 1") == "not computed"
    forget(folder, "sgd/transformer-rate-1/seed-1")
    assert answered("sgd")["sgd 2"].missing == ("sgd/transformer-rate-1/seed-1",)


# Other measures


def test_what_a_change_does_without_an_interval(folder):
    everything(folder)
    rows = answered("confounders")
    assert {row.verdict for row in rows.values()} == {"does not"}
    assert len(rows) == 7
    network(folder, "data-64-subwords-long/transformer", 1.9)
    verdicts = [row.verdict for row in answered("confounders").values()]
    assert verdicts == ["matters", "does not", "does not", "matters", "matters", "does not", "does not"]
    network(folder, "data-64-subwords-long/transformer", 1.9, 1.99)
    row = answered("confounders")["confounders 1"]
    assert row.verdict == "undecided", "on both splits"
    assert [value for (value,) in row.values] == pytest.approx([-0.101, -0.011])
    put(folder, "subwords-64/transformer/try-0.0032-1", 4.9)
    assert answered("confounders")["confounders 6"].verdict == "not computed"
    forget(folder, "subwords-64/transformer/try-0.0032-1")
    assert answered("confounders")["confounders 6"].missing == ("subwords-64/transformer/try-0.0032-1",)


def test_the_best_gain_counts(folder):
    everything(folder)
    assert [row.verdict for row in answered("gains").values()] == ["does not", "does not", "as good"]
    put(folder, "gains-bytes/p-spin-mixer-0.5/seed-1", 1.8, 2.1)
    put(folder, "gains-bytes/p-spin-down-4/seed-1", 1.9)
    row = answered("gains")["gains 1"]
    assert (row.verdict, row.facts) == ("matters", ("down-4",)), "the best on average over the splits"
    put(folder, "moments/tanh-tanh-beta2-0.999/seed-1", 1.7)
    assert [row.verdict for row in answered("gains").values()] == ["matters", "matters", "still worse"]
    forget(folder, "gains-bytes/p-spin-down-2/seed-1")
    assert [row.verdict for row in answered("gains").values()] == ["not run yet", "matters", "not run yet"]


def test_noise_of_the_mlp_is_compared_seed_by_seed(folder):
    everything(folder)
    for name in ("noise-scale", "noise-tail", "noise-harm"):
        assert [row.verdict for row in answered(name).values()] == ["no difference seen"] * 3
    network(folder, "noise-bytes/p-spin", 2.0, noise=parts(adam_scale=7.0, adam_tail=4.0, rises=0.3))
    assert [row.verdict for row in answered("noise-scale").values()] == ["calmer", "no difference seen", "calmer"]
    assert answered("noise-tail")["noise-tail 1"].verdict == "less calm"
    assert answered("noise-harm")["noise-harm 1"].verdict == "calmer"
    assert answered("noise-scale")["noise-scale 1"].facts == ("7 and 10, 7 and 10",)
    put(folder, "noise-bytes/p-spin/seed-2", 2.0, noise=parts(adam_scale=9.0))
    assert answered("noise-scale")["noise-scale 1"].verdict == "no difference seen", "by each seed"
    put(folder, "noise-bytes/p-spin/seed-2", 2.0, noise=[*parts(adam_scale="inf")[:1], *parts(adam_scale=7.0)[:2]])
    assert answered("noise-scale")["noise-scale 1"].verdict == "calmer", "the median over a run's probes"


def test_what_context_is_worth(folder):
    everything(folder)
    assert [row.verdict for row in answered("context-worth").values()] == ["as much", "as much"]
    more = dict(context=[8, 32, 256], nats=[3.0, 2.0, 1.8])
    network(folder, "context-bytes/mended-norms", 2.0, context=more)
    (gap,) = answered("context-worth")["context-worth 1"].values[0]
    assert gap.mean == pytest.approx(0.1 / math.log(2))
    assert [row.verdict for row in answered("context-worth").values()] == ["more", "more"]
    network(folder, "context-bytes/transformer", 2.0, context=dict(more, nats=[3.0, 2.0, 1.5]))
    assert [row.verdict for row in answered("context-worth").values()] == ["more", "less"]


def test_the_gap_at_two_sizes(folder):
    """Each network at the better of its two rates."""
    everything(folder)
    assert [row.verdict for row in answered("growth").values()] == ["constant", "constant"]
    network(folder, "sizes-four/mended-times-0.5", 1.8)
    row = answered("growth")["growth 2"]
    (gap,) = row.values[0]
    assert (row.verdict, gap.mean) == ("shrinks", pytest.approx(-0.2))
    known = intervals.Spread((SCATTER[2] - SCATTER[1]) ** 2 / 2, 6)  # six networks of two seeds in either group
    expected = intervals.interaction(*[({1: 0.0, 2: 0.0},) * 2] * 2, known, 2, known)
    assert gap.half_width == pytest.approx(expected.half_width, rel=1e-6)
    network(folder, "sizes-quarter/mended-times-2", 1.7)
    assert verdict("growth", "growth 2") == "grows"
    put(folder, "sizes-quarter/mended-times-2/seed-1", 4.5)
    assert verdict("growth", "growth 2") == "not computed"


def test_the_gap_with_more_text(folder):
    everything(folder)
    assert {row.verdict for row in answered("text").values()} == {"no difference seen"}
    put(folder, "sizes-four-long/mended-times-0.5/seed-1", 1.9)
    put(folder, "bytes-1/p-spin/seed-1", 2.1)
    put(folder, "sizes-quarter-long/transformer-times-2/seed-1", 1.9)
    assert [row.verdict for row in answered("text").values()] == [
        *("grows", "grows"), *("grows", "no difference seen"), *("no difference seen", "shrinks"),
    ]  # fmt: skip
    put(folder, "ladder-bytes/mended/seed-1", 1.9)
    row = answered("text")["text 4"]
    assert (row.verdict, row.values[0][0]) == ("grows", pytest.approx(0.1 - 0.001))


def test_what_the_order_costs(folder):
    everything(folder)
    assert [row.verdict for row in answered("order").values()] == ["as much"] * 3
    for n in (1, 2):
        put(folder, f"continual-rates/p-spin-time/seed-{n}", 2.0, validation=eras(1.6 + n / 1e4, 1.7, 9.9))
    rows = answered("order")
    (gap,) = rows["order 1"].values[0]
    assert gap.mean == pytest.approx(0.15 + 0.00015 / 2), "the last era does not count"
    assert [row.verdict for row in rows.values()] == ["more", "as much", "as much"]
    forget(folder, "continual/transformer-mixed/seed-3")
    assert answered("order")["order 1"].missing == ("continual/transformer-mixed/seed-3",)


# The page


DESCRIPTIONS = (page.branches, page.contraction, page.noise_by_rate, page.betas, page.main_answers)


def cells(table: str) -> list[list[str]]:
    return [row.strip("| ").split(" | ") for row in table.splitlines()]


@pytest.mark.parametrize("complete", [False, True])
def test_a_page_is_short_whatever_is_on_record(folder, complete):
    if complete:
        everything(folder)
    for part in (*page.TABLES.values(), *DESCRIPTIONS):
        rows = cells(part())
        assert len(rows) <= 2 + 15
        assert all(len(cell.split()) <= 14 for row in rows for cell in row)
        assert ("not run yet" in part()) is (not complete and part not in DESCRIPTIONS)
    assert len(page.so_far().split()) <= page.MOST_WORDS
    assert ("all 30 runs" in page.missing()) is not complete
    assert page.missing().count("complete") == (len(networks.SECOND) if complete else 0)


def test_rows_that_wait_are_one_row(folder):
    assert page.TABLES["living"]().count("not run yet") == len(questions("living"))
    network(folder, "living-bytes/p-spin", 1.9)
    assert (
        "| Does the attractor earn anything? | all |  |  | not run yet: 3 of 12 runs done |" in page.TABLES["living"]()
    )
    network(folder, "living-bytes/no-mlp", 2.0)
    first, second = page.TABLES["living"]().splitlines()[2:4]
    assert first.startswith("| Does the attractor earn anything? | bytes: `p-spin` − `no-mlp` | -0.100 ± 0.00")
    assert first.endswith("| **earns**, so far |")
    assert second == "|  | subwords: `p-spin` − `no-mlp` |  |  | not run yet: 0 of 6 runs done |"
    assert "- `living-bytes`: 24 of 30 runs: `tanh-tanh` 3," in page.missing()


def test_the_summary_tells_what_is_answered(folder):
    planned = sum(len(arm.seeds) for group in networks.SECOND for arm in networks.GROUPS[group])
    assert page.so_far().startswith(f"0 of {planned} runs are on record, and 0 of ")
    network(folder, "living-bytes/no-mlp", 2.0)
    network(folder, "living-bytes/p-spin", 1.9)
    assert f"6 of {planned} runs" in page.so_far()
    assert "with bytes only. The paper's attractor earns 0.100 ± 0.00" in page.so_far()
    network(folder, "living-bytes/p-spin", 2.0)
    assert "is silent" in page.so_far()
    everything(folder)
    assert "bytes and subwords" in page.so_far()


def test_the_sentences_name_answers_and_words_that_exist():
    keys = {row.key: row.question for row in answers.answers()}
    for text in texts()["so far"]:
        used = set(re.findall(r"rows\[([^\]]+)\]", text["says"]))
        assert used <= set(text.get("needs", {}))
        for key, words in text.get("needs", {}).items():
            question = keys[key]
            known = {*question.words, criteria.UNDECIDED} | ({"yes", "no"} if question.kind == "divergence" else set())
            assert {words} <= known if isinstance(words, str) else set(words) <= known
        assert not re.search(r"\d", re.sub(r"\{[^}]*\}", "", text["says"]).replace("size 1", "")), "measured ones only"


def test_how_loud_the_branches_are(folder):
    """The loss is that of the windows that were silenced too: of 256, every second one."""
    bit = math.log(2)
    rows = [[0, (20 if n % 2 == 0 else 90) * bit, 10] for n in range(256)]
    start = {
        "mlp": [0.1, 0.3],
        "mixer": [1.0, 3.0],
        "gradient": {"embedding": 0.9, "w_ext": 0.04, "w_down": 0.01, "mixer": 0.05},
        "update": {"embedding": 0.4, "w_ext": 0.5, "w_down": 0.1},
    }
    end = start | {"mlp": [1.0, 2.0], "gradient": {"embedding": 0.5, "w_ext": 0.2, "w_int": 0.05, "mixer": 0.25}}
    end |= {"update": {"embedding": 0.3, "w_ext": 0.2, "w_int": 0.5}}
    looks = {"windows held-out": rows, "branches": [start, start, end], "silenced": {"mlp": [2.5, 3.0, 4.0]}}
    put(folder, "living-bytes/p-spin/seed-1", 2.0, **looks)
    put(folder, "living-bytes/p-spin/seed-2", 2.0, **looks | {"silenced": {"mlp": [2.5, 3.0, 5.0]}})
    put(folder, "living-bytes/tanh-tanh/seed-1", 2.0)
    head, _, row = cells(page.branches())
    assert len(head) == len(row)
    assert row == ["`p-spin`, bytes", "2", "2.000", "4.500", "0.2 → 1.5", "2 → 2", "5% → 25%", "60% → 70%"]


def test_whether_the_layers_contract(folder):
    """The largest over layers, seeds and points."""
    start = dict(radius=[0.2, 1.3], gradient_error=[0.001, 5.0])
    calm, end = dict(radius=[0.1, 0.2], gradient_error=[0.001, 0.0]), dict(radius=[0.9, 0.2], gradient_error=[0.3, 0])
    put(folder, "living-bytes/p-spin/seed-1", 2.0, attractor=[start, end])
    put(folder, "steps-bytes/k5/seed-1", 2.0, attractor=[calm, calm])
    put(folder, "steps-bytes/k5/seed-2", 2.0, attractor=[end, calm])
    put(folder, "steps-bytes/narrow/seed-1", 2.0, attractor=[])
    assert cells(page.contraction())[2:] == [
        ["`p-spin`, bytes", "1", "1.30", "0.90", "500%", "30%", "at the end"],
        ["`k5`, bytes", "2", "0.90", "0.20", "30%", "0.10%", "always"],
    ]


def test_noise_is_sorted_by_rate(folder):
    network(folder, "living-bytes/tanh-tanh", 2.0, noise=parts(30.0), **at_rate(8e-4))
    network(folder, "stack-bytes/stacked", 2.0, noise=parts(20.0), **at_rate(1.6e-3))
    network(folder, "bytes-1/p-spin", 2.0, noise=parts(10.0), **at_rate(1.6e-3))
    network(folder, "living-bytes/p-spin", 2.0, noise=parts(90.0), **at_rate(1.6e-3))
    assert cells(page.noise_by_rate())[2:] == [
        ["bytes, 0.0008", "1", "30.0 (`tanh-tanh`)", "30.0 (`tanh-tanh`)"],
        ["bytes, 0.0016", "2", "10.0 (`p-spin`)", "20.0 (`stacked`)"],
    ]


def test_the_main_answers_appear_with_their_runs(folder):
    assert len(cells(page.main_answers())) == 2
    network(folder, "stack-bytes/stacked", 1.9)
    network(folder, "bytes-1/transformer", 2.0)
    assert [row[:2] for row in cells(page.main_answers())[2:]] == [
        ["Does the stack match the Transformer?", "bytes: `stacked` − `transformer`"]
    ]


# The command


def test_the_command_answers_a_question(folder, capsys, monkeypatch):
    monkeypatch.setattr(ledger, "in_checkout", lambda: False)  # no stored verdicts to compare with
    network(folder, "living-bytes/no-mlp", 2.0)
    network(folder, "living-bytes/p-spin", 1.9)
    put(folder, "living-subwords/p-spin/seed-1", 1.9)
    assert main(["ledger", "earns"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "earns: Does the attractor earn anything?"
    assert lines[1].strip() == "criterion: *earns*: better; *silent*: equivalent"
    assert lines[2].startswith("    bytes: `p-spin` − `no-mlp`: **earns**, so far; held-out -0.100 ± 0.00")
    assert "; recent -0.100 ± 0.00" in lines[2]
    assert lines[3] == "    subwords: `p-spin` − `no-mlp`: **not run yet**"
    assert "        missing: living-subwords/p-spin/seed-2" in lines
    assert "        missing: living-subwords/p-spin/seed-1" not in lines
    (count,) = (i for i, line in enumerate(lines) if line.startswith("    rests on 6 records"))
    names = [f"living-bytes/{name}/seed-{n}" for name in ("no-mlp", "p-spin") for n in networks.SEEDS]
    assert [line.strip() for line in lines[count + 1 :]] == names


def test_an_id_that_is_neither_claim_nor_question_is_refused(capsys):
    assert main(["ledger", "earn"]) == 1
    said = capsys.readouterr().err
    assert "claim or question: got 'earn', expected one of compression, " in said
    assert ", earns, " in said
    assert "did you mean 'earns'?" in said
    assert not {claim.id for claim in ledger.claims()} & set(QUESTIONS)


def test_a_criterion_is_in_the_words_of_the_page():
    assert all(criterion(question) for question in QUESTIONS.values())
    assert criterion(QUESTIONS["equal-width"]) == criterion(QUESTIONS["equal-parameters"])
    assert criterion(QUESTIONS["convolution"]) == "better"


def test_where_the_short_runs_end(folder):
    assert page.betas() == "None of them is on record yet."
    network(folder, "moments/p-spin-beta2-0.95", 2.5, 3.5)
    put(folder, "moments/p-spin-beta2-0.9/seed-2", 2.6)
    put(folder, "moments/swiglu-beta2-0.9999/seed-2", 2.0, 4.6)
    put(folder, "moments-8/transformer-beta2-0.6634/seed-1", 2.7)
    one, eight = (cells(table) for table in page.betas().split("\n\n"))
    assert one[0] == ["batch size 1, β₂ =", "0.9", "0.95", "0.99", "0.999", "0.9999"]
    table = {
        row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]]
        for row in page.betas().splitlines()[:6]
    }
    assert table["p-Spin"] == ["2.600 (1 of 3)", "2.500", "", "", ""]
    assert table["SwiGLU"] == ["", "", "", "", "diverged"]
    assert eight[0] == ["batch size 8, β₂ =", "0.6634", "0.95", "0.992", "0.999"]
    assert "| Transformer | 2.700 |" in page.betas()


def test_the_stored_p_spin_is_that_of_the_first_study():
    """Its runs were repeated for what records keep in addition. Processors differ in the last bits of a sum."""
    for n, run in records.seeds("living-bytes", "p-spin").items():
        first = records.read(f"bytes-1/p-spin/seed-{n}")["summary"]
        for split, result in run["summary"]["validation"].items():
            assert result == pytest.approx(first["validation"][split], rel=1e-6)


def test_sections_are_refused_by_name():
    assert {question.section for question in questions("living")} == {"living"}
    with pytest.raises(ValueError, match="section: got"):
        questions("dying")
