"""Error bars for quantiles: a noisy tree of partial sums, and the cells that it cannot rule out.

The cells of a public grid are summed in nodes of several sizes; each level of nodes covers the grid once. A
prefix of the histogram then takes a few nodes of each level rather than hundreds of cells. Nothing here reads
data but `Tree.counts`, whose exact sums go to a mechanism and to nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.exact import Rational, as_fraction, as_integer
from sfumato.plan.intervals.forms import Blend, Floats
from sfumato.plan.intervals.noise import Noise

__all__ = ["Tree", "quantile_intervals", "sum_widths"]

_FEW = 5  # so many Laplaces are left to partial fractions
_RAISED = 16  # scales below this part of the largest are raised to it, so that integrals are short
_TINY, _MARGIN, _LEAST = 1e-14, 1e-12, 1e-9  # left out of integrals; allowed for in them; risks they resolve
_STEPS = np.concatenate([np.geomspace(0.02, 0.5, 12), 1 - np.geomspace(0.45, 1e-3, 12)])
_TURNS = 16
_CLOSE = 2.0**-16  # what a width may be too wide by
_WIDER = 1 + 2.0**-30
_ROUNDING = 2.0**-44  # of the largest number in a group: what adding up in floats can take off
_CHUNK = 2**20


@dataclass(frozen=True, slots=True, init=False)
class Tree:
    """Sums of a histogram over blocks of cells: levels of nodes, the coarsest first, single cells last.

    Attributes:
        cells: How many cells the grid has.
        branching: The most children that a node may have; levels are as few as that allows, and their
            branchings as equal as possible.

    Privacy:
        Claim: where a unit's weights over all cells (of all groups) total at most Δ, the counts of all nodes
        (of all groups) have L1 sensitivity `levels`·Δ and L2 sensitivity √`levels`·Δ. Proof: every level is a
        partition of the cells, so each level's counts move by at most Δ in L1, hence in L2; levels add up as
        a sum, or as a sum of squares. Exchange doubles both. What is made of noisy counts is post-processing.
    """

    cells: int
    branching: int
    _fan: int = field(repr=False, compare=False)
    _levels: int = field(repr=False, compare=False)

    def __init__(self, cells: int, branching: int = 16) -> None:
        """Lay out the nodes.

        Raises:
            InvalidParameter: if there is no cell, or a node would have a single child.
        """
        count, most = as_integer(cells, "cells"), as_integer(branching, "branching", least=2)
        levels = next(k for k in range(1, 65) if most**k >= count)
        fan = next(f for f in range(1, most + 1) if f**levels >= count)
        for name, value in (("cells", count), ("branching", most), ("_fan", fan), ("_levels", levels)):
            object.__setattr__(self, name, value)

    @property
    def levels(self) -> int:
        """How many nodes each cell counts in."""
        return self._levels

    @property
    def spans(self) -> tuple[int, ...]:
        """How many cells a node of each level covers; the last node of a level may cover fewer."""
        return tuple(self._fan**k for k in reversed(range(self._levels)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        return tuple(-(-self.cells // span) for span in self.spans)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return sum(self.sizes)

    def counts(self, weights: Sequence[int] | NDArray[Any]) -> list[int]:
        """The exact sum of each node, level by level and from left to right within a level.

        Args:
            weights: One integer for each cell.

        Raises:
            InvalidValue: if the weights are not as many integers as there are cells.
        """
        exact = weights.tolist() if isinstance(weights, np.ndarray) else list(weights)
        whole = all(issubclass(kind, int | np.integer) and kind is not bool for kind in set(map(type, exact)))
        if len(exact) != self.cells or not whole:
            raise InvalidValue("A tree sums one integer for each of its cells.")
        levels = [list(map(int, exact))]
        while len(levels) < self.levels:
            finer = levels[0]
            levels.insert(0, [sum(finer[i : i + self._fan]) for i in range(0, len(finer), self._fan)])
        return [count for level in levels for count in level]

    def cdf(self, noisy: ArrayLike) -> Floats:
        """The share of weight up to each cell, groups × cells, from noisy nodes: monotone, from 0 to 1.

        The prefixes of least variance, made monotone by isotonic regression, over the noisy total. A group in
        which no weight is left gets the uniform one.
        """
        from scipy import optimize

        values = _noisy(self, noisy)
        total = values[:, : self.sizes[0]].sum(axis=1)
        prefixes = np.column_stack([_forms(self, Fraction(0)).apply(self, values), total])
        result = np.empty_like(prefixes)
        uniform = np.arange(1, self.cells + 1) / self.cells
        for row, n, out in zip(prefixes, total.tolist(), result, strict=True):
            out[:] = np.clip(optimize.isotonic_regression(row).x / n, 0.0, 1.0) if n > 0 else uniform
        result[:, -1] = 1.0
        return result


class _Forms(NamedTuple):
    """The linear forms (1 − q)·(weight before boundary k) − q·(weight from it on), k = 1 … cells − 1.

    On each level, the boundary lies in one block of siblings: some lie left of it, some right, and, but on
    the last level, one contains it. Each of those three has one coefficient per level and boundary.
    """

    place: list[NDArray[np.intp]]  # of the node that begins at the boundary or contains it
    first: list[NDArray[np.intp]]  # of its block
    end: list[NDArray[np.intp]]
    left: Floats  # coefficients, levels × boundaries
    right: Floats
    inner: Floats

    def apply(self, tree: Tree, values: Floats) -> Floats:
        """The forms of each group's noisy nodes, groups × boundaries."""
        total = np.zeros((len(values), tree.cells - 1))
        start = 0
        for level, size in enumerate(tree.sizes):
            part = values[:, start : start + size]
            sums = np.concatenate([np.zeros((len(part), 1)), np.cumsum(part, axis=1)], axis=1)
            start += size
            place, before = self.place[level], sums[:, self.first[level]]
            at = sums[:, place]
            total += self.left[level] * (at - before)
            if level + 1 < tree.levels:
                after = sums[:, place + 1]
                total += self.inner[level] * (after - at)
                at = after
            total += self.right[level] * (sums[:, self.end[level]] - at)
        return total

    def terms(self) -> tuple[Floats, Floats]:
        """(sizes of coefficients, how many noises have them), each terms × boundaries."""
        lefts = np.stack([p - f for p, f in zip(self.place, self.first, strict=True)])
        rights = np.stack([e - p for e, p in zip(self.end, self.place, strict=True)])
        rights[:-1] -= 1
        inner = np.ones_like(lefts[:-1])
        sizes = np.concatenate([np.abs(self.left), np.abs(self.right), np.abs(self.inner[:-1])])
        return sizes, np.concatenate([lefts, rights, inner]).astype(np.float64)


@lru_cache(maxsize=64)
def _forms(tree: Tree, level: Fraction) -> _Forms:
    """The forms of least variance over the nodes around the path to a boundary.

    To the plain sum over siblings left (1 − q) and right (−q) of the path, any multiple λ of (a node on the
    path − its children) may be added, whose expectation is 0. The variance is a quadratic in the λ of each
    level with a tridiagonal system: (left + right + 1 + [not last])·λ_l − λ_(l−1) − λ_(l+1) =
    (1 − q)·left − q·right, and λ = 0 on the first level, whose parent is not measured. Nodes below the path
    are not used: from branchings of 4 on that costs up to a third of the variance (6 % on average over a
    thousand cells), on binary trees it can more than double it.
    """
    q, boundary = float(level), np.arange(1, tree.cells)
    place = [boundary // span for span in tree.spans]
    first = [p // tree._fan * tree._fan for p in place]
    end = [np.minimum(f + tree._fan, size) for f, size in zip(first, tree.sizes, strict=True)]
    shift = np.zeros((tree.levels + 1, boundary.size))
    rows = tree.levels - 1
    if rows and boundary.size:
        matrix, target = np.zeros((boundary.size, rows, rows)), np.empty((boundary.size, rows, 1))
        for row in range(rows):
            lefts = place[row + 1] - first[row + 1]
            rights = end[row + 1] - place[row + 1] - (row + 1 < rows)
            matrix[:, row, row] = lefts + rights + 1 + (row + 1 < rows)
            if row:
                matrix[:, row, row - 1] = matrix[:, row - 1, row] = -1
            target[:, row, 0] = (1 - q) * lefts - q * rights
        shift[1:-1] = np.linalg.solve(matrix, target)[:, :, 0].T
    return _Forms(place, first, end, 1 - q - shift[:-1], -q - shift[:-1], shift[1:] - shift[:-1])


def quantile_intervals(
    tree: Tree, noisy_nodes: ArrayLike, noise: Noise, level: Rational, risk: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each group the first and the last cell that the noise cannot rule out as its quantile.

    A quantile is a cell with (weight before it) ≤ q·(total) ≤ (weight up to it). Each of the two differences
    is estimated from a few nodes, and the cell ruled out if one exceeds what its noise alone exceeds with
    probability risk/2; at levels 0 and 1 one of the two says nothing, and the other has the whole risk. Any
    quantile cell therefore lies in the interval with probability at least 1 − risk, whatever the data;
    the interval is never empty. Where several cells are quantiles (there are empty ones in between, or
    beyond an extreme) this holds for each of them.

    Args:
        tree: The layout of the nodes.
        noisy_nodes: Groups × nodes, in the order of `Tree.counts` and in natural units.
        noise: The law of each node's noise, the same for all and independent.
        level: q, from 0 to 1.
        risk: The probability that an interval may miss.

    Raises:
        InvalidParameter: if the level is not from 0 to 1, or the risk not above 0.
    """
    q = as_fraction(level, "level")
    if not 0 <= q <= 1 or not risk > 0:
        raise InvalidParameter("A quantile's interval takes a level from 0 to 1 and a risk above 0.")
    values = _noisy(tree, noisy_nodes)
    groups = len(values)
    share = risk if q in (0, 1) else risk / 2
    form = _forms(tree, q).apply(tree, values)
    width = _widths(tree, q, noise, share) + _ROUNDING * np.abs(values).max(axis=1, initial=0.0)[:, None]
    ends = np.ones((groups, 1), np.bool_)
    # Before the first cell there is nothing, and nothing after the last one: those are never ruled out.
    reached = np.concatenate([ends, form <= width], axis=1)
    passed = np.concatenate([form >= -width, ends], axis=1)
    last = tree.cells - 1 - np.argmax(reached[:, ::-1], axis=1)
    first = np.argmax(passed, axis=1)
    if q == 0:
        first = np.zeros(groups, np.int64)
    if q == 1:
        last = np.full(groups, tree.cells - 1)
    return first.astype(np.int64), last.astype(np.int64)


def _noisy(tree: Tree, noisy: ArrayLike) -> Floats:
    values = np.asarray(noisy, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != tree.nodes or not np.isfinite(values).all():
        raise InvalidValue("Noisy nodes are a table of finite numbers: groups by the nodes of the tree.")
    return values


@lru_cache(maxsize=256)
def _widths(tree: Tree, level: Fraction, noise: Noise, risk: float) -> Floats:
    """What the noise of each boundary's form exceeds, upwards, with probability at most `risk`."""
    return sum_widths(*_forms(tree, level).terms(), noise, risk)


def sum_widths(sizes: Floats, counts: Floats, noise: Noise, risk: float) -> Floats:
    """What sums of independent noises exceed, upwards, with probability at most `risk`; a column is a sum.

    Args:
        sizes: The sizes of coefficients, terms × sums.
        counts: How many noises have them, terms × sums.
        noise: The law of each.
        risk: The probability.
    """
    match noise.law:
        case _ if risk >= 0.5:
            wide = np.zeros(sizes.shape[1])  # the noise is symmetric
        case "gaussian":
            from scipy import special

            wide = _norm(sizes, counts) * (noise.scale * math.sqrt(2) * float(special.erfcinv(2 * risk)))
        case "laplace":
            wide = noise.scale * _laplace_widths(sizes, counts, risk)
        case "geometric":
            wide = _geometric_widths(sizes, counts, noise.scale, risk)
        case unknown:
            assert_never(unknown)
    result: Floats = (wide + noise.slack * (sizes * counts).sum(axis=0)) * _WIDER
    result.flags.writeable = False
    return result


def _norm(sizes: Floats, counts: Floats) -> Floats:
    norm: Floats = np.sqrt((np.square(sizes) * counts).sum(axis=0))
    return norm


def _geometric_widths(sizes: Floats, counts: Floats, scale: float, risk: float) -> Floats:
    """Widths for geometric noises X_i of scale b, by those of Laplace noises Y_i of b' = 1/(2·tanh(1/(2b))).

    With U uniform on ±1/2, X + U has the tail P(|X + U| > k + u) = q^k·(1 − u/b'), q = exp(−1/b), for whole
    k ≥ 0 and |u| ≤ 1/2 (u ≥ 0 at k = 0), which is at most exp(−(k + u)/b') = P(|Y| > k + u) as b' ≥ b. Both
    are symmetric and unimodal, so that Σ a_i·(X_i + U_i) exceeds any width no more often than Σ a_i·Y_i does
    (Birnbaum 1948). And Σ a_i·U_i exceeds d with probability at most exp(−6d²/Σ a_i²), as
    E exp(sU) ≤ exp(s²/24). A fiftieth of the risk goes there.
    """
    rest = risk / 50
    apart = _norm(sizes, counts) * math.sqrt(-math.log(rest) / 6)
    return _laplace_widths(sizes, counts, risk - rest) * (0.5 / math.tanh(0.5 / scale)) + apart


def _laplace_widths(sizes: Floats, counts: Floats, risk: float) -> Floats:
    """Widths w with P(Z > w) ≤ risk for Z = Σ a_i·X_i, independent Laplace X_i of scale 1; a column is a sum.

    Up to five noises: `Blend`. More: P(Z > x) = 1/2 − (1/π)·∫ sin(tx)·φ(t)/t dt, φ(t) = Π 1/(1 + a_i²t²), by
    the midpoint rule. Its error is known: with steps h it replaces [Z > x] by a square wave in Z − x that
    agrees with it within ±2π/h, so it is off by at most P(|Z| > 2π/h − x), which Chernoff's bound makes
    negligible; and what is left out beyond T is at most φ(T). Small scales are raised first, which only
    widens (Anderson 1955). Risks too small for this take Chernoff's bound itself.
    """
    sizes, counts = np.where(counts > 0, sizes, 0.0), np.where(sizes > 0, counts, 0.0)
    widths = np.zeros(sizes.shape[1])
    few = counts.sum(axis=0) <= _FEW
    if few.any():
        widths[few] = _few_widths(sizes[:, few], counts[:, few], risk)
    if few.all():
        return widths
    top = sizes[:, ~few].max(axis=0)
    scales = np.where(sizes[:, ~few] > 0, np.maximum(sizes[:, ~few] / top, 1 / _RAISED), 0.0)
    many = counts[:, ~few]
    bound = _chernoff(scales, many, risk)
    if risk >= _LEAST:
        bound = _inverted(scales, many, risk, bound)
    widths[~few] = bound * top
    return widths


def _few_widths(sizes: Floats, counts: Floats, risk: float) -> Floats:
    form = np.zeros((_FEW, sizes.shape[1]))
    for column in range(sizes.shape[1]):
        widths = np.repeat(sizes[:, column], counts[:, column].astype(np.intp))
        form[: widths.size, column] = widths
    used = max(1, int(np.count_nonzero(form, axis=0).max(initial=1)))
    return Blend((Noise("laplace", 1.0),) * used).width(form[:used], 2 * risk)


def _chernoff(scales: Floats, counts: Floats, risk: float) -> Floats:
    """The least (ln(1/risk) + ln E exp(sZ))/s over a list of s; the largest scale is 1."""
    best = np.full(scales.shape[1], np.inf)
    for s in _STEPS:
        growth = -(counts * np.log1p(-np.square(s * scales))).sum(axis=0)
        best = np.minimum(best, (growth - math.log(risk)) / s)
    return best


def _inverted(scales: Floats, counts: Floats, risk: float, bound: Floats) -> Floats:
    """The quantile by the midpoint rule, between its tangents and its chords; see `_laplace_widths`."""
    reach = np.maximum(_chernoff(scales, counts, _TINY), bound)
    step, last = math.pi / reach, np.ones(scales.shape[1])
    while (more := (counts * np.log1p(np.square(last * scales))).sum(axis=0) < -math.log(_TINY)).any():
        last = np.where(more, last * 1.25, last)
    points = np.ceil(last / step).astype(np.intp) + 1
    order, result = np.argsort(points), np.empty_like(bound)
    while order.size:
        fitting = max(1, int(np.searchsorted(points[order] * np.arange(1, order.size + 1), _CHUNK)))
        fitting = min(fitting, int(np.searchsorted(points[order], 2 * points[order[0]], side="right")))
        part, order = order[:fitting], order[fitting:]
        half = np.arange(points[part[-1]])[:, None] + 0.5
        t = half * step[part]
        fall = np.zeros_like(t)
        for scale, count in zip(scales[:, part], counts[:, part], strict=True):
            fall += count * np.log1p(np.square(t * scale))
        result[part] = _solved(t, np.exp(-fall) / math.pi, half, risk - _MARGIN, bound[part])
    return result


def _solved(t: Floats, phi: Floats, half: Floats, risk: float, high: Floats) -> Floats:
    """Where the tail falls to the risk, from above.

    The law is unimodal, so that the tail is convex beyond 0: chords lie above it and tangents below.
    """

    def tail(x: Floats) -> Floats:
        values: Floats = 0.5 - (phi * np.sin(t * x) / half).sum(axis=0)
        return values

    start = high / 2
    at_start, at_high = tail(start), np.minimum(tail(high), risk)
    above = at_start > risk  # a tangent from there is better than one from 0, where the tail is a half
    low, at_low = np.where(above, start, 0.0), np.where(above, at_start, 0.5)
    for _ in range(_TURNS):
        if (high - low <= _CLOSE * high).all():
            break
        density = (phi * np.cos(t * low) * (t / half)).sum(axis=0)
        fall = at_low - at_high  # nothing, once both are there
        part = np.clip((at_low - risk) / np.where(fall > 0, fall, 1.0), 0.0, 1.0)
        low, high = (
            np.minimum(low + np.maximum(at_low - risk, 0) / density, high),
            low + (high - low) * np.where(fall > 0, part, 1.0),
        )
        at_low, at_high = np.maximum(tail(low), risk), np.minimum(tail(high), risk)
    return high
