"""Figures show what they say, and the notebooks' checks can fail."""

from __future__ import annotations

import base64
import io
import subprocess
import sys

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from pspin_lite import lessons as lesson
from pspin_lite.lessons.figures import architecture
from pspin_lite.tools.equation_map import ROOT


def test_the_pictures_in_docs_are_those_we_draw(tmp_path):
    architecture.main(tmp_path)
    drawn = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.svg")}
    assert len(drawn) == 1 + len(list((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")))
    for path, text in drawn.items():
        assert text == (ROOT / "docs" / path).read_text(), "run `make docs`"


def test_check_raises_when_it_should(capsys):
    lesson.check("same", torch.ones(3), [1, 1, 1])
    assert capsys.readouterr().out == "✓ same (within 1e-06)\n"
    for found in ([1, 1, 1.01], [1, 1, float("nan")], [1, 1], 1):
        with pytest.raises(AssertionError, match="other"):
            lesson.check("other", found, torch.ones(3))


def test_a_figure_needs_a_description():
    with pytest.raises(ValueError, match="alt"):
        lesson.show(Figure(), " ")


def test_a_shown_picture_has_a_palette_and_looks_the_same(monkeypatch):
    """A heat map is the hardest: many colours, some in few places."""
    images = []
    monkeypatch.setattr("IPython.display.display", images.append)
    figure = Figure(figsize=(3, 2))
    figure.subplots().imshow(np.arange(64).reshape(8, 8))
    lesson.show(figure, "what it shows")
    (image,) = images
    assert image.data.startswith('<img alt="what it shows" width="300" src="data:image/png;base64,')
    data = base64.b64decode(image.data.split(",")[1].removesuffix('">'))
    plain = io.BytesIO()
    figure.savefig(plain, format="png", dpi=110)
    shown, exact = Image.open(io.BytesIO(data)), Image.open(plain).convert("RGB")
    assert shown.mode == "P"
    assert len(data) < 0.6 * len(plain.getvalue())
    assert shown.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    assert np.abs(np.asarray(shown.convert("RGB"), int) - np.asarray(exact, int)).max() <= 16


def test_a_transparent_picture_keeps_its_bytes():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2, 3])
    clear = io.BytesIO()
    figure.savefig(clear, format="png", transparent=True)
    assert lesson.reduce_colours(clear.getvalue()) == clear.getvalue()


def test_lessons_and_exercises_need_no_matplotlib_or_ipython():
    code = "import sys; from pspin_lite.lessons import check, exercises; exercises.find('1.1'); print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert {"matplotlib", "IPython", "PIL"}.isdisjoint(modules)


def test_compare_puts_the_guess_beside_the_result(capsys):
    lesson.compare(50, 68.97, " tokens")
    assert capsys.readouterr().out == "you said 50 tokens, it is 69 tokens\n"
