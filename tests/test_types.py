"""Types: mypy accepts the root, data and training, and every public function says what it takes and what it returns."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A solution is what the reader of a notebook would write, and a grader takes whatever the reader wrote.
READERS = "pspin_lite/lessons/exercises/nb"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_mypy_accepts_the_package(tmp_path):
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def public(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, Function]]:
    """Functions and methods that a caller may use, by name. Not Triton's kernels, which have types of their own."""
    for node in body:
        if isinstance(node, Function):
            hidden = node.name.startswith("_") and node.name != "__init__"
            if not hidden and not any("triton.jit" in ast.unparse(one) for one in node.decorator_list):
                yield owner + node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, f"{node.name}.")


def gaps(source: str) -> list[str]:
    """function: what has no annotation in it."""
    result = []
    for name, node in public(ast.parse(source).body):
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        if "." in name and not any(ast.unparse(one) == "staticmethod" for one in node.decorator_list):
            arguments = arguments[1:]  # self
        missing = [argument.arg for argument in arguments if argument.annotation is None]
        if node.returns is None and not name.endswith("__init__"):
            missing.append("return")
        if missing:
            result.append(f"{name}: {', '.join(missing)}")
    return result


def test_public_functions_are_annotated():
    result = []
    for path in sorted([*(ROOT / "pspin_lite").rglob("*.py"), *(ROOT / "kernels").glob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(READERS):
            result += [f"{name}: {gap}" for gap in gaps(path.read_text(encoding="utf-8"))]
    assert not result, "\n".join(result)


def test_a_gap_is_noticed():
    source = """
def whole(x: int, *more: int) -> int: ...
def partly(x, y: int, *more, key, **rest): ...
def _hidden(x): ...
@triton.jit
def kernel(x, n: tl.constexpr): ...
class Model:
    def __init__(self, cfg): ...
    @staticmethod
    def forward(ctx, x: int) -> int: ...
    def step(self, x: int) -> int: ...
class _Hidden:
    def step(self, x): ...
"""
    assert gaps(source) == ["partly: x, key, more, rest, return", "Model.__init__: cfg", "Model.forward: ctx"]
