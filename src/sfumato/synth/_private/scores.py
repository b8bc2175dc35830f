"""How far public counts are from the rows, as exact scores of the marginals that a fit may choose next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.synth._model.domain import Clique, Domain
from sfumato.synth._private.cells import Cells

__all__ = ["UNIT", "Candidates", "Scores", "if_independent", "likely_error", "likely_misfit", "misfit"]

Floats: TypeAlias = NDArray[np.float64]

UNIT = 2**10
"""Public counts are rounded to this part of a row."""

_WEIGHT = 2**20  # and weights to this part of the largest
_MOST = 2**61  # what the public counts of a clique may add up to, in units


class Scores(NamedTuple):
    """What `Meter.chosen` takes.

    Attributes:
        values: One for each candidate, whole numbers; private.
        sensitivity: The most that adding or removing one unit moves any of them.
    """

    values: list[int]
    sensitivity: Fraction


class Candidates:
    """Cliques that a fit may choose from, their exact counts kept once they were needed, or counted again.

    Attributes:
        cliques: All of them, in the order that places mean.
    """

    def __init__(self, cells: Cells, cliques: Sequence[Clique], *, keep: bool = True) -> None:
        self.cliques = tuple(cliques)
        self._cells, self._keep = cells, keep
        self._unit = max(UNIT, cells.parts)
        self._counted: dict[int, NDArray[Any]] = {}

    @staticmethod
    def memory(domain: Domain, cliques: Sequence[Clique]) -> int:
        """How many bytes the counts of all these cliques take: four a cell (eight from 2**31 rows on)."""
        return 4 * sum(map(domain.cells, cliques))

    def scores(
        self,
        places: Sequence[int],
        expected: Iterable[Floats],
        *,
        weights: Sequence[float] | None = None,
        allowances: Iterable[float] | None = None,
    ) -> Scores:
        """w·(Σ |count − expected| − allowance) for some of the cliques, in whole parts of a row.

        Args:
            places: Which of the cliques.
            expected: Public counts of each, of the clique's cells in any shape: a model's, or a product of
                noisy ones. They are rounded to parts of a row first, and cut where they are beyond all sense.
            weights: How much each matters, at least 0; None: the same.
            allowances: Rows that each may be off and yet is not worth measuring (`likely_error`); None: 0.

        Raises:
            InvalidParameter: if weights are not at least 0, with one above.

        Privacy:
            Claim: no score moves by more than `sensitivity` where one unit comes or goes. Proof: all that is
            given here is public and is rounded to integers m, W, a before a row is looked at. A score is
            W·(Σ |u·count − m| − a) in integers, u units a row; a unit weighs at most `max_rows` rows, each of
            them in one cell, so that Σ |u·count − m| moves by at most u·max_rows, and W is at most its
            largest. Condition: whatever the arguments depend on is public.
        """
        heavy = _whole_weights([1.0] * len(places) if weights is None else weights)
        allowed = [0.0] * len(places) if allowances is None else allowances
        values = [
            weight * (self._misfit(place, counts) - self._units(spared))
            for place, counts, weight, spared in zip(places, expected, heavy, allowed, strict=True)
        ]
        return Scores(values, Fraction(self._cells.max_rows * self._unit * max(heavy, default=_WEIGHT)))

    def _misfit(self, place: int, expected: Floats) -> int:
        """`misfit` of one of the cliques."""
        counted = self._counted.get(place)
        if counted is None:
            counts = self._cells.counts(self.cliques[place]).values
            counted = counts.astype(np.int32) if counts.sum() < 2**31 else counts
            if self._keep:
                self._counted[place] = counted
        return misfit(counted, expected, self._cells.parts)

    def _units(self, rows: float) -> int:
        """Rows in units; rows beyond all sense are cut."""
        return round(min(max(rows, 0.0), _MOST / self._unit) * self._unit)


def misfit(counted: NDArray[np.integer[Any]], expected: Floats, parts: int = 1) -> int:
    """Σ |count − expected| over some cells, in units of which a row has `UNIT`, or its parts; exact.

    Args:
        counted: Exact counts, in parts of a row; private.
        expected: Public ones, in any shape; rounded to units, and cut where they are beyond all sense.
        parts: How many parts a row is counted in.

    Privacy:
        Claim: a row that comes or goes moves it by at most the larger of `UNIT` and its parts, both of which
        are powers of two. Proof: the public counts are whole units before a row is looked at, and a row is in
        one cell, whose count it moves by at most so many units.
    """
    unit, limit = max(UNIT, parts), _MOST // counted.size
    units = np.nan_to_num(np.ravel(expected) * unit, nan=0.0, posinf=limit, neginf=-limit)
    public = np.rint(np.clip(units, -limit, limit)).astype(np.int64)
    np.subtract(public, counted * np.int64(unit // parts), out=public)
    return int(np.abs(public, out=public).sum())


def if_independent(ones: Sequence[Floats], total: float, cliques: Iterable[Clique]) -> Iterator[Floats]:
    """The counts of cliques if columns had nothing to do with each other.

    Args:
        ones: The noisy counts of each column.
        total: The noisy number of rows.
        cliques: Of any columns.
    """
    rows = max(total, 1.0)
    shares = [np.asarray(one, np.float64) / rows for one in ones]
    for clique in cliques:
        yield rows * reduce(np.multiply.outer, [shares[at] for at in clique], np.ones(()))


def likely_misfit(sigma: float, cells: int) -> float:
    """What Σ |noise| over so many cells is on average: how far off counts with that noise would be."""
    return math.sqrt(2 / math.pi) * sigma * cells


def likely_error(counts: Floats, sigma: float) -> float:
    """How far off public counts would be once noise was drawn and held to what counts can be.

    Held to be at least 0 and to add up to the same, many small counts keep little of their noise: a pair of
    columns whose cells are mostly empty is worth measuring long before Σ |noise| says so.

    Args:
        counts: Of all cells, of a model; taken to be at least 0.
        sigma: The standard deviation of the noise.
    """
    true = np.maximum(np.ravel(counts), 0.0)
    noisy = true + sigma * np.resize(_some_noise(), true.size)
    falling = -np.sort(-noisy)
    over = (np.cumsum(falling) - true.sum()) / np.arange(1, true.size + 1)
    cut = over[max(int((falling > over).sum()) - 1, 0)]
    return float(np.abs(np.maximum(noisy - cut, 0.0) - true).sum())


@cache
def _some_noise() -> Floats:
    return np.asarray(simulation(0).standard_normal(2**14), np.float64)


def _whole_weights(weights: Sequence[float]) -> list[int]:
    """Weights as whole parts of the largest."""
    most = max(weights, default=1.0)
    if not 0 < most < math.inf or not all(weight >= 0 for weight in weights):
        raise InvalidParameter("Weights are numbers of at least 0, one of them above it.")
    return [math.floor(weight / most * _WEIGHT) for weight in weights]
