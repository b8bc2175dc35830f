"""Which combinations of public keys there are: columns of one public table come together as in its rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from typing import Any

from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.nodes import Key
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.sources import Joined, PerUnit, Public, Source, Windowed
from sfumato.schema import PublicTable

__all__ = ["existing", "existing_among_public", "in_rows"]

_MOST = 100_000  # more groups are refused anyway
_Origin = tuple[tuple[str, ...], PublicTable, str]
_Part = tuple[tuple[int, ...], list[tuple[Any, ...]]]


def existing(keys: Sequence[Key], rows: Rows) -> tuple[tuple[Any, ...], ...] | None:
    """The combinations of listed values that can occur, in the order of the lists; None: all of them.

    Two keys that one join looks up in one public table, by its key, come from one row of it: only the
    combinations that are in the table are groups. Keys of different origin meet in every combination.

    Privacy:
        What is left out follows from the question and a public table. The statement holds rows to what is
        left (`sql.write.members`), also if the table changed since it was read.
    """
    if any(key.values is None for key in keys):
        return None
    together: dict[Any, list[tuple[int, str]]] = {}
    tables: dict[Any, PublicTable] = {}
    for place, key in enumerate(keys):
        name = key.expression.name if isinstance(key.expression, Column) else ""
        origin = _origin(rows.source, name, rows) if name else None
        if origin is not None and origin[1].listed is not None and origin[2] in origin[1].listed[0]:
            together.setdefault(origin[0], []).append((place, origin[2]))
            tables[origin[0]] = origin[1]
    parts = [_part(keys, columns, tables[path]) for path, columns in together.items() if len(columns) > 1]
    if not parts or not all(listed for _, listed in parts):
        return None
    taken = {place for places, _ in parts for place in places}
    parts += [
        ((place,), [(value,) for value in key.values or ()])
        for place, key in enumerate(keys)
        if place not in taken
    ]
    count, most = (math.prod(map(len, lists)) for lists in ([listed for _, listed in parts], _lists(keys)))
    return None if count == most or count > _MOST else in_rows([key.values or () for key in keys], parts)


def existing_among_public(keys: Sequence[Key], rows: Rows) -> tuple[tuple[Any, ...], ...] | None:
    """The same of those keys that have public values, whatever others there are."""
    return existing([key for key in keys if key.values is not None], rows)


def _lists(keys: Sequence[Key]) -> list[tuple[Any, ...]]:
    return [key.values or () for key in keys]


def _origin(source: Source, name: str, rows: Rows, path: tuple[str, ...] = ()) -> _Origin | None:
    """Which column of which public table a column is, and the join that looked it up."""
    if isinstance(source, Joined):
        for side, block in (("left", source.left), ("right", source.right)):
            inner = dict(block.columns).get(name)
            if not isinstance(inner, Column):
                continue
            if isinstance(block.source, Public):
                table = rows.tables[block.source.table]
                shown = dict(block.columns)
                compared = {
                    column.name for _, there in source.on if isinstance(column := shown[there], Column)
                }
                unique = bool(table.key) and set(table.key) <= compared
                return ((*path, side), table, inner.name) if unique else None
            return _origin(block.source, inner.name, rows, (*path, side))
    if isinstance(source, Windowed) and name not in dict(source.columns):
        return _origin(source.source, name, rows, (*path, "rows"))
    if isinstance(source, PerUnit) and isinstance(inner := dict(source.keys).get(name), Column):
        return _origin(source.source, inner.name, rows, (*path, "rows"))
    return None


def _part(keys: Sequence[Key], columns: Sequence[tuple[int, str]], table: PublicTable) -> _Part:
    """The places of some keys, and which of their listed values are together in a row of the table."""
    assert table.listed is not None
    names, combinations = table.listed
    at = [names.index(name) for _, name in columns]
    known = [set(keys[place].values or ()) for place, _ in columns]
    rows = {tuple(row[i] for i in at) for row in combinations}
    kept = [row for row in rows if all(value in values for value, values in zip(row, known, strict=True))]
    return tuple(place for place, _ in columns), kept


def in_rows(
    lists: Sequence[Sequence[Any]], parts: Sequence[tuple[tuple[int, ...], Collection[tuple[Any, ...]]]]
) -> tuple[tuple[Any, ...], ...]:
    """Every combination of one row of each part, in the order of the lists of values.

    Args:
        lists: The values of each key, in order.
        parts: Which keys come together, and in which rows; each key is in one part.
    """
    ranks = [{value: rank for rank, value in enumerate(values)} for values in lists]
    combinations: list[tuple[Any, ...]] = []
    for chosen in itertools.product(*(listed for _, listed in parts)):
        row: list[Any] = [None] * len(lists)
        for (places, _), values in zip(parts, chosen, strict=True):
            for place, value in zip(places, values, strict=True):
                row[place] = value
        combinations.append(tuple(row))
    return tuple(
        sorted(combinations, key=lambda row: [ranks[place][value] for place, value in enumerate(row)])
    )
