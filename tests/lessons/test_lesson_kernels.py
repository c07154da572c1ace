"""What later notebooks import is what the reader wrote in notebook 02."""

from __future__ import annotations

import inspect
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("triton", reason="Triton is published for Linux only")

from pspin_lite.lessons import kernels as lesson_kernels

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "02_triton_forward.ipynb"


@pytest.mark.parametrize("name", ["load_rows", "store_rows", "decay_mask", "decays"])
def test_functions_are_those_of_the_notebook(name):
    written = "\n".join(cell.source for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code")
    assert inspect.getsource(getattr(lesson_kernels, name).fn) in written + "\n"
