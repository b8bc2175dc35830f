"""Numbers within a public range: what randomizers of numbers have in common."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import Rational, as_fraction, positive, show
from sfumato.numeric.private_values import floats_of

__all__ = ["OTHERS", "in_blocks", "not_idle", "priced", "ranged", "shares"]

Floats: TypeAlias = NDArray[np.float64]

OTHERS = "A report is not one that this randomizer makes."
_LARGEST = 50
_LEAST = Fraction(1, 10**50)
_BLOCK = 1 << 18  # people at a time: what is drawn for them fits into a few megabytes
_FLAT = "Values are a flat list or array: one number for each person."


def not_idle(epsilon: Fraction) -> Fraction:
    """An epsilon at which a report says something that floats can still tell.

    Raises:
        InvalidParameter: below 1e-50.
    """
    if epsilon < _LEAST:
        raise InvalidParameter("epsilon below 1e-50 says nothing that could be estimated from: send nothing.")
    return epsilon


def priced(epsilon: Rational) -> Fraction:
    """An epsilon that hides something."""
    price = not_idle(positive(epsilon, "epsilon"))
    if price > _LARGEST:
        raise InvalidParameter(f"epsilon above {_LARGEST} is as good as the truth: it hides nothing.")
    return price


def ranged(lower: Rational, upper: Rational) -> tuple[Fraction, Fraction]:
    """The ends of a range."""
    low, high = as_fraction(lower, "lower"), as_fraction(upper, "upper")
    if not low < high:
        raise InvalidParameter(f"lower must be below upper, not {show(low)} and {show(high)}.")
    if max(abs(low), abs(high)) > 10**300 or high - low < Fraction(1, 10**300):
        raise InvalidParameter("lower and upper must lie within ±1e300 and at least 1e-300 apart.")
    return low, high


def shares(values: ArrayLike, lower: Fraction, upper: Fraction) -> Floats:
    """Numbers as parts of the range, from 0 to 1; each is read by itself.

    Raises:
        InvalidValue: for anything but a flat array of numbers within the range; no value is shown.
    """
    outside = (
        f"A value is not a number from {show(lower)} to {show(upper)}; clip it, or leave it out before it is "
        "randomised."
    )
    numbers = floats_of(values, flat=_FLAT, other=outside)
    if not numbers.size:
        return numbers
    low, high = float(lower), float(upper)
    if not (numbers.min() >= low and numbers.max() <= high):  # both carry a NaN along
        raise InvalidValue(outside)
    parts = (numbers / 2 - low / 2) / float((upper - lower) / 2)
    return np.clip(parts, 0.0, 1.0)


def in_blocks(
    draw: Callable[[Any], NDArray[Any]], parts: NDArray[Any], kind: np.dtype[Any], *, step: int = _BLOCK
) -> NDArray[Any]:
    """What is drawn for the parts, so many of them at a time."""
    out = np.empty(parts.size, kind)
    for start in range(0, parts.size, step):
        out[start : start + step] = draw(parts[start : start + step])
    return out
