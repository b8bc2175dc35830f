"""Mondrian and full-domain generalisation by their definitions: recursion, row by row, with fractions."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from slow_anonymity import plain

Column = Sequence[Any]
Admits = Callable[[list[int]], bool]


def order_of(value: Any) -> tuple[int, Any]:
    """Numbers, days and texts in order, then infinities, NaN and missing values."""
    if value is None:
        return 4, 0
    if isinstance(value, float) and math.isnan(value):
        return 3, 0
    if isinstance(value, float) and math.isinf(value):
        return (1 if value < 0 else 2), 0
    return 0, value.encode() if isinstance(value, str) else value


def place_of(value: Any, column: Column) -> Fraction:
    if isinstance(value, datetime.datetime):
        return Fraction(round((value - datetime.datetime(1970, 1, 1)).total_seconds()))
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal())
    if isinstance(value, bool | str):
        kinds = sorted({order_of(each) for each in column if order_of(each)[0] == 0})
        return Fraction(kinds.index(order_of(value)))
    return Fraction(value)


def width(rows: list[int], column: Column) -> Fraction:
    """How wide some rows are in a column, relative to all of it."""
    kinds = {plain(column[row]) for row in rows}
    if len(kinds) == 1:
        return Fraction(0)
    if any(order_of(column[row])[0] for row in rows):
        return Fraction(1)
    places = [place_of(column[row], column) for row in rows]
    every = [place_of(value, column) for value in column if order_of(value)[0] == 0]
    return (max(places) - min(places)) / (max(every) - min(every))


def mondrian(columns: Sequence[Column], rows: list[int], admits: Admits) -> list[list[int]]:
    """The classes: cut at the median of the widest column that can be cut, below it or just above it."""
    widths = [width(rows, column) for column in columns]
    for place in sorted(range(len(columns)), key=lambda place: (-widths[place], place)):
        if not widths[place]:
            break
        order = [order_of(columns[place][row]) for row in rows]
        middle = sorted(order)[len(rows) // 2]
        below = [row for row, each in zip(rows, order, strict=True) if each < middle]
        through = [row for row, each in zip(rows, order, strict=True) if each <= middle]
        for left in sorted((below, through), key=lambda left: abs(2 * len(left) - len(rows))):
            right = [row for row in rows if row not in left]
            if left and right and admits(left) and admits(right):
                return mondrian(columns, left, admits) + mondrian(columns, right, admits)
    return [rows]


def every_level(hierarchies: Sequence[Any]) -> list[tuple[int, ...]]:
    """Every combination of levels."""
    return list(itertools.product(*(range(len(each.levels)) for each in hierarchies)))


def generalized(
    hierarchies: Sequence[Any], columns: Sequence[Column], levels: Sequence[int], admits: Admits
) -> tuple[list[list[int]], list[int], Fraction]:
    """The classes that are kept, the rows that are not, and what was lost, at one combination of levels."""
    rows = range(len(columns[0]))
    labels, costs = [], []
    for hierarchy, column, level in zip(hierarchies, columns, levels, strict=True):
        distinct = list({plain(value): value for value in column}.values())
        own = {
            plain(each): cost for each, cost in zip(distinct, hierarchy.costs(distinct, level), strict=True)
        }
        costs.append([Fraction(own[plain(value)]) for value in column])
        shown = hierarchy.labels(column, level)
        labels.append([plain(column[row]) if level == 0 else shown[row] for row in rows])
    classes: dict[Any, list[int]] = {}
    for row in rows:
        classes.setdefault(tuple(each[row] for each in labels), []).append(row)
    kept = [part for part in classes.values() if admits(part)]
    gone = [row for part in classes.values() if not admits(part) for row in part]
    lost = sum((each[row] for each in costs for part in kept for row in part), Fraction(0))
    cells = len(columns) * len(rows)
    return kept, gone, (lost + len(gone) * len(columns)) / cells
