"""COVAR_POP and COVAR_SAMP, from both centred sums, the products of the centred values and the count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.intervals.forms import Floats, edge, excess_of, on_rows
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates._pairs import EPS, SHARE, Centred, Pair, Pooled, products, size
from sfumato.plan.questions.aggregates.base import Ends, Estimator, Part, Statistic
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.terms import Agg, Col, two

__all__ = ["STATISTICS", "Together", "covar"]

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Together(Estimator):
    """P/n − (S/n)(T/n), times n/(n − 1) for a sample.

    S and T are the sums of both distances from the middles, P that of their products, and n the count.

    Attributes:
        half: How far from its middle a value of the first column can be.
        other_half: The same of the second.
        sample: Whether it divides by n − 1.
    """

    half: Fraction = _ZERO
    other_half: Fraction = _ZERO
    sample: bool = False

    names: ClassVar[tuple[str, ...]] = (".sum", ".other", ".products", ".count")

    def gradients(self) -> tuple[float, ...]:
        """By S −b/n, by T −a/n, by P 1/n, by n (ab − c)/n, at c = 0 (unrelated columns)."""
        one, two = float(self.half) / 2, float(self.other_half) / 2
        return two, one, 1.0, one * two

    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Within what is possible; 0 without rows."""
        s, t, p, n = (part.astype(np.float64) for part in parts)
        some = np.maximum(n, 1.0)
        half, other = float(self.half), float(self.other_half)
        one, two = np.clip(s / some, -half, half), np.clip(t / some, -other, other)
        both = np.clip(p / some, -half * other, half * other) - one * two
        if self.sample:
            both = both * some / np.maximum(some - 1, 1.0)
        return np.where(n > 0, np.clip(both, *self.limits), 0.0)

    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """An interval for C = P/n − (S/n)(T/n), or for C·n/(n − 1); everything where little is known.

        At the means a = S/n and b = T/n the covariance is a plain ratio, C = (P − aT − bS + ab·n)/n, of noise
        X_P − a·X_T − b·X_S + (ab − C)·X_n; with n − 1 below for a sample. So: intervals for a and b at 1/32
        of the risk each, then the covariances that some (a, b) in them does not refute at the rest. The
        numerator is P − ST/n + n(a − S/n)(b − T/n), so what is lost by not knowing the means is of second
        order. Coefficients are taken at their largest over the intervals, which only widens (Anderson 1955).
        """
        pool = Pooled.of(self.parts, noises)
        rest = risk * (1 - 2 * SHARE) * (1 - EPS)
        zero, unit = np.zeros((1,)), np.ones((1,))
        count = parts[-1]
        firm = np.maximum(count - 1, 0.0) > pool.blend.width(pool.form((zero, zero, zero, unit)), rest)
        if not firm.all():
            return on_rows(firm, self.limits, lambda *some: self.interval(some, noises, risk=risk), *parts)
        safe = np.where(firm, count - (1.0 if self.sample else 0.0), 1.0)
        pair = Centred.of(
            (self.half, self.other_half), [np.where(firm, part, 1.0) for part in parts], noises, risk
        )
        least, most = pair.products
        ends = products(pair.one, pair.two)

        def form(c: Floats) -> Floats:
            weight = np.maximum(np.abs(ends[0] - c), np.abs(ends[1] - c))
            return pool.form((size(pair.two), size(pair.one), np.ones_like(c), weight))

        def excess(c: Floats, width: Floats) -> Floats:
            return excess_of(pool.blend.tail(form(c), width), rest, firm)

        starts = least / safe, most / safe
        steps = [pool.blend.reach(form(c), rest) / safe + 1e-300 for c in starts]
        low = edge(starts[0], -steps[0], lambda c: excess(c, least - c * safe))
        high = edge(starts[1], steps[1], lambda c: excess(c, c * safe - most))
        lower, upper = self.limits
        return np.clip(np.where(firm, low, lower), lower, upper), np.clip(
            np.where(firm, high, upper), lower, upper
        )


@dataclass(frozen=True, slots=True)
class Covariance(Statistic):
    """The covariance of two columns, over the rows where both are present.

    It is at most the root of both variances (Cauchy, Schwarz).

    Attributes:
        sample: Whether it divides by n − 1.
    """

    sample: bool

    arity: ClassVar[int] = 2
    bounds: ClassVar[None] = None
    buys_bounds: ClassVar[bool] = False
    noun: ClassVar[str] = "covariance"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One way: the middles of both ranges are taken off, so that products are as far above 0 as below."""
        pair = Pair.of(self.title, call, columns)
        one, two = pair.first, pair.second
        half, other = one.reach(one.middle), two.reach(two.middle)
        most = half * other * (2 if self.sample else 1)
        estimator = Together((0, 1, 2, 3), -most, most, half=half, other_half=other, sample=self.sample)
        return (Part((one.total(one.middle), two.total(two.middle), pair.product, pair.count), estimator),)


STATISTICS = (
    Covariance("covar_pop", ("COVAR_POP",), sample=False),
    Covariance("covar_samp", ("COVAR_SAMP",), sample=True),
)


def covar(first: str | Col, second: str | Col, *, sample: bool = True) -> Agg:
    """The covariance of two columns or expressions with bounds, over the rows where both are present."""
    return two("covar_samp" if sample else "covar_pop", first, second)
