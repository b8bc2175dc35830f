"""Accountants: pure functions from losses to one figure, each with its theorem and its honest limits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar

from sfumato.errors import InvalidParameter, NotCertified, UnsupportedLoss
from sfumato.loss import ComposedLoss, ConcentratedLoss, GaussianLoss, PrivacyLoss, PureLoss, compose, renyi
from sfumato.loss.split import exact_of, least_delta
from sfumato.numeric import binomial
from sfumato.numeric.balls import ball, upper
from sfumato.numeric.exact import (
    Rational,
    as_integer,
    decimal_up,
    delta_of,
    float_down,
    float_up,
    nonnegative,
    positive,
    probability,
)

__all__ = ["ACCOUNTANTS", "Accountant", "advanced", "basic", "compare", "optimal"]

Losses = Iterable[PrivacyLoss] | PrivacyLoss
_Parts = list[tuple[PrivacyLoss, int]]
# Up to here a rule is inverted by bisection.
_FEW = 16
_LEAST = Fraction(1, 10**300)


class Accountant(ABC):
    """A rule that turns losses into an ε for a δ, or a δ for an ε, both rounded up.

    `adaptive` says whether stopping while `epsilon(losses, delta)` is within a budget, at a δ fixed
    beforehand, is a proven *filter*: valid when each loss is chosen by earlier answers. Where it is False the
    figure holds for a list of losses that was fixed before the first answer.
    """

    name: ClassVar[str]
    adaptive: ClassVar[bool] = False

    @abstractmethod
    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The ε at this δ, rounded up; infinity if there is none."""

    @abstractmethod
    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The δ at this ε, rounded up."""

    def _refuse(self, loss: PrivacyLoss, needs: str) -> UnsupportedLoss:
        return UnsupportedLoss(
            f"The {self.name} accountant has no rule for {type(loss).__name__}: it needs {needs}."
        )


def _total_of(losses: Losses) -> PrivacyLoss:
    """The composition of some losses."""
    return losses if isinstance(losses, PrivacyLoss) else compose(losses)


def _parts_of(losses: Losses) -> _Parts:
    """The distinct losses with their counts."""
    total = _total_of(losses)
    return list(total.parts) if isinstance(total, ComposedLoss) else [(total, 1)]


class Basic(Accountant):
    """ε and δ add up.

    A loss with a point of its own (pure, approximate, a calibrated Gaussian) is priced at that point. What is
    left of δ is split equally over the others, each read off its own curve. Where pricing every loss that way
    at δ/n is cheaper, that is taken. `delta` is the least of three: the same two with what is left of ε split
    equally, and, for a few different losses, the least δ at which `epsilon` comes down to this ε.

    Privacy:
        Claim: the sums hold for losses fixed in advance. Source: Dwork, Roth 2014, Thm. 3.16. As a filter
        only with each loss at a point that is fixed when it is admitted (Rogers, Roth, Ullman, Vadhan 2016),
        which is what `BasicFilter` does; here the price of a loss may depend on how many others there are.
    """

    name = "basic"

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The least sum of ε_i whose δ_i add up to `delta`."""
        return self._at(_parts_of(losses), delta_of(delta))

    def _at(self, parts: _Parts, exact: Fraction) -> float:
        own = [(part, count) for part, count in parts if part.approximate is not None]
        rest = [(part, count) for part, count in parts if part.approximate is None]
        left = exact - sum(
            (part.approximate[1] * count for part, count in own if part.approximate), Fraction(0)
        )
        priced = sum((part.approximate[0] * count for part, count in own if part.approximate), Fraction(0))
        least = math.inf if left < 0 else _sum_up(priced, _shares(rest, left))
        costly = [(part, count) for part, count in parts if part.pure is None]
        if len(costly) == len(rest):
            return least
        pure = sum((part.pure * count for part, count in parts if part.pure is not None), Fraction(0))
        return min(least, _sum_up(pure, _shares(costly, exact)))

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The least sum of δ_i whose ε_i add up to `epsilon`."""
        parts, exact = _parts_of(losses), nonnegative(epsilon, "epsilon")
        pures = [None if part.pure is None else (part.pure, Fraction(0)) for part, _ in parts]
        points = [part.approximate for part, _ in parts]
        least = _split_epsilon(parts, points, exact)
        if points != pures:
            least = min(least, _split_epsilon(parts, pures, exact))
        if least and sum(pure is None for pure in pures) <= _FEW:
            least = least_delta(lambda delta: self._at(parts, delta), exact, least)
        return least


def _split_epsilon(parts: _Parts, points: list[tuple[Fraction, Fraction] | None], epsilon: Fraction) -> float:
    """Σδ with some parts at the points given and what is left of ε split equally over the others."""
    known = [(point, count) for (_, count), point in zip(parts, points, strict=True) if point is not None]
    left = epsilon - sum((point[0] * count for point, count in known), Fraction(0))
    if left < 0:
        return 1.0
    total = sum((point[1] * count for point, count in known), Fraction(0))
    rest = [part for part, point in zip(parts, points, strict=True) if point is None]
    number = sum(count for _, count in rest)
    total += sum((exact_of(part.delta(left / number)) * count for part, count in rest), Fraction(0))
    return min(1.0, decimal_up(total))


def _shares(parts: _Parts, delta: Fraction) -> list[tuple[float, int]]:
    number = sum(count for _, count in parts)
    if number and 0 < delta / number < _LEAST:
        return [(math.inf, 1)]
    return [(part.epsilon(delta / number), count) for part, count in parts]


def _sum_up(exact: Fraction, floats: list[tuple[float, int]]) -> float:
    if any(value == math.inf for value, _ in floats):
        return math.inf
    return decimal_up(exact + sum((exact_of(value) * count for value, count in floats), Fraction(0)))


class Advanced(Accountant):
    """The textbook's advanced composition at the largest ε and δ of the parts: for contrast.

    It is worse than basic for large ε.

    Privacy:
        Claim: k mechanisms of (ε, δ) are (ε√(2k ln 1/δ') + kε(e^ε − 1), kδ + δ')-DP, also with adaptively
        chosen *mechanisms* of that fixed ε. Source: Dwork, Rothblum, Vadhan 2010, Thm. III.3; Dwork, Roth
        2014, Thm. 3.20.
    """

    name = "advanced"

    def _worst(self, losses: Losses) -> tuple[Fraction, Fraction, int]:
        epsilon = delta = Fraction(0)
        number = 0
        for part, count in _parts_of(losses):
            if (point := part.approximate) is None:
                raise self._refuse(part, "an exact (ε, δ) point for every loss")
            epsilon, delta, number = max(epsilon, point[0]), max(delta, point[1]), number + count
        return epsilon, delta, number

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The textbook ε with all of δ that is left as slack."""
        epsilon, failure, number = self._worst(losses)
        slack = delta_of(delta) - number * failure
        if epsilon == 0 and slack >= 0:
            return 0.0
        return advanced(epsilon, failure, number, slack)[0] if slack > 0 else math.inf

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The slack that this ε leaves, plus kδ."""
        single, failure, number = self._worst(losses)
        goal = nonnegative(epsilon, "epsilon")
        e = ball(single)
        room = ball(goal) - number * e * e.expm1()
        if single == 0:
            return min(1.0, float_up(number * failure))
        if not room > 0:
            return 1.0
        return min(1.0, upper((-room * room / (2 * number * e * e)).exp() + number * ball(failure)))


def advanced(epsilon: Rational, delta: Rational, k: int, delta_slack: Rational) -> tuple[float, float]:
    """The textbook's advanced composition of k mechanisms of (ε, δ): (total ε, total δ), rounded up.

    It grows with √k for small ε but carries kε(e^ε − 1): for ε = 1 and k = 500 it gives more than 966 where
    basic gives 500.

    Privacy:
        Dwork, Rothblum, Vadhan 2010, Thm. III.3: (ε√(2k ln 1/δ') + kε(e^ε − 1), kδ + δ').
    """
    e, failure = positive(epsilon, "epsilon"), delta_of(delta)
    number, slack = as_integer(k, "k"), probability(delta_slack, "delta_slack")
    x = ball(e)
    total = x * (2 * number * -ball(slack).log()).sqrt() + number * x * x.expm1()
    return upper(total), min(1.0, decimal_up(number * failure + slack))


class Optimal(Accountant):
    """The optimal composition of k mechanisms known only to be (ε, δ)-DP with one ε and δ.

    Losses whose law is known more closely are priced at their point, so `numerical` is tighter for them.

    Privacy:
        Claim: exact for the class. Source: Kairouz, Oh, Viswanath 2015, Thm. 3.3. Condition: ε and δ are
        fixed in advance.
    """

    name = "optimal"

    def _common(self, losses: Losses) -> tuple[Fraction, Fraction, int]:
        parts = _parts_of(losses)
        first: tuple[Fraction, Fraction] | None = None
        for part, _ in parts:
            point = part.approximate
            first = first or point
            if point is None or point != first:
                raise self._refuse(part, "one and the same exact (ε, δ) point for every loss")
        return (*(first or (Fraction(0), Fraction(0))), sum(count for _, count in parts))

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The exact ε of k randomized responses."""
        epsilon, failure, number = self._common(losses)
        return optimal(epsilon, number, delta, each=failure)

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The exact δ of k randomized responses."""
        single, failure, number = self._common(losses)
        if single == 0:
            return float_up(1 - (1 - failure) ** number)
        pair = binomial.delta(
            float_up(single), number, float_down(nonnegative(epsilon, "epsilon")), delta0=float_up(failure)
        )
        return min(1.0, pair.upper)


def optimal(epsilon: Rational, k: int, delta: Rational, *, each: Rational = 0) -> float:
    """The optimal total ε of k mechanisms of (ε, each) at total `delta`, rounded up; infinity if none exists.

    Privacy:
        Kairouz, Oh, Viswanath 2015, Thm. 3.3: k randomized responses at ε (each revealing everything with
        probability `each`) are the worst case, and their composition is a binomial sum.
    """
    e, total, failure = nonnegative(epsilon, "epsilon"), delta_of(delta), delta_of(each, "each")
    number = as_integer(k, "k")
    if failure == 0 and total == 0:
        return decimal_up(e * number)
    if e == 0:
        return 0.0 if total >= 1 - (1 - failure) ** number else math.inf
    if total == 0:
        return math.inf
    least = binomial.epsilon(float_up(e), number, float_down(total), delta0=float_up(failure)).upper
    return least if failure else min(least, decimal_up(e * number))


class Concentrated(Accountant):
    """ρ (and any δ set aside) add up; converted once at the end, at the best order.

    Privacy:
        Claim: sums of ρ_i and δ_i are approximate zCDP, also when chosen by earlier answers below a bound.
        Source: Bun, Steinke 2016, Lemma 8.2; as a filter: Whitehouse, Ramdas, Rogers, Wu 2023.
        Conversion: see `loss.renyi`.
    """

    name = "zcdp"
    adaptive = True

    def _sum(self, losses: Losses) -> ConcentratedLoss | None:
        rho = delta = Fraction(0)
        for part, count in _parts_of(losses):
            if (known := part.concentrated) is None:
                raise self._refuse(part, "a ρ for every loss")
            rho, delta = rho + known[0] * count, delta + known[1] * count
        return ConcentratedLoss(rho, delta) if delta < 1 else None

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The ε of the summed ρ."""
        total = self._sum(losses)
        return math.inf if total is None else total.epsilon(delta)

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The δ of the summed ρ."""
        total = self._sum(losses)
        return 1.0 if total is None else total.delta(epsilon)


class Renyi(Accountant):
    """Rényi divergences add up at each order; the best order is found, never picked from a list.

    Privacy:
        Claim: at every order the divergences add up. Source: Mironov 2017, Prop. 1. Condition: the order is
        optimised over the whole list, so the figure is for a plan fixed in advance; `RenyiFilter` commits to
        one order instead.
    """

    name = "rdp"

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The ε at the best order."""
        total, exact = _total_of(losses), delta_of(delta)
        left = exact - total.failure
        if total.pure == 0:
            return 0.0
        if exact == 0:
            return math.inf if total.pure is None else decimal_up(total.pure)
        return renyi.epsilon(self._curve(total), left) if left > 0 else math.inf

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The δ at the best order."""
        total, exact = _total_of(losses), nonnegative(epsilon, "epsilon")
        if total.pure is not None and exact >= total.pure:
            return 0.0
        return renyi.delta(self._curve(total), float_down(exact), total.failure)

    def _curve(self, total: PrivacyLoss) -> renyi.Curve:
        for part, _ in _parts_of(total):
            if part.renyi(renyi.LEAST_ORDER) == math.inf:
                raise self._refuse(part, "a Rényi curve for every loss")
        return total.renyi


class Gaussian(Accountant):
    """Squares of μ add up; the closed form of one Gaussian.

    Privacy:
        Claim: exact for Gaussian mechanisms. Source: Dong, Roth, Su 2022, Cor. 3.3; as a filter: Koskela,
        Tobaben, Honkela 2022; Smith, Thakurta 2022. Never used as a central-limit approximation for
        other losses: that is not a bound.
    """

    name = "gdp"
    adaptive = True

    def _fold(self, losses: Losses) -> PrivacyLoss:
        total = _total_of(losses)
        if total.pure == 0:
            return PureLoss(Fraction(0))
        for part, _ in _parts_of(total):
            if part.mu is None:
                raise self._refuse(part, "a μ for every loss")
        if (rho := total.rho) is None:
            raise self._refuse(total, "a μ for every loss")
        return GaussianLoss(rho)

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The ε of the one Gaussian that all of them equal."""
        return self._fold(losses).epsilon(delta)

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The δ of the one Gaussian that all of them equal."""
        return self._fold(losses).delta(epsilon)


class Numerical(Accountant):
    """The composition of the exact laws: tight, from above, its error computed and included.

    Privacy:
        Claim: the product of dominating pairs dominates. Source: Zhu, Dong, Wang 2022, Thm. 10; the numerics:
        `numeric.compose`.
        Condition: a list of losses fixed in advance.
    """

    name = "numerical"

    def epsilon(self, losses: Losses, delta: Rational) -> float:
        """The least ε of the composed curve."""
        return self._curve(losses).epsilon(delta)

    def delta(self, losses: Losses, epsilon: Rational) -> float:
        """The composed curve itself."""
        return self._curve(losses).delta(epsilon)

    def _curve(self, losses: Losses) -> PrivacyLoss:
        total = _total_of(losses)
        for part, _ in _parts_of(total):
            if part.directions() is None:
                raise self._refuse(part, "a pair of distributions for every loss, not only a Rényi bound")
        return total


ACCOUNTANTS: Mapping[str, Accountant] = MappingProxyType(
    {
        rule.name: rule
        for rule in (Basic(), Advanced(), Optimal(), Concentrated(), Renyi(), Gaussian(), Numerical())
    }
)
"""Every accountant by its name."""


def basic(losses: Losses, delta: Rational) -> float:
    """The ε of basic composition at a total δ, rounded up: exact points add up, other losses share δ equally.

    Privacy:
        See `Basic`.
    """
    return ACCOUNTANTS["basic"].epsilon(losses, delta)


def compare(losses: Losses, delta: Rational) -> dict[str, float | None]:
    """The ε of the same losses under every accountant; None where one has no rule or no figure for them."""
    kept = _total_of(losses)
    prices: dict[str, float | None] = {}
    exact = delta_of(delta)
    for name, rule in ACCOUNTANTS.items():
        try:
            prices[name] = rule.epsilon(kept, exact)
        except (UnsupportedLoss, NotCertified, InvalidParameter):
            # No rule, no certified figure, or figures on the way that are out of its range.
            prices[name] = None
    return prices
