"""Notebooks of the lab as pages of the site, with what their cells printed and drew."""

import json
from html import escape
from pathlib import Path
from typing import Any

from myst_parser.sphinx_ import Parser
from sphinx.application import Sphinx

from sfumato.lab import scenes

LAB = "docs/lab"


class NotebookParser(Parser):
    """Reads a notebook as Markdown."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Parse the Markdown of the notebook in place of its JSON."""
        super().parse(markdown(json.loads(inputstring), Path(document["source"]).name), document)


def setup(app: Sphinx) -> dict[str, Any]:
    """Take notebooks for sources, and list them below the page of the lab."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", listed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def listed(_app: Sphinx, name: str, source: list[str]) -> None:
    """Add the scenes, in their order, to the contents of the site."""
    if name == LAB:
        pages = "\n".join(f"lab/{scene.name}" for scene in scenes())
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def markdown(notebook: dict[str, Any], name: str) -> str:
    """The cells of a notebook as one page, and where to get the notebook itself."""
    cells = [part for cell in notebook["cells"] for part in cell_parts(cell)]
    cells.insert(1, f"{{download}}`This page as a notebook <{name}>`")
    return "\n\n".join(cells) + "\n"


def cell_parts(cell: dict[str, Any]) -> list[str]:
    """A cell as Markdown: its text or code, and its outputs."""
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    return [f"```python\n{text}\n```", *(shown(output) for output in cell["outputs"])]


def shown(output: dict[str, Any]) -> str:
    """What a cell printed, or a picture that it drew."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    told = escape(output["metadata"]["image/png"]["alt"])
    return f'<img alt="{told}" src="data:image/png;base64,{output["data"]["image/png"]}">'
