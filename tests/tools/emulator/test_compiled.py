"""Starts the tests of compiled kernels: Triton compiles for A100 and H100, and the emulator executes the PTX.

What Triton has compiled is kept in build/triton, so that it compiles once and not for each run of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is published for Linux only")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FILES = [
    name for name in ("test_ours.py", "test_classics.py", "test_foreign.py", "test_narrow.py") if (HERE / name).exists()
]


@pytest.mark.parametrize("file", FILES)
def test_file(file):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= dict(PSPIN_KERNELS="compile", TRITON_CACHE_DIR=str(ROOT / "build" / "triton"), OMP_NUM_THREADS="1")
    environment |= dict(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # they take seconds to import
    environment.pop("PYTEST_XDIST_WORKER", None)
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", HERE / file]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout.splitlines()[-1]


def test_random_shapes_belong_to_an_emulated_run():
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--collect-only",
        "-p",
        "no:cacheprovider",
        ROOT / "tests" / "kernels",
    ]
    environment = os.environ | dict(PSPIN_CHIP="sm_80", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    names = [line.split("::")[1] for line in done.stdout.splitlines() if "test_kernels_random.py" in line]
    assert names == ["test_state_space", "test_attractor", "test_product"], done.stdout[-2000:]
