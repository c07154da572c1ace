"""Training: the paper's recipe, from text to a run's folder (runs.py) that can be stopped at any moment and taken up.

AdamW, clipping to a global norm, linear warm-up, plateau, cosine (`Config.learning_rate`). What sequences a step sees
is a function of seed and step alone, and nothing here draws random numbers after the weights: so a run that was
interrupted ends in the very parameters of one that was not, given the same commit, configuration, torch build, kind of
device and number of threads. Tests compare them to the last bit.

On a GPU the model computes in bfloat16 where autocast says so, with the Triton kernels; on a CPU in float32.
"""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from . import checkpoint, checks, config, distributed, files, sequences, signals
from .runs import FORMAT, Run
from .trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """How a run trains, besides its configuration: part of the run, and the same when it is taken up again."""

    corpus: str = "sotu"
    tokenizer: str | None = None  # None: bytes for a vocabulary of 256, SmolLM2's for 49152, else a trained one
    order: str = "shuffled"  # of the training sequences; see `sequences`
    precision: str = "auto"  # "float32", "bfloat16" (autocast); "auto": bfloat16 on a GPU
    micro_batch: int | None = None  # sequences in one pass; None: the whole batch (of this process)
    validate_every: int | None = None  # steps; None: a twentieth of the run, at least 10
    validate_tokens: int = 32768  # about as many of each split at intervals, spread over it
    final_tokens: int | None = None  # at the end; None: all
    checkpoint_every: int | None = None  # steps; None: the same. Also every five minutes
    probe_every: int | None = None  # steps; measure how stable training is (`Trainer.probe_if_due`); None: do not
    compile: bool = False  # torch.compile: on two CPU cores no faster (1.0 to 1.1 times), after minutes of compiling

    def __post_init__(self) -> None:
        checks.choice("precision", self.precision, ("auto", "float32", "bfloat16"))
        for name in (
            "micro_batch",
            "validate_every",
            "validate_tokens",
            "final_tokens",
            "checkpoint_every",
            "probe_every",
        ):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), 1)
        checks.choice("order", self.order, sequences.ORDERS)
        if not isinstance(self.corpus, str):
            raise checks.wrong("corpus", repr(self.corpus), "a name or a path, as a string")


def train(
    cfg: str | config.Config,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    workers: int = 0,
    show: bool | str = "auto",
    stop: threading.Event | None = None,
    **settings: object,
) -> Run:
    """Trains, or takes up a run that was interrupted in the same folder; a finished run is returned as it is.

    cfg: a preset's name or a configuration. out: the run's folder; None: runs/NAME-SEED.
    show: a progress bar; "auto": if somebody watches. False also prints nothing. stop: an event that ends training
    after the current step, for threads that signals do not reach. settings: see `Settings`."""
    cfg = config.preset(cfg) if isinstance(cfg, str) else cfg
    if not isinstance(cfg, config.Config):
        raise checks.wrong("cfg", type(cfg).__name__, "a preset's name or a configuration")
    for name in settings:
        checks.choice("setting", name, Settings.__dataclass_fields__)
    kind = _device(device)
    run = Run(out if out is not None else Path("runs") / f"{cfg.name}-{cfg.seed}")
    world = distributed.join(kind)
    share = distributed.share(cfg.batch, world)
    wanted = dict(format=FORMAT, model=config.to_dict(cfg), training=asdict(Settings(**settings)))
    if world.first:
        _prepare(run, wanted)
    world.wait()
    try:
        if run.summary is not None:
            return run
        devices = [world.local] if kind == "cuda" else []
        with torch.random.fork_rng(devices), signals.Stop(stop) as asked:  # the caller's generators are left alone
            return Trainer(run, cfg, Settings(**settings), kind, world, share, workers, show, asked).go()
    finally:
        run.release()
        distributed.leave()


def resume(folder: str | Path, **more: object) -> Run:
    """Takes up the run in `folder` with its own configuration and settings. more: device, workers, show, stop.

    From its newest intact checkpoint; or `folder` is that of one checkpoint, and no other will do: then the run goes
    back to it, and what came after is forgotten."""
    folder = Path(folder)
    if (folder / checkpoint.MANIFEST).exists():
        checkpoint.load(folder)  # all of it is read before anything is forgotten
        checkpoint.forget_after(folder)
        folder = folder.parent.parent
        for name in ("summary.json", "weights.safetensors"):
            (folder / name).unlink(missing_ok=True)
    run = Run(folder)
    if not (run.folder / "config.json").exists():
        raise files.FileError(f"{folder}: no run's folder: it has no config.json")
    return train(run.cfg, folder, **more, **run.config["training"])


def _device(device: str) -> str:
    checks.choice("device", device, ("auto", "cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise checks.wrong("device", "cuda", "cpu or auto: torch sees no GPU here (python -m pspin_lite doctor)")
    return ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device


def _prepare(run: Run, wanted: dict) -> None:
    """Makes and locks the folder; refuses one that belongs to another run."""
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
        run.hold()
    except OSError as error:
        raise files.FileError(f"{run.folder}: cannot be used for a run: {error.strerror}") from error
    path = run.folder / "config.json"
    if not path.exists():
        files.write_json(path, wanted)
        return
    before = run.config
    for part in ("model", "training"):
        other = {k for k in wanted[part] | before[part] if _plain(wanted[part].get(k)) != before[part].get(k)}
        if other:
            words = ", ".join(f"{k} {before[part].get(k)!r} there, {wanted[part].get(k)!r} here" for k in sorted(other))
            raise files.FileError(f"{run.folder}: holds another run ({words}): choose another folder")


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
