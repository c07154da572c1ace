"""Every barrier of every kernel of ours, taken out of its PTX: the race check sees it, or a result changes.

Runs emulated with `make test-emulated`, where PSPIN_CHIP names the chip. Each kernel runs at shapes with several tiles
in its loops. A launch whose barriers have not all been noticed is repeated on the same memory with one barrier removed,
for each that it reaches. Nothing here knows the names of the kernels. Only `bar.sync` is removed. That a missing fence
or wait is noticed, of cp.async and of wgmma, is provoked by hand in test_checks.py and test_warpgroups.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from helpers import spin_inputs, ssm_inputs, with_grads
from pspin_kernels import attractor as attractor_kernels
from pspin_kernels import state_space as state_space_kernels
from pspin_kernels import ternary as ternary_kernels

from pspin_lite import ternary
from pspin_lite.tools.emulator import driver
from pspin_lite.tools.emulator.memory import Memory
from pspin_lite.tools.emulator.parser import EmulatorError, Kernel
from pspin_lite.tools.emulator.shared import Shared

GUARDING = 0.9  # of the barriers that guard something, those whose removal is noticed

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


def barriers(kernel: Kernel) -> list[int]:
    return [i for i, one in enumerate(kernel.code) if one.parts[:2] == ("bar", "sync")]


def without(kernel: Kernel, place: int) -> Kernel:
    """The same kernel, less one instruction."""
    labels = {name: at - (at > place) for name, at in kernel.labels.items()}
    return dataclasses.replace(kernel, code=kernel.code[:place] + kernel.code[place + 1 :], labels=labels, program=None)


def contents(memory: Memory) -> list:
    return [region.bytes.copy() for region in memory.regions]


def restore(memory: Memory, saved: list) -> None:
    for region, bytes_ in zip(memory.regions, saved, strict=True):
        region.bytes[:] = bytes_


@dataclasses.dataclass
class Verdicts:
    """What became of each barrier of one kernel, by its place in the code."""

    kernel: Kernel
    of: dict[int, str] = dataclasses.field(default_factory=dict)

    def lines(self, verdict: str) -> list[str]:
        code = self.kernel.code
        return [f"{self.kernel.name}, {code[i].where}: {v}" for i, v in self.of.items() if v == verdict]


NOTICED, UNREACHED = "noticed", "not reached"
EMPTY = "guards nothing"  # no byte that one warp writes is touched by another one between its two neighbours
SAME = "guards equal values"  # another warp touches such a byte, but what is written was there already


class Removal:
    """In the place of `driver.launch`: every barrier that a launch reaches is removed, unless it was noticed before."""

    def __init__(self) -> None:
        self.verdicts: dict[int, Verdicts] = {}
        self.launch = driver.launch

    def __call__(self, kernel: Kernel, grid: tuple, values: list, memory: Memory, modes: driver.Modes) -> None:
        before = contents(memory)
        counters = self.launch(kernel, grid, values, memory, dataclasses.replace(modes, count=True))
        after = contents(memory)
        executed = {id(one) for number in counters.executed for one, _ in kernel.program.blocks[number].code}
        verdicts = self.verdicts.setdefault(id(kernel), Verdicts(kernel)).of
        for place in barriers(kernel):
            verdicts.setdefault(place, UNREACHED)
            if verdicts[place] == NOTICED or id(kernel.code[place]) not in executed:
                continue

            def passes(place: int = place) -> bool:
                restore(memory, before)
                try:
                    self.launch(without(kernel, place), grid, values, memory, modes)
                except EmulatorError:
                    return False
                return all((a == b).all() for a, b in zip(contents(memory), after, strict=True))

            if not passes():
                verdicts[place] = NOTICED
            elif verdicts[place] != SAME:
                with every_write_counts():
                    verdicts[place] = EMPTY if passes() else SAME
        restore(memory, after)


@contextlib.contextmanager
def every_write_counts() -> Iterator[None]:
    """The race check, of writes that change nothing too."""

    def changed(self: Shared, memory: Any, index: Any, values: Any, places: Any, epoch: Any) -> np.ndarray:
        self._alone(places, *self._units(places), "write")
        return np.ones(len(places.address), bool)

    with mock.patch.object(Shared, "_changed", changed):
        yield


@pytest.fixture
def removal(monkeypatch) -> Removal:
    counter = Removal()
    monkeypatch.setattr(driver, "launch", counter)
    return counter


def judge(removal: Removal, kernels: int, least: float) -> None:
    """least: share of all barriers. A race check that sees nothing would say that all of them guard nothing."""
    assert len(removal.verdicts) >= kernels
    total = Counter(verdict for one in removal.verdicts.values() for verdict in one.of.values())
    lines = {verdict: [x for one in removal.verdicts.values() for x in one.lines(verdict)] for verdict in total}
    print(f"{len(removal.verdicts)} kernels: {dict(total)}")
    print(*lines.get(SAME, []), *lines.get(UNREACHED, []), sep="\n")
    assert not lines.get(UNREACHED), "launches that reach all barriers are needed"
    assert total[NOTICED] >= least * total.total(), lines
    assert total[NOTICED] >= GUARDING * (total[NOTICED] + total[SAME]), lines[SAME]


@dtypes
@pytest.mark.parametrize("form", ["walk", "parallel"])
def test_state_space(form, dtype, removal):
    inputs = [x.to(dtype) if i < 3 else x.float() for i, x in enumerate(ssm_inputs(1, 140, 1, 36))]
    with_grads(lambda *x: state_space_kernels.chunked(*x, 128, form), inputs)
    judge(removal, kernels=3, least=0.9)


@dtypes
@pytest.mark.parametrize("tol", [None, 1e-2], ids=["all steps", "with a tolerance"])
def test_attractor(tol, dtype, removal):
    inputs = spin_inputs(70, 150, dtype, scale=1.2)
    inputs[0][:64] *= 50  # saturated: the first tile of tokens stops after a step, if it may
    scale = inputs[1].abs().max()
    packed = ternary.pack((inputs[1].double() / scale.double()).round().to(torch.int8))
    with_grads(lambda *x: attractor_kernels.equilibrium(*x, packed, scale, 4 if tol else 2, tol), inputs)
    judge(removal, kernels=5, least=0.8)


@dtypes
def test_ternary_product(dtype, removal):
    rng = torch.Generator().manual_seed(0)
    packed = ternary_kernels.pack(torch.randint(-1, 2, (150, 150), generator=rng, dtype=torch.int8))
    x, scale = torch.randn(33, 150, generator=rng).to(dtype), torch.tensor(0.3)
    ternary_kernels.product(x, packed, scale)
    ternary_kernels.transposed(x, packed, scale, 150)
    judge(removal, kernels=2, least=0.5)
