"""What marginals of private rows say beyond their smaller ones: several of them in one exact sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.numeric.balls import sqrt_up
from sfumato.synth._model.contrasts import STEP, contrasts, scales, share_of_a_row
from sfumato.synth._model.domain import Clique
from sfumato.synth._private.cells import Cells

__all__ = ["residuals"]

_FINE = 2**60
_ROWS = 2**26  # fewer keep all coordinates in 64 bits


def residuals(cells: Cells, cliques: Sequence[Clique], reaches: Sequence[float]) -> Total:
    """The coordinates of some cliques one after the other, each times its reach; exact.

    Args:
        cells: The rows.
        cliques: Of columns of at least 2 cells.
        reaches: What each is multiplied with, from 1/4 to 1: its noise is as much larger.

    Privacy:
        Claim: adding or removing a unit moves all of these together by at most `sensitivity` in L2. Proof: a
        row moves the coordinates of a clique by √Π (n−1)/n (`share_of_a_row`), and these are multiplied with
        at most reach/STEP, since `scales` rounds down. Squares add up over cliques, lengths over the at most
        `max_rows` rows that a unit weighs. Whole numbers are added up, so that no rounding depends on rows.
    """
    values = [
        _coordinates(cells, clique, scales(cells.domain.shape(clique), reach)).ravel()
        for clique, reach in zip(cliques, reaches, strict=True)
    ]
    square = sum(
        math.ceil(Fraction(reach) ** 2 * share_of_a_row(cells.domain.shape(clique)) * _FINE)
        for clique, reach in zip(cliques, reaches, strict=True)
    )
    longest = Fraction(sqrt_up(Fraction(square, _FINE)))
    parts = cells.parts  # of a row
    return Total(np.concatenate(values), cells.max_rows * parts * longest / STEP, STEP / parts)


def _coordinates(cells: Cells, clique: Clique, scale: NDArray[np.int64]) -> NDArray[Any]:
    counts = cells.counts(clique).values.reshape(cells.domain.shape(clique))
    # A coordinate is at most 1/STEP for each row; Python's integers hold any.
    whole = counts if counts.sum() < _ROWS else counts.astype(object)
    return np.asarray(contrasts(whole) * scale)
