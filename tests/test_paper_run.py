"""The run that is cut off by the clock."""

from __future__ import annotations

import signal

import pytest

import pspin_lite as ps
from pspin_lite import experiments, files, paper_run, records
from pspin_lite.__main__ import main
from pspin_lite.runs import Run

NAME = "paper/byte-smoke"
SETTINGS = dict(validate_every=5, validate_tokens=256, final_tokens=256)


def test_it_stops_when_the_time_of_its_steps_is_over(tmp_path):
    cut = paper_run.work(NAME, tmp_path, minutes=1e-9, **SETTINGS)
    assert (cut.stopped, cut.summary) == (None, None), "cut off by the clock, not finished"
    found = paper_run.record(NAME, cut)
    assert found["summary"]["steps"] == 1, "the first step is over the limit"
    whole = paper_run.record(NAME, paper_run.work(NAME, tmp_path, minutes=60, **SETTINGS))
    assert whole["summary"]["steps"] == 30, "taken up, and finished within the time"
    assert whole["loss"][:1] == found["loss"]
    summary = whole["summary"]
    assert summary["whole_run_hours"] == pytest.approx(summary["seconds"] / 3600)
    assert summary["flops_a_step"] == experiments.flops_a_step(Run(tmp_path / NAME).cfg)
    assert summary["parameters"] == sum(p.numel() for p in Run(tmp_path / NAME).model.parameters())
    assert summary["peak_bytes"] > 50e6
    assert records.curve(whole)[0].tolist() == [0, 5, 10, 15, 20, 25, 30]


def test_a_signal_is_not_the_clock(tmp_path, monkeypatch):
    """A signal sets the event that the clock sets too. The run is stopped, not over: nothing is recorded, and it goes
    on."""
    asked = paper_run.Limit.is_set
    monkeypatch.setattr(paper_run.Limit, "is_set", lambda self: signal.raise_signal(signal.SIGTERM) or asked(self))
    stopped = paper_run.work(NAME, tmp_path, minutes=60, **SETTINGS)
    assert stopped.stopped == "SIGTERM"
    monkeypatch.setattr(paper_run.Limit, "is_set", asked)
    assert paper_run.work(NAME, tmp_path, minutes=60, **SETTINGS).summary["steps"] == 30


@pytest.mark.parametrize("preset", ["byte-smoke", "subword-smoke", "transformer-smoke"])
def test_the_command_keeps_a_record(preset, tmp_path, monkeypatch, capsys):
    name = f"paper/{preset}"
    monkeypatch.setattr(experiments, "RECORDS", tmp_path / "records")
    monkeypatch.setitem(paper_run.MINUTES, name, 1e-9)
    monkeypatch.setattr(paper_run, "SETTINGS", paper_run.SETTINGS | SETTINGS)
    assert main(["experiments", name, "--out", str(tmp_path / "runs")]) == 0
    assert "would take" in capsys.readouterr().out
    stored = files.read_json(tmp_path / "records" / f"{name}.json")
    assert stored["summary"]["steps"] == 1
    assert stored["command"].endswith(name)
    stop = Run(tmp_path / "other")
    stop.stopped = "SIGTERM"
    monkeypatch.setattr(paper_run, "work", lambda *_: stop)
    assert paper_run.main(name, str(tmp_path)) == "SIGTERM"
    assert capsys.readouterr().out == "", "stopped before its time: nothing to record yet"


def test_another_name_is_refused(capsys):
    assert main(["experiments", "paper/byte-papr"]) != 0
    said = capsys.readouterr().err
    assert all(word in said for word in ("paper/byte-papr", "did you mean 'paper/byte-paper'", "paper/subword-paper"))


def test_the_times_are_those_of_the_presets():
    assert {name.removeprefix("paper/") for name in paper_run.MINUTES} == {n for n in ps.presets() if "-paper" in n}
