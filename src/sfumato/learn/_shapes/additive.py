"""Boosted shapes: from private rows to scores by bin of each column and of pairs, all out of one price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.fits.meter import Meter, Total
from sfumato.learn._core.declared import Category, Number
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._shapes.bins import MOST_BINS, Cuts, bought_cuts, cells_for, cells_of, codes_of
from sfumato.learn._shapes.outcomes import Outcome
from sfumato.learn._shapes.shapes import FREE, PAIR, PLAIN, SMOOTH, Shape
from sfumato.learn._shapes.tallies import PART, Codes, Tallies

__all__ = ["GROUPS", "TARGET_SHARE", "Additive", "column_codes", "places_of"]

Floats: TypeAlias = NDArray[np.float64]

TARGET_SHARE = Fraction(1, 100)
"""What is spent on the target by itself: how many rows of each class, or a histogram."""
_CELLS_SHARE, _COUNTS_SHARE, _PAIRS_SHARE = Fraction(1, 10), Fraction(1, 20), Fraction(3, 50)
GROUPS = 8
"""In how many groups of bins a column is for pairs."""
_MOST_CANDIDATES = 16
_CLEAR = 4.0  # by how many deviations a pair is more than chance and noise


def places_of(design: Design) -> list[slice]:
    """Which coordinates each column has."""
    found, start = list[slice](), 0
    for column in design.columns:
        width = 1 if isinstance(column, Number) else len(column.values)
        found.append(slice(start, start + width))
        start += width
    return found


def column_codes(block: NDArray[np.int16], table: NDArray[np.uint16] | None) -> NDArray[Any]:
    """The bin of each row in one column: by a table of coordinates, or its category (the last: none)."""
    if table is not None:
        return np.asarray(table[block[:, 0]])
    other = block.shape[1]
    first = block.argmax(axis=1)
    return np.asarray(np.where(block[np.arange(len(block)), first] > 0, first, other))


@dataclass(slots=True)
class _Part:
    """A shape with the private codes of all rows; None: all rows are in one bin."""

    shape: Shape
    codes: Codes | None


class Additive:
    """One fit: bins, then rounds over all shapes, each fitted to noisy sums of residuals by bin.

    A round goes through the columns one after another. Each is asked for the sums of residuals in its bins,
    whose noise is known; its shape moves, and with it the scores of all rows, before the next is asked. So
    no step has to be small for fear of columns that say the same. Halfway through, pairs of columns whose
    residuals differ by more than chance and noise get shapes of their own.

    Privacy:
        Claim: rows are seen through `Tallies.sums` with noise from the meter, whose shares add up to at
        most 1; everything else follows from noisy sums. Proof: scores of rows are sums of public moves at
        the rows' own codes, and stay here; `_spend` takes each share from what is left.
    """

    def __init__(self, rows: Rows, tallies: Tallies, outcome: Outcome, meter: Meter, left: Fraction) -> None:
        self._rows, self._tallies, self._outcome, self._meter, self._left = (
            rows,
            tallies,
            outcome,
            meter,
            left,
        )
        self.columns = rows.design.columns
        self._target = np.asarray(rows.target, np.int32)
        self._places = places_of(rows.design)
        start = np.rint(outcome.start * outcome.steps).astype(np.int32)
        self._scores = np.repeat(start[:, None], len(rows), axis=1)
        self._late: tuple[Codes | None, NDArray[np.int32]] | None = None
        self._codes = list[Codes]()
        self.cuts = list[Cuts | None]()
        self.weights = list[Floats]()
        self._parts = list[_Part]()
        self.groups = list[NDArray[np.int64]]()
        self.pairs = list[tuple[int, int]]()

    def _spend(self, total: Total, share: Fraction) -> Floats:
        self._left -= share
        return self._meter.noisy(total, share)

    @property
    def shapes(self) -> list[Shape]:
        """Of the intercept, then of the columns, then of the pairs."""
        return [part.shape for part in self._parts]

    def bin_columns(self, declared: Sequence[Cuts | None]) -> None:
        """Puts rows into bins: declared ones, and others of a noisy histogram of fine cells."""
        columns = self.columns
        bought = [
            at for at, column in enumerate(columns) if isinstance(column, Number) and declared[at] is None
        ]
        self.cuts = list(declared)
        if bought:
            share = _CELLS_SHARE / len(bought)
            sigma = self._meter.sigma(1, share)
            cells = cells_for(self._outcome.count, sigma)
            for at in bought:
                column = columns[at]
                assert isinstance(column, Number)
                fine = cells_of(column, cells)
                codes = self._coded(at, codes_of(fine.cuts))
                total = self._tallies.sums(codes, len(fine.cuts) + 1, lambda _: [1], 1, 1)
                self.cuts[at] = bought_cuts(fine, self._spend(total, share), sigma, self._outcome.count)
        self._codes = [self._column(at) for at in range(len(columns))]
        self._parts = [_Part(self._intercept(), None)]
        share = _COUNTS_SHARE / len(columns)
        for at, column in enumerate(columns):
            counts = self._counts(self._codes[at], self.size(at), share)
            weights, curvature = self._outcome.curvature(counts, self._meter.sigma(1, share))
            self.weights.append(weights)
            prior = SMOOTH if isinstance(column, Number) else PLAIN
            self._parts.append(_Part(Shape(curvature, prior), self._codes[at]))

    def size(self, at: int) -> int:
        """How many bins a column has."""
        column, cuts = self.columns[at], self.cuts[at]
        if cuts is not None:
            return len(cuts) + 1
        assert isinstance(column, Category)
        return len(column.values) + 1

    def _intercept(self) -> Shape:
        nearly = np.full((1, self._outcome.kinds), self._outcome.count / self._outcome.kinds)
        _, curvature = self._outcome.curvature(nearly, 0.0)
        return Shape(curvature, FREE)

    def _coded(self, at: int, table: NDArray[np.uint16] | None) -> Callable[[slice], NDArray[Any]]:
        integers, places = self._rows.integers, self._places[at]
        return lambda part: column_codes(integers[part, places], table)

    def _column(self, at: int) -> Codes:
        cuts = self.cuts[at]
        of = self._coded(at, None if cuts is None else codes_of(cuts))
        small = np.uint8 if self.size(at) <= 256 else np.uint16
        codes: Codes = np.empty(len(self._rows), small)
        for part in self._rows.slices(PART):
            codes[part] = of(part)
        return codes

    def _counts(self, codes: Codes, size: int, share: Fraction) -> Floats:
        target, outcome = self._target, self._outcome
        total = self._tallies.sums(codes, size, lambda part: outcome.indicators(target[part]), 1, 1)
        return self._spend(total, share).reshape(size, -1)

    def sweep(self, rounds: int, whole: int) -> None:
        """One round over all shapes, for its part of what is left.

        Args:
            rounds: How many are left, this one included.
            whole: How many there are in all.
        """
        share = self._left / rounds / len(self._parts)
        outcome = self._outcome
        longest = Fraction(outcome.longest, outcome.unit)
        variance = self._meter.sigma(longest, share) ** 2 / whole
        for part in self._parts:
            shape = part.shape
            total = self._residual_sums(part.codes, len(shape.scores))
            sums = self._spend(total, share).reshape(shape.scores.shape)
            step = shape.step(sums, variance, outcome.spread, outcome.scale)
            moves = np.rint(step * outcome.steps)
            shape.scores += moves / outcome.steps
            self._late = part.codes, np.ascontiguousarray(moves.T.astype(np.int32))

    def _residual_sums(self, codes: Codes | None, size: int) -> Total:
        every = np.zeros(PART, np.uint8)
        at = (lambda part: every[: part.stop - part.start]) if codes is None else codes
        return self._tallies.sums(at, size, self._residuals(), self._outcome.longest, self._outcome.unit)

    def _residuals(self) -> Callable[[slice], list[NDArray[Any]]]:
        """The residuals of rows, whose scores are first moved as the last shape was."""
        late, self._late = self._late, None

        def found(part: slice) -> list[NDArray[Any]]:
            scores = self._scores[:, part]
            if late is not None:
                codes, moves = late
                scores += moves if codes is None else np.take(moves, codes[part], axis=1)
            return self._outcome.residuals(scores, self._target[part])

        return found

    def add_pairs(self, most: int, declared: Sequence[tuple[int, int]] | None) -> None:
        """Gives pairs of columns shapes of their own: those declared, or those that residuals ask for.

        Args:
            most: How many there may be.
            declared: Numbers of columns; None: they are found from noisy sums, if these can show any.
        """
        self.groups = [self._grouped(at) for at in range(len(self.columns))]
        sizes = [int(group.max()) + 1 for group in self.groups]
        likely = self._likely() if declared is None else declared
        tried = [(one, other) for one, other in likely if sizes[one] > 1 and sizes[other] > 1]
        if not tried or not most:
            return
        share, outcome = _PAIRS_SHARE / len(tried), self._outcome
        sigma = self._meter.sigma(Fraction(outcome.longest * 5 // 4, outcome.unit), share)
        if declared is None and outcome.count * outcome.longest / outcome.unit < sigma * GROUPS**2 / 2:
            return  # noise would hide whatever there is
        found = [
            (gain, one, other, curvature)
            for one, other in tried
            for clear, gain, curvature in [self._crossing(one, other, share, sigma)]
            if declared is not None or clear > _CLEAR
        ]
        for _, one, other, curvature in sorted(found, key=lambda pair: -pair[0])[:most]:
            codes: Codes = np.empty(len(self._rows), np.uint8)
            of = self._crossed(one, other)
            for part in self._rows.slices(PART):
                codes[part] = of(part)
            self.pairs.append((one, other))
            self._parts.append(_Part(Shape(curvature, PAIR), codes))

    def _crossing(self, one: int, other: int, share: Fraction, sigma: float) -> tuple[float, float, Floats]:
        """What residuals say of two columns together: how clearly, how much, and the cells' curvature."""
        outcome, target, residuals = self._outcome, self._target, self._residuals()
        beside = outcome.longest * 3 // 4  # counts at 3/4 of the residuals' length: 5/4 together

        def values(part: slice) -> list[NDArray[Any]]:
            return [*(each * beside for each in outcome.indicators(target[part])), *residuals(part)]

        size = int((self.groups[one].max() + 1) * (self.groups[other].max() + 1))
        crossed = self._crossed(one, other)
        total = self._tallies.sums(crossed, size, values, outcome.longest * 5 // 4, outcome.unit)
        noisy = self._spend(total, share).reshape(size, -1)
        counts, sums = noisy[:, : outcome.kinds] * (outcome.unit / beside), noisy[:, outcome.kinds :]
        weights, curvature = outcome.curvature(counts, sigma * outcome.unit / beside)
        expected = sigma**2 + outcome.spread * curvature
        clear = float((sums**2 / expected - 1).sum() / np.sqrt(2 * sums.size))
        gain = float(((sums**2 - expected) / weights[:, None]).sum())
        return clear, gain, curvature

    def _likely(self) -> list[tuple[int, int]]:
        """All pairs of the columns whose shapes say most so far."""
        said = [
            float((weights[:, None] * part.shape.scores**2).sum())
            for weights, part in zip(self.weights, self._parts[1:], strict=True)
        ]
        first = np.argsort(said, kind="stable")[::-1][:_MOST_CANDIDATES]
        return list(combinations(sorted(first.tolist()), 2))

    def _grouped(self, at: int) -> NDArray[np.int64]:
        """The group of each bin of a column: neighbours, or categories with like scores."""
        weights, scores = self.weights[at], self._parts[1 + at].shape.scores
        ordered = isinstance(self.columns[at], Number)
        order = np.arange(len(weights)) if ordered else np.argsort(scores[:, -1], kind="stable")
        along = weights[order]
        middle = (np.cumsum(along) - along / 2) / along.sum()
        groups = np.empty(len(weights), np.int64)
        groups[order] = np.minimum((middle * GROUPS).astype(np.int64), GROUPS - 1)
        return np.unique(groups, return_inverse=True)[1]

    def _crossed(self, one: int, other: int) -> Callable[[slice], NDArray[Any]]:
        """The cell of each row in the table of two columns' groups."""
        wide = int(self.groups[other].max()) + 1
        rows, columns = (self.groups[one] * wide).astype(np.uint8), self.groups[other].astype(np.uint8)
        mine, theirs = self._codes[one], self._codes[other]
        return lambda part: rows[mine[part]] + columns[theirs[part]]

    def released(self, most_pairs: int) -> dict[str, NDArray[Any]]:
        """What the fit gives, in arrays whose sizes follow from what was declared alone."""
        outputs = len(self._outcome.start)
        widths = [MOST_BINS if isinstance(c, Number) else len(c.values) + 1 for c in self.columns]
        shapes = self.shapes
        scores = np.zeros((len(widths), max(widths), outputs))
        cuts = np.full((len(widths), MOST_BINS - 1), UNIT + 1, np.int64)
        groups = np.zeros((len(widths), max(widths)), np.int64)
        for at in range(len(widths)):
            scores[at, : self.size(at)] = shapes[1 + at].scores
            found = self.cuts[at]
            if found is not None:
                cuts[at, : len(found)] = found
            if self.groups:
                groups[at, : self.size(at)] = self.groups[at]
        pairs = np.full((most_pairs, 2), -1, np.int64)
        crossed = np.zeros((most_pairs, GROUPS, GROUPS, outputs))
        for at, (one, other) in enumerate(self.pairs):
            pairs[at] = one, other
            tall, wide = (int(self.groups[each].max()) + 1 for each in (one, other))
            table = shapes[1 + len(widths) + at].scores
            crossed[at, :tall, :wide] = table.reshape(tall, wide, outputs)
        return {
            "start": self._outcome.start + shapes[0].scores[0],
            "cuts": cuts,
            "scores": scores,
            "groups": groups,
            "pairs": pairs,
            "crossed": crossed,
            "longest": np.array(self._outcome.longest / self._outcome.unit),
        }
