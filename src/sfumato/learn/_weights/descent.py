"""Descent: a few preconditioned steps along noisy gradients, over standardised rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Meter
from sfumato.learn._core.declared import Category
from sfumato.learn._core.design import BITS, UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import (
    MOST_COLUMNS,
    RESIDUAL_BITS,
    WEIGHT_BITS,
    Then,
    gradients,
    on_grid,
)
from sfumato.learn._weights.standard import (
    REACH,
    Bending,
    Curvature,
    Products,
    Standard,
    averages,
    curvature,
    parts,
    standard,
)

__all__ = ["WIDEST", "Field", "Sandwich", "field", "margins_of", "what_rows_count"]

Floats: TypeAlias = NDArray[np.float64]
Residuals: TypeAlias = Callable[[slice, Floats], Floats]

WIDEST = MOST_COLUMNS - 1
"""How many coordinates there may be beside the intercept: what `gradients` takes."""
_ENOUGH = 15.0  # below so many rows, in units of noise, for each weight, steps are shorter
_ROOM = 1 / 64  # the shortest bound


class Sandwich(NamedTuple):
    """What the covariance of weights is made of; public.

    Attributes:
        spread: About the mean of g·gᵀ over all rows, where g is what a row gives a gradient.
        noise: That of its entries beside the diagonal.
        lost: About the mean of z·zᵀ over rows of which a part is cut, which no longer bend the loss.
    """

    spread: Floats
    noise: float
    lost: Floats


class Field:
    """Standardised rows, and the noisy gradients of a loss on them.

    Attributes:
        rows: The private rows, standardised.
        standard: How; public.
        curvature: Their second moments; public.
        count: About how many units there are; public.
        plenty: The count in units of the noise of a count, for each weight; public.
    """

    def __init__(self, rows: Rows, meter: Meter, scale: Standard, bent: Curvature, count: float) -> None:
        self.rows, self.standard, self.curvature, self.count = rows, scale, bent, count
        self._meter = meter
        self.plenty = count / meter.sigma(1, 1) / scale.width
        self._counts = what_rows_count(rows, rows.squares(), bent.longest)

    @property
    def rate(self) -> float:
        """How far a step goes: the whole way, unless there is too little to learn from."""
        return min(1.0, self.plenty / _ENOUGH)

    def bound(self, length: float) -> Fraction:
        """A length of gradients as a fraction that it can be cut to."""
        return Fraction(min(max(length / REACH, _ROOM / REACH), 64.0))

    def noise(self, length: float, share: Fraction) -> float:
        """The noise of each entry of a gradient that is cut to a length."""
        return self._meter.sigma(self.bound(length), share) * REACH / self.count

    def gradient(
        self, weights: Floats, residuals: Residuals, length: float, share: Fraction, then: Then | None = None
    ) -> Floats:
        """About the mean of z·rᵀ over all units, each cut to a length.

        Rows that are longer than usual count less, by the square of how much: as they do in `curvature`.

        Args:
            weights: One for each standardised coordinate, in columns.
            residuals: From places and margins to whole multiples of 2**-20, as `sums.gradients` takes them.
            length: What each unit's part is cut to.
            share: Of the price.
            then: What else is made of each block, as `sums.gradients` takes it.
        """
        counts = self._counts

        def weighed(place: slice, margins: Floats) -> Floats:
            found = residuals(place, margins)
            if counts is not None:
                found *= counts[place, None]
                np.trunc(found, out=found)
            return found

        total = gradients(self.rows, weights * REACH, weighed, self.bound(length), then=then)
        return (self._meter.noisy(total, share) * (REACH / self.count)).reshape(len(weights), -1)

    def gradient_and_bent(
        self,
        weights: Floats,
        residuals: Residuals,
        weigh: Residuals,
        length: float,
        shares: tuple[Fraction, Fraction],
    ) -> tuple[Floats, Curvature]:
        """What `gradient` and `bent` give, with the rows gone through once; a share of the price for each."""
        bending = Bending(self.rows, self.standard.length, weighed=True)

        def then(place: slice, block: Floats, margins: Floats) -> None:
            bending.add(place, block, weigh(place, margins)[:, 0])

        slope = self.gradient(weights, residuals, length, shares[0], then)
        return slope, bending.noisy(self._meter, shares[1], self.count)

    def bent(self, weights: Floats, weigh: Residuals, share: Fraction) -> Curvature:
        """About the mean of w·z·zᵀ over all units, where w is a number between 0 and 1.

        Args:
            weights: As for `gradient`.
            weigh: From places and margins to w: a function of each row alone.
            share: Of the price.
        """

        def weighing(place: slice, block: Floats) -> Floats:
            return weigh(place, margins_of(block, weights))[:, 0]

        return curvature(self.rows, self._meter, share, self.count, self.standard.length, weigh=weighing)

    def moved(self, step: Floats) -> float:
        """By how much a step moves margins on average: the root of the mean of squares."""
        return float(np.sqrt(np.sum(step * (self.curvature.matrix @ step))))

    def sandwich(
        self, weights: Floats, residuals: Residuals, length: float, shares: tuple[Fraction, Fraction]
    ) -> Sandwich:
        """How what rows give `gradient` varies, and what of its curvature is lost by cutting it.

        Each row is a unit.

        Args:
            weights: As for `gradient`, one column.
            residuals: Likewise.
            length: Likewise.
            shares: Of the price, for the one and the other.
        """
        longest, squares = self.curvature.longest, self.rows.squares()
        most, scale = (longest * UNIT / REACH) ** 2, 2.0**-RESIDUAL_BITS / length
        varied, lost = (Products(self.standard.width, longest, weighed=True) for _ in range(2))
        for place, block in self.rows.blocks():
            found, square = residuals(place, margins_of(block, weights))[:, 0] * scale, squares[place]
            if self._counts is not None:
                found = found * self._counts[place]
            found = found**2
            cut = np.flatnonzero(found * square > (UNIT / REACH) ** 2)
            if len(cut):
                lost.add(block[cut], square[cut], most / np.maximum(square[cut], most))
            varied.add(block, square, found * longest**2)
        spread, noise = varied.noisy(self._meter, shares[0], self.count)
        less, _ = lost.noisy(self._meter, shares[1], self.count)
        ratio = (length / longest) ** 2
        return Sandwich(spread * ratio, noise * ratio, less)

    def only_cut(self, residuals: Residuals, length: float) -> Residuals:
        """The residuals of rows that `gradient` cuts to a length; 0 for all others."""
        squares, scale = self.rows.squares(), 2.0**-RESIDUAL_BITS / length

        def found(place: slice, margins: Floats) -> Floats:
            each = residuals(place, margins)
            size = (each[:, 0] * scale) ** 2 * squares[place]
            if self._counts is not None:
                size *= self._counts[place] ** 2
            each[size <= (UNIT / REACH) ** 2] = 0.0
            return each

        return found

    def held(self, step: Floats, most: float) -> Floats:
        """A step, made shorter where it would move margins by more than so much on average."""
        moved = self.moved(step)
        return step * min(1.0, most / moved) if moved > 0 else step

    def back(self, design: Design, weights: Floats) -> Floats:
        """Weights of the coordinates as they were read, the intercept last.

        One more for all categories of a column and one less for the intercept is the same for every row in
        one of them. Where rows in none of them are too few to be seen, noise would move the two against each
        other at will: there the shortest weights are taken that say the same of all other rows.
        """
        found, scale, ridge = self.standard.back(weights), self.standard, self.curvature.ridge
        unseen = list[Floats]()
        for column, declared in enumerate(design.columns):
            if isinstance(declared, Category):
                those = np.array([coordinate.column == column for coordinate in design.coordinates])
                near = np.append(np.where(those, 1 / scale.rate, 0.0), scale.centre[those].sum() - 1)
                # The matrix has the ridge in it, which is √width times the noise of one direction.
                if near @ self.curvature.matrix @ near <= ridge * (1 + 2 / np.sqrt(scale.width)) * (
                    near @ near
                ):
                    unseen.append(np.append(np.where(those, 1.0, 0.0), -1.0))
        if unseen:
            ways = np.array(unseen).T
            found = found - ways @ np.linalg.solve(ways.T @ ways, ways.T @ found)
        return found

    def lengths(self, place: slice) -> Floats:
        """What a residual of 1 adds to the gradient, over what that of a row of usual length does."""
        found = np.sqrt(self.rows.squares()[place]) * (REACH / UNIT / self.standard.length)
        return found if self._counts is None else found * self._counts[place]

    def average(self, weights: Floats, line: Residuals, share: Fraction) -> float:
        """About the mean over units of a number between 0 and 1.

        Args:
            weights: As for `gradient`.
            line: From places and margins to a column of whole multiples of 2**-20.
            share: Of the price.
        """
        lines = ((place, line(place, margins_of(block, weights))) for place, block in self.rows.blocks())
        noisy = self._meter.noisy(averages(self.rows, lines, 1, Fraction(1)), share)
        return float(noisy[0]) / self.count

    def averaging(self, share: Fraction) -> float:
        """The noise of such a mean."""
        return self._meter.sigma(1, share) / self.count


def margins_of(block: Floats, weights: Floats) -> Floats:
    """The margins of a block of standardised rows: exact, as `sums.gradients` finds them."""
    return np.asarray((block @ on_grid(weights * REACH)) * 2.0 ** -(BITS + WEIGHT_BITS))


def field(rows: Rows, meter: Meter, count: float, *, scaling: Fraction, bending: Fraction) -> Field:
    """Rows, ready for descent.

    Args:
        rows: As they were read; private.
        meter: Gives noise.
        count: About how many units there are, from an earlier answer.
        scaling: The share of the price for means and spreads.
        bending: The share for second moments.
    """
    scale = standard(rows, meter, scaling, count)
    near = scale.rows(rows)
    return Field(near, meter, scale, curvature(near, meter, bending, count, scale.length), count)


def what_rows_count(rows: Rows, squares: Floats, longest: float) -> Floats | None:
    """What each row's residual is multiplied with: less where it is long, and its part of its unit."""
    most = (longest * UNIT / REACH) ** 2
    counts = most / np.maximum(squares, most)
    shares = parts(rows)
    if shares is not None:
        return counts * (shares / 2.0**20)
    return counts if (counts < 1).any() else None
