"""`Standard`: rows whose coordinates have about mean 0 and spread 1, as far as noisy sums can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import BITS, UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import Adding, matrix
from sfumato.numeric.balls import sqrt_up

__all__ = [
    "REACH",
    "Bending",
    "Curvature",
    "Products",
    "Standard",
    "averages",
    "curvature",
    "inverse_of",
    "means",
    "parts",
    "standard",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Weigh: TypeAlias = Callable[[slice, Floats], Floats]

REACH = 32
"""A standardised coordinate is cut at ±32 spreads, and held as a multiple of 2**-9 of a spread."""
_FINE = 20  # a unit's average is in multiples of 2**-20, and of 2**-40 where its rows have parts
_SURE = 1e-13  # eigenvalues below this part of the largest may be rounding
_LEAST = 2.0  # no spread is taken to be less than so many times the noise of its square
_WIDEST = 0.25  # no variance in [0, 1] is more
_SHORTER = 1 - 2.0**-30  # more than floats can be off in a square root of a sum
_NEAR = 1 << 16  # so many numbers, and what each is multiplied with, stay near a processor
_FINER = 8  # rows that are weighed are held as multiples of so much less
_OFF, _ON = 7, 5  # weights of a matrix beside and on its diagonal: 7/5 is just below √2


def parts(rows: Rows) -> Floats | None:
    """What each row counts for, in multiples of 2**-20: its part of its unit; None: each row is a unit.

    Privacy:
        Claim: the parts of a unit's rows add up to at most 2**20. Proof: each is 2**20 divided by their
        number, rounded down.
    """
    if rows.units is None:
        return None
    _, place, count = np.unique(rows.units, return_inverse=True, return_counts=True)
    return np.asarray((2**_FINE // count)[place], np.float64)


def averages(rows: Rows, lines: Iterable[tuple[slice, Floats]], width: int, longest: Fraction) -> Total:
    """Σ over units of the average of their rows' lines.

    Args:
        rows: The private rows.
        lines: The places of blocks, and for each of their rows a line of integers: a function of that row
            alone, in multiples of 2**-20, none beyond 2**20.
        width: How long a line is.
        longest: What the squares of a line add up to at most, in lengths.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most √longest in L2. Proof: a unit gives
        Σ part·line with Σ part ≤ 1 (`parts`), which by the triangle inequality is no longer than its longest
        line. Sums are exact: products are at most 2**40, and 2**12 of them are added up as floats.
    """
    shares = parts(rows)
    total = Adding((width,))
    for place, block in lines:
        weights = np.ones(len(block)) if shares is None else shares[place]
        total.add(weights @ block)
    unit = 1 << (_FINE if shares is None else 2 * _FINE)
    return Total(total.values, Fraction(sqrt_up(longest)) * unit, Fraction(1, unit))


def means(rows: Rows, meter: Meter, share: Fraction, count: float) -> tuple[Floats, Floats, float]:
    """About the mean and the variance of each coordinate, and the noise of either.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most the root of 5/16 for each number and 1 for
        each category, in L2. Proof: that of `averages`: a number is within 1/2 of the middle and its square
        within 1/4, and of a category's coordinates at most one is 1.
    """
    numbers, columns = _numbers(rows.design), rows.design.columns
    longest = sum(
        (Fraction(5, 16) if isinstance(column, Number) else Fraction(1) for column in columns), Fraction(0)
    )
    middle = np.where(numbers, UNIT // 2, 0)
    shares = parts(rows)
    first, second, unit = _sums(rows, middle) if shares is None else _part_sums(rows, middle, shares)
    values = np.concatenate([first, second[numbers]])
    length = sqrt_up(max(longest, Fraction(1)))
    noisy = meter.noisy(Total(values, Fraction(length) * unit, Fraction(1, unit)), share) / count
    mean = np.where(numbers, np.clip(noisy[: len(numbers)], -0.5, 0.5), np.clip(noisy[: len(numbers)], 0, 1))
    square = mean.copy()
    square[numbers] = noisy[len(numbers) :]
    return mean + middle / UNIT, square - mean**2, meter.sigma(length, share) / count


def _sums(rows: Rows, middle: Integers) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Sums of what coordinates are beyond the middle, and of its squares; in multiples of 2**-28.

    All are exact: squares are at most 2**28, and Σ(x − m)² = Σx² − m·(2·Σx − n·m).
    """
    width = len(middle)
    first, second = Adding((width,)), Adding((width,))
    for _, block in rows.blocks():
        own = block[:, :width]
        first.add(np.ones(len(block)) @ own)
        second.add(np.einsum("ij,ij->j", own, own))
    moved = len(rows) * middle
    squares = second.values - middle * (2 * first.values - moved)
    return (first.values - moved) * UNIT, squares, UNIT**2


def _part_sums(rows: Rows, middle: Integers, shares: Floats) -> tuple[NDArray[Any], NDArray[Any], int]:
    """The same of rows that count for parts; in multiples of 2**-40.

    All are exact: parts are at most 2**20, and a block's 2**12 products with 2**20 and less add up below
    2**53.
    """
    first, second = Adding((len(middle),)), Adding((len(middle),))
    for place, block in rows.blocks():
        near = block[:, : len(middle)] - middle
        first.add(shares[place] @ near)
        second.add(shares[place] @ np.floor(near * near * 2.0 ** (_FINE - 2 * BITS)))
    return first.values * (1 << (_FINE - BITS)), second.values, 1 << 2 * _FINE


def _numbers(design: Design) -> NDArray[np.bool_]:
    return np.array([coordinate.category is None for coordinate in design.coordinates], dtype=bool)


@dataclass(frozen=True, slots=True)
class Standard:
    """Where the middle of each coordinate is taken to be, and how far a spread reaches; public.

    Attributes:
        centre: The middle of each coordinate.
        rate: One divided by its spread.
        length: How long a standardised row is about, the intercept included.
        clear: Whether no row within the bounds is cut at ±32 spreads.
    """

    centre: Floats
    rate: Floats
    length: float
    clear: bool

    @property
    def width(self) -> int:
        """How many coordinates there are, the intercept included."""
        return len(self.rate) + 1

    @property
    def reach(self) -> Floats:
        """How many spreads from the middle rows are that weigh most, and 1 for the intercept.

        As far as the rarer end of a column would be that has this mean and only two values: of one that is 1
        for a part s of all, 1/√s about; of one that is about its middle, 1.
        """
        more = np.maximum(self.centre, 1 - self.centre)
        less = np.maximum(1 - more, 1 / (REACH * REACH))
        return np.append(np.minimum(more * self.rate, np.sqrt(more / less)), 1.0)

    def rows(self, rows: Rows) -> Rows:
        """The rows standardised, in multiples of 2**-14 of `REACH`, the intercept among the coordinates.

        Privacy:
            Claim: each row follows from that row and public numbers, and no coordinate is beyond ±1. Proof:
            one float at a time is subtracted from, multiplied, rounded and cut, unless what is declared
            keeps all of them within ±1: products of floats are off by less than a rounding takes away.
        """
        columns = [Number(f"z{place}", Fraction(-1), Fraction(1)) for place in range(self.width)]
        many, last = len(rows), UNIT // REACH
        # No coordinate is beyond ±1, so that most often none can reach as far as it would be cut.
        cuts = bool(((1 + np.abs(self.centre)) * self.rate > REACH).any())
        integers = np.empty((many, self.width), np.int16)
        size = max(1, _NEAR // self.width)
        # Half as long floats are twice as fast, and off by less than a thousandth of a multiple before they
        # are multiplied. One subtraction and one product for all: the intercept is (0 − (−1))·last.
        middle = np.tile(np.append(self.centre * UNIT, -1.0).astype(np.float32), (size, 1))
        rate = np.tile(np.append(self.rate / REACH, last).astype(np.float32), (size, 1))
        room = np.empty((size, self.width), np.float32)
        for place in rows.slices(size):
            here = slice(place.stop - place.start)
            near = room[here]
            near[:, :-1], near[:, -1] = rows.integers[place], 0
            near -= middle[here]
            near *= rate[here]
            np.rint(near, out=near)
            if cuts:
                np.clip(near, -UNIT, UNIT, out=near)
            integers[place] = near
        design = Design(columns, intercept=False, signed=True)
        return Rows(design, integers, rows.target, rows.units, exchange=rows.exchange)

    def back(self, weights: Floats) -> Floats:
        """Weights of standardised coordinates as weights of the coordinates, the intercept last."""
        slopes = weights[: len(self.rate)] * self.rate.reshape(-1, *[1] * (weights.ndim - 1))
        return np.concatenate([slopes, weights[-1:] - (self.centre @ slopes)[None]])


def standard(rows: Rows, meter: Meter, share: Fraction, count: float) -> Standard:
    """How to standardise rows, by noisy sums.

    A spread is not taken to be smaller than what noise can hide. Of a category it is not taken to be smaller
    than its part of all coordinates either: the few rows in it would be as long as all of the others.
    """
    numbers = _numbers(rows.design)
    centre, variance, noise = means(rows, meter, share, count)
    seen = np.clip(variance, noise, _WIDEST)
    held = np.clip(variance, min(_LEAST * noise, _WIDEST), _WIDEST)
    held = np.where(numbers, held, np.maximum(held, min(1 / rows.design.width, _WIDEST)))
    rate = 1 / np.sqrt(held)
    length = float(np.sqrt(1 + np.minimum(seen / held, 1).sum()))
    farthest = np.maximum(centre, 1 - centre) * rate
    return Standard(centre, rate, length, bool((farthest <= REACH).all()))


@dataclass(frozen=True, slots=True)
class Curvature:
    """About Σ z·zᵀ divided by the count, over standardised rows; public.

    Attributes:
        values: Its eigenvalues with a ridge, none of them negative.
        directions: Its eigenvectors.
        ridge: What was added, the size of the noise.
        least: The smallest eigenvalue before.
        longest: How long a row may be before it counts less.
    """

    values: Floats
    directions: Floats
    ridge: float
    least: float
    longest: float

    def solve(self, vector: Floats) -> Floats:
        """The inverse times a vector or a matrix."""
        return np.asarray(self.directions @ ((self.directions.T @ vector).T / self.values).T)

    @property
    def inverse(self) -> Floats:
        """The inverse without the ridge, where what is left is more than the ridge was."""
        return np.asarray(
            (self.directions / np.maximum(self.values - self.ridge, self.ridge)) @ self.directions.T
        )

    @property
    def matrix(self) -> Floats:
        """The matrix itself, with the ridge."""
        return np.asarray((self.directions * self.values) @ self.directions.T)


class Bending:
    """Second moments of standardised rows, each row weighed by a number, block by block.

    Args:
        rows: Standardised rows; private.
        length: How long a row is about; those beyond about the longest fortieth are shortened.
        weighed: Whether rows are weighed at all.

    Privacy:
        Claim: that of `Products`.
    """

    def __init__(self, rows: Rows, length: float, *, weighed: bool) -> None:
        # Squares of independent coordinates with spread 1 add up to so much or less, mostly.
        self.longest = float(length * np.sqrt(1 + 2 * np.sqrt(2) / length))
        self._most = (self.longest * UNIT / REACH) ** 2
        self._shares, self._rows = parts(rows), rows
        weighed = weighed or self._shares is not None
        self._total = Products(rows.design.width, self.longest, weighed=weighed)

    def add(self, place: slice, block: Floats, weights: Floats | None = None) -> None:
        """One more block, which is written to.

        Args:
            place: Which rows these are.
            block: Their coordinates.
            weights: Numbers between 0 and 1, each a function of its own row; 1 if None.
        """
        squares = self._rows.squares_of(place, block)
        if weights is not None:
            weights = weights * (self._most / np.maximum(squares, self._most))
        self._total.add(block, squares, weights, None if self._shares is None else self._shares[place])

    def noisy(self, meter: Meter, share: Fraction, count: float) -> Curvature:
        """The curvature of all that was added, divided by about how many units there are."""
        whole, noise = self._total.noisy(meter, share, count)
        ridge = noise * np.sqrt(len(whole))
        values, directions = np.linalg.eigh(whole)
        return Curvature(
            np.maximum(values, 0) + ridge, directions, float(ridge), float(values[0]), self.longest
        )


def inverse_of(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix without negative eigenvalues; 0 is taken for the least that is sure.

    Noise can leave a matrix that no inverse in doubles is known of, and no answer may make a fit fail.
    """
    values, directions = np.linalg.eigh(matrix)
    least = max(float(np.abs(values).max()) * _SURE, np.finfo(float).tiny)
    return np.asarray((directions / np.maximum(values, least)) @ directions.T)


def curvature(
    rows: Rows, meter: Meter, share: Fraction, count: float, length: float, *, weigh: Weigh | None = None
) -> Curvature:
    """About the second moments of standardised rows, each row weighed by a number.

    Args:
        rows: Standardised rows; private.
        meter: Gives noise.
        share: Of the price.
        count: About how many units there are.
        length: As `Bending` takes it.
        weigh: From the places of a block and its coordinates to weights between 0 and 1: a function of each
            row alone; 1 if None.

    Privacy:
        Claim: that of `Bending`.
    """
    bending = Bending(rows, length, weighed=weigh is not None)
    for place, block in rows.blocks():
        bending.add(place, block, None if weigh is None else weigh(place, block))
    return bending.noisy(meter, share, count)


class Products:
    """Σ w·z·zᵀ over standardised rows, block by block, where each w·‖z‖² is cut to a square.

    Args:
        width: How many coordinates there are.
        longest: The root of what w·‖z‖² is cut to.
        weighed: Whether rows have weights, or parts of their units.

    Privacy:
        Claim: the triangle of Σ v·vᵀ, entries beside the diagonal taken 7 times and those on it 5 times,
        moves by at most 5·bound when a unit is added or removed, where v are its rows, shortened so that
        ‖v‖² ≤ part·bound (`parts`). Proof: with M what the unit adds, its Frobenius norm is at most
        Σ‖v‖² ≤ bound; 49·Σ_{i<j}M² + 25·ΣM_ii² = 24.5·(‖M‖² − ΣM_ii²) + 25·ΣM_ii² ≤ 25·bound². Shortening
        multiplies with a float that is a little smaller than it may be and rounds towards zero; what is
        short enough is left as it is, and squares are exact. All sums are exact: with weights, lengths are
        multiples of 2**-17 of `REACH`, and at most 2**12 products below 2**36 are added up as floats.
    """

    def __init__(self, width: int, longest: float, *, weighed: bool) -> None:
        self._bound, self._fine = Fraction((longest / REACH) ** 2), _FINER if weighed else 1
        self._most = float(self._bound) * UNIT**2
        self._total = Adding((width, width))

    def add(
        self, block: Floats, squares: Floats, weights: Floats | None = None, shares: Floats | None = None
    ) -> None:
        """One more block, of at most 2**12 rows, which is written to.

        Args:
            block: Coordinates.
            squares: The sum of each row's.
            weights: Of 0 or more, each a function of its own row; 1 if None.
            shares: The part of its unit that each row is, if not all.
        """
        factors = self._most / np.maximum(squares, self._most)
        if weights is not None:
            factors = np.minimum(weights, self._most / np.maximum(squares, 1))
        if shares is not None:
            factors *= shares / 2.0**_FINE
        shorter = (np.sqrt(factors) * (_SHORTER * self._fine))[:, None]
        if self._fine == 1:
            far = np.flatnonzero(factors < 1)
            block[far] = np.trunc(block[far] * shorter[far])
        else:
            block *= shorter
            np.trunc(block, out=block)
        self._total.add(block.T @ block)

    def noisy(self, meter: Meter, share: Fraction, count: float) -> tuple[Floats, float]:
        """The sums over a count, and the noise of entries beside the diagonal: on it there is 7/5 of it."""
        width, unit = len(self._total.values), (UNIT * self._fine) ** 2
        upper = np.triu_indices(width)
        weights = np.where(upper[0] == upper[1], _ON, _OFF)
        exact = Total(self._total.values[upper] * weights, _ON * self._bound * unit, Fraction(1, unit))
        scale = REACH**2 / count
        noise = meter.sigma(_ON * self._bound, share) / _OFF * scale
        return matrix(meter.noisy(exact, share) / weights, width) * scale, noise
