"""The ledger: the paper's claims that can be checked here, what would count as holding, what we measured, the verdict.

    claims.json    id, section, the claim in our own words, what would count as holding, the command that repeats it,
                   and for README the measurement in a few words
    results.json   by id: values, a sentence made from them, the verdict; made by `python -m pspin_lite ledger --write`
                   from the functions in printed.py (the paper's own figures), counted.py (counts and small
                   computations), mixing.py (the state space), equilibrium.py (the fixed point), and from the study's
                   records in trained.py (which network is better), recipes.py (the paper's two recipes), dynamics.py
                   (how training goes) and in_time.py (continual learning)

`python -m pspin_lite ledger CLAIM` measures a claim alone, beside its stored result; with --records FOLDER on runs that
were repeated. README (front.py) and notebook 12 are rendered from these files, so that no text can disagree with a
measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .. import checks, files, records
from ..runs import floats, in_json

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOLDS, PART, FAILS, UNTESTABLE = "holds", "holds in part", "does not hold", "cannot be tested here"
WAITS = "waits for runs"  # of the study: which ones is said
VERDICTS = (HOLDS, PART, FAILS, UNTESTABLE, WAITS)
INTRODUCTION = (
    "The claims of the paper that can be checked here, in our own words, and some controls that it leaves out; what "
    "we would count as holding; what was measured; the verdict. Made by `python -m pspin_lite ledger --write` from "
    "[claims.json](../pspin_lite/ledger/claims.json) and the functions beside it; not to be edited by hand.\n\n"
    "The runs: networks of about a million parameters, State of the Union speeches, windows of 128 tokens, 3 seeds. "
    "Learning rate and initial scale of each arm were chosen on a fourth seed, in runs a quarter as long, by the same "
    "validation texts on which the results are given. (Such a try has the warm-up and the decay of a whole run, at "
    "batch 64 shrunk to fill it: there the rate has no plateau, which may favour high ones.) A verdict is about these "
    "runs. `a ± b (sd)` is a mean and the standard deviation over seeds; a difference has its 95% interval, of pairs "
    "with the same seed, which (with the same alphabet and batch size) read the same sequences in the same order. "
    "Scores at the end are on up to 131,072 tokens of a split in windows spread evenly over it: with subwords all of "
    "it, with bytes about a third of the held-out speeches and a quarter of the recent ones. A difference is *clear* "
    "if its interval lies on one side of zero; among as many intervals as there are here a few are clear by chance. "
    "Who claims an effect has to show it: one that three seeds cannot tell from none does not hold, which is no proof "
    "of the opposite.\n\n"
    "Criteria were first written down before the runs. Some were mended while the first two seeds of five arms of "
    "`bytes-1` came in: margins are now held against intervals instead of means, a model's own jitter is measured "
    "against two others instead of the mean of all, the value of context on the same bytes instead of by place, the "
    "largest gradient beside the 99th percentile, contraction where five steps end, `recurrence` asks for K = 1 too, "
    "`mixer` and `followed` for what the paper says instead of parity. Those of `decay` and `exact-trained` were "
    "reworded after they had been measured; `swiglu-subwords` and its arm were added when the first seed of p-Spin "
    "and of the Transformer with subwords was in. After a review, with all results but those of the waiting claims "
    'known: `damped` is decided by the gradients\' noise next to K = 0 alone (it was "in part", by any of eight '
    "comparisons), `credit` asks for some worth at all, `bytes-unstable` is not decided with windows of equal length, "
    "`footprint-byte` and `logits-factor` take in the whole sentence of the paper; `chaotic`, `either-alphabet` and "
    "`memory-attention` were added; those of `asymptote` and `large-batch` were changed before their runs. Tries "
    "beyond the highest rate were added then, too. After a second review, with `bytes-64/transformer` known and the "
    "other runs at batch 64 not: `exact-trained` and `settled` count as holding in part from half of the layers on "
    '(they were "in part" by any layer), `memory-attention` and `footprint-byte` take the paper at its wider word '
    '("does not hold" and "in part" before), `bytes-behind` is held against the paper\'s baseline; `complexity`, '
    "`context-length`, `edge` and `complete` were added; `eight-times-bytes` counts as a control of ours. After a "
    'third, with all but p-Spin with subwords at batch 64 known: `layer-bits` has no "in part", `gradients` is held '
    "against all other networks, `cost` is timed anew and asks for both alphabets, `retention` is decided by "
    "intervals; `large-batch` is about subwords (that with bytes is `large-batch-bytes`); `isolates`, `same-inside` "
    "and `paper-losses` were added. (The first criterion of `mixer`, a mean at most 0.02 above, was given up before "
    "its runs, and would have held; that its interval has to end there was added when they were known.) After a "
    "fourth, with all results known: `contracts`, `settled` and `exact-trained` look at all p-Spin networks, not only "
    "those with bytes at batch 1; `chaotic` counts the noise scale too; `eight-times-untuned`, `optimised`, "
    "`outperforms`, `others-unstable`, `credit-subwords`, `rows`, `chunks`, `mask` and `reserved` were added; before "
    "the runs of the paper's size, `time-a-step` is held against times of ours too. The history of claims.json has "
    "the old criteria.\n\n"
    "Commands: `experiments NAME --again` repeats runs that are on record; the records stay, those of the repetitions "
    "go to `runs/experiments/again/records`. `ledger CLAIM --records` with that folder measures a claim on them, "
    "`ledger CLAIM` one that needs no run; both print the stored verdict and the one found. (The network that ships, "
    "at which `contracts`, `exact-trained` and `smooth` look too, is repeated by `train byte-lite`.) `ledger --write` "
    "decides all verdicts anew from the stored records."
)
MARKS = {HOLDS: "✓", PART: "◐", FAILS: "✗", UNTESTABLE: "–", WAITS: "…"}


@dataclass(frozen=True)
class Measured:
    """What a claim's function returns. `text` has the values in braces, as in str.format."""

    verdict: str
    text: str
    values: dict[str, float | int | str]

    def __post_init__(self) -> None:
        checks.choice("verdict", self.verdict, VERDICTS)
        self.said()

    def said(self) -> str:
        return self.text.format(**self.values)


@dataclass(frozen=True)
class Claim:
    id: str
    section: str
    says: str
    holds_if: str
    command: str
    brief: str = ""  # the measurement in a few words, for README; "" if README does not show it
    was: str = ""  # the verdict by an earlier criterion, if that was changed with the result known, and the verdict too


def claims() -> list[Claim]:
    return [Claim(**one) for one in files.read_json(HERE / "claims.json")["claims"]]


def results() -> dict[str, Measured]:
    found = files.read_json(HERE / "results.json")
    return {name: Measured(**one | dict(values=floats(one["values"]))) for name, one in found.items()}


def counted_measures() -> dict:
    """Claim -> the function that measures it, by counting or a small computation."""
    from . import counted, equilibrium, mixing, printed

    return printed.COUNTED | counted.MEASURES | mixing.MEASURES | equilibrium.COUNTED


def measures() -> dict:
    """All of them, with those that read the records of runs."""
    from . import dynamics, equilibrium, in_time, printed, recipes, trained

    of_runs = (trained.MEASURES, recipes.MEASURES, dynamics.MEASURES, in_time.MEASURES)
    of_runs += (equilibrium.OF_RUNS, printed.OF_RUNS)
    return counted_measures() | {name: one for some in of_runs for name, one in some.items()}


def write() -> None:
    if records.preferred() is not None:
        raise checks.wrong("ledger", f"records of {records.preferred()}", "the stored ones alone: records.prefer(None)")
    known = measures()
    found = {claim.id: known[claim.id]() for claim in claims()}
    values = {
        name: dict(verdict=one.verdict, text=one.text, values={key: _rounded(x) for key, x in one.values.items()})
        for name, one in found.items()
    }
    files.write_json(HERE / "results.json", in_json(values))


def _rounded(x: float | int | str) -> float | int | str:
    return float(f"{x:.9g}") if isinstance(x, float) else x


def tally(found: dict[str, Measured]) -> dict[str, int]:
    return {verdict: sum(one.verdict == verdict for one in found.values()) for verdict in VERDICTS}


def markdown(ids: list[str] | None = None) -> str:
    """All claims as a table, for notebook 12."""
    found = results()
    lines = ["| | claim | measured | verdict |", "|---|---|---|---|"]
    for claim in claims():
        if ids is None or claim.id in ids:
            one = found[claim.id]
            lines.append(f"| {MARKS[one.verdict]} | {claim.says} ({claim.section}) | {one.said()} | {one.verdict} |")
    return "\n".join(lines)


def page() -> str:
    """docs/ledger.md: every claim, what would count as holding, and the command that repeats the measurement."""
    found = results()
    parts = ["# The ledger", INTRODUCTION, tallied(found)]
    for claim in claims():
        one = found[claim.id]
        parts.append(f"## {MARKS[one.verdict]} {claim.says}\n\n*{claim.section}* · `{claim.id}` · **{one.verdict}**")
        was = f" (Changed when the result was known: by the criterion before, *{claim.was}*.)" if claim.was else ""
        parts.append(f"Would hold: {claim.holds_if}.{was}\n\nMeasured: {one.said()}.\n\n    {claim.command}")
    return "\n\n".join(parts) + "\n"


OURS = "not in the paper"


def kinds() -> dict[str, list[str]]:
    """Ids of claims by what they are."""
    small = counted_measures()
    ours = [claim.id for claim in claims() if claim.section == OURS]
    paper = [claim.id for claim in claims() if claim.section != OURS]
    return {
        "claims of the paper that need no training": [name for name in paper if name in small],
        "that do": [name for name in paper if name not in small],
        "controls of our own": ours,
    }


def tallied(found: dict[str, Measured]) -> str:
    parts = []
    for kind, ids in kinds().items():
        counts = tally({name: found[name] for name in ids}).items()
        listed = ", ".join(f"{count} {MARKS[verdict]} {verdict}" for verdict, count in counts if count)
        parts.append(f"{len(ids)} {kind}: {listed}")
    changed = sum(bool(claim.was) for claim in claims())
    return "; ".join(parts) + f". {changed} of them had another verdict by a criterion that was changed afterwards."


def anew(ids: list[str]) -> None:
    """Measures these claims, and prints what is stored and what was found."""
    stored, known = results(), measures()
    for claim in (claim for claim in claims() if claim.id in ids):
        with records.noted() as read:
            found = known[claim.id]()
        print(f"{MARKS[found.verdict]} {claim.id}: {claim.says} ({claim.section})")
        before = stored.get(claim.id)
        print("    stored: " + (f"{before.verdict}: {before.said()}" if before else "nothing"))
        print(f"    now: {found.verdict}: {found.said()}")
        same = before is not None and before.verdict == found.verdict
        print(f"    the verdicts {'agree' if same else 'do not agree'}{_of_the_folder(read)}", flush=True)


def _of_the_folder(read: set[str]) -> str:
    """How much of what was read is of the folder: a verdict on stored records alone says nothing of repeated runs."""
    folder = records.preferred()
    if folder is None:
        return ""
    return f"; {sum(records.path(name).is_relative_to(folder) for name in read)} of {len(read)} records from {folder}"


def main(write_it: bool, ids: list[str] | None = None, folder: str | None = None) -> int:
    """Prints the stored ledger, written anew if `write_it`. With ids or a folder of records: measures those claims, or
    all."""
    if write_it and (ids or folder is not None):
        raise checks.wrong("--write", "CLAIM or --records beside it", "neither: it writes all, from the stored records")
    if ids or folder is not None:
        known = [claim.id for claim in claims()]
        for name in ids or ():
            checks.choice("claim", name, known)
        before = records.preferred()
        try:
            records.prefer(before if folder is None else folder)
            anew(ids or known)
        finally:
            records.prefer(before)
        return 0
    if write_it:
        write()
        files.write_text(ROOT / "docs" / "ledger.md", page())
        from . import front

        front.write()
    found = results()
    for claim in claims():
        one = found[claim.id]
        print(f"{MARKS[one.verdict]} {claim.id}: {claim.says} ({claim.section})\n    {one.verdict}: {one.said()}")
        print(f"    repeat: {claim.command}")
    print(", ".join(f"{count} {verdict}" for verdict, count in tally(found).items() if count))
    return 0
