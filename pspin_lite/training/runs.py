"""The folder of a training run, which says by itself what was done, on what, and what came out: read, written, locked.

    config.json          the model's configuration and the settings of the training
    environment.json     versions, device, threads, commit, of each time the run was started or taken up again
    data.json            corpus, splits, tokenizer: names, sizes, hashes
    tokenizer.json       the tokenizer itself
    metrics.jsonl        one JSON object a line: every step's loss, validation at intervals, the state of the attractors
    checkpoints/         the newest two (checkpoint.py)
    weights.safetensors  the final weights
    summary.json         final figures; its presence says that the run is finished
    lock                 held while a process works in the folder

Non-finite numbers stand in metrics.jsonl as the strings "nan", "inf", "-inf", because JSON has no word for them.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import torch

from .. import _files as files
from .. import config
from ..config import Config
from ..data import corpora, sequences, tokenizers
from ..language_model import LanguageModel
from ..variants import build
from . import checkpoint

FORMAT = 1


class InUse(files.FileError):
    """Another process holds the run's folder."""


class Run:
    """A run's folder, for reading; training writes through it."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.stopped: str | None = None  # by what, if training was stopped early
        self._metrics: IO[str] | None = None
        self._lock: IO[str] | None = None
        self._model: LanguageModel | None = None

    # Reading

    @property
    def config(self) -> dict:
        """What config.json holds: `model`, `training`."""
        content = files.read_json(self.folder / "config.json")
        if content.get("format") != FORMAT:
            advice = "read it with the version of pspin_lite that wrote it"
            raise files.FileError(f"{self.folder}: format {content.get('format')!r}, expected {FORMAT}; {advice}")
        return content

    @property
    def cfg(self) -> Config:
        return config.from_dict(self.config["model"])

    @property
    def summary(self) -> dict | None:
        """Final figures, or None while the run is unfinished."""
        path = self.folder / "summary.json"
        return files.read_json(path) if path.exists() else None

    def metrics(self, kind: str | None = None) -> list[dict]:
        """Records of metrics.jsonl in order: of kind "step", "validation" or "attractor", or all."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return []
        records = [floats(record) for record in _lines(path)]
        return [record for record in records if kind in (None, record["kind"])]

    @property
    def model(self) -> LanguageModel:
        """The trained model, in eval mode: final weights, the deployed form where that is what lies there, or the
        newest checkpoint's weights."""
        if self._model is None:
            final, deployed = self.folder / "weights.safetensors", self.folder / "model.safetensors"
            if final.exists():
                self._model = self._built(final, files.read_tensors(final)[0])
            elif deployed.exists():
                from .. import deploy

                self._model = deploy.load(deployed)
            else:
                newest = checkpoint.newest(self.folder / "checkpoints")
                if newest is None:
                    raise files.FileError(f"{self.folder}: neither final weights nor a checkpoint")
                self._model = self._built(newest.folder / checkpoint.WEIGHTS, newest.weights)
        return self._model

    def _built(self, path: Path, weights: dict[str, torch.Tensor]) -> LanguageModel:
        with torch.random.fork_rng(devices=[]):
            model = build(self.cfg)
        expected = {name: (tuple(p.shape), p.dtype) for name, p in model.named_parameters()}
        files.check_tensors(path, weights, expected)
        model.load_state_dict(weights)
        model.tokenizer_identity = files.read_json(self.folder / "data.json")["train"]["tokenizer"]
        return model.eval()

    @property
    def tokenizer(self) -> tokenizers.Tokenizer:
        return tokenizers.open(self.folder / "tokenizer.json")

    def data(self) -> dict[str, sequences.Packed]:
        """What the run reads: split -> `sequences.open` of it. All but "train" are for validation."""
        path, cfg, tokenizer = self.folder / "data.json", self.cfg, self.tokenizer
        before = files.read_json(path)["train"]["corpus"] if path.exists() else {}
        corpus = corpora.open(self.config["training"]["corpus"], before.get("revision"))  # the hub's, as it was then
        orders = {"train": dict(order=self.config["training"].get("order", "shuffled"), total=cfg.steps * cfg.batch)}
        return {
            split: sequences.open(corpus, tokenizer, split, cfg.context, cfg.seed, **orders.get(split, {}))
            for split in corpus.splits
        }

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    # Writing

    def hold(self) -> None:
        """Takes the lock. The system gives it back when the process ends, however it ends: a lock file that is left
        over holds nothing."""
        self._lock = open(self.folder / "lock", "a+")  # noqa: SIM115  held open until `release`
        try:
            files.lock(self._lock)
        except OSError as error:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "another process"
            self._lock.close()
            self._lock = None
            raise InUse(f"{self.folder}: in use by {owner}: wait for it, or choose another folder") from error
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()} on {platform.node()}")
        self._lock.flush()

    def release(self) -> None:
        for file in (self._metrics, self._lock):
            if file is not None:
                file.close()
        self._metrics = self._lock = None

    def cut_metrics(self, step: int) -> set[str]:
        """Forgets what was recorded after `step`, and half a last line: a run that goes on writes it again. Returns
        the kinds of record that the step itself has."""
        path = self.folder / "metrics.jsonl"
        if not path.exists():
            return set()
        kept = [record for record in _lines(path) if record["step"] <= step]
        files.write_text(path, "".join(json.dumps(record) + "\n" for record in kept))
        return {record["kind"] for record in kept if record["step"] == step}

    def record(self, kind: str, step: int, **values: object) -> None:
        if self._metrics is None:
            self._metrics = open(self.folder / "metrics.jsonl", "a", encoding="utf-8")  # noqa: SIM115
        record = in_json(dict(kind=kind, step=step) | values)
        self._metrics.write(json.dumps(record, allow_nan=False) + "\n")
        self._metrics.flush()

    def sync_metrics(self) -> None:
        if self._metrics is not None:
            os.fsync(self._metrics.fileno())

    def note_environment(self, **more: object) -> None:
        path = self.folder / "environment.json"
        before = files.read_json(path)["starts"] if path.exists() else []
        files.write_json(path, dict(starts=[*before, environment() | more]))


def _lines(path: Path) -> Iterator[dict]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # a line that was being written when the process was killed
        if isinstance(record, dict) and isinstance(record.get("step"), int) and "kind" in record:
            yield record


def in_json(value: object) -> object:
    """With words for what JSON has none for."""
    if isinstance(value, dict):
        return {name: in_json(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [in_json(x) for x in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def floats(record: dict) -> dict:
    """The words of in_json as numbers again."""
    known = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    return {name: known.get(value, value) if isinstance(value, str) else value for name, value in record.items()}


def environment() -> dict:
    """What a result may depend on, besides the configuration."""
    versions = {}
    for name in ("torch", "numpy", "datasets", "tokenizers"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return dict(
        versions=versions | dict(python=platform.python_version()),
        system=f"{platform.system()} {platform.machine()}",
        processor=processor(),
        cores=os.cpu_count(),
        commit=commit(),
        threads=torch.get_num_threads(),
    )


def processor() -> str:
    """Its name as the system gives it; empty if it gives none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def commit() -> str | None:
    """Of the checkout that this package lies in, with a "+" if files differ from it; None outside of one."""
    here = Path(__file__).resolve().parents[2]
    try:
        if Path(_git(here, "rev-parse", "--show-toplevel")).resolve() != here:
            return None
        changes = _git(here, "status", "--porcelain", "--untracked-files=no")
        return _git(here, "rev-parse", "HEAD") + ("+" if changes else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
