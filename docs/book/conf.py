"""Settings of the book: Sphinx with MyST-NB. build.py beside this file calls it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

project, author, copyright = "p-Spin Glass Network", "the authors of pspin_lite", "the authors of pspin_lite"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_copybutton"]
include_patterns = ["index.md", "api.md", "notebooks/*.ipynb", "docs/*.md"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
nb_render_markdown_format = "myst"  # of outputs: they hold tables
nb_execution_mode = "off"  # run.py has executed them
nb_ipywidgets_js: dict[str, dict] = {}  # no scripts from elsewhere: widgets have a live form of their own
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"
suppress_warnings = ["mystnb.unknown_mime_type"]

# MathJax 3 as one file, which works from disk. Version 4, Sphinx's default, fetches fonts.
html_static_path = ["static"]
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}
mathjax_config_path = "mathjax.js"

html_theme = "sphinx_book_theme"
html_title = "p-Spin Glass Network"
html_css_files = ["book.css"]
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_show_search_summary = False  # an excerpt needs fetch, which a page on disk may not use
html_copy_source, html_show_sourcelink = True, False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_persistent": [],  # one search field, not two
    "use_download_button": True,
    "use_fullscreen_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
autodoc_typehints = "none"  # the text has shapes
autodoc_preserve_defaults = True  # as the code writes them
autodoc_member_order = "bysource"


def unwrap_equations(app: Sphinx, doctree: nodes.document) -> None:
    """Sphinx puts equations of several lines into a `split`, where MathJax allows no tag."""
    for node in doctree.findall(nodes.math_block):
        if not node.get("no-wrap") and "amsmath" not in node["classes"]:
            node["no-wrap"] = True
            node[:] = [nodes.Text(rf"\[{node.astext()}\]")]


def read_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Our docstrings are plain text with code in single backticks; Sphinx reads reStructuredText. A line that ends
    early ends a paragraph. What the fields of a dataclass mean, the comments behind them say."""
    if dataclasses.is_dataclass(obj):
        fields = re.findall(r"^    (\w+): [^#\n]*# (.*)$", inspect.getsource(obj), re.MULTILINE)
        lines += ["", *(f"- `{field}`: {comment}" for field, comment in fields)]
    plain = [re.sub(r"`+([^`]+)`+", r"``\1``", line).replace("|", r"\|").replace("*", r"\*") for line in lines]
    lines[:] = []
    for line, following in zip(plain, [*plain[1:], ""], strict=True):
        lines.append(line)
        first = following.partition(" ")[0]
        if line.endswith(".") and first and len(line) + len(first) < 105:
            lines.append("")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", unwrap_equations)
    app.connect("autodoc-process-docstring", read_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
