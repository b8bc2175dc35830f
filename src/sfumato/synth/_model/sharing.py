"""`Sharing`: which parts of noisy counts several cliques tell of, and what they agree on about them.

A function of a clique's columns is a sum of one part for each subset of them, each part with mean zero over
each of its columns: 2-way counts are a mean, two 1-way parts and an interaction. A part of a subset that is
in several cliques is told by all of them: numbers on cliques have more dimensions than functions of a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.synth._model.beliefs import Floats
from sfumato.synth._model.domain import Clique, Domain

__all__ = ["Sharing"]

_Whole: TypeAlias = NDArray[np.int64]


class Sharing:
    """How numbers on cliques are spread when they say the same: by least squares.

    Attributes:
        variance: That of the noise of each number, in the order of the cliques.
    """

    def __init__(self, domain: Domain, cliques: Sequence[Clique], sigmas: Sequence[float]) -> None:
        cells = [domain.cells(clique) for clique in cliques]
        self.variance = np.repeat(np.square(np.array(sigmas, float)), cells)
        weights = [1 / (sigma**2 * size) for sigma, size in zip(sigmas, cells, strict=True)]
        holders: dict[Clique, list[int]] = {}
        for place, clique in enumerate(cliques):
            for subset in _subsets(clique):
                holders.setdefault(subset, []).append(place)
        shared = {subset: places for subset, places in holders.items() if len(places) > 1}
        starts = np.cumsum([0, *cells])
        rows: dict[tuple[int, Clique], int] = {}
        size = 0
        for subset, places in shared.items():
            for place in places:
                rows[place, subset] = size
                size += domain.cells(subset)
        self._means, self._lift = _means(domain, cliques, starts, rows, size)
        self._mix = _mix(domain, shared, weights, rows, size)

    def spread(self, numbers: Floats) -> Floats:
        """Numbers with the same sum as a function of a row, and the least sum of squares times variance."""
        changed: Floats = numbers + self._lift @ (self._mix @ (self._means @ numbers))
        return changed

    def agreed(self, values: Floats) -> Floats:
        """What noisy counts come to when each part is averaged over all cliques that tell of it.

        It is the least squares fit by counts that agree with each other, which may be negative.
        """
        return self.variance * self.spread(values / self.variance)


def _subsets(clique: Clique) -> list[Clique]:
    return [part for size in range(len(clique) + 1) for part in itertools.combinations(clique, size)]


def _codes(domain: Domain, clique: Clique, part: Clique) -> _Whole:
    """For each cell of a clique, in order, the number of the cell that it is in for some of its columns."""
    codes = np.zeros(domain.shape(clique), np.int64)
    for axis, place in enumerate(clique):
        if place in part:
            codes *= domain.sizes[place]
            codes += np.arange(domain.sizes[place]).reshape([-1] + [1] * (len(clique) - 1 - axis))
    return codes.ravel()


def _means(
    domain: Domain, cliques: Sequence[Clique], starts: _Whole, rows: dict[tuple[int, Clique], int], size: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """From numbers on cliques to their means over each shared subset, and from these back to all cells."""
    at, of, share = list[_Whole](), list[_Whole](), list[Floats]()
    for (place, subset), row in rows.items():
        clique = cliques[place]
        codes = _codes(domain, clique, subset)
        at.append(row + codes)
        of.append(starts[place] + np.arange(codes.size))
        share.append(np.full(codes.size, domain.cells(subset) / codes.size))
    i, j = _joined(at), _joined(of)
    means = sparse.csr_array((_joined(share), (i, j)), shape=(size, starts[-1]))
    return means, sparse.csr_array((np.ones(len(i)), (j, i)), shape=(starts[-1], size))


def _mix(
    domain: Domain,
    shared: dict[Clique, list[int]],
    weights: Sequence[float],
    rows: dict[tuple[int, Clique], int],
    size: int,
) -> sparse.csr_array:
    """From means to what each clique's parts change by, if each is shared by weight."""
    at, of, value = list[_Whole](), list[_Whole](), list[Floats]()
    for subset, places in shared.items():
        own = np.arange(domain.cells(subset))
        whole = sum(weights[place] for place in places)
        for part in _subsets(subset):
            codes = _codes(domain, subset, part)
            sign = (-1.0) ** (len(subset) - len(part))
            for place, source in itertools.product(places, places):
                factor = sign * (weights[place] / whole - (place == source))
                at.append(rows[place, subset] + own)
                of.append(rows[source, part] + codes)
                value.append(np.full(len(own), factor))
    return sparse.csr_array((_joined(value), (_joined(at), _joined(of))), shape=(size, size))


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
