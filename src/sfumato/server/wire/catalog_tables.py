"""The tables of PostgreSQL's catalog and their columns, as clients know them.

They are listed in `catalog_columns.txt`: all of them, so that no query fails for a name. Most have no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from sfumato.server.wire.types import KINDS, OID

__all__ = ["FUNCTIONS", "catalog_oids", "columns_of", "is_listed", "table_names"]

_DUCKDB = {
    "oid": "UINTEGER", "regproc": "UINTEGER", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT",
    "bool": "BOOLEAN", "float4": "FLOAT", "float8": "DOUBLE", "timestamp": "TIMESTAMP", "bytea": "BLOB",
}  # fmt: skip

FUNCTIONS = frozenset(
    {"pg_get_keywords", "pg_listening_channels", "pg_available_extension_versions", "pg_show_all_settings"}
)
"""Functions without arguments that give tables."""


@cache
def _tables() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """The columns of each table with PostgreSQL's types; tables of `pg_catalog` are named without it."""
    text = resources.files(__package__).joinpath("catalog_columns.txt").read_text(encoding="utf-8")
    lines = (line for line in text.replace("\n    ", " ").splitlines() if line and line[0] != "#")
    return {
        name: tuple((column, kind or "text") for column, _, kind in (word.partition(":") for word in words))
        for name, *words in map(str.split, lines)
    }


def table_names() -> Iterator[str]:
    """The tables of the catalog."""
    return iter(_tables())


def is_listed(table: str) -> bool:
    """Whether there is such a table."""
    return table in _tables()


def columns_of(table: str) -> list[tuple[str, str]]:
    """The columns of a table of the catalog, with DuckDB's types."""
    parts = [(name, kind.removesuffix("[]"), kind.endswith("[]")) for name, kind in _tables()[table]]
    return [(name, _DUCKDB.get(kind, "VARCHAR") + "[]" * listed) for name, kind, listed in parts]


@cache
def catalog_oids() -> Mapping[str, int]:
    """The types of the catalog's columns by name: those of parameters that are compared with them."""
    known = {kind.name: kind.oid for kind in KINDS.values()} | {"regproc": OID}
    pairs = (pair for columns in _tables().values() for pair in columns)
    return {name: known[kind] for name, kind in pairs if kind in known}
