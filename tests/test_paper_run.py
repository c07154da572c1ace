"""The run that is cut off by the clock."""

from __future__ import annotations

import signal

import pytest

from pspin_lite import experiments, files, paper_run, records
from pspin_lite.__main__ import main
from pspin_lite.runs import Run


def test_it_stops_when_the_time_of_its_steps_is_over(tmp_path):
    settings = dict(preset="byte-smoke", validate_every=5, validate_tokens=256, final_tokens=256)
    cut = paper_run.work(tmp_path, minutes=1e-9, **settings)
    assert (cut.stopped, cut.summary) == (None, None), "cut off by the clock, not finished"
    found = paper_run.record(cut)
    assert found["summary"]["steps"] == 1, "the first step is over the limit"
    whole = paper_run.record(paper_run.work(tmp_path, minutes=60, **settings))
    assert whole["summary"]["steps"] == 30, "taken up, and finished within the time"
    assert whole["loss"][:1] == found["loss"]
    summary = whole["summary"]
    assert summary["whole_run_hours"] == pytest.approx(summary["seconds"] / 3600)
    assert summary["flops_a_step"] == experiments.flops_a_step(Run(tmp_path / paper_run.NAME).cfg)
    assert summary["parameters"] == sum(p.numel() for p in Run(tmp_path / paper_run.NAME).model.parameters())
    assert summary["peak_bytes"] > 50e6
    assert records.curve(whole)[0].tolist() == [0, 5, 10, 15, 20, 25, 30]


def test_a_signal_is_not_the_clock(tmp_path, monkeypatch):
    """A signal sets the event that the clock sets too. The run is stopped, not over: nothing is recorded, and it goes
    on."""
    settings = dict(preset="byte-smoke", validate_every=5, validate_tokens=256, final_tokens=256)
    asked = paper_run.Limit.is_set
    monkeypatch.setattr(paper_run.Limit, "is_set", lambda self: signal.raise_signal(signal.SIGTERM) or asked(self))
    stopped = paper_run.work(tmp_path, minutes=60, **settings)
    assert stopped.stopped == "SIGTERM"
    monkeypatch.setattr(paper_run.Limit, "is_set", asked)
    assert paper_run.work(tmp_path, minutes=60, **settings).summary["steps"] == 30


def test_the_command_keeps_a_record(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(experiments, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(paper_run, "MINUTES", 1e-9)
    work = paper_run.work
    short = dict(validate_tokens=256, final_tokens=256)
    monkeypatch.setattr(paper_run, "work", lambda out: work(out, 1e-9, "byte-smoke", **short))
    assert main(["experiments", paper_run.NAME, "--out", str(tmp_path / "runs")]) == 0
    assert "would take" in capsys.readouterr().out
    stored = files.read_json(tmp_path / "records" / f"{paper_run.NAME}.json")
    assert stored["summary"]["steps"] == 1
    assert stored["command"].endswith(paper_run.NAME)
    stop = Run(tmp_path / "other")
    stop.stopped = "SIGTERM"
    monkeypatch.setattr(paper_run, "work", lambda out: stop)
    assert paper_run.main(str(tmp_path)) == "SIGTERM"
    assert capsys.readouterr().out == "", "stopped before its time: nothing to record yet"
