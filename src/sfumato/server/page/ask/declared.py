"""What may be asked, in words: tables, whose privacy they protect, and what their columns may hold."""

from __future__ import annotations

from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.names import in_sql
from sfumato.render import key
from sfumato.server.house import House

__all__ = ["ColumnShown", "TableShown", "tables_of"]

_MOST_VALUES = 12
_WORDS = {
    "int": "whole number",
    "float": "number",
    "enum": "one of a list",
    "bool": "true or false",
    "date": "day",
    "timestamp": "point in time",
    "time": "time of day",
    "text": "text",
}
_OPEN = {"int": "no bounds: can be counted, not summed", "float": "no bounds: can be counted, not summed"}


@dataclass(frozen=True, slots=True)
class ColumnShown:
    """A column: its name, as SQL writes it, its type and what it may hold, in words."""

    name: str
    written: str
    kind: str
    holds: str


@dataclass(frozen=True, slots=True)
class TableShown:
    """A table: its name, as SQL writes it, whose privacy it protects, and its columns.

    Attributes:
        name: As declared.
        written: As SQL writes it.
        dataset: Whose budget pays; empty for what is public.
        unit: Whose privacy is protected, in a sentence.
        size: About how many units it has, where that is public; else empty.
        columns: In their order.
    """

    name: str
    written: str
    dataset: str
    unit: str
    size: str
    columns: tuple[ColumnShown, ...]


def tables_of(house: House) -> list[TableShown]:
    """All that may be asked, what is public last."""
    found: list[TableShown] = []
    public: dict[str, TableShown] = {}
    for dataset in house.datasets:
        declared = house.declared(dataset) or {"tables": [], "public": []}
        found += [_table(table, dataset) for table in declared["tables"]]
        public |= {table["table"]: _table(table, "") for table in declared["public"]}
    return [*found, *public.values()]


def _table(declared: dict[str, Any], dataset: str) -> TableShown:
    unit, size = declared.get("unit"), declared.get("size")
    return TableShown(
        name=declared["table"],
        written=in_sql(declared["table"]),
        dataset=dataset,
        unit="Public: about nobody, free to join." if unit is None else _unit(unit),
        size="" if size is None else f"about {size:,}",
        columns=tuple(_column(name, kind) for name, kind in declared["schema"].items()),
    )


def _unit(unit: dict[str, Any]) -> str:
    """Whose privacy is protected, and how much of one counts."""
    column, window = unit.get("column"), unit.get("window")
    if column is None:
        return "Protects each row by itself."
    whose = f"all rows of one {column}"
    if unit.get("table"):
        whose = f"all rows that lead to one owner in {unit['table']}"
    if window is not None:
        whose += f" within one {window}" if isinstance(window, str) else f" within {window} days"
    groups, rows = unit.get("max_groups", 1), unit.get("max_rows", 1)
    many = f"in at most {groups} group{'s' * (groups != 1)}"
    if isinstance(rows, int):
        many += f" and as at most {rows} row{'s' * (rows != 1)}"
    return f"Protects {whose}, counted {many}."


def _column(name: str, declared: dict[str, Any]) -> ColumnShown:
    kind = declared["type"]
    return ColumnShown(name, in_sql(name), _WORDS.get(kind, kind), _holds(declared))


def _holds(declared: dict[str, Any]) -> str:
    """What a column may hold, in a few words."""
    if "values" in declared:
        values = [key(value) for value in declared["values"]]
        more = len(values) - _MOST_VALUES
        return ", ".join(values[:_MOST_VALUES]) + (f" and {more:,} more" if more > 0 else "")
    low, high = (
        declared.get(one, declared.get(other)) for one, other in (("lower", "start"), ("upper", "end"))
    )
    if low is not None and high is not None:
        return f"{_bound(low)} to {_bound(high)}"
    return _OPEN.get(declared["type"], "")


def _bound(value: object) -> str:
    return value if isinstance(value, str) else key(value)
