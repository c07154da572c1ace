"""The toy of notebook 11: its formula is that of noisy descent, and its numbers are those that the text tells."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.lessons.figures import valley


def test_the_formula_is_that_of_descent_with_noise():
    """4,000 runs from the same start, with gradients drawn at random."""
    rng, batch, rate = np.random.default_rng(0), 4, 0.5
    h = valley.CURVATURES
    w = np.sqrt(2 / (h * len(h))) * np.ones((4000, len(h)))
    for _ in range(20):
        w -= rate * (h * w + rng.normal(size=w.shape) * np.sqrt(valley.NOISE * h / batch))
    drawn = (h * w**2).sum(1).mean() / 2
    assert valley.descent(batch, rate, np.array([0, 20])) == pytest.approx([1, drawn], rel=0.01)


def test_batch_1_has_its_best_rate():
    ends = {rate: valley.descent(1, rate, np.array([valley.RUN]))[0] for rate in (0.05, 0.075, 0.1, 0.125, 0.15)}
    assert min(ends, key=ends.get) == valley.RATE


def test_a_higher_rate_makes_up_for_some_of_the_batch():
    needed = {rate: valley.text_needed(64, rate * valley.RATE) for rate in (1, 8, 16)}
    assert needed[1] == pytest.approx(31, abs=0.5), "as the text tells"
    assert needed[8] == pytest.approx(4.3, abs=0.05)
    assert needed[16] == pytest.approx(2.8, abs=0.05)
    assert valley.text_needed(4, 4 * valley.RATE) == pytest.approx(1.1, abs=0.05)
    assert valley.text_needed(1, 2 * valley.RATE) == np.inf


def test_the_figure_says_what_it_shows():
    for batch, rate, said in ((64, 16, "2.8 times"), (1, 4, "never"), (64, 32, "diverges")):
        figure, numbers = valley.valley(batch, rate)
        assert numbers["text for the same loss"] == said
        assert said.split()[0] in figure.panels[0].title
    drawn, _ = valley.valley(64, 16)
    arrow = next(line for line in drawn.lines if line.width > 2)
    assert 10**arrow.x == pytest.approx([1, valley.text_needed(64, 1.6)])
    assert numbers["steps for the same loss"] == "diverges"
    _, numbers = valley.valley(64, 4)
    assert numbers == {"text for the same loss": "8.1 times", "steps for the same loss": "127"}


def test_no_curve_runs_along_an_edge():
    """Losses are those of the formula until the curve leaves the panel, and none is below it."""
    for batch in (1, 4, 16, 64):
        for rate in (1, 2, 4, 8, 16, 32):
            figure, _ = valley.valley(batch, rate)
            line = figure.lines[1]
            assert line.x[0] == pytest.approx(np.log10(max(valley.NARROW, batch / valley.RUN)), abs=0.1)
            losses = valley.descent(batch, rate * valley.RATE, (10**line.x * valley.RUN / batch).round())
            assert 10 ** line.y[:-1] == pytest.approx(losses[:-1])
            assert 10 ** line.y[-1] == pytest.approx(min(losses[-1], valley.CEILING))
            assert losses.min() > valley.FLOOR
    [ticks] = {len(panel.xticklabels) - len(panel.xticks) for panel in figure.panels}
    assert ticks == 0
