"""One letter, one meaning: the table has no letter twice, and every equation keeps to it."""

from __future__ import annotations

import re
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


HOME = {  # letters that invite a second meaning -> the notebooks that use them in the table's
    "A": {"05", "06"},
    "B": {"06", "08", "10", "13"},
    "C": {"01", "02", "03", "08"},
    "E": {"08", "13"},
    "H": {"08", "10"},
    "L": {"00", "08", "10"},
    "M": {"01", "02", "03"},
    "N": {"08"},
    "S": {"01", "02", "03"},
    "d": {"01", "02", "08"},
    "g": {"00", "01", "02", "03"},
    "h": {"00", "01", "02", "03"},
    "p": {"00", "10"},
    "r": set(),
    "s": {"00", "04", "05"},
}


def misused(number: str, formula: str) -> set[str]:
    """Letters that a formula of this notebook takes for something else: away from home, or a step that is no index."""
    away = {letter for letter in letters.letters(formula) if number not in HOME.get(letter, {number})}
    counts = re.sub(r"[_^](?:(?:\\[a-z]+)?\{[^{}]*\}|.)", " ", formula)  # y_n and its like are steps
    return away | (letters.letters(counts) & {"n"})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_letter_is_taken_for_something_else(path):
    for text in texts(path):
        for formula in letters.formulas(text.replace(letters.first(), "")):
            assert misused(path.name[:2], formula) == set(), formula


def test_a_letter_taken_for_something_else_is_noticed():
    assert misused("03", r"o = AB") == {"A", "B"}
    assert misused("06", r"A = \widehat W_{\mathrm{int}}") == set()
    assert misused("05", r"f_n = z + (\gamma \odot y_{n-1})") == set()
    assert misused("05", r"2n \times n") == misused("04", r"\sqrt n") == {"n"}
    assert misused("09", r"2.12 \cdot \log 2 \cdot r = 4.8004") == {"r"}


def test_the_first_notebook_lists_the_first_letters():
    assert letters.first() in "\n".join(texts(NOTEBOOKS[0])), "its table is `letters.first()`"
    assert len(letters.FIRST) <= 15


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
