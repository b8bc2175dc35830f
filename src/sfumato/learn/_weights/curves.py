"""Curves as tables of integers: what a row's margin becomes does not depend on the rows beside it."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.sums import RESIDUAL_BITS

__all__ = ["chances", "decay", "growth", "logistic"]

Floats: TypeAlias = NDArray[np.float64]

_GRID = 1 << 10  # margins are looked up at multiples of 2**-10
_HIGH = 8  # growth is looked up within ±8
_FAR = 16  # and no farther than this, where every curve is flat at 2**-20


@cache
def _logistic() -> Floats:
    margins = np.arange(-_FAR * _GRID, _FAR * _GRID + 1) / _GRID
    return np.asarray(np.rint(2.0**RESIDUAL_BITS / (1 + np.exp(-margins))))


@cache
def _decay() -> Floats:
    return np.asarray(np.rint(2.0**RESIDUAL_BITS * np.exp(-np.arange(_FAR * _GRID + 1) / _GRID)))


@cache
def _growth() -> Floats:
    return np.asarray(
        np.rint(2.0**RESIDUAL_BITS * np.exp(np.arange(-_HIGH * _GRID, _HIGH * _GRID + 1) / _GRID))
    )


def logistic(margins: Floats) -> Floats:
    """1/(1 + e^−m) in whole multiples of 2**-20.

    Privacy:
        Claim: each result follows from its own margin alone, whatever library adds and multiplies. Proof: a
        product with a power of two, a rounding and a comparison are fixed by IEEE 754; the rest is a table.
    """
    place = _nearest(margins, _GRID, -_FAR * _GRID)
    place += _FAR * _GRID
    return _logistic().take(place.astype(np.intp))


def decay(margins: Floats) -> Floats:
    """e^m for m ≤ 0, and 1 beyond, in whole multiples of 2**-20; a table as `logistic`."""
    return _decay().take(_nearest(margins, -_GRID, 0).astype(np.intp))


def _nearest(margins: Floats, rate: int, least: int) -> Floats:
    """Margins times a power of two, rounded, and cut where tables end."""
    place = margins * rate
    np.rint(place, out=place)
    np.maximum(place, least, out=place)
    return np.minimum(place, _FAR * _GRID, out=place)


def growth(margins: Floats) -> Floats:
    """e^m for m between −8 and 8, and no less or more beyond, in multiples of 2**-20; as `logistic`."""
    place = np.clip(np.rint(margins * _GRID), -_HIGH * _GRID, _HIGH * _GRID) + _HIGH * _GRID
    return np.asarray(_growth()[place.astype(np.intp)])


def chances(margins: Floats) -> Floats:
    """Of each row e^m divided by its sum over the row, in whole multiples of 2**-20, rounded down.

    Privacy:
        Claim: as `logistic`, a row at a time: the largest of a row is one of its numbers, the sum of integers
        is exact, and a quotient of two floats is fixed by IEEE 754.
    """
    grown = decay(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(np.floor(grown / grown.sum(axis=1, keepdims=True) * 2.0**RESIDUAL_BITS))
