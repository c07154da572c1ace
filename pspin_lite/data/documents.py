"""What every corpus has: documents in named splits, their hashes and counts.

document    one text, a str: a speech, a web page, a .txt file, a row with the column "text"
split       a named part of the corpus; every document is in exactly one
streamed    read from the start as it is used: no length, no random access
identity    what a run records to know the corpus again: names, hashes, counts; never a path
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from .. import _checks as checks


class Corpus:
    """What every corpus has. A finite one is read twice: once to know it, and again where its text is used."""

    name: str
    splits: tuple[str, ...]

    def __init__(self) -> None:
        self._keys: list[bytes] = []  # a hash of each document, in order
        whole = hashlib.sha256()
        sizes = []
        for _, text in self._read():
            raw = text.encode()
            whole.update(self._hashed(raw))
            self._keys.append(key_of(raw))
            sizes.append(len(raw))
        self.sha256 = whole.hexdigest()
        self._check()
        if not sum(sizes):
            raise checks.wrong("corpus", f"{self.name} without any text", "at least one document with text")
        self._sides = self._place()  # the split of each document
        self._known = {name: {"documents": 0, "bytes": 0} for name in self.splits}
        for split in self.splits:
            self._count(split, sizes)

    def _read(self) -> Iterator[tuple[str, str]]:
        """(name, text) of every document, in a fixed order."""
        raise NotImplementedError

    def _hashed(self, raw: bytes) -> bytes:
        """What a document adds to the hash of all: its length too, so that no other cut of the text has the same."""
        return len(raw).to_bytes(8, "little") + raw

    def _check(self) -> None:
        """Refuses text that is not what it should be, where that is known."""

    def _place(self) -> list[str]:
        raise NotImplementedError

    def _count(self, split: str, sizes: list[int]) -> None:
        mine = [size for size, side in zip(sizes, self._sides, strict=True) if side == split]
        self._known[split] = {"documents": len(mine), "bytes": sum(mine)}

    def streamed(self, split: str) -> bool:
        return False

    def rows(self, split: str) -> Iterator[dict[str, str]]:
        """{"name", "text"} of the documents of a split."""
        checks.choice("split", split, self.splits)
        count = 0
        for name, text in self._read():
            if self._keys[count : count + 1] != [key_of(text.encode())]:
                raise checks.wrong("corpus", f"{name} changed since it was opened", "files that stay as they are")
            if self._sides[count] == split:
                yield {"name": name, "text": text}
            count += 1
        if count != len(self._keys):
            came = f"{self.name} with {count} documents in place of {len(self._keys)}"
            raise checks.wrong("corpus", came, "files that stay as they are")

    def identity(self) -> dict:
        return {"name": self.name, "sha256": self.sha256, "splits": self._known}

    def __str__(self) -> str:
        parts = [
            f"{s} {k['documents']:,} documents, {k['bytes']:,} bytes" for s, k in self.identity()["splits"].items()
        ]
        return f"{self.name}: {'; '.join(parts)}"


def key_of(raw: bytes) -> bytes:
    """A document's hash, short enough to keep for all of them."""
    return hashlib.sha256(raw).digest()[:16]
