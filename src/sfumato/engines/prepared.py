"""What a prepared file says about itself, and whether it serves what is declared now."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN, Source
from sfumato.engines.dialect import EARLIER
from sfumato.engines.sources import is_database
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind

__all__ = ["FORMAT", "FORMAT_GROUPS", "METADATA", "Note", "read_note", "salt_of"]

FORMAT = 1
"""How prepared files are laid out; another meaning of any part of them has another number."""

FORMAT_GROUPS = 2
"""The layout of files that were prepared for a grouping: they have its ranks too."""

METADATA = "sfumato prepared"
"""The table of a prepared file that holds its note: no other file has one."""

_RANKS = (RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN)


@dataclass(frozen=True, slots=True)
class Note:
    """What a prepared file holds.

    Attributes:
        table: The table with the rows.
        unit: The column whose values are the units; the file has it under `UNIT_COLUMN`.
        columns: The other columns, with what they were declared to hold.
        groups: Those of them that it was prepared to be grouped by; empty: none.
        ids: The native type of the units' ids.
        exact: The columns that keep apart what their source does, so that they can be pointers.
    """

    table: str
    unit: str
    columns: Mapping[str, Kind]
    groups: tuple[str, ...] = ()
    ids: str = "OTHER"
    exact: tuple[str, ...] = ()

    def public_name(self, inner: str) -> str | None:
        """What a column of the file is called to the outside; None: it is not shown."""
        if inner == UNIT_COLUMN:
            declared = {column.casefold() for column in self.columns}
            return None if self.unit.casefold() in declared else self.unit
        return None if inner in _RANKS else inner

    def grouping(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The columns of the grouping as they are declared now; empty if there is none or one is missing."""
        declared = {column.casefold(): column for column in columns}
        grouping = tuple(
            declared[column.casefold()] for column in self.groups if column.casefold() in declared
        )
        return grouping if len(grouping) == len(self.groups) else ()

    def check(self, columns: Mapping[str, Kind], unit: str, shown: str) -> None:
        """Refuse a declaration that the file was not prepared for.

        Raises:
            SourceUnusable: if the unit is another column, or a column is missing or held something else.
        """
        again = "prepare the table again"
        if unit.casefold() != self.unit.casefold():
            raise SourceUnusable(f'{shown} was prepared for a unit other than "{unit[:100]}"; {again}.')
        held = {name.casefold(): kind for name, kind in self.columns.items()}
        for name, kind in columns.items():
            if held.get(name.casefold()) != kind:
                raise SourceUnusable(
                    f'{shown} was prepared without the column "{name[:100]}" as {kind}; {again}.'
                )


def read_note(connection: Any, database: str, shown: str) -> Note:
    """The note in an attached prepared file, if the file's columns are what was prepared.

    Raises:
        SourceUnusable: if it has none that this version understands.
    """
    note: Note | None = None
    try:
        place = database.replace('"', '""')
        ((text,),) = connection.execute(f'SELECT note FROM "{place}".main."{METADATA}"').fetchall()
        note = _understood(json.loads(text))
        note = None if note is None else _typed(connection, database, note)
    except Exception:  # its text may hold data
        note = None
    if note is None:
        raise SourceUnusable(f"{shown} was not prepared by this version; prepare the table again.")
    return note


def _typed(connection: Any, database: str, note: Note) -> Note | None:
    """The note with the type of the ids; None where ranks are not numbers, or a column is worked out again.

    A generated column may give another value in each read (`random()`); its expression is where a default
    would, and a prepared table has none.
    """
    rows = connection.execute(
        "SELECT column_name, data_type, column_default FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = 'main' AND table_name = ?",
        [database, note.table],
    ).fetchall()
    types = {name: native for name, native, _ in rows}
    ranks = _RANKS if note.groups else _RANKS[:1]
    if any(default is not None for *_, default in rows) or {types[rank] for rank in ranks} != {"UINTEGER"}:
        return None
    return replace(note, ids=types[UNIT_COLUMN])


def _understood(data: Any) -> Note | None:
    """The note that a file's own words make; None for those of another version."""
    if data["format"] not in (FORMAT, FORMAT_GROUPS):
        return None
    groups = tuple(map(str, data["groups"])) if data["format"] == FORMAT_GROUPS else ()
    exact = tuple(map(str, data.get("apart", ())))  # "exact" was said of columns that are not
    note = Note(str(data["table"]), str(data["unit"]), dict(data["columns"]), groups, exact=exact)
    return note if set(groups) <= set(note.columns) else None


def salt_of(source: Source) -> str | None:
    """What ranked the rows of a prepared file: the digest of its salt, and what chose by it; None for others.

    Two files that were prepared with a salt each have other rows of most units, though their sources are
    neighbours.
    """
    if not is_database(source):
        return None
    import duckdb

    path = os.fspath(source).partition("::")[0].replace("'", "''")
    with duckdb.connect() as connection:
        try:
            connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
            ((note,),) = connection.execute(f'SELECT note FROM file.main."{METADATA}"').fetchall()
            said = json.loads(note)
            return f"{said['salt']} {said.get('digest', EARLIER)}"
        except Exception:  # not prepared, or not by this version: the session says so where it matters
            return None
