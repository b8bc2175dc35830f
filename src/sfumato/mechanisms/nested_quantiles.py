"""Several quantiles of a weighted histogram, each selected between those above it in a tree of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss, PureLoss
from sfumato.mechanisms._ranks import (
    FINEST,
    distances,
    heads_of,
    is_outer,
    levels_of,
    places_among,
    side_of,
    targets_of,
    unit_of,
    weights_of,
)
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["NestedQuantiles", "examples"]

# Cells beyond an extreme weigh so little together that one of them is taken in at most one case of 32.
_BEYOND = 16
_CHUNK = 2**18  # cells worked on at once


class _Node(NamedTuple):
    """A level in the tree of levels.

    Attributes:
        place: Among the levels, ascending.
        part: Of the weight between its neighbours above, what lies before it.
        side: −1 or 1 for an outer level, 0 for an inner one.
        left: What is selected before it.
        right: What is selected after it.
    """

    place: int
    part: Fraction
    side: int
    left: _Node | None
    right: _Node | None


class _Stretch(NamedTuple):
    """The cells of all groups among which one level is selected, one group after the other.

    Attributes:
        weights: Of the cells, flat.
        lengths: How many cells each group has here.
        first: The cell that each group begins with.
    """

    weights: NDArray[Any]
    lengths: NDArray[np.int64]
    first: NDArray[np.int64]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class NestedQuantiles(Mechanism):
    """Chooses a cell for each of several levels: the middle level first, the others before and after it.

    The middle one of the levels is selected by permute-and-flip, as `Quantiles` selects one. The cell cuts
    the histogram in two, in which the levels before and after it are selected in the same way, and so on:
    for L levels the prices of ⌈log₂(L + 1)⌉ selections are paid, not of L (Kaplan, Schnapp, Stemmer 2022).
    Between two levels that were selected, one aims at its part of the weight between them. Of the weight of
    a selected cell itself, one half counts before it and the other after it; both stretches begin or end with
    that cell, so that levels may share it. Outer levels aim a guard inside the extreme, as in `Quantiles`.

    Attributes:
        epsilon: The pure price of all levels in all groups together.
        levels: Quantile levels, exact fractions from 0 (the minimum) to 1 (the maximum), in the order of the
            answers. One that is listed twice is chosen and paid once.
        sensitivity: The most that the weights of one privacy unit total, over all cells of all groups.
        exchange: Whether neighbours exchange one unit for another, rather than add or remove one.

    Privacy:
        Claim: `epsilon`-DP for one `select_many` on all groups together; the selections at each of the D
        depths of the tree are ε/D-DP given those above them.
        Proof. (1) The stretches of one depth, of all groups, follow from the histogram and from what was
        selected above. A cell that was selected gives ⌊w/2⌋ of its weight w to the stretch before it and
        ⌈w/2⌉ to the one after it, every other cell all of its weight to one stretch. These are
        non-decreasing functions of w that total w: by induction, a unit that enters with total weight Δ adds
        weights of at least 0 to the stretches of one depth, and Δ in total over all of them. No row counts
        twice. (2) A selection with target T = p·n, n the weight of its stretch, loses at most 2·max(p, 1 − p)
        times its rate for each unit of weight that enters, and an outer one at most 2 times, by (1) and (2)
        of `Quantiles`. With rates ε/(2·D·m·Δ), m = max(p, 1 − p) or 1, all selections of a depth, which are
        independent given the stretches, lose at most Δ·ε/(D·Δ) = ε/D. (3) Depths are composed adaptively:
        pure prices add up. To leave is the same the other way round; to exchange is to leave and to enter,
        for which rates are halved.
        Conditions: cells and groups are public; weights are integers of at most `sensitivity` per unit.
    """

    epsilon: Fraction
    levels: tuple[Fraction, ...]
    sensitivity: int
    exchange: bool
    _distinct: tuple[Fraction, ...] = field(compare=False)
    _nodes: tuple[_Node, ...] = field(compare=False)
    _depth: int = field(compare=False)

    def __init__(
        self, epsilon: Rational, levels: Sequence[Rational], *, sensitivity: int, exchange: bool = False
    ) -> None:
        """Fix the law from the price, the levels and what one unit may weigh.

        Raises:
            InvalidParameter: if epsilon or the sensitivity is not positive, or a level is not a fraction from
                0 to 1 of a denominator of at most 2**30.
        """
        exact = levels_of(levels)
        distinct = tuple(sorted(set(exact)))
        freeze(self, epsilon=positive(epsilon, "epsilon"), levels=exact, exchange=bool(exchange))
        freeze(self, sensitivity=as_integer(sensitivity, "sensitivity"), _distinct=distinct)
        nodes: list[_Node] = []
        _tree(distinct, range(len(distinct)), (Fraction(0), Fraction(1)), nodes)
        freeze(self, _nodes=tuple(nodes), _depth=len(distinct).bit_length())

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "levels": tuple(map(str, self.levels))}
        return shown("NestedQuantiles", **parameters, sensitivity=self.sensitivity, exchange=self.exchange)

    @property
    def loss(self) -> PrivacyLoss:
        """ε/D for each of D depths, all groups together."""
        return PureLoss(self.epsilon / self._depth) * self._depth

    def rate(self, level: Rational) -> Fraction:
        """The rate r of the coins exp(−r·distance) for a level, per unit of weight: ε/(2·D·m·Δ)."""
        return self._rate(self._node(level))

    @property
    def rank_variances(self) -> tuple[float, ...]:
        """For each level about the variance of its rank where every cell has little weight.

        That of its own selection, and the parts that it takes over from its neighbours above; in units of
        weight squared.
        """
        found = [0.0] * len(self._distinct)
        pending = [(self._nodes[-1], 0.0, 0.0)]  # the last one is the root
        while pending:
            node, low, high = pending.pop()
            part = float(node.part)
            own = 2 / float(self._rate(node)) ** 2 + (1 - part) ** 2 * low + part**2 * high
            found[node.place] = own
            if node.left:
                pending.append((node.left, low, own))
            if node.right:
                pending.append((node.right, own, high))
        return tuple(found[place] for place in places_among(self.levels, self._distinct))

    @staticmethod
    def is_outer(level: Rational) -> bool:
        """Whether a level aims a guard inside its extreme: those up to 1/20 and from 19/20 on."""
        return is_outer(as_fraction(level, "level"))

    def guard(self, cells: int) -> int:
        """How far inside the extremes the levels 0 and 1 aim, in units of weight."""
        rate = self.epsilon / (2 * self._depth * self._moved)
        return math.ceil(Fraction(math.log(_BEYOND * as_integer(cells, "cells"))) / rate)

    def select_many(self, weights: ArrayLike | Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Cells for each group (row) and level (column), from groups × cells of weights.

        Raises:
            InvalidValue: for weights that are not a table of integers of at least 0 with at least one cell;
                outside the claim.
        """
        table = weights_of(weights, 2)
        groups, cells = table.shape
        chosen = np.empty((groups, len(self._distinct)), np.int64)
        rows, guard = max(1, _CHUNK // cells), self.guard(cells)
        for start in range(0, groups, rows):
            part = table[start : start + rows]
            lengths, first = np.full(len(part), cells), np.zeros(len(part), np.int64)
            pending = [(self._nodes[-1], _Stretch(part.reshape(-1), lengths, first))]
            while pending:
                node, stretch = pending.pop()
                places = self._choose(node, stretch, guard)
                chosen[start : start + rows, node.place] = stretch.first + places
                if node.left:
                    pending.append((node.left, _before(stretch, places)))
                if node.right:
                    pending.append((node.right, _after(stretch, places)))
        return chosen[:, places_among(self.levels, self._distinct)]

    def _choose(self, node: _Node, stretch: _Stretch, guard: int) -> NDArray[np.int64]:
        """For each group the place of one cell in its stretch, by permute-and-flip."""
        if not len(stretch.lengths):
            return np.zeros(0, np.int64)
        ends = np.cumsum(stretch.lengths)
        starts = ends - stretch.lengths
        # Sums of all groups may wrap around, and differences within a group are right again.
        upto = np.cumsum(stretch.weights)
        upto -= np.repeat(upto[starts] - stretch.weights[starts], stretch.lengths)
        targets = targets_of(node.part, node.side, upto[ends - 1].tolist(), guard)
        unit = unit_of(node.part)
        limbs = distances(np.repeat(targets, stretch.lengths), unit, upto - stretch.weights, upto)
        heads = heads_of(limbs, self._rate(node) / unit)
        counts = np.add.reduceat(heads.astype(np.int64), starts)
        drawn = np.array([random.integers(count) for count in counts.tolist()], np.int64)
        picked: NDArray[np.int64] = np.flatnonzero(heads)[np.cumsum(counts) - counts + drawn] - starts
        return picked

    def _rate(self, node: _Node) -> Fraction:
        share = 1 if node.side else max(node.part, 1 - node.part)
        return self.epsilon / (2 * self._depth * share * self._moved)

    @property
    def _moved(self) -> int:
        return self.sensitivity * (2 if self.exchange else 1)

    def _node(self, level: Rational) -> _Node:
        place = self._distinct.index(as_fraction(level, "level"))
        return next(node for node in self._nodes if node.place == place)

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """Infinite: a heavy cell that is selected may hold ranks of any number; count the rows around it."""
        del confidence, size
        return math.inf

    @property
    def variance(self) -> None:
        """None: it depends on the histogram."""
        return None

    @property
    def bias(self) -> None:
        """None: it depends on the histogram."""
        return None


def _tree(
    levels: tuple[Fraction, ...], places: range, between: tuple[Fraction, Fraction], nodes: list[_Node]
) -> _Node | None:
    """The node of the middle one of these levels, with all below it; children are listed before it."""
    if not places:
        return None
    place = places[len(places) // 2]
    level, (low, high) = levels[place], between
    # Any part would do for the price: it is public.
    part = ((level - low) / (high - low)).limit_denominator(FINEST)
    left = _tree(levels, places[: len(places) // 2], (low, level), nodes)
    right = _tree(levels, places[len(places) // 2 + 1 :], (level, high), nodes)
    nodes.append(_Node(place, part, side_of(level), left, right))
    return nodes[-1]


def _places(stretch: _Stretch) -> NDArray[np.int64]:
    """The place of each cell within the stretch of its group."""
    starts = np.cumsum(stretch.lengths) - stretch.lengths
    return np.arange(stretch.weights.size) - np.repeat(starts, stretch.lengths)


def _before(stretch: _Stretch, places: NDArray[np.int64]) -> _Stretch:
    """The cells up to the selected ones, which leave half of their weight, rounded up, to those after."""
    weights = stretch.weights[_places(stretch) <= np.repeat(places, stretch.lengths)]
    lengths = places + 1
    weights[np.cumsum(lengths) - 1] //= 2
    return _Stretch(weights, lengths, stretch.first)


def _after(stretch: _Stretch, places: NDArray[np.int64]) -> _Stretch:
    """The cells from the selected ones on, with the half of their weight that was left."""
    weights = stretch.weights[_places(stretch) >= np.repeat(places, stretch.lengths)]
    lengths = stretch.lengths - places
    starts = np.cumsum(lengths) - lengths
    weights[starts] -= weights[starts] // 2
    return _Stretch(weights, lengths, stretch.first + places)


def _example(name: str, mechanism: NestedQuantiles, left: list[int], right: list[int]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return mechanism.select_many([left if side == "left" else right] * count)

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example(
            "nested quantiles: three levels",
            NestedQuantiles(4, ["1/4", "1/2", "3/4"], sensitivity=4),
            [0, 2, 0, 0, 0, 0, 0, 2],
            [4, 2, 0, 0, 0, 0, 0, 2],
        ),
    )
