"""What notebook 00 says about the paper's seven claims. Verdicts and numbers come from the ledger (study.claims)."""

from __future__ import annotations

from typing import NamedTuple

from ..study.claims import pages

PAIR = "{gap:+.3f} ± {width:.3f}"
CLAIMS = (  # in a few words
    "Small",
    "Little data",
    "Bytes and subwords",
    "Settling pays",
    "Smooth learning",
    "Exact gradients",
    "Continual learning",
)


class Test(NamedTuple):
    number: int  # of the claim
    claim: str  # its id in the ledger
    asks: str
    measured: str  # with values of the ledger


ROWS = (
    Test(1, "footprint-byte", "takes 41.37 MB, uncompressed 116.62", "{mb:.2f} and {whole:.2f} MB"),
    Test(2, "eight-times", "with subwords, matches a Transformer at batch 64", PAIR),
    Test(
        3,
        "control",
        "with subwords, matches a Transformer at batch 1",
        PAIR + "; recent speeches {recent:+.3f} ± {recent_width:.3f}",
    ),
    Test(3, "control-bytes", "with bytes, matches a Transformer at batch 1", PAIR),
    Test(4, "recurrence", "with bytes, five steps are better than none", PAIR),
    Test(
        5,
        "smooth",
        "no validation loss is higher than the one before",
        "at the paper's size (two hours), {p_up} of {p_points} were higher; at ours, {up} of {points}",
    ),
    Test(
        6,
        "exact-trained",
        "within 0.1% of the true gradient in every layer",
        "in {few} of {layers} layers of {networks} networks",
    ),
    Test(
        7,
        "followed",
        "predicts speeches in chronological order better than three others",
        PAIR + " against a Transformer",
    ),
)


def evidence() -> str:
    """A Markdown table: a row per test with its claim, what was measured, the verdict. Three columns fit on a phone."""
    values, rows = pages.values(), [["claim, and our test", "measured", "verdict"]]
    for number, claim, asks, measured in ROWS:
        numbers = measured.format(**vars(values[claim.replace("-", "_")])).replace("-", "−")
        rows.append([f"**{number}. {CLAIMS[number - 1]}:** {asks}", numbers, pages.verdict(claim)])
    return pages.table(rows)
