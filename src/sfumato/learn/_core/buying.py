"""Bounds that a fit buys: how large the numbers of each column are, noisily, and what is chosen from that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import whole
from sfumato.learn._core.records import Records
from sfumato.learn._core.rows import Rows
from sfumato.numeric.balls import sqrt_up
from sfumato.plan.questions.autobounds import choose_bounds
from sfumato.plan.questions.unbounded import FALLBACK, GRID

__all__ = ["SHARE", "Bought", "BoundsPaid", "bounds_price", "buy", "sizes"]

Integers: TypeAlias = NDArray[np.int64]

SHARE = Fraction(1, 10)
"""The part of a fit's price that goes into finding bounds, where any are wanted."""
_STEP = Fraction(1, 1 << 12)  # a unit of several rows counts for parts of a row
_MOST = 1 << 20  # rows of a unit in a cell: squares over 2**10 columns stay below 2**53
_SHORTER = 1 - 2.0**-30  # more than floats can be off in a norm


@dataclass(frozen=True, slots=True)
class BoundsPaid:
    """What bounds cost.

    Attributes:
        columns: Whose bounds are bought.
        share: The part of the fit's price that pays for all of them together.
        rho: That part.
    """

    columns: tuple[str, ...]
    share: Fraction
    rho: Fraction

    def __str__(self) -> str:
        """In a sentence."""
        many = len(self.columns)
        named = ", ".join(name[:60] for name in self.columns[:5]) + (", …" if many > 5 else "")
        return (
            f"Bounds of {many} column{'s' * (many > 1)} ({named}) are bought with {self.share} of the fit's "
            f"price: rho {float(self.rho):.4g} of {float(self.rho / self.share):.4g}."
        )


def bounds_price(rho: Fraction, columns: Sequence[str]) -> BoundsPaid | None:
    """What the bounds of these columns cost in a fit of so much; None: there is none to buy."""
    return BoundsPaid(tuple(columns), SHARE, SHARE * rho) if columns else None


class Bought(NamedTuple):
    """Rows between bounds that were bought.

    Attributes:
        rows: As a fit takes them.
        target: The target's column, if its bounds were among them.
        paid: What they cost.
        meter: For the rest of the fit.
    """

    rows: Rows
    target: Number | None
    paid: BoundsPaid
    meter: Meter


def buy(records: Records, meter: Meter) -> Bought:
    """The rows between bounds that `SHARE` of the price finds.

    Privacy:
        Claim: the bounds are one Gaussian measurement of `sizes`, for `SHARE` of the meter's price, and
        post-processing of it; the rest of the fit has the rest. `choose_bounds` is told a Laplace scale
        of b = sigma/√2: its E exp(uX) = 1/(1 − b²u²) is above the Gaussian's exp(sigma²u²/2), so that
        what it takes for data is noise with no more than the probability that it states.
    """
    wanted = [records.design.columns[at] for at in records.design.unbought]
    values = [records.column(at) for at in records.design.unbought]
    if records.target_column is not None and records.target is not None:
        wanted, values = [*wanted, records.target_column], [*values, records.target]
    total = sizes(values, records.units)
    noisy = meter.noisy(total, SHARE).reshape(len(wanted), GRID.cells)
    scale = meter.sigma(total.sensitivity * total.step, SHARE) / math.sqrt(2)
    rest = meter.part(1 - SHARE)
    spent = math.sqrt(2) / rest.sigma(1, Fraction(1, len(wanted)))
    bounds = list[Number]()
    for column, counts in zip(wanted, noisy, strict=True):
        best = choose_bounds(counts, scale, GRID, epsilon=spent, fallback=FALLBACK, goal="mean")
        bounds.append(Number(column.name, best.lower, best.upper))
    columns = list(records.design.columns)
    for at, found in zip(records.design.unbought, bounds, strict=False):
        columns[at] = found
    design, target, last = records.design.with_columns(columns), records.target, None
    if records.target_column is not None:
        last = replace(bounds[-1], name=records.target_column.name)
        target = whole(records.target, last)
    rows = Rows(design, design.integers(records.columns), target, records.units, exchange=records.exchange)
    paid = bounds_price(meter.rho, [column.name for column in wanted])
    assert paid is not None
    return Bought(rows, last, paid, rest)


def sizes(columns: Sequence[NDArray[Any]], units: NDArray[np.integer] | None) -> Total:
    """How many rows have a number of about each size, one public grid after the other.

    Args:
        columns: The numbers; NaN is in no cell.
        units: Whose each row is, where units have several.

    Privacy:
        Claim: adding or removing a unit moves all counts together by at most √columns, in L2. Proof: a row
        is in at most one cell of each column. Where units have several rows, a unit's counts are shortened
        to that norm, all alike, and rounded towards zero to a multiple of 2**-12; the squares of its counts
        are integers whose sum is below 2**53, so that the factor follows from its own rows.
    """
    cells, length = GRID.cells, Fraction(sqrt_up(Fraction(len(columns))))
    if units is None:
        counts = [_counted(GRID.cell_of(column)) for column in columns]
        return Total(np.concatenate(counts), length, Fraction(1))
    whose = np.unique(units, return_inverse=True)[1]
    many = int(whose.max()) + 1 if len(whose) else 0
    kept, squares = list[tuple[Integers, Integers]](), np.zeros(many)
    for column in columns:
        cell = GRID.cell_of(column)
        placed = cell >= 0
        pairs, times = np.unique(whose[placed] * cells + cell[placed], return_counts=True)
        times = np.minimum(times, _MOST)
        squares += np.bincount(pairs // cells, weights=times.astype(np.float64) ** 2, minlength=many)
        kept.append((pairs, times))
    scales = _factors(squares, len(columns)) / float(_STEP)
    sums = np.zeros((len(columns), cells), np.int64)
    for at, (pairs, times) in enumerate(kept):
        np.add.at(sums[at], pairs % cells, np.trunc(times * scales[pairs // cells]).astype(np.int64))
    return Total(sums.ravel(), length / _STEP, _STEP)


def _counted(cell: Integers) -> Integers:
    return np.asarray(np.bincount(cell[cell >= 0], minlength=GRID.cells), np.int64)


def _factors(squares: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """By what each unit's counts are shortened, so that their squares add up to no more than so much."""
    long = squares > most
    factors = np.sqrt(np.divide(most, squares, out=np.ones_like(squares), where=long))
    return np.where(long, factors * _SHORTER, 1.0)
