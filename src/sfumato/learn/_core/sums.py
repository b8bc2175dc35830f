"""Exact sums over rows in which no unit weighs more than a bound: second moments, gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Total
from sfumato.learn._core.design import BITS, UNIT
from sfumato.learn._core.rows import BLOCK, Rows
from sfumato.numeric.balls import sqrt_up
from sfumato.numeric.exact import Rational, positive

__all__ = [
    "MOST_COLUMNS",
    "RESIDUAL_BITS",
    "WEIGHT_BITS",
    "Adding",
    "Residuals",
    "Then",
    "by_unit",
    "clipped",
    "cut",
    "gradients",
    "matrix",
    "moments",
    "on_grid",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Residuals: TypeAlias = Callable[[slice, Floats], Floats]
Then: TypeAlias = Callable[[slice, Floats, Floats], None]

RESIDUAL_BITS = 20
"""A residual is a whole multiple of 2**-20."""
WEIGHT_BITS = 16
"""A weight of a model, as rows are multiplied with it, is a whole multiple of 2**-16."""
MOST_COLUMNS = 1 << 10
"""What the squares of a row may add up to where gradients are taken."""
_HEAVIEST = 1 << 12  # and at most this large: products with a row of 2**10 columns stay below 2**53
_SHORTER = 1 - 2.0**-30  # more than floats can be off in a norm of 2**20 numbers
_LONGEST = 64  # gradients of 2**12 rows within this length add up below 2**53
_OFTEN = 1 << 9  # so many integers below 2**53 fit in 64 bits together


class Adding:
    """Integers that are added up block by block, exactly, whatever their sum is."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._near = np.zeros(shape, np.int64)
        self._far: NDArray[np.object_] | None = None
        self._added = 0

    def add(self, block: NDArray[Any]) -> None:
        """One more block, of integers below 2**53, as integers or as floats."""
        if self._added == _OFTEN:
            self._far, self._near, self._added = self._whole(), np.zeros_like(self._near), 0
        self._near += block.astype(np.int64)
        self._added += 1

    def _whole(self) -> NDArray[np.object_]:
        near = self._near.astype(object)
        return near if self._far is None else near + self._far

    @property
    def values(self) -> NDArray[Any]:
        """The sums: int64, or Python's integers where they may not fit."""
        return self._near if self._far is None else self._whole()


def moments(rows: Rows, bound: Rational | None = None, *, target: bool = False) -> Total:
    """The upper triangle of Σ v·vᵀ, where v is a row's coordinates, with the target last if asked.

    Args:
        rows: The private rows.
        bound: What the squares of a unit's coordinates may add up to, over all its rows; units with more
            count with all their coordinates shortened alike. If None, as much as one row can have.
        target: Whether the target is one more coordinate.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most `bound`, in L2, and where each row is a
        unit by about bound/√2. Proof: with w the unit's shortened rows, the norm of the upper triangle of
        Σ w·wᵀ is at most its Frobenius norm, which is at most Σ‖w‖² ≤ bound by the triangle inequality. Of
        one row, the triangle's squares add up to (‖w‖⁴ + Σwᵢ⁴)/2, where Σwᵢ⁴ is at most ‖w‖⁴, and at most
        ‖w‖², since no coordinate is beyond 1. Shortening rounds towards zero, which makes no coordinate
        larger, and follows from the unit's own rows. All sums are of integers, and exact: products are at
        most 2**28, and 2**12 of them are added up as floats.
    """
    most = rows.design.most + target
    allowed = Fraction(most) if bound is None else positive(bound, "bound")
    width = rows.design.width + target
    shortens = rows.units is not None or allowed < most
    found = None if shortens or target else rows.summed()
    if found is None:
        found = _moments(rows, allowed if shortens else None, width, target)
    length = allowed
    if rows.units is None:
        held = min(allowed, Fraction(most))
        length = Fraction(sqrt_up((held**2 + min(held**2, held)) / 2))
    return Total(found, length * UNIT**2, Fraction(1, UNIT**2))


def _moments(rows: Rows, bound: Fraction | None, width: int, target: bool) -> NDArray[Any]:
    """The upper triangle, with the rows of each unit shortened to a bound, if there is one."""
    total = Adding((width, width))
    factors = None if bound is None else _factors(rows, bound, target)
    room = np.empty((BLOCK, width))
    for part, block in rows.blocks():
        full = room[: len(block)]
        full[:, : block.shape[1]] = block
        if target and rows.target is not None:
            full[:, -1] = rows.target[part]
        if factors is not None:
            np.trunc(full * factors[part, None], out=full)
        total.add(full.T @ full)
    return np.asarray(total.values[np.triu_indices(width)])


def matrix(triangle: Floats, width: int) -> Floats:
    """The symmetric matrix of an upper triangle."""
    whole = np.zeros((width, width))
    whole[np.triu_indices(width)] = triangle
    return np.asarray(whole + np.triu(whole, 1).T)


def _factors(rows: Rows, allowed: Fraction, target: bool) -> Floats:
    """By what each row's coordinates are shortened, so that the squares of its unit stay within a sum."""
    squares = rows.squares()
    if target and rows.target is not None:
        squares = squares + np.asarray(rows.target, np.float64) ** 2
    if rows.units is not None and len(rows):
        starts = np.flatnonzero(np.r_[True, rows.units[1:] != rows.units[:-1]])
        # As integers: 2**20 rows of 2**10 columns add up beyond 2**53.
        whole = np.add.reduceat(squares.astype(np.int64), starts)
        squares = np.repeat(whole, np.diff(starts, append=len(squares))).astype(np.float64)
    most = float(allowed * UNIT**2)
    return np.where(squares > most, np.sqrt(most / np.maximum(squares, most)) * _SHORTER, 1.0)


def on_grid(weights: Floats) -> Floats:
    """Weights as rows are multiplied with them: whole multiples of 2**-16, none beyond ±4096; as integers.

    What is not a number becomes 0: weights come from noisy answers, and no step may fail on them.
    """
    held = np.clip(np.where(np.isnan(weights), 0.0, weights), -_HEAVIEST, _HEAVIEST)
    return np.asarray(np.rint(held * 2.0**WEIGHT_BITS))


def gradients(
    rows: Rows, weights: Floats, residuals: Residuals, bound: Rational, *, then: Then | None = None
) -> Total:
    """Σ x·rᵀ over all rows, where r are a row's residuals; a unit's part of it is shortened to a length.

    Args:
        rows: The private rows.
        weights: A column for each margin; public. They are put on a grid first.
        residuals: From the places of a block and its margins (exact, as floats in lengths) to its residuals
            (rows × columns, whole multiples of 2**-20 as integers): a function of each row by itself.
        bound: The L2 norm to which the part of each unit is shortened, all columns together.
        then: What else is made of each block on the way, from its places, its coordinates (which may be
            written to) and its margins.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most `bound` in L2, for any weights. Proof: each
        row's part is cut to it, and where a unit has several rows, their sum is again (`clipped`). Margins
        are exact, since each is a sum of at most 2**10 products of integers below 2**42, so that what a row
        gives follows from that row and the weights. Sums of integers are exact.
    """
    allowed = positive(bound, "bound")
    if allowed > _LONGEST:
        raise InvalidParameter(f"The length that gradients are cut to must be at most {_LONGEST}.")
    if rows.design.most > MOST_COLUMNS:
        raise InvalidParameter("A fit by gradients takes at most 1023 columns.")
    steps = on_grid(weights if weights.ndim == 2 else weights[:, None])
    scale = 2.0 ** -(BITS + WEIGHT_BITS)
    unit = 1 << (BITS + RESIDUAL_BITS)
    total = Adding((rows.design.width, steps.shape[1]))
    weighty = np.flatnonzero(steps.any(axis=1))
    few = 2 * len(weighty) < len(steps)  # as where weights begin at 0, and all margins are the intercept

    def pieces() -> Iterator[NDArray[Any]]:
        made = _inner if rows.units is None else _outer
        for part, block in rows.blocks():
            margins = block[:, weighty] @ steps[weighty] if few else block @ steps
            margins *= scale
            yield made(block, _held(residuals(part, margins), rows.squares_of(part, block), allowed))
            if then is not None:
                then(part, block, margins)

    if rows.units is None:
        for piece in pieces():
            total.add(piece)
    else:
        for units in by_unit(rows, pieces()):
            # However many rows a unit has, it adds no more than the bound.
            total.add(clipped(units, allowed * unit).sum(axis=0).reshape(rows.design.width, -1))
    return Total(total.values.ravel(), allowed * unit, Fraction(1, unit))


def cut(
    rows: Rows, lines: Callable[[slice, Floats], Integers], width: int, bound: Rational, bits: int
) -> Total:
    """Σ of a line for each row, where a unit's part of it is shortened to a length.

    Args:
        rows: The private rows.
        lines: From the places of a block and its coordinates to whole multiples of 2**-bits, none of them
            beyond 2**42: a function of each row by itself.
        width: How long a line is.
        bound: The L2 norm to which the part of each unit is shortened.
        bits: Says what a multiple is.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most `bound` in L2. Proof: `clipped`, of the sum
        of each unit's lines. Sums of integers are exact: a unit's 2**20 lines add up below 2**62, and what is
        shortened to at most 2**41 a unit adds up below 2**53 in a block.
    """
    allowed = positive(bound, "bound") * (1 << bits)
    if allowed > 1 << 41:
        raise InvalidParameter("The length that lines are cut to must be less.")
    total = Adding((width,))
    pieces = (lines(part, block) for part, block in rows.blocks())
    for units in pieces if rows.units is None else by_unit(rows, pieces):
        total.add(clipped(units, allowed).sum(axis=0))
    return Total(total.values, allowed, Fraction(1, 1 << bits))


def _held(found: Floats, squares: Floats, bound: Fraction) -> Floats:
    """Residuals shortened so that a row's own part, x·rᵀ, is no longer than the bound; whole again."""
    # ‖x·rᵀ‖ = ‖x‖·‖r‖, in units of 2**-34.
    most = float(bound) * _SHORTER * 2.0 ** (BITS + RESIDUAL_BITS)
    far = found[:, 0] ** 2 if found.shape[1] == 1 else np.einsum("ij,ij->i", found, found)
    far *= squares
    if far.max(initial=0) <= most * most:
        return found
    lengths = np.sqrt(far)
    return np.asarray(np.trunc(found * (most / np.maximum(lengths, most))[:, None]))


def _inner(block: Floats, found: Floats) -> Floats:
    """The sum of all rows' parts."""
    return np.asarray(block.T @ found)


def _outer(block: Floats, found: Floats) -> Integers:
    """Each row's part, x·rᵀ, as one line of integers."""
    return np.asarray((block[:, :, None] * found[:, None, :]).astype(np.int64).reshape(len(block), -1))


def by_unit(rows: Rows, pieces: Iterator[Integers]) -> Iterator[Integers]:
    """The sum of each unit's lines, a few units at a time; lines come in the order of the rows."""
    assert rows.units is not None
    start, carried, last = 0, None, None
    for piece in pieces:
        whose = rows.units[start : start + len(piece)]
        start += len(piece)
        begins = np.flatnonzero(np.r_[True, whose[1:] != whose[:-1]])
        sums = np.add.reduceat(piece, begins, axis=0)
        if carried is not None:
            if whose[0] == last:
                sums[0] += carried
            else:
                yield carried[None]
        last, carried = whose[-1], sums[-1].copy()
        if len(sums) > 1:
            yield sums[:-1]
    if carried is not None:
        yield carried[None]


def clipped(lines: Integers, bound: Fraction) -> Integers:
    """Lines of integers, each shortened to an L2 norm of at most a bound and rounded towards zero.

    Privacy:
        Claim: the norm of each result is at most `bound`; each follows from its own line. Proof: the norm is
        computed with a relative error below 2**-32 for up to 2**20 numbers, what is longer than
        bound·(1 − 2**-30) by that figure is scaled to it, and rounding towards zero makes no number larger.
    """
    floats = lines.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", floats, floats))
    most = float(bound) * _SHORTER
    short = norms <= most
    if short.all():
        return lines
    factors = np.divide(most, norms, out=np.ones_like(norms), where=~short)
    cut = np.trunc(floats * factors[:, None]).astype(np.int64)
    return np.where(short[:, None], lines, cut)
