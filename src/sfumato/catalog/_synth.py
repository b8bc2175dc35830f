"""What sfumato.toml says of a table's synthetic twin: public statements, which no row is looked at for."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.catalog._sections import check_known
from sfumato.errors import CatalogUnusable
from sfumato.schema import ColumnType, Enum

__all__ = ["SynthSettings", "read_synth"]

_NULL = "NULL"


@dataclass(frozen=True, slots=True)
class SynthSettings:
    """Public statements about a table that its synthetic rows keep to.

    Attributes:
        constraints: Conditions that hold in every row, as SQL.
        never: Values that no row has together, by column.
        determines: Columns that follow from others: which decides, which follows, and by which mapping.
        totals: For some columns, how many rows have each value.
        workload: Sets of columns that matter; a text is a condition that will be counted.
        ids: Columns that only name rows.
    """

    constraints: tuple[str, ...] = ()
    never: tuple[Mapping[str, Any], ...] = ()
    determines: tuple[tuple[str, str, Mapping[Any, Any]], ...] = ()
    totals: Mapping[str, Mapping[Any, int]] = field(default_factory=dict)
    workload: tuple[str | tuple[str, ...], ...] = ()
    ids: tuple[str, ...] = ()


def read_synth(section: Any, schema: Mapping[str, ColumnType], where: str) -> SynthSettings:
    """The section of a table, with values of the columns' own types.

    Raises:
        CatalogUnusable: for settings that mean nothing.
    """
    if not isinstance(section, dict):
        raise CatalogUnusable(f"{where} must be a section: [{where}].")
    check_known("tables.NAME.synth", section, where)
    return SynthSettings(
        constraints=_texts(section, "constraints", where, '["age >= 18"]'),
        never=tuple(_never(one, where) for one in _list(section, "never", where, _NEVER)),
        determines=tuple(
            _determines(one, schema, where) for one in _list(section, "determines", where, _DETERMINES)
        ),
        totals=_totals(section.get("totals", {}), schema, where),
        workload=tuple(_set(one, where) for one in _list(section, "workload", where, _WORKLOAD)),
        ids=_texts(section, "ids", where, '["order"]'),
    )


_NEVER = '[{ sex = "M", pregnant = true }]'
_DETERMINES = '[{ by = "zip", column = "city", mapping = { 10115 = "Berlin" } }]'
_WORKLOAD = '[["age", "sex"], "age < 30 AND sex = \'F\'"]'


def _list(section: Mapping[str, Any], key: str, where: str, such: str) -> list[Any]:
    listed = section.get(key, [])
    if not isinstance(listed, list):
        raise CatalogUnusable(f"{where}: {key} is a list, such as {such}.")
    return listed


def _texts(section: Mapping[str, Any], key: str, where: str, such: str) -> tuple[str, ...]:
    listed = _list(section, key, where, such)
    if not all(isinstance(one, str) and one.strip() for one in listed):
        raise CatalogUnusable(f"{where}: {key} is a list of texts, such as {such}.")
    return tuple(listed)


def _set(one: Any, where: str) -> str | tuple[str, ...]:
    if isinstance(one, str) and one.strip():
        return one
    if isinstance(one, list) and one and all(isinstance(name, str) for name in one):
        return tuple(one)
    raise CatalogUnusable(f"{where}: workload is a list of sets of columns, such as {_WORKLOAD}.")


def _never(one: Any, where: str) -> dict[str, Any]:
    if not isinstance(one, dict) or not one or any(isinstance(value, dict) for value in one.values()):
        raise CatalogUnusable(f"{where}: never is a list of values by column, such as {_NEVER}.")
    return {
        name: [_plain(each) for each in value] if isinstance(value, list) else _plain(value)
        for name, value in one.items()
    }


def _determines(one: Any, schema: Mapping[str, ColumnType], where: str) -> tuple[str, str, dict[Any, Any]]:
    place = f"{where}.determines"
    if isinstance(one, dict):
        check_known("tables.NAME.synth.determines", one, place)
        by, column, mapping = one.get("by"), one.get("column"), one.get("mapping")
        if isinstance(by, str) and isinstance(column, str) and isinstance(mapping, dict):
            return by, column, {_key(k, by, schema, place): _plain(v) for k, v in mapping.items()}
    raise CatalogUnusable(f"{place} is a list such as {_DETERMINES}.")


def _totals(given: Any, schema: Mapping[str, ColumnType], where: str) -> dict[str, dict[Any, int]]:
    place = f"{where}.totals"
    if not isinstance(given, dict) or not all(isinstance(counts, dict) for counts in given.values()):
        raise CatalogUnusable(
            f"{place} says how many rows have each value: totals = {{ sex = {{ F = 5120, M = 4880 }} }}."
        )
    found = dict[str, dict[Any, int]]()
    for column, counts in given.items():
        if not all(type(count) is int for count in counts.values()):
            raise CatalogUnusable(f"{place}.{column}: a total is a whole number of rows.")
        found[column] = {_key(key, column, schema, place): count for key, count in counts.items()}
    return found


def _key(text: str, column: str, schema: Mapping[str, ColumnType], where: str) -> Any:
    """A value that stands as a key, and so as text, in the type of its column; NULL: none."""
    declared = schema.get(column)
    if declared is None:
        raise CatalogUnusable(f"{where}: there is no column {column[:40]!r}.")
    listed = {str(value): value for value in declared.values} if isinstance(declared, Enum) else {}
    if text in listed or text == _NULL:
        return listed.get(text)
    words: dict[str, Any] = {"true": True, "false": False}
    try:
        if declared.kind == "integer":
            return int(text)
        if declared.kind == "date":
            return datetime.date.fromisoformat(text)
        if declared.kind == "boolean":
            return words[text.lower()]
    except (ValueError, KeyError):
        raise CatalogUnusable(f"{where}: {text[:40]!r} is no value of {column[:40]!r}.") from None
    return text


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
