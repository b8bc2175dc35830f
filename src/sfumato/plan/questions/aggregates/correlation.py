"""CORR, from the measurements of the covariance and of both variances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.intervals.forms import Floats, edge, excess_of, variance_interval
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates._pairs import EPS, SHARE, Centred, Pair, Pooled, hull, products, size
from sfumato.plan.questions.aggregates.base import Ends, Estimator, Part, Statistic
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.terms import Agg, Col, two

__all__ = ["STATISTICS", "Correlated", "corr"]

_ZERO = Fraction(0)
_FAR = 1.5  # no correlation lies beyond 1, so nothing is looked for there
_TYPICAL = 0.5  # a correlation that is neither none nor perfect


@dataclass(frozen=True, slots=True)
class Correlated(Estimator):
    """The covariance P/n − (S/n)(T/n) over the root of both variances.

    S and T are the sums of both distances from the middles, P that of their products, Q and R those of their
    squares less shifts, and n the count.

    Attributes:
        half: How far from its middle a value of the first column can be.
        other_half: The same of the second.
        shift: What was taken off every square of the first column before summing.
        other_shift: The same of the second.
    """

    half: Fraction = _ZERO
    other_half: Fraction = _ZERO
    shift: Fraction = _ZERO
    other_shift: Fraction = _ZERO

    names: ClassVar[tuple[str, ...]] = (
        ".sum",
        ".other",
        ".products",
        ".squares",
        ".other_squares",
        ".count",
    )

    @property
    def scale(self) -> float:
        """One over the product of both deviations, of evenly spread numbers."""
        spread = float(self.half * self.other_half) / 3
        return 1 / spread if spread else 0.0

    def gradients(self) -> tuple[float, ...]:
        """The derivatives that `interval` uses, but for a factor of √(V·W)·n.

        Taken at r = 1/2 and a quarter of the ranges off the middles, where either sign of r·a·b is as likely:
        roots of mean squares.
        """
        half, other = float(self.half) or 1.0, float(self.other_half) or 1.0
        ratio, one, two = min(max(half / other, 1e-150), 1e150), half / 2, other / 2
        shifted = (float(self.shift) + one * one) / ratio + ratio * (float(self.other_shift) + two * two)
        return (
            math.hypot(two, _TYPICAL * one / ratio),
            math.hypot(one, _TYPICAL * two * ratio),
            1.0,
            _TYPICAL / (2 * ratio),
            _TYPICAL * ratio / 2,
            math.hypot(one * two, _TYPICAL * shifted / 2),
        )

    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """From −1 to 1; 0 without rows or spread."""
        s, t, p, q, r, n = (part.astype(np.float64) for part in parts)
        some = np.maximum(n, 1.0)
        half, other = float(self.half), float(self.other_half)
        one, two = np.clip(s / some, -half, half), np.clip(t / some, -other, other)
        both = np.clip(p / some, -half * other, half * other) - one * two
        first = q / some + float(self.shift) - one * one
        second = r / some + float(self.other_shift) - two * two
        spread = np.sqrt(np.maximum(first, 0.0)) * np.sqrt(np.maximum(second, 0.0))
        known = (n > 0) & (spread > 0)
        return np.where(known, np.clip(both / np.where(known, spread, 1.0), -1.0, 1.0), 0.0)

    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """An interval for r = C/√(V·W), of the covariance and both variances. Conservative.

        With d = √(V/W), 2√(V·W) = V/d + d·W, and this is the least value over all d: so at the true means a,
        b and ratio d, r solves g(r) = A − r·D/2 = 0 for A = P − aT − bS + ab·n and D = (Q + shift·n − 2aS +
        a²n)/d + d·(R + shift'·n − 2bT + b²n), which are linear in the parts. The noise of g(r) is X_P +
        (ra/d − b)·X_S + (rbd − a)·X_T − r/(2d)·X_Q − rd/2·X_R + (ab − r((shift + a²)/d + d(shift' +
        b²))/2)·X_n. So: intervals for a, b, V and W at 1/32 of the risk each, then the r that some (a, b, d)
        in them does not refute at the rest. A and D are flat at the estimates: what is lost by not knowing
        these is of second order.

        With A, D and the coefficients at their worst over the box, r is too large if max A − r·D/2 < −q(r),
        where q is a norm (`plan.intervals.forms.quotient`) of coefficients that are convex in r: this fails
        up to some r and perhaps again beyond a larger one. So the end of the first stretch is that of the
        interval if 1 itself is refuted, and else 1 is.
        """
        pool = Pooled.of(self.parts, noises)
        rest = risk * (1 - 4 * SHARE) * (1 - EPS)
        ratio, firm = _ratio(self, parts, noises, risk * SHARE)
        pair = Centred.of(
            (self.half, self.other_half), [np.where(firm, part, 1.0) for part in parts], noises, risk
        )
        box = _Box(pair, ratio, (float(self.shift), float(self.other_shift)))
        (least, most), spread = pair.products, box.spread

        def form(at: Floats) -> Floats:
            return pool.form(box.sizes(at))

        def end(numerator: Floats, side: float) -> Floats:
            """The upper end, or with side −1 that of −r."""
            near, far = np.where(side * numerator >= 0, *spread), np.full(numerator.shape, side)
            start = np.where(near > 0, 2 * numerator / np.where(near > 0, near, 1.0), side)

            def excess(at: Floats) -> Floats:
                rest_of = hull(at * spread[0] / 2, at * spread[1] / 2)
                width = rest_of[0] - numerator if side > 0 else numerator - rest_of[1]
                return excess_of(pool.blend.tail(form(at), width), rest, firm & (side * at <= _FAR))

            step = 2 * pool.blend.reach(form(start), rest) / np.where(near > 0, near, 1.0) + 1e-300
            crossing = edge(start, side * step, excess)
            return np.where((excess(far) > 0) | (spread[0] <= 0), side, crossing)

        low, high = np.where(firm, end(least, -1.0), -1.0), np.where(firm, end(most, 1.0), 1.0)
        return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Box:
    """All that is not refuted about a pair: both means a and b, and the ratio d of both deviations.

    Attributes:
        pair: The parts and the means.
        ratio: The ratio.
        shifts: What was taken off the squares of each column.
    """

    pair: Centred
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
        squares = [_squares(centred) for centred in (one, two)]
        lifted = [(low + shift, top + shift) for (low, top), shift in zip(squares, self.shifts, strict=True)]
        weight = self._mixed(lifted[0], lifted[1])
        return (
            _farthest(two, products(one, (1 / high, 1 / low)), at),
            _farthest(one, products(two, self.ratio), at),
            np.ones_like(at),
            np.abs(at) / (2 * low),
            np.abs(at) * high / 2,
            _farthest(products(one, two), (weight[0] / 2, weight[1] / 2), at),
        )

    def _mixed(self, one: Ends, two: Ends) -> Ends:
        """The ends of x/d + d·y: at the ends of d, or where the derivative is 0."""

        def ends(x: Floats, y: Floats) -> Ends:
            with np.errstate(divide="ignore", invalid="ignore"):
                still = np.nan_to_num(np.sqrt(np.abs(x / y)), nan=1.0)
            middle = np.clip(still, *self.ratio)
            return hull(*(x / d + d * y for d in (*self.ratio, middle)))

        return ends(one[0], two[0])[0], ends(one[1], two[1])[1]


def _farthest(fixed: Ends, slope: Ends, at: Floats) -> Floats:
    """The largest |f − at·s| for f and s between these ends: convex in `at`."""
    return hull(*(np.abs(f - at * s) for f in fixed for s in slope))[1]


def _squares(ends: Ends) -> Ends:
    least = np.where(ends[0] * ends[1] <= 0, 0.0, np.minimum(np.abs(ends[0]), np.abs(ends[1])))
    return least * least, np.square(size(ends))


def _parabola(total: Floats, squares: Floats, count: Floats, mean: Ends) -> Ends:
    """The ends of squares − 2·a·total + a²·count over these means a, for a positive count."""
    best = np.clip(total / np.where(count > 0, count, 1.0), *mean)
    return hull(*(squares - 2 * a * total + a * a * count for a in (*mean, best)))


def _ratio(
    estimator: Correlated, parts: Sequence[Floats], noises: Sequence[Noise], risk: float
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
    ratio = np.sqrt(low[0] / high[1]) * (1 - EPS), np.sqrt(high[0] / low[1]) * (1 + EPS)
    return ratio, firm


@dataclass(frozen=True, slots=True)
class Correlation(Statistic):
    """The correlation of two columns, over the rows where both are present."""

    arity: ClassVar[int] = 2
    bounds: ClassVar[None] = None
    buys_bounds: ClassVar[bool] = False
    noun: ClassVar[str] = "correlation"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One way, around the middles of both ranges."""
        pair = Pair.of(self.title, call, columns)
        one, two = pair.first, pair.second
        (squares, shift), (others, other_shift) = one.squares(), two.squares()
        estimator = Correlated(
            (0, 1, 2, 3, 4, 5),
            Fraction(-1),
            Fraction(1),
            half=one.reach(one.middle),
            other_half=two.reach(two.middle),
            shift=shift,
            other_shift=other_shift,
        )
        sums = one.total(one.middle), two.total(two.middle)
        return (Part((*sums, pair.product, squares, others, pair.count), estimator),)


STATISTICS = (Correlation("corr", ("CORR",)),)


def corr(first: str | Col, second: str | Col) -> Agg:
    """The correlation of two columns or expressions with bounds, over the rows where both are present."""
    return two("corr", first, second)
