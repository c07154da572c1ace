"""The rooms of the package: imports point one way, and never in a circle."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# notebooks -> lessons, study, tools -> training -> data -> the root -> kernels
FLOORS = {"kernels": 0, "": 1, "data": 2, "training": 3, "study": 4, "lessons": 4, "tools": 4}
ENTRANCES = {"pspin_lite.cli", "pspin_lite.__main__"}  # they open every room; no room opens them
HEAVY = {"matplotlib", "IPython", "ipywidgets", "datasets"}  # not below the top floor
ALLOWED = {("pspin_lite.data.corpora", "datasets"), ("pspin_lite.data.hub", "datasets")}  # where the hub is asked for
ALLOWED |= {("pspin_lite.training.progress", "IPython")}  # to find out whether a notebook is watching


def modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file, of the package and of the kernels."""
    names = {}
    for folder, package in (("pspin_lite", "pspin_lite"), ("kernels", "pspin_kernels")):
        for path in sorted((root / folder).rglob("*.py")):
            parts = [package, *path.relative_to(root / folder).with_suffix("").parts]
            names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """What a module imports, inside functions too: modules of ours by their full name, others by their first word."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    result = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            inside = {f"{base}.{alias.name}" for alias in node.names} & known.keys()
            result |= inside
            if len(inside) < len(node.names):
                result.add(base)
    return {one if one in known else one.split(".")[0] for one in result}


def graph(root: Path = ROOT) -> dict[str, set[str]]:
    known = modules(root)
    return {name: imports(name, path, known) - {name} for name, path in known.items() if name != "pspin_lite"}


def floor(name: str) -> int:
    package, *rest = name.split(".")
    return FLOORS["kernels" if package == "pspin_kernels" else rest[0] if len(rest) > 1 or rest[0] in FLOORS else ""]


def wrong_way(edges: dict[str, set[str]]) -> list[str]:
    return sorted(
        f"{name} imports {other}"
        for name, others in edges.items()
        for other in others & edges.keys()
        if name not in ENTRANCES and (other in ENTRANCES or floor(other) > floor(name))
    )


def test_imports_point_one_way():
    assert wrong_way(graph()) == []


def test_no_circle_of_imports():
    try:
        list(TopologicalSorter(graph()).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_lower_rooms_need_nothing_heavy():
    lower = {name: others & HEAVY for name, others in graph().items() if floor(name) < 4 and name not in ENTRANCES}
    heavy = {(name, other) for name, others in lower.items() for other in others}
    assert heavy <= ALLOWED


def test_a_wrong_way_and_a_circle_are_noticed(tmp_path):
    for name, text in {
        "pspin_lite/__init__.py": "",
        "pspin_lite/model.py": "def f():\n    from .training import loop\n",
        "pspin_lite/training/__init__.py": "",
        "pspin_lite/training/loop.py": "from .. import model\nfrom ..cli import main\n",
        "pspin_lite/cli.py": "import pspin_lite.training.loop\n",
        "kernels/chunk.py": "from pspin_lite import model\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    edges = graph(tmp_path)
    assert wrong_way(edges) == [
        "pspin_kernels.chunk imports pspin_lite.model",
        "pspin_lite.model imports pspin_lite.training.loop",
        "pspin_lite.training.loop imports pspin_lite.cli",
    ]
    with pytest.raises(CycleError):
        list(TopologicalSorter(edges).static_order())


def test_the_root_is_the_paper():
    """At most sixteen modules that a reader sees, under 2,800 lines; what begins with _ serves them."""
    visible = [path for path in (ROOT / "pspin_lite").glob("*.py") if not path.name.startswith("_")]
    assert len(visible) <= 16, sorted(path.name for path in visible)
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in visible) < 2800
