"""Which implementation serves a call: reference PyTorch, or the Triton kernels where they can run."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

from . import _checks as checks

BACKENDS = ("auto", "torch", "triton")
emulated: str | None = None  # the chip on which tools.emulator executes kernels
P = ParamSpec("P")
R = TypeVar("R")


def without_autocast(function: Callable[P, R]) -> Callable[P, R]:
    """Lets a function choose its own precision: autocast would turn half of a hand-written pass into 16 bits."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        first = next(x for x in args if isinstance(x, torch.Tensor))
        with torch.autocast(first.device.type, enabled=False):
            return function(*args, **kwargs)

    return run


def triton_mode() -> tuple[str, str]:
    """How Triton would run here ("compiled", "emulated", "interpreted", "absent"), and why. Imports no kernel."""
    if importlib.util.find_spec("triton") is None:
        reason = (
            "Triton is published for Linux only" if sys.platform != "linux" else "the package triton is not installed"
        )
        return "absent", reason
    if emulated:
        return "emulated", f"for {emulated}, on the CPU"
    if os.environ.get("PSPIN_KERNELS") == "compile" and not torch.cuda.is_available():
        return "absent", "PSPIN_KERNELS=compile: kernels are there to be looked at, not to be run"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return "interpreted", "TRITON_INTERPRET=1"
    if torch.cuda.is_available():
        return "compiled", f"for {torch.cuda.get_device_name()}"
    return "interpreted", "no GPU: kernels run on the CPU through Triton's interpreter"


@functools.cache
def _compiles() -> bool:
    """Whether kernels can be compiled for the GPU that is here. If not, one warning says why, and PyTorch serves."""
    mode, why = triton_mode()
    reason: str | None = why
    if mode != "absent":
        reason = None
        capability = torch.cuda.get_device_capability()
        if torch.version.hip is None and capability < (8, 0):
            reason = f"the GPU has compute capability {capability[0]}.{capability[1]}, and Triton needs 8.0"
        elif not any(shutil.which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")):
            reason = "Triton needs a C compiler (gcc or clang), and there is none"
    if reason:
        warnings.warn(f"no Triton kernels: {reason}; the torch backend serves instead", stacklevel=4)
    return reason is None


def choose(backend: str, x: torch.Tensor) -> str:
    """The backend for tensors like `x`: "torch" or "triton". "auto" takes Triton for CUDA tensors where it compiles."""
    checks.choice("backend", backend, BACKENDS)
    if backend == "torch" or (x.dtype == torch.float64 and backend == "auto"):
        return "torch"
    mode, reason = triton_mode()
    if backend == "auto":
        return "triton" if x.is_cuda and mode != "interpreted" and _compiles() else "torch"
    if mode == "absent":
        raise checks.wrong("backend", "'triton'", f"'auto' or 'torch' on this machine: {reason}")
    if mode == "compiled" and not x.is_cuda:
        expected = f"tensors on the GPU, {reason}; or TRITON_INTERPRET=1 in the environment, for kernels on the CPU"
        raise checks.wrong("backend", f"'triton' with tensors on {x.device}", expected)
    if mode == "interpreted" and x.dtype == torch.bfloat16:
        raise checks.wrong(
            "backend", "'triton' with bfloat16", "another dtype: the interpreter multiplies bit patterns"
        )
    return "triton"
