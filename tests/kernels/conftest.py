"""Random shapes are for kernels that were compiled: the interpreter would take hours."""

from __future__ import annotations

import os

from pspin_lite import _backends as backends

# PSPIN_CHIP: this file is read before tests/conftest.py starts the emulator.
compiled = "PSPIN_CHIP" in os.environ or backends.triton_mode()[0] in ("compiled", "emulated")
collect_ignore = [] if compiled else ["test_kernels_random.py"]
