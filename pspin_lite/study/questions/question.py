"""A question of the second study: what it asks, which networks it compares, by which kind of criterion.

All of them are in questions.json, with the sentences that tell the answers. Networks are GROUP/NAME, with {alphabet}
for bytes or subwords.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ... import _checks as checks
from ... import _files as files
from ..intervals import Difference

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "second_study.md"  # of a checkout
SECTIONS = ("living", "steps", "repair", "moments", "controls", "ladder", "stack", "data", "rate", "gains", "noise")
SECTIONS += ("batches", "context", "sizes", "order")
Speeches = tuple[float, float] | None  # the interval of the bootstrap, where windows were kept


@dataclass(frozen=True)
class Question:
    id: str
    section: str
    asks: str
    kind: str  # of its criterion: a function of answers.py
    differences: tuple[tuple[str, ...], ...] = ()  # networks, the second taken from the first; or as the kind says
    words: dict[str, list[str]] = field(default_factory=dict)  # word -> tests of criteria.py, the first that is met
    alphabets: tuple[str, ...] = ("bytes", "subwords")
    together: str = ""  # the word of all rows, which is the answer only if all of them have it
    family: int = 0  # intervals that decide together; 0: as many as the question has
    about: str = ""  # what is compared, where the networks' names do not say it well

    @property
    def intervals(self) -> int:
        """By which the level of each is set. A difference counts once for every alphabet it is asked for."""
        return self.family or len(self.differences) * len(self.alphabets)


@dataclass(frozen=True)
class Row:
    """One answer: a verdict and the values it rests on, for each split."""

    question: Question
    about: str  # alphabet, networks or whatever else tells it from the question's other rows
    verdict: str
    values: tuple[tuple[Difference | float, ...], ...] = ()  # for each split, what is compared
    speeches: tuple[Speeches, ...] = ()  # for each split
    facts: tuple[str, ...] = ()  # what else is true, in a few words
    runs: tuple[str, ...] = ()  # that an answer waits for
    missing: tuple[str, ...] = ()  # of these
    key: str = ""  # by which a sentence calls it
    moving: bool = False  # runs of its groups are missing, so that the interval may still change


def questions(section: str | None = None) -> list[Question]:
    """Of a section, or all."""
    names = SECTIONS if section is None else (checks.choice("section", section, SECTIONS),)
    return [_question(name, row) for name in names for row in texts()["questions"][name]]


def _question(section: str, row: dict) -> Question:
    """JSON has lists where a Question has tuples."""
    given = {key: tuple(map(tuple, row[key])) for key in ("differences",) if key in row}
    given |= {key: tuple(row[key]) for key in ("alphabets",) if key in row}
    return Question(**row | given | {"section": section})


def criterion(question: Question) -> str:
    """In the words of the page, or of the question above it that it shares them with. Empty without a checkout."""
    words = ""
    for row in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else ():
        cells = row.strip("| ").split(" | ")
        if len(cells) == 3 and cells[0].endswith("?"):
            words = words if cells[2] == "the same words" else cells[2]
            if cells[0] == question.asks:
                return words
    return ""


@cache
def texts() -> dict:
    return files.read_json(HERE / "questions.json")
