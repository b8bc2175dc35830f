"""Docstrings as pages: a box for `Privacy:`, code in fences, signs that are no markup, and short contents."""

import logging
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject

FENCE = re.compile(r"^( *)```(\w*)$")
CODE = re.compile(r"(`+[^`]*`+)")
SIGNS = re.compile(r"\||(?<=\w)_(?!\w)")  # |x| and x_ would refer to something in reStructuredText


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen where Sphinx reads docstrings; Napoleon, which reads Google's sections, comes first."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-docstring", rewrite, priority=600)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("doctree-read", look_up)
    app.connect("env-updated", shorten)
    logging.getLogger("sphinx.sphinx.directives.other").addFilter(
        lambda record: "glob pattern" not in str(record.msg)  # a folder of the index may still be empty
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def rewrite(_app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Change the lines of one docstring, in place, to reStructuredText."""
    prose: list[str] = []
    done: list[str] = []
    inside = None
    for line in lines:
        if fence := FENCE.match(line):
            if inside is None:
                done += escaped(prose)
                prose = []
                done += ["", f"{fence[1]}.. code-block:: {fence[2] or 'text'}", ""]
            else:
                done += [""]
            inside = fence[1] if inside is None else None
        elif inside is not None:
            done.append("   " + line)
        elif line.strip() == ".. important::":  # what Napoleon makes of `Privacy:`
            indent = line[: line.index(".")]
            prose += [f"{indent}.. admonition:: Privacy", f"{indent}   :class: privacy"]
        elif line.strip().startswith(".. important:: "):
            indent, _, text = line.partition(".. important:: ")
            prose += [
                f"{indent}.. admonition:: Privacy",
                f"{indent}   :class: privacy",
                "",
                f"{indent}   {text}",
            ]
        else:
            prose.append(line)
    lines[:] = done + escaped(prose)


def escaped(lines: list[str]) -> list[str]:
    """The lines with backslashes before signs that would be markup; code between backticks stays as it is."""
    parts = CODE.split("\n".join(lines))
    for place in range(0, len(parts), 2):
        text = SIGNS.sub(r"\\\g<0>", parts[place])
        if place and text[:1].isalnum():  # the plural of a name: `Shape`s
            text = "\\ " + text
        parts[place] = text
    return "".join(parts).split("\n")


def leave_out(
    _app: Sphinx, _what: str, name: str, _thing: object, _skip: bool, _options: object
) -> bool | None:
    """Leave out what scikit-learn adds to every class for the routing of its own metadata."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def look_up(_app: Sphinx, page: nodes.document) -> None:
    """Look types up by their full names; Sphinx would compare each with the end of every name."""
    for link in page.findall(addnodes.pending_xref):
        if link.get("refspecific") is False:
            del link["refspecific"]


def shorten(_app: Sphinx, env: Any) -> None:
    """Keep classes and functions in the lists beside the reference, and leave out their methods."""
    for name, contents in env.tocs.items():
        if name.startswith("docs/reference/"):
            for entry in list(contents.findall(nodes.list_item)):
                link = entry.next_node(nodes.reference)
                if link is not None and link["anchorname"].startswith("#sfumato") and len(entry) > 1:
                    del entry[1:]
