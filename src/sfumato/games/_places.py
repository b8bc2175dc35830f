"""Places as arrays, and what every open set of them is worth to every type, in whole units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter

__all__ = [
    "CHUNK",
    "UNIT",
    "Floats",
    "Integers",
    "distances",
    "keys",
    "points_of",
    "rows_of",
    "span_of",
    "subsets",
    "utilities",
]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

UNIT = 2**20
"""Utilities are whole multiples of 1/UNIT, rounded toward zero, so that sums and sensitivities are exact."""

CHUNK = 1 << 21
"""How many utilities are in memory at once."""

_SEARCH = 100_000_000  # utilities up to which the sensitivity is searched over every outcome


def points_of(places: ArrayLike, name: str) -> Floats:
    """Distinct finite places, (m,) on the line or (m, 2) in the plane; read-only."""
    try:
        # Adding zero turns −0 into 0, so that equal places are equal.
        points = np.array(places, np.float64) + 0.0
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(
            f"{name} must be numbers (the line) or pairs of numbers (the plane)."
        ) from None
    if points.size == 0:
        raise InvalidParameter(f"{name} is empty: list at least one place.")
    if points.ndim not in (1, 2) or (points.ndim == 2 and points.shape[1] != 2):
        raise InvalidParameter(f"{name} must be numbers (the line) or pairs of numbers (the plane).")
    if not np.isfinite(points).all() or np.abs(points).max() > 1e100:
        raise InvalidParameter(f"{name} must be finite places, of at most 1e100.")
    if len(np.unique(keys(points))) != len(points):
        raise InvalidParameter(f"{name} lists a place twice: list each once.")
    points.flags.writeable = False
    return points


def keys(points: Floats) -> NDArray[Any]:
    """Places as numbers that sort and compare: complex ones in the plane."""
    points = points + 0.0
    return points if points.ndim == 1 else points[:, 0] + 1j * points[:, 1]


def distances(first: Floats, second: Floats) -> Floats:
    """How far each of the first places is from each of the second."""
    if first.ndim == 1:
        return np.abs(first[:, None] - second[None, :])
    return np.hypot(first[:, None, 0] - second[None, :, 0], first[:, None, 1] - second[None, :, 1])


def utilities(types: Floats, sites: Floats) -> Integers:
    """What each single site (columns) is worth to each type (rows), in units; read-only."""
    apart = distances(types, sites)
    widest = apart.max()
    if widest == 0:
        raise InvalidParameter("There is one place and nothing to choose: list at least two sites or types.")
    # Whatever the last bit of a float is: a public table of integers, on which the sensitivity is exact.
    near: Integers = np.floor((1 - apart / widest) * UNIT).astype(np.int64)
    near.flags.writeable = False
    return near


def subsets(sites: int, size: int) -> NDArray[np.int32]:
    """Every set of `size` sites as a row of indices, in lexicographic order."""
    if size == 1:
        return np.arange(sites, dtype=np.int32)[:, None]
    if size == 2:
        return np.stack(np.triu_indices(sites, 1), axis=1).astype(np.int32)
    flat = itertools.chain.from_iterable(itertools.combinations(range(sites), size))
    return np.fromiter(flat, np.int32, math.comb(sites, size) * size).reshape(-1, size)


def rows_of(near: Integers, outcomes: NDArray[np.int32]) -> Iterator[Integers]:
    """The utility of every type (columns) in a run of outcomes (rows); `near` has a row for each site."""
    step = max(1, CHUNK // near.shape[1])
    for start in range(0, len(outcomes), step):
        part = outcomes[start : start + step]
        best = near[part[:, 0]]
        for column in range(1, part.shape[1]):
            np.maximum(best, near[part[:, column]], out=best)
        yield best


def span_of(near: Integers, outcomes: NDArray[np.int32] | None) -> int:
    """The most that one exchange of a type moves the score of one outcome."""
    single = int((near.max(axis=0) - near.min(axis=0)).max())
    if outcomes is None or outcomes.shape[1] == 1 or len(outcomes) * len(near) > _SEARCH:
        return single  # a bound for every set: a maximum moves no more than its parts
    by_site = np.ascontiguousarray(near.T)
    return max(int((part.max(axis=1) - part.min(axis=1)).max()) for part in rows_of(by_site, outcomes))
