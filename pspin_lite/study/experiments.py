"""The command `python -m pspin_lite experiments`: what there is of the study, what is missing, a run once more.

A run's name is GROUP/ARM/RUN: an arm is one of the networks that a group compares (networks.py), and a run is one of
its tries or seeds (jobs.py).
"""

from __future__ import annotations

from pathlib import Path

from .. import _checks as checks
from .. import _files as files
from ..training.runs import Run
from . import jobs, linear_share, paper_size, step_times, store

AGAIN = Path("again", "records")  # under --out: the newest record of each run that was repeated


def apart() -> dict:
    """Name -> module of what needs all cores, or a quiet machine: done only if it is named."""
    return dict.fromkeys(paper_size.MINUTES, paper_size) | {
        step_times.NAME: step_times,
        linear_share.NAME: linear_share,
    }


def main(
    only: list[str], out: str, minutes: float | None = None, listing: bool = False, repeat: bool = False
) -> str | None:
    """Of runs that are named, or GROUP/ARM or GROUP; none: all but those apart.
    -> what stopped the work early, if anything did."""
    if minutes is not None and (not minutes > 0 or listing or repeat):
        raise checks.wrong("--minutes", f"{minutes:g}", "a number above 0, with neither --list nor --again beside it")
    if listing and repeat:
        raise checks.wrong("--list", "--again beside it", "one of the two")
    with jobs.at_work(Path(out)) as records:
        names = _names()
        for prefix in only:
            _check(prefix, names)
        named = [name for name in names if jobs.matches(name, only)]
        if listing:
            return _list(named)
        if repeat:
            return _repeat([name for name in named if name in records] if only else [], Path(out))
        done, stopped = jobs.work(only, Path(out), minutes) if set(named) - set(apart()) else (0, None)
        for name, module in apart().items():
            if only and name in named and name not in records and not stopped:
                done, stopped = done + 1, module.main(name, Path(out))
    if not done and not stopped:
        print("nothing to do: on record, or in the hands of another process (--list says which; --again repeats)")
    return stopped


def publish(out: str) -> list[str]:
    """Takes the records of finished runs under `out` into notebooks/records of the checkout. -> their names. A record
    that is published already stays as it is."""
    if not store.PUBLISHED.parent.is_dir():
        raise files.FileError(f"{store.PUBLISHED}: not there: records are published in a checkout of the project")
    finished, published = store.Store(Path(out) / jobs.RECORDS), store.Store(store.PUBLISHED)
    with jobs.at_work(Path(out)):
        names = [name for name in finished.names() if name not in published]
        unknown = sorted(set(names) - set(_names()))
    if unknown:
        raise checks.wrong("--publish", f"{', '.join(unknown)} under {out}", "runs of the study alone (see --list)")
    store.publish({name: finished.stored(name) for name in names}, store.PUBLISHED)
    for name in names:
        print(f"{name}: {_result(finished.stored(name))}, published")
    if not names:
        print(f"nothing to publish: {out} has no record that is not in {store.PUBLISHED}")
    return names


def _names() -> list[str]:
    """Of all runs of the study."""
    return [name for name, _ in jobs.plan()] + list(apart())


def _check(prefix: str, names: list[str]) -> None:
    """Refuses a prefix of none of the names; the message lists those that share as much of it as any does."""
    parts = prefix.split("/")
    for depth in range(len(parts)):
        siblings = [name for name in names if jobs.matches(name, ["/".join(parts[:depth])] if depth else [])]
        choices = list(dict.fromkeys("/".join(name.split("/")[: depth + 1]) for name in siblings))
        checks.choice("experiment", "/".join(parts[: depth + 1]), choices)


def _list(names: list[str]) -> None:
    waits = {name for name, job in jobs.plan() if job is None}
    records = store.current()
    for name in names:
        state = "waits for others" if name in waits else "missing"
        print(f"{name:<44}", _result(records.stored(name)) if name in records else state)


def _result(record: dict) -> str:
    if "seconds" in record:
        return f"{sum(record['seconds'].values()):.2f} s for one step of each arm"
    if "networks" in record:
        return ", ".join(f"{name.split('/')[1]} {share:.0%}" for name, share in linear_share.means(record).items())
    bits, summary = f"{jobs.score(record):.4f} bits/byte", record["summary"]
    cut_off = summary is not None and summary["steps"] < record["config"]["model"]["steps"]
    return f"{bits} after {summary['steps']} steps" if cut_off else bits


def _repeat(names: list[str], out: Path) -> str | None:
    """Repeats runs that are on record, keeps their records beside the runs, and prints both results. -> what stopped it
    early."""
    if not names:
        raise checks.wrong("--again", "no run that is on record", "GROUP, GROUP/ARM or a run's name (see --list)")
    print(f"records of what is repeated: {out / AGAIN}", flush=True)
    for name in names:
        try:
            result = apart().get(name, jobs).again(name, _next_folder(name, out))
        except jobs.Interrupted as stopped:
            return str(stopped)
        store.write(name, result, out / AGAIN)
        print(f"{name}: {_result(result)}, on record {_result(store.current().stored(name))}", flush=True)
    return None


def _next_folder(name: str, out: Path) -> Path:
    """NAME-again-N with the first N whose run is not over: that of a repetition that was stopped, or a new one."""
    count = 1
    while _over(name, out / f"{name}-again-{count}"):
        count += 1
    return out / f"{name}-again-{count}"


def _over(name: str, folder: Path) -> bool:
    cut_off = name in paper_size.MINUTES and paper_size.spent(Run(folder)) >= 60 * paper_size.MINUTES[name]
    return cut_off or (folder / "summary.json").exists()
