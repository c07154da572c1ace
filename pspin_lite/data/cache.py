"""What is computed once and kept: tokenised splits and trained tokenizers.

The folder is $PSPIN_CACHE, or ~/.cache/pspin_lite; deleting it costs seconds. A file appears under its name only when
it is complete (written aside, then renamed), carries the SHA-256 of its content, and is made anew when that does not
fit. Where nothing can be written, a warning says so and the result stays in memory.

    key      what the content was made from, as a hash: another corpus, split or tokenizer has another key
    facts    a small JSON file beside an array: its hash and whatever is worth knowing without reading it
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .. import _files as files

VERSION = 1  # of how contents are made: another one finds nothing that an older one kept


def folder() -> Path:
    return Path(os.environ.get("PSPIN_CACHE") or Path.home() / ".cache" / "pspin_lite").expanduser()


def key(*made_from: object) -> str:
    """The same for the same JSON, in any process and on any machine."""
    return hashlib.sha256(canonical([VERSION, *made_from])).hexdigest()[:24]


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def array(name: str, make: Callable[[], tuple[np.ndarray, dict]]) -> tuple[np.ndarray, dict]:
    """The array called `name` and its facts: from the cache if it is there and whole, else from `make`.

    From the cache it is a memory map: it costs address space, not memory, and processes share it."""
    stored, described = folder() / f"{name}.npy", folder() / f"{name}.json"
    cached = _load(stored, described)
    if cached is not None:
        return cached
    values, facts = make()
    try:
        stored.parent.mkdir(parents=True, exist_ok=True)
        files.replace(stored, lambda part: _save(part, values))
        facts_on_disk = facts | {"sha256": files.file_sha256(stored)}
        files.replace(described, lambda part: part.write_bytes(canonical(facts_on_disk)))
        # Read back: a disk that returns something else is noticed here, not in a result
        return _load(stored, described) or (values, facts)
    except (OSError, files.FileError) as error:
        warnings.warn(f"the cache {folder()} cannot be written ({error}): {name} is kept in memory", stacklevel=2)
        return values, facts


def _load(stored: Path, described: Path) -> tuple[np.ndarray, dict] | None:
    try:
        facts = json.loads(described.read_bytes())
        if facts.pop("sha256") != files.file_sha256(stored):
            return None
        return np.load(stored, mmap_mode="r", allow_pickle=False), facts
    except (OSError, ValueError, KeyError, AttributeError, TypeError):  # absent, cut or of another make: as if absent
        return None


def _save(path: Path, values: np.ndarray) -> None:
    with path.open("wb") as file:  # np.save would add a suffix to a name
        np.save(file, values, allow_pickle=False)
