"""Figures of notebook 08 show what they say."""

from __future__ import annotations

import numpy as np
import pytest

import pspin_lite as ps
from pspin_lite import costs
from pspin_lite.lessons.figures import network as draw


def test_stream_adds_independent_pieces_in_squares():
    sizes, pieces = np.array([0.0, 3.0, 6.0]), np.array([3.0, 4.0])
    figure, shown = draw.stream(sizes, pieces)
    assert np.allclose(shown["if the pieces were independent"], [0, 3, 5])
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["stream"].get_ydata().tolist() == [0, 3, 6]
    assert lines["state space adds"].get_xydata().tolist() == [[1, 3]]
    assert lines["attractor adds"].get_xydata().tolist() == [[2, 4]]
    assert figure.axes[0].get_title(loc="left").startswith("At initialisation, the stream grows")


def test_shares_add_up_to_a_hundred():
    figure, shown = draw.shares({"a": costs.Cost(10, 60, 30), "b": costs.Cost(1, 98, 1)})
    assert shown["a"] == {"state_space": 10, "attractor": 60, "head": 30}
    assert [text.get_text() for text in figure.axes[0].texts] == [
        "10.0",
        "60.0",
        "30.0",
        "state space 1.0",
        "98.0",
        "head 1.0",
    ]
    assert sum(patch.get_width() for patch in figure.axes[0].patches) == pytest.approx(200)
    assert figure.get_suptitle() == "With five steps, the attractor does most of the computation"


def test_training_is_compared_with_the_file():
    step = {"a": (10 * 2**20, 5 * 2**20, 2**20, 7 * 2**20), "b": (2**20, 3 * 2**20, 0, 7 * 2**20)}
    figure, memory = draw.training(step, {"a": 4.0, "b": 5.0}, {"a": 1024, "b": 2048}, measured=["b"])
    assert list(memory["a"].values()) == [10, 20, 5, 1, 1], "weights, moments, activations, copies, the rest"
    assert figure.get_suptitle() == "At 1,024 tokens, b needs 73% less than a"
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["a\n1,024 tokens", "b\n2,048 tokens"]
    assert [text.get_text() for text in figure.axes[0].texts] == [
        "37\nestimated",
        "file 4",
        "10\npartly measured",
        "file 5",
    ]
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [4, 5]


def test_the_widget_knows_the_paper_s_byte_model():
    state = draw.budgets(ps.preset("byte-paper"))
    figure, numbers = state(tokens=2048, D=704, I=2048, K=5)
    assert numbers["million parameters"] == "61.0"
    assert numbers["MiB of the file"] == "41.4"
    assert numbers["training / file"] == "36 times"
    memory, arithmetic = ([text.get_text() for text in axes.texts] for axes in figure.axes)
    names = ["file, packed", "41", "file, unpacked", "117", "training", "1,480"]
    assert memory == [*names, "512 to spare"]
    assert arithmetic[1::2] == ["22", "370", "0.4"], "a small number is not shown as 0"
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Training takes 36 times the file",
        "Attractor: 94% of the computation",
    ]
    still, _ = state(tokens=2048, D=704, I=2048, K=20)
    same, more = ([text.get_text() for text in axes.texts] for axes in still.axes)
    assert same == memory
    assert more != arithmetic, "K changes the computation alone"
    pale, bar = (_ends(still.axes[1])[i] for i in (2, 3))
    assert pale == pytest.approx(370, abs=0.5), "where the byte model was"
    assert 1300 < bar < 0.8 * still.axes[1].get_xlim()[1], "the longest of all, with room for its number"
    shorter, numbers = state(tokens=512, D=352, I=1408, K=5)
    assert shorter.axes[0].texts[-2].get_text() == "462"
    assert _ends(shorter.axes[0])[-2:] == pytest.approx([1480, 462], abs=0.5)
    assert numbers["million parameters"] == "24.4"
    assert shorter.axes[0].lines[-1].get_xdata().tolist() == [512, 512], "the goal"


def _ends(axes) -> list[float]:
    """Where bars end, from above; first the pale one."""
    return [area.get_paths()[0].vertices[:, 0].max() for area in axes.collections]
