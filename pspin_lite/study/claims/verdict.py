"""The words of a verdict, and what a measurement returns."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _checks as checks

HOLDS, PART, FAILS, UNTESTABLE = "holds", "holds in part", "does not hold", "cannot be tested here"
WAITS = "waits for runs"
VERDICTS = (HOLDS, PART, FAILS, UNTESTABLE, WAITS)
MARKS = {HOLDS: "✓", PART: "◐", FAILS: "✗", UNTESTABLE: "–", WAITS: "…"}

Value = float | int | str


@dataclass(frozen=True)
class Measured:
    """A verdict and the values it rests on. The sentence that tells them is in claims.json."""

    verdict: str
    values: dict[str, Value]

    def __post_init__(self) -> None:
        checks.choice("verdict", self.verdict, VERDICTS)
