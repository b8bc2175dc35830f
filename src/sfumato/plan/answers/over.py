"""Ranks and totals of released groups, with intervals that follow from those of the groups.

Where each of m groups has an interval that fails with probability at most risk/m, all of them hold at once
with probability at least 1 − risk (Bonferroni): then a total lies between the sums of their ends, and a group
is behind those whose intervals lie wholly before its own, and before those whose intervals lie wholly behind.
A group that is NULL by its keys is left out or last; one that may be NULL by noise is covered both ways.

Over all rows the same holds with covering intervals of the groups; rows that limits left out are in one group
each, so a bound on their number moves a total once, and the share of a group by as much as if all were its
own, or all others'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.answers.boxes import Box, Solver, plain
from sfumato.plan.answers.covering import Covering
from sfumato.plan.answers.later import Values
from sfumato.plan.answers.nulls import Nulls, Rows, guards, nulls
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, columns_of
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.questions.over import Over

__all__ = ["Groups", "ends_over", "over_rows", "values_over"]

_CUT = 0.4  # of a risk: for a bound on what was left out; the rest is for the noise


def over_rows(expression: Expression, results: Mapping[str, Values], size: int) -> Values:
    """The expression on every row, also where it names no column."""
    values = evaluate(expression, results or {"": np.zeros(size)})
    return values if len(values) == size else np.ma.MaskedArray(np.broadcast_to(values, (size,)))


@dataclass(slots=True, eq=False)
class Groups:
    """The window functions of a report over the groups that HAVING leaves.

    Attributes:
        windows: Which.
        results: Keys and aggregates of all rows.
        held: The rows that HAVING leaves.
        solver: What intervals of those rows are computed from.
        places: Where the rows that are shown are among them.
        cover: What intervals of them over all rows are computed from.
    """

    windows: tuple[Over, ...]
    results: Mapping[str, Values]
    held: NDArray[np.int64]
    solver: Solver | None = None
    places: NDArray[np.int64] | None = None
    cover: Covering | None = None

    def columns(self, size: int) -> dict[str, Values]:
        """Their values `w0`, … on all rows, NULL on those that HAVING leaves out."""
        columns: dict[str, Values] = {}
        for place, window in enumerate(self.windows):
            values = np.ma.filled(over_rows(window.value, self.results, size).astype(np.float64), np.nan)[
                self.held
            ]
            whole = np.full(size, np.nan)
            whole[self.held] = values_over(window, values, self._labels(window, size))
            columns[f"w{place}"] = np.ma.MaskedArray(np.nan_to_num(whole), mask=np.isnan(whole))
        return columns

    def interval(self, place: int, risk: float) -> Box:
        """Their intervals on the rows that are shown."""
        assert self.solver is not None
        window = self.windows[place]
        share = risk / self._size  # of all groups: those that HAVING leaves are chosen by their noise
        if guards(self.solver, window.value):
            share /= 2  # one half for the values, one for which of them are NULL
        ends, missing = self.solver.interval(window.value, share), nulls(self.solver, window.value, share)
        low, high = ends_over(window, ends, missing, self._labels(window, self._size))
        return low[self.places], high[self.places]

    def solves(self, expression: Expression) -> bool:
        """Whether it is one of them, or the share of a group in its total."""
        return _is_window(expression) or self._share(expression) is not None

    def covering(self, expression: Expression, risk: float) -> Box:
        """The intervals over all rows of what `solves` takes, on the rows that are shown."""
        if (share := self._share(expression)) is not None:
            factor, window = share
            ends = [factor * end for end in self._covering_share(window, risk)]
            low, high = ends if factor >= 0 else reversed(ends)
        else:
            assert isinstance(expression, Column)
            low, high = self._covering(self.windows[int(expression.name[1:])], risk)
        return low[self.places], high[self.places]

    def _covering(self, window: Over, risk: float) -> Box:
        assert self.solver is not None
        assert self.cover is not None
        labels = self._labels(window, self._size)
        unknown = np.zeros(len(labels), bool), np.ones(len(labels), bool)
        open_ = bool(guards(self.solver, window.value))
        missing = unknown if open_ else nulls(self.solver, window.value, 0.0)
        if risk and window.function == "sum" and not open_:
            summed = self.cover.summed(window.value, (1 - _CUT) * risk / self._size, _CUT * risk)
            if summed is not None:
                ends, (takes, adds) = summed
                low, high = ends_over(window, ends, missing, labels)
                return low - takes, high + adds
        ends = self.cover.interval(window.value, risk / self._size)
        return ends_over(window, ends, missing, labels)

    def _covering_share(self, window: Over, risk: float) -> Box:
        """Of numbers that are not below 0: between x/(x + all others) at their ends."""
        assert self.cover is not None
        labels = self._labels(window, self._size)
        summed = None
        if risk:
            summed = self.cover.summed(window.value, (1 - _CUT) * risk / self._size, _CUT * risk)
        if summed is None:
            return np.zeros(len(labels)), np.ones(len(labels))
        (least, most), (takes, adds) = summed
        least, most = np.maximum(least, 0.0), np.maximum(most, 0.0)
        none = np.zeros(len(labels), bool)
        total_low, total_high = ends_over(window, (least, most), (none, none), labels)
        others_low, others_high = np.maximum(total_low - least - takes, 0.0), total_high - most + adds
        least, most = np.maximum(least - takes, 0.0), most + adds
        with np.errstate(all="ignore"):
            low, high = least / (least + others_high), most / (most + others_low)
        return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)

    def _share(self, expression: Expression) -> tuple[float, Over] | None:
        """The factor and the total of x / SUM(x) OVER (…), where no x can be below 0; None: it is none."""
        expression = plain(expression)
        if not isinstance(expression, Call) or expression.function != "divide":
            return None
        above, below = expression.arguments
        if isinstance(below, Call) and below.function == "nullif":
            below = below.arguments[0]
        factor = 1.0
        if isinstance(above, Call) and above.function == "multiply":
            number = next((one for one in above.arguments if isinstance(one, Literal)), None)
            if number is None or not isinstance(number.value, int | float):
                return None
            factor, above = float(number.value), next(one for one in above.arguments if one is not number)
        if not _is_window(below) or self.cover is None or self.solver is None:
            return None
        assert isinstance(below, Column)
        window = self.windows[int(below.name[1:])]
        if window.function != "sum" or plain(window.value) != above or guards(self.solver, window.value):
            return None
        least = self.cover.interval(window.value, 0.0)[0]
        return (factor, window) if self.cover.cut(window.value) and bool((least >= 0).all()) else None

    @property
    def _size(self) -> int:
        """Of how many groups all of this holds at once, those that HAVING left out too."""
        return max(1, len(next(iter(self.results.values()))))

    def names(self, place: int) -> set[str]:
        """The keys and aggregates that one of them looks at."""
        return {name for one in self.windows[place].expressions for name in columns_of(one)}

    def _labels(self, window: Over, size: int) -> list[Any]:
        columns = [over_rows(one, self.results, size)[self.held].tolist() for one in window.partition]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self.held)


def _is_window(expression: Expression) -> bool:
    return isinstance(expression, Column) and expression.name[0] == "w"


def values_over(window: Over, values: Floats, labels: Sequence[Any]) -> Floats:
    """The window function on every group.

    Args:
        window: Which one.
        values: What is summed or ranked by, NaN where it is NULL.
        labels: The partition of each group.
    """
    given = np.empty(len(values))
    for rows in _partitions(labels):
        part = values[rows]
        if window.function == "sum":
            given[rows] = np.nansum(part) if np.isfinite(part).any() else np.nan
            continue
        # NULL comes last, as in ORDER BY.
        order = np.where(np.isnan(part), np.inf, -part if window.descending else part)
        ahead = np.searchsorted(np.sort(order), order)  # how many are before each
        if window.function == "rank":
            given[rows] = 1 + ahead
        elif window.function == "dense_rank":
            given[rows] = 1 + np.unique(order, return_inverse=True)[1].reshape(-1)
        else:
            places = np.empty(len(part))
            places[np.argsort(order, kind="stable")] = np.arange(1, len(part) + 1)
            given[rows] = (
                places if window.function == "row_number" else _tile(places, len(part), window.parts)
            )
    return given


def ends_over(window: Over, ends: Box, missing: Nulls, labels: Sequence[Any]) -> Box:
    """The interval of the window function on every group, where all of these intervals hold.

    Args:
        window: Which one.
        ends: Where the values are that are not NULL; NaN where nothing is known.
        missing: Which of them are surely NULL, and which may be.
        labels: The partition of each group.
    """
    size = len(labels)
    gone, perhaps = missing
    bottom, top = (np.broadcast_to(end, (size,)) for end in ends)
    unknown = np.isnan(bottom) | np.isnan(top)
    bottom, top = np.where(unknown, -np.inf, bottom), np.where(unknown, np.inf, top)
    low, high = np.empty(size), np.empty(size)
    for rows in _partitions(labels):
        least, most = bottom[rows], top[rows]
        if window.function == "sum":
            low[rows], high[rows] = _total(least, most, gone[rows], perhaps[rows])
            continue
        first, last = (-most, -least) if window.descending else (least, most)
        # NULL comes last, as in ORDER BY.
        first, last = np.where(gone[rows], np.inf, first), np.where(perhaps[rows], np.inf, last)
        ahead = np.searchsorted(np.sort(last), first)  # how many end before each begins
        behind = len(rows) - np.searchsorted(np.sort(first), last, side="right")  # and begin after it ends
        lower: Floats = (1 + ahead).astype(np.float64)
        upper: Floats = (len(rows) - behind).astype(np.float64)
        if window.function == "dense_rank":
            lower = np.where(ahead > 0, 2.0, 1.0)
        if window.function == "ntile":
            lower, upper = (_tile(place, len(rows), window.parts) for place in (lower, upper))
        low[rows], high[rows] = lower, upper
    return low, high


def _total(least: Floats, most: Floats, gone: Rows, perhaps: Rows) -> tuple[float, float]:
    """Where the sum is: what may be NULL may add nothing, and so may what could be beyond floats."""
    if gone.all():
        return np.nan, np.nan
    perhaps = perhaps | np.isinf(least) | np.isinf(most)
    low = np.where(perhaps, np.minimum(least, 0.0), least)[~gone].sum()
    high = np.where(perhaps, np.maximum(most, 0.0), most)[~gone].sum()
    return float(low), float(high)


def _partitions(labels: Sequence[Any]) -> list[NDArray[np.int64]]:
    places: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        places.setdefault(label, []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in places.values()]


def _tile(places: Floats, count: int, parts: int) -> Floats:
    """Which of so many parts a place is in: they are even, and the first ones have what is over."""
    size, over = divmod(count, parts)
    large = over * (size + 1)
    within = np.ceil(places / (size + 1))
    return np.where(places <= large, within, over + np.ceil((places - large) / max(size, 1)))
