"""The widget of notebook 12: its shares are those of a fit, and its picture those of its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.lessons.figures import slope

SIZES = (0.1, 0.5, 2, 4.7)


@pytest.mark.parametrize("form", slope.FORMS)
def test_shares_are_those_of_a_fit(form):
    u, a = np.random.default_rng(1).normal(size=(2, 400_000))
    for size in SIZES:
        x = np.stack([np.ones_like(u), size * u, size * a], 1)
        z = slope.FORMS[form](size * u, size * a)
        fit = np.linalg.lstsq(x, z, rcond=None)[0]
        share, (mean, *slopes), deviation = slope.linear(form, size)
        assert share == pytest.approx(1 - np.var(z - x @ fit) / np.var(z), abs=0.01)
        assert [mean, *slopes] == pytest.approx(fit, abs=0.02 * deviation / min(size, 1))
        assert deviation == pytest.approx(z.std(), rel=0.02)


def test_the_paper_s_product_is_nearly_linear_while_fields_are_small():
    shares = [slope.linear("tanh(u) · σ(a)", size)[0] for size in SIZES]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.99
    assert 0.92 < shares[1] < 0.94, "93%, as the notebook says of a whole layer"
    assert slope.linear("tanh(u) · tanh(a)", 0.5)[0] < 1e-9


def test_a_picture_says_what_it_shows():
    figure, numbers = slope.slope("tanh(u) · tanh(a)", 1)
    assert numbers == {"a linear map explains": "0%", "size of the fields": "1"}
    assert [panel.title for panel in figure.panels] == ["tanh(u) · tanh(a)", "a linear map explains 0%"]
    says, gives = figure.lines[-1].x, figure.lines[-1].y
    assert abs(says).max() < 1e-9 < abs(gives).max(), "a linear map knows nothing of it"
    says, gives = (slope.slope("tanh(u) · σ(a)", 0.1)[0].lines[-1].x, slope.slope("tanh(u) · σ(a)", 0.1)[0].lines[-1].y)
    assert says == pytest.approx(gives, abs=0.2)
