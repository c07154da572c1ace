"""Where the records of runs are kept, and how they are written. What they say is in records.py.

A record is a JSON object with the name GROUP/NETWORK/RUN. A folder of records holds them in either of two forms.

A run at work    one file per run, NAME.json, under --out
Published        two files per group, in notebooks/records of a checkout
                 GROUP.jsonl  one line per run, sorted by name, which comes first in the line
                 GROUP.npz    the numbers of every step, one array per run and entry: NETWORK/RUN/loss

Both forms give back the same record, exactly. In a published line

    "loss": {"decimals": 3, "length": 8000}    stands for an array of integers, each of them 1,000 times the number;
                                               "probe", a list of pairs, has decimals for either column
    "validation": {"step": [..], ..}           stands for a list of objects with these keys, one list per key

An integer divided by a power of ten is the float nearest to that decimal, so numbers that were rounded to some decimals
come back as they were. A list that has no such decimals stays in the line. Writing the same records twice gives the
same bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from .. import _checks as checks
from .. import _files as files
from ..training.runs import in_json

PUBLISHED = Path(__file__).resolve().parents[2] / "notebooks" / "records"  # not there if the package was installed
# Entries with a number, or several, for every step or every window
STEPS = ("loss", "norm", "probe", "windows held-out", "windows recent")
TABLES = ("validation", "attractor", "noise")  # entries with an object for every measurement
MOST_DECIMALS = 12


class Store:
    """Records of several folders; where two have the same name, that of the first folder counts.

    preferred: a folder whose records take the place of those of the same name. Any others in it are not looked at,
    unless none of the folders exists."""

    def __init__(self, *folders: str | Path, preferred: str | Path | None = None):
        self.folders = tuple(dict.fromkeys(Path(folder).resolve() for folder in folders))
        self.preferred = None if preferred is None else Path(preferred).resolve()
        self._notes: list[set[str]] = []  # one set for each `noted` that is open
        if self.preferred is not None:
            self._check_preferred(self.preferred)

    def _check_preferred(self, folder: Path) -> None:
        expected = "a folder of records, as `experiments NAME --again` writes it"
        if not folder.is_dir():
            raise checks.wrong("records", f"{folder}, which is no folder", expected)
        if not any(self.is_preferred(name) for name in _names(folder)):
            raise checks.wrong("records", f"{folder} with no record in it that has the name of a stored one", expected)

    def _places(self) -> list[Path]:
        places = [folder for folder in self.folders if folder.is_dir()]
        return [self.preferred] if not places and self.preferred is not None else places

    def exists(self) -> bool:
        """Whether there is any folder to read."""
        return bool(self._places())

    def names(self, prefix: str = "") -> list[str]:
        """Sorted, of all records, or of those whose name is `prefix` or begins with "prefix/"."""
        names = {name for folder in self._places() for name in _names(folder)}
        return sorted(name for name in names if not prefix or name == prefix or name.startswith(prefix + "/"))

    def __contains__(self, name: str) -> bool:
        return any(_has(folder, name) for folder in self._places())

    def is_preferred(self, name: str) -> bool:
        """Whether `read` takes it from the preferred folder."""
        return self.preferred is not None and _has(self.preferred, name) and name in self

    def read(self, name: str) -> dict:
        """A record. Not to be written to: every reader gets the same object."""
        for names in self._notes:
            names.add(name)
        return _read(self.preferred, name) if self.is_preferred(name) else self.stored(name)

    def stored(self, name: str) -> dict:
        """As `read`, whatever is preferred."""
        for folder in self._places():
            if _has(folder, name):
                return _read(folder, name)
        raise files.FileError(f"no record {name!r} in {', '.join(map(str, self.folders))}")

    @contextmanager
    def noted(self) -> Iterator[set[str]]:
        """The names of all records that are read meanwhile."""
        names: set[str] = set()
        self._notes.append(names)
        try:
            yield names
        finally:
            self._notes.pop()


class _Current:
    store = Store(PUBLISHED)


def current() -> Store:
    """The store that everything reads: the published records, unless `using` or `use` says otherwise."""
    return _Current.store


def use(store: Store) -> None:
    _Current.store = store


@contextmanager
def using(*folders: str | Path, preferred: str | Path | None = None) -> Iterator[Store]:
    """Within it, records are read from these folders; without any, from those of before."""
    before = current()
    use(Store(*(folders or before.folders), preferred=preferred))
    try:
        yield current()
    finally:
        use(before)


# Reading a folder. Files are parsed once, and again when they have changed.


def _names(folder: Path) -> Iterator[str]:
    for path in folder.glob("*.jsonl"):
        yield from _group(path)
    for path in folder.rglob("*.json"):
        yield path.relative_to(folder).with_suffix("").as_posix()


def _has(folder: Path, name: str) -> bool:
    return (folder / f"{name}.json").is_file() or name in _group(_group_file(folder, name))


def _read(folder: Path, name: str) -> dict:
    single = folder / f"{name}.json"
    if single.is_file():
        return _parse_file(single, _version(single))
    path = _group_file(folder, name)
    arrays = path.with_suffix(".npz")
    return _parse_line(path, _version(path), arrays, _version(arrays) if arrays.exists() else (), name)


def _group_file(folder: Path, name: str) -> Path:
    return folder / f"{name.partition('/')[0]}.jsonl"


def _version(path: Path) -> tuple[int, ...]:
    state = path.stat()
    return state.st_ino, state.st_mtime_ns, state.st_size


def _group(path: Path) -> dict[str, dict]:
    return _parse_group(path, _version(path)) if path.is_file() else {}


@cache
def _parse_file(path: Path, version: tuple[int, ...]) -> dict:
    return files.read_json(path)


@cache
def _parse_group(path: Path, version: tuple[int, ...]) -> dict[str, dict]:
    """Name -> its line."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {line.pop("name"): line for line in lines}
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise files.FileError(f"{path}: not a file of records, one per line: {error!r}") from error


@cache
def _parse_line(path: Path, version: tuple, arrays: Path, version_of_arrays: tuple, name: str) -> dict:
    line = _parse_group(path, version)[name]
    try:
        return {entry: _unpack(name, entry, value, arrays, version_of_arrays) for entry, value in line.items()}
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise files.FileError(f"{arrays}: does not fit {path.name}, {name}: {error!r}") from error


def _unpack(name: str, entry: str, value: object, arrays: Path, version: tuple) -> object:
    if not isinstance(value, dict):
        return value
    if entry in TABLES:
        return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    if entry not in STEPS:
        return value
    integers = _open_arrays(arrays, version)[_array(name, entry)]
    if len(integers) != value["length"]:
        raise ValueError(f"{entry} has {len(integers)} steps, expected {value['length']}")
    if isinstance(value["decimals"], int):
        return _numbers(integers, value["decimals"])
    columns = zip(integers.T, value["decimals"], strict=True)
    return [list(row) for row in zip(*(_numbers(column, decimals) for column, decimals in columns), strict=True)]


def _numbers(integers: np.ndarray, decimals: int) -> list:
    return (integers / 10**decimals if decimals else integers).tolist()


@cache
def _open_arrays(path: Path, version: tuple) -> np.lib.npyio.NpzFile:
    return np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)  # from memory: publishing may replace the file


def _array(name: str, entry: str) -> str:
    return f"{name.partition('/')[2]}/{entry}"


# Writing


def write(name: str, record: dict, folder: Path) -> None:
    """A file NAME.json, with a line for each entry."""
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{json.dumps(entry)}: {json.dumps(in_json(value))}" for entry, value in record.items())
    files.write_text(path, "{\n" + ",\n".join(lines) + "\n}")


def publish(records: Mapping[str, dict], folder: Path) -> None:
    """Adds them to the groups' files in `folder`, or replaces those of the same name."""
    for group in dict.fromkeys(name.partition("/")[0] for name in records):
        names = [name for name in _group(folder / f"{group}.jsonl") if name not in records]
        members = {name: _read(folder, name) for name in names}
        members |= {name: record for name, record in records.items() if name.partition("/")[0] == group}
        write_group(group, members, folder)


def write_group(group: str, records: Mapping[str, dict], folder: Path) -> None:
    """GROUP.jsonl, and GROUP.npz if any of the records has steps."""
    lines, arrays = [], {}
    for name, record in sorted(records.items()):
        line = dict(name=name)
        for entry, value in in_json(record).items():
            integers, line[entry] = _pack(entry, value)
            if integers is not None:
                arrays[_array(name, entry)] = integers
        lines.append(json.dumps(line, allow_nan=False) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    if arrays:
        files.replace(folder / f"{group}.npz", lambda temporary: temporary.write_bytes(_zip(arrays)))
    files.write_text(folder / f"{group}.jsonl", "".join(lines))


def _pack(entry: str, value: object) -> tuple[np.ndarray | None, object]:
    """(an array if the value goes into one, what the line says)"""
    if not value or not isinstance(value, list):
        return None, value
    if entry in TABLES and len({tuple(row) for row in value}) == 1:
        return None, {key: [row[key] for row in value] for key in value[0]}
    if entry not in STEPS:
        return None, value
    pairs = isinstance(value[0], list)
    columns = [_scaled(column) for column in (zip(*value, strict=True) if pairs else [value])]
    if None in columns:
        return None, value
    integers = np.stack([column for column, _ in columns], axis=1) if pairs else columns[0][0]
    smallest = next(kind for kind in (np.int16, np.int32, np.int64) if abs(integers).max() <= np.iinfo(kind).max)
    decimals = [decimals for _, decimals in columns]
    return integers.astype(smallest), dict(decimals=decimals if pairs else decimals[0], length=len(value))


def _scaled(numbers: Sequence[float]) -> tuple[np.ndarray, int] | None:
    """(integers, decimals) that give the numbers back exactly; None if there are none. Only ints have no decimals: a
    float, if whole, has one, so that it comes back as a float."""
    if not all(type(x) in (int, float) for x in numbers) or len({type(x) for x in numbers}) > 1:
        return None
    least = 1 if type(numbers[0]) is float else 0
    values = np.array(numbers, float)
    for decimals in range(least, MOST_DECIMALS + 1 if least else 1):
        integers = np.rint(values * 10**decimals)
        if (integers / 10**decimals == values).all() and abs(integers).max() < 2**53:
            return integers.astype(np.int64), decimals
    return None


def _zip(arrays: Mapping[str, np.ndarray]) -> bytes:
    """As np.savez_compressed, without the time of day."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, array, allow_pickle=False)
            about = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, data.getvalue(), compresslevel=9)
    return content.getvalue()
