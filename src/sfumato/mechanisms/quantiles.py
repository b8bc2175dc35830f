"""Quantiles of a weighted histogram on a public grid, in many groups at once, by permute-and-flip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import PrivacyLoss, PureLoss
from sfumato.mechanisms._ranks import (
    Limbs,
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
from sfumato.mechanisms._utility import candidates_of, failure_of
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.permute_and_flip import flip_gap
from sfumato.numeric.exact import Rational, as_fraction, as_integer, float_up, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Quantiles", "examples"]

# Cells beyond an extreme weigh so little together that one of them is taken in at most one case of 32.
_BEYOND = 16
_CHUNK = 2**18  # cells worked on at once


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Quantiles(Mechanism):
    """Chooses for each level q a cell of the grid around which about q of a histogram's weight lies below.

    Cell j with `below` of the weight n before it and `upto` including it holds the q-quantile if
    below ≤ qn ≤ upto; its distance is max(0, below − T, T − upto), T = qn. Permute-and-flip takes the first
    cell in random order whose coin of bias exp(−rate·distance) shows heads. Levels are chosen independently
    and then put in order, which never makes the largest rank error larger. Their prices are shared: a unit
    is on one side of most levels, and moves those on its far side by less than they could be moved.

    At the ends a plain target would not do: beyond the maximum all cells are at distance 0 from T = n. Levels
    q ≥ 19/20 therefore aim at T = min(qn, max(n/2, n − t)), those q ≤ 1/20 at the mirror image. The guard
    t = ln(16·cells)/rate is public; all cells beyond the maximum together are then chosen at most once in 32
    times (as long as n ≥ 2t), and the price is a rank error of t at most. A histogram of no weight
    gives any cell alike.

    Attributes:
        epsilon: The pure price of all levels in all groups together.
        levels: Quantile levels, exact fractions from 0 (the minimum) to 1 (the maximum), in the order of the
            answers. One that is listed twice is chosen and paid once.
        sensitivity: The most that the weights of one privacy unit total, over all cells of all groups.
        exchange: Whether neighbours exchange one unit for another, rather than add or remove one.
        together: Whether the levels share one pure price. Apart, each of L levels has ε/L by itself, which
            accountants that compose better than by addition charge less for.

    Privacy:
        Claim: `epsilon`-DP for `select` on one histogram, and for one `select_many` on all groups together;
        apart, each level is ε/L-DP.
        Proof. Let weight w enter one cell p of one histogram. (1) Scores: cells right of p have `below` and
        `upto` larger by w, cells left of p neither, and p itself `upto` alone. T grows by x: q·w for an inner
        level, and some x in [0, w] for an outer one, whose T is built by min and max from functions of n with
        slopes between 0 and 1. If T ≥ below(p), distances left of p grow by exactly x, that of p by at least
        −(w − x) and at most 0, those right of p by at most ±(w − x): all within a range of length
        (w − x) + max(x, w − x) = max(w, 2(w − x)). If T < below(p), those right of p grow by exactly w − x,
        that of p by −x to 0, those left by at most ±x: a range of max(w, 2x). (2) Permute-and-flip at rate r
        on scores that each move by at most s is 2rs-DP (McKenna, Sheldon 2020, Theorem 1), and it is the same
        for scores that are all shifted (some distance is 0 before and after): so it loses at most r times
        the length of the range. Per unit of w, that is b = max(1, 2q) for inner levels with T < below(p),
        a = max(1, 2(1 − q)) for those with T ≥ below(p), at most 2m with m = max(q, 1 − q) either way; and
        2 for outer levels, m = 1. (3) T = qn grows with q, so the inner levels of T < below(p) are the least
        ones, up to some k. As a ≥ b = 1 up to q = 1/2 and b ≥ a = 1 from there on, no k costs any level more
        than one of the two ends does: all of them at a, or all at b. With rates r = ρ/(2m), the levels, which
        are independent, lose at most w·ρ·S together, S = max(Σ a/2m, Σ b/2m), an outer level counting 1 in
        both: S ≤ L. (4) A unit enters weight by weight, in cells of groups that are chosen independently:
        losses add up to Δ·ρ·S = ε for ρ = ε/(S·Δ). This needs scores without rounding, which would let a
        unit of little weight in each of many groups move every one by a whole step: distances are exact
        integers, in units of 1/(twice the denominator of the level). Ordering is post-processing. To leave is
        the same the other way round; to exchange is to leave and to enter, for which the rate is halved.
        Apart: L in place of S, so that each level alone loses at most 2m·r·Δ = ε/L.
        Conditions: cells and groups are public; weights are integers of at most `sensitivity` per unit.
        The loss is pure and not of bounded range, which permute-and-flip lacks: at the same pure price its
        errors are never larger than the exponential mechanism's, and down to half of them.
    """

    epsilon: Fraction
    levels: tuple[Fraction, ...]
    sensitivity: int
    exchange: bool
    together: bool
    _distinct: tuple[Fraction, ...] = field(compare=False)
    _prices: Fraction = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        levels: Sequence[Rational],
        *,
        sensitivity: int,
        exchange: bool = False,
        together: bool = True,
    ) -> None:
        """Fix the law from the price, the levels and what one unit may weigh.

        Raises:
            InvalidParameter: if epsilon or the sensitivity is not positive, or a level is not a fraction from
                0 to 1 of a denominator of at most 2**30.
        """
        exact = levels_of(levels)
        freeze(self, epsilon=positive(epsilon, "epsilon"), levels=exact)
        freeze(self, exchange=bool(exchange), together=bool(together))
        freeze(self, sensitivity=as_integer(sensitivity, "sensitivity"), _distinct=tuple(sorted(set(exact))))
        freeze(self, _prices=_together(self._distinct) if together else Fraction(len(self._distinct)))

    def __repr__(self) -> str:
        levels = tuple(map(str, self.levels))
        parameters = {"epsilon": self.epsilon, "levels": levels, "sensitivity": self.sensitivity}
        return shown("Quantiles", **parameters, exchange=self.exchange, together=self.together)

    @property
    def loss(self) -> PrivacyLoss:
        """Pure ε for all levels together, or ε/L for each of L levels; all groups together."""
        count = 1 if self.together else len(self._distinct)
        return PureLoss(self.epsilon / count) * count

    def rate(self, level: Rational) -> Fraction:
        """The rate r of the coins exp(−r·distance) for a level, per unit of weight: ε/(2S·m·Δ)."""
        moved = self.sensitivity * (2 if self.exchange else 1) * _move(as_fraction(level, "level"))
        return self.epsilon / (2 * self._prices * moved)

    @staticmethod
    def is_outer(level: Rational) -> bool:
        """Whether a level aims a guard inside its extreme: those up to 1/20 and from 19/20 on."""
        return is_outer(as_fraction(level, "level"))

    def guard(self, cells: int) -> int:
        """How far inside the extremes the levels 0 and 1 aim, in units of weight."""
        return math.ceil(Fraction(math.log(_BEYOND * as_integer(cells, "cells"))) / self.rate(0))

    def select(self, weights: ArrayLike | Sequence[int]) -> tuple[int, ...]:
        """A cell for each level, in the order of `levels`: the greater level never has the lesser cell.

        Args:
            weights: The weight of each cell of one group's histogram, integers of at least 0 and of any size.

        Raises:
            InvalidValue: for weights that are not a flat, non-empty array of such integers;
                outside the claim.
        """
        return tuple(self._select(weights_of(weights, 1)[None, :])[0].tolist())

    def select_many(self, weights: ArrayLike | Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Cells for each group (row) and level (column), from groups × cells of weights.

        Raises:
            InvalidValue: for weights that are not a table of integers of at least 0 with at least one cell;
                outside the claim.
        """
        return self._select(weights_of(weights, 2))

    def _select(self, weights: NDArray[Any]) -> NDArray[np.int64]:
        groups, cells = weights.shape
        chosen = np.empty((groups, len(self._distinct)), np.int64)
        rows = max(1, _CHUNK // cells)
        for start in range(0, groups, rows):
            part = weights[start : start + rows]
            upto = np.cumsum(part, axis=1)
            for place, level in enumerate(self._distinct):
                chosen[start : start + rows, place] = self._choose(level, upto - part, upto)
        chosen.sort(axis=1)
        return chosen[:, places_among(self.levels, self._distinct)]

    def _choose(self, level: Fraction, below: NDArray[Any], upto: NDArray[Any]) -> NDArray[np.int64]:
        """One cell for each group by permute-and-flip: all coins, then one of the heads at random."""
        heads = heads_of(self._distances(level, below, upto), self.rate(level) / unit_of(level))
        places = np.flatnonzero(heads)
        counts = np.count_nonzero(heads.reshape(upto.shape), axis=1).tolist()
        drawn = np.array([random.integers(count) for count in counts], np.int64)
        picked: NDArray[np.int64] = places[np.cumsum(counts) - counts + drawn] % upto.shape[1]
        return picked

    def _distances(self, level: Fraction, below: NDArray[Any], upto: NDArray[Any]) -> Limbs:
        guard, side = self.guard(upto.shape[1]), side_of(level)
        targets = targets_of(level, side, upto[:, -1].tolist(), guard)
        return distances(targets[:, None], unit_of(level), below, upto)

    def error(self, confidence: Rational, *, size: int = 1, cells: int | None = None) -> float:
        """The rank error, in units of weight, that all levels keep within with this probability.

        The rank error of cell j for level q is max(0, below(j) − qn, qn − upto(j)). The bound is that of
        permute-and-flip for the worst histogram, and the guard for levels of at most 1/20 or at least 19/20.
        It holds after ordering too: cells within a bound form an interval whose ends grow with the level.

        Args:
            confidence: The probability that the bound holds.
            size: How many groups it holds for at once.
            cells: How many cells the grid has (a public number).
        """
        count, beta = candidates_of(cells), failure_of(confidence, size) / len(self._distinct)
        if count == 1:
            return 0.0
        gap = Fraction(flip_gap(count, beta) * (1 + 1e-9))
        return max(
            float_up(gap / self.rate(level) + (self.guard(count) if is_outer(level) else 0))
            for level in self._distinct
        )

    @property
    def variance(self) -> None:
        """None: it depends on the histogram."""
        return None

    @property
    def bias(self) -> None:
        """None: it depends on the histogram."""
        return None


def _move(level: Fraction) -> Fraction:
    """The most that a score moves when a unit of weight comes or goes."""
    return Fraction(1) if is_outer(level) else max(level, 1 - level)


def _costs(level: Fraction) -> tuple[Fraction, Fraction]:
    """The lengths of the ranges that scores move within, for a unit of weight below and above the level."""
    if is_outer(level):
        return Fraction(2), Fraction(2)
    return max(Fraction(1), 2 * (1 - level)), max(Fraction(1), 2 * level)


def _together(levels: tuple[Fraction, ...]) -> Fraction:
    """How many levels at their worst all of them cost: S."""
    parts = [[cost / (2 * _move(level)) for cost in _costs(level)] for level in levels]
    return max(sum(above, Fraction(0)) for above in zip(*parts, strict=True))


def _example(name: str, mechanism: Quantiles, left: list[int], right: list[int]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        drawn = mechanism.select_many([left if side == "left" else right] * count)
        return drawn[:, 0] if len(mechanism.levels) == 1 else drawn

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # A unit of 4 turns a stretch of empty cells, all of them quantiles, into cells beyond the quantile.
        _example(
            "quantiles: median",
            Quantiles(2, ["1/2"], sensitivity=4),
            [14, 0, 0, 0, 0, 2, 16, 0],
            [18, 0, 0, 0, 0, 2, 16, 0],
        ),
        _example(
            "quantiles: first quartile",
            Quantiles(2, ["1/4"], sensitivity=4),
            [0, 0, 4, 0, 0, 0, 11],
            [0, 4, 4, 0, 0, 0, 11],
        ),
        _example(
            "quantiles: maximum",
            Quantiles(2, [1], sensitivity=4),
            [32, 0, 0, 0, 0, 8, 8, 5],
            [32, 0, 0, 0, 0, 8, 8, 9],
        ),
        _example(
            "quantiles: two levels",
            Quantiles(4, ["2/5", "1/2"], sensitivity=4),
            [0, 2, 0, 0, 0, 0, 0, 2],
            [4, 2, 0, 0, 0, 0, 0, 2],
        ),
        _example(
            "quantiles: exchange",
            Quantiles(2, ["1/2"], sensitivity=4, exchange=True),
            [0, 6, 0, 0, 0, 4],
            [4, 6, 0, 0, 0, 0],
        ),
    )
