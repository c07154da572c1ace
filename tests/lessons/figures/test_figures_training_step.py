"""The figures of a training step in notebook 08 show what costs.step_bytes says and what a step takes."""

from __future__ import annotations

import pytest

import pspin_lite as ps
from pspin_lite import costs
from pspin_lite.lessons.figures import training_step as draw

BYTE = ps.preset("byte-paper")


def test_the_highest_moment_is_the_peak():
    totals = {name: sum(kinds.values()) for name, kinds in draw.moments(BYTE).items()}
    assert list(totals) == ["start", *(f"forward {l}" for l in (1, 2, 3, 4)), "loss", *_back(), "update"]
    assert max(totals, key=lambda name: totals[name]) == "backward 4"
    assert totals["backward 4"] == pytest.approx(costs.step_bytes(BYTE).peak / costs.MB)
    assert totals["start"] == pytest.approx(3 * 4 * 60_963_008 / costs.MB), "weights and two moments"
    assert totals["update"] == pytest.approx(4 * 4 * 60_963_008 / costs.MB), "and gradients"


def _back() -> list[str]:
    return [f"backward {l}" for l in (4, 3, 2, 1)]


def test_the_explorer_tells_moment_and_recipe():
    walk = draw.walk(BYTE)
    figure, numbers = walk(moment=7, recipe="AdamW, 32 bits")
    assert numbers == {"moment": "backward 4", "in total": "1,480 MiB", "peak / file": "36 times"}
    left, right = figure.axes
    assert left.get_title(loc="left") == "Highest as backward begins: 1,480 MiB"
    assert right.get_title(loc="left") == "backward 4: 1,480 MiB"
    parts = [text.get_text() for text in right.texts]
    sizes = dict(zip(parts[::2], map(int, parts[1::2]), strict=True))
    assert list(sizes) == list(draw.COLOURS), "from the bottom up, as in the stack"
    assert sum(sizes.values()) == 1480
    assert (sizes["activations"], sizes["gradients"]) == (513, 6)
    ends = [area.get_paths()[0].vertices[:, 0].max() for area in right.collections]
    assert ends == pytest.approx(list(draw.moments(BYTE)["backward 4"].values())), "bars as long as their numbers"
    _, lean = walk(moment=7, recipe="SGD, 16 bits")
    assert (lean["in total"], lean["peak / file"]) == ("624 MiB", "15 times")
    early, numbers = walk(moment=2, recipe="AdamW, 32 bits")
    assert numbers["moment"] == "forward 1"
    assert early.axes[0].get_title(loc="left") == left.get_title(loc="left"), "the peak stays where it is"


def test_peaks_are_measured_or_estimated():
    p_spin, transformer = ps.preset("byte-lite"), ps.preset("transformer-lite")
    figure, memory = draw.peaks(measured=[transformer, p_spin], estimated=[p_spin.replace(name="other")])
    ends = [text.get_text() for text in figure.axes[0].texts if "\n" in text.get_text()]
    assert [text.split("\n")[1] for text in ends] == ["partly measured", "partly measured", "estimated"]
    first, measured, estimated = memory.values()
    assert first["rounded copies of ternary weights"] == 0
    assert sum(measured.values()) == pytest.approx(sum(estimated.values()), rel=0.06)
    for kind in list(measured)[:-1]:
        assert measured[kind] == estimated[kind]
