"""The seven claims of notebook 00 are claims of the ledger, and their numbers are there."""

from __future__ import annotations

from pspin_lite.lessons import seven_claims
from pspin_lite.study.claims import pages


def test_every_test_has_its_numbers():
    values = pages.values()
    for test in seven_claims.ROWS:
        text = test.measured.format(**vars(values[test.claim.replace("-", "_")]))
        assert any(letter.isdigit() for letter in text), test.claim
        assert len(test.asks.split()) <= 12
    assert [test.number for test in seven_claims.ROWS] == [1, 2, 3, 3, 4, 5, 6, 7]
    assert len(seven_claims.CLAIMS) == 7


def test_the_table_has_the_verdicts_of_the_ledger():
    rows = seven_claims.evidence().splitlines()[2:]
    assert len(rows) == len(seven_claims.ROWS)
    for test, row in zip(seven_claims.ROWS, rows, strict=True):
        assert row.startswith(f"| **{test.number}. {seven_claims.CLAIMS[test.number - 1]}:** {test.asks} |")
        assert row.endswith(f"| {pages.verdict(test.claim)} |")
