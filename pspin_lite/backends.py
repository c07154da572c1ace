"""Which implementation serves a call: reference PyTorch, or the Triton kernels where they can run."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable

import torch

from . import checks

BACKENDS = ("auto", "torch", "triton")


def without_autocast(function: Callable) -> Callable:
    """Lets a function choose its own precision: autocast would turn half of a hand-written pass into 16 bits."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        first = next(x for x in args if isinstance(x, torch.Tensor))
        with torch.autocast(first.device.type, enabled=False):
            return function(*args, **kwargs)

    return run


def triton_mode() -> tuple[str, str]:
    """How Triton would run here ("compiled", "interpreted" or "absent"), and why. Needs no driver, imports no "
    "kernel."""
    if importlib.util.find_spec("triton") is None:
        reason = (
            "Triton is published for Linux only" if sys.platform != "linux" else "the package triton is not installed"
        )
        return "absent", reason
    if os.environ.get("TRITON_INTERPRET") == "1":
        return "interpreted", "TRITON_INTERPRET=1"
    if torch.cuda.is_available():
        return "compiled", f"for {torch.cuda.get_device_name()}"
    return "interpreted", "no GPU: kernels run on the CPU through Triton's interpreter"


def choose(backend: str, device: torch.device) -> str:
    """The backend for tensors on `device`. "auto" takes the fastest that exists."""
    checks.choice("backend", backend, BACKENDS)
    if backend == "triton":
        raise NotImplementedError(
            f"backend: got 'triton', but this version has no Triton kernels yet (Triton here: {triton_mode()[0]}); "
            "use backend='auto' or 'torch'"
        )
    return "torch"
