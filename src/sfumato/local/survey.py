"""How many people, or what price, a wanted accuracy takes where people randomise their own values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.local.base import Randomizer
from sfumato.local.domain import Domain
from sfumato.local.estimates import sure_of
from sfumato.local.means import DuchiMean, HybridMean, MeanRandomizer, PiecewiseMean
from sfumato.local.recommend import percent, recommend
from sfumato.local.sketch import CountMeanSketch
from sfumato.local.support import SupportRandomizer
from sfumato.numeric.exact import Rational, as_integer, positive

__all__ = ["Survey", "design"]

_LEAST, _MOST = Fraction(1, 10**6), Fraction(50)  # of epsilon
_DIGITS = 6
_NEAR = 1.05**2  # variances are as good as equal within this factor
_PEOPLE = 10**15
_WEAK = 5  # an epsilon above it lets one report tell nearly everything
_ROUNDS = 8  # which randomizer is best hardly depends on how many people there are


@dataclass(frozen=True, slots=True)
class Survey:
    """A survey that reaches a wanted accuracy.

    Attributes:
        epsilon: What a report costs the one who gives it.
        people: How many report.
        error: The half-width that is expected: a share of the people, or in the numbers' own units.
        confidence: How often an estimate is that close.
        randomizer: What they report with.
        steward: The error, in the same terms, of a steward who sees all values, at the same price.
    """

    epsilon: Fraction
    people: int
    error: float
    confidence: float
    randomizer: Randomizer[Any]
    steward: float

    def __str__(self) -> str:
        numbers = isinstance(self.randomizer, MeanRandomizer)
        wide, central = (
            f"{error:.3g}" if numbers else f"{percent(error)} of them" for error in (self.error, self.steward)
        )
        what = "a mean" if numbers else "any value's share"
        hardly = " An epsilon this large protects hardly anything; ask more people."
        weak = hardly if self.epsilon > _WEAK else ""
        return (
            f"{self.people:,} people at epsilon {float(self.epsilon):.6g} each: {what} is about ± {wide} "
            f"({percent(self.confidence)} confidence), with {self.randomizer!r}. A steward who sees the "
            f"values would be off by ± {central} at this price.{weak}"
        )


def design(
    error: Rational,
    *,
    epsilon: Rational | None = None,
    people: int | None = None,
    domain: int | Sequence[Any] | Domain | None = None,
    lower: Rational | None = None,
    upper: Rational | None = None,
    confidence: Rational = 0.95,
) -> Survey:
    """The least number of people for a price, or the least price for that many, that reaches an accuracy.

    Of the order n ≈ 1/(ε²·α²) for an ε up to about 1: half the error takes four times the people, or twice
    the price. The error is z·√(V/n) with V the variance that one report adds where that is greatest, whatever
    the data are, and z of the normal law: an estimate from n independent reports is close to normal. It is
    about these people's own share or mean; whom they represent is another matter.

    Args:
        error: The half-width α that is wanted: of a share of the people for values (0.01 is one percent of
            them), in the numbers' own units for a mean.
        epsilon: The price of a report, to find how many people it takes; or
        people: how many there are, to find the price.
        domain: The values whose shares are estimated, or how many there are; or
        lower: where the range of numbers begins whose mean is estimated.
        upper: Where it ends.
        confidence: How often the estimate of one share, or of the mean, is that close.

    Raises:
        InvalidParameter: unless exactly one of epsilon and people, and of domain and a range, is given; for
            an error that says nothing; or if no epsilon up to 50, or no 10**15 people, are enough.
    """
    if (epsilon is None) == (people is None):
        raise InvalidParameter(
            "Give a price to find how many people it takes, or the people to find the price."
        )
    if (domain is None) == (lower is None) or (lower is None) != (upper is None):
        raise InvalidParameter("Give the domain of the values, or lower and upper of numbers.")
    kind = _Values(Domain(domain)) if domain is not None else _Numbers(lower, upper)
    wanted, wide = float(positive(error, "error")), float(kind.width)
    if wanted >= wide:
        raise InvalidParameter(f"An error of {wide:.6g} or more says nothing: everything is that close.")
    z = NormalDist().inv_cdf((1 + sure_of(confidence)) / 2)
    if people is not None:
        count = as_integer(people, "people")
        price = _least_price(kind, count, wanted, z)
    elif epsilon is not None:
        price = _priced(epsilon)
        count = kind.people(price, wanted, z)
    client = kind.client(price, count)
    central = float(kind.width) / count * math.log(1 / (1 - float(confidence))) / float(price)
    return Survey(
        price, count, z * math.sqrt(kind.variance(client) / count), float(confidence), client, central
    )


def _priced(epsilon: Rational) -> Fraction:
    price = positive(epsilon, "epsilon")
    if not _LEAST <= price <= _MOST:
        raise InvalidParameter("epsilon must be between 0.000001 and 50 here.")
    return price


@dataclass(frozen=True, slots=True)
class _Values:
    """The shares of values.

    `recommend` looks at rare values; here the greatest error counts, whoever has a value. Where p is 1/2, as
    in unary encoding and hashing, a frequent value stays noisy at any price, and another randomizer is best.
    """

    domain: Domain
    width: float = 1.0

    def client(self, epsilon: Fraction, people: int) -> SupportRandomizer:
        """Of those that err at most 5 % more than the best, the one with the shortest reports."""
        usable: list[tuple[int, SupportRandomizer]] = []
        for alternative in recommend(epsilon, self.domain, people).alternatives:
            client = alternative.randomizer
            if isinstance(client, CountMeanSketch) or alternative.obstacle is not None:
                continue
            if isinstance(client, SupportRandomizer):
                usable.append((alternative.bytes, client))
        if not usable:
            raise InvalidParameter(
                "With so many values or people the error depends on collisions: recommend tells it."
            )
        least = min(self.variance(client) for _, client in usable)
        near = [(size, client) for size, client in usable if self.variance(client) <= _NEAR * least]
        return min(near, key=lambda pair: pair[0])[1]

    def variance(self, client: Any) -> float:
        """What one report adds to a share's variance: of those who have the value, or of the others."""
        worst = max(p * (1 - p) for p in (client.p, client.q))
        return float(worst / client.gap**2)

    def people(self, epsilon: Fraction, error: float, z: float) -> int:
        count = 10**6
        for _ in range(_ROUNDS):
            before, count = count, _enough(self.variance(self.client(epsilon, count)), error, z)
            if count == before:
                return count
        while not _fits(self.variance(self.client(epsilon, count)), count, error, z):
            count += count // 100 + 1  # two randomizers take turns: enough for either
        return count


@dataclass(frozen=True, slots=True, init=False)
class _Numbers:
    """A mean of numbers in a range."""

    lower: Rational
    upper: Rational
    width: float

    def __init__(self, lower: Any, upper: Any) -> None:
        one = DuchiMean(1, lower, upper)
        object.__setattr__(self, "lower", one.lower)
        object.__setattr__(self, "upper", one.upper)
        object.__setattr__(self, "width", float(one.upper - one.lower))

    def client(self, epsilon: Fraction, people: int) -> MeanRandomizer:
        del people
        kinds = (DuchiMean, HybridMean, PiecewiseMean)  # of equals the first, whose reports are shortest
        return min((kind(epsilon, self.lower, self.upper) for kind in kinds), key=self.variance)

    def variance(self, client: Any) -> float:
        return float(client.variance)

    def people(self, epsilon: Fraction, error: float, z: float) -> int:
        return _enough(self.variance(self.client(epsilon, 1)), error, z)


def _enough(variance: float, error: float, z: float) -> int:
    """The least n with z·√(variance/n) ≤ error."""
    needed = variance * (z / error) ** 2
    if not needed <= _PEOPLE:
        raise InvalidParameter("No 10**15 people are enough for this error: take a larger epsilon or error.")
    count = max(1, math.ceil(needed))
    return count if _fits(variance, count, error, z) else count + 1


def _fits(variance: float, people: int, error: float, z: float) -> bool:
    return z * math.sqrt(variance / people) <= error


def _least_price(kind: _Values | _Numbers, people: int, error: float, z: float) -> Fraction:
    """The least epsilon, to six digits, whose error is at most the wanted one."""

    def fits(price: Fraction) -> bool:
        return _fits(kind.variance(kind.client(price, people)), people, error, z)

    if fits(_LEAST):
        return _LEAST
    if not fits(_MOST):
        raise InvalidParameter(
            f"No epsilon up to {_MOST} is enough for so few people: ask for a larger error."
        )
    low, high = _LEAST, _MOST
    while high > low * (1 + Fraction(1, 10**_DIGITS)):
        middle = _short(Fraction(math.sqrt(low * high)))
        if not low < middle < high:
            break
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _short(price: Fraction) -> Fraction:
    """To a few digits, so that it reads well."""
    return Fraction(f"{float(price):.{_DIGITS}g}")
