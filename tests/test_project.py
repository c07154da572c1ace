"""The repository itself: pins, names, commands, what works without Triton, what the doctor says."""

from __future__ import annotations

import importlib.metadata
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

from pspin_lite import __main__, bench, doctor

ROOT = Path(__file__).resolve().parent.parent


def requirements() -> list[str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, timeout=300, check=False
    )


def test_everything_is_pinned_exactly():
    assert all(re.match(r"[\w.-]+==[\w.]+(; .+)?$", line) for line in requirements())
    names = {Requirement(line).name.lower() for line in requirements()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(r for group in project["optional-dependencies"].values() for r in group)]
    assert {Requirement(line).name.lower() for line in asked} <= names
    assert not [line for line in asked if Requirement(line).specifier], "versions stand in requirements.txt alone"


def test_conda_has_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert pip == [*requirements(), "-e ."]
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f"python{wanted}" in environment["dependencies"]


def test_this_environment_has_the_pinned_versions_and_nothing_else():
    pins = {Requirement(line).name: Requirement(line) for line in requirements()}
    pins = {re.sub(r"[-_.]+", "-", name).lower(): requirement for name, requirement in pins.items()}
    installed = {re.sub(r"[-_.]+", "-", d.name).lower(): d.version for d in importlib.metadata.distributions()}
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
    found = run(sys.executable, "-c", "import pspin_kernels; print(pspin_kernels.__file__)", PYTHONSAFEPATH="1")
    assert Path(found.stdout.strip()) == ROOT / "kernels" / "__init__.py", found.stderr
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
from pspin_lite.backends import triton_mode
model = ps.build(ps.preset("byte-lite").replace(layers=1))
tokens = torch.zeros(1, 70, dtype=torch.long)
model.loss(tokens, tokens).backward()
model.step(tokens[:, 0])
print(triton_mode()[0], "triton" in str(sys.modules.get("triton")))
"""
    found = run(sys.executable, "-c", code)
    assert found.stdout.strip() == "absent False", found.stderr


def test_importing_the_package_is_light():
    found = run(sys.executable, "-c", "import sys, pspin_lite; print('torch' in sys.modules, dir(pspin_lite)[0])")
    assert found.stdout.strip() == "False Config", found.stderr
    found = run(sys.executable, "-c", "import pspin_lite; pspin_lite.transformers")
    assert "has no attribute 'transformers'; it has Config" in found.stderr


def test_make_explains_itself():
    found = run("make")
    assert found.returncode == 0
    for target in ("make run", "make test", "make lab", "make bench", "make doctor"):
        assert target in found.stdout
        assert target in (ROOT / "README.md").read_text(), f"{target} is not in the README"


def test_make_says_which_python_it_needs(tmp_path):
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_text("")
    old = tmp_path / "python-old"
    old.write_text('#!/bin/sh\nexec python3 -c "import sys; sys.version_info = (3, 9)\n$2"\n')
    old.chmod(0o755)
    for python, words in (("no-such-python", "not found"), (str(old), "3.11 or newer is needed")):
        found = subprocess.run(
            ["make", "setup", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert found.returncode != 0
        assert words in found.stderr
        assert not (tmp_path / ".venv").exists()


def test_ci_calls_the_readmes_test_command_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    *before, last = commands
    assert last == "make test"
    assert all("chromium" in command for command in before), "the browser of one test, and nothing else"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_readme_maps_what_is_there():
    readme = (ROOT / "README.md").read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        assert f"notebooks/{path.name}" in readme, f"{path.name} is not on the map"
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / link).exists(), f"the README links to {link}, which does not exist"


def test_readme_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    found = run(sys.executable, "-c", example)
    assert found.returncode == 0, found.stderr
    assert "41.37" in found.stdout


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
    found = run(sys.executable, "-m", "pspin_lite", "doctor", PYTHONPATH=str(tmp_path), HF_HUB_OFFLINE="1")
    assert found.returncode == 1
    assert re.search(r"broken +reference model +ImportError: this einops", found.stdout)
    assert re.search(r"broken +notebooks \(make run\) +nbclient ImportError.*\n +fix: run `make setup`", found.stdout)
    assert "broken: reference model, notebooks (make run)" in found.stdout


def test_doctor_speaks_without_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch today')")
    found = run(sys.executable, "-m", "pspin_lite", "doctor", PYTHONPATH=str(tmp_path), HF_HUB_OFFLINE="1")
    assert found.returncode == 1
    assert "does not import: no torch today" in found.stdout
    assert re.search(r"broken +reference model", found.stdout)


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
        assert not doctor.hub_reachable()
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
    assert doctor.hub_reachable()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert not doctor.hub_reachable()
    server.shutdown()


def test_bench_runs():
    found = run(sys.executable, "-m", "pspin_lite", "bench", "--quick")
    assert found.returncode == 0, found.stderr
    tables = ("Gated state space at the byte", "Attractor", "Loss of", "A whole training step", "Early stopping")
    for table in (*tables, "A token at batch 1", "Redraw of a widget"):
        assert table in found.stdout
    assert "torchdeq" in found.stdout
    assert "fla naive_chunk_simple_gla" in found.stdout
    assert list(bench.TABLES) == list(__main__.TABLES), "every table can be asked for by name"


def test_command_line_refuses_what_it_does_not_know():
    found = run(sys.executable, "-m", "pspin_lite", "docter")
    assert found.returncode == 2
    assert "doctor" in found.stderr
    found = run(sys.executable, "-m", "pspin_lite", "bench", "--only", "loss-table")
    assert found.returncode == 2
    assert "early-stopping" in found.stderr


def test_every_fault_is_tested():
    listed = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "faults.md").read_text(), re.M)
    assert [int(number) for number in listed] == list(range(1, 21))
    marks = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    tested = {
        int(n) for numbers in re.findall(r"^@pytest\.mark\.fault\(([\d, ]+)\)", marks, re.M) for n in numbers.split(",")
    }
    assert tested == set(range(1, 21))
