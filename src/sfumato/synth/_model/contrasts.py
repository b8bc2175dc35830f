"""Counts as contrasts: what a marginal says beyond its smaller ones, in whole numbers, and back. All public.

Along a column of n cells the contrasts of counts y are w_k = y_0 + … + y_{k−1} − k·y_k for k = 1 … n−1; along
several columns they are taken one after the other. Divided by √(k(k+1)) for each column they are coordinates
in an orthonormal basis (Helmert's) of all tables that add up to 0 along each column: what ResidualPlanner
calls a residual (Xiao, He, Zhang, Kifer 2023, "An optimal and scalable matrix mechanism for noisy marginals
under convex loss functions"), whose basis is another one of the same space.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.synth._model.domain import Clique, Domain

__all__ = ["MOST_CELLS", "STEP", "contrasts", "parts_of", "scales", "share_of_a_row", "tables"]

Floats: TypeAlias = NDArray[np.float64]

STEP = Fraction(1, 2**36)
"""What coordinates are whole multiples of."""

MOST_CELLS = 2**26
"""A marginal's: more than that the steps could not tell apart."""

_BELOW = 1 - 2.0**-40  # far more than what a dozen roundings of 2**-53 can add


def parts_of(domain: Domain, clique: Clique) -> Iterator[Clique]:
    """All subsets of a clique that have contrasts: those without columns of one cell."""
    some = [at for at in clique if domain.sizes[at] > 1]
    return chain.from_iterable(combinations(some, size) for size in range(len(some) + 1))


def share_of_a_row(shape: tuple[int, ...]) -> Fraction:
    """Π (n−1)/n: the squared length of one row in the coordinates of these columns, whichever cell it is in.

    Proof: in cell x of one column, w_k is 1 for k > x, −x for k = x and 0 for k < x. So Σ w_k²/(k(k+1)) =
    x/(x+1) + Σ_{k>x} 1/(k(k+1)) = x/(x+1) + 1/(x+1) − 1/n = 1 − 1/n. Along several columns a row's contrasts
    are products, and so are their lengths.
    """
    return math.prod((Fraction(int(size) - 1, int(size)) for size in shape), start=Fraction(1))


def contrasts(counts: NDArray[Any]) -> NDArray[Any]:
    """The contrasts along every axis of a table, one less along each; exact for integers."""
    for axis in range(counts.ndim):
        along = np.moveaxis(counts, axis, -1)
        rank = np.arange(1, along.shape[-1])
        counts = np.moveaxis(along.cumsum(-1)[..., :-1] - rank * along[..., 1:], -1, axis)
    return counts


def tables(found: Floats) -> Floats:
    """The table that has these contrasts and adds up to 0 along every axis."""
    for axis in range(found.ndim):
        along = np.moveaxis(found, axis, -1)
        rank = np.arange(1, along.shape[-1] + 1)
        part = along / (rank * (rank + 1))
        table = np.zeros((*part.shape[:-1], part.shape[-1] + 1))
        table[..., :-1] = part[..., ::-1].cumsum(-1)[..., ::-1]
        table[..., 1:] -= rank * part
        found = np.moveaxis(table, -1, axis)
    return found


def scales(shape: tuple[int, ...], reach: float) -> NDArray[np.int64]:
    """What contrasts are multiplied with, to be coordinates times `reach`, in steps; rounded down.

    Args:
        shape: How many cells each column has, at least 2; together at most `MOST_CELLS`.
        reach: From 1/4 to 1, so that rounding down is less than 1/256 of any.
    """
    squares = np.ones(())
    for size in shape:
        rank = np.arange(1.0, size)
        squares = np.multiply.outer(squares, rank * (rank + 1))
    return np.asarray(np.floor(reach * _BELOW * float(1 / STEP) / np.sqrt(squares)).astype(np.int64))
