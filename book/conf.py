"""Sphinx's settings for the book; build.py calls it."""

from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

project, author, copyright = "factrobust", "the factrobust authors", "2026, the factrobust authors"
extensions = ["myst_nb", "sphinx_copybutton"]
nb_execution_mode = "off"  # notebooks hold their results
myst_enable_extensions = ["dollarmath", "amsmath", "html_image"]
myst_heading_anchors = 2
exclude_patterns = ["_extra"]
html_theme, html_title = "sphinx_book_theme", "factrobust"
# Only pages stand at the left: each page copied all headings of all pages, a quarter of the time.
html_theme_options = {
    "show_navbar_depth": 1,
    "max_navbar_depth": 2,
    "use_download_button": False,
    "navbar_persistent": [],  # no second search above the first
}
html_context = {"default_mode": "auto"}  # or the theme complains in the browser's console
html_extra_path = ["_extra"]
html_math_renderer = "mathml"  # browsers draw it: no script, no network
html_copy_source = False


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    # Paths in this file are taken from its own folder, but what is copied lies beside the pages.
    app.config.html_extra_path = [str(Path(app.srcdir) / "_extra")]
