"""Tokenizers: text to numbers and back, without loss.

    tok = open("bytes")                           # V = 256; 255 ends a document: UTF-8 never contains that byte
    tok = open("bpe", corpus="sotu", vocab=8192)  # trained on the corpus' training split once, then kept
    tok = open("smollm2")                         # the paper's, V = 49152, from the hub
    tok = open("run/tokenizer.json")              # what `tok.save` wrote, or any byte-level BPE of `tokenizers`

    id              a token's number, 0 to vocab - 1
    end             the id that ends a document; it stands for no text
    byte_lengths    [vocab], how many bytes of text each id stands for; they add up to the text's length in UTF-8
    byte-level      every byte has a token, so any text can be encoded; a token may hold part of a character

decode(encode(text)) == text for every str that UTF-8 can hold. Text that spells an end token, such as
"<|endoftext|>", is text: no string encodes to `end`. The library called `tokenizers` does the work of BPE.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import _checks as checks
from .. import _files as files
from . import cache, corpora, hub

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

END = "<|endoftext|>"
NAMES = ("bytes", "bpe", "smollm2")
SMOLLM2 = "HuggingFaceTB/SmolLM2-135M"
FORMAT = "pspin_lite tokenizer 1"
FROM_STREAM = 10_000  # documents a BPE is trained on where training has no end
INSTEAD = "python -m pspin_lite train PRESET --corpus sotu --tokenizer bpe"


def open(
    name: str | os.PathLike | Tokenizer, corpus: str | os.PathLike | corpora.Corpus | None = None, vocab: int = 8192
) -> Tokenizer:
    """A tokenizer by name, or from a file. `corpus` and `vocab` are for "bpe" alone."""
    if isinstance(name, Tokenizer):
        return name
    if name == "bytes":
        return Bytes()
    if name == "bpe":
        if corpus is None:
            raise checks.wrong("corpus", None, 'the corpus a "bpe" is trained on, for example "sotu"')
        return train_bpe(corpora.open(corpus), vocab)
    if name == "smollm2":
        return _smollm2()
    if not Path(name).is_file():
        checks.choice("tokenizer", str(name), [*NAMES, "or the path of a tokenizer.json"])
    return _read(Path(name).read_bytes(), str(name))


class Tokenizer:
    """What every tokenizer has. `pieces` are the bytes of each id; None where an id stands for no text."""

    def __init__(self, name: str, end: int, pieces: Sequence[bytes | None]) -> None:
        self.name, self.end, self.vocab = name, end, len(pieces)
        self.byte_lengths = np.array([len(piece or b"") for piece in pieces], dtype=np.int64)
        self._pieces = [piece or b"" for piece in pieces]

    def encode(self, text: str) -> np.ndarray:
        """[n] int64 ids; no end token is added."""
        try:
            raw = text.encode("utf-8")
        except UnicodeEncodeError as error:
            came = f"half a surrogate pair at character {error.start}"
            raise checks.wrong("text", came, "text that UTF-8 can hold") from None
        ids = self._encode(text, raw)
        if int(self.byte_lengths[ids].sum()) != len(raw):
            raise checks.wrong("text", "a byte that this tokenizer has no token for", "a byte-level tokenizer")
        return ids

    def _encode(self, text: str, raw: bytes) -> np.ndarray:
        raise NotImplementedError

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes the ids stand for: not necessarily whole characters."""
        ids = np.asarray(list(ids) if not hasattr(ids, "__array__") else ids)
        if ids.size and (ids.dtype.kind not in "iu" or ids.ndim != 1):
            raise checks.wrong("ids", f"{ids.dtype} {list(ids.shape)}", "integers [n]")
        if ids.size and not (ids.min() >= 0 and ids.max() < self.vocab):
            raise checks.wrong("ids", f"{ids.min()} to {ids.max()}", f"0 to {self.vocab - 1}")
        return b"".join(self._pieces[i] for i in ids.tolist())

    def decode(self, ids: Iterable[int]) -> str:
        """Text; bytes that are no UTF-8 are shown as \\xff."""
        return self.decode_bytes(ids).decode("utf-8", errors="backslashreplace")

    def _content(self) -> object:
        """All that decides what ids a text has, as JSON."""
        raise NotImplementedError

    @functools.cached_property
    def sha256(self) -> str:
        return hashlib.sha256(cache.canonical([self.end, self._content()])).hexdigest()

    def identity(self) -> dict:
        return {"name": self.name, "vocab": self.vocab, "end": self.end, "sha256": self.sha256}

    def save(self, path: str | os.PathLike) -> None:
        """One JSON file, whatever the kind; `open(path)` checks its hash."""
        whole = {"format": FORMAT, "name": self.name, "end": self.end, "sha256": self.sha256}
        whole["content"] = self._content()
        files.replace(path, lambda part: part.write_bytes(cache.canonical(whole)))

    def __str__(self) -> str:
        return f"{self.name} ({self.vocab:,} tokens)"


class Bytes(Tokenizer):
    """A byte is its own id. 0xff occurs in no UTF-8, so that id is free to end documents."""

    def __init__(self) -> None:
        super().__init__("bytes", 255, [bytes([b]) for b in range(255)] + [None])

    def _encode(self, text: str, raw: bytes) -> np.ndarray:
        return np.frombuffer(raw, dtype=np.uint8).astype(np.int64)

    def _content(self) -> object:
        return "bytes"


class BPE(Tokenizer):
    """Byte-level BPE. `content`: the library's own JSON, parsed."""

    def __init__(self, name: str, content: dict, end: int | None = None) -> None:
        self._json = content
        self._library = _library(content)
        end = self._library.token_to_id(END) if end is None else end
        if end is None:
            raise checks.wrong("tokenizer", f"no token {END}", "one that ends documents")
        super().__init__(name, end, _pieces(self._library, content, end))

    def _encode(self, text: str, raw: bytes) -> np.ndarray:
        return np.array(self._library.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def _content(self) -> object:
        return self._json

    def __reduce__(self) -> tuple:
        return BPE, (self.name, self._json, self.end)  # the library's own pickle forgets encode_special_tokens


def train_bpe(corpus: corpora.Corpus, vocab: int = 8192) -> Tokenizer:
    """A byte-level BPE of the corpus' training split with SmolLM2's pre-tokenizer; from the cache after the first time.

    The end token is id 0 and counts in `vocab`. The same text gives the same tokenizer, in any process."""
    import tokenizers  # the library

    checks.whole("vocab", vocab, 257)
    path = cache.folder() / f"bpe-{cache.key(corpus.identity(), vocab, tokenizers.__version__)}.json"
    try:
        return _read(path.read_bytes(), str(path))
    except (OSError, ValueError):  # absent, or damaged: made anew
        pass
    tok = BPE("bpe", json.loads(_train(corpus, vocab)))
    if tok.vocab != vocab:
        came = f"{vocab}, but the text of {corpus.name} has merges for {tok.vocab} tokens only"
        raise checks.wrong("vocab", came, f"at most {tok.vocab}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tok.save(path)
    except (OSError, files.FileError) as error:
        warnings.warn(f"the cache {cache.folder()} cannot be written ({error})", stacklevel=2)
    return tok


def _train(corpus: corpora.Corpus, vocab: int) -> str:
    from tokenizers import Tokenizer as Library
    from tokenizers import decoders, models, pre_tokenizers, trainers

    library = Library(models.BPE())
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),  # all 256 bytes, whatever the text
        show_progress=False,
    )
    rows = corpus.rows("train")
    if corpus.streamed("train"):
        rows = itertools.islice(rows, FROM_STREAM)
    library.train_from_iterator((row["text"] for row in rows), trainer)
    return library.to_str()


def _smollm2() -> BPE:
    """From the libraries' own cache if it is there, else from the hub."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    path = try_to_load_from_cache(SMOLLM2, "tokenizer.json")
    if not isinstance(path, str):
        wanted = f"the tokenizer of {SMOLLM2}"
        hub.require(wanted, INSTEAD)
        try:
            with hub.quiet("huggingface_hub"):
                path = hf_hub_download(SMOLLM2, "tokenizer.json")
        except (OSError, ValueError) as error:
            raise hub.OutOfReach(wanted, INSTEAD, f"the hub did not give it ({type(error).__name__})") from error
    tok = BPE("smollm2", _parsed(Path(path).read_bytes(), path))
    if (tok.vocab, tok.end) != (49152, 0):
        raise checks.wrong("tokenizer", f"{path}: {tok.vocab} tokens, end {tok.end}", "SmolLM2's 49152, end 0")
    return tok


def _read(raw: bytes, where: str) -> Tokenizer:
    content = _parsed(raw, where)
    if "format" not in content:
        return BPE("file", content)
    try:
        if content["format"] != FORMAT:
            raise checks.wrong("tokenizer", f"{where}: format {content['format']!r}", f"{FORMAT!r}: use its version")
        name, end, inner = (content[key] for key in ("name", "end", "content"))
        tok = Bytes() if inner == "bytes" else BPE(name, inner, end)
        if tok.sha256 != content["sha256"] or tok.name != name or tok.end != end:
            raise checks.wrong("tokenizer", f"{where}, whose content has another hash", "the file as it was saved")
    except (KeyError, TypeError, AttributeError) as error:
        raise checks.wrong("tokenizer", f"{where}: {error!r}", "a file that tok.save wrote") from None
    return tok


def _parsed(raw: bytes, where: str) -> dict:
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise checks.wrong("tokenizer", f"{where}: {error}", "a JSON file") from None
    if not isinstance(content, dict):
        raise checks.wrong("tokenizer", f"{where}: {type(content).__name__}", "a tokenizer as a JSON object")
    return content


def _library(content: dict) -> Library:
    """The library's tokenizer, with everything off that would not give every text back."""
    from tokenizers import Tokenizer as Library

    try:
        parts = {part: content.get(part) for part in ("normalizer", "truncation", "padding")}
        if content["model"]["type"] != "BPE" or any(parts.values()):
            raise checks.wrong(
                "tokenizer", f"{content['model']['type']}, {parts}", "a byte-level BPE with none of these"
            )
        library = Library.from_str(json.dumps(content))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in the library is no Exception
        raise checks.wrong("tokenizer", str(error)[:200], "a byte-level BPE of the library tokenizers") from None
    library.encode_special_tokens = True  # text that spells a special token is text
    return library


def _pieces(library: Library, content: dict, end: int) -> list[bytes | None]:
    """The bytes of each id, through the alphabet of printable characters that the library writes bytes in."""
    vocab = library.get_vocab(with_added_tokens=True)
    if sorted(vocab.values()) != list(range(len(vocab))) or end not in vocab.values():
        raise checks.wrong("tokenizer", f"{len(vocab)} tokens whose ids have gaps", "ids from 0 without gaps")
    special = {token["id"] for token in content.get("added_tokens", []) if token["special"]} | {end}
    added = {token["id"] for token in content.get("added_tokens", [])}
    table = _alphabet()
    pieces: list[bytes | None] = [None] * len(vocab)
    for token, i in vocab.items():
        if i in special:
            continue
        if i in added:
            pieces[i] = token.encode()
        elif all(c in table for c in token):
            pieces[i] = bytes(table[c] for c in token)
        else:
            raise checks.wrong("tokenizer", f"token {token!r}", "byte-level tokens")
    return pieces


def _alphabet() -> dict[str, int]:
    """character -> byte: printable Latin-1 stands for itself, the other bytes for the characters from 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
