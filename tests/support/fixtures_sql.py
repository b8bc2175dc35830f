"""The statements that tools send, as tests/server/fixtures keeps them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "server" / "fixtures"


@dataclass(frozen=True)
class Sent:
    """One statement, with what is checked of its answer.

    Attributes:
        tool: Who sends it.
        name: What it is for.
        text: The statement.
        extended: Whether it is sent by the extended protocol.
        expected: `with`, the values of its parameters (`$visits`: the number of the table); `rows`, all of
            them; `count`, how many; `holds` and `lacks`, values that are somewhere in them or are not;
            `real`, false where a PostgreSQL of another version or another moment says something else.
    """

    tool: str
    name: str
    text: str
    extended: bool
    expected: dict[str, Any] = field(default_factory=dict)

    def values(self, visits: int) -> list[str]:
        """The values of its parameters, as text."""
        return [str(visits) if value == "$visits" else str(value) for value in self.expected.get("with", [])]

    def __str__(self) -> str:
        return f"{self.tool}: {self.name}"


def all_sent() -> list[Sent]:
    """All statements of all tools, in order."""
    return [sent for path in sorted(FOLDER.glob("*.sql")) for sent in _of(path)]


def _of(path: Path) -> list[Sent]:
    head, *parts = re.split(r"^--# ", path.read_text(), flags=re.MULTILINE)
    extended = "-- Protocol: extended" in head
    found = []
    for part in parts:
        title, _, text = part.partition("\n")
        name, brace, expected = title.partition(" {")
        given = json.loads("{" + expected) if brace else {}
        found.append(Sent(path.stem, name, text.strip(), extended, given))
    return found
