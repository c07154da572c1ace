"""The drawings of notebooks 00 and 08 show what is computed."""

from __future__ import annotations

from math import tanh

import numpy as np
import pytest
import torch

import pspin_lite as ps
from pspin_lite.lessons.figures import draw_network as draw


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_energies_of_three_spins():
    figure, energies = draw.interactions()
    assert energies == {"pairs": -1, "triple": 1, "lowest pairs": -1, "lowest triple": -1}
    assert {"energy −1; lowest −1", "energy +1; lowest −1", "no energy"} <= set(words(figure))
    assert [words(figure).count(name) for name in "123"] == [2, 2, 2], "in both drawings of three spins"


def test_the_spin_settles():
    figure, values = draw.layers(gamma=0.5, steps=5)
    assert values[0] == tanh(1)
    assert abs(values[5] - tanh(1 + 0.5 * values[5])) < 1e-5
    assert "$y_5$ = 0.895" in words(figure)


def test_the_headline_says_who_leads():
    figure, gaps = draw.headline({"one rate": (-0.074, None), "tuned": (0.126, 0.017)})
    assert gaps == {"one rate": -0.074, "tuned": 0.126}
    assert {"−0.074", "+0.126 ± 0.017"} <= set(words(figure))
    assert figure.get_suptitle() == "At p-Spin's rate p-Spin leads; tuned, the Transformer does"
    left, right = figure.axes[0].get_xlim()
    assert left < -0.074 < 0.126 + 0.017 < right
    assert draw.headline({"one rate": (0.1, None), "tuned": (0.2, 0.1)})[0].get_suptitle() == "Who is better?"


def test_weights_move_to_what_the_package_makes_of_them():
    figure, numbers = draw.rounding(weights := [0.3, -0.1, 2.0, -1.6])
    assert numbers["rounded"] == pytest.approx(ps.ternary.ste(torch.tensor(weights)).tolist())
    assert numbers["scale"] == pytest.approx([1])
    assert {"0.3", "−0.1", "2", "−1.6", "−s = −1", "s = 1"} <= set(words(figure))


def test_echoes_are_powers_of_the_slope():
    figure, sizes = draw.echoes({"settles": -0.5, "swings": -1.02})
    assert sizes["settles"].tolist() == [(-0.5) ** n for n in range(7)]
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["$J$ = −0.50: sum 0.67", "$J$ = −1.02: no sum"]


def test_matrices_are_those_of_the_footprint():
    figure, numbers = draw.matrices(cfg := ps.preset("byte-paper"))
    table = ps.footprint(cfg)
    ternary = [numbers["$W_{ext}$"], numbers["$W_{int}$"]]
    assert cfg.layers * sum(params for params, _ in ternary) == table["ternary MLP"].params
    assert cfg.layers * sum(mib for _, mib in ternary) == pytest.approx(table["ternary MLP"].mb)
    params, mib = (sum(column) for column in zip(*numbers.values(), strict=True))
    assert sum(one for one, _ in ternary) > params / 2, "most parameters are ternary"
    assert sum(one for _, one in ternary) < mib / 2, "most bytes are not"
    squares = [patch.get_width() ** 2 for patch in figure.axes[0].patches[1:8:2]]
    assert np.allclose(np.array(squares) / squares[0], [size / 4.7265625 for _, size in numbers.values()])


def test_a_strip_is_a_small_part_of_the_logits():
    figure, mib = draw.strips(tokens=1024, vocab=49152, width=544, rows=64)
    assert mib == {"logits": 192, "strip": 12, "dx": 2.125, "dE": 102}
    assert {"64 rows of logits: 12 MiB", "all at once: 192 MiB", "102 MiB"} <= set(words(figure))
