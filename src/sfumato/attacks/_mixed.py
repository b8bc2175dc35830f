"""Tables of numbers and categories beside each other, as arrays, and whose rows are near whose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity.codes import Codes
from sfumato.attacks.matching import together_coded
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Column", "Floats", "distances", "mixed", "nearest"]

Floats = npt.NDArray[np.float64]
_BLOCK = 2_000_000  # distances that are held at once


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of several tables.

    Attributes:
        name: Its name.
        ordered: Whether its values lie on a line: numbers, days and times do.
        parts: For each table its values: places on the line, NaN for what is missing, or numbers of
            categories.
    """

    name: str
    ordered: bool
    parts: tuple[Floats, ...]

    def extent(self, table: int) -> float:
        """How far the values of a table reach; 1 where there is nothing to measure."""
        known = self.parts[table][np.isfinite(self.parts[table])]
        extent = float(np.ptp(known)) if len(known) else 0.0
        return extent or 1.0

    def take(self, rows: Sequence[Codes | None]) -> Column:
        """Some rows of each table; None for all."""
        kept = [part if some is None else part[some] for part, some in zip(self.parts, rows, strict=True)]
        return Column(self.name, self.ordered, tuple(kept))


def mixed(tables: Sequence[pa.Table], names: Sequence[str]) -> list[Column]:
    """These columns of all tables.

    Raises:
        InvalidParameter: if one holds nested values, or values of different kinds in different tables.
    """
    columns = []
    for name in names:
        own = [table.column(name) for table in tables]
        kinds = sorted({_kind(column.type) for column in own if column.null_count < len(column)})
        if len(kinds) > 1:
            # Else all would be compared as text, and no number would be near another.
            raise InvalidParameter(
                f'Column "{name[:100]}" holds {kinds[0]} in one table and {kinds[1]} in another; one cell '
                "that is not a number makes a column of a CSV file text: mend it first."
            )
        coded, codes = together_coded(own, name)
        ordered = coded.kind in ("number", "date", "time")
        places = np.arange(len(coded.values), dtype=np.float64)
        if ordered:
            places = np.full(len(coded.values), np.nan)
            places[: coded.proper] = coded.line
        columns.append(Column(name, ordered, tuple(places[code] for code in codes)))
    return columns


def _kind(type_: Any) -> str:
    """What values of a type are, in words."""
    import pyarrow as pa

    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    if pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_decimal(plain):
        return "numbers"
    if pa.types.is_temporal(plain):
        return "days" if pa.types.is_date(plain) else "times"
    return "truth values" if pa.types.is_boolean(plain) else "text"


def nearest(columns: Sequence[Column], of: int, among: int, count: int = 1) -> Codes:
    """For each row of one table the nearest rows of another, the nearest first (see `distances`).

    Of rows that are equally near the first is taken.
    """
    rows, others = len(columns[0].parts[of]), len(columns[0].parts[among])
    places = np.empty((rows, min(count, others)), dtype=np.int64)
    for some, apart in distances(columns, of, among):
        if places.shape[1] == 1:
            places[some, 0] = apart.argmin(axis=1)
        else:
            places[some] = np.argsort(apart, axis=1, kind="stable")[:, : places.shape[1]]
    return places


def distances(columns: Sequence[Column], of: int, among: int) -> Iterator[tuple[slice, Floats]]:
    """Some rows of one table at a time, and how far each of them is from every row of another.

    The distance is Gower's (1971): for a number its difference over the extent of the other table, at most
    1, for a category 0 or 1, for a value that only one of them has 1.
    """
    rows, others = len(columns[0].parts[of]), len(columns[0].parts[among])
    step = max(1, _BLOCK // others)
    extents = [column.extent(among) for column in columns]
    gaps = [any(np.isnan(column.parts[part]).any() for part in (of, among)) for column in columns]
    for start in range(0, rows, step):
        apart = np.zeros((min(step, rows - start), others))
        for column, extent, has_gaps in zip(columns, extents, gaps, strict=True):
            mine, theirs = column.parts[of][start : start + step, None], column.parts[among][None, :]
            if not column.ordered:
                apart += mine != theirs
                continue
            gap = mine - theirs
            np.abs(gap, out=gap)
            gap /= extent
            np.minimum(gap, 1.0, out=gap)
            if has_gaps:
                gap = np.where(np.isnan(mine) & np.isnan(theirs), 0.0, np.where(np.isnan(gap), 1.0, gap))
            apart += gap
        yield slice(start, start + len(apart)), apart
