"""The emulator's files: what each says first, how long they are, and that no instruction is without a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pspin_lite.tools import emulator
from pspin_lite.tools.emulator import machine, program  # noqa: F401  machine fills the table

TESTS = Path(__file__).resolve().parent
FILES = sorted(Path(emulator.__file__).parent.glob("*.py"))
MOST = 300  # lines


@pytest.mark.parametrize("path", [*FILES, *sorted(TESTS.glob("*.py"))], ids=lambda path: path.name)
def test_files_are_short_and_say_what_they_model(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST
    if path in FILES and path.name != "__init__.py":
        first = ast.get_docstring(ast.parse(text))
        assert re.search("^What it models", first, re.MULTILINE), "what does it model?"
        assert re.search("^Where it deviates from", first, re.MULTILINE), "where does it deviate from a chip?"


def test_all_files_are_listed():
    names = {word for line in emulator.__doc__.splitlines() for word in re.findall(r"\w+", line[:20])}
    assert {path.stem for path in FILES} - {"__init__"} <= names


def test_every_instruction_is_in_some_test():
    texts = [path.read_text(encoding="utf-8") for path in TESTS.glob("*.py") if path.name != Path(__file__).name]
    names = re.compile(r"(?<![\w.])[a-z][\w.:]*")
    opcodes = {name for text in texts for name in names.findall(text)}
    assert [one for one in program.TABLE if not any(f"{name}.".startswith(f"{one}.") for name in opcodes)] == []
