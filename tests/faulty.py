"""Runs for the tests of training: a small corpus, a small model, and child processes in which things go wrong."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path

from helpers import forked as context

import pspin_lite as ps

STEPS = 14
SETTINGS = dict(validate_every=4, checkpoint_every=3, validate_tokens=64, final_tokens=128, show=False)


def corpus(folder: Path) -> Path:
    """Two dozen short documents. At batch 4 and T = 32 the third epoch begins before step 14."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(24):
        words = " ".join(f"{(i * 7919 + j * 104729) % 997}" for j in range(4))
        (folder / f"{i:02d}.txt").write_text(f"Document {i}: {words}.\n")
    return folder


def cfg(**changes):
    return ps.preset("byte-smoke").replace(context=32, width=16, inner=16, **dict(batch=4, steps=STEPS) | changes)


def train(folder: Path, texts: Path, **more):
    return ps.train(cfg(), folder, corpus=str(texts), **SETTINGS | more)


def result(run: ps.Run) -> tuple[str, list[dict]]:
    """What must not depend on interruptions: a hash of the parameters, and all that was recorded but the time."""
    records = [{key: value for key, value in record.items() if key != "seconds"} for record in run.metrics()]
    return run.summary["weights_sha256"], records


def in_child(function, *args) -> tuple[int, str]:
    """Calls function(*args) in a process of its own. -> exit code (minus the signal that killed it), what it said."""
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=_call, args=(writer, function, args))
    child.start()
    writer.close()
    said = ""
    with contextlib.suppress(EOFError):
        said = reader.recv()
    child.join(120)
    return child.exitcode, said


def _call(writer, function, args) -> None:
    said = io.StringIO()
    code = 1
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = function(*args) or 0
        except SystemExit as error:
            code = error.code
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
    writer.send(said.getvalue())
    sys.exit(code)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train_and_die(folder: str, texts: str, moment: str, count: int) -> None:
    """Dies like under kill -9 at a moment of choice, the count-th time it comes."""
    from pspin_lite import _files as files
    from pspin_lite.training import checkpoint, loop, runs

    owner, name = {
        "data": (runs.Run, "data"),
        "step": (loop.Trainer, "backward"),
        "optimizer": (loop.Trainer, "attractor_steps"),
        "evaluation": (loop.Trainer, "evaluate"),
        "record": (runs.Run, "record"),
        "file": (files, "replace"),
        "sync": (files, "sync"),
        "old checkpoint": (checkpoint.shutil, "rmtree"),
    }[moment]
    real, calls = getattr(owner, name), []

    def fatal(*args, **kwargs):
        calls.append(1)
        if len(calls) == count:
            die()
        return real(*args, **kwargs)

    setattr(owner, name, fatal)
    train(Path(folder), Path(texts))


def damage(path: Path, size: int | None = None, bit: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    if bit is not None:
        content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(bytes(content[:size]))


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
