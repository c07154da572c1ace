"""Measures of stability, on cases whose answer is known."""

from __future__ import annotations

import faulty
import numpy as np
import pytest
import torch
from helpers import message

import pspin_lite as ps
from pspin_lite import stability
from pspin_lite.trainer import PROBE_STEPS


def test_noise_scale_of_known_gradients():
    """A loss whose gradient is row * 1: the mean and the covariance of the rows are those of the gradients."""
    torch.manual_seed(0)
    w = torch.zeros(400, dtype=torch.float64, requires_grad=True)
    G, deviation = 0.3, 2.0
    rows = G + deviation * torch.randn(2000, 400, dtype=torch.float64)
    found = stability.noise_scale(lambda row: (row[0] * w).sum(), [w], rows)
    assert found["noise"] == pytest.approx(400 * deviation**2, rel=0.02)
    assert found["signal"] == pytest.approx(400 * G**2, rel=0.05)
    assert found["scale"] == pytest.approx(deviation**2 / G**2, rel=0.05)
    # Unbiased: with few rows, right on average; the plain |mean|^2 would be 1600 / 4 = 400 too high.
    signals = [stability.noise_scale(lambda row: (row[0] * w).sum(), [w], four)["signal"] for four in rows.split(4)]
    assert np.mean(signals) == pytest.approx(400 * G**2, rel=0.1)


def test_noise_scale_ignores_what_has_no_gradient_and_refuses_one_sequence():
    w, unused = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    found = stability.noise_scale(lambda row: (row[0] * w).sum(), [w, unused], torch.ones(4, 3))
    assert found["noise"] == pytest.approx(0, abs=1e-6)
    assert found["signal"] == pytest.approx(3)
    with pytest.raises(ValueError) as raised:
        stability.noise_scale(lambda row: w.sum(), [w], torch.ones(1, 3))
    assert "batch" in message(raised)


def test_jitter_takes_trend_and_text_away():
    rng = np.random.default_rng(0)
    steps = np.arange(4000)
    text = rng.normal(0, 0.5, 4000)  # how hard each sequence is: the same for all
    own = {"calm": 0.02, "jumpy": 0.1, "middle": 0.05}
    losses = {name: 3 * np.exp(-steps / 3000) + text + rng.normal(0, size, 4000) for name, size in own.items()}
    found = stability.jitter(losses)
    assert found["calm"] < found["middle"] < found["jumpy"]
    assert found["jumpy"] < 0.15
    for name in losses:
        assert stability.raw_jitter(losses[name]) == pytest.approx(0.5, rel=0.1)
    # Two models that are equally jumpy have their own share, not what one has in common with the mean of both.
    pair = {name: text + rng.normal(0, 0.1, 4000) for name in "ab"}
    assert stability.jitter(pair)["a"] == pytest.approx(0.1, rel=0.1)


def test_jitter_wants_the_same_steps():
    with pytest.raises(ValueError) as raised:
        stability.jitter({"a": np.zeros(3), "b": np.zeros(4)})
    assert "losses" in message(raised)


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
    found = stability.measures(record)
    assert stability.level(record) == slice(20, 80)
    assert found["raw jitter"] == pytest.approx(0.5, rel=0.01)
    assert found["rises"] == pytest.approx(30 / 59)
    assert found["worse steps"] == pytest.approx(1 / 3)
    assert found["tail"] == pytest.approx(np.percentile(norm[20:80], 99))
    assert found["noise scale"] == 5.0
    calm = record | dict(loss=(loss * 0 + 1).tolist())
    own = stability.own_jitter({"jumpy": record, "calm": calm, "calm too": calm})
    assert own["jumpy"] > 1.5 * own["calm"]


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
