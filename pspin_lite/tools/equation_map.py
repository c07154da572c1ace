"""Where the code implements each equation of the paper and which tests check it; docs/equations.md and docs/letters.md
are written from that by `make docs`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from .. import _files as files
from . import letters
from .equations import EQUATIONS, SILENT

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "equations.md"


def in_code(root: Path = ROOT) -> dict[str, list[str]]:
    """identifier -> places "file, function" whose text names it."""
    places: dict[str, list[str]] = {}
    for path in [*_files(root / "kernels", "*.py"), *_files(root / "pspin_lite", "*.py")]:
        if path.name == "equations.py":
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"Eq\. ([a-z]+(?:-[a-z]+)*)", line):
                place = f"{path.relative_to(root).as_posix()}, {_around(tree, number)}"
                if place not in places.setdefault(name, []):
                    places[name].append(place)
    return places


def in_tests(root: Path = ROOT) -> dict[str, list[str]]:
    """identifier -> tests "file, function" that carry its mark."""
    places: dict[str, list[str]] = {}
    for path in _files(root / "tests", "test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(node, "decorator_list", []):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.eq":
                    for argument in mark.args:
                        places.setdefault(ast.literal_eval(argument), []).append(f"{path.name}, {node.name}")
    return places


def _files(folder: Path, pattern: str) -> list[Path]:
    """In order. A folder that has moved is an error, not a folder without equations."""
    paths = sorted(folder.rglob(pattern))
    if not paths:
        raise FileNotFoundError(f"{folder}: no {pattern} in it, so no equation could be looked for")
    return paths


def _around(tree: ast.Module, line: int) -> str:
    """The dotted name of the innermost function or class around a line."""
    names, node = [], tree
    while True:
        inner = [
            child
            for child in ast.walk(node)
            if child is not node
            and isinstance(child, ast.FunctionDef | ast.ClassDef)
            and child.lineno <= line <= (child.end_lineno or 0)
        ]
        if not inner:
            return ".".join(names) or "module"
        node = max(inner, key=lambda child: (child.end_lineno or 0) - child.lineno)
        names.append(node.name)


def page() -> str:
    code, tests = in_code(), in_tests()
    lines = [
        "# The paper's equations, the code and the tests",
        "",
        "Every equation of the paper in [our letters](letters.md), with the code that computes it and the tests that "
        "check it. Numbers count the paper's displayed equations; “text” means running text, an algorithm or a table. "
        "In the code, search for `Eq. <identifier>`. Written by `make docs` from `pspin_lite/tools/equations.py`.",
        "",
        "| # | identifier | paper | formula | code | tests |",
        "|---|---|---|---|---|---|",
    ]
    for eq in EQUATIONS:
        cells = [", ".join(_link(place) for place in places.get(eq.id, [])) for places in (code, tests)]
        lines.append(_row(str(eq.number or "text"), f"`{eq.id}`", eq.where, eq.formula, *cells))
    lines += ["", "## Where we depart from the paper", "", "| identifier | how and why |", "|---|---|"]
    lines += [_row(f"`{eq.id}`", eq.departure) for eq in EQUATIONS if eq.departure]
    lines += ["", "## Where the paper is silent", "", "| on | we | because | where |", "|---|---|---|---|"]
    lines += [_row(one.on, one.we, one.because, one.where) for one in SILENT]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _link(place: str) -> str:
    path, name = place.split(", ")
    return f"`{path.removeprefix('pspin_lite/')}` `{name}`"


def main(write: bool) -> int:
    if not PAGE.exists():
        raise files.FileError(f"{PAGE}: not there: equations are looked up in a checkout of the project")
    if write:
        for path, text in ((PAGE, page()), (letters.PAGE, letters.page())):
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    else:
        print(page())
    return 0
