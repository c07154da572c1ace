"""Training: the recipe step by step, what a run records, the command line, several processes, a real notebook."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import time

import faulty
import pytest
import torch

import pspin_lite as ps
from pspin_lite import _files as files
from pspin_lite import cli
from pspin_lite.training import evaluation, loop, progress, recipe
from pspin_lite.training import train as training


@pytest.fixture(scope="module")
def run(tmp_path_factory, texts):
    return faulty.train(tmp_path_factory.mktemp("run") / "run", texts)


# The recipe


def test_against_a_loop_written_out(run):
    """AdamW, decay 0.05 on matrices, clipping to 1, the schedule: the same losses and parameters, in twenty lines."""
    cfg = faulty.cfg()
    torch.manual_seed(cfg.seed)
    model = ps.build(cfg)
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [dict(params=matrices, weight_decay=0.05), dict(params=vectors, weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), fused=True)
    data = run.data()["train"]
    losses = []
    for step in range(cfg.steps):
        batch = torch.stack([torch.from_numpy(data.sequence(4 * step + i)) for i in range(4)])
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate(cfg, step)
        loss = model.loss(batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    records = run.metrics("step")
    assert [record["loss"] for record in records] == losses
    assert files.tensors_sha256(dict(model.named_parameters())) == run.summary["weights_sha256"]
    assert [record["rate"] for record in records] == [recipe.learning_rate(cfg, step) for step in range(cfg.steps)]
    assert [record["tokens"] for record in records] == [4 * 32 * (step + 1) for step in range(cfg.steps)]
    assert any(record["norm"] > 1 for record in records), "clipping was never needed"


def test_it_learns(tmp_path, texts):
    cfg = faulty.cfg(lr=0.02, steps=60)
    run = ps.train(cfg, tmp_path / "run", corpus=str(texts), **faulty.SETTINGS)
    first, last = (run.metrics("validation")[i]["bits_per_byte"] for i in (0, -1))
    assert last < 0.6 * first


def test_micro_batches(tmp_path, texts, run):
    """Gradients added up over pieces: the same to rounding."""
    other = faulty.train(tmp_path / "run", texts, micro_batch=3)
    for a, b in zip(run.metrics("step"), other.metrics("step"), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
        assert a["norm"] == pytest.approx(b["norm"], rel=1e-3)


@pytest.mark.fault(17)
@pytest.mark.parametrize("workers", [1, 4])
def test_workers(tmp_path, texts, run, workers):
    assert faulty.result(faulty.train(tmp_path / "run", texts, workers=workers)) == faulty.result(run)


def test_bfloat16(tmp_path, texts, run):
    other = faulty.train(tmp_path / "run", texts, precision="bfloat16")
    assert faulty.result(other)[0] != faulty.result(run)[0]
    for a, b in zip(run.metrics("step"), other.metrics("step"), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=0.02)
    assert all(p.dtype == torch.float32 for p in other.model.parameters())


@pytest.mark.parametrize("preset", ["byte-smoke", "subword-smoke", "transformer-smoke"])
def test_smoke_presets(tmp_path, preset):
    """On the embedded corpus, with the tokenizer that belongs to the vocabulary."""
    run = ps.train(preset, tmp_path / "run", show=False, final_tokens=2000)
    assert run.summary["steps"] == 30
    assert set(run.summary["validation"]) == {"recent", "held-out"}
    losses = [record["loss"] for record in run.metrics("step")]
    assert sum(losses[-5:]) < sum(losses[:5])
    assert run.tokenizer.vocab == run.cfg.vocab
    assert bool(run.metrics("attractor")) == (preset != "transformer-smoke")


def test_in_time_order(tmp_path, texts):
    """The order is part of the run, and a run in it goes on exactly."""
    whole = faulty.train(tmp_path / "whole", texts, order="replay")
    assert files.read_json(whole.folder / "data.json")["train"]["order"] == f"replay of {4 * faulty.STEPS}"
    assert faulty.result(whole)[0] != faulty.result(faulty.train(tmp_path / "other", texts))[0]
    newest = sorted((tmp_path / "whole" / "checkpoints").iterdir())[0]
    before = faulty.result(whole)
    assert faulty.result(ps.resume(newest, show=False)) == before


def test_sgd_goes_on_exactly(tmp_path, texts):
    """Its checkpoints have no moments. A folder with a run of AdamW is refused."""
    folder, cfg = tmp_path / "run", faulty.cfg(optimizer="sgd", lr=0.1)
    whole = ps.train(cfg, folder, corpus=str(texts), **faulty.SETTINGS)
    before = faulty.result(whole)
    again = ps.resume(sorted((folder / "checkpoints").iterdir())[0], show=False)
    assert (again.cfg, faulty.result(again)) == (cfg, before)
    with pytest.raises(files.FileError, match="optimizer 'sgd' there"):
        ps.train(cfg.replace(optimizer="adamw"), folder, corpus=str(texts), **faulty.SETTINGS)


# What is recorded


def test_the_folder(run):
    names = {path.name for path in run.folder.iterdir()}
    expected = "config.json environment.json data.json tokenizer.json metrics.jsonl checkpoints weights.safetensors"
    assert names == {*expected.split(), "summary.json", "lock"}
    start = files.read_json(run.folder / "environment.json")["starts"][0]
    assert start["threads"] == torch.get_num_threads()
    assert start["versions"]["torch"] == torch.__version__
    assert files.read_json(run.folder / "data.json")["train"]["corpus"]["sha256"]
    kinds = [record["kind"] for record in run.metrics()]
    assert kinds.count("step") == faulty.STEPS
    assert [record["step"] for record in run.metrics("validation")] == [0, 4, 8, 12, 14]
    state = run.metrics("attractor")[-1]
    assert all(len(state[name]) == 2 for name in ("radius", "residual", "zeros_ext", "zeros_int", "gamma"))
    assert 0.2 < state["zeros_int"][0] < 0.5
    assert 0 < state["radius"][0] < 1
    assert run.summary["parameters"] == ps.footprint(run.cfg).params


def test_a_finished_run_is_left_as_it_is(run, texts, monkeypatch):
    monkeypatch.setattr(loop.Trainer, "__init__", lambda *args: pytest.fail("trained again"))
    again = faulty.train(run.folder, texts)
    assert again.summary == run.summary
    assert torch.equal(again.model.embedding.weight, run.model.embedding.weight)


def test_records_that_are_not_finite(tmp_path):
    run = ps.Run(tmp_path)
    run.record("step", 1, loss=math.nan, norm=math.inf, list=[-math.inf])
    run.release()
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == dict(
        kind="step", step=1, loss="nan", norm="inf", list=["-inf"]
    )
    assert math.isnan(run.metrics()[0]["loss"])


# Evaluation


def test_evaluation_by_hand(run):
    data = run.data()["valid"]
    score = ps.evaluate(run.model, data)
    stream = [data.tokenizer.end, *(t for _, targets in data.windows() for t in targets[0].tolist())]
    assert score["tokens"] == data.tokens == len(stream) - 1
    assert score["bytes"] == data.bytes
    nats = 0.0
    for start in range(0, data.tokens, data.length):
        piece = torch.tensor(stream[start : start + data.length + 1])
        logits = run.model(piece[None, :-1]).double().log_softmax(-1)
        nats -= logits[0].gather(-1, piece[1:, None]).sum().item()
    assert score["nats_per_token"] == pytest.approx(nats / data.tokens, rel=1e-5)
    assert score["bits_per_byte"] == pytest.approx(nats / math.log(2) / data.bytes, rel=1e-5)


def test_loss_by_context_is_of_the_same_targets(run):
    data = run.data()["train"]
    actual = evaluation.by_context(run.model, data, 3)
    assert actual["context"] == [1, 2, 4, 8, 16]
    whole = [(tokens[0], targets[0]) for tokens, targets in data.windows(3)]
    for c, nats in zip(actual["context"], actual["nats"], strict=True):
        by_hand = []
        for tokens, targets in whole:
            for p in (31, 27, 23, 19):
                logits = run.model(tokens[None, p - c + 1 : p + 1])[0, -1]
                by_hand.append(-torch.log_softmax(logits, -1)[targets[p]].item())
        assert nats == pytest.approx(sum(by_hand) / 12, rel=1e-4), c


def test_evaluation_keeps_the_mode(run):
    run.model.train()
    evaluation.evaluate(run.model, run.data()["valid"], 1)
    evaluation.attractors(run.model, torch.zeros(1, 8, dtype=torch.long))
    assert run.model.training
    assert all(module.training for module in run.model.modules())
    run.model.eval()


# Bad input


@pytest.mark.fault(18)
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ps.train("byte-lit"), "preset: got 'byte-lit', expected one of .* did you mean 'byte-lite'?"),
        (lambda: ps.train(3), "cfg: got int"),
        (lambda: ps.train("byte-smoke", checkpoint_evry=3), "did you mean 'checkpoint_every'"),
        (lambda: ps.train("byte-smoke", checkpoint_every=0), "checkpoint_every: got 0, expected an integer >= 1"),
        (lambda: ps.train("byte-smoke", precision="fp8"), "precision: got 'fp8'"),
        (lambda: ps.train("byte-smoke", device="gpu"), "device: got 'gpu', expected one of auto, cpu, cuda"),
        (lambda: ps.train("byte-smoke", corpus=3), "corpus: got 3, expected a name or a path"),
        (lambda: ps.preset("byte-smoke").replace(layers=0), "layers: got 0, expected an integer >= 1"),
        (lambda: ps.preset("byte-smoke").replace(lr=math.inf), "lr: got inf, expected a finite number above 0"),
        (lambda: cli.change("gamma_start"), "--set: got 'gamma_start', expected KEY=VALUE"),
    ],
)
def test_errors_before_anything_is_made(tmp_path, monkeypatch, call, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=words):
        call()
    assert not list(tmp_path.iterdir())


def test_device_that_is_not_here(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device: got cuda, expected cpu or auto: torch sees no GPU here"):
        ps.train("byte-smoke", device="cuda")


@pytest.mark.fault(16)
def test_a_tokenizer_that_is_too_large(tmp_path, texts):
    path = tmp_path / "t.json"
    ps.tokenizers.open("bpe", texts, 260).save(path)
    with pytest.raises(ValueError, match=f"tokenizer: got {path} with 260 ids, expected at most 256, the model's"):
        ps.train("byte-smoke", tmp_path / "run", corpus=str(texts), tokenizer=str(path))


@pytest.mark.fault(18)
def test_configurations_as_json():
    for name in ps.presets():
        cfg = ps.preset(name)
        values = json.loads(json.dumps(ps.config.to_dict(cfg)))
        assert ps.config.from_dict(values) == cfg
        with pytest.raises(ValueError, match="did you mean 'width'"):
            ps.config.from_dict(values | dict(widht=3))
        with pytest.raises(ValueError, match="without seed"):
            ps.config.from_dict({key: value for key, value in values.items() if key != "seed"})
        assert "optimizer" not in values, "as in files from before there was a choice"
        other = cfg.replace(optimizer="sgd")
        assert ps.config.from_dict(json.loads(json.dumps(ps.config.to_dict(other)))) == other


# The command line


def command(*words: str, **more) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "pspin_lite", *words], capture_output=True, text=True, **more)


def test_commands(tmp_path, run, capsys):
    words = ["--steps", "3", "--set", "gamma_start=0.2", "--validate-tokens", "64", "--final-tokens", "128"]
    assert cli.main(["train", "byte-smoke", "--out", str(tmp_path / "run"), *words]) == 0
    said = capsys.readouterr().out
    assert said.startswith("sotu train, tokenizer bytes")
    assert "bits per byte" in said
    assert ps.Run(tmp_path / "run").cfg.gamma_start == 0.2
    assert cli.main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert cli.main(["evaluate", str(tmp_path / "run"), "--windows", "2"]) == 0
    assert capsys.readouterr().out.count("bits per byte") == 2
    for words, message in [
        (["train"], "expected one of the two"),
        (["train", "byte-smoke", "--resume", "x"], "expected one of the two"),
        (["train", "--resume", str(run.folder), "--steps", "3"], "none: a run goes on as it began"),
        (["train", "byte-smoke", "--set", "gama_start=1"], "did you mean 'gamma_start'"),
        (["evaluate", str(tmp_path / "nothing")], "or the path of a run's folder"),
    ]:
        assert cli.main(words) == 1
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


def test_text_from_a_run_and_from_its_exported_form(tmp_path, run, capsys):
    words = ["--prompt", "Document", "--tokens", "20", "--seed", "3"]
    assert cli.main(["generate", str(run.folder), *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Document")
    assert cli.main(["generate", str(run.folder), *words]) == 0
    assert capsys.readouterr().out == text
    assert cli.main(["export", str(run.folder), str(tmp_path / "model.safetensors")]) == 0
    assert "header and scales" in capsys.readouterr().out
    assert cli.main(["generate", str(tmp_path / "model.safetensors"), *words]) == 0
    assert capsys.readouterr().out.startswith("Document")
    exported = ps.load(tmp_path / "model.safetensors")
    assert (exported.cfg, exported.tokenizer.identity()) == (run.cfg, run.tokenizer.identity())
    assert ps.load(run.folder).summary == run.summary
    assert cli.main(["evaluate", str(exported.path)]) == 1
    assert "an exported file does not say on what data" in capsys.readouterr().err
    assert cli.main(["generate", str(run.folder), "--temperature", "-1"]) == 1
    assert "temperature: got -1.0, expected" in capsys.readouterr().err
    assert cli.main(["generate", str(tmp_path / "nothing")]) == 1
    assert "or the path of a run's folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["byte-lite", "byte-mended"])
def test_a_model_that_comes_with_the_package(name):
    """Its record is whole, and its score on a part of the validation is the recorded one."""
    run = ps.load(name)
    assert run.cfg == ps.preset(name)
    assert len(run.metrics("step")) == run.summary["steps"] == run.cfg.steps
    assert run.model.tokenizer_identity == run.tokenizer.identity()
    data = run.data()["held-out"]
    last = run.metrics("validation")[-1]
    score = ps.evaluate(run.model, data, 64)
    assert (last["split"], last["step"], last["tokens"]) == ("held-out", run.cfg.steps, score["tokens"])
    assert score["bits_per_byte"] == pytest.approx(last["bits_per_byte"], abs=1e-3)
    with pytest.raises(ValueError, match=r"source: got 'bite-lite', .*did you mean"):
        ps.load("bite-lite")


# Several processes


@pytest.mark.fault(17)
def test_two_processes(tmp_path, texts, run):
    """torchrun with two processes: the losses of one with the same batch; and each resumes the other."""
    words = ["train", "byte-smoke", "--corpus", str(texts), "--out", str(tmp_path / "run")]
    words += ["--steps", "14", "--batch", "4", "--set", "context=32", "--set", "width=16", "--set", "inner=16"]
    words += ["--validate-every", "4", "--checkpoint-every", "3", "--validate-tokens", "64", "--final-tokens", "128"]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | dict(OMP_NUM_THREADS="1")
    done = subprocess.run([*launch, "-m", "pspin_lite", *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    both = ps.Run(tmp_path / "run")
    for kind, names in (("step", ("loss", "norm")), ("validation", ("bits_per_byte", "tokens", "bytes"))):
        for one, two in zip(run.metrics(kind), both.metrics(kind), strict=True):
            for name in names:
                assert one[name] == pytest.approx(two[name], rel=1e-4), (kind, name, one["step"])
    assert files.read_json(both.folder / "environment.json")["starts"][0]["processes"] == 2
    assert done.stdout.count("sotu train") + done.stdout.count("corpus train") == 1, "more than one process speaks"


def test_batches_are_shared_evenly(monkeypatch):
    world = training.distributed.World(0, 3)
    assert training.distributed.share(6, world) == 2
    with pytest.raises(ValueError, match=r"batch: got 4, expected a multiple of the number of processes \(3\)"):
        training.distributed.share(4, world)


# What is seen


def test_progress(monkeypatch, capsys):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    bar = progress.Progress(10, 2, 4.0, True)
    bar.residual = 3e-6
    bar.step(2.0, 0.5, 1234.0, 2.5)
    bar.step(1.0, 0.5, 1234.0, 2.5)
    bar.bar.refresh()
    bar.say("a line")
    bar.close()
    last = shown.getvalue().replace("\r", "\n")
    assert "4/10" in last
    bits = (0.98 * 2.0 + 0.02 * 1.0) / math.log(2) / 4
    assert f"loss 1.000, smooth 1.980, {bits:.3f} bits/byte, 1234 tokens/s, |g| 0.50, K 2.5, residual 3e-06" in last
    assert "a line" in capsys.readouterr().out
    quiet = progress.Progress(10, 0, None, "auto")
    quiet.step(1.0, 1.0, 1.0, None)
    assert quiet.bar is None


TRAIN = """
import torch
import pspin_lite as ps
run = ps.train(ps.preset("byte-smoke").replace(steps=100_000), {out!r}, corpus={texts!r}, validate_every=50_000)
"""
LOOK = """
print(run.stopped, len(run.metrics("step")) > 3, run.summary, run.model(torch.zeros(1, 2).long()).shape)
"""


@pytest.mark.fault(9)
def test_a_notebooks_interrupt(tmp_path, texts):
    """A real kernel, interrupted as by the stop button: the cell returns, and the next one uses the model."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=40"])
    try:
        client.execute(TRAIN.format(out=str(tmp_path / "run"), texts=str(texts)))
        metrics = tmp_path / "run" / "metrics.jsonl"
        while not metrics.exists() or len(metrics.read_text().splitlines()) < 10:
            assert manager.is_alive()
            time.sleep(0.05)
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=60)
        assert reply["content"]["status"] == "ok", reply["content"]
        said = []
        client.execute_interactive(LOOK, output_hook=said.append, timeout=60)
        assert (
            "".join(message["content"].get("text", "") for message in said)
            == "SIGINT True None torch.Size([1, 2, 256])\n"
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert list((tmp_path / "run" / "checkpoints").glob("step-*/manifest.json"))
