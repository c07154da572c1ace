"""Figures show what they say, and the notebooks' checks can fail."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pspin_lite import figures, lesson


def test_memory_is_a_power_of_the_decay():
    figure, left = figures.memory([0.5, 0.99], tokens=10)
    assert left[0.5][3] == 0.125
    (axes,) = figure.axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert np.array_equal(lines["decay 0.99: half-life 69"], 0.99 ** np.arange(11))


def test_convergence_draws_every_line():
    values = {"a": np.array([0.1, 0.01]), "b": np.array([0.5, 0.4])}
    figure, shown = figures.convergence(values)
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert [line.get_ydata().tolist() for line in axes.lines] == [v.tolist() for v in values.values()]
    assert shown is values


def test_the_picture_in_docs_is_the_one_we_draw(tmp_path):
    figures.main(tmp_path / "architecture.svg")
    drawn = (tmp_path / "architecture.svg").read_text()
    from pspin_lite.equations import ROOT

    assert drawn == (ROOT / "docs" / "architecture.svg").read_text(), "run `make docs`"


def test_check_raises_when_it_should(capsys):
    lesson.check("same", torch.ones(3), [1, 1, 1])
    assert capsys.readouterr().out == "✓ same (within 1e-06)\n"
    for found in ([1, 1, 1.01], [1, 1, float("nan")], [1, 1], 1):
        with pytest.raises(AssertionError, match="other"):
            lesson.check("other", found, torch.ones(3))


def test_a_figure_needs_a_description():
    with pytest.raises(ValueError, match="alt"):
        lesson.show(figures.memory([0.5], 3)[0], " ")


def test_compare_puts_the_guess_beside_the_result(capsys):
    lesson.compare(50, 68.97, " tokens")
    assert capsys.readouterr().out == "you said 50 tokens, it is 69 tokens\n"
