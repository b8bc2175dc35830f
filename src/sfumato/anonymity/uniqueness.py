"""Which columns together single people out: uniqueness by column set, in one statement."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.anonymity._shares import percent
from sfumato.anonymity._spread import classes_of
from sfumato.anonymity.tables import checked, names_given, opened
from sfumato.engines.base import Source
from sfumato.errors import InvalidParameter
from sfumato.render import text_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnSet", "Uniqueness", "classes", "uniqueness"]

_MOST = 1024
_WIDEST = 63  # columns; the engine marks those of a set by the bits of a whole number


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """How many rows a set of columns singles out.

    Attributes:
        columns: Which ones.
        classes: How many different combinations of values there are.
        k: The number of rows of the rarest combination.
        unique: The share of rows whose combination nobody else has.
        crowd: How many rows, on average over rows, share a row's combination, itself among them.
    """

    columns: tuple[str, ...]
    classes: int
    k: int
    unique: float
    crowd: float

    def __str__(self) -> str:
        """How much of a row these columns give away."""
        alone = f"{self.unique:.1%} of the rows are alone with theirs"
        return f"{', '.join(self.columns)}: {self.classes:,} combinations, {alone}, the rarest has {self.k:,}"


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """Every set of the columns asked about, smaller sets first, and the most telling first among equals.

    Steward-only: these are exact figures of the rows.
    """

    rows: int
    sets: tuple[ColumnSet, ...]

    def __getitem__(self, columns: str | Sequence[str]) -> ColumnSet:
        """The set of exactly these columns, in any order."""
        wanted = frozenset([columns] if isinstance(columns, str) else columns)
        for column_set in self.sets:
            if frozenset(column_set.columns) == wanted:
                return column_set
        raise InvalidParameter("That set of columns was not asked about.")

    def telling(self, share: float = 0.5) -> tuple[ColumnSet, ...]:
        """The sets that single out at least this share of the rows, while none of their parts does.

        Raises:
            InvalidParameter: if it is not a share.
        """
        if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 < share <= 1:
            raise InvalidParameter("share must be above 0 and at most 1.")
        kept: list[ColumnSet] = []
        for column_set in self.sets:
            covered = any(set(part.columns) < set(column_set.columns) for part in kept)
            if column_set.unique >= share and not covered:
                kept.append(column_set)
        return tuple(kept)

    @property
    def table(self) -> pa.Table:
        """A row a set."""
        import pyarrow as pa

        return pa.table(
            {
                "columns": [", ".join(column_set.columns) for column_set in self.sets],
                "classes": [column_set.classes for column_set in self.sets],
                "k": [column_set.k for column_set in self.sets],
                "unique": [column_set.unique for column_set in self.sets],
                "crowd": [column_set.crowd for column_set in self.sets],
            }
        )

    def __str__(self) -> str:
        said = text_table(
            {
                "columns": [", ".join(column_set.columns) for column_set in self.sets],
                "classes": [f"{column_set.classes:,}" for column_set in self.sets],
                "k": [f"{column_set.k:,}" for column_set in self.sets],
                "unique": [percent(column_set.unique) for column_set in self.sets],
                "crowd": [f"{column_set.crowd:,.1f}" for column_set in self.sets],
            },
            width=80,
        )
        return f"{said}\nExact figures of the rows: for the steward's eyes."

    def to_dict(self) -> list[dict[str, object]]:
        """The sets in plain types."""
        return [
            {
                "columns": list(column_set.columns),
                "classes": column_set.classes,
                "k": column_set.k,
                "unique": column_set.unique,
                "crowd": column_set.crowd,
            }
            for column_set in self.sets
        ]


def uniqueness(table: Source, columns: Sequence[str], *, largest: int | None = None) -> Uniqueness:
    """How many rows each set of these columns singles out.

    Args:
        table: A path, or an Arrow, pandas or Polars frame.
        columns: Whose sets to look at: what an outsider may know.
        largest: How many columns a set has at most; by default all sets are looked at.

    Raises:
        InvalidParameter: for a column that is not there, more than 1,024 sets, or no rows.
        SourceUnusable: if the table cannot be read.
    """
    names = names_given(columns, "columns")
    sets = _sets(len(names), largest)
    with opened(table, names) as rows:
        held = list(rows.kinds)
        given = ", ".join(f"{rows.scalar(column)} AS q{i}" for i, column in enumerate(held))
        short = ", ".join(f"q{i}" for i in range(len(held)))
        listed = ", ".join("(" + ", ".join(f"q{i}" for i in places) + ")" for places in sets)
        counted = (
            f"SELECT grouping({short}) AS g, count(*) AS n "
            f"FROM (SELECT {given} FROM {rows.relation}) AS t GROUP BY GROUPING SETS ({listed})"
        )
        counts = rows.fetch(
            "SELECT g, count(*) AS classes, sum(n) AS total, min(n) AS k, sum(n * n::DOUBLE) AS squares, "
            f"count(*) FILTER (WHERE n = 1) AS alone FROM ({counted}) AS c GROUP BY g"
        ).to_pylist()
        total = checked(int(counts[0]["total"]) if counts else 0, rows.shown)
    by_code = {int(row["g"]): row for row in counts}
    column_sets = []
    for places in sets:
        # grouping() has a bit for each column, the first one highest, set where the column is left out.
        code = sum(1 << (len(held) - 1 - i) for i in range(len(held)) if i not in places)
        row = by_code[code]
        column_sets.append(
            ColumnSet(
                tuple(held[i] for i in places),
                int(row["classes"]),
                int(row["k"]),
                int(row["alone"]) / total,
                float(row["squares"]) / total,
            )
        )
    column_sets.sort(
        key=lambda column_set: (
            len(column_set.columns),
            -column_set.unique,
            column_set.crowd,
            column_set.columns,
        )
    )
    return Uniqueness(total, tuple(column_sets))


def classes(table: Source, quasi: Sequence[str]) -> pa.Table:
    """How many classes there are of each size: columns `size`, `classes` and `rows`, smallest size first.

    Steward-only: exact figures of the rows, though none of their values.

    Raises:
        InvalidParameter: for a column that is not there, or no rows.
        SourceUnusable: if the table cannot be read.
    """
    names = names_given(quasi, "quasi")
    import pyarrow as pa

    if not names:
        raise InvalidParameter("quasi must name at least one column.")
    with classes_of(table, names) as grouped:
        sizes = grouped.sizes()
    size, count = np.unique(sizes, return_counts=True)
    return pa.table({"size": size, "classes": count, "rows": size * count})


def _sets(count: int, largest: int | None) -> list[tuple[int, ...]]:
    if not count:
        raise InvalidParameter("columns must name at least one column.")
    if count > _WIDEST:
        raise InvalidParameter(f"Sets are counted of at most {_WIDEST} columns; name fewer.")
    if largest is not None and (type(largest) is not int or largest < 1):
        raise InvalidParameter("largest must be a whole number from 1 on, or None.")
    sets: list[tuple[int, ...]] = []
    for size in range(1, min(count, largest or count) + 1):
        for places in combinations(range(count), size):
            sets.append(places)
            if len(sets) > _MOST:
                raise InvalidParameter(
                    f"These columns have more than {_MOST:,} sets; name fewer, or give a small largest=."
                )
    return sets
