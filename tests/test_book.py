"""The book, built from the stored notebooks: its weight, links, descriptions, and its pages in a browser, from disk."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from pspin_lite.lessons import explore_attractor

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
MB = 1_000_000
needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium: apt-get install chromium")


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


def test_the_examples_of_the_library_run():
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "book" / "api.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(blocks) >= 6
    names: dict = {}
    for block in blocks:
        exec(compile(block, "api.md", "exec"), names)
    assert names["o"].shape == (1, 100, 4, 16)
    assert names["state"].shape == (1, 4, 16, 16)
    assert names["y"].shape == (1, 10, 32)


@pytest.fixture(scope="module")
def browser(book):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
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
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_page_on_a_phone_and_in_the_dark(visit, name):
    page = visit(f"notebooks/{name}.html", 390, "dark")
    page.wait_for_function("!document.querySelector('.math') || window.MathJax?.startup?.promise !== undefined")
    page.evaluate("document.querySelector('.math') && MathJax.startup.promise")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("span.math, div.math").count() == page.locator(".math mjx-container").count()
    assert page.locator("mjx-merror").count() == 0
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    beyond = "[...document.querySelectorAll('div.math')].map(one => one.scrollWidth - one.clientWidth)"
    assert max(page.evaluate(beyond), default=0) <= 60, "break the equation: it has to be scrolled"
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


@needs_browser
def test_a_live_slider_agrees_with_python(visit):
    """On the built page, from disk and by keyboard. tests/lessons/test_live.py compares all of them on grids."""
    page = visit("notebooks/05_attractor.html")
    box = page.locator(".pspin-live", has=page.locator("[data-control=kind]")).first
    box.locator("[data-control=K]").press("ArrowRight")
    box.locator("[data-control=w]").press("End")
    _, numbers = explore_attractor.draw_two_spins(kind="agree", K=6, gamma=0.5, w=8.0)
    for name, value in numbers.items():
        cell = box.locator(f'[data-name="{name}"]')
        if isinstance(value, str):
            assert cell.text_content() == value
        else:
            assert float(cell.get_attribute("data-value")) == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert page.locator(".pspin-still").first.is_hidden(), "the picture gives way"
    page.close()
