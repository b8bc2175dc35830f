"""How the documentation is built: `make docs` (sphinx-build -W -c docs . build/docs).

The sources are those of the whole repository, so that links between docs/ and the pages beside it, such as
SECURITY.md, lead to the same place here and in a code host's viewer.
"""

import sys
from pathlib import Path

import sfumato

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "Sfumato"
author = "The Sfumato developers"
release = sfumato.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "thrift",
    "notebooks",
    "twins",
]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "docs/lab/*.ipynb",
    "benchmarks/README.md",
    "examples/engine/README.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests"]
suppress_warnings = ["misc.highlighting_failure"]  # examples with … for what is left out
smartquotes = False  # quotes and dashes stay as they are written

myst_heading_anchors = 4

# The reference. A name between single backticks leads to what it names, where that has an entry.
default_role = "py:obj"
autodoc_mock_imports = ["torch", "triton", "transformers", "accelerate"]
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
autodoc_member_order = "bysource"
autoclass_content = "both"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Privacy", "important")]
toc_object_entries_show_parents = "hide"

pygments_style = "github-light"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = "Sfumato"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "front.html"}
templates_path = ["_site/templates"]
html_copy_source = False
html_show_sphinx = False


def colours(
    *, paper: str, card: str, sunk: str, ink: str, soft: str, line: str, accent: str, wash: str
) -> dict[str, str]:
    """The variables of the theme, from the colours of the server's page."""
    fonts = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'
    mono = 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace'
    return {
        "font-stack": fonts,
        "font-stack--monospace": mono,
        "color-background-primary": paper,
        "color-background-secondary": card,
        "color-background-hover": sunk,
        "color-background-border": line,
        "color-foreground-primary": ink,
        "color-foreground-secondary": soft,
        "color-foreground-muted": soft,
        "color-foreground-border": soft,
        "color-brand-primary": accent,
        "color-brand-content": accent,
        "color-brand-visited": accent,
        "color-inline-code-background": sunk,
        "color-code-background": sunk,
        "color-admonition-background": card,
        "color-api-background": sunk,
        "color-api-background-hover": sunk,
        "color-api-name": accent,
        "color-api-pre-name": soft,
        "color-api-overall": soft,
        "color-highlight-on-target": wash,
        "color-table-header-background": sunk,
    }


html_theme_options = {
    "light_css_variables": colours(
        paper="#faf8f4",
        card="#ffffff",
        sunk="#f1eee7",
        ink="#20242b",
        soft="#5a606b",
        line="#ddd8cd",
        accent="#0b666c",
        wash="#d9ecec",
    ),
    "dark_css_variables": colours(
        paper="#14171b",
        card="#1c2026",
        sunk="#232830",
        ink="#e8e6e1",
        soft="#a5abb5",
        line="#363c46",
        accent="#6cc4c6",
        wash="#1d3a3d",
    ),
}
