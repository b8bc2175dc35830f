"""What a prepared table says about itself, and whether it serves what is declared now."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN, Source, engine_of
from sfumato.engines.dialect import EARLIER, Digest
from sfumato.engines.sources import is_database
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind, PrivateTable

__all__ = [
    "FORMAT",
    "FORMAT_GROUPS",
    "METADATA",
    "NOTE_FILE",
    "RANKS",
    "Note",
    "chosen_in",
    "folder_note",
    "note_of",
    "read_note",
    "salt_of",
    "unreadable",
    "written_note",
]

FORMAT = 1
"""How prepared files are laid out; another meaning of any part of them has another number."""

FORMAT_GROUPS = 2
"""The layout of files that were prepared for a grouping: they have its ranks too."""

METADATA = "sfumato prepared"
"""The table of a prepared file that holds its note: no other file has one. In PostgreSQL the note is the
comment on the table, which begins so."""

NOTE_FILE = "_sfumato_prepared.json"
"""The file of a folder of Parquet files that holds its note, with the names and sizes of the others."""

RANKS = (RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN)
"""The columns of ranks; of a table that was prepared without a grouping it has the first."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a prepared table holds.

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

    @property
    def ranks(self) -> tuple[str, ...]:
        """The columns of ranks that it has."""
        return RANKS if self.groups else RANKS[:1]

    def public_name(self, inner: str) -> str | None:
        """What a column of the file is called to the outside; None: it is not shown."""
        if inner == UNIT_COLUMN:
            declared = {column.casefold() for column in self.columns}
            return None if self.unit.casefold() in declared else self.unit
        return None if inner in RANKS else inner

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
        note = note_of(text)
        note = None if note is None else _typed(connection, database, note)
    except Exception:  # its text may hold data
        note = None
    if note is None:
        raise unreadable(shown)
    return note


def unreadable(shown: str) -> SourceUnusable:
    """What is said of a table with a note that this version does not understand."""
    return SourceUnusable(f"{shown} was not prepared by this version; prepare the table again.")


def written_note(
    table: PrivateTable, salt: bytes, groups: Sequence[str], exact: Sequence[str], digest: Digest
) -> str:
    """What the table says about itself; of the salt no more than whether another one is the same."""
    note = {
        "format": FORMAT_GROUPS if groups else FORMAT,
        "table": table.name,
        "unit": table.unit.column,
        "columns": {name: column.kind for name, column in table.schema.items()},
        "salt": hashlib.sha256(b"digest of a salt" + salt).hexdigest(),
        "digest": digest.name,
        "apart": list(exact),
        **({"groups": list(groups)} if groups else {}),
    }
    return json.dumps(note, ensure_ascii=False)


def note_of(text: str) -> Note | None:
    """The note that a table's own words make; None for those of another version, or for none at all."""
    try:
        return _understood(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def chosen_in(text: str) -> str | None:
    """The digest of the salt by which a note's table was ranked, and what chose by it; None: it has none."""
    try:
        said = json.loads(text)
        return f"{said['salt']} {said.get('digest', EARLIER)}"
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


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
    ranks = {types[rank] for rank in note.ranks}
    if any(default is not None for *_, default in rows) or ranks != {"UINTEGER"}:
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


def folder_note(folder: str | Path) -> str | None:
    """The note in a folder of Parquet files; None: it has none."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return Path(folder, NOTE_FILE).read_text("utf-8")
    return None


def salt_of(source: Source) -> str | None:
    """What ranked the rows of a prepared table: the digest of its salt, and what chose by it; else None.

    Two tables that were prepared with a salt each have other rows of most units, though their sources are
    neighbours.
    """
    if engine_of([source]) == "postgres":
        from sfumato.engines.postgres import Postgres

        with contextlib.suppress(SourceUnusable), Postgres() as engine:
            return chosen_in(engine.note(source) or "")
        return None
    if isinstance(source, str | Path) and (written := folder_note(source)) is not None:
        return chosen_in(written)
    if not is_database(source):
        return None
    import duckdb

    path = os.fspath(source).partition("::")[0].replace("'", "''")
    with duckdb.connect() as connection:
        try:
            connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
            ((note,),) = connection.execute(f'SELECT note FROM file.main."{METADATA}"').fetchall()
            return chosen_in(note)
        except Exception:  # not prepared, or not by this version: the session says so where it matters
            return None
