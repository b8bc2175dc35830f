"""Public grids of prices, kept as whole ticks, so that revenue is exact and its sensitivity is too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import Rational, positive, show
from sfumato.numeric.frozen import freeze
from sfumato.numeric.private_values import column_of, floats_each

__all__ = ["PriceGrid", "bids_of", "price_grid"]

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

MOST_TICKS, MOST_MONEY = 2**32, 2**62
"""The highest price in ticks, and the most that all bids may be worth together: scores stay in 64 bits."""

_MOST_PRICES = 10_000_000


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PriceGrid:
    """Prices to choose from: public, increasing, each a whole number of ticks.

    Iterating gives floats that print as the decimals they mean. A bid accepts a price when it is at least
    that float; of two decimals that compare one way, their nearest floats never compare the other way.

    Attributes:
        ticks: each price as a whole number of ticks.
        tick: what one tick is worth, exactly.
    """

    ticks: tuple[int, ...]
    tick: Fraction
    whole: Whole = field(compare=False)
    values: Floats = field(compare=False)

    def __init__(self, prices: Iterable[Rational], *, tick: Rational | None = None) -> None:
        """Take prices as they are written: numbers, Decimals or decimal text.

        Args:
            prices: in increasing order, all above 0.
            tick: what every price is a whole number of; left out, the largest that fits.

        Raises:
            InvalidParameter: if there are none, one is not above 0, they do not increase, or they are more
                than 2**32 ticks.
        """
        if isinstance(prices, str | bytes) or not isinstance(prices, Iterable):
            raise InvalidParameter("prices must be a list of prices, such as price_grid(top=100, step=1).")
        exact = [positive(price, "a price") for price in prices]
        if not exact:
            raise InvalidParameter("There are no prices to choose from: give at least one.")
        unit = _common(exact) if tick is None else positive(tick, "tick")
        ticks = [price / unit for price in exact]
        if any(number.denominator != 1 for number in ticks):
            raise InvalidParameter(f"Every price must be a whole number of ticks of {show(unit)}.")
        self._set(np.array([_small(int(number)) for number in ticks], np.int64), unit)

    @classmethod
    def of(cls, prices: PriceGrid | Iterable[Rational]) -> PriceGrid:
        """The grid itself, or one made of a list."""
        return prices if isinstance(prices, PriceGrid) else cls(prices)

    @classmethod
    def _made(cls, ticks: Iterable[int], tick: Fraction) -> PriceGrid:
        grid = cls.__new__(cls)
        grid._set(np.array([_small(number) for number in ticks], np.int64), tick)
        return grid

    def _set(self, whole: Whole, tick: Fraction) -> None:
        if np.any(np.diff(whole) <= 0):
            raise InvalidParameter("Prices must increase: sort them and leave no price in twice.")
        # Quotients of whole numbers are correctly rounded: each price is the float nearest to its decimal.
        ticks = tuple(whole.tolist())
        values = np.array([number * tick.numerator / tick.denominator for number in ticks])
        if np.any(np.diff(values) <= 0) or not 0 < values[0] <= values[-1] < math.inf:
            raise InvalidParameter("These prices lie too close together for floats: use a coarser tick.")
        for array in (whole, values):
            array.setflags(write=False)
        freeze(self, ticks=ticks, tick=tick, whole=whole, values=values)

    def __len__(self) -> int:
        return len(self.ticks)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values.tolist())

    def __getitem__(self, place: int) -> float:
        return float(self.values[place])

    def __repr__(self) -> str:
        if len(self) <= 4:
            return f"PriceGrid({list(self)})"
        return f"PriceGrid({len(self)} prices from {self[0]} to {self.top})"

    @property
    def top(self) -> float:
        """The highest price."""
        return float(self.values[-1])

    @property
    def gap(self) -> Fraction:
        """The widest distance between a price and the next lower one, exactly; 0 for a single price."""
        return int(np.diff(self.whole).max(initial=0)) * self.tick

    @property
    def ratio(self) -> Fraction:
        """The greatest ratio of a price to the next lower one, exactly; 1 for a single price."""
        if len(self) == 1:
            return Fraction(1)
        # Which is greatest is settled by floats first, then exactly among those that come close.
        quotients = self.whole[1:] / self.whole[:-1]
        close = np.flatnonzero(quotients >= quotients.max() * (1 - 1e-12))
        return max(Fraction(self.ticks[i + 1], self.ticks[i]) for i in close.tolist())

    def money(self, ticks: float | Fraction) -> Fraction:
        """A number of ticks in money, exactly."""
        return Fraction(ticks) * self.tick

    def accepted(self, bids: NDArray[Any], place: int) -> NDArray[np.bool_]:
        """Which bids accept the price at this place."""
        return np.asarray(bids >= self._beside(bids)[place])

    def demand(self, bids: NDArray[Any]) -> Whole:
        """How many bids accept each price."""
        # Sorting many bids is quicker than looking each of them up among the prices.
        return len(bids) - np.searchsorted(np.sort(bids), self._beside(bids), side="left")

    def _beside(self, bids: NDArray[Any]) -> NDArray[Any]:
        """The prices in the bids' own precision, so that a single-precision 1.01 accepts the price 1.01."""
        if bids.dtype.kind != "f":
            return self.values
        with np.errstate(over="ignore"):  # a price beyond that precision is one that nobody can bid
            return self.values.astype(bids.dtype)

    def in_ticks(self, bids: NDArray[Any]) -> Whole:
        """Each bid in whole ticks, rounded down; bids above the top price count as the top price."""
        up, down = self.tick.numerator, self.tick.denominator
        own = bids.dtype if bids.dtype.kind == "f" else np.dtype(np.float64)
        capped = np.minimum(bids.astype(np.float64), self.top)
        nearest = np.rint(capped * (down / up))
        # 0.29 is 29 ticks of 0.01, although the quotient of the two floats is a little less; and so it is in
        # single precision, which is compared in its own.
        with np.errstate(over="ignore"):
            nearest -= (nearest * up / down).astype(own) > capped.astype(own)
        return np.clip(nearest, 0, self.ticks[-1]).astype(np.int64)


def price_grid(
    *,
    top: Rational,
    step: Rational | None = None,
    ratio: Rational | None = None,
    low: Rational | None = None,
    tick: Rational = "0.01",
) -> PriceGrid:
    """A public grid of prices: in even steps, or each a ratio above the one before.

    Args:
        top: the highest price, which is always in the grid.
        step: of an even grid.
        ratio: of a geometric grid, above 1; where a tick is more than that, the next price is a tick higher.
        low: the lowest price; one step, or one tick in a geometric grid, unless given.
        tick: the smallest coin: every price is rounded down to whole ticks.

    Raises:
        InvalidParameter: for no prices, prices that are not above 0, both or neither of step and ratio.
    """
    if (step is None) == (ratio is None):
        raise InvalidParameter("A grid has either a step or a ratio: give one of the two.")
    unit = positive(tick, "tick")
    last = positive(top, "top") / unit
    if last.denominator != 1:
        raise InvalidParameter(f"top must be a whole number of ticks of {show(unit)}: change top or tick.")
    stop = _small(int(last))
    coarse = positive(step, "step") / unit if step is not None else Fraction(1)
    if coarse < 1:
        raise InvalidParameter(f"step must be at least one tick of {show(unit)}: make the tick smaller.")
    first = positive(low, "low") / unit if low is not None else min(coarse, last)
    if not 1 <= first <= last:
        raise InvalidParameter("low must be at least one tick, and at most the top price.")
    if ratio is None:
        count = _counted((last - first) // coarse + 1)
        ticks = [math.floor(first + k * coarse) for k in range(count)]
    else:
        ticks = _geometric(math.floor(first), stop, positive(ratio, "ratio"))
    if not ticks or ticks[-1] < stop:
        ticks.append(stop)
    return PriceGrid._made(ticks, unit)


def _geometric(first: int, stop: int, ratio: Fraction) -> list[int]:
    """Whole ticks from `first` up to below `stop`, each at most `ratio` times the one before, or one more."""
    if ratio <= 1:
        raise InvalidParameter("ratio must be above 1: each price is that many times the one before.")
    ticks, at = [], first
    while at < stop:
        ticks.append(at)
        _counted(len(ticks))
        at = max(at + 1, at * ratio.numerator // ratio.denominator)
    return ticks


def bids_of(bids: Any, name: str = "bids") -> NDArray[Any]:
    """Bids as a flat array of numbers of at least 0; an empty list is nobody bidding.

    Each bid is read by itself: what is not a number, missing or negative counts as 0, a bid below all prices;
    an infinite one is above them. An array's own precision is part of its public schema, and prices are
    compared in it. A list has none: its bids are taken in double precision, or the type of one bid would
    decide how all others are compared.

    Raises:
        InvalidValue: for anything but a flat column, or one of a declared type without numbers.
    """
    flat = f"The {name} must be a flat list: one number for each."
    column = column_of(bids, flat)
    if column.kind not in "iufO":
        raise InvalidValue(f"The {name} must be numbers: convert them first.")
    if isinstance(column.data, list):
        array: NDArray[Any] = floats_each(column.data)
    else:
        wide = column.data.dtype.kind == "f" and column.data.dtype.itemsize > 8
        with np.errstate(over="ignore"):
            array = column.data.astype(np.float64) if wide or column.nullable else column.data
    if array.size and not array.min() >= 0:  # which carries a NaN along
        array = np.where(array > 0, array, np.zeros((), array.dtype))
    return array


def _common(exact: list[Fraction]) -> Fraction:
    """The largest number that all prices are whole multiples of."""
    denominator = math.lcm(*(price.denominator for price in exact))
    return Fraction(math.gcd(*(int(price * denominator) for price in exact)), denominator)


def _small(ticks: int) -> int:
    if ticks > MOST_TICKS:
        raise InvalidParameter("The top price must be at most 2**32 ticks: use a coarser tick.")
    return ticks


def _counted(count: int) -> int:
    if count > _MOST_PRICES:
        raise InvalidParameter("That is more than ten million prices: use a larger step or ratio.")
    return int(count)
