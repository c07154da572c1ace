"""A Triton driver whose GPU is the emulator: `with chip("sm_80"):` and every `kernel[grid](...)` runs on CPU tensors.

What it models: what Triton asks a driver for, which is a chip with its properties and a launcher. Triton compiles as
always, down to PTX. Its last stage, the assembler ptxas, is replaced by one that hands the PTX over as it is, through
Triton's own hook for stages; hook and driver are put back on leaving. Tensors stay where they are: an address in a
kernel is the address of the tensor's memory in this process.

Where it deviates from a chip
    - Launches are finished when they return; there are no streams and no events.
    - Nothing is timed. `triton.autotune` gets the same time for all configurations, and takes the first. Compiled code
      and such choices are kept in a folder of their own, `emulated` in Triton's cache, where no GPU finds them.
    - No tensor descriptors (TMA) and no clusters of blocks: a launch that needs them is an error.

Kernels must have been defined for compilation, not under TRITON_INTERPRET=1. For ours: PSPIN_KERNELS=compile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from ... import _backends as backends
from ... import _checks as checks
from .counters import Counters
from .machine import Modes, launch
from .memory import Memory
from .parser import Kernel, parse

CHIPS = {  # name -> compute capability, bytes of shared memory for one block, multiprocessors
    "sm_80": (80, 163 << 10, 108),
    "sm_90": (90, 227 << 10, 132),
}
WARP = 32


@contextlib.contextmanager
def chip(name: str = "sm_80", **modes: Any) -> Iterator[Emulator]:
    """Kernels run on the emulated chip inside the `with`. modes: see `machine.Modes`.

    Yields the driver: `.launches` is a list with the counters of every launch, if asked for with count=True."""
    checks.choice("name", name, CHIPS)
    if triton.knobs.runtime.interpret:
        raise checks.wrong("chip", "TRITON_INTERPRET=1", "kernels that were defined for compilation")
    emulator = Emulator(name, Modes(**modes))
    before = triton.runtime.driver._active  # reading `.active` would look for a GPU
    with triton.knobs.runtime.scope(), triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(Path(triton.knobs.cache.dir) / "emulated")
        triton.knobs.runtime.add_stages_inspection_hook = _keep_ptx
        triton.runtime.driver.set_active(emulator)
        outer, backends.emulated = backends.emulated, name
        try:
            yield emulator
        finally:
            triton.runtime.driver.set_active(before)
            backends.emulated = outer


def _keep_ptx(backend: Any = None, stages: dict | None = None, *_: Any) -> tuple[str, str] | None:
    """Called by Triton without arguments for a name of this pipeline, and with them to change its stages."""
    if stages is None:
        return "emulator", "emulator"
    stages["cubin"] = lambda ptx, metadata: ptx.encode()
    return None


class Emulator(DriverBase):
    """What Triton asks a driver for. It is also `utils`, the part of a driver that loads code."""

    def __init__(self, name: str, modes: Modes):
        self.name, self.modes = name, modes
        self.launches: list[Counters] = []
        self.utils = self
        self.launcher_cls = functools.partial(Launcher, self)

    @classmethod
    def is_active(cls) -> bool:
        return False

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", CHIPS[self.name][0], WARP)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_current_device(self) -> str:  # a key of Triton's caches: kernels for one chip are not found by another
        return f"emulated {self.name}"

    def set_current_device(self, device: Any) -> None:
        pass

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("no C code is written for an emulated launch")

    def get_benchmarker(self) -> Any:
        return lambda call, quantiles=(0.5,), **_: [0.0 for _ in quantiles]

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        _, shared, processors = CHIPS[self.name]
        return dict(
            max_shared_mem=shared, multiprocessor_count=processors, warpSize=WARP, max_num_regs=65536,
            sm_clock_rate=1410000, mem_clock_rate=1215000, mem_bus_width=5120,
        )  # fmt: skip

    def load_binary(self, name: str, binary: bytes, shared: int, device: Any) -> tuple:
        return None, parsed(binary.decode(), name, shared), 0, 0, 1024


@functools.lru_cache(maxsize=256)
def parsed(ptx: str, name: str, shared: int) -> Kernel:
    return parse(ptx, name, shared)


class Launcher:
    """Turns the arguments of one kernel's launches into what PTX calls parameters."""

    def __init__(self, emulator: Emulator, source: Any, metadata: Any):
        self.kinds = list(source.signature.values())
        self.metadata = metadata
        descriptors = [kind for kind in self.kinds if isinstance(kind, str) and kind.startswith("tensordesc")]
        if descriptors or getattr(metadata, "num_ctas", 1) > 1:
            raise NotImplementedError("the emulator knows no tensor descriptors and no clusters of blocks")

    def __call__(self, x: int, y: int, z: int, stream: int, kernel: Kernel, *rest: Any) -> None:
        _, _, enter, leave = rest[:4]
        emulator = triton.runtime.driver.active  # not the one at compilation: modes may have changed since
        values: list[Any] = []
        tensors: dict[int, Any] = {}
        for kind, value in zip(self.kinds, rest[4:], strict=True):
            _flatten(kind, value, values, tensors)
        blocks = x * y * z
        for size in (self.metadata.global_scratch_size, self.metadata.profile_scratch_size):
            scratch = torch.empty(blocks * (size or 0) + 16, dtype=torch.uint8)
            values.append(scratch.data_ptr())
            tensors[id(scratch)] = scratch
        memory = Memory([_span(tensor, emulator.modes.bounds) for tensor in tensors.values()])
        if enter is not None:
            enter(rest[1])
        counters = launch(kernel, (x, y, z), values, memory, emulator.modes)
        if counters is not None:
            emulator.launches.append(counters)
        if leave is not None:
            leave(rest[1])


def _flatten(kind: Any, value: Any, values: list, tensors: dict) -> None:
    if isinstance(kind, tuple):
        for one, inner in zip(kind, value, strict=True):
            _flatten(one, inner, values, tensors)
    elif kind != "constexpr":
        if hasattr(value, "data_ptr"):
            tensors[id(value)] = value
            value = value.data_ptr()
        values.append(0 if value is None else value)


def _span(tensor: Any, bounds: str) -> tuple[int, int]:
    """First address and number of bytes that belong to a tensor: its own, or those of its whole storage."""
    tensor = getattr(tensor, "base", tensor) if not isinstance(tensor, torch.Tensor) else tensor
    if tensor.device.type != "cpu":
        raise checks.wrong("kernel argument", f"a tensor on {tensor.device}", "tensors on the CPU")
    if bounds == "storage":
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    if tensor.numel() == 0:
        return tensor.data_ptr(), 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size()
