"""`Yardstick`: the cells in which tables are compared, the same for every fit; and tables in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.ranges import value_at
from sfumato.render import key
from sfumato.synth.columns.coarse import WIDE, Coarse, as_it_is, coarse
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales

__all__ = ["Codes", "Group", "Yardstick", "fine_codes", "groups_of"]

Codes: TypeAlias = NDArray[np.int64]

_BINS = 4, 32  # of a number, at least and at most
_ROWS_EACH = 25  # that a pair of bins has on average
_GROUPS = 5  # bins of a number that groups are made of
_MOST_GROUPS = 24  # of one column


def fine_codes(table: pa.Table, columns: Sequence[Fine]) -> tuple[list[Codes], NDArray[np.bool_]]:
    """The fine cells of a table, column by column, and which of its rows a fit would read.

    A row without a value that is declared to be there is left out, as it is by a fit.
    """
    found, is_read = [], np.ones(table.num_rows, bool)
    for column in columns:
        values = table.column(column.name)
        if not column.nullable:
            listed = None if column.values is None or column.folds else set(column.values)
            is_read &= np.array(
                [value is not None and (listed is None or value in listed) for value in values.to_pylist()],
                bool,
            )
        found.append(np.asarray(column.places(values), np.int64))
    return [codes[is_read] for codes in found], is_read


@dataclass(frozen=True, slots=True, eq=False)
class Yardstick:
    """Which cell of the comparison each fine cell is in.

    They are made from the real rows, not from the noisy counts of a fit: so a fit with much noise is not
    measured in fewer cells, and reports of several fits can be laid side by side.

    Attributes:
        columns: The columns.
        cuts: Their cells.
    """

    columns: tuple[Fine, ...]
    cuts: tuple[Coarse, ...]

    @classmethod
    def of(cls, columns: Sequence[Fine], codes: Sequence[Codes], bins: int | None = None) -> Yardstick:
        """Cells of about equally many rows for numbers, one for each value for the others."""
        rows = len(codes[0])
        most = bins or min(max(math.isqrt(rows // _ROWS_EACH), _BINS[0]), _BINS[1])
        cuts = [_cut(column, own, most) for column, own in zip(columns, codes, strict=True)]
        return cls(tuple(columns), tuple(cuts))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(cut.size for cut in self.cuts)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(column.name for column in self.columns)

    def codes(self, codes: Sequence[Codes]) -> list[Codes]:
        """The cells of fine ones, column by column."""
        return [cut.codes(own).astype(np.int64) for cut, own in zip(self.cuts, codes, strict=True)]


def _cut(column: Fine, codes: Codes, most: int) -> Coarse:
    wide = most + column.nullable if column.is_ordered else WIDE
    if column.size <= wide:
        return as_it_is(column)
    counts = np.bincount(codes, minlength=column.size).astype(np.float64)
    return coarse(column, Scales(column.known, (counts,), 0.0), wide)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Some of the rows of several tables, by the values of one column.

    Attributes:
        name: Such as `sex=F`, or `age=17 to 28`.
        column: The place of the column.
        parts: Of each table, whether each row is in it.
    """

    name: str
    column: int
    parts: tuple[NDArray[np.bool_], ...]


def groups_of(columns: Sequence[Fine], place: int, tables: Sequence[Sequence[Codes]]) -> list[Group]:
    """The groups of one column that the first table has rows of, the smallest first.

    Of more than 24 values the rare ones are one group.

    Args:
        columns: All columns.
        place: Which one.
        tables: The fine cells of each table, column by column.
    """
    column, own = columns[place], tables[0][place]
    exact = Scales(column.known, (np.bincount(own, minlength=column.size).astype(np.float64),), 0.0)
    if column.is_ordered and column.size > _GROUPS + column.nullable:
        cut = coarse(column, exact, _GROUPS + column.nullable)
    else:
        cut = as_it_is(column)
    if cut.size > _MOST_GROUPS:
        cut = coarse(column, exact, _MOST_GROUPS)
    cells = np.bincount(cut.codes(own), minlength=cut.size)
    return [
        Group(
            f"{column.name}={_label(column, np.flatnonzero(cut.place == cell))}",
            place,
            tuple(np.asarray(cut.codes(table[place]) == cell) for table in tables),
        )
        for cell in np.argsort(cells, kind="stable")
        if cells[cell]
    ]


def _label(column: Fine, cells: Codes) -> str:
    """What the values of a group are, in words."""
    first, last = int(cells[0]), int(cells[-1])
    if first >= column.known:
        return "(none)"
    if column.values is not None:
        return key(column.values[first]) if len(cells) == 1 else "(others)"
    ends = [_edge(column, at) for at in (first, min(last, column.known - 1))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _edge(column: Fine, cell: int) -> str:
    span = float(column.upper - column.lower) / max(column.steps, 1)
    number = float(column.lower) + cell * span
    if column.kind in ("date", "timestamp", "time"):
        return str(value_at(round(number), column.kind))
    return key(round(number)) if column.kind == "integer" else key(float(f"{number:.3g}"))
