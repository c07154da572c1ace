"""python -m pspin_lite ledger: what is stored, measured anew, or written; and answers of the second study."""

from __future__ import annotations

from ... import _checks as checks
from ... import _files as files
from .. import records
from ..questions.question import Question, criterion, questions
from . import documents, ledger
from .verdict import MARKS


def main(write: bool, ids: list[str] | None = None, folder: str | None = None) -> int:
    """Prints the stored ledger, written anew if `write`. With ids or a folder of records: measures those claims and
    answers those questions, or measures all claims."""
    if write and (ids or folder is not None):
        raise checks.wrong("--write", "ID or --records beside it", "neither: it writes all, from the stored records")
    if ids or folder is not None:
        _measure(ids, folder)
        return 0
    if write:
        ledger.write()
        for name, text in documents.pages().items():
            files.write_text(ledger.ROOT / "docs" / name, text)
        from . import pages  # draws, and so needs matplotlib

        pages.write()
    if ledger.in_checkout():
        _print_stored()
    else:
        _print_criteria()
    return 0


def _print_criteria() -> None:
    for claim in ledger.claims():
        print(f"{claim.id}: {claim.says} ({claim.section})\n    would hold: {claim.holds_if}")
    print("Verdicts are kept in a checkout of the repository. Here `ledger CLAIM` measures a claim that needs no run.")


def _print_stored() -> None:
    stored = ledger.results()
    for claim in ledger.claims():
        result = stored[claim.id]
        print(f"{MARKS[result.verdict]} {claim.id}: {claim.says} ({claim.section})")
        print(f"    {result.verdict}: {result.text}\n    repeat: {claim.command}")
    print(", ".join(f"{count} {verdict}" for verdict, count in ledger.tally(stored).items() if count))
    print(f"Questions of the second study: {', '.join(question.id for question in questions())}")


def _measure(ids: list[str] | None, folder: str | None) -> None:
    """Measures these claims, or all, and prints the stored result beside each. Answers these questions. Records in
    `folder` come first."""
    names, asked = [claim.id for claim in ledger.claims()], {question.id: question for question in questions()}
    for name in ids or ():
        checks.choice("claim or question", name, [*names, *asked])
    before = records.preferred()
    try:
        records.prefer(before if folder is None else folder)
        stored = ledger.results() if ledger.in_checkout() else {}
        for claim in ledger.claims():
            if claim.id in (ids or names):
                _compare(claim, stored.get(claim.id))
        for name, question in asked.items():
            if name in (ids or ()):
                _answer(question)
    finally:
        records.prefer(before)


def _compare(claim: ledger.Claim, stored: ledger.Result | None) -> None:
    with records.noted() as read:
        result = ledger.measures()[claim.id]()
    print(f"{MARKS[result.verdict]} {claim.id}: {claim.says} ({claim.section})")
    print("    stored: " + (f"{stored.verdict}: {stored.text}" if stored else "nothing"))
    print(f"    now: {result.verdict}: {claim.sentence(result)}")
    if stored:
        agree = "agree" if stored.verdict == result.verdict else "do not agree"
        print(f"    the verdicts {agree}{_from_the_folder(read)}", flush=True)


def _answer(question: Question) -> None:
    from ..questions import answers, page  # needs torch

    with records.noted() as read:
        rows = answers.answer(question)
    print(f"{question.id}: {question.asks}")
    print(f"    criterion: {criterion(question) or 'on docs/second_study.md of a checkout'}")
    for row in rows:
        splits = zip(records.SPLITS, page.by_split(row), strict=True)
        print("; ".join([f"    {row.about}: {page.answer(row)}", *(f"{name} {text}" for name, text in splits if text)]))
        for run in row.missing:
            print(f"        missing: {run}")
    print(f"    rests on {len(read)} records, intervals on the variance within groups too{_from_the_folder(read)}")
    for run in sorted(read):
        print(f"        {run}")


def _from_the_folder(read: set[str]) -> str:
    """How many of the records are from the folder: a verdict on stored ones alone says nothing of repeated runs."""
    folder = records.preferred()
    if folder is None:
        return ""
    return f"; {sum(map(records.is_preferred, read))} of {len(read)} records from {folder}"
