"""docs/ledger.md and docs/criteria.md, rendered from the claims and their verdicts."""

from __future__ import annotations

from . import ledger
from .claim import Change, Claim, claims, stages
from .verdict import MARKS

LEDGER = """# The ledger

The claims of the paper that can be checked here, in our own words, and some controls that it leaves out. Each has its
criterion, what we measured, and the verdict. `python -m pspin_lite ledger --write` makes this page from
[claims.json](../pspin_lite/study/claims/claims.json) and the functions beside it.

**The runs.** Networks of about a million parameters read State of the Union speeches in windows of 128 tokens, with 3
seeds each. A verdict is about these runs. We chose the learning rate and the initial scale of each network on a fourth
seed, in runs a quarter as long, the *tries*. We chose them on the same validation texts that we report. At batch 64 the
warm-up and the decay of the rate fill a whole try and leave no plateau, which may favour high rates. Final scores are
on up to 131,072 tokens of a split, in windows spread evenly over it. That is all of it with subwords; with bytes it is
about a third of the held-out speeches and a quarter of the recent ones.

**How to read a difference.** `a ± b (sd)` is a mean and the standard deviation over seeds. The interval of a difference
comes from the variance between seeds of one network, pooled over all networks of a group. About thirty intervals decide
verdicts. They are widened so that all of them together are right in 95 of 100 such studies. Held-out and recent
speeches both decide. `bytes-1` and the like are groups of runs: the alphabet and the batch size.

**How to read a verdict.** *Refuted* is true at any size: by arithmetic or by a counterexample. *Not seen at this size*
means that our runs exclude it for networks like ours. *Undecided* means that three seeds cannot tell. *Holds in part*
means that a part of the claim holds, and the sentence says which. Until the second study the first three were one
verdict, *does not hold*. Claims that are plain arithmetic are counted apart.

**The criteria.** We wrote them down before the runs, but changed some afterwards. [criteria.md](criteria.md) has every
change, with the reason and what was known by then.

**The commands.** `ledger CLAIM` measures a claim that needs no run. `experiments NAME --again` repeats runs that are
on record; the stored records stay, and the new ones go to `runs/experiments/again/records`. `ledger CLAIM --records`
with that folder measures a claim on them; networks that were not repeated, whose variance counts too, come from the
stored records. Both print the stored verdict beside the new one. The network that ships, which `contracts`,
`exact-trained` and `smooth` examine too, is repeated by `train byte-lite`. `ledger --write` decides all verdicts anew
from the stored records.
"""

CRITERIA = """# The criteria, and how they changed

We wrote down what would count as holding before the runs. Some criteria were changed afterwards, and some claims were
added. This page has every change that could alter a verdict. The current criteria are in the [ledger](ledger.md);
`python -m pspin_lite ledger --write` makes both pages from
[claims.json](../pspin_lite/study/claims/claims.json).

Two claims, `precision` and `eight-times-bytes`, were first counted as the paper's and are now controls of ours. In
review 1 we also added tries beyond the highest learning rate. Before the second study a claim that failed was
marked "does not hold"; now it is refuted, not seen at this size, or undecided. `mixer` became a control of ours.
"""


def pages() -> dict[str, str]:
    """File in docs -> its text."""
    return {"ledger.md": ledger_page(), "criteria.md": criteria_page()}


def ledger_page() -> str:
    """Every claim, what would count as holding, and the command that repeats the measurement."""
    stored = ledger.results()
    parts = [_paragraphs(LEDGER), ledger.tallied(stored)]
    for claim in claims():
        one = stored[claim.id]
        parts.append(f"## {MARKS[one.verdict]} {claim.says}\n\n*{claim.section}* · `{claim.id}` · **{one.verdict}**")
        was = f" (Changed when the result was known: by the criterion before, *{claim.earlier_verdict}*.)"
        criterion = f"Criterion: {claim.holds_if}.{was if claim.earlier_verdict else ''}"
        parts.append(f"{criterion}\n\nMeasured: {one.text}.\n\n    {claim.command}")
    return "\n\n".join(parts) + "\n"


def criteria_page() -> str:
    parts = [_paragraphs(CRITERIA)]
    parts.append(_table(("stage", "what was known"), list(stages().items())))
    parts.append("## Criteria that changed\n\nThe last column says whether the claim's own result was known by then.")
    parts.append(_table(("claim", "criterion before", "criterion after", "why", "stage", "known"), _changes()))
    parts.append("## Claims that were added\n\nAll others are from the start.")
    added = {stage: [f"`{claim.id}`" for claim in claims() if claim.added == stage] for stage in stages()}
    rows = [(stage, ", ".join(names)) for stage, names in added.items() if names]
    parts.append(_table(("stage", "claims"), rows))
    return "\n\n".join(parts) + "\n"


def _changes() -> list[tuple[str, ...]]:
    """One row for all claims that changed alike."""
    names: dict[tuple[str, ...], list[str]] = {}
    for claim in claims():
        for index, change in enumerate(claim.history):
            names.setdefault(_row(claim, change, index), []).append(f"`{claim.id}`")
    return [(", ".join(ids), *row) for row, ids in names.items()]


def _row(claim: Claim, change: Change, index: int) -> tuple[str, ...]:
    now = claim.history[index + 1].was if index + 1 < len(claim.history) else claim.holds_if
    known = f"{change.known}: *{change.verdict}* before" if change.verdict else change.known
    return change.was, now, change.why, change.when, known


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows))


def _paragraphs(text: str) -> str:
    """A line per paragraph, as editors and diffs of rendered pages like it."""
    return "\n\n".join(" ".join(part.split("\n")) for part in text.strip().split("\n\n"))
