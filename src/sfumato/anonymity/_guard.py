"""What every class of an anonymised table must have: k rows, l sensitive values, a mixture close to all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.anonymity._spread import Spread
from sfumato.anonymity.closeness import equal_distance, ordered_distance
from sfumato.anonymity.codes import Coded, Codes
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, as_integer

__all__ = ["Guard", "guard_of"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """What is asked of each class.

    Attributes:
        k: The least number of rows.
        l: The least number of different values of each sensitive column, a missing value being one; or None.
        t: The most that the mixture of a sensitive column may differ from that of all rows; or None.
        sensitive: The sensitive columns.
    """

    k: int
    l: int | None = None  # noqa: E741
    t: Fraction | None = None
    sensitive: tuple[Coded, ...] = ()

    @property
    def only_counts(self) -> bool:
        """Whether class sizes decide alone."""
        return self.l is None and self.t is None

    def diverse(self, rows: Codes, classes: Codes, count: int) -> Flags:
        """Which of the classes 0 … count - 1 have l different values; `classes` has the class of each row."""
        kept = np.ones(count, dtype=bool)
        if self.l is None:
            return kept
        for column in self.sensitive:
            key = classes * len(column.values) + column.codes[rows]
            distinct = np.unique(key) // len(column.values)
            kept &= np.bincount(distinct, minlength=count) >= self.l
        return kept

    def close(
        self,
        rows: Codes,
        classes: Codes,
        count: int,
        *,
        weights: Codes | None = None,
        whole: Codes | None = None,
    ) -> Flags:
        """Which of the classes have a mixture within t of that of the rows in `whole`, by default of all.

        Each row counts as many times as `weights` says. No class may be empty. The distances are those that
        `measure` gives, to the last bit.
        """
        kept = np.ones(count, dtype=bool)
        if self.t is None:
            return kept
        for column in self.sensitive:
            overall = column.codes if whole is None else column.codes[whole]
            spread = _spread(column, overall, column.codes[rows], classes, weights)
            distances = ordered_distance(spread) if spread.ordered else equal_distance(spread)
            kept &= distances <= float(self.t)
        return kept


def _spread(column: Coded, overall: Codes, codes: Codes, classes: Codes, weights: Codes | None) -> Spread:
    """How often each value occurs in each class, of the values that occur overall."""
    totals = np.bincount(overall, minlength=len(column.values))[_in_order(column)]
    rank = np.empty(len(totals), dtype=np.int64)
    rank[_in_order(column)] = np.cumsum(totals > 0) - 1
    wide = int((totals > 0).sum())
    pairs, at = np.unique(classes * wide + rank[codes], return_inverse=True)
    counts = np.bincount(at, weights=weights).astype(np.int64)  # exact below 2**53 rows
    sizes = np.bincount(pairs // wide)
    return Spread(
        starts=np.append(0, np.cumsum(sizes)),
        counts=counts,
        values=pairs % wide,
        totals=totals[totals > 0],
        ordered=column.kind in ("number", "date", "time"),
    )


def _in_order(column: Coded) -> Codes:
    """The codes in the order of `Spread`: missing first, then by size, infinities too, and NaN last."""
    proper, odd = list(range(column.proper)), range(column.proper, len(column.values))
    missing = [code for code in odd if column.values[code] is None]
    below = [code for code in odd if column.values[code] == -math.inf]
    above = [code for code in odd if column.values[code] == math.inf]
    unreal = [code for code in odd if code not in {*missing, *below, *above}]
    return np.array([*missing, *below, *proper, *above, *unreal], dtype=np.int64)


def guard_of(
    k: int,
    l: int | None,  # noqa: E741
    t: Rational | None,
    sensitive: Sequence[Coded],
    *,
    rows: int,
) -> Guard:
    """The guard after a check that all rows together pass it, since no class does better than that.

    Raises:
        InvalidParameter: for a k, l or t that no table of these rows can reach.
    """
    least = as_integer(k, "k")
    if rows < 1:
        raise InvalidParameter("The table has no rows, so there is nothing to anonymise.")
    if least > rows:
        raise InvalidParameter(f"k is {least}, but the table has only {rows} rows; give a smaller k.")
    if (l is not None or t is not None) and not sensitive:
        raise InvalidParameter("l and t are about a sensitive column; name it with sensitive=.")
    most = None if t is None else as_fraction(t, "t")
    if most is not None and most < 0:
        raise InvalidParameter("t must not be negative: it is a distance, 0 for equal and 1 for disjoint.")
    different = None if l is None else as_integer(l, "l")
    for column in sensitive:
        if different is not None and len(column.values) < different:
            raise InvalidParameter(
                f'Column "{column.name[:100]}" has fewer than {different} different values, so no class '
                "can have as many; give a smaller l."
            )
    return Guard(least, different, most, tuple(sensitive))
