"""Which native types of DuckDB can serve which declared kind, and the cast that no row can make raise."""

from __future__ import annotations

from sfumato.engines.base import SourceKind
from sfumato.numeric.moments import DAY, FIRST, LAST
from sfumato.schema import Kind

__all__ = ["ALL_NULL", "CANONICAL", "cast", "kind_of", "seconds"]

CANONICAL: dict[Kind, str] = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "BIGINT",  # seconds since 1970-01-01
    "time": "BIGINT",  # seconds since midnight
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
    "TIME": "time",
    "TIME_NS": "time",
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
    "timestamp": frozenset({"timestamp", "date", "text", "integer"}),
    "time": frozenset({"time", "timestamp", "text", "integer"}),
}
_CLOCK = r"\s*\d{1,2}:\d\d(:\d\d(\.\d*)?)?\s*"  # a zone would be passed over


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
    if native in ALL_NULL:
        return f"CAST({column} AS {target})"
    if own_kind not in _FITTING[kind]:
        return None
    if kind == "timestamp":
        return _timestamp(column, native, own_kind)
    if kind == "time":
        return _time(column, native, own_kind)
    if native == target:
        return column
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


def _timestamp(column: str, native: str, own_kind: SourceKind) -> str:
    """Seconds since 1970-01-01, parts of them cut off; NULL beyond the years 1 to 9999."""
    if own_kind == "integer":
        return _held(_whole(column, native), FIRST, LAST)
    if own_kind == "text":  # a text may say its zone; the session's is UTC
        return seconds(f"TRY_CAST(CAST({column} AS VARCHAR) AS TIMESTAMPTZ)")
    if native == "TIMESTAMPTZ_NS":  # no cast leads from it to other types
        above = f"CAST(epoch_ns({column}) AS HUGEINT) + {10**19}"  # so that // rounds down
        return f"CAST(({above}) // 1000000000 - {10**10} AS BIGINT)"
    return seconds(column if native == "TIMESTAMP WITH TIME ZONE" else f"TRY_CAST({column} AS TIMESTAMP)")


def seconds(moment: str) -> str:
    """SQL for the whole seconds since 1970-01-01 of a TIMESTAMP with or without a zone.

    Nothing overflows, whichever of the parts is worked out for a row.
    """
    low, high = FIRST * 10**6, LAST * 10**6 + 999_999
    micros = f"epoch_us({moment})"
    held = f"least(greatest({micros}, {low}), {high})"
    return f"CASE WHEN {micros} BETWEEN {low} AND {high} THEN ({held} - ({low})) // 1000000 + ({FIRST}) END"


def _time(column: str, native: str, own_kind: SourceKind) -> str:
    """Seconds since midnight, parts of them cut off."""
    if own_kind == "integer":
        return _held(_whole(column, native), 0, DAY - 1)
    if own_kind == "timestamp":
        moment = _timestamp(column, native, own_kind)
        return f"({moment} + {-FIRST}) % {DAY}"  # the first second is at midnight
    if own_kind == "text":
        text = f"CAST({column} AS VARCHAR)"
        column = f"CASE WHEN regexp_full_match({text}, '{_CLOCK}') THEN TRY_CAST({text} AS TIME) END"
    parts, second = f"epoch_us(TRY_CAST({column} AS TIME))", 10**6
    if native == "TIME_NS":  # a cast would round the end of a day to the next
        parts, second = f"epoch_ns({column})", 10**9
    return f"CASE WHEN {parts} BETWEEN 0 AND {DAY * second - 1} THEN {parts} // {second} END"


def _whole(column: str, native: str) -> str:
    if native == "BIGINT":
        return column
    return f"TRY_CAST({f'CAST({column} AS VARCHAR)' if native == 'BIGNUM' else column} AS BIGINT)"


def _held(number: str, least: int, most: int) -> str:
    return f"CASE WHEN {number} BETWEEN {least} AND {most} THEN {number} END"
