"""One letter, one meaning: the table has no letter twice, and every equation keeps to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import nbformat
import pytest

from pspin_lite.tools import equations, letters

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
NAMES = {eq.id for eq in equations.EQUATIONS}


def texts(path: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]


def test_no_letter_twice():
    every = Counter(letter.tex for group in letters.GROUPS.values() for letter in group)
    assert [letter for letter, count in every.items() if count > 1] == []
    assert not set(every) & set(letters.FUNCTIONS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_equations_use_letters_of_the_table(path):
    for text in texts(path):
        for formula in letters.formulas(text):
            assert letters.letters(formula) <= letters.known(), formula


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tag_is_the_name_of_an_equation(path):
    tags = [tag for text in texts(path) for tag in letters.tags(text)]
    assert set(tags) <= NAMES


def test_every_equation_in_code_is_typeset_somewhere():
    shown = {tag for path in NOTEBOOKS for text in texts(path) for tag in letters.tags(text)}
    typeset = {eq.id for eq in equations.EQUATIONS if eq.typeset}
    assert typeset - shown == set()


def test_the_map_keeps_to_the_letters():
    for eq in equations.EQUATIONS:
        for formula in letters.formulas(eq.formula):
            assert letters.letters(formula) <= letters.known(), eq.id


def test_a_strange_letter_is_noticed():
    assert letters.letters(r"\widehat W_{\mathrm{int}} = \theta \odot R \tag{spin-field}") == {"W", r"\theta", "R"}
    assert letters.formulas("a `$HOME`, $x$ and\n\n$$\ny = x\n$$\n\nend, $u\nv$") == ["\ny = x\n", "x", "u\nv"]
    assert letters.letters(r"\frac{\partial \mathcal L}{\partial y} \le e^{\bar x}") == {r"\mathcal L", "y", "e", "x"}


def test_the_page_is_up_to_date():
    assert letters.PAGE.read_text(encoding="utf-8") == letters.page(), "run `make docs`"
