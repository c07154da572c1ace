"""Training: the paper's recipe, from text to a run's folder (runs.py) that can be stopped at any moment and taken up.

The recipe is in recipe.py, the loop in loop.py. Which sequences a step sees is a function of seed and step alone, and
nothing here draws random numbers after the weights. So a run that was interrupted ends in the very parameters of one
that was not, given the same commit, configuration, torch build, kind of device and number of threads. Tests compare
them to the last bit.

On a GPU the model computes in bfloat16 where autocast says so, with the Triton kernels; on a CPU in float32.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from .. import _checks as checks
from .. import _files as files
from .. import config
from . import checkpoint, distributed, interrupts
from .loop import Trainer
from .runs import FORMAT, Run
from .settings import Settings


def train(
    cfg: str | config.Config,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    workers: int = 0,
    show: bool | str = "auto",
    stop: threading.Event | None = None,
    **settings: Any,
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
    distributed.share(cfg.batch, world)  # refuses a batch that cannot be shared, before anything is written
    wanted = dict(format=FORMAT, model=config.to_dict(cfg), training=asdict(Settings(**settings)))
    if world.first:
        _prepare(run, wanted)
    world.wait()
    try:
        if run.summary is not None:
            return run
        devices = [world.local] if kind == "cuda" else []
        with torch.random.fork_rng(devices), interrupts.Stop(stop) as asked:  # the caller's generators are left alone
            trainer = Trainer(run, cfg, Settings(**settings), world, asked, device=kind, workers=workers, show=show)
            return trainer.go()
    finally:
        run.release()
        distributed.leave()


def resume(folder: str | Path, **more: Any) -> Run:
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
