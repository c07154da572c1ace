"""The workflows fit GitHub's schema, which check-jsonschema carries: no network is asked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / ".github" / "workflows" / "test.yml"


def validate(path: Path) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["test.yml", "book.yml"])
def test_it_fits_the_schema(name):
    done = validate(FILE.parent / name)
    assert done.returncode == 0, done.stdout


def test_a_misspelt_key_is_noticed(tmp_path):
    (tmp_path / "test.yml").write_text(FILE.read_text().replace("runs-on: ubuntu-latest", "runs_on: ubuntu-latest"))
    assert validate(tmp_path / "test.yml").returncode == 1


def test_it_names_files_that_exist():
    names = re.findall(r"tests/\w+\.py", FILE.read_text())
    assert len(names) >= 5
    assert all((ROOT / name).exists() for name in names)
