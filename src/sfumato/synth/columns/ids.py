"""`Id`: a column that only names rows; it is never read, and new names are made for drawn rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.session.rows_wanted import RowsWanted

__all__ = ["Id", "ids_of", "with_ids"]


class Id(NamedTuple):
    """A column whose values name rows.

    Attributes:
        name: Of the column.
        kind: Of its values.
        place: Where it stands among the columns of a drawn table, without the one that says whose a row is.

    Privacy:
        Nothing of the table is in it: it is no column of the rows that are read, and the new names are 1, 2,
        3 and so on.
    """

    name: str
    kind: Literal["integer", "text"]
    place: int


def ids_of(wanted: RowsWanted, names: Sequence[str], given: Any) -> tuple[list[str], tuple[Id, ...]]:
    """The columns to model, and those whose values are made anew.

    Args:
        wanted: The rows.
        names: All columns of the table that is drawn.
        given: The names of those that name rows.

    Raises:
        InvalidParameter: for a column that is no text or whole number, or if no other is left.
        QueryRefused: if there is no such column.
    """
    listed = [given] if isinstance(given, str) else list(given or ())
    if not listed:
        return list(names), ()
    found = [wanted.column(name) for name in dict.fromkeys(listed)]
    every = [*names, *(column.name for column in found if column.name not in names)]
    ids = list[Id]()
    for column in sorted(found, key=lambda column: every.index(column.name)):
        if column.type not in ("integer", "text"):
            raise InvalidParameter(f"ids are texts or whole numbers, and {column.name[:60]!r} is neither.")
        kind: Literal["integer", "text"] = "text" if column.type == "text" else "integer"
        ids.append(Id(column.name, kind, every.index(column.name)))
    modelled = [name for name in every if name not in {one.name for one in ids}]
    if not modelled:
        raise InvalidParameter("All columns are ids, and nothing is left to model: name fewer in ids=[…].")
    return modelled, tuple(ids)


def with_ids(rows: pa.Table, ids: Sequence[Id], *, after: int = 0) -> pa.Table:
    """A drawn table with new names for its rows, each in its place after so many columns."""
    numbers = pa.array(np.arange(1, rows.num_rows + 1))
    for one in sorted(ids, key=lambda one: one.place):
        values = numbers if one.kind == "integer" else numbers.cast(pa.string())
        rows = rows.add_column(min(after + one.place, rows.num_columns), one.name, values)
    return rows
