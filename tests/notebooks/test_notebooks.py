"""The notebook runner, and the stored notebooks."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from pspin_lite.study.claims import ledger

ROOT = Path(__file__).resolve().parents[2]
STORED = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))

_found = importlib.util.spec_from_file_location("notebooks_conftest", ROOT / "notebooks" / "conftest.py")
conftest = importlib.util.module_from_spec(_found)
_found.loader.exec_module(conftest)


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "notebooks" / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def folder(tmp_path):
    sources = {
        "00_first.ipynb": ["x = 6 * 7\nprint(x)", "import time; time.sleep(0.1)"],
        "01_second.ipynb": ["1 / 1", "raise KeyError('the reason')", "print('never')"],
        "02_third.ipynb": ["print('not reached')"],
    }
    for name, cells in sources.items():
        notebook = new_notebook(cells=[new_markdown_cell(f"# About {name[:2]}"), *map(new_code_cell, cells)])
        nbformat.write(notebook, tmp_path / name)
    return tmp_path


def test_runs_in_order_and_stops_at_the_first_failure(folder, tmp_path):
    out = tmp_path / "build"
    found = run("--notebooks", str(folder), "--out", str(out))
    assert found.returncode == 1
    assert "[1/3] 00_first   2 cells in" in found.stdout
    assert "[2/3] 01_second  FAILED" in found.stdout
    assert "03" not in found.stdout
    assert "01_second.ipynb, cell 2 of 3: KeyError: 'the reason'" in found.stderr
    assert "raise KeyError" in found.stderr
    first = nbformat.read(out / "00_first.ipynb", 4)
    assert first.cells[1].outputs[0].text == "42\n"
    assert "KeyError" in json.dumps(nbformat.read(out / "01_second.ipynb", 4).cells[2].outputs), "what happened is kept"
    assert not (out / "02_third.ipynb").exists()


def test_success_leaves_executed_copies(folder, tmp_path):
    (folder / "01_second.ipynb").unlink()
    out = tmp_path / "build"
    found = run("--notebooks", str(folder), "--out", str(out))
    assert found.returncode == 0, found.stderr
    assert sorted(path.name for path in out.iterdir()) == ["00_first.ipynb", "02_third.ipynb"]


def test_a_cell_that_only_draws_is_folded(folder):
    names = ["# Figure: a line\n1", "# Widget: a slider\n2", "3  # Figure: not first"]
    cells = [new_code_cell(text, metadata=dict(tags=["nbval-ignore-output"])) for text in names]
    nbformat.write(new_notebook(cells=cells), folder / "00_first.ipynb")
    run("--notebooks", str(folder), "--store", "00")
    stored = nbformat.read(folder / "00_first.ipynb", 4).cells
    folded = {"tags": ["nbval-ignore-output", "hide-input"], "jupyter": {"source_hidden": True}}
    assert [cell.metadata for cell in stored] == [folded, folded, {"tags": ["nbval-ignore-output"]}]


def test_storing_keeps_what_passed_and_nothing_else(folder):
    before = (folder / "01_second.ipynb").read_bytes()
    assert run("--notebooks", str(folder), "--store").returncode == 1
    assert nbformat.read(folder / "00_first.ipynb", 4).cells[1].execution_count == 1
    assert (folder / "01_second.ipynb").read_bytes() == before
    stored = (folder / "00_first.ipynb").read_bytes()
    run("--notebooks", str(folder), "--store")
    assert (folder / "00_first.ipynb").read_bytes() == stored, "storing twice changes nothing"


def test_some_alone(folder, tmp_path):
    found = run("--notebooks", str(folder), "--out", str(tmp_path / "build"), "00", "02")
    assert found.returncode == 0, found.stderr
    assert sorted(path.name for path in (tmp_path / "build").glob("*.ipynb")) == ["00_first.ipynb", "02_third.ipynb"]
    found = run("--notebooks", str(folder), "--out", str(tmp_path / "build"), "07")
    assert found.returncode == 1
    assert "07" in found.stderr


def test_a_kernel_that_dies_is_reported(tmp_path):
    nbformat.write(new_notebook(cells=[new_code_cell("import os; os._exit(3)")]), tmp_path / "00_dies.ipynb")
    found = run("--notebooks", str(tmp_path), "--out", str(tmp_path / "build"))
    assert found.returncode == 1
    assert "00_dies.ipynb, cell 1 of 1: DeadKernelError" in found.stderr


def test_no_notebooks_is_an_error(tmp_path):
    found = run("--notebooks", str(tmp_path), "--out", str(tmp_path / "build"))
    assert found.returncode == 1
    assert "no notebooks" in found.stderr


def test_the_runner_imports_nothing_heavy():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.insert(0, 'notebooks'); import run; print('torch' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert found.stdout.strip() == "False", found.stderr


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_outputs_are_stored_from_one_run(path):
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run `make notebooks`"
    assert not [cell for cell in cells if any(output.output_type == "error" for output in cell.outputs)]
    text = path.read_text(encoding="utf-8")
    assert "/home/" not in text
    assert "site-packages" not in text


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_cells_are_short_and_explained(path):
    notebook = nbformat.read(path, 4)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    code = [len(source.splitlines()) for source in sources]
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    assert max(code) <= 20
    assert sorted(code)[len(code) // 2] <= 8
    assert 6 * sum(code) <= words <= 4000
    assert [line for source in sources for line in source.splitlines() if len(line) > 88] == []


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_texts_come_in_small_pieces(path):
    """No paragraph over 90 words, no table over 15 rows, hardly a whole sentence in parentheses."""
    asides = 0
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"\$\$.*?\$\$|```.*?```", "", cell.source, flags=re.DOTALL)
            asides += len(re.findall(r"\([A-Z][^()]{25,}[.!?]\)", text))
            for piece in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", text):
                if piece.lstrip().startswith("|"):
                    assert len(piece.strip().splitlines()) <= 17, f"a table of more than 15 rows: {piece[:60]}"
                else:
                    assert len(piece.split()) <= 90, f"a long paragraph: {piece[:60]}"
    assert asides <= 2


UNITS = re.compile(r"[\d.,]* ?\b[kKMGT]B\b")
OF_THE_PAPER = {"41.37 MB", "116.62 MB", " MB", "MB"}  # its sizes, and what it means by the unit


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_sizes_are_binary_units_or_plain_counts(path):
    """KiB and MiB: what others call kB is sometimes 1,000 and sometimes 1,024 bytes."""
    for cell in nbformat.read(path, 4).cells:
        for text in (cell.source, _printed(cell.get("outputs", []))):
            found = set(UNITS.findall(text)) - OF_THE_PAPER
            assert found == set(), cell.source


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_guesses_are_few_and_unanswered(path):
    """A guess is the reader's: shipped empty, and its answer is folded into the cell that follows."""
    cells = nbformat.read(path, 4).cells
    asked = [i for i, cell in enumerate(cells) if cell.cell_type == "code" and re.search(r"^guess", cell.source, re.M)]
    assert len(asked) <= 6
    for i in asked:
        assert re.search(r"^guess\w* = None\b", cells[i].source, re.M), cells[i].source
        assert "<details>" in cells[i + 1].source, cells[i].source


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_every_figure_is_described_and_its_code_is_folded(path):
    for cell in nbformat.read(path, 4).cells:
        for output in cell.get("outputs", []):
            assert not {"image/png", "image/svg+xml"} & set(output.get("data", {})), "figures are shown by lessons.show"
            for alt in re.findall(r'<img alt="([^"]*)"', output.get("data", {}).get("text/html", "")):
                assert len(alt.split()) >= 12, f"say what the figure shows, not only what it is: {alt}"
        if cell.cell_type == "code" and re.match(r"(?s).*^(?:\w+\.)?show\(", cell.source, re.M):
            assert cell.source.startswith(("# Figure: ", "# Widget: ")), cell.source
            assert "hide-input" in cell.metadata["tags"]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_opens_and_ends_as_announced(path):
    """What the reader will be able to do, what it needs, how long it takes; what was learned, what to read next."""
    cells = nbformat.read(path, 4).cells
    ends = [len(cells)] + [i for i, cell in enumerate(cells) if cell.source.startswith("## Appendix")]
    first, last = cells[0].source, " ".join(cell.source for end in ends for cell in cells[end - 4 : end])
    assert f"](../docs/here/{path.name[:2]}.svg)" in first, "where we are"
    for words in ("# ", "**After this notebook** you ", "**You need**", "**GPU needed**: no"):
        assert words in first
    conftest.stated(nbformat.read(path, 4))
    assert "est yourself" in last
    assert "Answers" in last
    assert "Where to go next" in last or "Where to go on" in last or "read next" in last.lower()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_sections_are_numbered_without_gaps(path):
    """A section that went missing in an edit leaves a gap."""
    text = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    numbers = [int(number) for number in re.findall(r"^## (\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 4


def test_the_whole_series_takes_less_than_twelve_minutes():
    """By what the notebooks state; that they keep to it is checked where they are executed (notebooks/conftest.py)."""
    assert sum(conftest.stated(nbformat.read(path, 4)) for path in STORED) < 12 * 60


def test_a_notebook_under_test_has_no_network():
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    environment = {**os.environ, "PYTHONPATH": str(conftest.OFFLINE)}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "notebooks need no network" in found.stderr


def test_a_notebook_that_takes_longer_than_it_says_fails(tmp_path):
    """nbval with our conftest, on a notebook that states half a minute and computes for longer; and on one that
    wants the network."""
    shutil.copy(ROOT / "notebooks" / "conftest.py", tmp_path)
    text = (tmp_path / "conftest.py").read_text().replace('"half a minute": 30', '"half a minute": 1')
    (tmp_path / "conftest.py").write_text(
        text.replace("Path(__file__).resolve().parent.parent", f"Path({str(ROOT)!r})")
    )
    opening = new_markdown_cell("# Slow\n**Time**: half a minute on two CPU cores")
    busy = new_code_cell("import time\nwhile time.process_time() < 3:\n    pass")
    online = new_code_cell("import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)")
    nbformat.write(new_notebook(cells=[opening, busy]), tmp_path / "00_slow.ipynb")
    nbformat.write(new_notebook(cells=[opening, online]), tmp_path / "01_online.ipynb")
    command = [sys.executable, "-m", "pytest", str(tmp_path), "-q", "--nbval-lax", "--nbval-current-env"]
    found = subprocess.run([*command, "-p", "no:cacheprovider"], capture_output=True, text=True, check=False)
    assert "00_slow.ipynb: " in found.stdout, found.stdout + found.stderr
    assert "more than two cores have in 1 s" in found.stdout
    assert "notebooks need no network" in found.stdout


NUMBER = re.compile(r"(?<![A-Za-z_\d.:])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
CHECKED = re.compile(  # in texts: decimals, and whole numbers that are shares or ratios
    r"(?<![A-Za-z_\d.:])(\d[\d,]*\.\d+|\d[\d,]*(?= per cent| times))( per cent|%)?"
)
GIVEN = {  # (notebook, section) -> numbers that no cell prints: the paper's, of a configuration, worked by hand
    ("10", 0): {"8,000"},
    ("10", 1): {"0.05", "0.9", "0.999", "1.0"},
    ("10", 2): {"0.0008", "0.05", "0.6", "0.8"},
    ("10", 5): {"0.1445", "0.3223", "2.12"},
    ("10", 7): {"0.05"},
    ("11", 1): {"0.0008", "0.0032", "1.1", "4.8004", "4.8025"},
    ("11", 3): {"0.05", "3.1", "3.2", "3.5", "9.9"},  # of its widget (tests/lessons/figures/test_catching_up.py)
    ("11", 4): {"0.0004", "0.0008", "0.0032", "0.0064", "0.417", "0.136", "0.042"}  # rates; of its widget
    | {"0.181", "0.190", "0.157", "0.166", "0.040"},  # of its figure (tests/lessons/figures/test_figures_race.py)
    ("11", 5): {"3.5"},  # of section 3
    ("11", 6): {"0.004", "0.02", "0.026"}  # a margin, and of appendix C
    | {"2.8", "31"}  # of its widget (tests/lessons/figures/test_valley.py)
    | {"0.003", "0.127", "0.129"},  # of exercises
    ("12", 0): {"0.016", "0.023", "1.76", "1.8", "2.0"},  # and of notebook 11
    ("12", 1): {"0.02", "95"},  # criteria
    ("12", 2): {"1.1"},  # million parameters
    ("12", 4): {"0.174", "0.214", "0.231", "0.288", "0.5"},  # by hand
    ("12", 10): {"4.303", "95"},
    ("13", 1): {"4.36"},
    ("13", 2): {"0.05", "0.5", "0.693", "0.0513", "0.97", "0.995", "0.9992"},
    ("13", 3): {"0.0032", "0.02", "0.039"},  # a rate, a criterion, a point of section 4
    ("13", 4): {"0.05", "0.1", "0.039"},  # criteria, and a point of its figure
    ("14", 4): {"0.2", "0.4", "2.1", "2.2", "2.3", "2.5", "2.6"},  # by hand
    ("14", 7): {"1.90", "1.91", "2.08", "2.22", "2.30", "2.43"},  # of its widget (figures/test_figures_eras.py)
    ("14", 8): {"0.20"},  # 2.50 - 2.30, of the table in section 5
    ("14", 9): {"1.96", "2.24"},  # of the widget in section 7
    ("15", 1): {"1.1"},
    ("15", 2): {"0.2"},
    ("15", 3): {"0.5", "0.8", "0.84"},
    ("15", 4): {"0.02"},
    ("15", 6): {"1.62"},  # what counts reach in notebook 10
}
SOURCES: dict[tuple[str, int], list[str | int]] = {  # of numbers that a section takes from elsewhere: claims of the
    # ledger, and other sections
    ("11", 1): ["eight-times"],
    ("11", 2): ["control", "control-64", "large-batch"],
    ("11", 4): ["eight-times"],
    ("11", 5): ["control-bytes", "control-64-bytes"],
    ("12", 5): [2, 4],
    ("12", 6): [5],
    ("13", 6): [3, 5],
    ("14", 7): [5],
    ("15", 3): [1],
    ("15", 4): [1],
    ("15", 5): [4],
}


def _numbers(text: str) -> list[float]:
    return [float(found.rstrip(",").replace(",", "")) for found in NUMBER.findall(text)]


def _printed(outputs: list) -> str:
    data = [output.get("data", {}) for output in outputs]
    texts = [output.get("text", "") for output in outputs]
    return "\n".join(texts + [one.get(kind, "") for one in data for kind in ("text/plain", "text/markdown")])


def _sections(notebook) -> list[tuple[str, list]]:
    """(text, outputs) of each part from one heading to the next; the first is what precedes them."""
    found = [["", []]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for i, part in enumerate(re.split(r"(?m)^(?=## )", cell.source)):
                if i or part.startswith("## "):
                    found.append(["", []])
                found[-1][0] += part + "\n"
        else:
            found[-1][1] += cell.outputs
    return [(text, outputs) for text, outputs in found]


def _unmeasured(text: str, known: list[float], given: set[str]) -> list[str]:
    """Numbers in a text that are none of the known ones rounded; per cents may be shares."""
    found = []
    for word, share in CHECKED.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)):
        digits, value = len(word.partition(".")[2]), float(word.replace(",", ""))
        sizes = [abs(x) for x in known] + [100 * abs(x) for x in known if share]
        if word not in given and not any(abs(x - value) <= 0.5 * 10**-digits + 1e-9 for x in sizes):
            found.append(word)
    return found


@pytest.mark.parametrize("path", [path for path in STORED if path.name >= "10"], ids=lambda path: path.stem)
def test_numbers_in_a_text_are_printed_in_its_section_or_values_of_a_named_claim(path):
    """The closing sections, from the exercises on, may repeat any of them."""
    number, results = path.name[:2], ledger.results()
    sections = _sections(nbformat.read(path, 4))
    all_known, all_given, closing = [], set(), False
    for i, (text, outputs) in enumerate(sections):
        known = _numbers(_printed(outputs))
        for source in SOURCES.get((number, i), ()):
            values = [_printed(sections[source][1])] if isinstance(source, int) else results[source].values.values()
            known += [x for value in values for x in (_numbers(value) if isinstance(value, str) else [value])]
        given = GIVEN.get((number, i), set())
        all_known, all_given = all_known + known, all_given | given
        closing = closing or text.startswith(("## Exercises", "## What you have learned"))
        found = _unmeasured(text, all_known, all_given) if closing else _unmeasured(text, known, given)
        assert found == [], f"section {i}: {text[:60]!r}"


def test_a_number_from_nowhere_is_found():
    assert _unmeasured("gains 0.777 ± 0.011, or 1.86 (2.5 per cent)", [0.0112, 1.855, 0.025], set()) == ["0.777"]
    assert _unmeasured("2.5, in notebook 12, 40 per cent, 3 times", [0.025, 0.4, 4], set()) == ["2.5", "3"]
    assert _unmeasured("`0.5` is code, 0.5 is not, arXiv:1812.06162 is a name", [], set()) == ["0.5"]
    assert _unmeasured("0.9 and 1,234.5", [1234.49], {"0.9"}) == []
    made = new_notebook(cells=[new_markdown_cell("# t\n\n## 1. a\n\nx\n\n## 2. b"), new_code_cell("1")])
    assert [text.split()[-1] for text, _ in _sections(made)] == ["t", "x", "b"]
