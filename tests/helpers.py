"""What several test files need: inputs on awkward shapes, gradients of everything, comparisons with names."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from torch import Tensor

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
# B, T, H, d, chunk: T no multiple of the chunk, T = 1, the paper's head widths 68 and 88, odd widths, batch 1 and 3
SHAPES = [
    (1, 1, 1, 4, 128),
    (3, 1, 2, 5, 1),
    (1, 2, 2, 3, 1),
    (2, 33, 3, 7, 16),
    (1, 64, 2, 16, 64),
    (1, 130, 2, 68, 128),
    (3, 100, 1, 88, 64),
    (2, 257, 2, 4, 32),
]
# name -> log decays [B,T,H]
DECAYS = {
    "learned": lambda B, T, H, rng: -torch.nn.functional.softplus(torch.randn(B, T, H, generator=rng).double()),
    "none": lambda B, T, H, rng: torch.zeros(B, T, H).double(),
    "slow": lambda B, T, H, rng: torch.full((B, T, H), -1e-3).double(),
    "-5": lambda B, T, H, rng: torch.full((B, T, H), -5.0).double(),
    "-100": lambda B, T, H, rng: torch.full((B, T, H), -100.0).double(),
    "-1e4": lambda B, T, H, rng: torch.full((B, T, H), -1e4).double(),
    "mixed": lambda B, T, H, rng: _pick([0.0, -0.01, -1.0, -30.0, -1e4], (B, T, H), rng),
    "resets": lambda B, T, H, rng: _pick([0.0, -0.1, -0.7, -math.inf], (B, T, H), rng),
}


def _pick(values: list[float], shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[torch.randint(len(values), shape, generator=rng)]


def ssm_inputs(B, T, H, d, decay="learned", dtype=torch.float64, seed=0) -> list[Tensor]:
    """q, k, v, g, state, drawn in float64 whatever the dtype, so that precisions see the same numbers."""
    rng = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(B, T, H, d, generator=rng, dtype=torch.float64) for _ in range(3))
    g = DECAYS[decay](B, T, H, rng)
    state = torch.randn(B, H, d, d, generator=rng, dtype=torch.float64)
    return [x.to(dtype) for x in (q * d**-0.5, k, v, g, state)]


def spin_inputs(n, D, dtype=torch.float64, scale=0.3, seed=0) -> list[Tensor]:
    """z [n,2D], w_int [2D,D] ternary, gamma [D] in +-0.5. scale: the spectral radius is roughly half of it."""
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2 * D, generator=rng, dtype=torch.float64)
    codes = torch.randint(-1, 2, (2 * D, D), generator=rng).double()
    gamma = 0.5 * torch.tanh(torch.randn(D, generator=rng, dtype=torch.float64))
    return [x.to(dtype) for x in (z, codes * scale * 4 / D**0.5, gamma)]


def jacobians(z, w_int, gamma, y) -> Tensor:
    """dY_k / dY_{k-1} at y, for each token: [n, D, D], by autograd."""
    from pspin_lite import attractor

    def step(drive: Tensor):
        return lambda row: attractor.spin(drive + (gamma * row) @ w_int.T)

    jacobian = torch.autograd.functional.jacobian
    return torch.stack([jacobian(step(drive), row) for drive, row in zip(z, y, strict=True)])


def with_grads(function, inputs: list[Tensor], seed=1) -> dict[str, Tensor]:
    """Outputs and the gradients of a random linear combination of all of them with respect to every floating input."""
    inputs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = function(*inputs)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    rng = torch.Generator().manual_seed(seed)
    total = sum((y.double() * torch.randn(y.shape, generator=rng, dtype=torch.float64)).sum() for y in outputs)
    grads = torch.autograd.grad(total, [x for x in inputs if x.requires_grad], allow_unused=True)
    result = {f"output {i}": y.detach() for i, y in enumerate(outputs)}
    return result | {f"gradient {i}": torch.zeros(()) if x is None else x for i, x in enumerate(grads)}


def error(a: Tensor, b: Tensor) -> float:
    """Largest difference relative to the largest entry of b; inf if anything is not finite."""
    if not (a.isfinite().all() and b.isfinite().all()):
        return math.inf
    difference = (a.double() - b.double()).abs().max().item()
    return difference / max(b.double().abs().max().item(), 1e-300) if difference else 0.0


def assert_same(result: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float) -> None:
    assert result.keys() == expected.keys()
    errors = {name: error(result[name], expected[name]) for name in expected}
    wrong = {name: f"{e:.1e}" for name, e in errors.items() if not e <= tolerance}
    assert not wrong, f"relative errors above {tolerance:g}: {wrong}"


def copy_code(source: Path, copy: Path) -> None:
    """A copy of the package in `source`, with its data: it stays as it is whatever happens to `source` meanwhile."""
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))


def data_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Name -> size and time of every file in a folder that is no source and not Python's cache of one."""
    paths = (path for path in folder.rglob("*") if path.suffix != ".py" and "__pycache__" not in path.parts)
    states = {path.relative_to(folder).as_posix(): path.stat() for path in paths if path.is_file()}
    return {name: (state.st_size, state.st_mtime_ns) for name, state in states.items()}


def plant(package: Path, file: str, right: str, wrong: str) -> str:
    """Puts a bug into a copy of a package: in `file`, `wrong` instead of `right`. Returns the file's former text."""
    text = (package / file).read_text(encoding="utf-8")
    assert text.count(right) == 1, "this bug's place is no longer in the source: write the bug anew"
    (package / file).write_text(text.replace(right, wrong), encoding="utf-8")
    return text


# Processes are forked from one that has imported what takes long: half a second instead of five. torch._dynamo is what
# an optimizer imports when it is made.
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"  # Windows cannot fork
forked = multiprocessing.get_context(METHOD)
HEAVY = ["torch", "torch._dynamo", "numpy", "hypothesis", "pytest", "datasets", "pyarrow.parquet", "IPython"]
forked.set_forkserver_preload(HEAVY)


def run_tests(packages: Path, cwd: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    """pytest in a process of its own that finds packages in the folder `packages` first. It keeps what it has compiled
    of the test files, for the processes to come."""
    from multiprocessing.reduction import DupFd  # not on Windows

    environment = dict(PYTHONPATH=str(packages), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1") | environment
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryDirectory() as scratch:
        words = ("-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", f"--basetemp={scratch}/tests", *words)
        child = forked.Process(target=_pytest, args=(str(packages), str(cwd), words, environment, DupFd(said.fileno())))
        child.start()
        child.join(600)
        child.kill()
        child.join()
        said.seek(0)
        return subprocess.CompletedProcess(words, child.exitcode, said.read(), "")


def _pytest(packages: str, cwd: str, words: tuple[str, ...], environment: dict[str, str], said) -> None:
    gc.freeze()  # what was imported before the fork is not looked at again and again
    sys.dont_write_bytecode = False
    os.dup2(said.detach(), 1)
    os.dup2(1, 2)
    os.environ.pop("PYTEST_XDIST_WORKER", None)
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = [packages]
    ours = ("pspin_lite", "pspin_kernels", "helpers", "faulty")
    for name in [name for name in sys.modules if name.split(".")[0] in ours]:
        del sys.modules[name]
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    code = int(pytest.main([*words]))
    sys.stdout.flush()
    os._exit(code)


def assert_noticed(run: subprocess.CompletedProcess) -> None:
    """Tests failed, and by a wrong value or a missing complaint, not because the bug cannot be run."""
    assert run.returncode == 1, f"unnoticed, or not run at all:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
    assert "failed" in run.stdout
    assert "SyntaxError" not in run.stdout
    assert "NameError" not in run.stdout


def message(raised) -> str:
    return str(raised.value)


def written(folder: Path, texts: list[str]) -> Path:
    """A folder with a file for each text."""
    for i, text in enumerate(texts):
        (folder / f"{i:02}.txt").write_bytes(text.encode())
    return folder


def hub_folder(folder: Path, files: int = 4, documents: int = 400) -> Path:
    """A folder laid out like fineweb-edu's repository. The text "a copy" is in two of its files."""
    import pyarrow
    import pyarrow.parquet

    inside = folder / "sample" / "10BT"
    inside.mkdir(parents=True)
    config = "- config_name: sample-10BT\n  data_files:\n  - split: train\n    path: sample/10BT/*\n"
    (folder / "README.md").write_text(f"---\nconfigs:\n{config}---\n# a data set\n")
    for f in range(files):
        texts = [f"document {f * documents + i} " + "word " * (i % 17) for i in range(documents)]
        texts[7] = "a copy" if f % 2 == 0 else texts[7]
        table = pyarrow.table({"text": texts, "id": [f"{f}-{i}" for i in range(documents)]})
        pyarrow.parquet.write_table(table, inside / f"{f:03}_00000.parquet")
    return folder
