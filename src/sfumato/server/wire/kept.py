"""What a connection keeps by name: prepared statements, and cursors over answers that were paid already."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.server.wire.catalog_rows import long_name
from sfumato.server.wire.replies import Field
from sfumato.server.wire.rewriting import parsed, plain_value
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.statements import Statement
from sfumato.server.wire.types import KINDS, decoded

__all__ = ["Cursor", "Kept", "Prepared", "arguments", "check_room", "types_of"]

_MOST = 500  # prepared statements, portals and cursors of one connection, each
_WAY = re.compile(
    r"(?P<word>NEXT|PRIOR|FIRST|LAST|ALL|ABSOLUTE|RELATIVE|FORWARD|BACKWARD)?\s*(?P<count>[-+]?\d{1,9}|ALL)?$",
    re.IGNORECASE,
)


def check_room(kept: Sequence[Any] | dict[str, Any]) -> None:
    """Refuse to keep more than there is room for.

    Raises:
        WireError: if there is none.
    """
    if len(kept) >= _MOST:
        raise WireError("53400", f"At most {_MOST} are kept of a connection.", hint="Close some.")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that was prepared, with the types of its parameters."""

    statement: Statement
    oids: tuple[int, ...]


@dataclass(slots=True)
class Cursor:
    """An answer that is read in parts; `at` is the row that it stands on, 0 before the first."""

    fields: list[Field]
    rows: list[tuple[Any, ...]]
    hold: bool
    at: int = 0

    def fetch(self, way: str) -> list[tuple[Any, ...]]:
        """The rows that a FETCH in this way gives; the cursor moves there.

        Raises:
            WireError: if it is no way.
        """
        match = _WAY.match(way.strip())
        if match is None:
            raise WireError("42601", "FETCH takes NEXT, PRIOR, FIRST, LAST, a number, ALL, or FORWARD 100.")
        word, count = (match["word"] or "").upper(), (match["count"] or "").upper()
        end = len(self.rows) + 1
        steps = end if "ALL" in (word, count) else int(count or 1)
        if word in ("FIRST", "LAST", "ABSOLUTE", "RELATIVE"):
            place = {"FIRST": 1, "LAST": end - 1, "RELATIVE": self.at + steps}.get(word, steps)
            place = end + steps if word == "ABSOLUTE" and steps < 0 else place
            self.at = min(max(place, 0), end)
            return self.rows[self.at - 1 : self.at] if 0 < self.at < end else []
        if word in ("PRIOR", "BACKWARD"):
            steps = -steps
        begin, self.at = self.at, min(max(self.at + steps, 0), end)
        if steps < 0:
            return self.rows[max(self.at, 1) - 1 : begin - 1][::-1]
        return self.rows[begin : self.at]


class Kept:
    """The prepared statements and cursors of one connection."""

    def __init__(self) -> None:
        self.statements: dict[str, Prepared] = {}
        self.cursors: dict[str, Cursor] = {}

    def prepared(self, name: str) -> Prepared:
        """A prepared statement.

        Raises:
            WireError: if there is none of this name.
        """
        if name not in self.statements:
            raise WireError("26000", "There is no prepared statement of this name.")
        return self.statements[name]

    def prepare(self, name: str, prepared: Prepared) -> None:
        """Keep a prepared statement.

        Raises:
            WireError: if there is one of this name, or no room.
        """
        if name and name in self.statements:
            raise WireError("42P05", "There is a prepared statement of this name.")
        check_room(self.statements)
        self.statements[name] = prepared

    def forget(self, name: str) -> None:
        """Forget a prepared statement; empty: all of them.

        Raises:
            WireError: if there is none of this name.
        """
        if not name:
            self.statements.clear()
        else:
            self.prepared(name)
            del self.statements[name]

    def cursor(self, name: str) -> Cursor:
        """A cursor.

        Raises:
            WireError: if there is none of this name.
        """
        if name not in self.cursors:
            raise WireError("34000", "There is no cursor of this name.")
        return self.cursors[name]

    def open(self, name: str, cursor: Cursor) -> None:
        """Keep a cursor.

        Raises:
            WireError: if there is no room.
        """
        check_room(self.cursors)
        self.cursors[name] = cursor

    def close(self, name: str) -> None:
        """Forget a cursor; empty: all of them.

        Raises:
            WireError: if there is none of this name.
        """
        if not name:
            self.cursors.clear()
        else:
            self.cursor(name)
            del self.cursors[name]

    def end(self) -> None:
        """Forget the cursors that last no longer than a transaction."""
        self.cursors = {name: cursor for name, cursor in self.cursors.items() if cursor.hold}


_TYPES = {
    word: kind.oid
    for kind in KINDS.values()
    for word in (kind.name, long_name(kind.name))
} | {"int": 23, "decimal": 1700, "double": 701, "string": 25}  # fmt: skip


def types_of(text: str) -> list[int]:
    """The types that `PREPARE name (…)` lists; 0 for one that is not known."""
    return [_TYPES.get(" ".join(word.lower().split()), 0) for word in text.split(",")] if text.strip() else []


def arguments(text: str, oids: Sequence[int]) -> list[Any]:
    """The values that `EXECUTE name (…)` gives.

    Raises:
        WireError: if they are no plain values, or not as many as there are parameters.
    """
    tree = parsed(f"SELECT {text}") if text.strip() else exp.Select()
    given = tree.expressions if isinstance(tree, exp.Select) else []
    if len(given) != len(oids):
        raise WireError("42601", f"The statement has {len(oids)} parameters; {len(given)} values were given.")
    return [_value(node, oid) for node, oid in zip(given, oids, strict=True)]


def _value(node: exp.Expr, oid: int) -> Any:
    negative, inner = isinstance(node, exp.Neg), node.this if isinstance(node, exp.Neg) else node
    if not isinstance(inner, exp.Literal | exp.Boolean | exp.Null | exp.Cast):
        raise WireError("0A000", "EXECUTE takes plain values.")
    value = plain_value(inner, ())
    if isinstance(value, bool) or value is None:
        return value
    return decoded(oid, 0, ("-" * negative + str(value)).encode())
