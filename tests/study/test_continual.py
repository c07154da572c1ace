"""Measures of continual learning, on made-up runs whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pspin_lite.data import sequences
from pspin_lite.study import continual, networks, records
from pspin_lite.study.claims import continual_learning, ledger

YEARS = ("1803", "1823", "1843", "1863")


def made(bits, loss=(1.0,) * 8, order="time of 8"):
    """A record: bits [E,S] at the steps 0, 4 and 8."""
    validation = [
        dict(step=4 * s, split=year, bits_per_byte=bits[e][s]) for s in range(3) for e, year in enumerate(YEARS)
    ]
    config = dict(model=dict(lr=1e-3, gain=1.0))
    return dict(config=config, validation=validation, loss=list(loss), data=dict(train=dict(order=order)))


TIME = made([[8, 2.0, 2.5], [8, 2.4, 2.4], [8, 3, 2.1], [8, 3, 2]])
MIXED = made([[8, 2.5, 2.2], [8, 2.5, 2.3], [8, 2.5, 2.2], [8, 3, 2.5]], order="mixed of 8")


def test_eras_of_a_record():
    result = continual.eras(TIME)
    assert result.years == YEARS
    assert result.steps.tolist() == [0, 4, 8]
    assert result.bits.shape == (4, 3)
    np.testing.assert_allclose(result.forgotten(), [0.5, 0, 0, 0])


def test_online_counts_what_is_new():
    loss = [9.0, 9.0, 1.0, 5.0, 1.0, 5.0, 1.0, 5.0]
    assert continual.online(made(np.ones((4, 3)), loss), start=2) == pytest.approx(3 / math.log(2))
    replayed = made(np.ones((4, 3)), loss, "replay of 8")
    assert continual.online(replayed, start=2) == pytest.approx(1 / math.log(2)), "every other one was replayed"


def test_what_the_order_gains_is_taken_on_the_same_sequences():
    """A sequence costs what it costs, in either order, plus one in the mixed: the gain is one, whatever was left out of
    the warm-up; and sequences that one of the two read while warming up do not count."""
    price = np.random.default_rng(1).random(40)
    order = sequences.permutation(40, 3, 0)
    mixed = price[order] + 1
    assert continual._gain(price, mixed, 3, 10) == pytest.approx(1 / math.log(2))
    price[:10], mixed[:10] = 50, -70
    assert continual._gain(price, mixed, 3, 10) == pytest.approx(1 / math.log(2))
    assert continual._gain(price, mixed, 4, 10) != pytest.approx(1 / math.log(2)), "the order of another seed"


def test_the_lead_is_by_steps_since_the_text_arrived(monkeypatch):
    """An era is cheaper by 0.3 in the 400 steps after its text, and dearer by 0.1 at any other time."""
    steps = np.arange(0, 4801, 400)
    years = list(continual.passed())
    since = steps - 4800 * np.array([[continual.passed()[year]] for year in years])
    bits = np.where((since >= 0) & (since < 400), 2.0, 2.4)
    bits[:, steps <= continual.WARM] = 99.0

    def seeds(group, arm):
        values = np.full(bits.shape, 2.3) if arm.endswith("mixed") else bits
        rows = [dict(step=int(s), split=y, bits_per_byte=values[e, i]) for i, s in enumerate(steps)
                for e, y in enumerate(years)]  # fmt: skip
        return {1: dict(validation=rows)}

    monkeypatch.setattr(records, "seeds", seeds)
    middles, result = continual.lead("p-spin")
    assert middles[list(continual.BINS).index(0)] == 200
    np.testing.assert_allclose(result[1], np.where(middles == 200, 0.3, -0.1), atol=1e-9)


def test_shares_of_the_text_before_an_era():
    result = continual.passed()
    assert list(result) == [str(year) for year in range(1803, 2024, 20)]
    shares = list(result.values())
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.05
    assert 0.95 < shares[-1] < 1


@pytest.fixture
def study(monkeypatch):
    """Three seeds of every arm; `lost` is what each model forgets in time, `behind` what it costs online."""

    def make(lost, behind):
        def seeds(group, arm):
            assert group == "continual"
            model, _, order = arm.rpartition("-")
            kept = {"replay": 0.1, "mixed": 0.0, "time": lost[model]}[order]
            bits = [[8, 2.0, 2.0 + kept]] + [[8, 2, 2]] * 3
            return {
                n: made(bits, np.full(600, 1.5 + behind[model] + n / 1000), f"{order} of 600") for n in networks.SEEDS
            }

        monkeypatch.setattr(records, "seeds", seeds)
        monkeypatch.setattr(records, "missing", lambda *names: [])
        monkeypatch.setattr(continual, "lead", lambda model: ([], {n: np.full(9, 0.05) for n in networks.SEEDS}))

    return make


def test_verdicts_follow_the_runs(study, monkeypatch):
    monkeypatch.setattr(records, "rates", lambda *name: {1e-3: 2.5})  # tries that started alike
    models = continual.models()
    assert models[0] == "p-spin"
    same = dict.fromkeys(models, 0.0)
    study(dict.fromkeys(models, 0.3), same)
    assert continual_learning.retention().verdict == ledger.NOT_SEEN
    assert continual_learning.followed().verdict == ledger.UNDECIDED, "as good as all others"
    assert continual_learning.retention().values["f_p_spin"] == pytest.approx(0.1), "one of three eras is lost by 0.3"
    study(dict.fromkeys(models, 0.3) | {"p-spin": 0.01}, same | {"p-spin": 0.1})
    assert continual_learning.retention().verdict == ledger.HOLDS
    assert continual_learning.followed().verdict == ledger.NOT_SEEN
    study(dict(zip(models, (0.2, 0.3, 0.1, 0.3), strict=True)), same | {"p-spin": -0.1})
    assert continual_learning.retention().verdict == ledger.NOT_SEEN
    assert continual_learning.followed().verdict == ledger.HOLDS
    assert continual.forgotten("p-spin", "replay") == pytest.approx(dict.fromkeys(networks.SEEDS, 0.1 / 3))
    assert continual.lost_to_order("p-spin") == pytest.approx(dict.fromkeys(networks.SEEDS, 0.2 / 3))


def test_the_order_costs_what_the_mixed_text_does_not(monkeypatch):
    runs = {"p-spin-time": TIME, "p-spin-mixed": MIXED}
    monkeypatch.setattr(records, "seeds", lambda group, arm: {1: runs[arm]})
    np.testing.assert_allclose(continual.cost_of_order("p-spin")[1], [0.3, 0.1, -0.1, -0.5])
