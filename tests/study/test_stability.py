"""Measures of stability, on cases whose answer is known."""

from __future__ import annotations

import faulty
import numpy as np
import pytest
import torch
from helpers import message

import pspin_lite as ps
from pspin_lite.study import records, stability
from pspin_lite.training.probes import PROBE_STEPS


def test_noise_scale_of_known_gradients():
    """A loss whose gradient is row * 1: the mean and the covariance of the rows are those of the gradients."""
    torch.manual_seed(0)
    w = torch.zeros(400, dtype=torch.float64, requires_grad=True)
    G, deviation = 0.3, 2.0
    rows = G + deviation * torch.randn(2000, 400, dtype=torch.float64)
    actual = stability.noise_scale(lambda row: (row[0] * w).sum(), [w], rows)
    assert actual["noise"] == pytest.approx(400 * deviation**2, rel=0.02)
    assert actual["signal"] == pytest.approx(400 * G**2, rel=0.05)
    assert actual["scale"] == pytest.approx(deviation**2 / G**2, rel=0.05)
    # Unbiased: with few rows, right on average; the plain |mean|^2 would be 1600 / 4 = 400 too high.
    signals = [stability.noise_scale(lambda row: (row[0] * w).sum(), [w], four)["signal"] for four in rows.split(4)]
    assert np.mean(signals) == pytest.approx(400 * G**2, rel=0.1)


def test_noise_scale_ignores_what_has_no_gradient_and_refuses_one_sequence():
    w, unused = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    actual = stability.noise_scale(lambda row: (row[0] * w).sum(), [w, unused], torch.ones(4, 3))
    assert actual["noise"] == pytest.approx(0, abs=1e-6)
    assert actual["signal"] == pytest.approx(3)
    with pytest.raises(ValueError) as raised:
        stability.noise_scale(lambda row: w.sum(), [w], torch.ones(1, 3))
    assert "batch" in message(raised)


def test_jitter_takes_trend_and_text_away():
    """Three models on one text, whose own jitters are known."""
    random = np.random.default_rng(0)
    steps = 20_000
    text, trend = random.normal(size=steps), 5 * np.exp(-np.arange(steps) / 5000)
    a, b, c = (trend + text + own * random.normal(size=steps) for own in (0.1, 0.3, 0.2))
    assert stability.jitter(a, b, c) == pytest.approx(0.1, rel=0.05)
    assert stability.jitter(b, a, c) == pytest.approx(0.3, rel=0.05)
    assert stability.jitter(c, a, b) == pytest.approx(0.2, rel=0.05)
    assert stability.raw_jitter(a) == pytest.approx(1.0, rel=0.05)
    assert stability.jitter(text, text, text) == 0


def test_jitter_wants_the_same_steps():
    with pytest.raises(ValueError) as raised:
        stability.jitter(np.ones(3), np.ones(3), np.ones(4))
    assert "[3, 3, 4]" in message(raised)


def test_worse_steps():
    assert stability.worse_steps([(1, 2.0), (2, 1.9), (3, 1.95), (10, 1.0), (11, 1.5)]) == (2, 3)
    assert stability.worse_steps([]) == (0, 0)


def test_measures_of_a_record():
    """At full learning rate: what happens before and after does not count."""
    loss = np.concatenate([np.full(20, 9.0), np.tile([1.0, 2.0], 30), np.full(20, 5.0)])
    norm = np.concatenate([np.full(20, 90.0), np.full(59, 1.0), [5.0], np.full(20, 90.0)])
    probe = [[10, 1.0], [11, 0.9], [12, 1.1], [50, 0.8], [51, 0.7]]
    model = dict(warmup=10, cooldown=20, steps=100)
    noise = [dict(scale=x) for x in (3.0, 5.0, "inf")]
    record = dict(config=dict(model=model), loss=loss.tolist(), norm=norm.tolist(), probe=probe, noise=noise)
    actual = stability.measures(record)
    assert stability.level(record) == slice(20, 80)
    assert actual["raw jitter"] == pytest.approx(0.5, rel=0.01)
    assert actual["rises"] == pytest.approx(30 / 59)
    assert actual["worse steps"] == pytest.approx(1 / 3)
    assert actual["tail"] == pytest.approx(np.percentile(norm[20:80], 99))
    assert actual["noise scale"] == 5.0
    assert actual["largest"] == 5.0
    calm, third = (record | dict(loss=(loss * 0 + x).tolist()) for x in (1, 2))
    runs = {"jumpy": record, "calm": calm, "third": third}
    assert stability.own_jitter(runs, "jumpy", ("calm", "third", "jumpy")) == pytest.approx(0.5, rel=0.01)
    assert stability.own_jitter(runs, "calm", ("calm", "third", "jumpy")) == 0


def test_probes_change_nothing_and_are_the_same_after_a_stop(tmp_path, texts):
    plain = faulty.train(tmp_path / "plain", texts)
    probed = faulty.train(tmp_path / "probed", texts, probe_every=5)
    assert faulty.result(plain)[0] == faulty.result(probed)[0], "other weights"
    noise = probed.metrics("noise")
    assert [record["step"] for record in noise] == [5, 10]
    assert all(record["noise"] > 0 and record["sequences"] == 64 for record in noise)
    steps = [record["step"] for record in probed.metrics("probe")]
    assert steps == list(range(5, faulty.STEPS + 1)), f"every step, up to {PROBE_STEPS} after each probe"
    # Taken up again from the checkpoint in the middle
    newest = sorted((tmp_path / "probed" / "checkpoints").iterdir())[0]
    again = ps.resume(newest, show=False)
    assert again.metrics("probe") == probed.metrics("probe")
    assert [record["scale"] for record in again.metrics("noise")] == [record["scale"] for record in noise]


@pytest.mark.parametrize(
    ("name", "words"), [("smoke/p-spin/seed-1", "60 steps"), ("continual/p-spin-time/seed-1", "no probes")]
)
def test_records_without_what_is_measured_are_refused(name, words):
    with pytest.raises(ValueError) as raised:
        stability.measures(records.read(name))
    assert "record: got" in message(raised)
    assert words in message(raised)


def test_own_jitter_of_the_last_steps():
    """Calm at level, wild at the end: the part that is asked for is what is measured."""
    random = np.random.default_rng(1)
    runs = {}
    for name in "abc":
        own = np.where(np.arange(3000) < 2500, 0.01, 0.2) * random.normal(size=3000)
        runs[name] = dict(loss=own.tolist(), config=dict(model=dict(warmup=100, cooldown=500, steps=3000)))
    assert stability.own_jitter(runs, "a", "abc") == pytest.approx(0.01, rel=0.2)
    assert stability.own_jitter(runs, "a", "abc", last=400) == pytest.approx(0.2, rel=0.3)
