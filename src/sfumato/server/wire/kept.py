"""What a connection keeps by name: prepared statements, and cursors over answers that were paid already."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.server.wire.catalog_rows import long_name
from sfumato.server.wire.replies import Field
from sfumato.server.wire.rewriting import parsed, plain_value
from sfumato.server.wire.room import Room, Shelf, weight
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.statements import Statement
from sfumato.server.wire.types import KINDS, decoded

if TYPE_CHECKING:
    from sfumato.server.wire.desk import Outcome

__all__ = ["Cursor", "Kept", "Portal", "Prepared", "arguments", "types_of", "weight_of"]

_WAY = re.compile(
    r"(?P<word>NEXT|PRIOR|FIRST|LAST|ALL|ABSOLUTE|RELATIVE|FORWARD|BACKWARD)?\s*(?P<count>[-+]?\d{1,9}|ALL)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that was prepared, with the types of its parameters."""

    statement: Statement
    oids: tuple[int, ...]

    @property
    def size(self) -> int:
        """What it weighs."""
        said = self.statement
        return weight((said.text, said.name, said.value, self.oids))


@dataclass(slots=True)
class Cursor:
    """An answer that is read in parts.

    Attributes:
        fields: Its columns.
        rows: Its rows.
        hold: Whether it outlasts a transaction.
        size: What it weighs (`weight_of`).
        dataset: That was asked; empty: none.
        at: The row that it stands on, 0 before the first.
    """

    fields: list[Field]
    rows: list[tuple[Any, ...]]
    hold: bool
    size: int
    dataset: str = ""
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


@dataclass(slots=True)
class Portal:
    """A statement with the values of its parameters; and with its answer, while that is read in parts.

    Attributes:
        prepared: The statement.
        values: Of its parameters.
        formats: Of the columns.
        size: What it weighs without the answer: with the statement, which may be forgotten before it is.
        outcome: What it gave, once it was run.
        sent: How many rows of it the client has.
    """

    prepared: Prepared
    values: list[Any]
    formats: tuple[int, ...]
    size: int
    outcome: Outcome | None = None
    sent: int = 0

    @classmethod
    def of(cls, prepared: Prepared, values: list[Any], formats: tuple[int, ...]) -> Self:
        """One that was not run yet."""
        return cls(prepared, values, formats, prepared.size + weight((values, formats)))


def weight_of(fields: Sequence[Field] | None, rows: list[tuple[Any, ...]]) -> int:
    """What an answer weighs that is kept; it takes a while."""
    return weight([field.name for field in fields or ()]) + weight(rows)


class Kept:
    """What one connection keeps, within one room: prepared statements, cursors and portals.

    Args:
        within: The room of its account.
    """

    def __init__(self, within: Room | None = None) -> None:
        self.room = room = Room(within)
        self.statements = Shelf[Prepared](
            room, lambda: WireError("26000", "There is no prepared statement of this name.")
        )
        self.cursors = Shelf[Cursor](room, lambda: WireError("34000", "There is no cursor of this name."))
        self.portals = Shelf[Portal](room, lambda: WireError("34000", "There is no portal of this name."))

    def prepare(self, name: str, prepared: Prepared) -> None:
        """Keep a prepared statement.

        Raises:
            WireError: if there is one of this name, or no room.
        """
        if name and name in self.statements:
            raise WireError("42P05", "There is a prepared statement of this name.")
        self.statements.put(name, prepared, prepared.size)

    def forget(self, name: str) -> None:
        """Forget a prepared statement; empty: all of them.

        Raises:
            WireError: if there is none of this name.
        """
        if not name:
            self.statements.clear()
        else:
            self.statements[name]
            self.statements.pop(name)

    def open(self, name: str, cursor: Cursor) -> None:
        """Keep a cursor.

        Raises:
            WireError: if there is no room.
        """
        self.cursors.put(name, cursor, cursor.size)

    def close(self, name: str) -> None:
        """Forget a cursor; empty: all of them.

        Raises:
            WireError: if there is none of this name.
        """
        if not name:
            self.cursors.clear()
        else:
            self.cursors[name]
            self.cursors.pop(name)

    def leave(self) -> int:
        """Forget all of it, since the connection is over; gives how many bytes that was."""
        size = self.room.leave()
        for shelf in (self.statements, self.cursors, self.portals):
            shelf.clear()
        return size

    def end(self) -> None:
        """Forget the cursors that last no longer than a transaction."""
        self.cursors.clear(only=lambda cursor: not cursor.hold)


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
