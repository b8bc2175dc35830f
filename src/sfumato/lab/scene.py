"""Scenes: pages of text with Python in them, read from beside this file."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

__all__ = ["Scene", "Stretch", "scene", "scenes"]

_ORDER = "ORDER.txt"  # the names, in the order in which the story is told


class Stretch(NamedTuple):
    """A stretch of a scene: words for people, or Python to run."""

    kind: Literal["prose", "code"]
    text: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A page of text with Python in it.

    Attributes:
        name: What `sfumato lab NAME` calls it.
        title: Its first line.
        summary: Its second, in one sentence.
        parts: The rest.
    """

    name: str
    title: str
    summary: str
    parts: tuple[Stretch, ...]


@cache
def scenes() -> tuple[Scene, ...]:
    """All scenes, in the order of the story."""
    names = _text(_ORDER).split()
    return tuple(_parsed(name, _text(f"{name}.md")) for name in names)


def scene(name: str) -> Scene:
    """The scene of that name.

    Raises:
        InvalidParameter: if there is none.
    """
    known = {entry.name: entry for entry in scenes()}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"scenes: {', '.join(known)}."
    raise InvalidParameter(f"There is no such scene; {hint}")


def _text(file: str) -> str:
    return (files("sfumato.lab") / "scenes" / file).read_text(encoding="utf-8")


def _parsed(name: str, text: str) -> Scene:
    head, summary, body = text.split("\n\n", 2)
    pieces = re.split(r"^```python\n(.*?)^```\n", body, flags=re.S | re.M)
    parts = [
        Stretch("code" if place % 2 else "prose", piece.strip("\n"))
        for place, piece in enumerate(pieces)
        if piece.strip()
    ]
    return Scene(name, head.removeprefix("# "), " ".join(summary.split()), tuple(parts))
