"""What Sphinx does again for every page, done once; the pages are the same to the letter."""

import gc
import posixpath
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.pycode.parser import Parser
from sphinx.search.en import SearchEnglish
from sphinx.util.osutil import relative_uri

TAG = re.compile(r"(<[^>]*>)")
LINK = re.compile(r'<a class="(current )?reference internal" href="([^"]*)">')


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen before the theme, which asks for the whole list of pages, on each of them."""
    app.connect("html-page-context", shared_list, priority=400)
    gc.disable()  # pages stay to the end, and to look for garbage among them takes a fifth of the time
    SearchEnglish.stem = cache(SearchEnglish.stem)  # type: ignore[method-assign]
    PythonDomain.find_obj = cache(PythonDomain.find_obj)  # type: ignore[method-assign]
    Parser.parse_definition = _nothing  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _nothing(_parser: Parser) -> None:
    """The lines of each function, which only pages with sources would show."""


class Contents:
    """The list of all pages beside each page, as it is seen from any of them."""

    def __init__(self, html: str, address: str) -> None:
        """Take a list apart.

        Args:
            html: The list beside some page.
            address: The address of that page.
        """
        self._parts = TAG.split(html.replace(' current">', '">').replace('<ul class="current">', "<ul>"))
        self._links: list[tuple[int, str, tuple[int, ...]]] = []
        around: list[int] = []
        for place, part in enumerate(self._parts):
            if part.startswith(("<ul", "<li")):
                around.append(place)
            elif part in ("</ul>", "</li>"):
                around.pop()
            elif link := LINK.fullmatch(part):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(address), link[2]))
                self._links.append((place, address if link[1] else target, tuple(around)))

    def beside(self, address: str) -> str:
        """The list beside another page, which is marked in it, as is all that it is part of."""
        parts = list(self._parts)
        for place, target, around in self._links:
            if target != address:
                parts[place] = f'<a class="reference internal" href="{relative_uri(address, target)}">'
                continue
            parts[place] = '<a class="current reference internal" href="#">'
            for outer in around:
                tag = self._parts[outer]
                parts[outer] = '<ul class="current">' if tag == "<ul>" else f'{tag[:-2]} current">'
        return "".join(parts)


_made: dict[tuple[tuple[str, Any], ...], Contents] = {}


def shared_list(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Give the theme a list that was made once."""
    whole: Callable[..., str] = context["toctree"]
    address = app.builder.get_target_uri(page)

    def toctree(**wishes: Any) -> str:
        key = tuple(sorted(wishes.items()))
        if key not in _made:
            _made[key] = Contents(whole(**wishes), address)
        return _made[key].beside(address)

    context["toctree"] = toctree
