"""Random shapes are for kernels that were compiled: the interpreter would take hours."""

from __future__ import annotations

from pspin_lite import _backends as backends

collect_ignore = [] if backends.triton_mode()[0] in ("compiled", "emulated") else ["test_kernels_random.py"]
