"""Anonymity by its definitions: every row is compared with every row, and shares are fractions."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Row = dict[str, Any]


def plain(value: Any) -> Any:
    """The value in a form in which equal ones are equal: NaN is NaN, and 0 is not False."""
    if isinstance(value, float):
        return ("number", "nan") if math.isnan(value) else ("number", value + 0.0)
    return (type(value).__name__, value)


@dataclass(frozen=True)
class Measured:
    rows: int
    classes: int
    k: int
    unique: Fraction
    l: int  # noqa: E741
    entropy_l: float
    t: Fraction


def class_of(row: Row, rows: Sequence[Row], quasi: Sequence[str]) -> list[Row]:
    return [other for other in rows if all(plain(row[name]) == plain(other[name]) for name in quasi)]


def classes_of(rows: Sequence[Row], quasi: Sequence[str]) -> list[list[Row]]:
    found: list[list[Row]] = []
    for row in rows:
        if not any(any(row is other for other in each) for each in found):
            found.append(class_of(row, rows, quasi))
    return found


def share(rows: Sequence[Row], name: str, value: Any) -> Fraction:
    return Fraction(sum(plain(row[name]) == value for row in rows), len(rows))


def in_order(values: set[Any]) -> list[Any]:
    """Missing first, then numbers, days and times in order, NaN last."""

    def place(value: Any) -> tuple[int, Any]:
        kind, inside = value
        if kind == "NoneType":
            return 0, 0
        return (2, 0) if inside == "nan" else (1, inside)

    return sorted(values, key=place)


def distance(part: Sequence[Row], rows: Sequence[Row], name: str) -> Fraction:
    values = {plain(row[name]) for row in rows}
    ordered = any(
        isinstance(row[name], int | float | datetime.date) and not isinstance(row[name], bool) for row in rows
    )
    if not ordered:
        return sum((abs(share(part, name, v) - share(rows, name, v)) for v in values), Fraction(0)) / 2
    if len(values) == 1:
        return Fraction(0)
    total, running = Fraction(0), Fraction(0)
    for value in in_order(values):
        running += share(part, name, value) - share(rows, name, value)
        total += abs(running)
    return total / (len(values) - 1)


def counts(part: Sequence[Row], name: str) -> list[int]:
    """How often each value occurs, the most frequent first."""
    values = {plain(row[name]) for row in part}
    return sorted((sum(plain(row[name]) == value for row in part) for value in values), reverse=True)


def is_recursive(rows: Sequence[Row], quasi: Sequence[str], name: str, c: Fraction, l: int) -> bool:  # noqa: E741
    for part in classes_of(rows, quasi):
        r = counts(part, name)
        if not r[0] < c * sum(r[l - 1 :]):
            return False
    return True


def measured(rows: Sequence[Row], quasi: Sequence[str], name: str) -> Measured:
    found = classes_of(rows, quasi)
    entropies = [-sum(n / len(part) * math.log(n / len(part)) for n in counts(part, name)) for part in found]
    return Measured(
        len(rows),
        len(found),
        min(map(len, found)),
        Fraction(sum(len(part) == 1 for part in found), len(rows)),
        min(len(counts(part, name)) for part in found),
        math.exp(min(entropies)),
        max(distance(part, rows, name) for part in found),
    )
