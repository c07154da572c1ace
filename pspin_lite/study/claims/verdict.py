"""The words of a verdict, and what a measurement returns."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _checks as checks

HOLDS, PART = "holds", "holds in part"  # in part: a part of the claim does, and the sentence says which
REFUTED = "refuted"  # at any size, by arithmetic or a counterexample
NOT_SEEN = "not seen at this size"  # the runs exclude it, for networks like ours
UNDECIDED = "undecided"  # three seeds cannot tell
UNTESTABLE, WAITS = "cannot be tested here", "waits for runs"
VERDICTS = (HOLDS, PART, REFUTED, NOT_SEEN, UNDECIDED, UNTESTABLE, WAITS)
MARKS = dict(zip(VERDICTS, "✓◐✗○?–…", strict=True))
FORMER = "does not hold"  # before the second study: what is now one of the three in the middle

Value = float | int | str


@dataclass(frozen=True)
class Measured:
    """A verdict and the values it rests on. The sentence that tells them is in claims.json."""

    verdict: str
    values: dict[str, Value]

    def __post_init__(self) -> None:
        checks.choice("verdict", self.verdict, VERDICTS)
