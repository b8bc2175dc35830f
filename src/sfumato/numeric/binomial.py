"""The exact composition of equal (ε₀, δ₀)-private events: one binomial sum, with certified ends.

Whatever `count` mechanisms that are each (eps, delta0)-private do, adaptively or not, their composition is
(ε, δ)-private for exactly the pairs on the curve of `count` independent copies of one worst pair: with
probability delta0 the loss is infinite, otherwise it is eps with probability p = 1/(1 + e^-eps) and -eps
with 1 - p (Kairouz, Oh, Viswanath 2015, Theorem 3.3; the homogeneous case of Murtagh, Vadhan 2016). Hence

    δ(ε) = 1 - (1 - delta0)^count + (1 - delta0)^count · Σ_i Bin(count, p)(i) · (1 - e^(ε - (2i -
    count)·eps))+ .

The masses come from Loader's deviance form (C. Loader 2000, "Fast and accurate computation of binomial
probabilities"), whose absolute error in the logarithm is a few units of rounding times the deviation from
the mean, so even a million events and δ = 1e-300 keep ten digits. Every figure is returned with both ends.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["delta", "epsilon", "log_masses", "outside"]

_LARGEST_COUNT = 10**12
_REACH = 10.0
"""Standard deviations kept on either side; what lies beyond is bounded and added: a matter of tightness."""
_SURE = 300.0
"""From this eps on all losses but the largest are together rarer than count·e^-300, and exponentials of eps
need not fit into a float."""


def epsilon(eps: float, count: int, delta: float, *, delta0: float = 0.0) -> Bracket:
    """The least ε for which `count` events, each (eps, delta0)-private, are together (ε, delta)-private.

    Privacy:
        The upper end is never below the optimum of Kairouz, Oh and Viswanath (2015, Theorem 3.3), which
        holds for adaptively chosen mechanisms; infinite where delta does not cover the mass 1 - (1 -
        delta0)^count at infinity.
    """
    if not 0.0 <= delta < 1.0:
        raise InvalidParameter(f"delta must lie in [0, 1), not {delta:g}.")
    curve = _Curve.of(eps, count, delta0)
    total = float(count) * eps
    if delta == 0.0 and delta0 == 0.0:
        return Bracket(total * (1 - 4 * U), total * (1 + 4 * U))
    if delta <= curve.infinity_low:
        return Bracket(math.inf, math.inf)
    if curve.bounds(0.0)[1] <= delta:
        return Bracket(0.0, 0.0)
    upper = math.inf if delta <= curve.infinity_up else curve.solve(delta, end=1)
    return Bracket(min(curve.solve(delta, end=0), upper), upper)


def delta(eps: float, count: int, epsilon: float, *, delta0: float = 0.0) -> Bracket:
    """The least δ for which `count` events, each (eps, delta0)-private, are together (epsilon, δ)-private.

    Privacy:
        The upper end is never below the optimum of Kairouz, Oh and Viswanath (2015, Theorem 3.3).
    """
    if not math.isfinite(epsilon):
        raise InvalidParameter("epsilon must be a finite number.")
    low, high = _Curve.of(eps, count, delta0).bounds(epsilon)
    return Bracket(low, high)


@dataclass(frozen=True, slots=True)
class _Curve:
    """δ(ε) of `count` copies of the worst (eps, delta0)-private pair."""

    eps: float
    count: int
    infinity_low: float
    infinity_up: float
    log_kept: float  # log (1 - delta0)^count

    @classmethod
    def of(cls, eps: float, count: int, delta0: float) -> _Curve:
        if not (eps > 0.0 and math.isfinite(eps)):
            raise InvalidParameter(f"eps must be a positive number, not {eps:g}.")
        if not 1 <= count <= _LARGEST_COUNT:
            raise InvalidParameter(f"count must lie between 1 and 1e12, not {count}.")
        if not 0.0 <= delta0 < 1.0:
            raise InvalidParameter(f"delta0 must lie in [0, 1), not {delta0:g}.")
        log_kept = count * math.log1p(-delta0)
        infinity = -math.expm1(log_kept)
        slack = (4 * LIBRARY + 4 * U) * infinity
        return cls(eps, count, max(infinity - slack, 0.0), min(infinity + slack, 1.0), log_kept)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Floats below and above δ(epsilon)."""
        # L_i = (2i - count)·eps is rounded: reading the curve a hair to the left (right) can only raise
        # (lower) it.
        hair = 4 * U * (abs(epsilon) + self.count * self.eps)
        low, high = self._finite(epsilon + hair)[0], self._finite(epsilon - hair)[1]
        kept = math.exp(self.log_kept)
        slack = 2 * LIBRARY + 4 * U * (1 + abs(self.log_kept))
        return (
            min(1.0, self.infinity_low + low * kept * (1 - slack)) * (1 - 2 * U),
            min(1.0, (self.infinity_up + high * kept * (1 + slack)) * (1 + 4 * U)),
        )

    def _finite(self, epsilon: float) -> tuple[float, float]:
        """Bounds on Σ_i Bin(count, p)(i)·(1 - e^(epsilon - L_i))+, the part whose loss is finite."""
        if self.eps > _SURE:  # no loss is above the largest, and that one alone is already nearly all
            most = -math.expm1(min(epsilon - self.count * self.eps, 0.0))
            sure = 1.0 - 2.0 * self.count * math.exp(-self.eps)
            return most * sure * (1 - LIBRARY - 8 * U), most * (1 + LIBRARY + 4 * U)
        first = math.floor((epsilon / self.eps + self.count) / 2) + 1
        if first > self.count:
            # Within rounding of the top atom the floor may have skipped it: it weighs at most its own tiny
            # hair.
            hair = 8 * U * (abs(epsilon) + self.count * self.eps)
            near = epsilon - self.count * self.eps <= hair
            return 0.0, min(1.0, 2 * hair) if near else 0.0
        mean = self.count / (1.0 + math.exp(-self.eps))
        spread = math.sqrt(mean / (1.0 + math.exp(self.eps))) + 1.0
        start = max(first - 1, math.floor(mean - _REACH * spread) - 50, 0)
        stop = min(self.count, math.ceil(max(mean, first) + _REACH * spread) + 50)
        index = np.arange(start, stop + 1, dtype=np.float64)
        log_mass, error = log_masses(index, self.count, self.eps)
        exponent = epsilon - (2.0 * index - self.count) * self.eps
        terms = np.exp(log_mass) * -np.expm1(np.minimum(exponent, 0.0))
        relative = error + 2 * LIBRARY + 8 * U
        low = float(np.sum(terms * np.maximum(1.0 - relative, 0.0))) * (1 - 128 * U)
        high = float(np.sum(terms * (1.0 + relative))) * (1 + 128 * U)
        # Below the first term that counts nothing is missing.
        return low, high + outside(0 if start == first - 1 else start, stop, self.count, self.eps)

    def solve(self, delta: float, *, end: int) -> float:
        """Where the upper curve (end=1) has come down to delta, or the lower one (end=0) not yet."""
        low, high = 0, self.count  # cell number: the losses below j·2·eps - total
        while high - low > 1:  # the first lattice point at which the curve has come down to delta
            middle = (low + high) // 2
            if self.bounds((2 * middle - self.count) * self.eps)[end] > delta:
                low = middle
            else:
                high = middle
        left, right = (max(0.0, (2 * j - self.count) * self.eps) for j in (low, high))
        if (
            high == self.count
        ):  # the top atom, where nothing finite is left; rounded so as not to fall below it
            right *= 1 + 4 * U
        return self._within(left, right, delta, end=end)

    def _within(self, left: float, right: float, delta: float, *, end: int) -> float:
        """Inside a cell the curve is straight in e^ε: regula falsi, keeping the certified side."""
        at_left, at_right = self.bounds(left)[end], self.bounds(right)[end]
        if at_left <= delta:
            return left if end else 0.0
        away = 1e-14 * (right - left) + 2 * U * right
        for _ in range(60):
            if right - left <= 4 * away or at_left == at_right:
                break
            share = (at_left - delta) / (at_left - at_right)
            wide = right - left
            inside = math.log1p(share * math.expm1(wide)) if wide < _SURE else wide + math.log(share)
            guess = left + inside
            guess = guess + away if end else guess - away
            if not left < guess < right:
                guess = 0.5 * (left + right)
            value = self.bounds(guess)[end]
            kept = value <= delta if end else value > delta
            close = abs(value - delta) <= 1e-13 * delta
            left, at_left = (guess, value) if value > delta else (left, at_left)
            right, at_right = (guess, value) if value <= delta else (right, at_right)
            if kept and close:
                break
            away = away if kept else 4 * away
        return right if end else left


def outside(low: int, high: int, count: int, eps: float) -> float:
    """An upper bound on the mass of Bin(count, 1/(1 + e^-eps)) below `low` and above `high`.

    Below the mean Chernoff's bound, above it a geometric one from the last mass kept.
    """
    missed = 0.0
    if low > 0:
        below = (
            float(_deviance(np.array([low - 1.0]), count, eps)[0])
            if low - 1 < count / (1 + math.exp(-eps))
            else 0.0
        )
        missed += math.exp(-below * (1 - 1e-9) + 1e-9)
    if high < count:
        ratio = (count - high) / (high + 1.0) * math.exp(eps) * (1 + 1e-12)
        mass, error = log_masses(np.array([float(high)]), count, eps)
        missed += math.exp(float(mass[0] + error[0])) * ratio / (1.0 - ratio) if ratio < 1.0 else 1.0
    return missed * (1 + 1e-9)


def log_masses(index: Floats, count: int, eps: float) -> tuple[Floats, Floats]:
    """Log Bin(count, 1/(1 + e^-eps))(index), and a bound on its absolute error.

    With D the deviance, log mass = -D + e(n) - e(i) - e(n - i) - ½ log(2π i (n - i)/n), where e(n) is the
    error of Stirling's formula. At i = 0 and i = n it is n log(1 - p) and n log p.
    """
    n = float(count)
    inner = (index > 0.0) & (index < n)
    i = np.where(inner, index, 1.0)
    rest = np.where(inner, n - index, 1.0)
    deviance = _deviance(index, count, eps)
    stirling = _stirling(np.array([n]))[0] - _stirling(i) - _stirling(rest)
    log_mass = np.where(inner, stirling - 0.5 * np.log(2.0 * math.pi * i * (rest / n)), 0.0) - deviance
    # The mean n·p carries a relative LIBRARY-sized error, which moves the deviance by |i - np| times it at
    # most.
    moved = np.abs(index - n / (1.0 + math.exp(-eps)))
    error = 4 * LIBRARY * (moved + deviance + 4.0) + 1e-14
    return log_mass, error


def _deviance(index: Floats, count: int, eps: float) -> Floats:
    """The sum i log(i/np) + (n - i) log((n - i)/nq): Chernoff's exponent, and Loader's."""
    n = float(count)
    return _half_deviance(index, n / (1.0 + math.exp(-eps))) + _half_deviance(
        n - index, n / (1.0 + math.exp(eps))
    )


def _half_deviance(x: Floats, mean: float) -> Floats:
    """The value x log(x/mean) + mean - x without cancellation near x = mean."""
    ratio = (x - mean) / (x + mean)
    near = np.abs(ratio) < 0.1
    v = np.where(near, ratio, 0.0)
    square = v * v
    series = np.zeros_like(v)
    for odd in range(25, 1, -2):  # Σ_{j≥1} v^(2j+1)/(2j+1): 0.1^26 is far below rounding
        series = series * square + 1.0 / odd
    close = (x - mean) * v + 2.0 * x * (series * v * square)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0) / mean), 0.0) + mean - x
    return np.where(near, close, far)


def _stirling(n: Floats) -> Floats:
    """The value log n! - (n + ½) log n + n - ½ log 2π, to about 1e-15 absolutely."""
    large = np.where(n > 15.0, n, 16.0)
    square = large * large
    # The next term of this enveloping series, 1/(156 n^13)·(691/2310), is below 1e-16 for n ≥ 16.
    series = (
        1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - (1 / 1188) / square) / square) / square) / square
    ) / large
    return np.where(n > 15.0, series, _SMALL[np.clip(n, 0, 15).astype(np.int64)])


def _small_stirling() -> Floats:
    """The same for n = 0 … 15 (0 at n = 0, where it is not used), from exact factorials."""
    values = [0.0] + [
        math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
        for n in range(1, 16)
    ]
    return np.array(values)


_SMALL = _small_stirling()
