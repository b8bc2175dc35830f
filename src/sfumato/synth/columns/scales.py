"""`Scales`: noisy counts of a column's cells and of stretches of them, and what both say. All public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.synth.columns.fine import Fine

__all__ = ["Scales", "widths"]

Floats: TypeAlias = NDArray[np.float64]

_EACH = 4  # so many cells, or stretches of a scale, are a stretch of the next one
_CERTAIN = 2.0  # standard deviations: where the parts of a stretch differ, one below that is taken for empty
_LITTLE = 0.03  # standard deviations that such a part has still, so that nearby ones have more than far ones


def widths(column: Fine) -> tuple[int, ...]:
    """How many cells the stretches of each scale have, the cells themselves first; of a list these alone."""
    return tuple(_EACH**scale for scale in range(_depth(column.known) if column.is_ordered else 1))


def _depth(known: int) -> int:
    """How many scales there are: up to the one that has no more than a few stretches."""
    scales, many = 1, known
    while many > _EACH:
        scales, many = scales + 1, -(-many // _EACH)
    return scales


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """What was counted of a column by itself: its cells, and stretches of 4, 16, 64, … neighbouring ones.

    Noise in many small counts adds up: in a sum over half of a thousand cells it is 22 times that of one
    count. A few stretches and cells add up to the same with far less of it.

    Attributes:
        known: How many cells there are but for what is missing.
        counts: Noisy counts, a list for each scale, the cells first; the last number of each list is that of
            what is missing, where there is a cell for it.
        sigma: The standard deviation of the noise of each.

    Source: Hay, Rastogi, Miklau, Suciu 2010 (counts on several scales made consistent by least squares);
    James, Stein 1961 (shrinking towards what is alike).
    """

    known: int
    counts: tuple[Floats, ...]
    sigma: float

    @property
    def cells(self) -> Floats:
        """The count of each cell, with all that stretches say of it: least squares."""
        (found, _), missing = self._agreed(np.ones(self.known)), self._missing
        return np.concatenate([found[0][: self.known], missing])

    @property
    def _missing(self) -> Floats:
        """The mean of what all scales say of what is missing, if there is a cell for it."""
        rest = [counts[self._many(scale) :] for scale, counts in enumerate(self.counts)]
        return np.asarray(np.mean(rest, axis=0), np.float64)

    def told(self, lines: Floats) -> tuple[Floats, Floats]:
        """Weighted sums of the counts of cells, and the standard deviation of each one's error.

        Args:
            lines: For each sum, a weight for each cell.
        """
        known, rest = lines[:, : self.known], lines[:, self.known :]
        alone = [known, *(np.zeros((len(lines), self._many(at))) for at in range(1, len(self.counts)))]
        # With A from cells to all counts, an estimate (A'A)⁻¹A'y has the covariance σ²(A'A)⁻¹, and A'y is a
        # line of weights where it stands in the place of the counts of cells, with nothing on other scales.
        solved = _consistent(alone, np.ones(self.known))[0][0][:, : self.known]
        variance = (known * solved).sum(axis=1) + np.square(rest).sum(axis=1) / len(self.counts)
        return lines @ self.cells, self.sigma * np.sqrt(np.maximum(variance, 0.0))

    def density(self, allowed: NDArray[np.bool_] | None = None) -> Floats:
        """About how many rows each cell has, without what is missing; never below 0.

        From large stretches to small ones, each is divided as the counts of its parts say, as far as these
        differ by more than noise makes of parts that are alike: else all cells of a stretch are. Beside parts
        that are certain, those that noise alone could have made are nearly empty.

        Args:
            allowed: In which cells a row can be; None: in all.
        """
        room = np.ones(self.known) if allowed is None else allowed[: self.known].astype(np.float64)
        counts, variances = self._agreed(room)
        rooms = [_padded(room, len(counts[0]))]
        while len(rooms) < len(counts):
            rooms.append(_summed(rooms[-1]))
        total = np.maximum(counts[-1].sum(keepdims=True), 0.0)
        found, parts = total, len(counts[-1])
        for own, variance, space in zip(counts[::-1], variances[::-1], rooms[::-1], strict=True):
            shape = (len(found), parts)
            found = _divided(found, *(of.reshape(shape) for of in (own, variance, space))).ravel()
            parts = _EACH
        return np.asarray(found[: self.known], np.float64)

    def _many(self, scale: int) -> int:
        """How many stretches there are."""
        return -(-self.known // int(_EACH**scale))

    def _agreed(self, room: Floats) -> tuple[list[Floats], list[Floats]]:
        given = [counts[: self._many(scale)] for scale, counts in enumerate(self.counts)]
        counts, variances = _consistent(given, room)
        return counts, [self.sigma**2 * variance for variance in variances]


def _consistent(given: Sequence[Floats], room: Floats) -> tuple[list[Floats], list[Floats]]:
    """Counts on all scales that add up, nearest to those that were drawn; and the variance of each.

    The variance is that of a count by all that lies within its stretch: of what parts of one stretch differ
    by, nothing else tells.

    Args:
        given: The counts of each scale that was drawn, cells first, along the last axis.
        room: The variance of each cell's noise: 1, or 0 where nothing can be.
    """
    depth = _depth(len(room))
    top = -(-len(room) // _EACH ** (depth - 1))
    sizes = [top * _EACH ** (depth - 1 - scale) for scale in range(depth)]
    within, variances = [_padded(given[0] * (room > 0), sizes[0])], [_padded(room, sizes[0])]
    for scale in range(1, depth):
        sums, variance = _summed(within[-1]), _summed(variances[-1])
        if scale < len(given):
            drawn = _padded(given[scale], sizes[scale])
            sums, variance = (sums + variance * drawn) / (1 + variance), variance / (1 + variance)
        within.append(sums)
        variances.append(variance)
    found = [within[-1]]
    for own, variance in zip(within[-2::-1], variances[-2::-1], strict=True):
        whole = np.repeat(_summed(variance), _EACH)
        share = np.divide(variance, whole, out=np.zeros_like(variance), where=whole > 0)
        found.append(own + np.repeat(found[-1] - _summed(own), _EACH, axis=-1) * share)
    return found[::-1], variances


def _divided(totals: Floats, counts: Floats, variances: Floats, rooms: Floats) -> Floats:
    """Totals of stretches divided among their parts, a line each; each part gets at least 0."""
    open_ = rooms > 0
    many = np.maximum(open_.sum(axis=1, keepdims=True), 1)
    variance = variances.sum(axis=1, keepdims=True) / many
    alike = rooms / np.maximum(rooms.sum(axis=1, keepdims=True), 1.0)
    off = np.where(open_, counts - counts.sum(axis=1, keepdims=True) * alike, 0.0)
    squares = np.square(off).sum(axis=1, keepdims=True)
    noise = (many - 1) * variance  # what the squares are on average where parts are alike
    kept = np.maximum(1 - np.divide(noise, squares, out=np.ones_like(squares), where=squares > 0), 0.0)
    found = _nearest(totals[:, np.newaxis] * alike + kept * off, totals, open_)
    error = np.sqrt(variance)
    sure = (found >= _CERTAIN * error) | (kept == 0)
    large = np.where(sure, found, np.where(open_, _LITTLE * error, 0.0))
    sums = large.sum(axis=1, keepdims=True)
    scale = np.divide(totals[:, np.newaxis], sums, out=np.zeros_like(sums), where=sums > 0)
    return np.where(sure.any(axis=1, keepdims=True), large * scale, found)


def _nearest(lines: Floats, totals: Floats, open_: NDArray[np.bool_]) -> Floats:
    """The nearest numbers of at least 0 with these sums; 0 in places that are not open."""
    low = np.where(open_, lines, -1e300)
    ordered = -np.sort(-low, axis=1)
    over = (np.cumsum(ordered, axis=1) - totals[:, np.newaxis]) / np.arange(1, lines.shape[1] + 1)
    last = np.maximum((ordered > over).sum(axis=1) - 1, 0)
    cut = np.take_along_axis(over, last[:, np.newaxis], axis=1)
    return np.where(totals[:, np.newaxis] > 0, np.maximum(low - cut, 0.0), 0.0)


def _summed(numbers: Floats) -> Floats:
    return np.asarray(numbers.reshape(*numbers.shape[:-1], -1, _EACH).sum(axis=-1))


def _padded(numbers: Floats, size: int) -> Floats:
    found = np.zeros((*numbers.shape[:-1], size))
    found[..., : numbers.shape[-1]] = numbers
    return found
