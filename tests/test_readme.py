"""README: short, true to the tree, its examples run; and the links of every page lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", README, flags=re.M)}


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_it_is_one_page():
    assert len(re.sub(r"<!--.*?-->", "", README).split()) < 1050


def test_the_answer_is_short():
    text = SECTIONS["Does it hold?"]
    rows = re.findall(r"^\| (.+) \|$", text, re.M)[1:]  # without the head
    assert len(rows) == 7
    assert all(len(cell.split()) <= 12 for row in rows for cell in row.split(" | "))
    prose = re.sub(r"^\|.*\|$|^!\[.*$|<!--.*?-->", "", text, flags=re.M)
    assert len(prose.split()) <= 200
    assert text.count("![") == 1


def test_the_first_file_it_points_at_is_the_whole_network():
    links = [link for link in re.findall(r"(?<!!)\[[^]]*\]\(([^)#:]+)\)", README) if link.endswith(".py")]
    assert links[0] == "pspin_lite/minimal.py"


def test_the_notebooks_are_listed_in_order():
    listed = re.findall(r"^- \[\d\d [^]]+\]\(notebooks/([^)]+)\):", SECTIONS["The notebooks"], re.M)
    assert listed == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


def test_the_tree_is_the_tree():
    (tree,) = re.findall(r"```\n(.*?)```", SECTIONS["Where things are"], re.S)
    folder, named = "", []
    for line in tree.splitlines():
        name = line.split()[0]
        folder = folder if line.startswith(" ") else name
        named.append(folder + name if line.startswith(" ") else name)
        others = re.findall(r"\w+\.py", line.partition(name)[2])
        named += [folder + other for other in others]
    assert [path for path in named if not (ROOT / path).exists()] == []
    rooms = {f"pspin_lite/{path.parent.name}/" for path in (ROOT / "pspin_lite").glob("*/__init__.py")}
    assert rooms <= set(named), "a room without a line"


def test_make_targets_exist():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"\bmake ([a-z]+)\b", " ".join(re.findall(r"`make [a-z]+`|^make [a-z]+", README, re.M)))
    assert {"run", "test", "lab", "doctor"} <= set(targets)
    assert [target for target in targets if not re.search(rf"^{target}:", text, re.M)] == []


def test_the_shipped_model_writes():
    """What it writes differs a little between processors, so only its form is compared."""
    (example,) = re.findall(r"```python\n(.*?)```", SECTIONS["Try it"], re.S)
    (sample,) = re.findall(r"```text\n(.*?)\n```", SECTIONS["Try it"], re.S)
    assert len([line for line in example.splitlines() if line]) <= 6
    result = python(example)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout) == 200
    assert result.stdout.split()[0] == sample.split()[0]
    assert {"the", "of"} <= set(result.stdout.split())


def test_the_library_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", SECTIONS["As a library"], re.S)
    result = python(example)
    assert result.returncode == 0, result.stderr
    assert "41.37" in result.stdout
    text = SECTIONS["As a library"].partition("```\n")[2]
    names = re.findall(r"`(ps\.[\w.]+)`", text)
    result = python("import pspin_lite as ps\n" + "\n".join(names))
    assert names
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", link):
            continue
        file, _, anchor = link.partition("#")
        target = path if not file else (path.parent / file).resolve()
        assert target.exists(), f"{page} links to {link}"
        assert not anchor or re.fullmatch(r"L\d+(-L\d+)?", anchor) or anchor in anchors(target), f"{page}: {link}"


@pytest.mark.parametrize("page", ["README.md", "docs/training.md", "CONTRIBUTING.md"])
def test_commands_are_understood(page):
    """Every `python -m pspin_lite COMMAND ...` of a page names a command and options that exist."""
    text = (ROOT / page).read_text(encoding="utf-8")
    commands = re.findall(r"-m pspin_lite ([a-z]+)([^#`\n]*)", text)
    usage = {name: python(f"from pspin_lite.cli import main; main(['{name}', '-h'])") for name, _ in set(commands)}
    assert commands
    for name, rest in commands:
        assert usage[name].returncode == 0, usage[name].stderr
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in usage[name].stdout, f"{page}: {name} {option}"
