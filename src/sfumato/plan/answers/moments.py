"""Values and intervals of covariances and correlations, from noisy sums.

As in `plan.intervals.forms`, everything is vectorised over groups and nothing is simulated. The parts of a
pair of columns are S, T (sums of both distances from the middles), P (of their products), Q, R (of their
squares, less shifts) and n (the count).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.intervals.forms import Blend, Floats, edge, excess_of, mean_interval, variance_interval
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates import Estimator

__all__ = ["pair_interval", "pair_value"]

Ends: TypeAlias = tuple[Floats, Floats]

_SHARE = 1 / 32  # of the risk, for each of the means and variances that must be placed first
_EPS = 2.0**-50
_FAR = 1.5  # no correlation lies beyond 1, so nothing is looked for there


def pair_value(estimator: Estimator, parts: Sequence[Floats]) -> Floats:
    """The released covariance or correlation, within what is possible; 0 without rows or spread."""
    n = parts[-1]
    some = np.maximum(n, 1.0)
    half, other = float(estimator.half), float(estimator.other_half)
    one, two = np.clip(parts[0] / some, -half, half), np.clip(parts[1] / some, -other, other)
    both = np.clip(parts[2] / some, -half * other, half * other) - one * two
    if estimator.kind == "covar":
        if estimator.sample:
            both = both * some / np.maximum(some - 1, 1.0)
        most = math.inf if estimator.upper is None else float(estimator.upper)
        return np.where(n > 0, np.clip(both, -most, most), 0.0)
    first = parts[3] / some + float(estimator.shift) - one * one
    second = parts[4] / some + float(estimator.other_shift) - two * two
    spread = np.sqrt(np.maximum(first, 0.0)) * np.sqrt(np.maximum(second, 0.0))
    known = (n > 0) & (spread > 0)
    return np.where(known, np.clip(both / np.where(known, spread, 1.0), -1.0, 1.0), 0.0)


def pair_interval(
    estimator: Estimator, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float
) -> Ends:
    """An interval for the covariance or correlation before noise; everything possible where little is known.

    Groups with n ≤ 1, and columns without spread, are covered whatever value is given to them.
    """
    pool = _Pool.of(estimator.parts, noises)
    if estimator.kind == "covar":
        low, high = _covariance(estimator, parts, noises, pool, risk)
    else:
        low, high = _correlation(estimator, parts, noises, pool, risk)
    most = math.inf if estimator.upper is None else float(estimator.upper)
    return np.clip(low, -most, most), np.clip(high, -most, most)


@dataclass(frozen=True, slots=True)
class _Pool:
    """The noise of the parts, where two of them may be one measurement (as of x and of x − 1).

    Attributes:
        blend: The noises of the different measurements.
        rows: Which of them each part has.
    """

    blend: Blend
    rows: tuple[int, ...]

    @classmethod
    def of(cls, places: Sequence[int], noises: Sequence[Noise]) -> _Pool:
        """Noises by the places of their measurements."""
        different = dict(zip(places, noises, strict=True))
        order = list(different)
        return cls(Blend(tuple(different.values())), tuple(order.index(place) for place in places))

    def form(self, sizes: Sequence[Floats]) -> Floats:
        """Bounds on the coefficients of the noises from bounds on those of the parts."""
        pooled = np.zeros((len(self.blend.noises), *np.broadcast_shapes(*(each.shape for each in sizes))))
        for row, size in zip(self.rows, sizes, strict=True):
            pooled[row] += size
        return pooled


def _hull(*corners: Floats) -> Ends:
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _products(one: Ends, two: Ends) -> Ends:
    return _hull(*(a * b for a in one for b in two))


def _size(ends: Ends) -> Floats:
    return np.maximum(np.abs(ends[0]), np.abs(ends[1]))


def _farthest(fixed: Ends, slope: Ends, at: Floats) -> Floats:
    """The largest |f − at·s| for f and s between these ends: convex in `at`."""
    return _hull(*(np.abs(f - at * s) for f in fixed for s in slope))[1]


def _squares(ends: Ends) -> Ends:
    least = np.where(ends[0] * ends[1] <= 0, 0.0, np.minimum(np.abs(ends[0]), np.abs(ends[1])))
    return least * least, np.square(_size(ends))


@dataclass(frozen=True, slots=True)
class _Centred:
    """A pair of columns, with intervals for both means that miss with probability 2·_SHARE·risk at most.

    Attributes:
        parts: The noisy parts.
        one: The mean of the first column.
        two: The mean of the second.
    """

    parts: Sequence[Floats]
    one: Ends
    two: Ends

    @classmethod
    def of(
        cls, estimator: Estimator, parts: Sequence[Floats], noises: Sequence[Noise], risk: float
    ) -> _Centred:
        """Both means at their share of the risk."""
        halves = float(estimator.half), float(estimator.other_half)
        one, two = (
            mean_interval(
                parts[i], parts[-1], (noises[i], noises[-1]), lower=-half, upper=half, risk=risk * _SHARE
            )
            for i, half in enumerate(halves)
        )
        return cls(parts, one, two)

    @property
    def products(self) -> Ends:
        """P − a·T − b·S + a·b·n, which is linear in each mean, over all means a and b."""
        s, t, p, n = self.parts[0], self.parts[1], self.parts[2], self.parts[-1]
        return _hull(*(p - a * t - b * s + a * b * n for a in self.one for b in self.two))


@dataclass(frozen=True, slots=True)
class _Box:
    """All that is not refuted about a pair: both means a and b, and the ratio d of both deviations.

    Attributes:
        pair: The parts and the means.
        ratio: The ratio.
        shifts: What was taken off the squares of each column.
    """

    pair: _Centred
    ratio: Ends
    shifts: tuple[float, float]

    @property
    def spread(self) -> Ends:
        """(Q + shift·n − 2aS + a²n)/d + d·(R + shift'·n − 2bT + b²n)."""
        s, t, _, q, r, n = self.pair.parts
        one = _parabola(s, q + self.shifts[0] * n, n, self.pair.one)
        two = _parabola(t, r + self.shifts[1] * n, n, self.pair.two)
        return self._mixed(one, two)

    def sizes(self, at: Floats) -> tuple[Floats, ...]:
        """The largest coefficients of the parts' noise at a correlation, each convex in it."""
        one, two, (low, high) = self.pair.one, self.pair.two, self.ratio
        squares = [_squares(each) for each in (one, two)]
        lifted = [(low + shift, top + shift) for (low, top), shift in zip(squares, self.shifts, strict=True)]
        weight = self._mixed(lifted[0], lifted[1])
        return (
            _farthest(two, _products(one, (1 / high, 1 / low)), at),
            _farthest(one, _products(two, self.ratio), at),
            np.ones_like(at),
            np.abs(at) / (2 * low),
            np.abs(at) * high / 2,
            _farthest(_products(one, two), (weight[0] / 2, weight[1] / 2), at),
        )

    def _mixed(self, one: Ends, two: Ends) -> Ends:
        """The ends of x/d + d·y: at the ends of d, or where the derivative is 0."""

        def ends(x: Floats, y: Floats) -> Ends:
            with np.errstate(divide="ignore", invalid="ignore"):
                still = np.nan_to_num(np.sqrt(np.abs(x / y)), nan=1.0)
            middle = np.clip(still, *self.ratio)
            return _hull(*(x / d + d * y for d in (*self.ratio, middle)))

        return ends(one[0], two[0])[0], ends(one[1], two[1])[1]


def _parabola(total: Floats, squares: Floats, count: Floats, mean: Ends) -> Ends:
    """The ends of squares − 2·a·total + a²·count over these means a, for a positive count."""
    best = np.clip(total / np.where(count > 0, count, 1.0), *mean)
    return _hull(*(squares - 2 * a * total + a * a * count for a in (*mean, best)))


def _covariance(
    estimator: Estimator, parts: Sequence[Floats], noises: Sequence[Noise], pool: _Pool, risk: float
) -> Ends:
    """An interval for C = P/n − (S/n)(T/n), or for C·n/(n − 1). Conservative.

    At the means a = S/n and b = T/n the covariance is a plain ratio, C = (P − aT − bS + ab·n)/n, of noise
    X_P − a·X_T − b·X_S + (ab − C)·X_n; with n − 1 below for a sample. So: intervals for a and b at 1/32 of
    the risk each, then the covariances that some (a, b) in them does not refute at the rest. The numerator is
    P − ST/n + n(a − S/n)(b − T/n), so what is lost by not knowing the means is of second order. Coefficients
    are taken at their largest over the intervals, which only widens (Anderson 1955).
    """
    rest = risk * (1 - 2 * _SHARE) * (1 - _EPS)
    zero, unit = np.zeros((1,)), np.ones((1,))
    count = parts[-1]
    firm = np.maximum(count - 1, 0.0) > pool.blend.width(pool.form((zero, zero, zero, unit)), rest)
    safe = np.where(firm, count - (1.0 if estimator.sample else 0.0), 1.0)
    pair = _Centred.of(estimator, [np.where(firm, each, 1.0) for each in parts], noises, risk)
    least, most = pair.products
    ends = _products(pair.one, pair.two)

    def form(c: Floats) -> Floats:
        weight = np.maximum(np.abs(ends[0] - c), np.abs(ends[1] - c))
        return pool.form((_size(pair.two), _size(pair.one), np.ones_like(c), weight))

    def excess(c: Floats, width: Floats) -> Floats:
        return excess_of(pool.blend.tail(form(c), width), rest, firm)

    starts = least / safe, most / safe
    steps = [pool.blend.reach(form(c), rest) / safe + 1e-300 for c in starts]
    low = edge(starts[0], -steps[0], lambda c: excess(c, least - c * safe))
    high = edge(starts[1], steps[1], lambda c: excess(c, c * safe - most))
    return np.where(firm, low, -np.inf), np.where(firm, high, np.inf)


def _correlation(
    estimator: Estimator, parts: Sequence[Floats], noises: Sequence[Noise], pool: _Pool, risk: float
) -> Ends:
    """An interval for r = C/√(V·W), of the covariance and both variances. Conservative.

    With d = √(V/W), 2√(V·W) = V/d + d·W, and this is the least value over all d: so at the true means a, b
    and ratio d, r solves g(r) = A − r·D/2 = 0 for A = P − aT − bS + ab·n and D = (Q + shift·n − 2aS + a²n)/d
    + d·(R + shift'·n − 2bT + b²n), which are linear in the parts. The noise of g(r) is X_P + (ra/d − b)·X_S +
    (rbd − a)·X_T − r/(2d)·X_Q − rd/2·X_R + (ab − r((shift + a²)/d + d(shift' + b²))/2)·X_n. So: intervals for
    a, b, V and W at 1/32 of the risk each, then the r that some (a, b, d) in them does not refute at the
    rest. A and D are flat at the estimates: what is lost by not knowing these is of second order.

    With A, D and the coefficients at their worst over the box, r is too large if max A − r·D/2 < −q(r), where
    q is a norm (`plan.intervals.forms.quotient`) of coefficients that are convex in r: this fails up to some
    r and perhaps again beyond a larger one. So the end of the first stretch is that of the interval if 1
    itself is refuted, and else 1 is.
    """
    rest = risk * (1 - 4 * _SHARE) * (1 - _EPS)
    ratio, firm = _ratio(estimator, parts, noises, risk * _SHARE)
    pair = _Centred.of(estimator, [np.where(firm, each, 1.0) for each in parts], noises, risk)
    box = _Box(pair, ratio, (float(estimator.shift), float(estimator.other_shift)))
    (least, most), spread = pair.products, box.spread

    def form(at: Floats) -> Floats:
        return pool.form(box.sizes(at))

    def end(numerator: Floats, side: float) -> Floats:
        """The upper end, or with side −1 that of −r."""
        near, far = np.where(side * numerator >= 0, *spread), np.full(numerator.shape, side)
        start = np.where(near > 0, 2 * numerator / np.where(near > 0, near, 1.0), side)

        def excess(at: Floats) -> Floats:
            rest_of = _hull(at * spread[0] / 2, at * spread[1] / 2)
            width = rest_of[0] - numerator if side > 0 else numerator - rest_of[1]
            return excess_of(pool.blend.tail(form(at), width), rest, firm & (side * at <= _FAR))

        step = 2 * pool.blend.reach(form(start), rest) / np.where(near > 0, near, 1.0) + 1e-300
        found = edge(start, side * step, excess)
        return np.where((excess(far) > 0) | (spread[0] <= 0), side, found)

    return np.where(firm, end(least, -1.0), -1.0), np.where(firm, end(most, 1.0), 1.0)


def _ratio(
    estimator: Estimator, parts: Sequence[Floats], noises: Sequence[Noise], risk: float
) -> tuple[Ends, NDArray[np.bool_]]:
    """The ratio of both deviations, and whether both are surely positive; each misses at this risk."""
    reaches = float(estimator.half), float(estimator.other_half)
    shifts = float(estimator.shift), float(estimator.other_shift)
    spreads = [
        variance_interval(
            parts[i],
            parts[i + 3],
            parts[-1],
            (noises[i], noises[i + 3], noises[-1]),
            half=reaches[i],
            shift=shifts[i],
            sample=False,
            risk=risk,
        )
        for i in (0, 1)
    ]
    firm = (spreads[0][0] > 0) & (spreads[1][0] > 0)
    low, high = (
        [
            np.where(firm, np.minimum(ends[k], reach * reach), 1.0)
            for ends, reach in zip(spreads, reaches, strict=True)
        ]
        for k in (0, 1)
    )
    ratio = np.sqrt(low[0] / high[1]) * (1 - _EPS), np.sqrt(high[0] / low[1]) * (1 + _EPS)
    return ratio, firm
