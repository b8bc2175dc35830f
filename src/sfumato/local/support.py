"""Frequencies from reports that each support some values: one aggregate and one estimator for all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.base import Aggregate, Randomizer
from sfumato.local.domain import Domain
from sfumato.local.estimates import Floats, Frequencies
from sfumato.numeric.exact import Rational, positive, probability

__all__ = ["SupportAggregate", "SupportRandomizer", "intervals", "price"]

_MOST = 1 << 24  # counts that an aggregate lists
_STEPS = 60
_HAIR = 2.0**-12  # of the width: what an interval may be too wide


def price(epsilon: Rational) -> Fraction:
    """The epsilon of a client, exactly.

    Raises:
        InvalidParameter: unless it is positive and at most 700.
    """
    exact = positive(epsilon, "epsilon")
    if exact > 700:
        raise InvalidParameter("epsilon above 700 is as good as the truth itself: send that instead.")
    return exact


class SupportRandomizer(Randomizer[Frequencies]):
    """A randomizer whose reports each support a set of values, the own one more often than another.

    A report of a person with value v supports v with probability p, and any other value with probability q.
    Supported values are counted, and (count − n·q)/(p − q) is unbiased (Wang, Blocki, Li, Jha 2017: "pure
    protocols").
    """

    __slots__ = ()
    domain: Domain

    @property
    @abstractmethod
    def p(self) -> float:
        """The probability that a report supports the own value, the nearest float."""

    @property
    @abstractmethod
    def q(self) -> float:
        """The probability that a report supports a given other value, the nearest float."""

    @property
    def gap(self) -> float:
        """How much likelier the own value is, p − q; overridden where that loses too many digits."""
        return self.p - self.q

    @property
    def variance(self) -> float:
        """The variance that one report adds to the estimated count of a rare value: q(1 − q)/(p − q)²."""
        return self.q * (1 - self.q) / self.gap / self.gap  # infinite where floats end

    @abstractmethod
    def _supports(self, batch: NDArray[Any]) -> NDArray[np.int64]:
        """How many of these reports support each value of the domain.

        Raises:
            InvalidValue: if one is not a report of this randomizer, though of its type and shape.
        """

    def start(self) -> SupportAggregate:
        """An aggregate without reports."""
        if self.domain.size > _MOST:
            raise InvalidParameter("The domain is too large to count every value; look for heavy hitters.")
        return SupportAggregate(self)

    def _parameters(self) -> dict[str, Any]:
        return {"domain": self.domain.to_json()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote down.

        Raises:
            InvalidParameter: for anything else.
        """
        given = dict(data)
        try:
            if given.pop("kind") != cls.wire:
                raise InvalidParameter(f"These are not parameters of {cls.wire!r}.")
            made = cast(Any, cls)(given.pop("epsilon"), given.pop("domain"), **given)
        except (KeyError, TypeError):
            raise InvalidParameter(f"The parameters of {cls.wire!r} are not complete or not known.") from None
        return cast(Self, made)


class SupportAggregate(Aggregate[Frequencies]):
    """How many reports support each value.

    Attributes:
        supports: Those counts, in the order of the domain.
    """

    __slots__ = ("supports",)
    randomizer: SupportRandomizer

    def __init__(self, randomizer: SupportRandomizer) -> None:
        super().__init__(randomizer)
        self.supports = np.zeros(randomizer.domain.size, np.int64)

    def estimate(self, confidence: float = 0.95) -> Frequencies:
        """Unbiased counts of all values, with intervals.

        Raises:
            InvalidValue: without reports.
        """
        level = float(probability(confidence, "confidence"))
        if not self.count:
            raise InvalidValue("There are no reports to estimate from.")
        made = self.randomizer
        low, high = intervals(self.supports, self.count, made.p, made.q, level)
        counts: Floats = (self.supports.astype(np.float64) - self.count * made.q) / made.gap
        labels = made.domain.labels
        values = tuple(range(made.domain.size)) if labels is None else labels
        return Frequencies(values, counts, low, high, level, self.count)

    def _add(self, batch: NDArray[Any]) -> None:
        self.supports += self.randomizer._supports(batch)

    def _merged(self, other: Self) -> Self:
        made = type(self)(self.randomizer)
        made.supports = self.supports + other.supports
        return made

    def _state(self) -> list[int]:
        return self.supports.tolist()

    def _restore(self, state: Any) -> None:
        listed = np.asarray(state)
        fits = listed.shape == self.supports.shape and listed.dtype.kind in "iu"
        if not fits or listed.min() < 0 or listed.max() > self.count:
            raise InvalidValue("These are not counts of supported values of this domain.")
        self.supports = listed.astype(np.int64)


def intervals(
    supports: NDArray[np.int64], people: int, p: float, q: float, confidence: float
) -> tuple[Floats, Floats]:
    """Intervals for the number m of people with a value, from how many reports support it.

    The count C is Bin(m, p) + Bin(people − m, q). Every m in 0 … people is kept that neither of two one-sided
    tests rejects, at half the failure each. They use P(C ≥ c) ≤ Φ(−r(c − 1)) and P(C ≤ c) ≤ Φ(r(c + 1)); here
    r(x) is the signed root of twice Chernoff's exponent of the mixture itself: a theorem for one binomial
    (Zubkov, Serov 2013), which the tests hold against the exact mixture. The step of one towards the mean is
    what makes it hold for small counts; for large ones this is the normal test with the mixture's variance.
    """
    seen, where = np.unique(supports, return_inverse=True)
    counts: Floats = seen.astype(np.float64)
    width = float(-special.ndtri((1 - confidence) / 2))
    # Where the search begins decides only how long it takes: the estimate, and well beyond the normal limit.
    middle = np.clip((counts - people * q) / (p - q), 0.0, people)
    reach = (width + 1) * (np.sqrt(_spread(middle, people, p, q)) + 1) / (p - q)
    low = _edge(
        lambda m: _root(counts - 1, m, people, p, q) <= width, middle, np.maximum(middle - reach, 0.0), 0.0
    )
    high = _edge(
        lambda m: _root(counts + 1, m, people, p, q) >= -width,
        middle,
        np.minimum(middle + reach, people),
        float(people),
    )
    low[seen == 0], high[seen == people] = 0.0, float(people)
    return low[where], high[where]


def _spread(m: Floats, people: int, p: float, q: float) -> Floats:
    """The variance of Bin(m, p) + Bin(people − m, q)."""
    return m * (p * (1 - p)) + (people - m) * (q * (1 - q))


def _edge(kept: Callable[[Floats], NDArray[np.bool_]], inner: Floats, guess: Floats, end: float) -> Floats:
    """The m furthest from `inner` that is kept, by bisection: never short of it, beyond it by a hair."""
    outer, hair = np.full_like(inner, end), np.abs(guess - inner) * _HAIR + 1e-9
    inner = np.where(kept(outer), outer, inner)
    fine = kept(guess) | (inner == outer)
    inner, outer = np.where(fine & (inner != outer), guess, inner), np.where(fine, outer, guess)
    for _ in range(_STEPS):
        if np.all(np.abs(inner - outer) <= hair):
            break
        middle = (outer + inner) / 2
        fine = kept(middle)
        inner, outer = np.where(fine, middle, inner), np.where(fine, outer, middle)
    return outer


def _root(x: Floats, m: Floats, people: int, p: float, q: float) -> Floats:
    """The signed root of twice the exponent of Chernoff's bound for Bin(m, p) + Bin(people − m, q) at x.

    The exponent is the supremum of t·x − K(t) for the cumulant generating function K; it is attained where
    K'(t) = x, a quadratic in e^t. It equals m·KL(a, p) + (people − m)·KL(b, q) for the tilted means a and b.
    """
    x = np.clip(x, 0.0, people)
    others = people - m
    square = p * q * (people - x)
    linear = m * p * (1 - q) + others * q * (1 - p) - x * (q * (1 - p) + p * (1 - q))
    constant = x * (1 - p) * (1 - q)
    spread = np.sqrt(linear * linear + 4 * square * constant)
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.where(linear > 0, 2 * constant / (linear + spread), (spread - linear) / (2 * square))
        own = np.where(np.isinf(tilt), 1.0, p * tilt / (1 - p + p * tilt))
        other = np.where(np.isinf(tilt), 1.0, q * tilt / (1 - q + q * tilt))
    exponent = m * _divergence(own, p) + others * _divergence(other, q)
    side = np.sign(x - m * p - others * q)
    return np.asarray(side * np.sqrt(2 * np.maximum(exponent, 0.0)), np.float64)


def _divergence(a: Floats, p: float) -> Floats:
    """KL(a, p) of two coins."""
    return np.asarray(special.rel_entr(a, p) + special.rel_entr(1 - a, 1 - p), np.float64)
