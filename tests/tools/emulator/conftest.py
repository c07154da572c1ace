"""Some files here need kernels that were defined for compilation. They run in a process of their own, which
test_compiled.py starts; in every other process they are not collected. One of them needs a chip, too: with PSPIN_CHIP
all tests of a process run emulated (tests/conftest.py)."""

from __future__ import annotations

import os

COMPILED = ["test_ours.py", "test_classics.py", "test_foreign.py", "test_narrow.py"]
collect_ignore = [] if os.environ.get("PSPIN_KERNELS") == "compile" else COMPILED
collect_ignore = collect_ignore if "PSPIN_CHIP" in os.environ else [*collect_ignore, "test_barriers.py"]
