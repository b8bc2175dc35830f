"""Catalog queries of clients, answered from the public schema in a database that has nothing else.

Privacy:
    What is in that database follows from the declarations of tables, which are public. It is in processes of
    its own (`apart`), no source is attached to it, and it is locked before the first query: no files, no
    network, no extensions, no settings. So whatever a query there finds is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.server.wire.apart import Apart, Limits, Refused
from sfumato.server.wire.catalog_functions import HOME, MACROS
from sfumato.server.wire.catalog_rows import long_name, rows
from sfumato.server.wire.catalog_tables import columns_of, table_names
from sfumato.server.wire.replies import Field
from sfumato.server.wire.rewriting import Asker, rewritten
from sfumato.server.wire.shapes import field_of
from sfumato.server.wire.sqlstates import WireError
from sfumato.server.wire.types import KINDS, TEXT

if TYPE_CHECKING:
    from sfumato.schema import PrivateTable, PublicTable

__all__ = ["Catalog"]

_SETTINGS: dict[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "memory_limit": "256MB",
    "temp_directory": "",
    "threads": 1,
    "integer_division": True,  # of whole numbers alone, as in PostgreSQL
}
_LOCK = ("SET GLOBAL TimeZone = 'UTC'", "SET enable_external_access = false", "SET lock_configuration = true")
_MOST, _MOST_BYTES, _MOST_COLUMNS = 100_000, 1 << 24, 1_664
_LIMITS = Limits(seconds=5.0, rows=_MOST, bytes=_MOST_BYTES, columns=_MOST_COLUMNS, page=100)
_TOO_MUCH = {
    "53200": ("The query of the catalog takes too much memory.", "Ask for less at once."),
    "54000": (f"The catalog gives at most {_MOST:,} rows, and {_MOST_BYTES:,} bytes.", "Add a LIMIT."),
    "54011": (f"The catalog gives at most {_MOST_COLUMNS:,} columns.", "Name those that you want."),
    "57014": ("The query of the catalog took too long.", ""),
}
_DUCKDB = {
    "BOOLEAN": 16, "BLOB": 17, "TINYINT": 21, "SMALLINT": 21, "INTEGER": 23, "UTINYINT": 21, "USMALLINT": 23,
    "BIGINT": 20, "UINTEGER": 26, "UBIGINT": 1700, "HUGEINT": 1700, "FLOAT": 700, "DOUBLE": 701, "DATE": 1082,
    "TIME": 1083, "TIMESTAMP": 1114, "TIMESTAMP WITH TIME ZONE": 1184, "VARCHAR": 25,
}  # fmt: skip


class Catalog:
    """The catalog of one database. It may be used from several threads."""

    def __init__(
        self, database: str, tables: Sequence[PrivateTable | PublicTable], settings: Mapping[str, str]
    ) -> None:
        filled = rows(database, tables, settings)
        script = [f"CREATE SCHEMA {HOME}", "BEGIN"]
        script += [_created(table, filled.get(table, [])) for table in table_names()]
        script += [
            _types(),
            *(f"CREATE MACRO {HOME}.{name} AS {meaning}" for name, meaning in MACROS.items()),
            "COMMIT",
        ]
        self._apart = Apart([";\n".join(script), *_LOCK], _SETTINGS, _LIMITS)

    def ask(
        self, tree: exp.Expr, asker: Asker, values: Sequence[Any] = ()
    ) -> tuple[list[Field], list[tuple[Any, ...]]]:
        """The columns and rows that a query about the catalog gives, within limits of time and size.

        Raises:
            WireError: if it cannot be answered.
        """
        try:
            text = rewritten(tree.copy(), asker, values)
        except RecursionError:
            raise WireError("54001", "The query has too many parts inside each other.") from None
        return self.told(text)

    def told(self, text: str) -> tuple[list[Field], list[tuple[Any, ...]]]:
        """What a text in DuckDB's SQL gives.

        Raises:
            WireError: if it cannot be answered.
        """
        try:
            fields, found = self._apart.ask(text)
        except Refused as refused:
            raise _refused(refused) from None
        return [_field(name, kind) for name, kind in fields], found

    def close(self) -> None:
        """Give back its memory."""
        self._apart.close()


def _created(table: str, listed: Sequence[Mapping[str, Any]]) -> str:
    """The statements that make a table of the catalog, with its rows."""
    name = f'{HOME}."{table.replace("information_schema.", "is_")}"'
    listing = ", ".join(f'"{column}" {kind}' for column, kind in columns_of(table))
    statements = [f"CREATE TABLE {name} ({listing})"]
    for columns, alike in groupby(listed, key=tuple):  # a NULL that is not written is not parsed
        values = ", ".join(f"({', '.join(map(_literal, row.values()))})" for row in alike)
        statements.append(f"INSERT INTO {name} ({', '.join(columns)}) VALUES {values}")
    return ";\n".join(statements)


def _types() -> str:
    """The names of types, short and long, by number."""
    pairs = [(kind.oid, kind.name, long_name(kind.name)) for kind in KINDS.values()]
    pairs += [(kind.array, f"_{kind.name}", f"{long_name(kind.name)}[]") for kind in KINDS.values()]
    values = ", ".join(f"({', '.join(map(_literal, pair))})" for pair in pairs)
    return f"CREATE TABLE {HOME}.sfumato_types AS SELECT * FROM (VALUES {values}) t (oid, typname, format)"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return "'" + value.replace("\0", "").replace("'", "''") + "'"
    return "NULL" if value is None else str(value).lower()


def _field(name: str, kind: str) -> Field:
    listed, base = kind.endswith("[]"), kind.removesuffix("[]").partition("(")[0].upper()
    oid = 1700 if base == "DECIMAL" else _DUCKDB.get(base, TEXT)
    return field_of(name, KINDS[oid].array if listed else oid)


def _refused(refused: Refused) -> WireError:
    if refused.state in _TOO_MUCH:
        message, hint = _TOO_MUCH[refused.state]
        return WireError(refused.state, message, hint=hint)
    return WireError(
        refused.state,
        "The catalog cannot answer this.",
        detail=refused.detail,
        hint=r"\d lists the tables, \d NAME the columns.",
    )
