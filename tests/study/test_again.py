"""Runs once more: their records take the place of the stored ones, and claims are measured on them."""

from __future__ import annotations

import copy

import pytest

from pspin_lite import _files as files
from pspin_lite.cli import main
from pspin_lite.study import continual, jobs, records, store
from pspin_lite.study.claims import comparisons, ledger

SEED, TRY, IN_TIME = "smoke/p-spin/seed-1", "smoke/p-spin/try-0.0004-1", "smoke-continual/p-spin-time/seed-2"
FOLDER = "runs/experiments/again/records"  # as in the commands of claims.json


@pytest.fixture(autouse=True)
def stored_ones_again():
    yield
    records.prefer(None)


def better(name: str, by: float = 1.0) -> dict:
    """The stored record, with fewer bits per byte at its end."""
    record = copy.deepcopy(store.current().stored(name))
    for score in record["summary"]["validation"].values():
        score["bits_per_byte"] -= by
    return record


def published_bytes() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.PUBLISHED.iterdir()}


@pytest.fixture
def folder(tmp_path):
    """Three changed records, and one that has no stored one's name."""
    for name in (SEED, TRY):
        store.write(name, better(name), tmp_path)
    calm = records.read(IN_TIME)
    store.write(IN_TIME, calm | dict(loss=[x / 2 for x in calm["loss"]]), tmp_path)
    store.write("smoke/p-spin/try-9-1", better(TRY), tmp_path)
    return tmp_path


def test_records_of_a_folder_take_the_place_of_the_stored_ones(folder):
    def result():
        tries = {name: jobs.score(record) for name, record in records.tries("smoke", "p-spin").items()}
        in_time = records.seeds("smoke-continual", "p-spin-time").items()
        online = {seed: continual.online(record, start=0) for seed, record in in_time}
        return records.bits("smoke", "p-spin"), tries, online, records.bits("smoke", "transformer")

    planned = list(jobs.jobs("smoke", "p-spin"))
    before = result()
    records.prefer(folder)
    now = result()
    assert now[0] == {**before[0], 1: pytest.approx(before[0][1] - 1)}, "the others stay"
    assert now[1] == {**before[1], "try-0.0004-1": pytest.approx(before[1]["try-0.0004-1"] - 1)}, "and no try is added"
    assert now[2] == {**before[2], 2: pytest.approx(before[2][2] / 2)}
    assert now[3] == before[3]
    assert not records.has("smoke/p-spin/try-9-1")
    assert list(jobs.jobs("smoke", "p-spin")) == planned, "what was chosen is a matter of the stored ones"
    records.prefer(None)
    assert result() == before


def test_a_further_repetition_is_read(folder):
    records.prefer(str(folder))
    first = records.bits("smoke", "p-spin")[1]
    store.write(SEED, better(SEED, by=2.0), folder)
    assert records.bits("smoke", "p-spin")[1] == pytest.approx(first - 1)


def test_a_folder_without_records_is_refused(folder, tmp_path, capsys):
    records.prefer(folder)
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    files.write_json(tmp_path / "run" / "config.json", {})
    for other, words in (("gone", "no folder"), ("empty", "no record"), ("run", "no record")):
        with pytest.raises(ValueError, match=f"records: got {tmp_path / other}.* {words}"):
            records.prefer(tmp_path / other)
        assert records.preferred() == folder, "as before"
        assert main(["ledger", "estimate", "--records", str(tmp_path / other)]) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert words in said.err


def test_names_that_are_read_are_noted():
    with records.noted() as outer:
        records.seeds("smoke", "p-spin")
        with records.noted() as inner:
            records.read("step-times")
    records.read(TRY)
    assert inner == {"step-times"}
    assert outer == {"step-times", *(f"smoke/p-spin/seed-{n}" for n in (1, 2, 3))}


# The command


@pytest.fixture
def claim(monkeypatch):
    """A claim on the smallest runs, in a ledger with one other."""
    of_runs = comparisons.compared(("smoke", "p-spin"), ("smoke", "transformer"))
    known = {"tiny": of_runs, "other": lambda: ledger.Measured(ledger.HOLDS, dict(x=7))}
    measured = {"tiny": of_runs(), "other": ledger.Measured(ledger.REFUTED, dict(x=6))}
    sentences = {"tiny": "$both{size}{edge}", "other": "{x}"}
    claims = [ledger.Claim(name, "2.1", f"About {name}", "it does", "python", sentences[name]) for name in known]
    texts = {claim.id: claim.sentence(measured[claim.id]) for claim in claims}
    stored = {name: ledger.Result(one.verdict, one.values, texts[name]) for name, one in measured.items()}
    for name, actual in (("measures", known), ("results", stored), ("claims", claims)):
        monkeypatch.setattr(ledger, name, lambda actual=actual: actual)
    return stored["tiny"]


def test_from_a_repeated_run_to_a_verdict(claim, tmp_path, monkeypatch, capsys):
    """As the commands of the claims do it: by what is said when nothing else is."""
    monkeypatch.chdir(tmp_path)
    before = published_bytes()
    assert main(["experiments", SEED, IN_TIME, "--again"]) == 0
    assert f"records of what is repeated: {FOLDER}\n" in capsys.readouterr().out
    inside = tmp_path / FOLDER
    kept = {path.relative_to(inside).with_suffix("").as_posix(): path for path in inside.rglob("*.json")}
    assert set(kept) == {SEED, IN_TIME}
    for name, path in kept.items():
        again, stored = files.read_json(path), records.read(name)
        assert again.keys() >= stored.keys()
        assert again["summary"]["seconds"] != stored["summary"]["seconds"], "of the repetition: no two take as long"
    assert published_bytes() == before

    def said(*words):
        assert main(["ledger", *words]) == 0
        return capsys.readouterr().out.splitlines()

    title, stored, now, end = said("tiny", "--records", FOLDER)
    assert title.endswith("tiny: About tiny (2.1)")
    assert stored == f"    stored: {claim.verdict}: {claim.text}"
    assert end == f"    the verdicts agree; 1 of 16 records from {inside}"
    assert claim.verdict != ledger.HOLDS
    for seed in (1, 2, 3):
        name = f"smoke/p-spin/seed-{seed}"
        store.write(name, better(name), inside)
    _, stored, now, end = said("tiny", "--records", FOLDER)
    assert stored == f"    stored: {claim.verdict}: {claim.text}"
    assert now.startswith(f"    now: {ledger.HOLDS}: {claim.values['a'] - 1:.3f}")
    assert end == f"    the verdicts do not agree; 3 of 16 records from {inside}"
    assert records.preferred() is None
    assert said("tiny")[2:] == [f"    now: {claim.verdict}: {claim.text}", "    the verdicts agree"]
    assert [line for line in said("--records", FOLDER) if line[0] != " "] == [
        f"{ledger.MARKS[ledger.HOLDS]} tiny: About tiny (2.1)", f"{ledger.MARKS[ledger.HOLDS]} other: About other (2.1)"
    ], "all claims"  # fmt: skip


def test_a_claim_is_measured_by_itself(claim, capsys):
    assert main(["ledger", "other"]) == 0
    assert capsys.readouterr().out == (
        f"{ledger.MARKS[ledger.HOLDS]} other: About other (2.1)\n    stored: {ledger.REFUTED}: 6\n"
        f"    now: {ledger.HOLDS}: 7\n    the verdicts do not agree\n"
    )
    assert main(["ledger"]) == 0
    assert f"{ledger.REFUTED}: 6" in (said := capsys.readouterr().out), "without a name what is stored"
    assert "now" not in said


def test_calls_that_cannot_be_answered_say_so(folder, monkeypatch, capsys):
    monkeypatch.setattr(ledger, "measures", lambda: pytest.fail("measured, or worse: written"))
    calls = (
        (["ledger", "estimat"], "did you mean 'estimate'?"),
        (["ledger", "estimate", "recurence"], "did you mean 'recurrence'?"),
        (["ledger", "--write", "--records", str(folder)], "--write"),
        (["ledger", "--write", "estimate"], "--write"),
    )
    for words, expected in calls:
        assert main(words) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert expected in said.err
    records.prefer(folder)
    with pytest.raises(ValueError, match="stored ones alone"):
        ledger.write()
