"""`Grid`: the public cells of time, and how long somebody was seen as an integer."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.learn._core.declared import Category, Declared, Number, number
from sfumato.learn._core.design import UNIT, whole
from sfumato.learn._core.frames import column_of, names_of
from sfumato.numeric.exact import as_fraction
from sfumato.session.rows_wanted import WantedColumn

__all__ = ["Grid", "grid", "pair", "target_names"]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_TOP = UNIT - 1  # the tick of the horizon; the next one is everything beyond
_MOST_CELLS = 1000


class Grid:
    """Cells of time from 0 to the horizon, and the ticks of durations: 16,383 up to the horizon.

    Somebody is one integer, 2·tick + event. An event is in the cell that ends at its tick or after; who left
    without one is in the cell that begins at its tick or before: at risk in all cells before that one. Who
    was seen to the horizon or beyond it is in none, and counts as a survivor.

    Attributes:
        edges: Where the cells end, the last of them at the horizon.

    Privacy:
        Claim: everybody is in exactly one of `2·len(grid) + 1` cells, which follows from their own row.
    """

    def __init__(self, edges: tuple[Fraction, ...]) -> None:
        self.edges = np.array([float(edge) for edge in edges])
        self._column = Number("the duration", Fraction(0), edges[-1] * Fraction(UNIT, _TOP))
        self.ticks = np.asarray(whole(self.edges, self._column), np.int64)
        if np.any(np.diff(self.ticks, prepend=0) <= 0):
            raise InvalidParameter("Cells of time must be at least 1/8000 of the horizon: make them wider.")

    def __len__(self) -> int:
        return len(self.edges)

    def declared(self, names: tuple[str, ...], public: tuple[WantedColumn, ...]) -> tuple[Declared, ...]:
        """What is declared of the two columns of a session's rows."""
        flag: Declared = Number(names[1], Fraction(0), Fraction(1))
        if public[1].kind == "category":
            if public[1].values is not None and set(public[1].values) != {False, True}:
                raise InvalidParameter(
                    f"The event {names[1][:60]!r} must be a truth value, or a number of 0 or 1."
                )
            flag = Category(names[1], (False, True))
        return Number(names[0], self._column.lower, self._column.upper), flag

    def coded(self, time: Floats, event: NDArray[np.bool_]) -> Integers:
        """Durations and whether they ended with an event, as one integer each."""
        return np.asarray(whole(time, self._column), np.int64) * 2 + event

    def read(self, columns: list[NDArray[Any]], *, flag: bool) -> Integers:
        """The same from columns that a session read: ticks, and codes or multiples of 2**-14."""
        happened = columns[1] == 1 if flag else columns[1] >= UNIT // 2
        return np.asarray(columns[0], np.int64) * 2 + happened

    def cells(self, target: NDArray[Any]) -> Integers:
        """The cell of each: events 0 to J − 1, who left J to 2·J − 1, survivors 2·J."""
        tick, event = np.asarray(target) // 2, np.asarray(target) % 2 == 1
        ended = np.searchsorted(self.ticks, tick, side="left")
        left = np.searchsorted(self.ticks, tick, side="right")
        return np.where(event & (tick <= _TOP), ended, len(self) + np.minimum(left, len(self)))


def grid(times: Any, horizon: Any, bins: Any) -> Grid:
    """The grid of declared edges, or of equal cells up to a horizon.

    Raises:
        InvalidParameter: if neither or both are given, or they are no grid.
    """
    if (times is None) == (horizon is None):
        raise InvalidParameter(
            "Say what the times are: times=[1, 2, 5], where cells end, or horizon=10 and bins=20; "
            "they must not be read off the data."
        )
    if times is None:
        many = bins if isinstance(bins, int | np.integer) and not isinstance(bins, bool) else 0
        if not 1 <= many <= _MOST_CELLS:
            raise InvalidParameter(f"bins must be a whole number from 1 to {_MOST_CELLS}.")
        last = number("times", 0, horizon).upper
        return Grid(_positive(tuple(last * place / int(many) for place in range(1, int(many) + 1))))
    if isinstance(times, str) or np.ndim(times) != 1 or not 1 <= len(times) <= _MOST_CELLS:
        raise InvalidParameter(f"times must be a list of 1 to {_MOST_CELLS} numbers, where cells end.")
    return Grid(_positive(tuple(as_fraction(_plain(edge), "times") for edge in times)))


def _positive(edges: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    if edges[0] <= 0 or any(after <= before for before, after in pairwise(edges)):
        raise InvalidParameter("times must be above 0 and in rising order.")
    return edges


def _plain(edge: Any) -> Any:
    return edge.item() if isinstance(edge, np.generic) else edge


def pair(y: Any, size: int | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Durations and events of arrays: a pair, a structured array, a frame or a matrix of two columns.

    Args:
        y: `(time, event)`; or scikit-survival's array of records, where the boolean field is the event.
        size: How many rows there must be; None: as many as there are.

    Raises:
        InvalidValue: if it is none of these; outside every guarantee.
    """
    time, event = _halves(y)
    try:
        durations, happened = np.asarray(time, np.float64), np.asarray(event, np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("y must be durations and events in numbers: (time, event).") from None
    if durations.ndim != 1 or durations.shape != happened.shape or size not in (None, len(durations)):
        raise InvalidValue("y must have one duration and one event for each row of X.")
    if not np.isfinite(durations).all():
        raise InvalidValue("The durations have NaN or infinity: replace them first.")
    if not np.isin(happened, (0.0, 1.0)).all():
        raise InvalidValue("An event is 0 or 1: whether the duration ended with it.")
    return durations, happened == 1


def _halves(y: Any) -> tuple[Any, Any]:
    names = names_of(y)
    if names is not None and len(names) == 2:
        return column_of(y, names[0]), column_of(y, names[1])
    if isinstance(y, tuple | list) and len(y) == 2:
        return y[0], y[1]
    records: NDArray[Any] = np.asarray(y) if y is not None else np.zeros(0)
    if records.dtype.names is not None and len(records.dtype.names) == 2:
        first, second = records.dtype.names
        flag = first if records.dtype[first].kind == "b" else second
        return records[second if flag == first else first], records[flag]
    if records.ndim == 2 and records.shape[1] == 2:
        return records[:, 0], records[:, 1]
    raise InvalidValue("y must be durations and events: y=(time, event), or two columns in this order.")


def target_names(target: Any) -> tuple[str, ...]:
    """The two columns of a session's rows.

    Raises:
        InvalidParameter: if they are not two different names.
    """
    named = isinstance(target, tuple | list) and len(target) == 2 and len(set(map(str, target))) == 2
    if not named:
        raise InvalidParameter("Name both columns: target=('time', 'event').")
    return tuple(map(str, target))
