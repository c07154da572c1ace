"""The ledger: every claim with its criterion, its measurement and its verdict.

    claims.json                      the claims, their criteria, the sentences that tell the measurements (claim.py)
    notebooks/records/verdicts.json  of the checkout, by claim: verdict and values; written by
                                     `python -m pspin_lite ledger --write` (command.py)

The measurements: paper_numbers (the figures printed in the paper), resources (memory and flops), state_space,
fixed_point, comparisons (which network is better), batch_size (the paper's two recipes), training_stability,
smoothness, continual_learning. docs/ledger.md, README and notebook 12 are rendered from these files, so that no text
can disagree with a measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ... import _checks as checks
from ... import _files as files
from ...training.runs import floats, in_json
from .. import records
from . import (
    batch_size,
    comparisons,
    continual_learning,
    fixed_point,
    paper_numbers,
    resources,
    smoothness,
    state_space,
    training_stability,
)
from .claim import HERE, OURS, Claim, claims
from .verdict import (
    FORMER,
    HOLDS,
    MARKS,
    NOT_SEEN,
    PART,
    REFUTED,
    UNDECIDED,
    UNTESTABLE,
    VERDICTS,
    WAITS,
    Measured,
    Value,
)

__all__ = ["FORMER", "HERE", "HOLDS", "MARKS", "NOT_SEEN", "OURS", "PART", "REFUTED", "ROOT", "UNDECIDED"]
__all__ += ["UNTESTABLE", "VERDICTS", "WAITS", "Claim"]
__all__ += ["Measured", "Result", "claims", "kinds", "markdown", "measures", "results", "tallied", "tally"]

ROOT = HERE.parents[2]  # the checkout, if there is one around the package
STORE = ROOT / "notebooks" / "records" / "verdicts.json"
COUNTED = paper_numbers.COUNTED | resources.MEASURES | state_space.MEASURES | fixed_point.COUNTED
OF_RUNS = (
    comparisons.MEASURES
    | batch_size.MEASURES
    | smoothness.MEASURES
    | training_stability.MEASURES
    | continual_learning.MEASURES
    | fixed_point.OF_RUNS
    | paper_numbers.OF_RUNS
)


@dataclass(frozen=True)
class Result(Measured):
    """A measurement with the sentence that tells it."""

    text: str


def measures() -> dict[str, Callable[[], Measured]]:
    """Claim -> the function that measures it, by counting or a small computation, or from the records of runs."""
    return COUNTED | OF_RUNS


def in_checkout() -> bool:
    """Verdicts are kept beside the records of the runs, which an installed package does not have."""
    return STORE.parent.is_dir()


def results() -> dict[str, Result]:
    """What is stored."""
    stored = {name: Measured(row["verdict"], floats(row["values"])) for name, row in files.read_json(STORE).items()}
    rows = {claim: stored[claim.id] for claim in claims() if claim.id in stored}
    return {claim.id: Result(row.verdict, row.values, claim.sentence(row)) for claim, row in rows.items()}


def write() -> None:
    """Measures every claim on the stored records."""
    if not in_checkout():
        raise files.FileError(f"{STORE}: verdicts are written into a checkout, and there is none around this package")
    if records.preferred() is not None:
        raise checks.wrong("ledger", f"records of {records.preferred()}", "the stored ones alone: records.prefer(None)")
    rows = {}
    for claim in claims():
        result = measures()[claim.id]()
        claim.sentence(result)  # has every value that its sentence needs, or nothing is written
        rows[claim.id] = {"verdict": result.verdict, "values": {k: _rounded(x) for k, x in result.values.items()}}
    files.write_json(STORE, in_json(rows))


def _rounded(value: Value) -> Value:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def tally(stored: dict[str, Measured]) -> dict[str, int]:
    return {verdict: sum(result.verdict == verdict for result in stored.values()) for verdict in VERDICTS}


def markdown(ids: list[str] | None = None) -> str:
    """All claims as a table, for notebook 12."""
    stored = results()
    lines = ["| | claim | measured | verdict |", "|---|---|---|---|"]
    for claim in claims():
        if ids is None or claim.id in ids:
            result = stored[claim.id]
            cells = (MARKS[result.verdict], f"{claim.says} ({claim.section})", result.text, result.verdict)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def kinds() -> dict[str, list[str]]:
    """Ids of claims by what they are."""
    ours = [claim.id for claim in claims() if claim.section == OURS]
    paper = [claim.id for claim in claims() if claim.section != OURS]
    plain = [claim.id for claim in claims() if claim.arithmetic]
    return {
        "claims of the paper that are plain arithmetic": plain,
        "others that need no training": [name for name in paper if name in COUNTED and name not in plain],
        "that do": [name for name in paper if name not in COUNTED],
        "controls of our own": ours,
    }


def tallied(stored: dict[str, Measured]) -> str:
    parts = []
    for kind, ids in kinds().items():
        counts = tally({name: stored[name] for name in ids}).items()
        listed = ", ".join(f"{count} {MARKS[verdict]} {verdict}" for verdict, count in counts if count)
        parts.append(f"{len(ids)} {kind}: {listed}")
    changed = sum(bool(claim.earlier_verdict) for claim in claims())
    return "; ".join(parts) + f". {changed} of them had another verdict by a criterion that was changed afterwards."
