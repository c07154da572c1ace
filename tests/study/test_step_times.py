"""Times of a training step that compare: all arms in turn."""

from __future__ import annotations

import pytest
import torch

from pspin_lite import _files as files
from pspin_lite.cli import main
from pspin_lite.study import experiments, networks, records, step_times, store

SMOKE = ["smoke/p-spin", "smoke/transformer"]


def test_every_arm_whose_time_is_compared_is_on_record():
    names = step_times.names()
    assert len(names) == len(set(names)) >= 20
    assert {name.partition("/")[0] for name in names} == {"smoke", "bytes-1", "subwords-1", "bytes-64", "subwords-64"}
    assert {networks.arm(*name.split("/")).cfg.batch for name in names} == set(step_times.ROUNDS), "none is left out"
    stored = records.read("step-times")
    assert list(stored["seconds"]) == names
    assert stored["environment"]["threads"] == 1
    assert not stored["environment"]["commit"].endswith("+"), "of unchanged code"
    for name, seconds in stored["seconds"].items():
        assert records.seconds_a_step(*name.split("/")) == seconds > 0


def test_a_step_is_a_training_step():
    """Every parameter has a gradient, clipped, and moves."""
    once = step_times.step("smoke/p-spin")
    model = next(cell.cell_contents for cell in once.__closure__ if hasattr(cell.cell_contents, "loss"))
    before = [p.detach().clone() for p in model.parameters()]
    once()
    assert all((p != q).any() for p, q in zip(model.parameters(), before, strict=True))
    assert all(p.grad is not None for p in model.parameters())
    assert torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]) < 1.001, "clipped"


def test_the_command_keeps_a_record(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(store, "PUBLISHED", tmp_path / "published")
    monkeypatch.setattr(store._Current, "store", store.Store(tmp_path / "published"))
    monkeypatch.setattr(step_times, "names", lambda: SMOKE)
    monkeypatch.setattr(step_times, "ROUNDS", {1: 2})
    threads = torch.get_num_threads()
    out = ("--out", str(tmp_path / "runs"))
    assert main(["experiments", "step-times", *out]) == 0
    assert torch.get_num_threads() == threads
    assert "smoke/transformer" in capsys.readouterr().out
    path = tmp_path / "runs" / "records" / "step-times.json"
    stored = files.read_json(path)
    assert list(stored["seconds"]) == SMOKE
    assert stored["seconds"]["smoke/p-spin"] == pytest.approx(0.01, rel=50)
    before = path.read_bytes()
    assert main(["experiments", "step-times", "--again", *out]) == 0
    assert "on record" in capsys.readouterr().out
    again = files.read_json(tmp_path / "runs" / experiments.AGAIN / "step-times.json")
    assert (again.keys(), list(again["seconds"])) == (stored.keys(), SMOKE)
    assert path.read_bytes() == before, "the record stays"
    assert main(["experiments", "--list", "step-times", *out]) == 0
    assert "s for one step of each arm" in capsys.readouterr().out
