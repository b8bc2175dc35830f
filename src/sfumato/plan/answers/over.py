"""Ranks and totals of released groups, with intervals that follow from those of the groups.

Where each of m groups has an interval that fails with probability at most risk/m, all of them hold at once
with probability at least 1 − risk (Bonferroni): then a total lies between the sums of their ends, and a group
is behind those whose intervals lie wholly before its own, and before those whose intervals lie wholly behind.
A group that is NULL by its keys is left out or last; one that may be NULL by noise is covered both ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.answers.boxes import Box, Solver
from sfumato.plan.answers.nulls import Nulls, Rows, guards, nulls
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import Expression, columns_of
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.questions.over import Over

__all__ = ["Groups", "ends_over", "over_rows", "values_over"]

Values: TypeAlias = "np.ma.MaskedArray[Any, Any]"


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
    """

    windows: tuple[Over, ...]
    results: Mapping[str, Values]
    held: NDArray[np.int64]
    solver: Solver | None = None
    places: NDArray[np.int64] | None = None

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
        window, size = self.windows[place], len(next(iter(self.results.values())))
        share = risk / max(1, size)  # of all groups: those that HAVING leaves are chosen by their noise
        if guards(self.solver, window.value):
            share /= 2  # one half for the values, one for which of them are NULL
        ends, missing = self.solver.interval(window.value, share), nulls(self.solver, window.value, share)
        low, high = ends_over(window, ends, missing, self._labels(window, size))
        return low[self.places], high[self.places]

    def names(self, place: int) -> set[str]:
        """The keys and aggregates that one of them looks at."""
        return {name for one in self.windows[place].expressions for name in columns_of(one)}

    def _labels(self, window: Over, size: int) -> list[Any]:
        columns = [over_rows(one, self.results, size)[self.held].tolist() for one in window.partition]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self.held)


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
        ahead = (order[None, :] < order[:, None]).sum(axis=1)
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
        ahead = (last[None, :] < first[:, None]).sum(axis=1)
        behind = (first[None, :] > last[:, None]).sum(axis=1)
        lower, upper = 1.0 + ahead, float(len(rows)) - behind
        if window.function == "dense_rank":
            lower = 1.0 + (ahead > 0)
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
