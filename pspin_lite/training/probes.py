"""What a trainer looks at on the way, if its settings ask for it (`probe_every`): how noisy the gradient is, what steps
do to the loss on a fixed text, and which parts of the network speak. None of it changes the run.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import config
from ..data import sequences
from ..language_model import LanguageModel
from . import branches, distributed, evaluation, gradient_noise, part_noise, recipe
from .runs import Run
from .settings import Settings

PROBE_STEPS, PROBE_WINDOWS, PROBE_SEQUENCES = 32, 8, 64  # of a probe: steps followed, held-out windows, sequences


class Probes:
    """The part of a trainer that looks; loop.py has the rest."""

    run: Run
    cfg: config.Config
    settings: Settings
    world: distributed.World
    device: torch.device
    model: LanguageModel
    optimizer: torch.optim.Optimizer
    train_data: sequences.Packed
    validation: dict[str, sequences.Packed]
    step: int
    micro: int
    recorded: set[str]

    def example(self) -> Tensor:
        """What the attractors are measured on: the first window of the first validation split."""
        data = next(iter(self.validation.values()))
        return next(iter(data.windows(1)))[0].to(self.device)

    def probe_if_due(self) -> None:
        """How noisy the gradient is, and what the next steps do to the loss on a fixed text of the first validation
        split. Costs time, changes nothing: no random number is drawn."""
        every, since = self.settings.probe_every, self.step % (self.settings.probe_every or 1)
        if every is None or self.step < every or since > PROBE_STEPS or self.world.size > 1:
            return
        if "probe" in self.recorded:
            return
        if since == 0 and self.step < self.cfg.steps:
            batch = next(self.train_data.batches(self.step, PROBE_SEQUENCES)).to(self.device)
            noise = gradient_noise.noise_scale(self.plain_loss, [*self.model.parameters()], batch)
            parts = {} if not self.settings.probe_parts else dict(parts=self.by_part(batch))
            self.run.record("noise", self.step, **noise, **parts)
        split = next(iter(self.validation))
        self.run.record("probe", self.step, split=split, nats_per_token=self.probed(self.model))

    def probed(self, model: LanguageModel) -> float:
        """Its loss on the fixed text."""
        data = next(iter(self.validation.values()))
        return evaluation.evaluate(model, data, PROBE_WINDOWS)["nats_per_token"]

    def look_if_due(self) -> None:
        """Which parts of the network speak, at the start and whenever a probe begins. Changes nothing either."""
        every = self.settings.probe_every
        if every is None or self.step % every or "branches" in self.recorded or self.world.size > 1:
            return
        batch = next(self.train_data.batches(self.step, self.cfg.batch)).to(self.device)[: self.micro]
        rate = recipe.learning_rate(self.cfg, self.step)
        shares = branches.shares(self.model, self.optimizer, rate, lambda model: _loss(model, batch))
        self.run.record("branches", self.step, **branches.sizes(self.model, self.example()), **shares)

    def plain_loss(self, batch: Tensor) -> Tensor:
        return _loss(self.model, batch)

    def by_part(self, batch: Tensor) -> dict:
        rate = recipe.learning_rate(self.cfg, self.step)
        return part_noise.measure(self.model, self.optimizer, rate, batch, _loss, self.probed)


def _loss(model: LanguageModel, batch: Tensor) -> Tensor:
    return model.loss(batch[:, :-1], batch[:, 1:])
