"""The command `python -m pspin_lite experiments`: what there is of the study, what is missing, a run once more."""

from __future__ import annotations

import itertools
from pathlib import Path

from . import checks, experiments, files, paper_run, step_times
from .runs import Run

AGAIN = Path("again", "records")  # under --out: the newest record of each run that was repeated


def apart() -> dict:
    """Name -> module of what needs all cores, or a quiet machine: done only if it is named."""
    return dict.fromkeys(paper_run.MINUTES, paper_run) | {step_times.NAME: step_times}


def main(
    only: list[str], out: str, minutes: float | None = None, listing: bool = False, repeat: bool = False
) -> str | None:
    """Of runs that are named, or GROUP/ARM or GROUP; none: all but those apart.
    -> what stopped the work early, if anything did."""
    if minutes is not None and (not minutes > 0 or listing or repeat):
        raise checks.wrong("--minutes", f"{minutes:g}", "a number above 0, with neither --list nor --again beside it")
    if listing and repeat:
        raise checks.wrong("--list", "--again beside it", "one of the two")
    known = [name for name, _ in experiments.plan()] + list(apart())
    for prefix in only:
        _known(prefix, known)
    named = [name for name in known if experiments.wanted(name, only)]
    there = [name for name in named if _path(name).exists()]
    if listing:
        return _list(named)
    if repeat:
        return _beside(there if only else [], Path(out))
    done, stopped = experiments.work(only, Path(out), minutes) if set(named) - set(apart()) else (0, None)
    for name, module in apart().items():
        if only and name in named and name not in there and not stopped:
            done, stopped = done + 1, module.main(name, Path(out))
    if not done and not stopped:
        print("nothing to do: on record, or in the hands of another process (--list says which; --again repeats)")
    return stopped


def _known(prefix: str, names: list[str]) -> None:
    """Refuses a prefix of none of the names; the message has what there is beside it."""
    parts = prefix.split("/")
    for depth in range(len(parts)):
        beside = [name for name in names if experiments.wanted(name, ["/".join(parts[:depth])] if depth else [])]
        there = list(dict.fromkeys("/".join(name.split("/")[: depth + 1]) for name in beside))
        checks.choice("experiment", "/".join(parts[: depth + 1]), there)


def _path(name: str) -> Path:
    return experiments.RECORDS / f"{name}.json"


def _list(names: list[str]) -> None:
    waits = {name for name, job in experiments.plan() if job is None}
    for name in names:
        state = "waits for others" if name in waits else "missing"
        print(f"{name:<44}", _result(files.read_json(_path(name))) if _path(name).exists() else state)


def _result(record: dict) -> str:
    if "seconds" in record:
        return f"{sum(record['seconds'].values()):.2f} s for one step of each arm"
    bits, summary = f"{experiments.score(record):.4f} bits/byte", record["summary"]
    cut_off = summary is not None and summary["steps"] < record["config"]["model"]["steps"]
    return f"{bits} after {summary['steps']} steps" if cut_off else bits


def _beside(names: list[str], out: Path) -> str | None:
    """Repeats runs that are on record, keeps their records beside the runs, and prints both results. -> what stopped it
    early. Each time in a new folder, unless the last one was stopped."""
    if not names:
        raise checks.wrong("--again", "no run that is on record", "GROUP, GROUP/ARM or a run's name (see --list)")
    print(f"records of what is repeated: {out / AGAIN}", flush=True)
    for name in names:
        folder = next(folder for i in itertools.count(1) if not _over(name, folder := out / f"{name}-again-{i}"))
        try:
            found = apart().get(name, experiments).again(name, folder)
        except experiments.Interrupted as stopped:
            return str(stopped)
        experiments.write(name, found, out / AGAIN)
        print(f"{name}: {_result(found)}, on record {_result(files.read_json(_path(name)))}", flush=True)
    return None


def _over(name: str, folder: Path) -> bool:
    cut_off = name in paper_run.MINUTES and paper_run.spent(Run(folder)) >= 60 * paper_run.MINUTES[name]
    return cut_off or (folder / "summary.json").exists()
