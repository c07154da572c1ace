"""Checkpoints: everything from which a run goes on to the very parameters it would have had without the interruption.

A checkpoint is a folder, step-00001500, with

    weights.safetensors     the model's parameters
    optimizer.safetensors   AdamW's moments and step counts, named "exp_avg/PARAMETER" and so on; of SGD nothing
    state.json              step, tokens, seconds, generators, configuration, versions, threads
    manifest.json           size and SHA-256 of the other three; written last

A folder without a manifest is one whose writing was interrupted: it does not count. Nothing here can run code.
"""

from __future__ import annotations

import re
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from .. import _files as files

FORMAT = 1
WEIGHTS, OPTIMIZER, STATE, MANIFEST = "weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps for a parameter


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict


def save(root: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: dict, keep: int = 2) -> Path:
    """Writes root/step-N and then removes all but the newest `keep`. If that fails, those before it are untouched."""
    folder = root / f"step-{state['step']:08d}"
    if (folder / MANIFEST).exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)  # left over from an interruption
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise files.FileError(f"{folder}: could not be made: {error.strerror}") from error
    try:
        files.write_tensors(folder / WEIGHTS, dict(model.named_parameters()))
        files.write_tensors(folder / OPTIMIZER, optimizer_tensors(model, optimizer))
        files.write_json(folder / STATE, state)
        sizes = {
            name: dict(bytes=(folder / name).stat().st_size, sha256=files.file_sha256(folder / name))
            for name in (WEIGHTS, OPTIMIZER, STATE)
        }
        files.write_json(folder / MANIFEST, dict(format=FORMAT, files=sizes))
        files.sync(root)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for old in complete(root)[keep:]:
        _remove(old)
    return folder


def forget_after(folder: Path) -> None:
    """Removes the checkpoints that are newer than this one."""
    folders = complete(folder.parent)
    for newer in folders[: folders.index(folder)]:
        _remove(newer)


def _remove(folder: Path) -> None:
    # The manifest first: half a checkpoint must not look like a whole one. Another process may have been quicker.
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def complete(root: Path) -> list[Path]:
    """Checkpoints with a manifest, the newest first."""
    folders = [path for path in root.glob("step-*") if re.fullmatch(r"step-\d+", path.name)]
    folders = [path for path in folders if (path / MANIFEST).exists()]
    return sorted(folders, key=lambda path: int(path.name[5:]), reverse=True)


def load(folder: str | Path) -> Checkpoint:
    """Reads a checkpoint. Whatever is wrong with any of its files is a FileError that names it."""
    folder = Path(folder)
    manifest = files.read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        advice = "check out the version of pspin_lite that wrote it, or start the run anew"
        raise files.FileError(f"{folder}: format {manifest.get('format')!r}, this version reads {FORMAT}; {advice}")
    listed = manifest.get("files")
    if not isinstance(listed, dict) or set(listed) != {WEIGHTS, OPTIMIZER, STATE}:
        raise files.FileError(f"{folder / MANIFEST}: lists other files than {WEIGHTS}, {OPTIMIZER}, {STATE}")
    for name, wanted in listed.items():
        _check_file(folder / name, wanted)
    weights, _ = files.read_tensors(folder / WEIGHTS)
    optimizer, _ = files.read_tensors(folder / OPTIMIZER)
    return Checkpoint(folder, weights, optimizer, files.read_json(folder / STATE))


def _check_file(path: Path, wanted: dict) -> None:
    if not isinstance(wanted, dict) or not path.is_file():
        raise files.FileError(f"{path}: missing, or not described in {MANIFEST}")
    size = path.stat().st_size
    if size != wanted.get("bytes"):
        raise files.FileError(f"{path}: {size} bytes, expected {wanted.get('bytes')}: cut short or written over")
    if files.file_sha256(path) != wanted.get("sha256"):
        raise files.FileError(f"{path}: damaged: {size} bytes as expected, but another SHA-256 than in {MANIFEST}")


def newest(root: Path) -> Checkpoint | None:
    """The newest checkpoint that is intact; a damaged one is passed over with a warning. None if there is none at all.
    If there are some and all are damaged, that is an error: nobody's run starts over silently."""
    problems = []
    for folder in complete(root):
        try:
            return load(folder)
        except files.FileError as error:
            problems.append(str(error))
            warnings.warn(f"checkpoint passed over: {error}", stacklevel=2)
    if problems:
        raise files.FileError(f"{root}: no intact checkpoint; remove the folder to start over. {'; '.join(problems)}")
    return None


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Empty before the first step."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{moment}/{names[parameter]}": kept[moment]
        for parameter, kept in optimizer.state.items()
        for moment in MOMENTS
    }


def restore(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Puts weights and moments back where they came from; nothing is loaded unless all of it fits exactly."""
    parameters = dict(model.named_parameters())
    expected = {name: (tuple(p.shape), p.dtype) for name, p in parameters.items()}
    files.check_tensors(checkpoint.folder / WEIGHTS, checkpoint.weights, expected)
    # AdamW knows no parameter before its first gradient: none at step 0, and W_int never has one if K = 0.
    known = [name for name in parameters if f"step/{name}" in checkpoint.optimizer]
    moments: files.Expected = {f"step/{name}": ((), torch.float32) for name in known}
    moments |= {f"{moment}/{name}": expected[name] for name in known for moment in MOMENTS[1:]}
    files.check_tensors(checkpoint.folder / OPTIMIZER, checkpoint.optimizer, moments)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(checkpoint.weights[name])
    names = {parameter: name for name, parameter in parameters.items()}
    order = [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
    places = [i for i, name in enumerate(order) if name in known]
    kept = {i: {moment: checkpoint.optimizer[f"{moment}/{order[i]}"] for moment in MOMENTS} for i in places}
    optimizer.load_state_dict(optimizer.state_dict() | dict(state=kept))
