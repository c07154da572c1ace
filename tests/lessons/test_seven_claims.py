"""The seven claims of notebook 00 are claims of the ledger, and their numbers are there."""

from __future__ import annotations

import re
from pathlib import Path

from pspin_lite.lessons import seven_claims
from pspin_lite.study.claims import pages

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "00_start_here.ipynb"


def test_every_test_has_its_numbers():
    values = pages.values()
    for test in seven_claims.ROWS:
        text = test.measured.format(**vars(values[test.claim.replace("-", "_")]))
        assert any(letter.isdigit() for letter in text), test.claim
        assert len(test.asks.split()) <= 12
    assert [test.number for test in seven_claims.ROWS] == [1, 2, 3, 3, 4, 5, 6, 7]


def test_both_tables_have_the_verdicts_of_the_ledger():
    overview, evidence = (table().splitlines()[2:] for table in (seven_claims.overview, seven_claims.evidence))
    assert len(overview) == len(seven_claims.CLAIMS) == 7
    assert len(evidence) == len(seven_claims.ROWS)
    for test, row in zip(seven_claims.ROWS, evidence, strict=True):
        assert row.endswith(f"| {pages.verdict(test.claim)} |")
        assert pages.verdict(test.claim) in overview[test.number - 1]
    assert "subwords: " in overview[2]
    assert "; bytes: " in overview[2]


def test_the_sections_and_notebooks_exist():
    sections = {f"section {number}" for number in re.findall(r"## (\d+)\. ", NOTEBOOK.read_text(encoding="utf-8"))}
    notebooks = {f"notebook {path.name[:2]}" for path in NOTEBOOK.parent.glob("[0-9][0-9]_*.ipynb")}
    assert {where for _, where in seven_claims.CLAIMS} <= sections | notebooks | {"this section"}
