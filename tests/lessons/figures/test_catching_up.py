"""How much text or time batch size 64 takes to get as far, from any point on."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.lessons.figures import race, study
from pspin_lite.lessons.figures.catching_up import PAIRS, UNITS, catching_up, curve
from pspin_lite.study import records

draw = catching_up("subwords")


@pytest.mark.parametrize("who", PAIRS)
@pytest.mark.parametrize("unit", UNITS)
def test_a_line_leads_from_one_bold_curve_to_the_other(who, unit):
    small, large = (f"subwords-{batch}" for batch in (1, 64))
    pair = (small, PAIRS[who][0]), (large, PAIRS[who][1])
    for after in (2000, 7000):
        figure, numbers = draw(who, after, UNITS[unit])
        *curves, between, tip, one, other = figure.lines
        bold = [line for line in curves if line.opacity == 1]
        assert [line.colour for line in bold] == [study.OF_ARMS[name]["color"] for _, name in pair]
        assert [line.dashes for line in bold] == [False, True]
        (start, end), (level, same) = between.x, between.y
        assert level == same == pytest.approx(np.interp(start, bold[0].x, bold[0].y), abs=2e-3)
        assert level == pytest.approx(np.interp(end, bold[1].x, bold[1].y), abs=4e-3)
        assert (tip.x[0], tip.y[0]) == (end, level)
        assert 10 ** (end - start) == pytest.approx(float(numbers[f"times the {UNITS[unit]}"]), abs=0.051)
        assert f"needs {numbers[f'times the {UNITS[unit]}']} times the {UNITS[unit]}" in figure.panels[0].title
        for line, network in ((one, pair[0]), (other, pair[1])):
            ring = race.cooling(next(iter(records.seeds(*network).values())), unit)
            assert (10 ** line.x[0], line.filled) == (pytest.approx(ring), False)
            assert line.y[0] == pytest.approx(np.interp(ring, *curve(network, unit)))


def test_factors_are_those_that_the_text_tells():
    def shown(who: str, after: int, axis: str) -> float:
        return float(draw(who, after, axis)[1][f"times the {axis}"])

    assert [shown(who, 7000, "text") for who in PAIRS] == [3.1, 3.2, 3.5]
    falling = [shown("The diagonal", after, "text") for after in range(1000, 7001, 1000)]
    assert (falling[0], falling[-1]) == (9.9, 3.5)
    assert sorted(falling, reverse=True) == falling
    assert [shown(who, 7000, "time") for who in ("p-Spin", "Transformer")] == [2.1, 2.1]
    assert draw("Transformer", 7000, "text")[1]["sequences at batch 64"] == "22,670"
