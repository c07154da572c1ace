"""The run that is cut off by the clock."""

from __future__ import annotations

import re
import signal

import pytest

import pspin_lite as ps
from pspin_lite import _files as files
from pspin_lite.cli import main
from pspin_lite.study import experiments, jobs, paper_size, records
from pspin_lite.training.runs import Run, processor

NAME = "paper/byte-smoke"
SETTINGS = dict(validate_every=5, validate_tokens=256, final_tokens=256)


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """Networks as small as these take longer on several threads, and much longer where the cores are busy."""
    monkeypatch.setattr(paper_size.os, "sched_getaffinity", lambda _: {0}, raising=False)


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(paper_size, "FINAL_TOKENS", 1024)


def test_it_stops_when_the_time_of_its_steps_is_over(tmp_path, little):
    cut = paper_size.work(NAME, tmp_path / NAME, minutes=1e-9, **SETTINGS)
    assert (cut.stopped, cut.summary) == (None, None), "cut off by the clock, not finished"
    result = paper_size.record(NAME, cut)
    assert result["summary"]["steps"] == 1, "the first step is over the limit"
    steps, bits = records.curve(result)
    assert steps.tolist() == [0], "validated where it is due"
    scores, data = result["summary"]["validation"], cut.data()
    assert set(scores) == {"held-out", "recent"}
    for split, score in scores.items():  # scored where it was cut off, and on more text
        assert score == ps.evaluate(cut.model, data[split], paper_size.FINAL_TOKENS // cut.cfg.context)
        assert score["tokens"] == paper_size.FINAL_TOKENS > SETTINGS["validate_tokens"]
    start = ps.evaluate(cut.model, data["held-out"], SETTINGS["validate_tokens"] // cut.cfg.context)["bits_per_byte"]
    assert abs(bits[0] - start) > 1e-6, "the step has changed the network"
    whole = paper_size.record(NAME, paper_size.work(NAME, tmp_path / NAME, minutes=60, **SETTINGS))
    assert whole["summary"]["steps"] == 30, "taken up, and finished within the time"
    assert whole["loss"][:1] == result["loss"]
    summary = whole["summary"]
    assert summary["whole_run_hours"] == pytest.approx(summary["seconds"] / 3600)
    assert summary["flops_a_step"] == jobs.flops_a_step(Run(tmp_path / NAME).cfg)
    assert summary["parameters"] == sum(p.numel() for p in Run(tmp_path / NAME).model.parameters())
    assert records.curve(whole)[0].tolist() == [0, 5, 10, 15, 20, 25, 30]


def test_a_signal_is_not_the_clock(tmp_path, monkeypatch):
    """A signal sets the event that the clock sets too. The run is stopped, not over: nothing is recorded, and it goes
    on."""
    asked = paper_size.Limit.is_set
    monkeypatch.setattr(paper_size.Limit, "is_set", lambda self: signal.raise_signal(signal.SIGTERM) or asked(self))
    stopped = paper_size.work(NAME, tmp_path / NAME, minutes=60, **SETTINGS)
    assert stopped.stopped == "SIGTERM"
    monkeypatch.setattr(paper_size.Limit, "is_set", asked)
    assert paper_size.work(NAME, tmp_path / NAME, minutes=60, **SETTINGS).summary["steps"] == 30


@pytest.mark.parametrize("preset", ["byte-smoke", "subword-smoke", "transformer-smoke"])
def test_the_command_keeps_a_record(preset, tmp_path, monkeypatch, capsys, little):
    name = f"paper/{preset}"
    monkeypatch.setitem(paper_size.MINUTES, name, 1e-9)
    monkeypatch.setattr(paper_size, "SETTINGS", paper_size.SETTINGS | SETTINGS)
    assert main(["experiments", name, "--out", str(tmp_path / "runs")]) == 0
    assert "would take" in capsys.readouterr().out
    stored = files.read_json(tmp_path / "runs" / "records" / f"{name}.json")
    assert stored["summary"]["steps"] == 1
    assert stored["command"].endswith(name)
    assert stored["environment"]["processor"] == processor()
    assert main(["experiments", "--list", "paper", "--out", str(tmp_path / "runs")]) == 0
    assert f"{name} " in (said := capsys.readouterr().out)
    assert "after 1 steps" in said
    assert main(["experiments", name, "--out", str(tmp_path / "runs")]) == 0
    assert "nothing to do" in capsys.readouterr().out, "a record is not written over"
    for _ in range(2):
        assert main(["experiments", name, "--again", "--out", str(tmp_path / "runs")]) == 0
        assert "after 1 steps, on record" in capsys.readouterr().out
        again = files.read_json(tmp_path / "runs" / experiments.AGAIN / f"{name}.json")
        assert (again.keys(), again["summary"].keys()) == (stored.keys(), stored["summary"].keys())
    assert {path.name for path in (tmp_path / "runs/paper").iterdir()} == {
        preset, f"{preset}-again-1", f"{preset}-again-2"
    }  # fmt: skip
    stop = Run(tmp_path / "other")
    stop.stopped = "SIGTERM"
    monkeypatch.setattr(paper_size, "work", lambda *_: stop)
    assert paper_size.main(name, tmp_path) == "SIGTERM"
    assert capsys.readouterr().out == "", "stopped before its time: nothing to record yet"
    assert main(["experiments", name, "--again", "--out", str(tmp_path / "runs")]) == 128 + signal.SIGTERM


def test_stored_records_are_of_the_presets_and_of_unchanged_code():
    for name in filter(records.has, paper_size.MINUTES):
        result = records.read(name)
        assert ps.config.from_dict(result["config"]["model"]) == ps.preset(name.removeprefix("paper/"))
        assert {key: result["config"]["training"][key] for key in paper_size.SETTINGS} == paper_size.SETTINGS
        assert all(re.fullmatch("[0-9a-f]{40}", commit) for _, commit in result["environment"]["commits"])
        assert result["summary"]["seconds"] >= 60 * paper_size.MINUTES[name], "its whole time"
        assert result["summary"]["steps"] == len(result["loss"])
        assert all(score["tokens"] == paper_size.FINAL_TOKENS for score in result["summary"]["validation"].values())


def test_another_name_is_refused(capsys):
    assert main(["experiments", "paper/byte-papr"]) != 0
    said = capsys.readouterr().err
    assert all(word in said for word in ("paper/byte-papr", "did you mean 'paper/byte-paper'", "paper/subword-paper"))


def test_the_times_are_those_of_the_presets():
    assert {name.removeprefix("paper/") for name in paper_size.MINUTES} == {n for n in ps.presets() if "-paper" in n}
