"""An engine that quotes need and nothing else: private files stay shut."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sfumato.engines import Dialect, Engine
from sfumato.engines.base import Source, SourceKind, engine_of
from sfumato.engines.prepared import folder_note
from sfumato.engines.sources import is_database
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.schema import Kind
from sfumato.sql.write.sources import id_types

__all__ = ["Unopened"]

_SHUT = "Here private tables are described and not opened."


class Unopened:
    """Has tables attached without opening private ones, so that a session on it can quote and nothing more.

    What a question costs and how far off it is follows from what the steward declared. Two things alone come
    from sources: the values of public tables, and whether a file of DuckDB, a table of PostgreSQL or a folder
    was prepared, which its own catalog or its note says. Those are left to the engine within; a private CSV
    or Parquet file need not even be there.

    Privacy:
        No row of a private table is read. A CSV file is not opened at all: the least that could be read of it
        is a first block, which has rows in it beside the header. Conditions: `public` names public tables
        only.
    """

    def __init__(self, inner: Engine, *, public: Collection[str]) -> None:
        """Leave public tables and files that may be prepared to the engine within; the caller closes it."""
        self._inner, self._public = inner, {name.lower() for name in public}

    @property
    def dialect(self) -> Dialect:
        """That of the engine within."""
        return self._inner.dialect

    @property
    def schemes(self) -> frozenset[str]:
        """Those of the engine within."""
        return self._inner.schemes

    def check_whole(self, source: Source) -> None:
        """Nothing to tell: a source is not opened here."""

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        """Take note of a private table; open a public one, or one that may be prepared."""
        may_be_prepared = is_database(source) or engine_of([source]) == "postgres" or _has_note(source)
        if name.lower() in self._public or may_be_prepared:
            self._inner.attach(name, source, columns, unit=unit, pointers=pointers)

    def schema(self, source: Source) -> dict[str, SourceKind]:  # noqa: ARG002 - as the protocol has it
        """Refused: a source is not opened here."""
        raise SourceUnusable(_SHUT)

    def fetch(
        self,
        statement: exp.Expression,
        *,
        guard: exp.Expression | None = None,  # noqa: ARG002 - as the protocol has it
    ) -> pa.Table:
        """Refused, but for the types of ids, which were found alike when the session that paid was opened."""
        asked = [
            (subquery.find(exp.Table), subquery.find(exp.Column))
            for subquery in statement.find_all(exp.Subquery)
        ]
        columns = [(table.name, shown.name) for table, shown in asked if table and shown]
        if columns and statement == id_types(columns, self.dialect):
            return pa.table({str(i): ["as they were"] for i in range(len(columns))})
        raise EngineFailed(_SHUT)

    def values(self, name: str, column: str, limit: int) -> list[Any] | None:
        """The values of a public table's column."""
        return self._of_public(name).values(name, column, limit)

    def is_unique(self, name: str, columns: Sequence[str]) -> bool:
        """Whether a public table's columns are a key."""
        return self._of_public(name).is_unique(name, columns)

    def is_prepared(self, name: str) -> bool:
        """Whether a file has ranks of its rows."""
        return self._inner.is_prepared(name)

    def grouping(self, name: str) -> tuple[str, ...]:
        """For which grouping it has them."""
        return self._inner.grouping(name)

    def unread(self, name: str) -> frozenset[str]:
        """Of which columns it says which cells could not be read."""
        return self._inner.unread(name)

    def close(self) -> None:
        """Nothing to give back: the engine within belongs to the caller."""

    def _of_public(self, name: str) -> Engine:
        if name.lower() not in self._public:
            raise EngineFailed(_SHUT)
        return self._inner


def _has_note(source: Source) -> bool:
    return isinstance(source, str | Path) and folder_note(source) is not None
