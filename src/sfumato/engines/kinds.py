"""Which native types of DuckDB can serve which declared kind, and the cast that no row can make raise."""

from __future__ import annotations

from sfumato.engines.base import SourceKind
from sfumato.schema import Kind

__all__ = ["ALL_NULL", "CANONICAL", "cast", "kind_of"]

CANONICAL: dict[Kind, str] = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
}

_SMALL = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
_WHOLE = {*_SMALL, "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM"}
_TEXTS = {"VARCHAR", "UUID", "JSON"}
_TIMESTAMPS = {
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"),
}
_KINDS: dict[str, SourceKind] = {
    **dict.fromkeys(_WHOLE, "integer"),
    **dict.fromkeys(_TEXTS, "text"),
    **dict.fromkeys(_TIMESTAMPS, "timestamp"),
    "FLOAT": "float",
    "DOUBLE": "float",
    "BOOLEAN": "boolean",
    "DATE": "date",
}
ALL_NULL = frozenset({'"NULL"', "NULL"})
"""The types of a column that holds nothing but NULL, which serves as anything."""

# Casts that succeed for every value, so that the optimiser may move comparisons through them.
_LOSSLESS = {
    "BIGINT": _SMALL,
    "DOUBLE": {*_SMALL, "BIGINT", "FLOAT"},
    "VARCHAR": {*_WHOLE, "UUID", "JSON", "BOOLEAN", "DATE"},
    "DATE": set[str](),
    "BOOLEAN": set[str](),
}
_FITTING: dict[Kind, frozenset[SourceKind]] = {
    "integer": frozenset({"integer", "float", "boolean", "text"}),
    "float": frozenset({"integer", "float", "boolean", "text"}),
    "boolean": frozenset({"boolean", "integer", "float", "text"}),
    "text": frozenset({"text", "integer", "boolean", "date"}),
    "date": frozenset({"date", "timestamp", "text"}),
}


def kind_of(native: str) -> SourceKind:
    """The kind of a native type, as DESCRIBE writes it."""
    if native.startswith("DECIMAL(") and native.endswith(")"):
        return "integer" if native.endswith(",0)") else "float"
    if native.startswith("ENUM(") and native.endswith(")"):
        return "text"
    return _KINDS.get(native, "other")


def cast(column: str, native: str, kind: Kind) -> str | None:
    """SQL that gives the column in the canonical type of the kind, NULL where a value does not fit.

    Args:
        column: The column, quoted.
        native: Its type, as DESCRIBE writes it.
        kind: What it was declared to hold.

    Returns:
        The expression, or None if no cast is defined.
    """
    target, own_kind = CANONICAL[kind], kind_of(native)
    if native == target:
        return column
    if native in ALL_NULL:
        return f"CAST({column} AS {target})"
    if own_kind not in _FITTING[kind]:
        return None
    if native in _LOSSLESS[target] or (native.startswith("ENUM(") and target == "VARCHAR"):
        return f"CAST({column} AS {target})"
    if native == "BIGNUM":  # DuckDB's own TRY_CAST raises on more than 64 bits, and the instance is lost
        column, native, own_kind = f"CAST({column} AS VARCHAR)", "VARCHAR", "text"
    if kind == "boolean" and own_kind == "float":  # NaN is not a truth value
        return f"TRY_CAST(TRY_CAST({column} AS BIGINT) AS BOOLEAN)"
    if kind == "date":  # text and timestamps can say "infinity", which is not a day
        day = f"TRY_CAST({column} AS DATE)"
        return f"CASE WHEN isfinite({day}) THEN {day} END"
    if own_kind == "text" and native != "VARCHAR":
        return f"TRY_CAST(CAST({column} AS VARCHAR) AS {target})"
    return f"TRY_CAST({column} AS {target})"
