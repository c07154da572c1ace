"""The study: its plan, its work, its records."""

from __future__ import annotations

import dataclasses
import math
import re
import signal
import threading

import pytest
import torch
from helpers import message

import pspin_lite as ps
from pspin_lite import _files as files
from pspin_lite.cli import main
from pspin_lite.study import experiments, further, jobs, networks, records, store
from pspin_lite.training import nonfinite, probes, recipe
from pspin_lite.training import train as training
from pspin_lite.training.loop import Trainer
from pspin_lite.training.runs import Run

STORED = [name for name in store.current().names() if name.count("/") == 2]


@pytest.fixture
def small_probes(monkeypatch):
    monkeypatch.setattr(probes, "PROBE_SEQUENCES", 4)


@pytest.fixture
def empty(tmp_path, monkeypatch, small_probes):
    """No records yet, and a study of seconds."""
    short = {"smoke": tuple(_shortened(arm) for arm in networks.GROUPS["smoke"])}
    monkeypatch.setattr(networks, "GROUPS", short)
    monkeypatch.setattr(jobs, "SMOKE", dict(validate_tokens=128, final_tokens=256))
    monkeypatch.setattr(jobs, "CONTEXT_WINDOWS", 8)
    monkeypatch.setattr(jobs, "SILENT_WINDOWS", 8)
    with records.using(tmp_path / "published"):
        yield tmp_path


@pytest.fixture
def empty_folder(tmp_path):
    """No records yet."""
    with records.using(tmp_path):
        yield tmp_path


def recorded(out, name):
    return files.read_json(out / "records" / f"{name}.json")


def finished(bits):
    """A record of a try, with nothing but its score."""
    return dict(summary=dict(validation={"held-out": dict(bits_per_byte=bits)}))


def _shortened(arm: networks.Arm) -> networks.Arm:
    return dataclasses.replace(arm, cfg=arm.cfg.replace(steps=12, context=16))


# The arms


def test_arms_of_a_group_differ_in_what_they_say_and_in_nothing_else():
    for group, members in networks.GROUPS.items():
        if group == "presets":  # as they are
            continue
        shared = {(a.cfg.batch, a.cfg.steps, a.cfg.warmup, a.cfg.cooldown, a.cfg.context, a.cfg.vocab) for a in members}
        assert len(shared) == 1, group
        shared = {(a.cfg.clip, a.cfg.weight_decay, a.cfg.min_ratio, a.cfg.optimizer, a.short) for a in members}
        assert len(shared) == 1, group
        assert len({a.cfg.betas for a in members}) == 1 or group.startswith("moments"), group


@pytest.mark.parametrize("group", ["bytes-1", "bytes-64", "subwords-1", "subwords-64", *networks.SECOND])
def test_arms_have_the_same_number_of_parameters(group):
    models = {arm.name: ps.build(arm.cfg) for arm in networks.GROUPS[group]}
    sizes = {name: sum(p.numel() for p in model.parameters()) for name, model in models.items()}
    whole = {"bytes": 1_107_968, "subwords": 1_094_728}["subwords" if "subwords" in group else "bytes"]  # p-Spin's
    whole = {"quarter": 285_696, "four": 4_362_240}.get(group.removesuffix("-long").removeprefix("sizes-"), whole)
    if "no-mlp" in sizes:
        assert sizes.pop("no-mlp") < 0.65 * whole
    if "k0" in sizes:
        assert sizes.pop("k0") == pytest.approx(0.64 * whole, rel=0.01)
    if group.startswith("steps-"):
        assert sizes.pop("narrow") < 0.8 * whole < 1.4 * whole < sizes.pop("wide")
        arithmetic = {name: jobs.flops_a_step(networks.arm(group, name).cfg) for name in ("wide", "k5")}
        assert arithmetic["wide"] == pytest.approx(arithmetic["k5"], rel=0.001)
    for name, size in sizes.items():
        of_another_depth = "subwords" in group and name.startswith("transformer")
        assert size == pytest.approx(whole, rel=0.035 if of_another_depth else 0.01), name


def test_the_paper_rate_is_tried_and_tries_are_a_quarter_as_long():
    cfg = networks.arm("bytes-1", "p-spin").cfg
    assert ps.preset("byte-paper").lr in networks.RATES
    tried = networks.attempt(cfg, 1.6e-3, 2.0)
    assert (tried.steps, tried.lr, tried.gain, tried.ternary_gain, tried.seed) == (2000, 1.6e-3, 2.0, 2.0, 1337)
    assert networks.TRY_SEED not in networks.SEEDS
    assert networks.tuned(networks.arm("bytes-1", "transformer").cfg, 1e-3, 2.0).gain == 2.0
    for words, call in (("group", lambda: networks.arm("byte", "x")), ("arm", lambda: networks.arm("bytes-1", "x"))):
        with pytest.raises(ValueError) as raised:
            call()
        assert words in message(raised)


def test_runs_about_the_second_moment_reach_the_optimizer():
    """Each at its network's tuned rate or a multiple of it, with its own beta2, and in the order the page asks for."""
    best = {
        "p-spin": (1.6e-3, 2.0),
        "transformer": (8e-4, 1.0),
        "tanh-tanh": (8e-4, 1.0),
        "swiglu": (8e-4, 1.0),
    }
    names = [name for name, _ in jobs.plan() if name.startswith(("moments", "sgd"))]
    counts = {group: sum(name.startswith(group + "/") for name in names) for group in networks.SECOND}
    assert {group: counts[group] for group in ("moments", "moments-rates", "moments-8", "sgd")} == {
        "moments": 60,
        "moments-rates": 20,
        "moments-8": 8,
        "sgd": 16,
    }
    of_two = re.compile(r"moments/(p-spin|transformer)-beta2-(0.95|0.99|0.999)/seed-[123]")
    of_others = re.compile(r"moments/(tanh-tanh|swiglu)-beta2-(0.95|0.99|0.999)/seed-[123]")
    assert all(of_two.fullmatch(name) for name in names[:18])
    assert all(of_others.fullmatch(name) for name in names[18:36])
    for group in ("moments", "moments-rates", "moments-8", "sgd"):
        for arm in networks.GROUPS[group]:
            network, label, *numbers = re.fullmatch(
                r"(.*)-(beta2|rate)-([\d.]+)(?:-times-([\d.]+))?", arm.name
            ).groups()
            lr, scale = best[network]
            for job in jobs.jobs(group, arm.name):
                optimizer = recipe.optimizer(ps.build(job.cfg))
                group_of = optimizer.param_groups[0]
                assert (job.cfg.gain, job.cfg.batch * job.cfg.steps) == (scale, 2000), job.name
                assert job.settings == jobs.TRY
                if label == "rate":
                    assert type(optimizer) is torch.optim.SGD
                    momentum, decay = group_of["momentum"], group_of["weight_decay"]
                    assert (job.cfg.lr, momentum, decay) == (float(numbers[0]), 0, 0)
                    continue
                times = 8**0.5 if group == "moments-8" else float(numbers[1] or 1)
                assert type(optimizer) is torch.optim.AdamW
                assert (group_of["betas"], group_of["weight_decay"]) == ((0.9, float(numbers[0])), 0.05)
                assert group_of["lr"] == pytest.approx(times * lr)


def test_a_change_is_the_only_one():
    """Of the groups that were written down last: what differs from the network that each varies."""
    mended, k5 = networks.arm("repair-bytes", "mended").cfg, networks.arm("steps-bytes", "k5").cfg
    p_spin = networks.arm("bytes-1", "p-spin").cfg

    def changed(cfg, base, *allowed):
        names = {f.name for f in dataclasses.fields(base)}
        return {name for name in names if getattr(cfg, name) != getattr(base, name)} - {"steps", "inner", *allowed}

    ladder = {arm.name: arm.cfg for arm in networks.GROUPS["ladder-bytes"]}
    assert changed(ladder["mended"], mended) == set()
    assert changed(ladder["output-gate"], mended) == {"output_gate"}
    assert changed(ladder["norm-down"], mended) == {"norm_down"}
    assert changed(ladder["k5"], mended) == {"mlp"}
    assert changed(ladder["k5"], k5) == {"convolution"}
    assert changed(ladder["wider"], ladder["k5"]) == {"gamma_range", "gamma_start"}
    starts = [cfg.gamma_range * math.tanh(cfg.gamma_start) for cfg in (ladder["k5"], ladder["wider"])]
    assert starts[0] == pytest.approx(starts[1], rel=0.01), "both start at the same gamma"
    assert changed(ladder["penalty"], ladder["k5"]) == {"penalty"}
    assert changed(ladder["p-spin-norms"], p_spin) == set()
    assert ps.build(ladder["p-spin-norms"]).blocks[0].mixer.norm_o is not None
    stack = {arm.name: arm.cfg for arm in networks.GROUPS["stack-bytes"]}
    assert changed(stack["two-stage"], mended) == {"late_rate"}
    repairs = {"gate", "norm_qk", "norm_state", "output_gate", "norm_down"}
    assert changed(stack["stacked"], mended) == repairs
    assert changed(stack["swiglu-stacked"], stack["stacked"]) == {"mlp", "nonlinearity", "norm_down"}
    assert changed(stack["attention-stacked"], networks.arm("repair-bytes", "attention-convolution").cfg) == {
        "output_gate"
    }
    for alphabet in ("bytes", "subwords"):
        cost = [
            jobs.flops_a_step(networks.arm(group, name).cfg)
            for group, name in ((f"stack-{alphabet}", "stacked"), (f"{alphabet}-1", "transformer"))
        ]
        assert cost[0] < cost[1], "the goal is to match the Transformer at no more arithmetic"
    for arm in networks.GROUPS["gains-bytes"]:
        base = networks.arm(*arm.tuned_as.split("/")).cfg
        part, times = re.fullmatch(r".*-(mixer|couplings|down)-([\d.]+)", arm.name).groups()
        gains = {gain: getattr(arm.cfg, gain) for gain in ("mixer_gain", "coupling_gain", "down_gain")}
        assert [gain for gain, value in gains.items() if value != 1] == [further.GAINS[part]]
        assert gains[further.GAINS[part]] == float(times)
        assert changed(arm.cfg, base, *gains) == set()


def test_batch_and_text_change_one_at_a_time():
    """Four cells with the same shares of warm-up and cool-down, each at the rate of its batch size."""
    cells = {"subwords-1": (1, 8_000), "data-64-subwords": (64, 8_000), "data-64-subwords-long": (64, 64_000)}
    cells["data-1-subwords-long"] = (1, 64_000)
    for group, (batch, sequences) in cells.items():
        for name in ("p-spin", "transformer"):
            arm = networks.arm(group, name)
            assert (arm.cfg.batch, arm.cfg.batch * arm.cfg.steps) == (batch, sequences)
            assert arm.cfg.warmup / arm.cfg.steps == pytest.approx(1 / 16, abs=0.002)
            assert arm.cfg.cooldown / arm.cfg.steps == pytest.approx(1 / 8, abs=0.004)
            assert arm.tuned_as in (None, f"subwords-{batch}/{name}")


def test_tries_of_a_short_run_are_as_long_as_it(empty_folder):
    tries = list(jobs.jobs("ladder-bytes", "k5"))
    assert [(job.cfg.steps, job.cfg.seed, job.cfg.lr) for job in tries] == [(2000, 1337, lr) for lr in networks.RATES]
    for i, lr in enumerate(networks.RATES):
        store.write(f"ladder-bytes/k5/try-{lr:g}-1", finished(2.0 + i), empty_folder)
    store.write("ladder-bytes/k5/try-0.0004-2", finished(3.0), empty_folder)
    for name in ("k5", "penalty"):
        runs = [job for job in jobs.jobs("ladder-bytes", name) if "/seed-" in job.name]
        assert [(job.cfg.steps, job.cfg.seed, job.cfg.lr, job.cfg.gain) for job in runs] == [
            (2000, seed, 4e-4, 1.0) for seed in networks.SEEDS
        ]


NEW = [("ladder-bytes", arm.name) for arm in networks.GROUPS["ladder-bytes"]]
NEW += [("stack-bytes", arm.name) for arm in networks.GROUPS["stack-bytes"]]
NEW += [("gains-bytes", "p-spin-couplings-2"), ("noise-bytes", "k5")]


@pytest.mark.parametrize(("group", "name"), NEW)
def test_what_was_written_down_last_trains_and_goes_on(group, name, tmp_path, texts, small_probes):
    """A few steps of a small one, stopped before the first and taken up again."""
    arm = networks.arm(group, name)
    cfg = arm.cfg.replace(steps=4, context=16, warmup=1, cooldown=1, width=32, heads=2, inner=16)
    settings = arm.settings | dict(corpus=str(texts), validate_tokens=64, final_tokens=64, probe_every=2)
    whole = training.train(cfg, tmp_path / "whole", show=False, **settings)
    stop = threading.Event()
    stop.set()
    assert training.train(cfg, tmp_path / "stopped", show=False, stop=stop, **settings).stopped
    again = training.train(cfg, tmp_path / "stopped", show=False, **settings)
    assert again.summary["weights_sha256"] == whole.summary["weights_sha256"]
    assert ("parts" in again.metrics("noise")[0]) is (group == "noise-bytes")


def test_a_short_run_keeps_its_result_and_what_was_looked_at(empty, monkeypatch):
    """It takes over the tries of another arm, and trains with its own beta2 and seed, at a multiple of the rate."""
    smoke = networks.GROUPS["smoke"]
    cfg = smoke[0].cfg.replace(betas=(0.9, 0.5))
    arm = networks.Arm("other", "byte-smoke", cfg, "smoke/p-spin", {}, (1, 7), True, 0.5)
    looked = dataclasses.replace(arm, name="looked", settings=dict(probe_every=cfg.steps // 2), seeds=(1,))
    monkeypatch.setattr(networks, "GROUPS", {"smoke": smoke, "smoke-short": (arm, looked)})
    assert [name for name, _ in jobs.plan()][-3:] == [
        f"smoke-short/{name}" for name in ("other/0", "other/1", "looked/0")
    ]
    jobs.work(["smoke/p-spin", "smoke-short"], empty / "runs")
    for seed in (1, 7):
        record = recorded(empty / "runs", f"smoke-short/other/seed-{seed}")
        full = recorded(empty / "runs", "smoke/p-spin/seed-1")["config"]["model"]
        model = record["config"]["model"]
        assert (model["betas"], model["seed"], model["lr"]) == ([0.9, 0.5], seed, full["lr"] / 2)
        assert record["summary"]["validation"].keys() == {"held-out", "recent"}
        assert record.keys() == recorded(empty / "runs", "smoke/p-spin/try-0.0008-1").keys()
    seen = recorded(empty / "runs", "smoke-short/looked/seed-1")
    assert [one["step"] for one in seen["branches"]] == [0, cfg.steps // 2, cfg.steps]
    assert (
        seen["summary"]["validation"] == recorded(empty / "runs", "smoke-short/other/seed-1")["summary"]["validation"]
    )
    with records.using(empty / "runs/records"):
        assert records.missing("smoke-short/other") == []


def test_continual_arms_take_over_what_was_tuned(tmp_path):
    assert len(networks.GROUPS["continual"]) == 12
    arm = networks.arm("continual", "swiglu-replay")
    assert (arm.tuned_as, arm.settings["order"], arm.settings["corpus"]) == ("bytes-1/swiglu", "replay", "sotu-eras")
    names = [name for name, _ in jobs.plan() if name.startswith("continual/")]
    assert len(names) == 36, "no tries of their own"
    with records.using(tmp_path):
        assert list(jobs.jobs("continual", "swiglu-replay")) == []
        cfg = networks.arm("bytes-1", "swiglu").cfg
        for lr, scale, bits in ((4e-4, 1, 2.4), (8e-4, 1, 2.3), (1.6e-3, 1, 2.1), (3.2e-3, 1, 2.2), (1.6e-3, 2, 2.0)):
            name = jobs._try("bytes-1/swiglu", cfg, lr, scale).name
            store.write(name, finished(bits), tmp_path)
        runs = list(jobs.jobs("continual", "swiglu-replay"))
    assert [job.cfg.seed for job in runs] == [1, 2, 3]
    assert {(job.cfg.lr, job.cfg.gain, job.cfg.cooldown, job.cfg.steps) for job in runs} == {(1.6e-3, 2.0, 0, 4800)}
    assert runs[0].settings["probe_every"] is None


def test_tries_go_on_beyond_the_highest_rate_and_choose_nothing(empty_folder):
    cfg, base = networks.arm("subwords-1", "p-spin").cfg, "subwords-1/p-spin"

    def done(lr, bits, scale=1.0):
        name = jobs._try(base, cfg, lr, scale).name
        store.write(name, finished(bits), empty_folder)

    def known():
        return [job.name.rpartition("/")[2] for job in jobs.jobs("subwords-1", "p-spin")]

    def planned():
        return [name for name, _ in jobs.plan() if name.startswith(base + "/")]

    assert len(planned()) == 8
    for i, lr in enumerate(networks.RATES):
        done(lr, 2.5 - 0.1 * i)
    assert known()[4:] == ["try-0.0032-2", "try-0.0064-1"]
    done(3.2e-3, 2.3, scale=2.0)
    assert known()[5:] == ["seed-1", "seed-2", "seed-3", "try-0.0064-1"]
    done(6.4e-3, 2.1)
    assert known()[8:] == ["try-0.0064-1", "try-0.0128-1"]
    done(1.28e-2, 2.3)
    assert known()[8:] == ["try-0.0064-1", "try-0.0128-1", "try-0.0064-2"], "a higher one is worse"
    done(6.4e-3, 2.0, scale=2.0)
    assert len(planned()) == 11
    seeds = [job.cfg for job in jobs.jobs("subwords-1", "p-spin") if "/seed-" in job.name]
    assert {(cfg.lr, cfg.gain) for cfg in seeds} == {(3.2e-3, 1.0)}
    done(1.28e-2, 1.9)
    done(2.56e-2, 1.8)
    assert known()[8:] == ["try-0.0064-1", "try-0.0128-1", "try-0.0256-1", "try-0.0256-2"], "there is an end to it"


# The work


def test_from_tries_to_seeds(empty, capsys):
    assert [job for _, job in jobs.plan()].count(None) == 8, "eight tries are known, the rest waits for them"
    assert jobs.work([], empty / "runs") == (16, None)
    assert jobs.work([], empty / "runs") == (0, None), "nothing is done twice"
    for arm in ("p-spin", "transformer"):
        runs = {path.stem: files.read_json(path) for path in (empty / "runs/records/smoke" / arm).iterdir()}
        tries = {name: jobs.score(record) for name, record in runs.items() if name.startswith("try-")}
        assert len(tries) == 5
        best = min((name for name in tries if name.endswith("-1")), key=tries.get)
        assert f"{best[:-2]}-2" in tries, "the last try has the best rate"
        best = min(tries, key=tries.get)
        seeds = [record for name, record in runs.items() if name.startswith("seed-")]
        assert {record["config"]["model"]["seed"] for record in seeds} == {1, 2, 3}
        for record in seeds:
            model = record["config"]["model"]
            assert f"try-{model['lr']:g}-{model['gain']:g}" == best
            assert len(record["loss"]) == len(record["norm"]) == 12
            assert record["noise"]
            assert record["context"]["context"] == [1, 2, 4, 8]
            assert record["probe"]
            assert record["summary"]["flops_a_step"] > 0
            assert "loss" not in runs[best], "a try keeps its result alone"
    assert experiments.main(["smoke"], str(empty / "runs"), None, listing=True) is None
    assert "missing" not in capsys.readouterr().out


def test_an_interrupted_run_goes_on(empty):
    stop = threading.Event()
    stop.set()
    done, stopped = jobs.work([], empty / "runs", stop=stop)
    assert done == 0
    assert stopped
    assert not (empty / "runs/records").exists()
    name = "smoke/p-spin/try-0.0008-1"
    assert jobs.work([name], empty / "runs") == (1, None)
    assert recorded(empty / "runs", name)["summary"]


def test_a_run_in_use_is_passed_over(empty):
    name = "smoke/p-spin/try-0.0008-1"
    other = Run(empty / "runs" / name)
    other.folder.mkdir(parents=True)
    other.hold()
    assert jobs.work(["smoke/p-spin"], empty / "runs", minutes=1) == (3, None), "the other tries"
    other.release()


def test_a_try_that_leaves_the_finite_numbers_has_lost(empty, monkeypatch):
    train = training.train

    def explode(cfg, out, **more):
        if cfg.lr == networks.RATES[-1]:
            train(cfg.replace(steps=1), out, **more)
            raise nonfinite.NonFinite("step 3: loss nan")
        return train(cfg, out, **more)

    monkeypatch.setattr(training, "train", explode)
    jobs.work(["smoke/p-spin"], empty / "runs")
    record = recorded(empty / "runs", "smoke/p-spin/try-0.0032-1")
    assert record["failure"] == "step 3: loss nan"
    assert jobs.score(record) == float("inf")
    assert len(list((empty / "runs/records/smoke/p-spin").glob("seed-*.json"))) == 3
    assert main(["experiments", "smoke/p-spin/try-0.0032-1", "--again", "--out", str(empty / "runs")]) == 0
    again = files.read_json(empty / "runs" / experiments.AGAIN / "smoke/p-spin/try-0.0032-1.json")
    assert (again["failure"], again["summary"]) == ("step 3: loss nan", None), "what came out of it, too"


@pytest.mark.parametrize("good", [0, 8], ids=lambda good: f"after {good} steps")
def test_a_full_run_that_leaves_the_finite_numbers_is_kept(empty, monkeypatch, good):
    """With its steps up to there; if there are none, there is no model to look at either."""
    backward = Trainer.backward

    def explode(self, batch):
        loss = backward(self, batch)
        return loss * math.nan if self.cfg.seed == 2 and self.step == good else loss

    monkeypatch.setattr(Trainer, "backward", explode)
    assert jobs.work(["smoke/transformer"], empty / "runs") == (8, None)
    record = recorded(empty / "runs", "smoke/transformer/seed-2")
    assert record["summary"] is None
    assert record["failure"].startswith(f"step {good + 1}: loss nan")
    assert len(record["loss"]) == len(record["norm"]) == good
    assert "context" not in record
    assert jobs.score(record) == math.inf


def test_names(empty):
    assert jobs.matches("a/b/c", [])
    assert jobs.matches("a/b/c", ["a/b"])
    assert not jobs.matches("a/bb/c", ["a/b"])
    with pytest.raises(ValueError) as raised:
        experiments.main(["smoke/gpt"], str(empty), None, listing=True)
    assert "smoke/gpt" in message(raised)


def test_the_command_says_what_is_wrong_in_one_line(capsys):
    assert main(["experiments", "--list", "smoke/gpt"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "smoke/gpt" in said
    assert main(["experiments", "--list", "smoke"]) == 0
    assert "smoke/p-spin/seed-1" in capsys.readouterr().out
    assert main(["experiments", "--list", "smok"]) == 1
    assert "did you mean 'smoke'" in capsys.readouterr().err


# The records that are stored


@pytest.mark.parametrize("name", STORED)
def test_a_record_is_that_of_its_job(name):
    """A configuration that was changed after the run, or a record moved by hand, would be found here."""
    group, arm, _ = name.split("/")
    record = records.read(name)
    job = {job.name: job for job in jobs.jobs(group, arm)}[name]
    assert record["command"] == f"python -m pspin_lite experiments {job.name}"
    assert ps.config.from_dict(record["config"]["model"]) == job.cfg
    training_ = record["config"]["training"]
    assert {name: training_[name] for name in job.settings} == job.settings
    starts = record["environment"].get("commits", [[0, record["environment"]["commit"]]])
    form = "[0-9a-f]{40}[+]?" if group.startswith("smoke") else "[0-9a-f]{40}"
    assert all(re.fullmatch(form, commit) for _, commit in starts), "which code; in the study none that was changed"
    if record["summary"] is not None and not job.short:
        assert record["summary"]["steps"] == len(record["loss"]) == job.cfg.steps


@pytest.mark.parametrize("group", [group for group in networks.GROUPS if not group.startswith("smoke")])
def test_stored_flops_are_what_a_step_takes(group):
    for arm in networks.GROUPS[group]:
        full = [job.name for job in jobs.jobs(group, arm.name) if "/seed-" in job.name]
        assert full or group in networks.SECOND, "its tries are not over"
        for name in list(filter(records.has, full))[:1]:
            assert records.read(name)["summary"]["flops_a_step"] == jobs.flops_a_step(arm.cfg), name


def test_a_stored_run_repeats(tmp_path, capsys, monkeypatch):
    """Not to the last bit: another CPU rounds in another way. The first losses agree closely, the last roughly."""
    name = "smoke/p-spin/seed-1"
    before = (store.PUBLISHED / "smoke.jsonl").read_bytes()
    stored, again = records.read(name), jobs.again(name, tmp_path / "run")
    assert again["loss"][:5] == pytest.approx(stored["loss"][:5], abs=2e-3)
    assert again["loss"] == pytest.approx(stored["loss"], abs=0.05)
    assert again["noise"][0]["scale"] == pytest.approx(stored["noise"][0]["scale"], rel=0.1)
    assert jobs.score(again) == pytest.approx(jobs.score(stored), rel=0.01)
    for key in ("flops_a_step", "parameters", "tokens"):
        assert again["summary"][key] == stored["summary"][key]
    assert again["data"] == stored["data"]
    assert main(["experiments", name, "--again", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"on record {jobs.score(stored):.4f}" in said
    assert f"records of what is repeated: {tmp_path / 'again' / 'records'}\n" in said
    kept = files.read_json(tmp_path / "again" / "records" / f"{name}.json")
    later = {"branches", "silenced", "windows held-out", "windows recent"}  # kept since the second study
    assert kept.keys() - later == stored.keys()
    assert kept["summary"].keys() == stored["summary"].keys()
    assert kept["loss"] == again["loss"], "the whole record"

    def stopped(cfg, out, **more):
        run = Run(out)
        run.stopped = "SIGTERM"
        return run

    with monkeypatch.context() as patch:
        patch.setattr(training, "train", stopped)
        assert main(["experiments", name, "--again", "--out", str(tmp_path)]) == 128 + signal.SIGTERM
    folders = {path.name for path in (tmp_path / "smoke/p-spin").iterdir()}
    assert folders == {"seed-1-again-1"}, "whole"
    patched = training.train
    taken = []
    monkeypatch.setattr(training, "train", lambda cfg, out, **more: taken.append(out.name) or patched(cfg, out, **more))
    assert main(["experiments", name, "--again", "--out", str(tmp_path)]) == 0
    assert taken == ["seed-1-again-2"], "a finished run is not taken for a new one"
    newest = files.read_json(tmp_path / "again" / "records" / f"{name}.json")
    assert newest["summary"]["seconds"] == Run(tmp_path / "smoke/p-spin/seed-1-again-2").summary["seconds"]
    assert (store.PUBLISHED / "smoke.jsonl").read_bytes() == before, "the record stays"
    assert main(["experiments", "--again", "--out", str(tmp_path)]) == 1, "all of it would take days: to be named"
    assert "no run that is on record" in capsys.readouterr().err


def test_again_takes_whole_arms(empty, capsys):
    jobs.work(["smoke/p-spin"], empty / "runs")
    capsys.readouterr()
    assert main(["experiments", "smoke", "--again", "--out", str(empty / "runs")]) == 0
    _, *said = capsys.readouterr().out.splitlines()
    assert len(said) == 8, "five tries and three seeds of one arm; of the other there are none"
    for line in said:
        here, stored = (part.split()[-2] for part in line.split(", "))
        assert here == stored, "the same machine: the same bits"
    kept = [
        path.relative_to(empty / "runs" / experiments.AGAIN) for path in (empty / "runs/again").rglob("seed-?.json")
    ]
    assert len(kept) == 3
    assert all((empty / "runs/records" / path).exists() for path in kept), "laid out like the first ones"


def test_a_second_interrupt_is_not_taken_for_the_end(empty, monkeypatch):
    """The first lets the step end, and is told; the second is Python's own."""
    name = "smoke/p-spin/try-0.0008-1"
    jobs.work([name], empty / "runs")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    assert main(["experiments", name, "--again", "--out", str(empty / "runs")]) == 128 + signal.SIGINT


def test_calls_that_do_nothing_say_so(empty, capsys):
    name = "smoke/p-spin/try-0.0008-1"

    def call(*words):
        return main(["experiments", *words, "--out", str(empty / "runs")])

    assert call(name) == 0
    assert "nothing to do" not in capsys.readouterr().out
    assert call(name) == 0
    assert "nothing to do" in capsys.readouterr().out
    for words in (["--minutes", "0"], ["--minutes", "nan"], ["--minutes", "1", "--list"], ["--list", "--again"]):
        assert call(*words) == 1
        said = capsys.readouterr().err
        assert words[0] in said
        assert said.count("\n") == 1
