"""A claim of the paper: what it says, what would count as holding, and the sentence that tells the measurement.

All texts are in claims.json. A sentence has its values in braces, as in str.format. `$name` stands for one of the
`phrases`, which several sentences share, or which a measurement turns into a value that is a string. Criteria that were
replaced are in a claim's `history`, and what was known when that happened is in `stages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from ... import _files as files
from .verdict import WAITS, Measured, Value

HERE = Path(__file__).resolve().parent
OURS = "not in the paper"  # the section of a control that we added


@dataclass(frozen=True)
class Change:
    """A criterion that was replaced."""

    when: str  # one of the stages
    known: str  # whether the claim's own result was known: yes, no, in part
    was: str
    why: str
    verdict: str = ""  # by the old criterion, if the new one changed it and the result was known


@dataclass(frozen=True)
class Claim:
    id: str
    section: str
    says: str
    holds_if: str
    command: str
    measured: str = ""
    added: str = ""  # the stage in which the claim was added; "" if it was there from the start
    arithmetic: bool = False  # true of any network of this shape, or a sum: counted apart
    history: tuple[Change, ...] = ()  # in the order of time

    @property
    def earlier_verdict(self) -> str:
        """By a criterion that was changed when the result was known; "" if the verdict is the same."""
        return next((change.verdict for change in reversed(self.history) if change.verdict), "")

    def template(self) -> str:
        """The sentence with its phrases filled in, and its values still in braces."""
        return Template(self.measured).substitute(_texts()["phrases"])

    def sentence(self, result: Measured) -> str:
        """What was measured, in words. A claim whose runs are missing or diverged says so instead."""
        if result.verdict == WAITS:
            return phrase("waits", **result.values)
        if "diverged" in result.values:
            return phrase("diverged", **result.values)
        return self.template().format(**result.values)


def claims() -> list[Claim]:
    rows = _texts()["claims"]
    return [Claim(**row | {"history": tuple(Change(**one) for one in row.get("history", ()))}) for row in rows]


def stages() -> dict[str, str]:
    """When criteria were changed or claims were added -> what was known by then."""
    return _texts()["stages"]


def phrase(name: str, **values: Value) -> str:
    return _texts()["phrases"][name].format(**values)


@cache
def _texts() -> dict:
    return files.read_json(HERE / "claims.json")
