"""The book, built from the stored notebooks: its weight, links, descriptions, and its pages in a browser, from disk."""

from __future__ import annotations

import html
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
import torch
from helpers import CHROMIUM, needs_browser

import pspin_lite as ps
from pspin_lite.lessons import explore_attractor
from pspin_lite.lessons.figures import state_space, ternary

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
MB = 1_000_000
PAGES = ["index", "api", *sorted(f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md"))]
API = (ROOT / "docs" / "book" / "api.md").read_text(encoding="utf-8")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
ENTRY = re.compile(r"^\.\. auto(?:function|class):: (pspin_lite\.[\w.]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("build")
    command = [sys.executable, str(ROOT / "docs" / "book" / "build.py"), "--out", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr  # a warning is an error
    return out / "book"


def pages(book: Path) -> dict[str, str]:
    return {path.relative_to(book).as_posix(): path.read_text(encoding="utf-8") for path in book.rglob("*.html")}


def test_it_has_every_notebook_and_page(book):
    names = pages(book).keys()
    assert {f"notebooks/{name}.html" for name in NOTEBOOKS} <= names
    assert {f"docs/{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} <= names
    assert {"index.html", "api.html", "search.html"} <= names
    for name in NOTEBOOKS:
        assert (book / "_sources" / "notebooks" / f"{name}.ipynb").is_file(), "to download"


def test_it_is_light(book):
    sizes = {path: path.stat().st_size for path in book.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 12 * MB
    assert all(size < 1.5 * MB for path, size in sizes.items() if path.suffix == ".html")


def test_every_link_leads_somewhere(book):
    texts = pages(book)
    ids = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    broken = []
    for name, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)):
            target, _, anchor = unquote(html.unescape(link)).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = (book / name).parent / target.partition("?")[0] if target else book / name
            inside = path.resolve().relative_to(book.resolve()).as_posix()
            if not path.exists() or (anchor and inside in ids and anchor not in ids[inside]):
                broken.append((name, link))
    assert broken == []


def test_every_picture_is_described(book):
    for name in NOTEBOOKS:
        article = pages(book)[f"notebooks/{name}.html"].partition("<article")[2].partition("</article>")[0]
        pictures = re.findall(r"<img\b[^>]*>", article)
        assert pictures
        for picture in pictures:
            alt = re.search(r'alt="([^"]*)"', picture)
            assert alt, picture[:100]
            assert len(alt[1].split()) >= 8, picture[:200]


def test_tables_are_tables(book):
    """Those that a cell displays as Markdown, too."""
    texts = pages(book)
    assert [name for name, text in texts.items() if re.search(r"<p>\||\|---", text)] == []
    assert "<table" in texts["notebooks/00_start_here.html"]


def test_every_explorer_is_live(book):
    for name, text in pages(book).items():
        assert text.count('class="pspin-still"') == text.count("pspinLive.mount("), name


def test_the_examples_of_the_library_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in CODE.findall(API):
        exec(compile(block, "api.md", "exec"), names)
    assert names["o"].shape == (1, 100, 4, 16)
    assert names["memory"].shape == (1, 4, 16, 16)
    assert names["y"].shape == (1, 10, 32)
    assert "ps." not in re.sub(r"```.*?```", "", API, flags=re.DOTALL), "every call is in a block that runs"


def test_every_public_name_has_an_entry():
    """The names of the package, a function of each of its modules, and whatever texts and notebooks call."""
    entries = {entry.removeprefix("pspin_lite.") for entry in ENTRY.findall(API)}
    assert {entry.partition(".")[0] for entry in entries} >= set(ps.__all__)
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    notebooks = [nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4) for name in NOTEBOOKS]
    texts += [cell.source for notebook in notebooks for cell in notebook.cells]
    assert {call for text in texts for call in re.findall(r"\bps\.([\w.]+)\(", text)} <= entries


def test_every_entry_has_an_example_and_tensors_have_shapes(book):
    for section in API.split("\n## ")[1:]:
        code = "".join(CODE.findall(section))
        for entry in ENTRY.findall(section):
            assert re.search(rf"\b{entry.rpartition('.')[2]}\b", code), f"{entry}: no example"
            thing = pydoc.locate(entry)
            methods = re.search(rf":: {entry}(?:\(\))?\n   :members: (.*)", section)
            things = [getattr(thing, name) for name in methods[1].split(", ")] if methods else [thing]
            for one in filter(inspect.isfunction, things):
                tensors = [name for name, kind in one.__annotations__.items() if kind.startswith("Tensor")]
                for name in set(tensors) - {"return"}:
                    assert re.search(rf"\b{name}\b[\w, `]*(\[|scalar)", one.__doc__), f"{entry}: shape of {name}"
    assert "function &lt;" not in pages(book)["api.html"], "a default that is shown as an object"


@pytest.fixture(scope="module")
def browser(book):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, book):
    """Opens a page from disk; at the end nothing may have gone wrong or have been asked of the outside."""
    wrong: list[str] = []

    def open_page(name: str, width: int = 1400, scheme: str = "light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else wrong.append(one.url))
        page.goto(f"{book.as_uri()}/{name}")
        page.wait_for_load_state("load")
        return page

    yield open_page
    assert wrong == []


@needs_browser
@pytest.mark.parametrize("name", [f"notebooks/{name}" for name in NOTEBOOKS] + PAGES)
def test_a_page_on_a_phone_and_in_the_dark(visit, name):
    page = visit(f"{name}.html", 390, "dark")
    page.wait_for_function("!document.querySelector('.math') || window.MathJax?.startup?.promise !== undefined")
    page.evaluate("document.querySelector('.math') && MathJax.startup.promise")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("span.math, div.math").count() == page.locator(".math mjx-container").count()
    assert page.locator("mjx-merror").count() == 0
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    beyond = "[...document.querySelectorAll('div.math')].map(one => one.scrollWidth - one.clientWidth)"
    assert max(page.evaluate(beyond), default=0) <= 8, "break the equation: it has to be scrolled"
    page.close()


@needs_browser
def test_search_finds_a_word(visit):
    page = visit("search.html?q=Lipschitz")
    page.wait_for_selector("ul.search li a")
    assert any("attractor" in link.get_attribute("href") for link in page.locator("ul.search li a").all())
    page.close()


@needs_browser
def test_the_front_page_has_the_picture_the_answer_and_the_map(visit):
    page = visit("index.html")
    text = page.locator("article").inner_text()
    assert "Does it hold?" in text
    assert page.locator("article img[src*=architecture]").is_visible()
    for name in NOTEBOOKS:
        assert page.locator(f'article a[href="notebooks/{name}.html"]').count()
    page.click("a.right-next")
    page.wait_for_url("**/00_start_here.html")
    page.close()


def _normal_weights():
    """The first kind of weights of notebook 04, which starts with this seed."""
    W = torch.randn(1000, 1000, generator=torch.Generator().manual_seed(4))
    return ternary.three_values({"normal": W[:200]})


LIVE = {  # notebook -> the function behind its explorer, where it starts, and moves: control, key, where that leads
    "01_gated_state_space": (
        lambda: state_space.decay_and_chunks,
        dict(decay=0.95, chunk=16, T=64),
        [("decay", "ArrowRight", 0.98), ("chunk", "Home", 1), ("T", "End", 256), ("decay", "End", 1.0)],
    ),
    "04_ternary_weights": (
        _normal_weights,
        dict(threshold=0.5, scale=1.0, weights="normal"),
        [("threshold", "ArrowRight", 0.55), ("scale", "End", 3.0), ("threshold", "Home", 0.0)],
    ),
    "05_attractor": (
        lambda: explore_attractor.draw_two_spins,
        dict(kind="agree", K=5, gamma=0.5, w=4.0),
        [("K", "ArrowRight", 6), ("w", "End", 8.0), ("gamma", "Home", -0.5), ("kind", "ArrowDown", "frustrated")],
    ),
}


@needs_browser
@pytest.mark.parametrize("name", LIVE)
def test_live_sliders_agree_with_python(visit, name):
    """On the built page, from disk and by keyboard. tests/lessons/test_live.py compares all of them on grids."""
    page = visit(f"notebooks/{name}.html")
    make, now, moves = LIVE[name]
    draw, box = make(), page.locator(".pspin-live")
    for control in now:
        box = box.filter(has=page.locator(f"[data-control={control}]"))
    for control, key, value in [(None, "", None), *moves]:
        if control:
            box.locator(f"[data-control={control}]").press(key)
            now[control] = value
        for label, number in draw(**now)[1].items():
            cell = box.locator(f'[data-name="{label}"]')
            if isinstance(number, str):
                assert cell.text_content() == number, (label, now)
            else:
                shown = float(cell.get_attribute("data-value"))
                assert shown == pytest.approx(number, rel=1e-6, abs=1e-12), (label, now)
    assert page.locator(".pspin-still").first.is_hidden(), "the picture gives way"
    page.close()
