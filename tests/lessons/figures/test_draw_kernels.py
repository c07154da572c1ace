"""Drawings of kernels count what they draw."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pspin_lite.lessons.figures import draw_kernels as draw


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_gpu_has_as_many_multiprocessors_as_it_says():
    figure, numbers = draw.gpu()
    squares = [patch for patch in figure.axes[0].patches if getattr(patch, "get_width", float)() == 1.6]
    assert len(squares) == numbers["multiprocessors"] == draw.PROCESSORS
    assert "108 multiprocessors" in texts(figure)


def test_every_number_has_one_lane():
    figure, lanes = draw.blocks(10, 4)
    assert [number for lane in lanes for number in lane] == list(range(10))
    assert len(lanes[-1]) == 2
    assert "3 programs, 12 lanes, 2 masked" in texts(figure)


def test_mask_in_steps():
    """By hand: half of token 1 is left at token 2, an eighth at token 3; a quarter of token 2 at token 3."""
    figure, steps = draw.mask_steps([1, 0.5, 0.25, 1])
    assert steps["M"][:3, :3] == pytest.approx(np.array([[1, 0, 0], [0.5, 1, 0], [0.125, 0.25, 1]]))
    assert texts(figure).count("0.125") == 2


def test_tiles_cover_the_result():
    figure, result = draw.tiles(11, 4, (1, 2))
    assert result == (9, 3, 144 - 121)
    assert [texts(figure).count(f"step {n}") for n in range(4)] == [2, 2, 2, 0]


def test_plans_differ_in_programs_and_traffic():
    figure, walk = draw.walk(4)
    assert sum(text.startswith("step ") for text in texts(figure)) == walk["in a row"] == 4
    assert texts(figure).count("one program") == 1
    figure, parallel = draw.parallel(4)
    assert sum(text.startswith("chunk ") for text in texts(figure)) == 8
    assert (parallel["programs"], parallel["states through memory"]) == (4, 16)
    assert texts(figure).count("kept · $h$\n+ added") == 4


def ratios(figure):
    """From the upper bar to the lower one."""
    bars = {line.y[0]: line.x[1] for line in figure.lines if line.panel == 1 and line.y[0] == line.y[1]}
    return [bars[y] for y in sorted(bars, reverse=True)]


def test_the_widget_counts_programs_and_bytes():
    """The paper's byte model, by hand: 8 of 108 multiprocessors; every number once, or six and three times."""
    figure, numbers = draw.walk_or_parallel(batch=1, heads=8, width=88, chunk=128)
    assert (numbers["programs, walk"], numbers["programs, writes and reads"]) == ("8", "128")
    assert [round(ratio) for ratio in ratios(figure)] == [53, 24, 103, 48]
    assert numbers["MiB, walk, float32"] == f"{32 * (4 * 2048 * 88 + 2048 + 2 * 88**2) / 2**20:.3g}"
    walk = next(line for line in figure.lines if line.panel == 0 and line.y[0] == 3)
    assert walk.x.tolist() == [0, 8]
    assert {"53", "24", "float32\nneeds 12.5", "bfloat16\nneeds 200"} <= {text[3] for text in figure.texts}
    for chunk, width in itertools.product((32, 64, 128), (64, 88, 128)):  # what titles and the notebook say
        figure, shown = draw.walk_or_parallel(batch=1, heads=8, width=width, chunk=chunk)
        assert int(shown["programs, writes and reads"]) >= draw.PROCESSORS
        assert float(shown["MiB, parallel, float32"]) > float(shown["MiB, walk, float32"])
        walk, parallel, *on_tensor_cores = ratios(figure)
        assert max(on_tensor_cores) < draw.NEEDED["bfloat16"]
        assert walk > draw.NEEDED["float32"]
        assert (parallel < draw.NEEDED["float32"]) == (chunk == 32)
    longest = draw.walk_or_parallel(batch=16, heads=16, width=128, chunk=128)[0]
    assert all(line.x[1] <= figure.panels[line.panel].xlim[1] for line in longest.lines)
