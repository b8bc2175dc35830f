"""Columns of Spark as declared ones: which types serve which kind, in SQL that no row can make raise."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sfumato.engines.base import (
    UNIT_COLUMN,
    SourceKind,
    is_kept,
    pointer_column,
)
from sfumato.engines.prepared import Note, unreadable
from sfumato.engines.spark.dialect import SPARK
from sfumato.errors import SourceUnusable
from sfumato.numeric.moments import DAY, FIRST, LAST
from sfumato.schema import Kind

__all__ = ["is_exact", "kind_of", "native_types", "prepared_list", "quoted", "select_list"]

_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_KINDS: dict[str, SourceKind] = {
    **dict.fromkeys(_WHOLE, "integer"),
    "float": "float",
    "double": "float",
    "boolean": "boolean",
    "string": "text",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_FITTING: dict[Kind, frozenset[SourceKind]] = {
    "integer": frozenset({"integer", "float", "boolean", "text"}),
    "float": frozenset({"integer", "float", "boolean", "text"}),
    "boolean": frozenset({"boolean", "integer", "float", "text"}),
    "text": frozenset({"text", "integer", "boolean", "date"}),
    "date": frozenset({"date", "timestamp", "text"}),
    "timestamp": frozenset({"timestamp", "date", "integer"}),
    "time": frozenset({"timestamp", "integer"}),
}
_TYPES: dict[Kind, str] = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "STRING",
    "date": "DATE",
    "timestamp": "BIGINT",
    "time": "BIGINT",
}
_DECLARED: dict[Kind, str] = {"integer": "int", "float": "float"}
_EXACT = {"float": "1.6777216e7", "double": "9.007199254740992e15"}


def quoted(name: str) -> str:
    """A name that stands for itself."""
    return "`" + name.replace("`", "``") + "`"


def native_types(schema: Any) -> dict[str, str]:
    """The types of columns as Spark writes them; text of any collation or length is `string`."""
    return {field.name: _native(field.dataType.simpleString()) for field in schema.fields}


def _native(name: str) -> str:
    return "string" if re.match(r"string\b|char\(|varchar\(", name) else name


def kind_of(native: str) -> SourceKind:
    """The kind of values of a type."""
    decimal = _DECIMAL.fullmatch(native)
    if decimal is not None:
        return "integer" if decimal[2] == "0" else "float"
    return _KINDS.get(native, "other")


def select_list(
    natives: Mapping[str, str],
    columns: Mapping[str, Kind],
    unit: str | None,
    pointers: Sequence[str],
    *,
    untyped: Sequence[str],
    shown: str,
    inexact: Collection[str] = (),
) -> list[str]:
    """What a view selects from a source, as SQL.

    Args:
        natives: The types of the source's columns.
        columns: What is declared, each with its kind.
        unit: The column of ids.
        pointers: Columns that are shown as the source has them, too.
        untyped: Columns that are text whatever they mean: the names of folders.
        shown: What the source is called in messages.
        inexact: Columns in which two values may have become one.

    Raises:
        SourceUnusable: if a column is missing or cannot have its kind, ids or pointers have types that tell
            no one apart, or a name is used that is kept.
    """
    for name in columns:
        if is_kept(name):
            raise SourceUnusable(f'{shown}: the name "{name[:100]}" is kept; rename that column.')
    ids = [*([] if unit is None else [unit]), *pointers]
    for name in dict.fromkeys([*columns, *ids]):
        if name not in natives:
            raise SourceUnusable(
                f'{shown} has no column "{name[:100]}"; correct the unit, the schema or the source.'
            )
    for name in ids:
        if name in inexact:
            raise _no_ids(name, shown)
    selected = [
        f"{_value(name, natives[name], kind, name in untyped, shown)} AS {quoted(name)}"
        for name, kind in columns.items()
    ]
    if unit is not None:
        selected.append(f"{_id(unit, natives[unit], shown)} AS {quoted(UNIT_COLUMN)}")
    selected += [
        f"{_pointer(name, natives[name], shown)} AS {quoted(pointer_column(name))}" for name in pointers
    ]
    return selected or ["CAST(NULL AS BIGINT) AS nothing"]


def prepared_list(
    note: Note,
    natives: Mapping[str, str],
    columns: Mapping[str, Kind],
    pointers: Sequence[str],
    *,
    shown: str,
) -> list[str]:
    """The same of a prepared source, which has the ids under a name of its own, and ranks.

    Raises:
        SourceUnusable: if it was prepared for something else, or its columns are not what was written.
    """
    if UNIT_COLUMN not in natives or any(natives.get(rank) != "bigint" for rank in note.ranks):
        raise unreadable(shown)
    for pointer in pointers:
        if pointer != note.unit and pointer not in note.exact:
            raise SourceUnusable(
                f'{shown} was prepared without "{pointer[:100]}" as its source has it, and other tables '
                "point to that column; name the source itself."
            )
    others = [pointer for pointer in pointers if pointer != note.unit]
    selected = select_list(natives, columns, UNIT_COLUMN, others, untyped=(), shown=shown)
    if note.unit in pointers:
        ids = _pointer(UNIT_COLUMN, natives[UNIT_COLUMN], shown)
        selected.append(f"{ids} AS {quoted(pointer_column(note.unit))}")
    ranks = note.ranks if note.grouping(columns) else note.ranks[:1]
    return selected + list(map(quoted, ranks))


def is_exact(native: str, kind: Kind) -> bool:
    """Whether a column of a kind keeps apart what the source does, and has the type that a pointer has."""
    decimal = _DECIMAL.fullmatch(native)
    whole = native in _WHOLE or (decimal is not None and decimal[2] == "0" and int(decimal[1]) <= 18)
    own = {"text": "string", "boolean": "boolean", "date": "date", "float": "double"}
    return whole if kind == "integer" else native == own.get(kind)


def _inner(name: str, native: str) -> str:
    """A column; of text what is UTF-8, compared by its bytes."""
    if native == "string":
        return f"TRY_VALIDATE_UTF8(CAST(COLLATE({quoted(name)}, 'UTF8_BINARY') AS STRING))"
    return quoted(name)


def _form(function: str, value: str) -> str:
    form = SPARK.forms[function]
    assert isinstance(form, str)
    return form.replace("{0}", value)


def _value(name: str, native: str, kind: Kind, untyped: bool, shown: str) -> str:
    """SQL for a declared column in its canonical type, NULL where a value does not fit."""
    inner, is_now = _inner(name, native), kind_of(native)
    if native == "void":
        return f"CAST(NULL AS {_TYPES[kind]})"
    if is_now not in _FITTING[kind]:
        raise SourceUnusable(
            f'{shown}: column "{name[:100]}" cannot be read as {kind}; the source has it as {is_now}.'
        )
    if kind in _DECLARED and is_now == "text" and not untyped:
        raise SourceUnusable(
            f'{shown}: column "{name[:100]}" is declared {_DECLARED[kind]}, and the source has it as text; '
            "declare it text, or write numbers to the source."
        )
    is_decimal = _DECIMAL.fullmatch(native) is not None
    if kind == "integer":
        if is_decimal:
            return (
                f"TRY_CAST(ROUND({inner}, 0) AS BIGINT)"
                if is_now == "float"
                else f"TRY_CAST({inner} AS BIGINT)"
            )
        return f"CAST({inner} AS BIGINT)" if native in _WHOLE else _whole(inner, native)
    if kind == "float":
        return _form("to_float", inner) if is_now == "text" else f"CAST({inner} AS DOUBLE)"
    if kind == "boolean":
        number = _whole(inner, native) if is_now == "float" and not is_decimal else inner
        if is_decimal:
            number = (
                f"TRY_CAST(ROUND({inner}, 0) AS BIGINT)" if is_now == "float" else f"CAST({inner} AS DOUBLE)"
            )
        if is_now == "text":
            return _form("to_boolean", inner)
        return inner if native == "boolean" else f"TRY_CAST({number} AS BOOLEAN)"
    if kind in ("timestamp", "time"):
        return _seconds(inner, native, kind)
    if kind == "text":
        return _form("to_text", inner) if native == "date" else f"CAST({inner} AS STRING)"
    return _form("to_date", inner) if is_now == "text" else f"CAST({inner} AS DATE)"


def _seconds(inner: str, native: str, kind: Kind) -> str:
    """Whole seconds, since 1970 or of the day, parts of them cut off; NULL beyond the years 1 to 9999."""
    is_now = kind_of(native)
    if is_now == "integer":
        low, high = (FIRST, LAST) if kind == "timestamp" else (0, DAY - 1)
        number = f"TRY_CAST({inner} AS BIGINT)"
        return f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {number} END"
    if is_now == "date":
        number = f"CAST(UNIX_DATE({inner}) AS BIGINT) * {DAY}"
    else:
        number = f"UNIX_SECONDS(CAST({inner} AS TIMESTAMP))"
    shown = number if kind == "timestamp" else f"PMOD({number}, {DAY})"
    return f"CASE WHEN {number} BETWEEN {FIRST} AND {LAST} THEN {shown} END"


def _whole(inner: str, native: str) -> str:
    """The nearest whole number, halves to even."""
    return _form("to_integer", f"CAST({inner} AS DOUBLE)" if native == "float" else inner)


def _id(name: str, native: str, shown: str) -> str:
    """SQL for an id as the source has it; NaN is not one, and zeros of two signs are one number."""
    if native in _EXACT:
        zero = f"CAST(0 AS {native.upper()})"
        return f"CASE WHEN NOT ISNAN({quoted(name)}) THEN {quoted(name)} + {zero} END"
    if native == "void":
        return "CAST(NULL AS STRING)"
    if kind_of(native) == "other" and native != "binary":
        raise _no_ids(name, shown)
    return _inner(name, native)


def _no_ids(name: str, shown: str) -> SourceUnusable:
    return SourceUnusable(
        f'{shown}: the values of column "{name[:100]}" cannot be the ids of units; write them as text or '
        "whole numbers."
    )


def _pointer(name: str, native: str, shown: str) -> str:
    """SQL for a pointer: whole numbers of any width in one type, so that both ends meet."""
    shown_as_is = _id(name, native, shown)
    decimal = _DECIMAL.fullmatch(native)
    if native in _WHOLE:
        return f"CAST({quoted(name)} AS BIGINT)"
    if decimal is not None and decimal[2] == "0":
        return f"CAST({quoted(name)} AS {'BIGINT' if int(decimal[1]) <= 18 else 'DECIMAL(38, 0)'})"
    if native in _EXACT:
        exact = f"ABS({quoted(name)}) < {_EXACT[native]} AND {quoted(name)} % 1e0 = 0"
        return f"CASE WHEN {exact} THEN TRY_CAST({quoted(name)} AS BIGINT) END"
    return shown_as_is
