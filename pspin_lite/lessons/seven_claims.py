"""What notebook 00 says about the paper's seven claims. Verdicts and numbers come from the ledger (study.claims)."""

from __future__ import annotations

from typing import NamedTuple

from ..study.claims import pages

PAIR = "{gap:+.3f} ± {width:.3f}"
CLAIMS = (  # the claim in a few words, and where it is explained
    ("it is small", "section 6"),
    ("it learns from little data", "this section"),
    ("it works with bytes as well as with subwords", "notebook 11"),
    ("settling pays", "section 7"),
    ("it learns smoothly", "notebook 10"),
    ("its gradients are exact", "section 8"),
    ("it is uniquely suited to continual learning", "notebook 13"),
)


class Test(NamedTuple):
    number: int  # of the claim
    claim: str  # its id in the ledger
    asks: str
    opponent: str
    measured: str  # with values of the ledger


ROWS = (
    Test(1, "footprint-byte", "takes 41.37 MB, uncompressed 116.62 MB", "", "{mb:.2f} and {whole:.2f} MB"),
    Test(2, "eight-times", "subwords: matches, from an eighth of the sequences", "Transformer, batch 64", PAIR),
    Test(
        3,
        "control",
        "subwords: matches, from the same sequences",
        "Transformer, batch 1",
        PAIR + "; recent speeches {recent:+.3f} ± {recent_width:.3f}",
    ),
    Test(3, "control-bytes", "bytes: matches, from the same sequences", "Transformer, batch 1", PAIR),
    Test(4, "recurrence", "bytes: five steps are better than none", "itself, without steps", PAIR),
    Test(
        5,
        "smooth",
        "no validation is worse than the one before",
        "",
        "paper's size, two hours: {p_up} of {p_points}; our size: {up} of {points}",
    ),
    Test(
        6,
        "exact-trained",
        "within 0.1% of the true gradient in every layer",
        "",
        "in {few} of {layers} layers of {networks} networks",
    ),
    Test(
        7,
        "followed",
        "in chronological order: better than three others",
        "the best of them, Transformer, batch 1",
        PAIR,
    ),
)


def overview() -> str:
    """A Markdown table: a row per claim, its verdict, where it is explained."""
    rows = [["claim", "verdict", "explained in"]]
    for number, (says, where) in enumerate(CLAIMS, 1):
        verdicts = [(test.asks.partition(":")[0], pages.verdict(test.claim)) for test in ROWS if test.number == number]
        several = len(verdicts) > 1
        verdict = "; ".join(f"{which}: {one}" if several else one for which, one in verdicts)
        rows.append([f"{number}. {says}", verdict, where])
    return pages.table(rows)


def evidence() -> str:
    """A Markdown table: a row per test, against whom, what was measured, the verdict."""
    values, rows = pages.values(), [["claim", "the test", "against", "measured", "verdict"]]
    for number, claim, asks, opponent, measured in ROWS:
        numbers = measured.format(**vars(values[claim.replace("-", "_")])).replace("-", "−")
        rows.append([str(number), asks, opponent, numbers, pages.verdict(claim)])
    return pages.table(rows)
