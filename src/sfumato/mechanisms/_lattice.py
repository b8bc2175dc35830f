"""Float mechanisms whose noise is an integer law on the grid: rounding inputs and drawing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._grid import Grid, bounded_add, bounded_sum
from sfumato.mechanisms._numbers import numbers_of
from sfumato.numeric.exact import as_integer

__all__ = ["BITS", "Noise", "changed", "checked", "fold", "is_number", "release_on", "shift_of", "signed"]

BITS = 20
"""The shortest length that matters is at least 2**20 grid units, so rounding costs a millionth of it."""

Noise: TypeAlias = Callable[[int], NDArray[np.int64]]
"""Gives that many independent draws."""

_LONGEST = 2**50  # the longest scale in grid units: 700 of them still fit below the clamp at 2**61


def changed(coordinates: int | None) -> int:
    """How many coordinates may differ between neighbours: one where only single numbers are released."""
    return 1 if coordinates is None else as_integer(coordinates, "coordinates")


def checked(scale: Fraction) -> Fraction:
    """The scale in grid units, refused where noise would not fit beside the values."""
    if scale > _LONGEST:
        raise InvalidParameter(
            "epsilon is too small beside the sensitivity: below about 1e-9 it is not supported."
        )
    return scale


def shift_of(grid: Grid, sensitivity: Fraction) -> int:
    """The most grid units by which a rounded number moves when the number moves by `sensitivity`: ⌈Δ/Γ⌉."""
    return math.ceil(grid.units(sensitivity))


def is_number(value: Any) -> bool:
    """Whether it is one number rather than an array (a truth value counts, to be refused later)."""
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


def release_on(grid: Grid, value: Any, noise: Noise, *, arrays: bool) -> float | NDArray[np.float64]:
    """The value rounded to the grid, plus noise, as floats; arrays only if the price was set for them.

    Raises:
        InvalidValue: for values that are not finite numbers, and for arrays that were not priced.
    """
    if is_number(value):
        return bounded_add(grid.nearest(value), int(noise(1)[0])) * grid.step
    array = priced(value, arrays=arrays)
    if not array.size:
        return np.zeros(array.shape)
    return grid.floats(bounded_sum(grid.nearest_array(array), noise(array.size))).reshape(array.shape)


def priced(value: Any, *, arrays: bool) -> NDArray[Any]:
    """The array to release, refused if it is one and no price was set for arrays."""
    array = numbers_of(value)
    if array.size > 1 and not arrays:
        raise InvalidValue(
            "This mechanism was priced for single numbers: for arrays, construct it with coordinates=… "
            "(in how many coordinates neighbours may differ)."
        )
    return array


def fold(rate: Fraction, length: int, size: int) -> NDArray[np.int64]:
    """Draws from P(m) ∝ exp(−rate·m) on 0, …, length − 1, exactly.

    A geometric draw modulo `length` has just that law, since it forgets where it started. Draws beyond the
    last whole multiple below 2**63 − 1, where the sampler saturates, are made again.
    """
    limit = (2**63 - 1) // length * length
    draws = random.geometric(rate, size)
    while (beyond := draws >= limit).any():
        draws[beyond] = random.geometric(rate, int(beyond.sum()))
    draws %= length
    return draws


def signed(magnitudes: Noise, size: int) -> NDArray[np.int64]:
    """Draws with P(k) ∝ the weight of |k|: a fair sign, and minus zero drawn again."""
    draws = magnitudes(size)
    negative = random.integers(2, size).astype(np.bool_)
    while (again := negative & (draws == 0)).any():
        count = int(again.sum())
        draws[again] = magnitudes(count)
        negative[again] = random.integers(2, count).astype(np.bool_)
    np.negative(draws, out=draws, where=negative)
    return draws
