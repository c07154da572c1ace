"""Records as they are kept: exact in either form, the same bytes each time, and found where they are."""

from __future__ import annotations

import copy
import json
import shutil

import numpy as np
import pytest

from pspin_lite import _files as files
from pspin_lite.cli import main
from pspin_lite.study import experiments, networks, records, store

SEED, TRY = "smoke/p-spin/seed-1", "smoke/p-spin/try-0.0004-1"
COURSE = dict(
    command="python",
    loss=[5.59, 0.1, 1e-3, 12.0],
    norm=[1230.0, 0.0123, 5.06, 7.0],
    probe=[[1600, 2.034369], [1601, 2.0]],
    validation=[dict(step=0, split="recent", bits=8.5), dict(step=4, split="recent", bits=2.25)],
    attractor=[dict(step=0, radius=[0.03, 0.02])],
    noise=[],
    summary=None,
)


def text(record: dict) -> str:
    """Equal texts: the same numbers of the same types, keys in the same order."""
    return json.dumps(record)


def test_a_published_record_is_the_record(tmp_path):
    store.write("a/b/seed-1", COURSE, tmp_path / "work")
    store.write_group("a", {"a/b/seed-1": COURSE, "a/b/try-1": dict(summary=None)}, tmp_path / "published")
    for folder in ("work", "published"):
        assert text(store.Store(tmp_path / folder).read("a/b/seed-1")) == text(COURSE)
    assert store.Store(tmp_path / "published").names() == ["a/b/seed-1", "a/b/try-1"]
    line, _ = (tmp_path / "published" / "a.jsonl").read_text().splitlines()
    assert line.startswith('{"name": "a/b/seed-1", "command"')
    assert json.loads(line)["loss"] == dict(decimals=3, length=4)
    assert json.loads(line)["probe"] == dict(decimals=[0, 6], length=2)
    with np.load(tmp_path / "published" / "a.npz", allow_pickle=False) as arrays:
        assert arrays["b/seed-1/loss"].tolist() == [5590, 100, 1, 12000]


@pytest.mark.parametrize("loss", [[0.1, 1 / 3], [1e-30], [1, 0.5], ["nan", 1.0], [2.0**60], [7, 8], [3.0]], ids=str)
def test_numbers_that_do_not_fit_stay_as_they_are(loss, tmp_path):
    store.write_group("a", {"a/b/seed-1": dict(loss=loss)}, tmp_path)
    assert text(store.Store(tmp_path).read("a/b/seed-1")) == text(dict(loss=loss))


def test_the_same_records_are_the_same_bytes(tmp_path):
    everything = {name: records.read(name) for name in records.names()}
    assert len(everything) >= 222
    store.publish(everything, tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sum(map(len, written.values())) < 22_500 * len(everything), "5 MB for the 222 runs of the first study"
    for path in store.PUBLISHED.glob("*.jsonl"):
        assert path.read_bytes() == written[path.name], "as it is stored"
    store.publish(dict(reversed(everything.items())), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == written
    for name, record in everything.items():
        assert text(store.Store(tmp_path).read(name)) == text(record)


def test_files_that_do_not_fit_are_noticed(tmp_path):
    for path in store.PUBLISHED.glob("smoke.*"):
        shutil.copy(path, tmp_path)
    shutil.copy(store.PUBLISHED / "bytes-64.npz", tmp_path / "smoke.npz")
    with pytest.raises(files.FileError, match=r"smoke\.npz: does not fit smoke\.jsonl"):
        store.Store(tmp_path).read(SEED)
    (tmp_path / "smoke.npz").unlink()
    with pytest.raises(files.FileError, match=r"smoke\.npz"):
        store.Store(tmp_path).read(SEED)
    assert store.Store(tmp_path).read(TRY)["summary"], "which has no steps"
    (tmp_path / "smoke.jsonl").write_text("{}\n")
    with pytest.raises(files.FileError, match="not a file of records"):
        store.Store(tmp_path).names()


def test_the_first_folder_counts(tmp_path):
    for folder in "ab":
        store.write("g/x/seed-1", dict(at=folder), tmp_path / folder)
    store.write("g/y/seed-1", dict(at="b"), tmp_path / "b")
    both = store.Store(tmp_path / "a", tmp_path / "b", tmp_path / "none")
    assert (both.read("g/x/seed-1"), both.read("g/y/seed-1")) == (dict(at="a"), dict(at="b"))
    assert both.names("g/y") == ["g/y/seed-1"]
    assert (both.names("g"), both.names("g/")) == (["g/x/seed-1", "g/y/seed-1"], [])
    with pytest.raises(files.FileError, match="no record 'g/z'"):
        both.read("g/z")


def test_without_a_checkout_it_is_said_where_records_are(tmp_path, capsys):
    with records.using(tmp_path / "none"):
        for call in (lambda: records.has(SEED), lambda: records.read(SEED), lambda: records.missing("smoke/p-spin")):
            with pytest.raises(files.FileError, match=r"notebooks/records of a checkout.*--records FOLDER"):
                call()
        assert main(["ledger", "recurrence"]) == 1
        assert "notebooks/records of a checkout" in capsys.readouterr().err
        with records.using(preferred=store.PUBLISHED):
            assert records.bits("smoke", "p-spin")
        assert main(["ledger", "recurrence", "--records", str(store.PUBLISHED)]) == 0
        assert "the verdicts agree" in capsys.readouterr().out
        assert main(["experiments", "--list", "smoke", "--out", str(tmp_path)]) == 0
        assert "missing" in capsys.readouterr().out


def test_using_ends_where_it_ends(tmp_path):
    def fail() -> None:
        with records.using(tmp_path):
            assert store.current().folders == (tmp_path,)
            raise RuntimeError

    before = store.current()
    with pytest.raises(RuntimeError):
        fail()
    assert store.current() is before


# Publishing


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose records lack one full run, which is under `runs`."""
    folder = tmp_path / "notebooks" / "records"
    rest = {name: records.read(name) for name in records.names("smoke") if name != SEED}
    store.write_group("smoke", rest, folder)
    store.write(SEED, records.read(SEED), tmp_path / "runs" / "records")
    monkeypatch.setattr(store, "PUBLISHED", folder)
    with records.using(folder):
        yield tmp_path


def test_finished_runs_are_published(checkout, capsys):
    expected, out = text(store.Store(checkout / "runs" / "records").read(SEED)), str(checkout / "runs")
    assert not records.has(SEED)
    other = copy.deepcopy(records.read(TRY)) | dict(command="other")
    store.write(TRY, other, checkout / "runs" / "records")
    assert main(["experiments", "--publish", "--out", out]) == 0
    assert capsys.readouterr().out.startswith(f"{SEED}: ")
    assert text(records.read(SEED)) == expected
    assert records.read(TRY)["command"] != "other", "what is published stays"
    assert records.missing("smoke/p-spin") == []
    assert experiments.publish(out) == []
    assert "nothing to publish" in capsys.readouterr().out


def test_what_is_no_run_of_the_study_is_not_published(checkout):
    store.write("smoke/p-spin/seed-9", records.read(TRY), checkout / "runs" / "records")
    with pytest.raises(ValueError, match=r"--publish: got smoke/p-spin/seed-9"):
        experiments.publish(str(checkout / "runs"))
    assert not records.has(SEED), "nor anything beside it"


def test_publishing_needs_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PUBLISHED", tmp_path / "notebooks" / "records")
    with pytest.raises(files.FileError, match="checkout"):
        experiments.publish(str(tmp_path))


def test_every_network_is_on_record():
    """Of the first study: three full runs of each arm, or one of a preset."""
    for group, members in networks.FIRST.items():
        for arm in members:
            runs = [name for name in records.names(f"{group}/{arm.name}") if "/seed-" in name]
            assert len(runs) == (1 if group == "presets" else len(networks.SEEDS)), f"{group}/{arm.name}"
