"""Scores on a public grid: what every selection mechanism compares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._numbers import numbers_of, unusable
from sfumato.numeric.exact import floor_log2

__all__ = [
    "CEILING",
    "Number",
    "ScoreGrid",
    "drawable",
    "exact_number",
    "nearest",
    "rate_of",
]

Number: TypeAlias = int | float | np.integer | np.floating
"""A private number as mechanisms take it: a float means its exact binary value."""

CEILING = 2**53
"""Candidates that lie this many grid units below the best are treated as lying exactly this far below it."""

_FINITE = "Numbers must be finite: replace others by a public rule, or leave a candidate out by one."
# The grid step is 2**-20 to 2**-21 of the sensitivity: rounding costs less than a millionth of the rate.
_BITS = 20
# Floats are clamped to this power of two of the grid, so that scaling cannot overflow; on grids finer than
# 2**_TINY the clamp can touch 64-bit integers, which then take the same path, so that the type of the
# scores never shows.
_CLAMP = 1000
_TINY = 64 - _CLAMP
# The largest scale that `random` draws in 64-bit integers.
_WIDEST = 2**56


def drawable(scale: Fraction) -> Fraction:
    """A scale of noise in grid units, refused at construction if it could not be drawn."""
    if scale > _WIDEST:
        raise InvalidParameter("epsilon is too small: noise so large beside the sensitivity cannot be drawn.")
    return scale


def nearest(exact: Fraction) -> float:
    """The nearest finite float."""
    try:
        return float(exact)
    except OverflowError:
        return sys.float_info.max if exact > 0 else -sys.float_info.max


@dataclass(frozen=True, slots=True)
class ScoreGrid:
    """The grid 2**exponent on which scores of a given sensitivity are compared, and their sensitivity there.

    Privacy:
        If each score moves by at most Δ between neighbours, each rounded score moves by at most
        s = floor(Δ/γ) + 1 grid units: for |x − y| ≤ Δ, floor(x/γ) − floor(y/γ) is an integer below Δ/γ + 1.
        The bound even holds for every change below sγ, which is more than Δ: a score that float arithmetic
        left an ulp or so beyond Δ is still covered, as long as that error is below sγ − Δ (about 2**-21·Δ
        on average, but only what Δ/γ lacks to the next integer). All scores of a monotone family still move
        one way.

        `relative` gives the scores as v − M, M the best, cut off at −`CEILING`; that is the score
        vector max(v, M − CEILING) up to a common shift, to which every mechanism here is blind. M is a
        maximum of s-sensitive scores, hence s-sensitive, and so is the greater of two s-sensitive (and
        equally directed) numbers: the cut keeps both the sensitivity and the monotonicity.

        The step depends on Δ alone, never on the scores or their type.
    """

    exponent: int
    sensitivity: int

    @classmethod
    def of(cls, sensitivity: Fraction) -> ScoreGrid:
        """The grid for scores of this (public) sensitivity."""
        exponent = floor_log2(sensitivity) - _BITS
        return cls(exponent, sensitivity // _step(exponent) + 1)

    @property
    def step(self) -> Fraction:
        """The grid step γ."""
        return _step(self.exponent)

    def relative(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Each candidate's score in grid units relative to the best, 0 down to −`CEILING`; a fresh array.

        Exact for every finite input: the difference of two integers held as floats is exact whenever it is
        below 2**53, and rounds to at least 2**53 otherwise, where it is cut off anyway.
        """
        array = _numbers(scores, "scores")
        if array.ndim != 1 or array.size == 0:
            raise InvalidValue("Scores must be a flat array with a score for each of at least one candidate.")
        if array.dtype.kind == "O":
            return self._exact_relative(array)
        if array.dtype.kind == "f" or self.exponent < _TINY:
            return self._float_relative(array)
        return self._integer_relative(array)

    def level(self, value: Number) -> int:
        """One number in whole grid units, rounded down; of any size."""
        numerator, denominator = exact_number(value).as_integer_ratio()
        if self.exponent < 0:
            return (numerator << -self.exponent) // denominator
        return numerator // (denominator << self.exponent)

    def levels(self, values: ArrayLike | Sequence[Number]) -> NDArray[np.int64] | list[int]:
        """Numbers in whole grid units, rounded down: int64 where all of them fit with room to spare."""
        array = _numbers(values, "values")
        if array.ndim != 1:
            raise InvalidValue("Values must be a one-dimensional sequence of numbers.")
        if array.size == 0:
            return np.empty(0, np.int64)
        if array.dtype.kind == "O":
            return [self.level(x) for x in array.tolist()]
        if array.dtype.kind != "f":
            return self._integer_levels(array)
        scaled, least, most = self._scaled(array)
        if max(most, -least) < CEILING:
            return scaled.astype(np.int64)
        return [self.level(x) for x in array.tolist()]

    def _scaled(self, array: NDArray[Any]) -> tuple[NDArray[np.float64], float, float]:
        """The levels of float scores as floats, their least and their greatest."""
        scores = array.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = scores * 2.0**-self.exponent
        least, most = float(scaled.min()), float(scaled.max())  # both carry a NaN along
        usual = -(2.0**_CLAMP) <= least <= most <= 2.0**_CLAMP and self.exponent <= 0
        if not usual:
            if not np.isfinite(scores).all():
                raise InvalidValue(_FINITE)
            np.clip(scaled, -(2.0**_CLAMP), 2.0**_CLAMP, out=scaled)
        np.floor(scaled, out=scaled)
        if usual:
            return scaled, float(np.floor(least)), float(np.floor(most))
        scaled[(scores < 0) & (scaled == 0)] = -1.0  # tiny negative scores must not vanish by underflow
        return scaled, float(scaled.min()), float(scaled.max())

    def _exact_relative(self, array: NDArray[Any]) -> NDArray[np.int64]:
        """For numbers that no array holds together: the same, with Python's integers."""
        far = 2**_CLAMP
        levels = [max(-far, min(far, self.level(x))) for x in array.tolist()]
        best = max(levels)
        return np.array([max(level - best, -CEILING) for level in levels], np.int64)

    def _float_relative(self, array: NDArray[Any]) -> NDArray[np.int64]:
        scaled, least, most = self._scaled(array)
        scaled -= most
        if least - most < -CEILING:
            np.maximum(scaled, -float(CEILING), out=scaled)
        return scaled.astype(np.int64)

    def _integer_relative(self, array: NDArray[Any]) -> NDArray[np.int64]:
        wide = self._coarse(array)
        # The distance of two int64 (or two uint64) is below 2**64: modular subtraction gives it exactly.
        gaps = wide.max().astype(np.uint64) - wide.astype(np.uint64)
        # On a grid finer than 2**-53 any distance at all reaches the ceiling.
        shift = min(max(-self.exponent, 0), 53)
        capped: NDArray[np.int64] = np.minimum(gaps, np.uint64(CEILING >> shift)).astype(np.int64)
        return capped * -(1 << shift)

    def _integer_levels(self, array: NDArray[Any]) -> NDArray[np.int64] | list[int]:
        largest = max(int(array.max()), -int(array.min()))
        if self.exponent >= 0 and largest >> self.exponent < CEILING:
            return self._coarse(array).astype(np.int64)
        if self.exponent < 0 and largest << -self.exponent < CEILING:
            return array.astype(np.int64) << -self.exponent
        return [self.level(x) for x in array.tolist()]

    def _coarse(self, array: NDArray[Any]) -> NDArray[Any]:
        """Integers in units of a grid of whole numbers, rounded down; on a finer one as they are."""
        wide = array if array.dtype == np.uint64 else array.astype(np.int64, copy=False)
        if self.exponent > 0:
            wide = wide >> wide.dtype.type(min(self.exponent, 63))
            if self.exponent > 63:
                wide = wide >> wide.dtype.type(1)  # in two steps, as no shift goes beyond the width
        return wide


def _step(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def exact_number(value: Number) -> int | float:
    """A private number as a Python int or float, the same value exactly.

    Raises:
        InvalidValue: for anything that is not a finite number of at most 64 bits (or a Python int of any
            size).
    """
    if isinstance(value, bool | np.bool_ | int | np.integer) and not isinstance(value, np.timedelta64):
        return int(value)
    if isinstance(value, np.floating) and value.dtype.itemsize <= 8:
        value = float(value)
    if not isinstance(value, float):
        raise unusable(value)
    if not np.isfinite(value):
        raise InvalidValue(_FINITE)
    return value


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Numbers as an array that holds each of them exactly; truth values count as 0 and 1."""
    array = numbers_of(values, truths=True)
    if not array.ndim:
        raise InvalidValue(f"The {name} must be a flat array of numbers.")
    return array


def rate_of(epsilon: Fraction, grid: ScoreGrid, *, monotone: bool) -> Fraction:
    """The rate r of exp(r·score), in grid units, that spends ε: ε/s for monotone scores, else ε/(2s)."""
    return epsilon / (grid.sensitivity if monotone else 2 * grid.sensitivity)
