"""Classes of equal quasi-identifiers, and how the values of a column are spread over them.

A table in a file is grouped by the engine, in one statement; a frame in memory is coded and counted where it
is, which takes less time than to hand it over. Either way the same few lines turn counts into figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.anonymity._keys import Codes, Key, key_of, occurring, ranks_of
from sfumato.anonymity.tables import Rows, checked, columns_of, exactly, opened
from sfumato.engines.base import Source
from sfumato.engines.frames import Frame
from sfumato.engines.sources import locate

__all__ = ["Classes", "Spread", "classes_of"]

_ORDERED = frozenset({"integer", "float", "date", "timestamp"})


@dataclass(frozen=True, slots=True)
class Spread:
    """The counts of the values of one column in each class, those of a class side by side.

    Attributes:
        starts: Where each class begins in `counts`; a last entry says where the last one ends.
        counts: How often a value occurs in its class, from 1 on.
        values: Which value it is: a number from 0 on, rising within a class, in the order of the values. A
            missing value comes before all others, NaN after them.
        totals: How often each value occurs in the whole table.
        ordered: Whether the order means something: for numbers, days and times.
    """

    starts: Codes
    counts: Codes
    values: Codes
    totals: Codes
    ordered: bool

    @property
    def distinct(self) -> Codes:
        """The number of different values in each class."""
        return np.diff(self.starts)

    @property
    def sizes(self) -> Codes:
        """The number of rows of each class."""
        sizes: Codes = np.add.reduceat(self.counts, self.starts[:-1])
        return sizes

    @property
    def owners(self) -> Codes:
        """The class of each count."""
        return np.repeat(np.arange(len(self.starts) - 1), self.distinct)


class Classes(Protocol):
    """The rows of a table, grouped by its quasi-identifiers."""

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers, under their names in the source."""

    @property
    def others(self) -> tuple[str, ...]:
        """The other columns asked for."""

    def sizes(self) -> Codes:
        """The number of rows of each class.

        Raises:
            InvalidParameter: if there is no row.
        """

    def spread(self, name: str) -> Spread:
        """How the values of one of the others are spread over the classes.

        Raises:
            InvalidParameter: if there is no row.
        """


@contextmanager
def classes_of(table: Source, quasi: Sequence[str], others: Sequence[str] = ()) -> Iterator[Classes]:
    """The classes of a table.

    Raises:
        InvalidParameter: for a column that the source does not have, or has twice.
        SourceUnusable: if the source cannot be opened.
    """
    located = locate(exactly(table))
    held = _held(located, quasi, others) if isinstance(located, Frame) else None
    if held is not None:
        yield held
        return
    with opened(table, [*quasi, *others]) as rows:
        names = tuple(rows.kinds)
        yield _Read(rows, names[: len(quasi)], names[len(quasi) :])


@dataclass(frozen=True, slots=True)
class _Held:
    """A frame in memory, coded."""

    quasi: tuple[str, ...]
    shown: str
    key: Key
    columns: Mapping[str, tuple[Key, bool]]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def sizes(self) -> Codes:
        checked(len(self.key.codes), self.shown)
        return occurring(self.key)[1]

    def spread(self, name: str) -> Spread:
        checked(len(self.key.codes), self.shown)
        values, ordered = self.columns[name]
        return _spread(self.key, values, None, ordered=ordered)


@dataclass(frozen=True, slots=True)
class _Read:
    """A table that the engine reads and groups."""

    rows: Rows
    quasi: tuple[str, ...]
    others: tuple[str, ...]

    def sizes(self) -> Codes:
        counted = self.rows.fetch(f"SELECT n FROM ({self._counted()}) AS c")
        checked(counted.num_rows, self.rows.shown)
        return _whole(counted.column(0))

    def spread(self, name: str) -> Spread:
        counted = self.rows.fetch(self._counted(name))
        checked(counted.num_rows, self.rows.shown)
        key = key_of([counted.column(i) for i in range(len(self.quasi))])
        values = ranks_of(counted.column("v"))
        assert key is not None  # what is nested was read as text
        assert values is not None
        ordered = self.rows.kinds[name] in _ORDERED
        return _spread(key, values, _whole(counted.column("n")), ordered=ordered)

    def _counted(self, other: str | None = None) -> str:
        given = [f"{self.rows.scalar(name)} AS q{i}" for i, name in enumerate(self.quasi)]
        given += [] if other is None else [f"{self.rows.scalar(other)} AS v"]
        return f"SELECT {', '.join(given)}, count(*) AS n FROM {self.rows.relation} GROUP BY ALL"


def _spread(key: Key, values: Key, weights: Codes | None, *, ordered: bool) -> Spread:
    """Count each value in each class; rows weigh 1 each unless they have weights."""
    both = key.beside(values.codes, values.size)
    pairs, counts = occurring(both, weights)
    classes, places = np.divmod(pairs, values.size)
    begins = np.flatnonzero(np.append(True, classes[1:] != classes[:-1]))
    totals = np.bincount(places, weights=counts, minlength=values.size).astype(np.int64)
    if not totals.all():  # a dictionary may list values that no row has
        places, totals = (np.cumsum(totals > 0) - 1)[places], totals[totals > 0]
    return Spread(np.append(begins, len(pairs)), counts, places, totals, ordered)


def _held(frame: Frame, quasi: Sequence[str], others: Sequence[str]) -> _Held | None:
    """The frame with its columns coded; None if it must be read, or cannot be coded."""
    import pyarrow as pa

    places = columns_of(frame.names, [*quasi, *others], frame.shown)
    try:
        table, at = frame.pick(places)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # the engine says which column
        return None
    if not isinstance(table, pa.Table):
        return None
    columns = [table.column(i) for i in at]
    key = key_of(columns[: len(quasi)])
    if key is None:
        return None
    ranked: dict[str, tuple[Key, bool]] = {}
    for place, column in zip(places[len(quasi) :], columns[len(quasi) :], strict=True):
        ranks = ranks_of(column)
        if ranks is None:
            return None
        ranked[frame.names[place]] = ranks, _is_ordered(column.type)
    return _Held(tuple(frame.names[i] for i in places[: len(quasi)]), frame.shown, key, ranked)


def _is_ordered(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )


def _whole(column: Any) -> Codes:
    codes: Codes = column.to_numpy().astype(np.int64)
    return codes
