"""Ranks of the cells of weighted histograms, exactly: what selections of quantiles toss their coins by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import Rational, as_fraction

__all__ = [
    "FINEST",
    "Limbs",
    "distances",
    "heads_of",
    "is_outer",
    "levels_of",
    "places_among",
    "side_of",
    "target",
    "targets_of",
    "unit_of",
    "weights_of",
]

_LIMB = 31  # distances have two limbs, so that their products with a denominator stay within 64 bits
FINEST = 2**30  # denominators of levels
_MASK = 2**_LIMB - 1
_WIDE = 2**61  # totals from here on are summed as Python integers
_NARROW = 2**62  # ranks below this, in units of a level, are machine integers
_FAR = 2**62  # in high limbs: nothing is further away
# Levels this far out aim a guard inside the extreme, and pay for scores that move by the whole weight.
_OUTER = Fraction(1, 20)

Limbs = tuple[NDArray[np.int64], NDArray[np.int64]]


def levels_of(levels: Sequence[Rational]) -> tuple[Fraction, ...]:
    if isinstance(levels, str | bytes) or not isinstance(levels, Sequence | np.ndarray):
        raise InvalidParameter("levels must be a list of quantile levels, such as [0.25, 0.5, 0.75].")
    exact = tuple(as_fraction(level, "a level") for level in levels)
    if not exact or not all(0 <= level <= 1 and level.denominator <= FINEST for level in exact):
        raise InvalidParameter(
            "levels must be at least one fraction from 0 to 1, with denominators of at most 2**30."
        )
    return exact


def places_among(levels: Sequence[Fraction], distinct: Sequence[Fraction]) -> list[int]:
    """The place of each level among the distinct ones; by hash, as comparing each with all is quadratic."""
    place = {level: index for index, level in enumerate(distinct)}
    return [place[level] for level in levels]


def is_outer(level: Fraction) -> bool:
    return min(level, 1 - level) <= _OUTER


def side_of(level: Fraction) -> int:
    """−1 for levels up to 1/20, 1 for those from 19/20 on, 0 between."""
    return 0 if not is_outer(level) else (-1 if level <= _OUTER else 1)


def unit_of(level: Fraction) -> int:
    """Distances for this level are whole multiples of 1/this."""
    return math.lcm(level.denominator, 2)


def target(level: Fraction, side: int, n: int, guard: int) -> int:
    """The rank T that a level aims at, times `unit_of(level)`.

    Args:
        level: The part of the weight that lies before it.
        side: −1 for a level that aims at least a guard above the least, 1 for one that aims at most a guard
            below the greatest, 0 for an inner level.
        n: The whole weight.
        guard: How far inside an extreme outer levels aim.
    """
    unit = unit_of(level)
    plain = level.numerator * (unit // level.denominator) * n
    if side < 0:
        return max(plain, min(unit // 2 * n, unit * guard))
    if side > 0:
        return min(plain, max(unit // 2 * n, unit * (n - guard)))
    return plain


def targets_of(level: Fraction, side: int, totals: Sequence[int], guard: int) -> NDArray[Any]:
    """`target` for groups of these weights: int64 where all ranks of the level fit, else Python integers."""
    narrow = unit_of(level) * max(totals, default=0) < _NARROW
    return np.array([target(level, side, n, guard) for n in totals], np.int64 if narrow else object)


def distances(targets: NDArray[Any], unit: int, below: NDArray[Any], upto: NDArray[Any]) -> Limbs:
    """max(0, below − T, T − upto) in units of 1/`unit`, as limbs of 31 bits; exact.

    Args:
        targets: T times `unit`, those of `targets_of` in a shape that fits the others.
        unit: That of the level.
        below: The weight before each cell.
        upto: The weight up to it and with it.
    """
    if targets.dtype != object:
        far = np.maximum(unit * below - targets, targets - unit * upto)
        far = np.maximum(far, 0).astype(np.int64, copy=False)
        return far >> _LIMB, far & _MASK
    whole, rest = (targets >> _LIMB).astype(upto.dtype), (targets & _MASK).astype(upto.dtype)
    over = _carried(unit * (below >> _LIMB) - whole, unit * (below & _MASK) - rest)
    under = _carried(whole - unit * (upto >> _LIMB), rest - unit * (upto & _MASK))
    # below ≤ upto: not both are positive.
    high = np.where(over[0] >= 0, over[0], np.where(under[0] >= 0, under[0], 0))
    low = np.where(over[0] >= 0, over[1], np.where(under[0] >= 0, under[1], 0))
    return np.minimum(high, _FAR).astype(np.int64), low.astype(np.int64)


def heads_of(limbs: Limbs, rate: Fraction) -> NDArray[np.bool_]:
    """Which coins of bias exp(−rate·distance) show heads, flat; those of distance 0 do."""
    high, low = limbs
    heads = np.ones(high.size, np.bool_)
    # exp(−r·(high·2**31 + low)) is the chance of two coins both showing heads.
    for limb, scale in ((high.ravel(), rate * 2**_LIMB), (low.ravel(), rate)):
        tossed = np.flatnonzero(heads)
        # The zero at the end is the distance that no other is below: gaps are then distances.
        scores = np.zeros(tossed.size + 1, np.int64)
        np.negative(limb if tossed.size == limb.size else limb[tossed], out=scores[:-1])
        heads[tossed] = random.flip(scores, scale)[:-1]
    return heads


def _carried(high: NDArray[Any], low: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """high·2**31 + low with low brought into 0 … 2**31 − 1; the sign is then that of the high limb."""
    return high + (low >> _LIMB), low & _MASK


def weights_of(weights: Any, dimensions: int) -> NDArray[Any]:
    """Weights as int64 where their totals surely fit, otherwise as Python integers; the law is the same."""
    try:
        typed = isinstance(weights, np.ndarray) or not isinstance(weights, Sequence)
        # A list is one of objects: each weight is taken by itself, whatever integers NumPy would make of all.
        array = np.asarray(weights) if typed else np.array(weights, dtype=object)
    except (ValueError, OverflowError):
        array = np.empty(0, np.float64)
    if array.dtype == object and not all(map(_is_weight, array.flat)):
        array = np.empty(0, np.float64)
    if array.ndim != dimensions or array.shape[-1] == 0 or array.dtype.kind not in "iuO":
        raise InvalidValue("Weights must be an array of integers with at least one cell.")
    if array.size and array.min() < 0:
        raise InvalidValue("Weights must not be negative.")
    if array.size and _heaviest(array) >= _WIDE:
        return np.array([int(x) for x in array.flat], object).reshape(array.shape)
    return array.astype(np.int64, copy=False)


def _heaviest(array: NDArray[Any]) -> float:
    """About the largest total of a group; infinite beyond all floats."""
    try:
        return float(array.sum(axis=-1, dtype=np.float64).max())
    except OverflowError:
        return math.inf


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
