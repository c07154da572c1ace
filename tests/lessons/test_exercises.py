"""Every exercise has a solution that passes its grader, and a stub in its notebook that does not."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

from pspin_lite import lessons as lesson
from pspin_lite.lessons import exercises

ROOT = Path(__file__).resolve().parents[2]
STORED = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("number", exercises.everything())
def test_solutions_pass(number, capsys):
    found = exercises.find(number)
    found.grade(found.solution)
    assert lesson.exercise(number, found.solution)
    assert len(found.hint.split()) >= 5
    lesson.hint(number)
    assert found.hint in capsys.readouterr().out


@pytest.mark.parametrize("number", exercises.everything())
def test_nonsense_fails(number, capsys):
    """None, the wrong shape, an exception: said, not raised."""

    def unsolved(*args, **kwargs):
        raise NotImplementedError

    for answer in (lambda *args, **kwargs: None, lambda *args, **kwargs: "x", unsolved):
        assert not lesson.exercise(number, answer)
    said = capsys.readouterr().out
    assert "not yet" in said
    assert "yours to solve" in said


def test_a_verdict_shows_nothing():
    """Stored outputs hold the sentence alone, with and without a final semicolon."""
    from IPython.core.formatters import DisplayFormatter

    verdict = lesson.exercise("0.1", exercises.find("0.1").solution)
    assert DisplayFormatter().format(verdict) == ({}, {})


def calls(path: Path) -> dict[str, str]:
    """number -> source of the cell that calls lesson.exercise."""
    found = {}
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exercise":
                    found[node.args[0].value] = cell.source
    return found


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_notebooks_and_exercises_belong_together(path):
    mine = {number for number in exercises.everything() if int(number.split(".")[0]) == int(path.name[:2])}
    found = calls(path)
    assert set(found) == mine
    assert 3 <= len(mine) <= 5
    for number, source in found.items():
        assert "raise NotImplementedError" in source, f"{number}: the stored stub is solved"
    outputs = "".join(str(cell.get("outputs", "")) for cell in nbformat.read(path, 4).cells)
    for number in mine:
        assert f"exercise {number}: yours to solve" in outputs


def test_source_shows_the_code_folded_if_it_has_a_summary(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    lesson.source(lesson.show)
    lesson.source(lesson.show, summary="how <it> shows")
    plain, folded = (one.data for one in shown)
    assert plain.startswith("```python\ndef show(figure")
    assert folded == f"<details><summary>how &lt;it&gt; shows</summary>\n\n{plain}\n\n</details>"
