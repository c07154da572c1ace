"""Builds the book, build/book/index.html, from the notebooks as they are stored or, with --executed, from copies that
run.py has executed.

Sphinx wants one folder with everything in it: build/source. Warnings are errors.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.metadata
import json
import re
import shutil
import sys
from pathlib import Path

from pspin_lite.lessons import live

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURE = re.compile(r'src="data:image/png;base64,([^"]+)"')
UNUSED = ("**/*.map", "locales/**/*", "**/*webpack-macros.html", "**/fa-brands-400.woff2", "**/fontawesome.js*")
ICONS = re.compile(r"<(script|link)[^>]*fontawesome\.js[^>]*>(</script>)?")  # the theme has their font as well


def stage(notebooks: Path, source: Path) -> None:
    """Copies, because MyST looks through links."""
    shutil.rmtree(source, ignore_errors=True)
    for name in ("pspin_lite", "kernels"):  # what texts link to
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "shipped"))
    shutil.copytree(ROOT / "docs", source / "docs", ignore=shutil.ignore_patterns("book"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / name, source)
    for name in ("conf.py", "index.md", "api.md", "mathjax.js"):
        shutil.copy(HERE / name, source)
    (source / "static").mkdir()
    shutil.copy(HERE / "book.css", source / "static")
    shutil.copy(mathjax(), source / "static")
    (source / "notebooks").mkdir()
    for path in sorted(notebooks.glob("[0-9][0-9]_*.ipynb")):
        shutil.copy(path, source / "notebooks")


def mathjax() -> Path:
    """MathJax 3 in one file, from a package that carries it: an import has no name for its folder."""
    files = importlib.metadata.files("sphinx-mathjax-offline") or []
    return next(Path(file.locate()) for file in files if file.name == "tex-svg.js")


def build(notebooks: Path, out: Path) -> int:
    """Returns Sphinx's exit code."""
    from sphinx.cmd.build import main as sphinx

    source, book = out / "source", out / "book"
    stage(notebooks, source)
    shutil.rmtree(book, ignore_errors=True)
    code = sphinx(["-b", "html", "-q", "-W", "--keep-going", "-d", str(out / "doctrees"), str(source), str(book)])
    lighten(book)
    return code


def lighten(book: Path) -> None:
    """Pictures, and what live figures share, become files, notebooks to download go without figures (a run draws them),
    what the theme brings and no page needs goes."""
    for pattern in UNUSED:
        for path in (book / "_static").glob(pattern):
            if path.is_file():
                path.unlink()
    for path in (book / "_sources" / "notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = [one for one in cell["outputs"] if "text/html" not in one.get("data", {})]
        path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")

    def move(match: re.Match) -> str:
        picture = base64.b64decode(match[1])
        name = f"{hashlib.sha256(picture).hexdigest()[:16]}.png"
        (book / "_images" / name).write_bytes(picture)
        return f'src="../_images/{name}"'

    for path in book.rglob("*.html"):
        path.write_text(ICONS.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
    (book / "_static" / "live.js").write_text(live.source("core.js"), encoding="utf-8")
    (book / "_static" / "live.css").write_text(live.source("live.css"), encoding="utf-8")
    place = '<div class="pspin-live" hidden></div><script>'  # a figure goes into the element before its script
    script, style = place + live.source("core.js"), f"<style>{live.source('live.css')}</style>"
    for path in (book / "notebooks").glob("*.html"):
        page = path.read_text(encoding="utf-8").replace(script, f'<script src="../_static/live.js"></script>{place}')
        page = page.replace(style, '<link rel="stylesheet" href="../_static/live.css">')
        path.write_text(PICTURE.sub(move, page), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executed", type=Path, metavar="FOLDER", help="take the notebooks from here")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="default: build/ of the checkout")
    args = parser.parse_args(argv)
    code = build((args.executed or ROOT / "notebooks").resolve(), args.out.resolve())
    if code == 0:
        print(f"read it: {args.out / 'book' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
