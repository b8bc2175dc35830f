"""Chapters 10 and 14 of the textbook: the exact questions that its mechanisms ask of a table.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah). Nothing here is
private by itself: an answer is for a mechanism, with the sensitivity that is stated beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.book._data import above, levels_of, numbers_of
from sfumato.numeric.exact import Rational, as_fraction, positive

__all__ = ["age_range_query", "age_sum_query", "create_age_range_query", "create_query", "range_query"]


def age_sum_query(df: Any, b: Rational) -> float:
    """The sum of the ages clamped to 0 … b.

    Trap of the original: a sum of floats, whose rounding depends on all rows. Here values are rounded to a
    grid of 2⁻³⁰ of b first, and sums are exact up to four million rows.

    Privacy:
        None: exact. Its sensitivity is b under adding or removing a row.

    Raises:
        InvalidParameter: if b is not positive, or the table has no ages.
        InvalidValue: if they are not finite numbers.
    """
    levels, _, step = levels_of(numbers_of(df), positive(b, "b"))
    return float(int(levels.sum()) * step)


def create_query(b: Rational) -> Callable[[Any], float]:
    """The query how much smaller the sum of ages is when they are clamped to b instead of b + 1.

    It is minus the number of people above b, those between b and b + 1 counted in part: 0 from the largest
    age on, which is how `above_threshold` finds a bound.

    Trap of the original: it closes over the table's column and sums twice; the two sums round apart.

    Privacy:
        None: exact. Its sensitivity is 1, and it is monotone: one row more can only make it fall.

    Raises:
        InvalidParameter: if b is not a finite number.
    """
    bound = float(as_fraction(b, "b"))

    def query(df: Any) -> float:
        levels, _, step = levels_of(above(numbers_of(df), bound), Fraction(1))
        return -float(int(levels.sum()) * step)

    return query


def age_range_query(df: Any, lower: float, upper: float) -> int:
    """How many ages lie strictly between lower and upper.

    Trap of the original: both ends are left out, so that neighbouring ranges miss the people on the border
    (`range_query` takes the lower one in).

    Privacy:
        None: exact. Its sensitivity is 1 under adding or removing a row.
    """
    ages = numbers_of(df)
    return int(np.count_nonzero((ages > lower) & (ages < upper)))


def create_age_range_query(lower: float, upper: float) -> Callable[[Any], int]:
    """`age_range_query` for these ends, as a function of the table alone.

    Privacy:
        None: exact. Its sensitivity is 1, and all such counts are monotone.
    """
    return lambda df: age_range_query(df, lower, upper)


def range_query(df: Any, col: str, a: float, b: float) -> int:
    """How many values of a column are at least a and less than b.

    Trap of the original: the chapter's histogram has a bin for each age from 0 to 99, and drops the others.

    Privacy:
        None: exact. Its sensitivity is 1 under adding or removing a row.

    Raises:
        InvalidParameter: if the table has no such column.
        InvalidValue: if its values are not finite numbers.
    """
    values = numbers_of(df, col)
    return int(np.count_nonzero((values >= a) & (values < b)))
