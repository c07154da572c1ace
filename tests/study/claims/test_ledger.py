"""The ledger: every claim has its measurement, every number in a text is a measured one."""

from __future__ import annotations

import itertools
import math
import os
import re
import shutil
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from torch.nn.attention import SDPBackend, sdpa_kernel

from pspin_lite import costs, fixed_points, state_space
from pspin_lite.cli import main
from pspin_lite.study import intervals, jobs, networks, records, store
from pspin_lite.study.claims import (
    batch_size,
    comparisons,
    continual_learning,
    documents,
    fixed_point,
    ledger,
    paper_numbers,
    resources,
    smoothness,
    training_stability,
)
from pspin_lite.study.claims import state_space as state_space_claims
from pspin_lite.study.claims.claim import stages
from pspin_lite.training import load

FOUR = ("p-spin", "transformer", "swiglu", "attention")
CLAIMS = {claim.id: claim for claim in ledger.claims()}
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
COMMON = {"95", "3", "1", "64", "8,000", "64,000"}  # per cent of an interval, seeds, batch sizes, sequences
SETTINGS = {  # numbers in the words of a measurement that are none of its values: lengths, steps, bits, K, years
    "compression": {"32"},
    "edge": {"32"},
    "memory-k": {"256"},
    "memory-t": {"256", "2048"},
    "time-t": {"512"},
    "complexity": {"2", "5"},
    "decay": {"32"},
    "chunks": {"32"},
    "mask": {"02"},
    "reserved": {"256"},
    "chaotic": {"99", "0"},
    "others-unstable": {"0"},
    "lipschitz": {"200", "05"},  # and a notebook
    "energy": {"20"},
    "contracts": {"400"},
    "recurrence": {"2", "10"},
    "novel": {"64"},
    "damped": {"0"},
    "gradients": {"0", "5", "10", "99"},
    "bytes-a-token": {"8192"},
    "bytes-unstable": {"99"},
    "retention": {"0", "236"},
    "followed": {"0", "236"},
}
COUNTED, OF_RUNS = ledger.COUNTED, ledger.OF_RUNS
AGAIN = "runs/experiments/again/records"  # where experiments --again leaves records, if nothing else is said
ELSEWHERE = {"paper-losses": "python -m pspin_lite train byte-paper --corpus fineweb-edu"}  # what would decide it


def said(name: str) -> str:
    """A claim measured, in words."""
    return CLAIMS[name].sentence(ledger.measures()[name]())


def test_every_claim_has_a_measurement_and_a_result():
    assert len(CLAIMS) == len(ledger.claims()) > 30, "no id twice"
    assert set(CLAIMS) == set(ledger.measures()) == set(ledger.results())
    for claim in CLAIMS.values():
        assert claim.holds_if
        assert claim.section
        assert "python -m pspin_lite" in claim.command
        assert ledger.results()[claim.id].verdict != ledger.WAITS, "its runs are missing"


def test_verdicts_that_a_later_criterion_altered_are_marked():
    for claim in CLAIMS.values():
        assert claim.earlier_verdict in ("", ledger.FORMER, *ledger.VERDICTS)
        assert claim.earlier_verdict != ledger.results()[claim.id].verdict, claim.id
    page = documents.ledger_page()
    changed = [claim for claim in CLAIMS.values() if claim.earlier_verdict]
    assert page.count("(Changed when the result was known: ") == len(changed) >= 10
    assert f"{len(changed)} of them had another verdict" in page


def test_every_change_of_a_criterion_is_on_its_page():
    page = documents.criteria_page()
    for claim in CLAIMS.values():
        assert claim.added in ("", *stages())
        for change in claim.history:
            assert change.when in stages()
            assert change.known in ("yes", "no", "in part")
            assert change.known == "yes" or not change.verdict, "a verdict that nobody knew"
            rows = [line for line in page.splitlines() if f"`{claim.id}`" in line and f"| {change.was} |" in line]
            assert any(f"| {change.why} |" in row for row in rows)
        criteria = [*(change.was for change in claim.history), claim.holds_if]
        assert all(before != after for before, after in itertools.pairwise(criteria)), claim.id


def repeated(command: str, name: str) -> list[str]:
    """What a command repeats, if it measures the claim on that."""
    form = rf"python -m pspin_lite experiments (.+) --again && python -m pspin_lite ledger {name} --records {AGAIN}"
    actual = re.fullmatch(form, command)
    return actual[1].split() if actual else []


@cache
def measured(name: str) -> tuple[ledger.Measured, set[str]]:
    """And the names of the records that were read for it."""
    with records.noted() as read:
        result = ledger.measures()[name]()
    return result, read


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_command_measures_its_claim_and_names_runs_that_are_on_record(name):
    command = CLAIMS[name].command
    if name not in OF_RUNS:
        assert command == ELSEWHERE.get(name, f"python -m pspin_lite ledger {name}")
        return
    assert repeated(command, name), command
    for prefix in repeated(command, name):
        assert records.names(prefix), prefix


@pytest.mark.parametrize("name", sorted(OF_RUNS))
def test_a_command_repeats_every_arm_that_is_read_and_no_other(name):
    """Whole groups go by their name."""
    read = {"/".join(record.split("/")[:2]) for record in measured(name)[1]}
    for group, members in networks.GROUPS.items():
        whole = {f"{group}/{arm.name}" for arm in members}
        read = read - whole | {group} if whole <= read else read
    assert set(repeated(CLAIMS[name].command, name)) == read


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_counted_results_are_what_is_measured(name):
    stored, (result, read) = ledger.results()[name], measured(name)
    assert not read or name in ELSEWHERE, "its command repeats no runs"
    assert stored.verdict == result.verdict, "python -m pspin_lite ledger --write"
    assert stored.values.keys() == result.values.keys()
    for key, value in result.values.items():
        assert stored.values[key] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-3, abs=1e-12))


@pytest.mark.parametrize("name", sorted(OF_RUNS))
def test_results_of_runs_are_those_of_the_records(name):
    stored, (result, _) = ledger.results()[name], measured(name)
    assert stored.verdict == result.verdict, "python -m pspin_lite ledger --write"
    assert stored.text == CLAIMS[name].sentence(result)


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_no_number_in_a_sentence_but_measured_ones(name):
    """Take the values away, and no number may be left that is neither in the claim nor a setting."""
    claim = CLAIMS[name]
    rest = re.sub(r"\{[^}]*\}", "", claim.template())
    allowed = set(NUMBER.findall(f"{claim.says} {claim.holds_if}"))
    assert set(NUMBER.findall(rest)) <= allowed | COMMON | SETTINGS.get(name, set())


def test_verdicts_follow_the_numbers(monkeypatch):
    """The same function, other runs: another verdict."""
    names = [(group, arm) for group in ("bytes-1",) for arm in ("p-spin", "transformer")]
    monkeypatch.setattr(records, "missing", lambda *names: [])
    monkeypatch.setattr(records, "group_spread", lambda *name: intervals.Spread(1e-6, 20))
    for gap, verdict in ((-0.1, ledger.HOLDS), (0.01, ledger.HOLDS), (0.019, ledger.UNDECIDED), (0.1, ledger.NOT_SEEN)):
        made = {"p-spin": {1: 2.0 + gap, 2: 2.011 + gap, 3: 1.99 + gap}, "transformer": {1: 2.0, 2: 2.01, 3: 1.99}}
        monkeypatch.setattr(records, "bits", lambda group, arm, split="", made=made: made[arm])
        monkeypatch.setattr(comparisons, "beyond", lambda *names: f". Beyond: {names[1][1]}")
        result = comparisons.compared(*names)()
        text = CLAIMS["control-bytes"].sentence(result)
        assert text.endswith(". Beyond: transformer")
        assert result.verdict == verdict
        assert f"{gap:+.3f}" in text
        expected = ledger.HOLDS if gap < 0 else ledger.NOT_SEEN
        assert comparisons.compared(*names, strict=True)().verdict == expected, "better, or no gain worth having"


def test_both_splits_decide():
    good, bad, wide = (intervals.Difference(mean, width, 3) for mean, width in ((-0.1, 0.01), (0.1, 0.01), (0, 0.5)))
    for decide in (comparisons.matches, comparisons.better):
        assert decide([good, good]) == ledger.HOLDS
        assert decide([bad, bad]) == ledger.NOT_SEEN
        assert {decide(gaps) for gaps in ([good, bad], [good, wide], [bad, wide])} == {ledger.UNDECIDED}
    assert comparisons.better([intervals.Difference(-0.005, 0.01, 3)] * 2) == ledger.NOT_SEEN, "no room for 0.02"
    verdicts = [ledger.HOLDS, ledger.UNDECIDED, ledger.NOT_SEEN]
    assert [comparisons.every(verdicts[: n + 1]) for n in range(3)] == verdicts


def test_the_family_is_what_decides():
    """By claim; a claim of these has an interval in its sentence."""
    assert sum(comparisons.INTERVALS.values()) == comparisons.FAMILY
    for name in comparisons.INTERVALS:
        assert "±" in CLAIMS[name].template() or "{low" in CLAIMS[name].template(), name


@pytest.fixture
def dynamic(monkeypatch):
    """Full runs of the compared arms with made-up losses: one text, and a jitter, noise and norms of their own."""
    monkeypatch.setattr(records, "missing", lambda *names: [])

    def make(own: dict[str, float], scale: dict[str, float], spike: dict[str, float]):
        steps = 3000
        text = np.random.default_rng(7).normal(size=steps)

        def seeds(group, arm):
            actual = {}
            for seed in (1, 2, 3):
                random = np.random.default_rng([seed, *arm.encode()])
                loss = 2 + 0.2 * text + own[arm] * random.normal(size=steps)
                norm = 1 + 0.1 * random.random(steps)
                norm[1500:1550] = spike[arm]
                model = dict(warmup=100, cooldown=500, steps=steps, gain=1.0, lr=1e-3, clip=1.05)
                points = [dict(step=s, split="held-out", bits_per_byte=3 - s / 3000) for s in range(0, steps, 300)]
                actual[seed] = dict(
                    config=dict(model=model), loss=loss.tolist(), norm=norm.tolist(), validation=points,
                    probe=[[1, 1.0], [2, 0.9]], noise=[dict(scale=scale[arm] + random.random())],
                    attractor=[dict(residual=[spike[arm] * 1e-4, 1e-2])],
                )  # fmt: skip
            return actual

        monkeypatch.setattr(records, "seeds", seeds)

    return make


def test_verdicts_on_training_follow_the_runs(dynamic, monkeypatch):
    arms_ = training_stability.EVERY
    same = dict.fromkeys(arms_, 0.1)
    dynamic(same, dict.fromkeys(arms_, 20.0), dict.fromkeys(arms_, 5.0))
    assert training_stability.damped().verdict == ledger.NOT_SEEN
    assert training_stability.ternary_damps().verdict == ledger.NOT_SEEN
    assert training_stability.damped().values["calmer"] <= 2, "of eight, by chance"
    assert training_stability.damped().values["late"] == pytest.approx(0.1, rel=0.2)
    assert training_stability.chaotic().verdict == training_stability.others_unstable().verdict == ledger.NOT_SEEN
    assert training_stability.chaotic().values["c_p_spin"] == pytest.approx(0.5, abs=0.05), (
        "half of the norms are above the clip"
    )
    assert smoothness.either_alphabet().verdict == ledger.HOLDS, "the same runs for both alphabets"
    assert training_stability.bytes_unstable().verdict == ledger.NOT_SEEN
    assert training_stability.damped().values["p_spin"] == pytest.approx(0.1, rel=0.1)
    assert training_stability.gradients().verdict == ledger.NOT_SEEN, "nothing to prevent"
    assert smoothness.smooth().verdict == ledger.REFUTED, "the paper's own size"
    with monkeypatch.context() as patch:
        calm = smoothness._paper_size() | dict(p_up=0)
        patch.setattr(smoothness, "_paper_size", lambda: calm)
        assert smoothness.smooth().verdict == ledger.HOLDS, "every validation better"
    assert "by 0.000 to 0.000 bits" in said("smooth"), "none is worse"
    assert fixed_point.settled().verdict == ledger.NOT_SEEN
    dynamic(same | {"p-spin": 0.02}, dict.fromkeys(arms_, 20.0) | {"p-spin": 5.0},
            dict.fromkeys(arms_, 5.0) | {"p-spin": 2.0})  # fmt: skip
    assert training_stability.damped().verdict == training_stability.ternary_damps().verdict == ledger.HOLDS
    assert training_stability.chaotic().verdict == training_stability.others_unstable().verdict == ledger.HOLDS, (
        "all but harmful steps"
    )
    dynamic(same | {"p-spin": 0.02}, dict.fromkeys(arms_, 20.0) | {"swiglu": 60.0}, dict.fromkeys(arms_, 5.0))
    assert training_stability.damped().verdict == ledger.NOT_SEEN, (
        "calmer by jitter, and by noise than SwiGLU; not than K = 0"
    )
    assert training_stability.chaotic().verdict == ledger.NOT_SEEN, "the raw loss alone"
    for wild, verdict in (("full-precision", ledger.HOLDS), ("k10", ledger.REFUTED)):
        dynamic(same, dict.fromkeys(arms_, 20.0), dict.fromkeys(arms_, 2.0) | {wild: 19.0})
        assert training_stability.gradients().verdict == verdict


@pytest.fixture
def study(monkeypatch):
    """Made-up full runs: by group/arm, bits per byte, and whatever else is given. Tries all end at `tried`."""
    monkeypatch.setattr(records, "missing", lambda *names: [])
    monkeypatch.setattr(records, "group_spread", lambda *name: intervals.Spread(1e-8, 20))

    def make(bits, tried=2.5, **more):
        def seeds(group, arm):
            actual = {}
            for seed in (1, 2, 3):
                score = dict(bits_per_byte=bits[f"{group}/{arm}"] + seed / 1e4)
                splits = {"held-out": score, "recent": score}
                summary = dict(validation=splits, steps=100, flops_a_step=7, parameters=100)
                data = dict(train=dict(bytes=470, tokens=100, length=128))
                curve = [dict(step=s, split="held-out", bits_per_byte=3 - s / 1e4) for s in (0, 2000, 10_000)]
                actual[seed] = dict(summary=summary, data=data, config=config, validation=curve) | more.get(
                    arm.replace("-", "_"), {}
                )
            return actual

        config = dict(model=dict(lr=8e-4, gain=1.0, batch=1, context=128))
        monkeypatch.setattr(records, "seeds", seeds)
        splits = {split: dict(bits_per_byte=tried) for split in ("held-out", "recent")}
        actual = {"a": dict(summary=dict(validation=splits), config=config)}
        monkeypatch.setattr(records, "tries", lambda group, arm: actual)

    return make


def test_what_the_steps_buy(study):
    base = dict.fromkeys([f"bytes-1/{name}" for name in ("p-spin", "k0-same-size", "k0", "k1", "k2", "k10")], 2.0)
    for k0, k1, verdict in ((2.1, 2.1, ledger.HOLDS), (2.1, 2.0, ledger.NOT_SEEN), (2.0, 2.1, ledger.NOT_SEEN)):
        study(base | {"bytes-1/k0-same-size": k0, "bytes-1/k1": k1})
        assert comparisons.recurrence().verdict == verdict
    assert "-0.100" in said("recurrence"), "K = 5 minus K = 1"


def test_an_asymptote_is_where_more_steps_gain_nothing(study, monkeypatch):
    study({"subwords-64/transformer": 2.0}, tried=2.01)
    falls = {32_000: 2.0, 16_000: 2.01}
    monkeypatch.setattr(batch_size, "_after_sequences", lambda group, name, sequences: falls[sequences])
    assert batch_size.asymptote().verdict == ledger.HOLDS
    study({"subwords-64/transformer": 2.0}, tried=2.2)
    assert batch_size.asymptote().verdict == ledger.UNDECIDED
    falls[16_000] = 2.1
    assert batch_size.asymptote().verdict == ledger.NOT_SEEN
    assert "gains 0.200" in said("asymptote")


def test_a_large_batch_is_not_told_from_more_text(study):
    names = [f"bytes-{batch}/{name}" for batch in (1, 64) for name in ("p-spin", "transformer")]
    study(dict.fromkeys(names, 2.0) | {"bytes-1/p-spin": 2.1})
    assert batch_size.large_batch("bytes")().verdict == ledger.UNTESTABLE
    assert "p-Spin is at 2.20 at batch 64 and ends at 2.00 at batch 1" in said("large-batch-bytes")


def test_what_the_transformer_needs(monkeypatch):
    monkeypatch.setattr(records, "missing", lambda *names: [])
    monkeypatch.setattr(batch_size, "_end", lambda *name: 2.0)
    for bytes_, subwords, verdict in ((3, 3, ledger.NOT_SEEN), (1, 3, ledger.UNDECIDED), (1, 1, ledger.HOLDS)):
        at = {"bytes-64": bytes_, "subwords-64": subwords}
        monkeypatch.setattr(batch_size, "_after_sequences", lambda group, name, sequences, at=at: at[group])
        assert batch_size.requirement().verdict == verdict
    for after, verdict in ((29_000.0, ledger.NOT_SEEN), (7_000.0, ledger.HOLDS)):
        monkeypatch.setattr(batch_size, "overtaken", lambda *names, after=after: after)
        assert batch_size.optimised().verdict == verdict


def test_the_comparison_at_the_papers_rate(monkeypatch):
    """Decided by two runs; the tries stand beside it."""

    def made(bits):
        splits = {split: dict(bits_per_byte=bits) for split in ("held-out", "recent")}
        model = dict(lr=8e-4, context=256, batch=64, steps=1000)
        data = dict(train=dict(tokens=64_000 * 257))
        return dict(summary=dict(validation=splits), config=dict(model=model), data=data)

    for ours, verdict in ((1.9, ledger.UNDECIDED), (2.1, ledger.UNDECIDED)):
        actual = {"presets/subword-lite/seed-1337": made(ours), "presets/transformer-lite/seed-1337": made(2.0)}
        monkeypatch.setattr(records, "read", actual.get)
        monkeypatch.setattr(records, "has", actual.__contains__)
        monkeypatch.setattr(records, "rates", lambda *name: {8e-4: 2.5, 3.2e-3: 2.4})
        assert batch_size.at_the_papers_rate().verdict == verdict
        assert "1.0 passes" in said("eight-times-untuned")
    monkeypatch.setattr(records, "has", lambda name: False)
    assert said("eight-times-untuned") == "2 runs to do: subword-lite, transformer-lite"


def test_a_difference_is_held_against_chance(monkeypatch):
    for spread, verdict in ((0.0005, ledger.HOLDS), (0.002, ledger.UNDECIDED)):
        nats = {n: {"held-out": dict(nats_per_token=4.8 + spread * n)} for n in (1, 2, 3)}
        made = {n: dict(summary=dict(validation=splits)) for n, splits in nats.items()}
        monkeypatch.setattr(records, "seeds", lambda *name, made=made: made)
        assert paper_numbers.outperforms().verdict == verdict


def test_where_one_curve_passes_the_others_end(monkeypatch):
    at = {"fast": [3.0, 2.5, 2.0], "slow": [4.0, 3.0, 1.0], "never": [4.0, 3.5, 3.0], "first": [1.5, 1.4, 1.3]}

    def seeds(group, arm):
        points = [dict(step=100 * i, split="held-out", bits_per_byte=bits) for i, bits in enumerate(at[arm])]
        record = dict(validation=points, config=dict(model=dict(batch=8, context=1)))
        return {1: record | dict(data=dict(train=dict(bytes=1, tokens=1)))}

    monkeypatch.setattr(records, "seeds", seeds)
    fast = ("", "fast")
    assert batch_size.overtaken(fast, ("", "slow")) == 8 * 150
    assert batch_size.overtaken(fast, ("", "never")) == math.inf
    assert batch_size.overtaken(fast, ("", "first")) == 0


def test_bytes_against_subwords(study):
    for subwords, verdict in ((1.8, ledger.HOLDS), (2.0, ledger.NOT_SEEN), (2.2, ledger.NOT_SEEN)):
        study({"bytes-1/p-spin": 2.0, "subwords-1/p-spin": 1.5, "subwords-64/transformer": subwords})
        assert batch_size.bytes_behind().verdict == verdict
    assert "4.7 times as much text" in said("bytes-behind")


def test_credit_is_what_context_gains(study):
    both, theirs = dict.fromkeys(map("bytes-1/{}".format, FOUR), 2.0), dict(context=[8, 64], nats=[1.4, 1.3])
    both |= {"bytes-64/p-spin": 2.0, "bytes-64/transformer": 2.0}
    credit = comparisons.MEASURES["credit"]
    others = dict(swiglu=dict(context=theirs), attention=dict(context=theirs))
    for end, verdict in ((1.31, ledger.HOLDS), (1.38, ledger.PART), (1.4, ledger.NOT_SEEN)):
        mine = dict(context=dict(context=[8, 64], nats=[1.4, end]))
        study(both, p_spin=mine, transformer=dict(context=theirs), **others)
        assert credit().verdict == verdict
    flat = dict(context=dict(context=[8, 64], nats=[1.4, 1.3999]))
    study(both, p_spin=flat, transformer=flat, **others)
    assert credit().verdict == ledger.NOT_SEEN, "as much as the Transformer, and nothing"


def test_cost_is_by_time(monkeypatch):
    ours = networks.arm("bytes-1", "p-spin").cfg, networks.arm("subwords-1", "p-spin").cfg
    monkeypatch.setattr(jobs, "flops_a_step", lambda cfg: 14 if cfg in ours else 7)
    for bytes_, subwords, verdict in ((0.5, 1, ledger.HOLDS), (1.5, 0.9, ledger.PART), (1.5, 1.1, ledger.NOT_SEEN)):
        times = {"bytes-1/p-spin": bytes_, "subwords-1/p-spin": subwords}
        monkeypatch.setattr(records, "seconds_a_step", lambda *name, times=times: times.get("/".join(name), 1.0))
        assert comparisons.cost().verdict == verdict
    assert "1.50 times the time" in said("cost")
    assert "2.00 times its flops" in said("cost")


def test_a_step_is_timed_by_the_paper_and_by_us(monkeypatch):
    """By sequence: a step of the baseline has 64."""

    def made(seconds):
        return dict(summary=dict(seconds_a_step=seconds), environment=dict(threads=2))

    theirs, faster = paper_numbers.PAPER["seconds"], dict(paper_numbers.PAPER["seconds"], **{"p-spin": 0.2})
    cases = ((theirs, 3.0, ledger.REFUTED), (theirs, 1.0, ledger.PART), (faster, 3.0, ledger.PART))
    for paper, ours, verdict in (*cases, (faster, 1.0, ledger.HOLDS)):
        steps = {"subword": made(ours), "transformer": made(128.0), "byte": made(7.0)}
        steps = {f"paper/{name}-paper": step for name, step in steps.items()}
        monkeypatch.setattr(records, "read", steps.get)
        monkeypatch.setitem(paper_numbers.PAPER, "seconds", paper)
        assert paper_numbers.time_a_step().verdict == verdict
        assert f"took {ours:.2f} s and 2.00 s, {ours / 2:.2f} times" in said("time-a-step")


def test_what_lies_beyond_the_tries_is_said(monkeypatch):
    def made(lr, gain, bits):
        config = dict(model=dict(lr=lr, gain=gain))
        return dict(config=config, summary=dict(validation=dict(a=dict(bits_per_byte=bits))))

    tried, arm = [made(1.6e-3, 1.0, 2.2), made(3.2e-3, 1.0, 2.1), made(3.2e-3, 2.0, 2.0)], ("bytes-1", "p-spin")
    monkeypatch.setattr(records, "tries", lambda *name: dict(enumerate(tried)))

    def chosen(lr, gain):
        monkeypatch.setattr(records, "seeds", lambda *name: {1: made(lr, gain, 0)})

    chosen(1.6e-3, 1.0)
    assert comparisons.beyond(arm, arm) == "", "in the middle of its range"
    chosen(3.2e-3, 1.0)
    assert comparisons.beyond(arm, arm).endswith("p-spin (bytes-1): we tried no higher rate"), "each arm once"
    chosen(3.2e-3, 2.0)
    assert "doubling the initial scale gained 0.100; we tried no larger one" in comparisons.beyond(arm)
    tried += [made(6.4e-3, 1.0, 2.05), made(1.28e-2, 1.0, 2.3)]
    assert "doubling the rate at 0.5 times the initial scale gave 2.050 instead of 2.000" in comparisons.beyond(arm)
    tried += [made(1.28e-2, 2.0, 1.9)]
    assert "4 times the rate gave 1.900 instead of 2.000; we tried no higher rate," in comparisons.beyond(arm)
    tried += [made(2.56e-2, 2.0, 1.95)]
    assert "no higher rate" not in comparisons.beyond(arm)


def test_a_curve_that_never_passes_can_be_written(study, monkeypatch, tmp_path):
    """The outcome that the paper claims."""
    monkeypatch.setattr(batch_size, "overtaken", lambda *names: math.inf)
    study({"bytes-1/p-spin": 1.9, "bytes-64/transformer": 2.0, "bytes-1/transformer": 2.0})
    assert batch_size.headline("bytes")().verdict == ledger.HOLDS
    assert "It reaches p-Spin's final score never" in said("eight-times-bytes")
    monkeypatch.setattr(batch_size, "overtaken", lambda *names: 31_127.0)
    assert "final score after about 31,000, and its own at batch 1 after about 31,000" in said("eight-times-bytes")
    endless = ledger.Measured(ledger.HOLDS, dict(x=math.inf))
    monkeypatch.setattr(ledger, "STORE", tmp_path / "verdicts.json")
    monkeypatch.setattr(ledger, "claims", lambda: [ledger.Claim("state", "2.1", "", "", "", "{x:.1f} times")])
    monkeypatch.setattr(ledger, "measures", lambda: {"state": lambda: endless})
    ledger.write()
    assert ledger.results() == {"state": ledger.Result(ledger.HOLDS, endless.values, "inf times")}


@pytest.mark.parametrize(("radii", "verdict"), [([0.5, 0.9], ledger.HOLDS), ([0.5, 1.1, 0.5], ledger.NOT_SEEN),
                                                ([1.2, 1.1], ledger.NOT_SEEN)])  # fmt: skip
def test_contraction_is_at_every_validation(radii, verdict, monkeypatch):
    monkeypatch.setattr(records, "missing", lambda *names: [])
    rows = [dict(step=0, radius=[0.02]), *(dict(step=i + 1, radius=[0.1, r]) for i, r in enumerate(radii))]
    monkeypatch.setattr(records, "seeds", lambda *name: {seed: dict(attractor=rows) for seed in (1, 2, 3)})
    shipped = type("Shipped", (), dict(metrics=lambda self, kind: rows))()
    monkeypatch.setattr(load, "shipped", lambda name: shipped)
    monkeypatch.setattr(fixed_point, "_left_alone", lambda: (0.5, 0.9))
    actual = fixed_point.contracts()
    assert actual.verdict == verdict
    assert (actual.values["trained"], actual.values["count"]) == (13, 13 * len(radii))


def test_tokens_that_do_not_settle_break_nothing():
    share, radius = fixed_point._left_alone(2)
    assert share == 0
    assert not radius > 10, "a number of other layers, or none"


def test_attention_is_linear_in_memory_unless_its_scores_are_kept(monkeypatch):
    assert resources.memory_attention().verdict == ledger.PART
    with sdpa_kernel(SDPBackend.MATH):
        assert resources.memory_attention().verdict == ledger.HOLDS


def test_counted_claims_follow_the_counts(monkeypatch):
    """Other counts, another verdict."""
    assert resources.complexity().verdict == ledger.HOLDS
    with monkeypatch.context() as patch:
        whole = costs.flops
        patch.setattr(costs, "flops", lambda cfg, **more: whole(cfg.replace(micro_steps=5), **more))
        assert resources.complexity().verdict == ledger.REFUTED, "K is left out"
    with monkeypatch.context() as patch:
        patch.setattr(costs, "saved_bytes", lambda cfg: {"layers": 4 * cfg.context, "weights": 10**9})
        assert resources.context_length().verdict == ledger.HOLDS, "next to nothing but logits"
    with monkeypatch.context() as patch:
        patch.setattr(costs, "step_bytes", lambda cfg: costs.StepMemory(10**7, 10**7, 1, 1, 1))
        assert resources.edge().verdict == ledger.HOLDS
    with monkeypatch.context() as patch:
        assert paper_numbers.rows().verdict == ledger.PART
        patch.setitem(
            paper_numbers.PAPER, "rows", {"byte-paper": ((0.18, 32, 0.69), (45.09, 2, 10.75), (15.69, 16, 29.94))}
        )
        assert paper_numbers.rows().verdict == ledger.REFUTED, "2 of 3 rows"
    with monkeypatch.context() as patch:
        patch.setattr(state_space, "chunked", lambda *inputs, **more: (1.001 * state_space.recurrent(*inputs)[0], None))
        assert state_space_claims.chunks().verdict == ledger.REFUTED
    with monkeypatch.context() as patch:
        patch.setattr(paper_numbers, "NOT_GIVEN", ())
        assert paper_numbers.complete().verdict == ledger.HOLDS
    with monkeypatch.context() as patch:
        calm = fixed_points.two_spins("frustrated", gamma=0.5, scale=0.5)
        patch.setattr(fixed_points, "two_spins", lambda *_, **__: calm)
        assert fixed_point.energy().verdict == ledger.UNTESTABLE, "one that settles proves nothing"


def test_exact_means_in_every_layer():
    for errors, verdict in (([1e-4, 2e-4], ledger.HOLDS), ([1e-4, 0.1], ledger.NOT_SEEN)):
        assert fixed_point.everywhere(np.array(errors)) == verdict


def test_claims_are_counted_by_kind():
    kinds = ledger.kinds()
    assert sorted(name for ids in kinds.values() for name in ids) == sorted(CLAIMS)
    plain, small, trained_, ours = kinds.values()
    assert set(plain) | set(small) <= set(COUNTED)
    assert {ledger.results()[name].verdict for name in plain} == {ledger.HOLDS}
    assert set(trained_) <= set(OF_RUNS)
    assert {CLAIMS[name].section for name in ours} == {ledger.OURS}
    total = sum(int(count) for count in re.findall(r"(\d+) [✓◐✗○?–…]", ledger.tallied(ledger.results())))
    assert total == len(CLAIMS)


def test_a_run_that_left_the_finite_numbers_decides_nothing(monkeypatch, tmp_path):
    """And breaks nothing: the claims say so."""
    name = "bytes-1/p-spin/seed-2"
    store.write(name, records.read(name) | dict(summary=None, failure="step 3: loss nan"), tmp_path)
    monkeypatch.setattr(store._Current, "store", store.Store(tmp_path, store.PUBLISHED))
    names = ("control-bytes", "recurrence", "smooth", "damped", "swiglu")
    measured = {name: OF_RUNS[name]() for name in names}
    assert {one.verdict for one in measured.values()} == {ledger.UNTESTABLE}
    assert said("recurrence") == "left the finite numbers: bytes-1/p-spin/seed-2"
    assert records.bits("bytes-1", "p-spin")[2] == math.inf
    assert not records.difference(records.bits("bytes-1", "p-spin"), records.bits("bytes-1", "swiglu")).clear
    assert records.row("bytes-1", "p-spin")["seeds"] == 2


def test_memory_is_linear_if_every_further_token_costs_the_same(monkeypatch):
    kept = dict(linear=lambda T, batch: 2_500_000 + 40_000 * T * batch, square=lambda T, batch: 40 * T * T * batch)
    kept["dearer sequences"] = lambda T, batch: 2_500_000 + 40_000 * T * batch**2
    for name, verdict in (("linear", ledger.HOLDS), ("square", ledger.REFUTED), ("dearer sequences", ledger.REFUTED)):
        monkeypatch.setattr(resources, "_kept", lambda cfg, tokens, batch=1, name=name: kept[name](tokens, batch))
        assert resources.memory_t().verdict == verdict
        assert name != "linear" or "2.4 MiB" in said("memory-t")


def test_retention_waits_for_every_order(monkeypatch):
    asked = []
    monkeypatch.setattr(records, "missing", lambda *names: asked.extend(names) or ["one"])
    assert continual_learning.retention().verdict == ledger.WAITS
    assert {name.rpartition("-")[2] for name in asked} == {"time", "mixed", "replay"}


def test_differences_are_paired():
    a, b = {1: 1.0, 2: 2.0, 3: 3.0}, {1: 0.9, 2: 1.9, 3: 2.9}
    actual = records.difference(a, b)
    assert actual.mean == pytest.approx(0.1)
    assert actual.half_width == pytest.approx(0, abs=1e-9)
    assert actual.clear
    noisy = records.difference({1: 1.0, 2: 2.0, 3: 3.5}, b)
    assert noisy.half_width == pytest.approx(4.303 * np.std([0.1, 0.1, 0.6], ddof=1) / 3**0.5)
    assert not noisy.clear
    assert not records.difference({1: 1.0}, {2: 1.0}).clear
    assert records.difference({1: 1.5}, {1: 1.0}).mean == 0.5


def test_records_are_read_by_arm():
    actual = records.seeds("smoke", "p-spin")
    assert list(actual) == [1, 2, 3]
    assert records.bits("smoke", "p-spin")[1] == actual[1]["summary"]["validation"]["held-out"]["bits_per_byte"]
    assert len(records.tries("smoke", "p-spin")) == 5
    assert records.missing("smoke/p-spin") == []
    steps, values = records.curve(actual[1])
    assert steps[0] == 0
    assert steps[-1] == 60
    assert values[-1] < values[0]
    assert records.axis(actual[1], steps, "tokens")[-1] == actual[1]["summary"]["tokens"]
    train = actual[1]["data"]["train"]
    per_token = train["bytes"] / train["tokens"]
    assert 0.99 < per_token < 1, "bytes, and a token at the end of each speech"
    assert records.axis(actual[1], steps, "text")[-1] == pytest.approx(actual[1]["summary"]["tokens"] * per_token)
    assert records.axis(actual[1], steps, "flops")[-1] == 60 * actual[1]["summary"]["flops_a_step"]
    assert records.spread({1: 1.0, 2: 3.0}) == pytest.approx(2**0.5)
    row = records.row("smoke", "p-spin")
    assert row["sequences"] == 60 * row["batch"]
    assert row["bits"] == pytest.approx(records.mean(records.bits("smoke", "p-spin")))
    assert row["nats"] == pytest.approx(row["bits"] * math.log(2), rel=1e-3), "bytes: about a token each"
    assert row["seconds"] == records.seconds_a_step("smoke", "p-spin")
    assert records.axis(actual[1], steps, "seconds")[-1] == pytest.approx(60 * row["seconds"])
    with pytest.raises(ValueError, match="unit"):
        records.axis(actual[1], steps, "miles")
    with pytest.raises(ValueError, match="split"):
        records.curve(actual[1], "tomorrow")
    assert row["seeds"] == 3
    with pytest.raises(ValueError, match="arm"):
        records.seeds("smoke", "gpt")


def test_a_claim_without_its_runs_says_which(monkeypatch, tmp_path):
    monkeypatch.setattr(store._Current, "store", store.Store(tmp_path))
    assert comparisons.recurrence().verdict == ledger.WAITS
    assert said("recurrence").startswith("18 runs to do: ")
    assert "bytes-1/k10" in said("recurrence")
    assert said("retention") == "36 runs to do: continual", "twelve arms are too many to list"


def test_pages_are_written_from_the_results():
    for name, text in documents.pages().items():
        page = (ledger.ROOT / "docs" / name).read_text(encoding="utf-8")
        assert page == text, "python -m pspin_lite ledger --write"


def test_the_command_says_what_is_wrong_in_one_line(monkeypatch, capsys, tmp_path):
    assert main(["ledger"]) == 0
    assert "repeat: python -m pspin_lite" in capsys.readouterr().out
    monkeypatch.setattr(ledger, "STORE", tmp_path / "verdicts.json")
    assert main(["ledger"]) == 1
    said = capsys.readouterr().err
    assert "verdicts.json" in said
    assert said.count("\n") == 1


def test_a_package_without_a_checkout_lists_the_claims_and_measures_what_needs_no_run(tmp_path):
    """A copy of the package alone, as it is installed."""
    alone = tmp_path / "pspin_lite"
    shutil.copytree(ledger.ROOT / "pspin_lite", alone, ignore=shutil.ignore_patterns("__pycache__", "records"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    calls = ("ledger", "ledger estimate", "ledger --write")
    lines = [
        "import pspin_lite, sys",
        "from pspin_lite.cli import main",
        f"assert pspin_lite.__file__.startswith({str(alone)!r})",
    ]
    lines += [f"print(main({call.split()}), flush=True)" for call in calls]
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    listed, estimate, written = re.split(r"^[01]\n", run.stdout, flags=re.MULTILINE)[:3]
    assert re.findall(r"^[01]$", run.stdout, flags=re.MULTILINE) == ["0", "0", "1"]
    for one in CLAIMS.values():
        assert f"{one.id}: {one.says}" in listed
        assert one.holds_if in listed
    assert "Verdicts are kept in a checkout" in listed
    assert f"now: {ledger.HOLDS}: {said('estimate')}" in estimate
    assert "stored: nothing" in estimate
    assert "agree" not in estimate
    assert written == ""
    assert "verdicts are written into a checkout" in run.stderr
    assert run.stderr.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before, "nothing is written"


def test_the_table_has_every_claim():
    table = ledger.markdown()
    for name, one in ledger.results().items():
        assert one.text in table, name
    assert ledger.markdown(["state"]).count("\n") == 2
    assert sum(ledger.tally(ledger.results()).values()) == len(CLAIMS)
    with pytest.raises(ValueError, match="verdict"):
        ledger.Measured("perhaps", {})
    with pytest.raises(KeyError):
        CLAIMS["state"].sentence(ledger.Measured(ledger.HOLDS, {}))
