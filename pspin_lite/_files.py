"""Files that survive: written whole or not at all, noticed when damaged, and never able to run code when loaded.

Writing goes through a temporary file in the same folder: write, flush, fsync, rename, fsync of the folder. Whoever
reads the name sees the old content or the new, also after a power cut. A symbolic link is followed, and the file's mode
kept; a new file gets the mode that the umask gives any other.

Tensors are stored as safetensors, which holds numbers and nothing else. A flipped bit in such a file loads silently, so
ours carry a SHA-256 of names, shapes, types and numbers in their header, and reading compares it.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import importlib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

HEADER_LIMIT = 100_000_000  # bytes of a safetensors header; its own reader allows no more
JSON_LIMIT = 64 << 20  # bytes; far above anything we write
FAR = 1 << 30  # the byte that a lock covers on Windows: beyond the content

Expected = dict[str, tuple[tuple[int, ...], torch.dtype]]  # name -> shape and type
WRAPPERS = {"_orig_mod.": "torch.compile", "module.": "a parallel wrapper"}  # what they put before every name


class FileError(Exception):
    """A file that cannot be used, or written: the message names it and says why."""


def replace(path: str | os.PathLike, write: Callable[[Path], object]) -> None:
    """`write` fills a temporary file, which then takes the place of `path`. On any error `path` is as it was, and
    nothing else is left behind."""
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    except OSError as error:
        raise _unwritten(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        os.chmod(temporary, _mode(target))
        sync(temporary)
        os.replace(temporary, target)
        sync(target.parent)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        raise _unwritten(path, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)  # there is no way to read it without setting it
    os.umask(mask)
    return 0o666 & ~mask


def _unwritten(path: str | os.PathLike, error: Exception) -> FileError:
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    full = full or any(words in str(error) for words in ("No space left", "File too large", "StorageFull"))
    reason = "no space left (or a limit on the size of files)" if full else str(error)
    return FileError(f"{path}: could not be written: {reason}")


def sync(path: Path) -> None:
    """What the system has in memory of a file or folder goes to the disk."""
    posix = hasattr(os, "O_DIRECTORY")  # Windows opens no folder, and writes out only what is open for writing
    if not posix and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if posix else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(file: IO) -> None:
    """Takes an open file for this process alone, or raises an OSError at once. The system gives it back when the file
    is closed or the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        msvcrt = importlib.import_module("msvcrt")
        os.lseek(file.fileno(), FAR, os.SEEK_SET)  # the lock keeps others from reading what it covers
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_text(path: str | Path, text: str) -> None:
    replace(path, lambda temporary: temporary.write_bytes(text.encode()))


def write_json(path: str | Path, value: object) -> None:
    write_text(path, json.dumps(value, indent=1, allow_nan=False))  # ends in "}": no cut goes unnoticed


def read_json(path: str | Path) -> dict:
    """A JSON object. Whatever else the file holds is a FileError."""
    try:
        size = _size(path)
        if size > JSON_LIMIT:
            raise FileError(f"{path}: {size} bytes, expected a JSON file of at most {JSON_LIMIT}")
        value = json.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise FileError(f"{path}: could not be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, nested without end
        raise FileError(f"{path}: not JSON ({size} bytes): {error}") from error
    if not isinstance(value, dict):
        raise FileError(f"{path}: got a {type(value).__name__}, expected a JSON object")
    return value


def _size(path: str | Path) -> int:
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):  # a pipe would keep us waiting, a device might have no end
        raise FileError(f"{path}: not a file")
    return info.st_size


def file_sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tensors_sha256(tensors: dict[str, Tensor], about: dict[str, str] | None = None) -> str:
    """One hash for names, types, shapes and numbers, whatever file or order they come in."""
    digest = hashlib.sha256(json.dumps(about or {}, sort_keys=True).encode())
    for name in sorted(tensors):
        x = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {x.dtype} {list(x.shape)};".encode())
        # Its memory as it lies there, by way of ctypes: an exported model is to load without NumPy.
        digest.update((ctypes.c_char * x.nbytes).from_address(x.data_ptr()) if x.nbytes else b"")
    return digest.hexdigest()


def write_tensors(path: str | Path, tensors: dict[str, Tensor], about: dict[str, str] | None = None) -> None:
    """Tensors and a few words about them (strings), with their hash."""
    tensors = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    about = dict(about or {})
    header = about | {"sha256": tensors_sha256(tensors, about)}
    replace(path, lambda temporary: save_file(tensors, temporary, metadata=header))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """-> tensors (copied from the file, on the CPU) and the words about them. Anything wrong is a FileError."""
    check_safetensors(path)
    try:
        # Opened once. safetensors' own reader opens the name again for the numbers, and a file that was replaced in
        # between would give the header of one version and the numbers of another.
        content = Path(path).read_bytes()
        tensors = {name: x.clone() for name, x in load(content).items()}  # clones: aligned as torch aligns its own
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = dict(header.get("__metadata__") or {})
    except (SafetensorError, ValueError, TypeError, KeyError, AssertionError, RuntimeError, OSError) as error:
        raise FileError(f"{path}: not a complete safetensors file ({os.stat(path).st_size} bytes): {error}") from error
    wanted = about.pop("sha256", None)
    if wanted is None:
        raise FileError(f"{path}: got a file without our hash in its header, expected one that pspin_lite wrote")
    actual = tensors_sha256(tensors, about)
    if actual != wanted:
        raise FileError(f"{path}: damaged: its content has SHA-256 {actual[:16]}.., its header says {wanted[:16]}..")
    return tensors, about


def check_safetensors(path: str | Path) -> None:
    """Refuses what is no safetensors file by its first bytes: a pickle, under whatever name, is never opened."""
    try:
        size = _size(path)
        with open(path, "rb") as file:
            start = file.read(9)
    except OSError as error:
        raise FileError(f"{path}: could not be read: {error.strerror}") from error
    if (start[:1] == b"\x80" and start[1:2] in b"\x01\x02\x03\x04\x05" and start[8:9] != b"{") or start[:2] == b"PK":
        raise FileError(f"{path}: a pickle or a zip archive, which could run code when loaded: refused unopened")
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or not 2 <= length <= min(HEADER_LIMIT, size - 8):
        raise FileError(f"{path}: not a complete safetensors file ({size} bytes)")


def check_tensors(path: str | Path, tensors: dict[str, Tensor], expected: Expected) -> None:
    """`tensors` has exactly the expected names, with the expected shapes and types; else a FileError lists the keys."""
    words = [f"missing {name}" for name in expected if name not in tensors]
    words += [f"unexpected {name}" for name in tensors if name not in expected]
    for name, (shape, dtype) in expected.items():
        x = tensors.get(name)
        if x is not None and (tuple(x.shape) != tuple(shape) or x.dtype != dtype):
            hint = " (transposed?)" if x.dtype == dtype and tuple(x.shape) == tuple(shape)[::-1] else ""
            words.append(f"{name} is {x.dtype} {list(x.shape)}, expected {dtype} {list(shape)}{hint}")
    if words:
        wrapper = next((w for prefix, w in WRAPPERS.items() if any(name.startswith(prefix) for name in tensors)), None)
        hint = f" (saved from inside {wrapper}: save the model itself)" if wrapper else ""
        raise FileError(f"{path}: does not fit this model{hint}: {'; '.join(words)}")
