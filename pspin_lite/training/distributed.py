"""More than one process: started by torchrun, each with its own share of every batch. With one process, all of this
does nothing."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .. import _checks as checks
from ..language_model import LanguageModel


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1
    local: int = 0  # number of the device on this machine

    @property
    def first(self) -> bool:
        """The one that writes files and speaks."""
        return self.rank == 0

    def sum(self, x: Tensor) -> Tensor:
        if self.size > 1:
            torch.distributed.all_reduce(x)
        return x

    def any(self, flag: bool) -> bool:
        """True everywhere if it is true anywhere: processes must leave a loop together."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor(float(flag), device=self.device)) > 0)

    def wait(self) -> None:
        if self.size > 1:
            torch.distributed.barrier()

    @property
    def device(self) -> torch.device:
        cuda = self.size > 1 and torch.distributed.get_backend() == "nccl"
        return torch.device("cuda", self.local) if cuda else torch.device("cpu")


def join(device: str) -> World:
    """Joins the other processes if torchrun started this one."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return World()
    world = World(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    return world


def leave() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def share(batch: int, world: World) -> int:
    """Sequences of a batch for each process."""
    if batch % world.size:
        raise checks.wrong("batch", batch, f"a multiple of the number of processes ({world.size})")
    return batch // world.size


class Loss(nn.Module):
    """The loss as a module's forward: that is the call DistributedDataParallel watches to average gradients."""

    def __init__(self, model: LanguageModel):
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        return self.model.loss(tokens, targets)

    def no_sync(self) -> contextlib.AbstractContextManager:
        """One process has nothing to exchange."""
        return contextlib.nullcontext()


def parallel(model: LanguageModel, world: World) -> Loss | nn.parallel.DistributedDataParallel:
    """(tokens, targets) -> loss, whose gradients are averaged over all processes."""
    loss = Loss(model)
    if world.size == 1:
        return loss
    devices = [world.local] if world.device.type == "cuda" else None
    unused = getattr(model.cfg, "micro_steps", 1) == 0  # then W_int and gamma have no gradient to wait for
    return nn.parallel.DistributedDataParallel(loss, device_ids=devices, find_unused_parameters=unused)
