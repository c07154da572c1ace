"""The loop behind `training.train`: data, model and optimizer of one run, its steps, validations and checkpoints.

One object a process. With several processes (distributed.py) each computes its share of a batch, and the first one
writes files and speaks.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from .. import _files as files
from .. import config, fixed_points
from ..model import Attractor
from ..variants import build
from . import checkpoint, distributed, evaluation, interrupts, nonfinite, recipe
from .probes import Probes
from .progress import Progress
from .runs import Run, in_json
from .settings import Settings

MINUTES = 5  # between checkpoints at most, however long a step takes
FIGURES = ("bits_per_byte", "nats_per_token", "perplexity")


class Trainer(Probes):
    def __init__(
        self,
        run: Run,
        cfg: config.Config,
        settings: Settings,
        world: distributed.World,
        stop: interrupts.Stop,
        *,
        device: str,
        workers: int,
        show: bool | str,
    ):
        self.run, self.cfg, self.settings, self.world, self.stop = run, cfg, settings, world, stop
        cuda = device == "cuda"
        self.device = torch.device("cuda", world.local) if cuda else torch.device("cpu")
        every = max(10, cfg.steps // 20)
        self.validate_every = settings.validate_every or every
        self.checkpoint_every = settings.checkpoint_every or every
        share = distributed.share(cfg.batch, world)
        self.micro = min(settings.micro_batch or share, share)
        half = settings.precision == "bfloat16" or (settings.precision == "auto" and cuda)
        self.autocast = functools.partial(torch.autocast, device, torch.bfloat16, enabled=half)

        self.open_data()
        torch.manual_seed(cfg.seed)
        self.model = build(cfg).to(self.device)
        run._model = self.model
        self.optimizer = recipe.optimizer(self.model)
        self.step = self.tokens = 0
        self.seconds = self.cpu_seconds = 0.0  # spent in training steps, over all starts; of this process
        self.recorded: set[str] = set()  # kinds of record that this step has from before a stop
        self.take_up()
        self.parallel = distributed.parallel(self.model, world)
        self.loss: Callable[..., Tensor] = torch.compile(self.parallel) if settings.compile else self.parallel
        self.batches = self.train_data.batches(self.step, cfg.batch, world.rank, world.size, workers, cuda)
        show = show if world.first else False
        self.progress = Progress(cfg.steps, self.step, self.train_data.bytes_per_token, show)
        self.saved = time.monotonic()

    # Data

    def open_data(self) -> None:
        if self.world.first:
            kept = self.run.folder / "tokenizer.json"
            if not kept.exists():
                self.settings.open_tokenizer(self.cfg).save(kept)
            data = self.run.data()  # fills the caches that the other processes read
            self.keep({split: one.identity() for split, one in data.items()})
        self.world.wait()
        if not self.world.first:
            data = self.run.data()
        self.train_data, self.validation = data.pop("train"), data

    def keep(self, about: dict) -> None:
        path = self.run.folder / "data.json"
        if not path.exists():
            files.write_json(path, about)
        elif (before := files.read_json(path)) != about:
            other = sorted({key for split in about for key in about[split] if about[split] != before.get(split)})
            raise files.FileError(f"{path}: the run was started on other data (see {', '.join(other)} there)")

    # Going on

    def take_up(self) -> None:
        newest = checkpoint.newest(self.run.folder / "checkpoints")
        if newest is not None:
            checkpoint.restore(newest, self.model, self.optimizer)
            state = newest.state
            self.step, self.tokens = state["step"], state["tokens"]
            self.seconds, self.cpu_seconds = state["seconds"], state["cpu_seconds"]
            torch.set_rng_state(torch.tensor(list(bytes.fromhex(state["generators"]["cpu"])), dtype=torch.uint8))
            self.compare_threads(state)
        if self.world.first:
            self.recorded = self.run.cut_metrics(self.step)
            self.run.note_environment(step=self.step, device=self.device.type, processes=self.world.size)

    def compare_threads(self, state: dict) -> None:
        here = dict(threads=torch.get_num_threads(), torch=torch.__version__, device=self.device.type)
        other = [f"{name} {state[name]} before, {here[name]} now" for name in here if state[name] != here[name]]
        if other and self.world.first:
            warnings.warn(
                f"the run goes on with {'; '.join(other)}: same data, numbers close but not equal to the last bit",
                stacklevel=2,
            )

    def save(self) -> None:
        if self.world.first:
            self.run.sync_metrics()
            state: dict[str, object] = dict(step=self.step, tokens=self.tokens, seed=self.cfg.seed)
            state |= dict(seconds=self.seconds, cpu_seconds=self.cpu_seconds)
            state |= dict(threads=torch.get_num_threads(), torch=torch.__version__, device=self.device.type)
            state |= dict(config=config.to_dict(self.cfg), processes=self.world.size)
            state["generators"] = dict(cpu=bytes(torch.get_rng_state().tolist()).hex())
            checkpoint.save(self.run.folder / "checkpoints", self.model, self.optimizer, state)
        self.saved = time.monotonic()

    # Steps

    def go(self) -> Run:
        self.progress.say(str(self.train_data))
        try:
            self.validate_if_due()
            self.look_if_due()
            self.probe_if_due()
            while self.step < self.cfg.steps and not self.world.any(self.stop.asked):
                self.one_step(next(self.batches))
                self.validate_if_due()
                self.look_if_due()
                self.probe_if_due()
                long_ago = time.monotonic() - self.saved > 60 * MINUTES
                if self.step % self.checkpoint_every == 0 or long_ago:
                    self.save()
            if self.step == self.cfg.steps and not self.world.any(self.stop.asked):
                self.finish()
                return self.run
        except evaluation.Stopped:
            pass
        finally:
            self.progress.close()
        self.save()
        self.run.stopped = self.stop.name
        again = f"python -m pspin_lite train --resume {self.run.folder}"
        self.progress.say(f"stopped by {self.stop.name} after step {self.step} of {self.cfg.steps}; go on: {again}")
        return self.run

    def one_step(self, batch: Tensor) -> None:
        """batch: [b,T+1], this process's share."""
        begin, cpu = time.perf_counter(), time.process_time()
        batch = batch.to(self.device, non_blocking=True)
        rate = recipe.learning_rate(self.cfg, self.step)
        self.optimizer.zero_grad()
        loss = norm = math.nan
        try:
            mean_loss, total_norm = self.backward(batch), recipe.gradient_norm(self.model)
            loss, norm = torch.stack([mean_loss, total_norm]).tolist()  # the host waits for the device: here alone
        except ValueError:  # the model itself may notice a number that is not finite, before the loss is there
            if nonfinite.first(self.model, batch[:, :-1], batch[:, 1:]) is None:
                raise
        values = dict(loss=loss, rate=rate, norm=norm)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self.give_up(batch, values)
        steps = self.attractor_steps()
        recipe.finish_step(self.model, self.optimizer, rate, total_norm)
        self.step += 1
        self.recorded = set()
        tokens = self.cfg.batch * self.cfg.context
        self.tokens += tokens
        seconds = time.perf_counter() - begin
        self.seconds += seconds
        self.cpu_seconds += time.process_time() - cpu
        if self.world.first:
            more = {} if self.cfg_tol() is None else dict(attractor_steps=steps)
            self.run.record("step", self.step, **values, **more, tokens=self.tokens, seconds=round(self.seconds, 4))
        self.progress.step(loss, norm, tokens / seconds, steps)

    def backward(self, batch: Tensor) -> Tensor:
        """Adds up gradients of the mean loss over all sequences of all processes; returns that loss."""
        total = torch.zeros((), device=self.device)
        pieces = batch.split(self.micro)
        for i, piece in enumerate(pieces):
            apart = self.world.size > 1 and i < len(pieces) - 1  # gradients are exchanged with the last piece only
            with self.parallel.no_sync() if apart else contextlib.nullcontext():
                with self.autocast():
                    loss = self.loss(piece[:, :-1], piece[:, 1:]) * (len(piece) / len(batch))
                loss.backward()
            total += loss.detach()
        return self.world.sum(total) / self.world.size

    def give_up(self, batch: Tensor, values: dict) -> None:
        """The parameters are still those before this step."""
        where = nonfinite.first(self.model, batch[:, :-1], batch[:, 1:]) or "no tensor of this process"
        first = self.step * self.cfg.batch
        which = f"sequences {first} to {first + self.cfg.batch - 1}" if self.cfg.batch > 1 else f"sequence {first}"
        if self.world.first:
            self.run.record("step", self.step + 1, **values, where=where)
            self.run.sync_metrics()
        words = f"step {self.step + 1}: loss {values['loss']}, gradient norm {values['norm']}: not finite"
        raise nonfinite.NonFinite(f"{words}; first in {where}; {which}. The optimizer has not taken this step.")

    def attractor_steps(self) -> float | None:
        reports = [layer.report for layer in fixed_points.attractors(self.model) if isinstance(layer, Attractor)]
        return float(sum(report.forward for report in reports)) / len(reports) if reports else None

    def cfg_tol(self) -> float | None:
        return getattr(self.cfg, "tol", None)

    # Validation

    def validate_if_due(self) -> None:
        """A step whose validation is on record is not validated again: that is how it goes on after a stop halfway."""
        due = self.step % self.validate_every == 0 or self.step == self.cfg.steps
        if not due or self.world.any("validation" in self.recorded):
            return
        scores = self.evaluate(self.settings.validate_tokens)
        state = evaluation.attractors(self.model, self.example())
        if self.world.first:
            if state:
                self.run.record("attractor", self.step, **state)
                self.progress.residual = max(state["residual"])
            for split, score in scores.items():
                self.run.record("validation", self.step, split=split, **score)
        words = ", ".join(f"{split} {score['bits_per_byte']:.4f} bits/byte" for split, score in scores.items())
        self.progress.say(f"step {self.step}: {words}")

    def evaluate(self, tokens: int | None) -> dict:
        limit = tokens and max(1, tokens // self.cfg.context)  # windows
        return {
            split: evaluation.evaluate(self.model, data, limit, self.world, lambda: self.stop.asked)
            for split, data in self.validation.items()
        }

    def finish(self) -> None:
        self.save()
        scores = self.evaluate(self.settings.final_tokens)
        if self.world.first:
            files.write_tensors(self.run.folder / "weights.safetensors", dict(self.model.named_parameters()))
            summary = dict(
                steps=self.step,
                tokens=self.tokens,
                seconds=self.seconds,
                cpu_seconds=self.cpu_seconds,
                tokens_per_second=self.tokens / self.seconds,
                parameters=sum(p.numel() for p in self.model.parameters()),
                weights_sha256=files.tensors_sha256(dict(self.model.named_parameters())),
                validation=scores,
            )
            files.write_json(self.run.folder / "summary.json", in_json(summary))
        self.model.eval()
        for split, score in scores.items():
            figures = ", ".join(f"{score[name]:.4f} {name.replace('_', ' ')}" for name in FIGURES)
            self.progress.say(f"{split}, {score['bytes']:,} bytes: {figures}")
