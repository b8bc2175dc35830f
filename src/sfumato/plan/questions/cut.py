"""What limits may take from an aggregate: how far it can be from its value over all rows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import float_down, float_up

__all__ = ["Cut"]


@dataclass(frozen=True, slots=True)
class Cut:
    """How an aggregate over what counts differs from the same over all rows, from public facts alone.

    All rows are those that belong to a unit, pass the condition and have a reported key, with numbers held
    within their bounds. If limits leave m rows out (a row of weight w counts as 1 − w left out), the value
    over all rows is at most m·adds above and at most m·takes below the one that is measured.

    Attributes:
        row: The least and the most that one row has in it; infinite where it is no sum over rows.
        adds: The most that one row that is left out would add; 0: none can.
        takes: The most that one would take off.
        least: The least that the value over all rows can be.
        most: The greatest.
        whole: What it is over that is not cut: `all rows`.
        by_groups: Whether groups of units are left out, rather than rows.
        inside: Whether it is measured some rows inside of what it is over, also where no limit cuts.
    """

    row: tuple[float, float] = (-math.inf, math.inf)
    adds: float = math.inf
    takes: float = math.inf
    least: float = -math.inf
    most: float = math.inf
    whole: str = "all rows"
    by_groups: bool = False
    inside: bool = False

    @classmethod
    def of_rows(cls, lower: Fraction, upper: Fraction, *, some: bool) -> Cut:
        """That of a sum over rows of numbers in this range; `some`: only some of the rows have one.

        Weights are at most 1 and rows are only left out, so each row that is left out, in part or wholly,
        moves the sum by at most its own number: up if no number is below 0, down if none is above.
        """
        low, high = float_down(lower), float_up(upper)
        row = (min(low, 0.0), max(high, 0.0)) if some else (low, high)
        least, most = (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)
        return cls(row, max(high, 0.0), max(-low, 0.0), least, most)

    @property
    def of_difference(self) -> Cut:
        """That of a difference between two values, from each of which limits may leave something out."""
        either = max(self.adds, self.takes)
        return replace(self, adds=either, takes=either, least=-math.inf, most=math.inf)

    @property
    def uncut(self) -> Cut:
        """The same where nothing can be left out."""
        return replace(self, adds=0.0, takes=0.0)
