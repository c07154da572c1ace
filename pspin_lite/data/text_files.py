"""Documents from local files: a .txt file is one, a line of a .jsonl and a row of a .parquet are one each.

Text is given as it is in the file, byte for byte. Whatever cannot be read is refused with the file, and with the
line, the row or the offset at which it went wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .. import _checks as checks

SUFFIXES = (".txt", ".jsonl", ".parquet")


def find(path: Path) -> list[Path]:
    """The file itself, or the files in a folder and its folders, by name; hidden ones are passed over."""
    if path.is_dir():
        inside = (
            p for p in path.rglob("*") if p.is_file() and not any(s.startswith(".") for s in p.relative_to(path).parts)
        )
        paths = sorted(
            (p for p in inside if p.suffix.lower() in SUFFIXES), key=lambda p: p.relative_to(path).as_posix()
        )
    else:
        paths = [path] if path.suffix.lower() in SUFFIXES else []
    if not paths:
        raise checks.wrong("corpus", repr(str(path)), f"a file, or a folder with files, of {', '.join(SUFFIXES)}")
    return paths


def _txt(path: Path) -> Iterator[tuple[str, str]]:
    yield path.name, _decoded(path.read_bytes(), path, 0)


def _jsonl(path: Path) -> Iterator[tuple[str, str]]:
    offset = 0
    with path.open("rb") as file:  # lines end at \n alone: other separators are text
        for number, line in enumerate(file, start=1):
            mark = 3 if number == 1 and line.startswith(b"\xef\xbb\xbf") else 0
            text = _decoded(line[mark:], path, offset + mark)
            offset += len(line)
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise checks.wrong("corpus", f"{path}, line {number}: {error}", "a JSON object on each line") from None
            yield f"{path.name}:{number}", _column(row, f"{path}, line {number}")


def _parquet(path: Path) -> Iterator[tuple[str, str]]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            if "text" not in file.schema_arrow.names:
                raise checks.wrong("corpus", f"{path} with {file.schema_arrow.names}", 'a column "text"')
            for batch in file.iter_batches(columns=["text"], batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path.name}:{number}", _column(row, f"{path}, row {number}")
    except (pyarrow.ArrowException, OSError) as error:
        raise checks.wrong("corpus", f"{path}, row {number + 1}: {error}", "a whole Parquet file") from error


def read(path: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of each document of a file."""
    return _READERS[path.suffix.lower()](path)


_READERS = {".txt": _txt, ".jsonl": _jsonl, ".parquet": _parquet}


def _column(row: object, where: str) -> str:
    text = row.get("text") if isinstance(row, dict) else None
    if not isinstance(text, str):
        raise checks.wrong("corpus", f"{where}: no text", 'a string under "text"')
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise checks.wrong("corpus", f"{where}: half a surrogate pair at {error.start}", "whole characters") from None
    return text


def _decoded(raw: bytes, path: Path, offset: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = offset + error.start
        guess = " (it looks like UTF-16)" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise checks.wrong("corpus", f"{path}: byte 0x{raw[error.start]:02x} at offset {at}{guess}", "UTF-8") from None
