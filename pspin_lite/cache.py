"""What is computed once and kept: tokenised splits and trained tokenizers.

The folder is $PSPIN_CACHE, or ~/.cache/pspin_lite; deleting it costs seconds. A file appears under its name only when
it is complete (written aside, then renamed), carries the SHA-256 of its content, and is made anew when that does not
fit. Where nothing can be written, a warning says so and the result stays in memory.

    key      what the content was made from, as a hash: another corpus, split or tokenizer has another key
    facts    a small JSON file beside an array: its hash and whatever is worth knowing without reading it
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

VERSION = 1  # of how contents are made: another one finds nothing that an older one kept


def folder() -> Path:
    return Path(os.environ.get("PSPIN_CACHE") or Path.home() / ".cache" / "pspin_lite").expanduser()


def key(*made_from: object) -> str:
    """The same for the same JSON, in any process and on any machine."""
    return hashlib.sha256(canonical([VERSION, *made_from])).hexdigest()[:24]


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, fill: Callable) -> None:
    """`fill(file)` writes the content; `path` is the old file or the complete new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:  # with the mode any new file gets here
            fill(file)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def array(name: str, make: Callable[[], tuple[np.ndarray, dict]]) -> tuple[np.ndarray, dict]:
    """The array called `name` and its facts: from the cache if it is there and whole, else from `make`.

    From the cache it is a memory map: it costs address space, not memory, and processes share it."""
    stored, described = folder() / f"{name}.npy", folder() / f"{name}.json"
    found = _load(stored, described)
    if found is not None:
        return found
    values, facts = make()
    try:
        write(stored, lambda file: np.save(file, values, allow_pickle=False))
        facts_on_disk = facts | {"sha256": digest(stored)}
        write(described, lambda file: file.write(canonical(facts_on_disk)))
        # Read back: a disk that returns something else is noticed here, not in a result
        return _load(stored, described) or (values, facts)
    except OSError as error:
        warnings.warn(f"the cache {folder()} cannot be written ({error}): {name} is kept in memory", stacklevel=2)
        return values, facts


def _load(stored: Path, described: Path) -> tuple[np.ndarray, dict] | None:
    try:
        facts = json.loads(described.read_bytes())
        if facts.pop("sha256") != digest(stored):
            return None
        return np.load(stored, mmap_mode="r", allow_pickle=False), facts
    except (OSError, ValueError, KeyError, AttributeError, TypeError):  # absent, cut or of another make: as if absent
        return None
