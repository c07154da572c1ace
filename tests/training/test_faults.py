"""Nothing is lost: runs that are killed, stopped, cut short and damaged, and end in the same parameters to the bit.

The child processes really die (SIGKILL), at moments chosen so that each file of a checkpoint is once the last one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import faulty
import pytest
import torch

import pspin_lite as ps
from pspin_lite import _files as files
from pspin_lite import cli
from pspin_lite.training import checkpoint, evaluation, loop, nonfinite, recipe, runs


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, texts):
    """The run that nothing happened to."""
    return faulty.train(tmp_path_factory.mktemp("undisturbed") / "run", texts)


# What a kill -9 may hit. Calls are counted from the start of the process: files.replace writes config.json (1),
# tokenizer.json, data.json, environment.json (2-4), then the three files and the manifest of a checkpoint (5-8).
MOMENTS = [
    ("data", 1),
    ("file", 1),
    ("file", 3),
    ("step", 1),
    ("file", 6),
    ("file", 7),
    ("file", 8),
    ("sync", 17),
    ("record", 11),
    ("optimizer", 5),
    ("evaluation", 2),
    ("old checkpoint", 4),
    ("file", 20),
]


@pytest.mark.fault(1)
@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_killed(tmp_path, texts, undisturbed, moment, count):
    code, _ = faulty.in_child(faulty.train_and_die, str(tmp_path / "run"), str(texts), moment, count)
    assert code == -signal.SIGKILL, "the moment never came"
    assert not (tmp_path / "run" / "summary.json").exists()
    assert faulty.result(faulty.train(tmp_path / "run", texts)) == faulty.result(undisturbed)
    assert not list((tmp_path / "run").rglob("*.tmp"))


@pytest.mark.fault(1)
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random(tmp_path, texts, undisturbed, seed):
    """Twice in one run, whenever it happens to be."""
    for n in range(2):
        child = faulty.context.Process(target=faulty.train, args=(tmp_path / "run", texts))
        child.start()
        time.sleep((seed * 0.37 + n * 0.23 + 0.8) % 1.3 + 0.3)
        child.kill()
        child.join()
    assert faulty.result(faulty.train(tmp_path / "run", texts)) == faulty.result(undisturbed)


def stopping(monkeypatch, at: list[int]) -> threading.Event:
    """An event that is set when training has finished one of these steps (0: before the first)."""
    event, real = threading.Event(), loop.Trainer.validate_if_due

    def look(self):
        real(self)
        if self.step in at:
            at.remove(self.step)
            event.set()

    monkeypatch.setattr(loop.Trainer, "validate_if_due", look)
    return event


@pytest.mark.fault(2, 3)
@pytest.mark.parametrize("at", [[0], [1], [5], [faulty.STEPS], [1, 2, 3], [6, 7, 12], [0, 4, 13]])
def test_stopped_and_taken_up(tmp_path, texts, undisturbed, monkeypatch, at):
    """Also in the second and third epoch, and several times in one: no sequence is repeated, none left out."""
    seen, real = [], loop.Trainer.one_step
    monkeypatch.setattr(loop.Trainer, "one_step", lambda self, batch: (seen.append(batch.clone()), real(self, batch)))
    stops, left = len(at), list(at)
    event = stopping(monkeypatch, left)
    for _ in range(stops):
        run = faulty.train(tmp_path / "run", texts, stop=event)
        assert run.stopped == "request"
        assert run.summary is None
        event.clear()
    run = ps.resume(tmp_path / "run", show=False)
    assert not left
    assert faulty.result(run) == faulty.result(undisturbed)
    data = run.data()["train"]
    expected = [torch.from_numpy(data.sequence(n)) for n in range(4 * faulty.STEPS)]
    assert torch.equal(torch.cat(seen), torch.stack(expected))
    assert data.tokens * 2 < 4 * faulty.STEPS * 33, "the third epoch is never reached"


@pytest.mark.fault(9)
def test_an_interrupted_run_can_be_used(tmp_path, texts, monkeypatch):
    run = faulty.train(tmp_path / "run", texts, stop=stopping(monkeypatch, [2]))
    assert len(run.metrics("step")) == 2
    assert run.model(torch.zeros(1, 3, dtype=torch.long)).shape == (1, 3, 256)
    again = ps.Run(tmp_path / "run")
    assert torch.equal(again.model.embedding.weight, run.model.embedding.weight)


@pytest.mark.fault(9)
def test_in_a_thread(tmp_path, texts, undisturbed):
    actual = []
    thread = threading.Thread(target=lambda: actual.append(faulty.train(tmp_path / "run", texts)))
    thread.start()
    thread.join()
    assert faulty.result(actual[0]) == faulty.result(undisturbed)


def test_the_callers_generator_is_left_alone(tmp_path, texts):
    torch.manual_seed(3)
    faulty.train(tmp_path / "run", texts)
    actual = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(actual, torch.rand(1))


# Signals


def signalled(folder: str, texts: str, when: str, *numbers: int) -> int:
    """The command, in a child that sends itself signals: in its third step, or in its second evaluation."""
    real_step, real_loss = loop.Trainer.backward, evaluation.attractors
    calls = []

    def send(self=None, *args):
        calls.append(1)
        if len(calls) == (3 if when == "step" else 2):
            for number in numbers:
                signal.raise_signal(number)
        return (real_step if when == "step" else real_loss)(self, *args)

    if when == "step":
        loop.Trainer.backward = send
    else:
        evaluation.attractors = send
    words = ["--steps", "14", "--batch", "4", "--set", "context=32", "--set", "width=16", "--set", "inner=16"]
    words += ["--validate-every", "4", "--checkpoint-every", "3", "--validate-tokens", "64", "--final-tokens", "128"]
    return cli.main(["train", "byte-smoke", "--corpus", texts, "--out", folder, *words])


@pytest.mark.fault(8)
@pytest.mark.parametrize("when", ["step", "evaluation"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_saves(tmp_path, texts, undisturbed, number, when):
    code, said = faulty.in_child(signalled, str(tmp_path / "run"), str(texts), when, number)
    assert code == 128 + number, said
    assert f"stopped by {number.name}" in said
    assert f"python -m pspin_lite train --resume {tmp_path / 'run'}" in said
    step = 3 if when == "step" else 4
    assert checkpoint.newest(tmp_path / "run" / "checkpoints").state["step"] == step
    assert faulty.result(ps.resume(tmp_path / "run", show=False)) == faulty.result(undisturbed)


@pytest.mark.fault(8)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_stops_at_once(tmp_path, texts, undisturbed, number):
    code, said = faulty.in_child(signalled, str(tmp_path / "run"), str(texts), "step", number, number)
    assert code == 128 + number
    assert "go on" not in said
    assert not checkpoint.complete(tmp_path / "run" / "checkpoints")
    assert faulty.result(faulty.train(tmp_path / "run", texts)) == faulty.result(undisturbed)


@pytest.mark.fault(8)
def test_handlers_are_restored(tmp_path, texts):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    faulty.train(tmp_path / "run", texts)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# Damaged and missing files


def checkpoints(run: ps.Run) -> list[Path]:
    return checkpoint.complete(run.folder / "checkpoints")


@pytest.fixture
def stopped(tmp_path, texts, monkeypatch):
    with monkeypatch.context() as patch:
        return faulty.train(tmp_path / "run", texts, stop=stopping(patch, [7]))


FILES = (checkpoint.WEIGHTS, checkpoint.OPTIMIZER, checkpoint.STATE, checkpoint.MANIFEST)


@pytest.mark.fault(4)
@pytest.mark.parametrize("name", FILES)
def test_cut_files(stopped, undisturbed, name):
    path = checkpoints(stopped)[0] / name
    whole = path.read_bytes()
    for size in (0, 1, 7, 8, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(files.FileError) as raised:
            checkpoint.load(path.parent)
        assert str(path) in str(raised.value)
        assert f"{size} bytes" in str(raised.value)
    with pytest.raises(files.FileError):
        ps.resume(path.parent)  # this checkpoint and no other
    with pytest.warns(UserWarning, match=f"passed over: {path}"):
        run = ps.resume(stopped.folder, show=False)
    assert faulty.result(run) == faulty.result(undisturbed)


@pytest.mark.fault(5)
@pytest.mark.parametrize("name", FILES)
def test_flipped_bits(stopped, name):
    path = checkpoints(stopped)[0] / name
    whole = path.read_bytes()
    generator = torch.Generator().manual_seed(0)
    for bit in torch.randint(8 * len(whole), (24,), generator=generator).tolist():
        path.write_bytes(whole)
        faulty.damage(path, bit=bit)
        with pytest.raises(files.FileError) as raised:
            checkpoint.load(path.parent)
        assert str(path.parent) in str(raised.value)
    path.write_bytes(whole)
    checkpoint.load(path.parent)


@pytest.mark.fault(4)
def test_all_checkpoints_damaged(stopped):
    for folder in checkpoints(stopped):
        faulty.damage(folder / checkpoint.WEIGHTS, size=100)
    with pytest.warns(UserWarning, match="passed over"), pytest.raises(files.FileError, match="no intact checkpoint;"):
        ps.resume(stopped.folder, show=False)


@pytest.mark.fault(4)
def test_going_back(stopped, undisturbed):
    newest, older = checkpoints(stopped)
    run = ps.resume(older, show=False)
    assert faulty.result(run) == faulty.result(undisturbed)
    assert newest not in checkpoints(run)


@pytest.mark.fault(14)
def test_other_formats(stopped):
    folder = checkpoints(stopped)[0]
    for actual in (0, 2, "x", None):
        files.write_json(folder / checkpoint.MANIFEST, dict(format=actual))
        with pytest.raises(files.FileError, match=f"format {actual!r}, this version reads 1; check out"):
            checkpoint.load(folder)
    files.write_json(stopped.folder / "config.json", dict(format=2))
    with pytest.raises(files.FileError, match="format 2, expected 1; read it with"):
        ps.Run(stopped.folder).cfg  # noqa: B018


@pytest.mark.fault(13)
def test_other_tensors(stopped):
    """Missing, extra, transposed, of another type, from a compiled or wrapped model: the exact keys."""
    actual = checkpoint.load(checkpoints(stopped)[0])
    model = ps.build(faulty.cfg())
    optimizer = recipe.optimizer(model)
    name = "blocks.0.attractor.w_ext.weight"
    before = files.tensors_sha256(dict(model.named_parameters()))
    changes = [
        (lambda w: w.pop(name), f"missing {name}"),
        (lambda w: w.update(other=w[name]), "unexpected other"),
        (
            lambda w: w.update({name: w[name].T}),
            rf"{name} is torch.float32 \[16, 32\], expected torch.float32 \[32, 16\]",
        ),
        (lambda w: w.update({name: w[name].half()}), f"{name} is torch.float16"),
        (lambda w: w.update({f"_orig_mod.{name}": w.pop(name)}), f"missing {name}; unexpected _orig_mod.{name}"),
        (lambda w: w.update({f"module.{name}": w.pop(name)}), f"missing {name}; unexpected module.{name}"),
    ]
    for change, words in changes:
        weights = dict(actual.weights)
        change(weights)
        with pytest.raises(files.FileError, match=words):
            checkpoint.restore(checkpoint.Checkpoint(actual.folder, weights, actual.optimizer, {}), model, optimizer)
    moments = {key: value for key, value in actual.optimizer.items() if key != f"exp_avg/{name}"}
    with pytest.raises(files.FileError, match=f"missing exp_avg/{name}"):
        checkpoint.restore(checkpoint.Checkpoint(actual.folder, actual.weights, moments, {}), model, optimizer)
    assert files.tensors_sha256(dict(model.named_parameters())) == before, "something was loaded all the same"
    other = ps.build(faulty.cfg(vocab=257))
    with pytest.raises(files.FileError, match=r"embedding.weight is .* \[256, 16\], expected .* \[257, 16\]"):
        checkpoint.restore(actual, other, recipe.optimizer(other))


# Disks and folders


@pytest.mark.fault(6)
@pytest.mark.parametrize("count", range(1, 5))
def test_no_space_left(stopped, texts, undisturbed, monkeypatch, count):
    """At each of the four files of the next checkpoint."""
    before = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in stopped.folder.rglob("step-*/*")}
    calls, real = [], files.sync

    def full(path):
        if "step-" in str(path) and path.is_file():
            calls.append(path)
            if len(calls) == count:
                raise OSError(errno.ENOSPC, "No space left on device")
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync", full)
        with pytest.raises(files.FileError, match="could not be written: no space left"):
            ps.resume(stopped.folder, show=False)
    assert {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in stopped.folder.rglob("step-*/*")} == before
    assert not list(stopped.folder.rglob("*.tmp"))
    assert faulty.result(ps.resume(stopped.folder, show=False)) == faulty.result(undisturbed)


def small_files(folder: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    ps.resume(folder, show=False)


@pytest.mark.fault(6)
def test_a_limit_on_the_size_of_files(stopped, undisturbed):
    before = checkpoints(stopped)
    code, said = faulty.in_child(small_files, str(stopped.folder))
    assert code == 1
    assert "could not be written: no space left (or a limit on the size of files)" in said
    assert checkpoints(stopped) == before
    assert not list(stopped.folder.rglob("*.tmp"))
    assert faulty.result(ps.resume(stopped.folder, show=False)) == faulty.result(undisturbed)


def refuse(*args):
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.fault(7)
def test_folders_that_cannot_be_used(tmp_path, texts, monkeypatch):
    monkeypatch.setattr(loop.Trainer, "__init__", lambda *args: pytest.fail("training began"))
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(files.FileError, match=f"{out}: cannot be used for a run"):
            faulty.train(out, texts)
    (tmp_path / "readonly").mkdir(mode=0o500)
    if os.geteuid() == 0:  # root may write anywhere: an error in its place
        monkeypatch.setattr(runs, "open", refuse, raising=False)
    with pytest.raises(files.FileError, match=f"{tmp_path / 'readonly'}: cannot be used for a run: Permission denied"):
        faulty.train(tmp_path / "readonly", texts)
    with pytest.raises(files.FileError, match="no run's folder"):
        ps.resume(tmp_path / "nothing")


@pytest.mark.fault(7)
def test_a_missing_folder_is_made(tmp_path, texts, undisturbed):
    assert faulty.result(faulty.train(tmp_path / "new" / "run", texts)) == faulty.result(undisturbed)


def hold_and_wait(folder: str, ready, done) -> None:
    run = ps.Run(folder)
    run.hold()
    ready.set()
    done.wait(60)


@pytest.mark.fault(20)
def test_two_runs_in_one_folder(tmp_path, texts, undisturbed):
    folder = tmp_path / "run"
    folder.mkdir()
    ready, done = faulty.context.Event(), faulty.context.Event()
    child = faulty.context.Process(target=hold_and_wait, args=(str(folder), ready, done))
    child.start()
    assert ready.wait(60)
    with pytest.raises(files.FileError, match=f"in use by process {child.pid} on"):
        faulty.train(folder, texts)
    child.kill()  # its lock file stays behind, and holds nothing
    child.join()
    assert (folder / "lock").read_text().startswith(f"process {child.pid}")
    assert faulty.result(faulty.train(folder, texts)) == faulty.result(undisturbed)


@pytest.mark.fault(20)
def test_two_runs_in_one_folder_where_there_is_no_fcntl(tmp_path, monkeypatch):
    """As on Windows: a lock on one byte of the file, through msvcrt, beyond what the file says about its owner."""
    locked = set()

    class Msvcrt:
        LK_NBLCK = 2

        @staticmethod
        def locking(handle: int, mode: int, count: int) -> None:
            place = (os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR))
            assert (mode, count) == (Msvcrt.LK_NBLCK, 1)
            if place in locked:
                raise PermissionError(errno.EACCES, "Permission denied")
            locked.add(place)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt)
    one, other = ps.Run(tmp_path), ps.Run(tmp_path)
    one.hold()
    with pytest.raises(runs.InUse, match=f"in use by process {os.getpid()} on"):
        other.hold()
    one.release()
    ((_, place),) = locked
    assert place > (tmp_path / "lock").stat().st_size
    assert (tmp_path / "lock").read_text().startswith("process")


def test_a_shipped_model_loads_where_there_is_no_fcntl():
    code = """
import sys
sys.modules["fcntl"] = None
import pspin_lite as ps
from pspin_lite.training import loop, runs, train
run = ps.load("byte-lite")
print("".join(ps.stream(run.model, run.tokenizer, "My fellow ", tokens=5, seed=1)))
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip()


@pytest.mark.fault(20)
def test_another_run_in_the_folder(stopped, texts):
    with pytest.raises(files.FileError, match=r"holds another run \(lr 0.0008 there, 0.001 here, seed 1337"):
        ps.train(faulty.cfg(seed=1, lr=1e-3), stopped.folder, corpus=str(texts), **faulty.SETTINGS)
    with pytest.raises(files.FileError, match="validate_tokens 64 there, 96 here"):
        faulty.train(stopped.folder, texts, validate_tokens=96)


@pytest.mark.fault(15)
def test_the_corpus_changed(tmp_path, monkeypatch):
    texts = faulty.corpus(tmp_path / "corpus")
    run = faulty.train(tmp_path / "run", texts, stop=stopping(monkeypatch, [2]))
    (texts / "03.txt").write_text("Something else.")
    with pytest.raises(files.FileError, match="started on other data"):
        ps.resume(run.folder, show=False)


@pytest.mark.fault(17)
def test_another_number_of_threads(stopped, undisturbed):
    path = checkpoints(stopped)[0]
    state = files.read_json(path / checkpoint.STATE)
    manifest = files.read_json(path / checkpoint.MANIFEST)
    files.write_json(path / checkpoint.STATE, state | dict(threads=77))
    size, digest = (path / checkpoint.STATE).stat().st_size, files.file_sha256(path / checkpoint.STATE)
    manifest["files"][checkpoint.STATE] = dict(bytes=size, sha256=digest)
    files.write_json(path / checkpoint.MANIFEST, manifest)
    with pytest.warns(UserWarning, match="threads 77 before, .* now: same data, numbers close") as caught:
        run = ps.resume(stopped.folder, show=False)
    assert len(caught) == 1
    starts = files.read_json(run.folder / "environment.json")["starts"]
    assert [start["step"] for start in starts] == [0, 7]
    assert all(start["threads"] == torch.get_num_threads() for start in starts)


# Not finite


def poison(monkeypatch, where: str) -> None:
    real = loop.Trainer.backward

    def backward(self, batch):
        if self.step == 5:
            with torch.no_grad():
                if where == "parameter":
                    self.model.blocks[1].state_space.w_k.weight[3, 4] = float("nan")
                if where == "activation":
                    block = self.model.blocks[0].attractor.w_down
                    block.register_forward_hook(lambda module, given, y: y.clone().fill_(float("inf")))
                if where == "gradient":
                    self.model.norm.weight.register_hook(lambda g: g * float("nan"))
        loss = real(self, batch)
        return loss + float("inf") if where == "loss" and self.step == 5 else loss

    monkeypatch.setattr(loop.Trainer, "backward", backward)


@pytest.mark.fault(10)
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("parameter", r"parameter blocks.1.state_space.w_k.weight \(1 of 256 entries\)"),
        ("activation", "output of blocks.0.attractor.w_down"),
        ("gradient", "gradient of norm.weight"),
        ("loss", "loss inf"),
    ],
)
def test_not_finite(tmp_path, texts, monkeypatch, where, words):
    poison(monkeypatch, where)
    steps = []
    real = torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, *args: (steps.append(1), real(self, *args)))
    with pytest.raises(nonfinite.NonFinite, match=words) as raised:
        faulty.train(tmp_path / "run", texts)
    assert "step 6" in str(raised.value)
    assert "sequences 20 to 23" in str(raised.value)
    assert len(steps) == 5, "the optimizer took the step"
    last = ps.Run(tmp_path / "run").metrics("step")[-1]
    assert last["step"] == 6
    assert not all(torch.tensor([last["loss"], last["norm"]]).isfinite())
    assert checkpoint.newest(tmp_path / "run" / "checkpoints").state["step"] == 3
