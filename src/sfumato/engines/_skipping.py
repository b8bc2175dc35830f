"""Reads of some days that skip parts of files without them, and notice where a row was skipped."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines._days import READ, Days, counts_of_days, of_days
from sfumato.engines._tables import Table
from sfumato.engines.sources import Stamp, are_settled
from sfumato.errors import Cancelled, EngineFailed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Skipping"]

_MOST = 100_000  # days of a table whose rows are counted
_PART = 4  # several days that have more than this part of all rows are read with the others
_EPOCH = datetime.date(1970, 1, 1)

Fetch: TypeAlias = "Callable[[exp.Expression], pa.Table]"


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a column of days in one state of its files.

    Attributes:
        state: The state.
        counts: How many rows each day has, counted from 1970-01-01; None: that was not read yet.
        trusted: Whether no read in this state has skipped a row that it should not.
    """

    state: tuple[Stamp, ...]
    counts: dict[int, int] | None = None
    trusted: bool = True


class Skipping:
    """Reads of some days of tables in Parquet files.

    The first read in a state of the files is a whole one. The second counts the rows of all days, reading the
    whole column. From then on a read of some days skips row groups that cannot have them by the footers of
    files, and says how many rows it has read.

    Privacy:
        Claim: what a read gives is what the whole read of the same files gives. Rows that are read are some
        of those of the days, since the condition is tested on each of them; if they are as many as the days
        have by the count of all rows, they are all of them. Otherwise a footer was wrong: there is no result,
        and the statement is read whole. So footers and counts decide how long a read takes, and nothing else.
        What is counted stays in memory. Files that were written since, or just now, have another state, or
        none that is remembered (`sources.are_settled`).
    """

    def __init__(self, whole: Fetch, skipping: Callable[[], tuple[Fetch, Callable[[], None]]]) -> None:
        """Nothing is read yet.

        Args:
            whole: Reads a statement; nothing but a row decides whether that counts.
            skipping: Makes what reads a statement and may skip by conditions on single columns, and what
                closes it.
        """
        self._whole, self._skipping = whole, skipping
        self._made: tuple[Fetch, Callable[[], None]] | None = None
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], _Known] = {}

    def fetch(self, statement: exp.Expression, asked: Days, table: Table) -> pa.Table | None:
        """The result of a statement about some days; None: it has to be read whole.

        Raises:
            Cancelled: on Ctrl-C.
        """
        state = table.stamps()
        counts = self._counts(asked, table, state)
        if counts is None:
            return None
        expected = _within(counts, asked)
        if expected is None:
            return None
        result = self._read(of_days(statement, asked, table.shown))
        if result is None or not _has_read(result, expected) or table.stamps() != state:
            self._note(asked, _Known(state, trusted=False))
            return None
        return result.drop_columns([READ])

    def close(self) -> None:
        """Give back what reads; a second call does nothing."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made[1]()

    def _note(self, asked: Days, known: _Known) -> None:
        with self._lock:
            self._known[asked.table, asked.column] = known

    def _counts(self, asked: Days, table: Table, state: tuple[Stamp, ...]) -> dict[int, int] | None:
        """How many rows each day has, where that is known or worth knowing."""
        with self._lock:
            known = self._known.get((asked.table, asked.column))
        if known is None or known.state != state:
            self._note(asked, _Known(state))
            return None
        if not known.trusted or known.counts is not None:
            return known.counts
        if None in state or not are_settled(state):
            return None
        counts = _by_day(_tried(self._whole, counts_of_days(asked)))
        self._note(asked, _Known(state, counts, trusted=counts is not None))
        return counts if table.stamps() == state else None

    def _read(self, statement: exp.Select) -> pa.Table | None:
        with self._lock:
            self._made = self._made or self._skipping()
            fetch, _ = self._made
        return _tried(fetch, statement)


def _tried(fetch: Fetch, statement: exp.Select) -> pa.Table | None:
    """What a statement gives; None where it cannot be finished."""
    try:
        return fetch(statement)
    except Cancelled:
        raise
    except EngineFailed:
        return None


def _by_day(answer: pa.Table | None) -> dict[int, int] | None:
    """Rows of each day; None where there are too many days, or they could not be counted."""
    if answer is None or answer.num_rows > _MOST:
        return None
    held = answer.filter(answer["d"].is_valid())
    days = held["d"].cast("int32").to_pylist()
    return dict(zip(days, held["n"].to_pylist(), strict=True))


def _within(counts: dict[int, int], asked: Days) -> int | None:
    """How many rows some days have; None where these are so many that all rows are read as quickly."""
    first, last = ((day - _EPOCH).days for day in (asked.first, asked.last))
    if first == last:
        return counts.get(first, 0)
    held = sum(many for day, many in counts.items() if first <= day <= last)
    return held if held * _PART <= sum(counts.values()) else None


def _has_read(result: pa.Table, expected: int) -> bool:
    """Whether as many rows were read as there are; an empty result does not say."""
    if not result.num_rows:
        return not expected
    return bool((np.asarray(result[READ].to_numpy()) == expected).all())
