"""`Sums`: what noisy counts say of weighted sums of a table's counts, and how far off they are. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.synth._model.contrasts import parts_of, share_of_a_row
from sfumato.synth._model.domain import Clique

if TYPE_CHECKING:
    from sfumato.synth._model.domain import Domain, Marginal
    from sfumato.synth.methods.base import Learned

__all__ = ["Part", "Sums"]

Floats: TypeAlias = NDArray[np.float64]


class Part(NamedTuple):
    """What is known of the counts of some columns beyond those of fewer of them.

    Attributes:
        table: The counts with noise; they add up to 0 along each column.
        sigma: The standard deviation of the noise along each direction that tables of this kind have.
    """

    table: Floats
    sigma: float


class Sums:
    """Weighted sums of the counts of some columns, out of all noisy counts that say something of them.

    A table of counts is a sum of parts, one for each set of its columns: what that set says beyond its own
    subsets. Different parts are orthogonal, so that each is known from all noisy counts of columns that hold
    the set, averaged by the inverse of their variances. With noise of one variance in each set of counts this
    is the least-squares estimate from all of them together, and its error is Gaussian.

    Which columns are measured together may be chosen by what earlier noise made of them. So only noise counts
    that was drawn with the first choice of these columns, or later: given all before, it is fresh. What is
    chosen after that is likelier to be measured again where it is far off, which makes an average of both err
    less often than its variance says, not more; tests draw fits of all methods to see that.

    Attributes:
        domain: The columns in coarse cells.
        clique: Those that sums are over.
        parts: What is known of each set of them; empty: they were not measured together.
    """

    def __init__(self, domain: Domain, learned: Learned, clique: Clique) -> None:
        self.domain, self.clique = domain, clique
        places = (at for at, held in enumerate(learned.marginals) if set(clique) <= set(held.clique))
        first = next(places, None)
        self.parts = dict[Clique, Part]()
        if first is not None:
            # Each column by itself comes first, and is not chosen.
            fresh = learned.marginals[first if first >= len(domain) else 0 :]
            for part in parts_of(domain, clique):
                own = learned.parts.get(part)
                self.parts[part] = _averaged(domain, fresh, part) if own is None else _given(fresh, part, own)

    def told(self, weights: Floats) -> tuple[Floats, Floats] | None:
        """Sums with these weights, and the standard deviation of each one's error; None: they are not known.

        Args:
            weights: A line for each sum, with a weight for each cell of the columns.
        """
        if not self.parts:
            return None
        lines = np.asarray(weights, np.float64).reshape(len(weights), *self.domain.shape(self.clique))
        values, variance = np.zeros(len(lines)), np.zeros(len(lines))
        for part, known in self.parts.items():
            axes = tuple(at + 1 for at, place in enumerate(self.clique) if place not in part)
            own = _centred(np.asarray(lines.sum(axis=axes)) / self._others(part)).reshape(len(lines), -1)
            values += own @ known.table.ravel()
            variance += np.square(own).sum(axis=1) * known.sigma**2
        return values, np.sqrt(variance)

    def counts(self) -> tuple[Floats, float] | None:
        """The count of each cell, and the standard deviation of each one's error; None: it is not known."""
        if not self.parts:
            return None
        found, variance = np.zeros(self.domain.shape(self.clique)), 0.0
        for part, known in self.parts.items():
            inside = tuple(self.domain.sizes[at] if at in part else 1 for at in self.clique)
            found += known.table.reshape(inside) / self._others(part)
            # Of a part's noise each cell has the share that a single row has of it.
            row = float(share_of_a_row(self.domain.shape(part)))
            variance += row * known.sigma**2 / self._others(part) ** 2
        return found, math.sqrt(variance)

    def _others(self, part: Clique) -> float:
        return self.domain.cells(self.clique) / self.domain.cells(part)


def _averaged(domain: Domain, marginals: Sequence[Marginal], part: Clique) -> Part:
    """What noisy counts say of a part, all together."""
    table, certain = np.zeros(domain.shape(part)), 0.0
    for marginal in marginals:
        if set(part) <= set(marginal.clique):
            variance = marginal.sigma**2 * marginal.values.size / domain.cells(part)
            table += _summed(marginal, part) / variance
            certain += 1 / variance
    return Part(_centred(table[np.newaxis])[0] / certain, certain**-0.5)


def _given(marginals: Sequence[Marginal], part: Clique, sigma: float) -> Part:
    """A part that was measured by itself: all noisy counts that hold it show the same of it."""
    held = next(marginal for marginal in marginals if set(part) <= set(marginal.clique))
    return Part(_centred(_summed(held, part)[np.newaxis])[0], sigma)


def _summed(marginal: Marginal, part: Clique) -> Floats:
    """Counts of some columns as counts of a part of them."""
    others = tuple(axis for axis, place in enumerate(marginal.clique) if place not in part)
    return np.asarray(marginal.values.sum(axis=others))


def _centred(lines: Floats) -> Floats:
    """Tables, one a line, without what they have in common along each of their columns."""
    for axis in range(1, lines.ndim):
        lines = lines - lines.mean(axis=axis, keepdims=True)
    return lines
