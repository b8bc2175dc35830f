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
from sfumato.local._numbers import not_idle
from sfumato.local._tails import lower_tail, upper_tail, variance
from sfumato.local.base import Aggregate, Randomizer, listed_numbers
from sfumato.local.domain import Domain
from sfumato.local.estimates import Floats, Frequencies, sure_of
from sfumato.numeric.exact import Rational, positive

__all__ = ["SupportAggregate", "SupportRandomizer", "intervals", "price"]

_MOST = 1 << 24  # counts that an aggregate lists
_HAIR = 2.0**-12  # of the width: what an interval may be too wide


def price(epsilon: Rational) -> Fraction:
    """The epsilon of a client, exactly.

    Raises:
        InvalidParameter: unless it is at least 1e-50 and at most 700.
    """
    exact = not_idle(positive(epsilon, "epsilon"))
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
        """How many of these reports support each value of the domain."""

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
            randomizer = cast(Any, cls)(given.pop("epsilon"), given.pop("domain"), **given)
        except (KeyError, TypeError):
            raise InvalidParameter(f"The parameters of {cls.wire!r} are not complete or not known.") from None
        return cast(Self, randomizer)


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
        level = sure_of(confidence)
        if not self.count:
            raise InvalidValue("There are no reports to estimate from.")
        randomizer = self.randomizer
        low, high = intervals(self.supports, self.count, randomizer.p, randomizer.q, level)
        counts: Floats = (self.supports.astype(np.float64) - self.count * randomizer.q) / randomizer.gap
        labels = randomizer.domain.labels
        values = tuple(range(randomizer.domain.size)) if labels is None else labels
        return Frequencies(values, counts, low, high, level, self.count)

    def _add(self, batch: NDArray[Any]) -> None:
        self.supports += self.randomizer._supports(batch)

    def _merged(self, other: Self) -> Self:
        total = type(self)(self.randomizer)
        total.supports = self.supports + other.supports
        return total

    def _state(self) -> list[int]:
        return self.supports.tolist()

    def _restore(self, state: Any) -> None:
        listed = listed_numbers(state, self.supports.size)
        if listed.min() < 0 or listed.max() > self.count:
            raise InvalidValue("These are not counts of supported values of this domain.")
        self.supports = listed


def intervals(
    supports: NDArray[np.int64], people: int, p: float, q: float, confidence: float
) -> tuple[Floats, Floats]:
    """Intervals for the number m of people with a value, from how many reports support it.

    The count C is Bin(m, p) + Bin(people − m, q). An m is left out if one of two one-sided tests rejects it,
    at half the failure each: if an upper bound on P(C ≥ c), or on P(C ≤ c), is not above that (`_tails`, by
    theorems that hold for every number of people). The true tails rise and fall with m, so that whatever lies
    beyond an m that is rejected is rejected rightly, too. Ends are whole numbers.
    """
    seen, where = np.unique(supports, return_inverse=True)
    counts, half = seen.astype(np.float64), (1 - confidence) / 2
    # Where the search begins decides only how long it takes: the estimate, and well beyond the normal limit.
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.nan_to_num((counts - people * q) / (p - q), nan=0.0)
        middle = np.rint(np.clip(middle, 0.0, people))
        reach = (1.5 - special.ndtri(half)) * (np.sqrt(variance(middle, people, p, q)) + 1) / (p - q)
    low = _edge(
        lambda at, m: upper_tail(counts[at], m, people, p, q, enough=half) > half,
        middle,
        np.floor(np.maximum(middle - reach, 0.0)),
        -1.0,
    )
    high = _edge(
        lambda at, m: lower_tail(counts[at], m, people, p, q, enough=half) > half,
        middle,
        np.ceil(np.minimum(middle + reach, people)),
        people + 1.0,
    )
    return low[where], high[where]


def _edge(
    kept: Callable[[NDArray[np.intp], Floats], NDArray[np.bool_]], inner: Floats, guess: Floats, end: float
) -> Floats:
    """The whole number next to the nearest one known to be rejected, by bisection.

    `inner` is taken as kept and `end`, beyond all numbers, as rejected. It stops once the two are next to
    each other, or so near that the interval is too wide by a hair.
    """
    inner, outer = inner.copy(), np.full_like(inner, end)
    hair = np.maximum(np.abs(guess - inner) * _HAIR, 1.0)
    trial, open_ = guess, np.flatnonzero(np.abs(inner - outer) > hair)
    while open_.size:
        at = trial[open_]
        fine = kept(open_, at)
        inner[open_[fine]], outer[open_[~fine]] = at[fine], at[~fine]
        open_ = open_[np.abs(inner - outer)[open_] > hair[open_]]
        trial = np.floor((inner + outer) / 2)
    return np.asarray(outer + np.sign(inner - outer), np.float64)
