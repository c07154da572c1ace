"""Every equation of the paper has a line that implements it and a test that checks it, both by name."""

from __future__ import annotations

import pytest

from pspin_lite.tools import equation_map, equations

IDS = [eq.id for eq in equations.EQUATIONS]


def test_displayed_equations_are_all_here_in_order():
    assert [eq.number for eq in equations.EQUATIONS if eq.number] == list(range(1, 17))
    assert len(set(IDS)) == len(IDS)


def test_every_equation_has_a_line():
    places = equation_map.in_code()
    assert not [i for i in IDS if i not in places], "no line of the package names these"
    assert not [i for i in places if i not in IDS], "the package names equations that are not registered"


def test_every_equation_has_a_test():
    tests = equation_map.in_tests()
    assert not [i for i in IDS if i not in tests], "no test carries pytest.mark.eq for these"
    assert not [i for i in tests if i not in IDS], "tests name equations that are not registered"


def test_a_missing_line_or_test_is_noticed(tmp_path):
    for folder in ("pspin_lite", "kernels", "tests"):
        (tmp_path / folder).mkdir()
        for path in (equation_map.ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            text = text.replace("Eq. ssm-mask", "").replace('"spin-slopes"', '"spin-output"')
            place = tmp_path / path.relative_to(equation_map.ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    assert "ssm-mask" not in equation_map.in_code(tmp_path)
    assert "spin-slopes" not in equation_map.in_tests(tmp_path)


def test_a_folder_that_has_moved_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="kernels"):
        equation_map.in_code(tmp_path)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.py").touch()
    with pytest.raises(FileNotFoundError, match="pspin_lite"):
        equation_map.in_code(tmp_path)
    with pytest.raises(FileNotFoundError, match="tests"):
        equation_map.in_tests(tmp_path)


def test_the_page_is_up_to_date():
    assert equation_map.PAGE.read_text(encoding="utf-8") == equation_map.page(), "run `make docs`"


def test_the_page_names_places():
    page = equation_map.page()
    assert "`attractor.py` `_Equilibrium.backward.step`" in page
    assert "`test_attractor.py` `test_gradient_is_the_papers_series`" in page
    assert all(one.on in page and one.because in page for one in equations.SILENT)
