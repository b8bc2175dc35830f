"""Means of people's numbers: Duchi's two ends, the piecewise window, and the mixture of both.

A number in [lower, upper] is rounded, up or down at random so that its mean stays, to a public grid. What
happens to the grid point is a law on whole numbers with exact probabilities, and a report is one of them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._mean_bars import half_width, share_interval
from sfumato.local._mean_laws import STEPS, Law
from sfumato.local._numbers import OTHERS, in_blocks, priced, ranged, shares
from sfumato.local.base import Aggregate, Randomizer, register
from sfumato.local.estimates import Mean, sure_of
from sfumato.local.examples import Example
from sfumato.loss import PureLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational
from sfumato.numeric.frozen import freeze, shown

__all__ = ["DuchiMean", "HybridMean", "MeanAggregate", "MeanRandomizer", "PiecewiseMean", "examples"]

Floats: TypeAlias = NDArray[np.float64]

_MIXES = Fraction(61, 100)
"""Up to this epsilon the hybrid is Duchi's mechanism alone (Wang et al. 2019, Eq. 7)."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MeanRandomizer(Randomizer[Mean]):
    """What the three have in common.

    Attributes:
        epsilon: The price of a report.
        lower: Where the public range begins.
        upper: Where it ends.
    """

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    _law: Law = field(compare=False)

    def __init__(self, epsilon: Rational, lower: Rational, upper: Rational) -> None:
        """Fix the price and the range.

        Raises:
            InvalidParameter: for an epsilon above 50, or a lower that is not below upper.
        """
        price, (low, high) = priced(epsilon), ranged(lower, upper)
        freeze(self, epsilon=price, lower=low, upper=high, _law=Law.at(price, self._window_share(price)))

    @staticmethod
    @abstractmethod
    def _window_share(epsilon: Fraction, /) -> Fraction:
        """With which probability a report is a place of the window, and not one of the two ends."""

    @abstractmethod
    def _parted(self, batch: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """The reports that are places of the window, and how many of the others name the upper end."""

    def __repr__(self) -> str:
        return shown(type(self).__name__, epsilon=self.epsilon, lower=self.lower, upper=self.upper)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the one who gives it."""
        return PureLoss(self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of the estimate from one report, for the number where it is greatest."""
        return self._law.spread.most * float(self.upper - self.lower) ** 2

    def variance_at(self, value: float) -> float:
        """The variance of the estimate from one report of a certain number; a mean has their mean over n."""
        (share,) = self._shares([value])
        spread = self._law.spread
        at = spread.center + spread.slope * (share - 0.5) ** 2
        return float(at * float(self.upper - self.lower) ** 2)

    def start(self) -> MeanAggregate:
        """An aggregate without reports."""
        return MeanAggregate(self)

    def _parameters(self) -> dict[str, Any]:
        return {"lower": str(self.lower), "upper": str(self.upper)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote down."""
        if set(data) != {"kind", "epsilon", "lower", "upper"} or not all(
            isinstance(value, str) for value in data.values()
        ):
            raise InvalidParameter(f"{cls.__name__} is written down with epsilon, lower and upper as texts.")
        return cls(data["epsilon"], data["lower"], data["upper"])

    def _shares(self, values: ArrayLike) -> Floats:
        return shares(values, self.lower, self.upper)


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class DuchiMean(MeanRandomizer):
    """One bit a person: one of the ends of the range, the nearer one more likely. Best for small epsilon.

    Privacy:
        Claim: a report is ε-LDP, exactly. Proof: the number is rounded to an end by a coin of its own, and
        the end is told by randomized response, e^ε/(e^ε + 1) to 1/(e^ε + 1) (an exact coin, `Coins`). Given
        the end, the ratio of the probabilities of either report is at most e^ε; the probability given the
        number is a mixture over ends, and a ratio of mixtures is at most the greatest ratio of its parts.
        How exactly the number was rounded therefore matters for the estimate (2**-33 of the range) and not
        for privacy. Source: Duchi, Jordan, Wainwright 2018; Wang et al. 2019, Alg. 1.
    """

    wire: ClassVar[str] = "mean-duchi.1"

    @staticmethod
    def _window_share(_: Fraction, /) -> Fraction:
        return Fraction(0)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """A byte: 1 for the upper end, 0 for the lower."""
        return np.dtype(np.uint8)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        if batch.size and batch.max() > 1:
            raise InvalidValue(OTHERS)

    def encode(self, values: ArrayLike) -> NDArray[np.uint8]:
        """An end for each number."""
        return in_blocks(self._law.ends.draw, self._shares(values), self.report_dtype)

    def _parted(self, batch: NDArray[Any]) -> tuple[NDArray[Any], int]:
        return batch[:0], int(np.count_nonzero(batch))


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PiecewiseMean(MeanRandomizer):
    """A place near the number with a high probability, any other with a low one. Best for large epsilon.

    Privacy:
        Claim: a report is ε-LDP, exactly. Proof: the number is rounded by a coin of its own to a grid point i
        of 0 … s. The places are 0 … s + w − 1. With probability a = e^ε·w/(e^ε·w + s) (an exact coin) the
        report is uniform over the w places from i on, otherwise uniform over the s others. A place in the
        window has the probability a/w, one outside (1 − a)/s, whatever i is, and the ratio of the two is
        e^ε. So no place is more than e^ε times as likely from one grid point as from another, and that holds
        for mixtures over grid points, too: how exactly the number was rounded does not matter. Source: Wang
        et al. 2019, Alg. 2, of which this is the law on a grid; w = s·e^(−ε/2), rounded, is its window.
    """

    wire: ClassVar[str] = "mean-piecewise.1"

    @staticmethod
    def _window_share(_: Fraction, /) -> Fraction:
        return Fraction(1)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """Two bytes: a place."""
        return np.dtype(np.uint16)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        if batch.size and batch.max() >= self._law.window.places:
            raise InvalidValue(OTHERS)

    def encode(self, values: ArrayLike) -> NDArray[np.uint16]:
        """A place for each number."""
        return in_blocks(self._law.window.draw, self._shares(values), self.report_dtype)

    def _parted(self, batch: NDArray[Any]) -> tuple[NDArray[Any], int]:
        return batch, 0


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class HybridMean(MeanRandomizer):
    """Piecewise or Duchi at random, so that the error is small whatever the numbers are: the one to take.

    Privacy:
        Claim: a report is ε-LDP, exactly. Proof: which of the two makes it is decided by a coin that knows
        nothing of the number, with a rational probability, and both are ε-LDP (`DuchiMean`,
        `PiecewiseMean`); their reports are told apart, so that the ratio of the probabilities of any report
        is that of the one that makes it. Source: Wang et al. 2019, Sec. III-C: the window with probability
        1 − e^(−ε/2) (to 16 bits) for ε > 0.61, where the variance is the same for all numbers; else never.
    """

    wire: ClassVar[str] = "mean-hybrid.1"

    @staticmethod
    def _window_share(epsilon: Fraction, /) -> Fraction:
        if epsilon <= _MIXES:
            return Fraction(0)
        return Fraction(round(-math.expm1(-float(epsilon) / 2) * 2**16), 2**16)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """Two bytes: a place, or one of the two after them for the ends."""
        return np.dtype(np.uint16)

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        # Without a mixture there are places alone, or ends alone.
        places, share = self._law.window.places, self._law.share
        least, most = 0 if share else places, places - 1 if share == 1 else places + 1
        if batch.size and (batch.max() > most or batch.min() < least):
            raise InvalidValue(OTHERS)

    def encode(self, values: ArrayLike) -> NDArray[np.uint16]:
        """A place or an end for each number."""
        return in_blocks(self._law.draw, self._shares(values), self.report_dtype)

    def _parted(self, batch: NDArray[Any]) -> tuple[NDArray[Any], int]:
        places = self._law.window.places
        return batch[batch < places], int(np.count_nonzero(batch == places + 1))


class MeanAggregate(Aggregate[Mean]):
    """Reports of numbers added up: exact sums of whole numbers.

    Attributes:
        fine: How many reports are places of the window.
        total: Their sum.
        squares: The sum of their squares.
        ones: How many of the others name the upper end.
    """

    __slots__ = ("fine", "ones", "squares", "total")
    randomizer: MeanRandomizer

    def __init__(self, randomizer: MeanRandomizer) -> None:
        """Begin without reports."""
        super().__init__(randomizer)
        self.fine = self.total = self.squares = self.ones = 0

    def estimate(self, confidence: float = 0.95) -> Mean:
        """The unbiased mean, with an interval that is proven for every number of people.

        With few people it may lie outside the range: moving it inside would bias it. The interval keeps to
        the range, where the mean is, and is about those who reported, not about a population they were drawn
        from. For ends alone it is Clopper and Pearson's (`_mean_bars.share_interval`), otherwise the least of
        Hoeffding's, Bernstein's and a corrected normal one (`_mean_bars.half_width`).

        Raises:
            InvalidValue: without reports.
        """
        sure = sure_of(confidence)
        if not self.count:
            raise InvalidValue("There are no reports to estimate from.")
        randomizer, law = self.randomizer, self.randomizer._law
        if law.share:
            value = self._sum() / self.count
            width = half_width(law.spread, self.count, self._square(), sure)
            low, high = value - width, value + width
        else:
            shares = self.ones / self.count, *share_interval(self.ones, self.count, sure)
            value, low, high = ((share - law.ends.untrue) / law.ends.gap for share in shares)
        base, end, span = (
            float(randomizer.lower),
            float(randomizer.upper),
            float(randomizer.upper - randomizer.lower),
        )
        low, high = (min(max(base + span * share, base), end) for share in (low, high))
        return Mean(base + span * value, low, high, sure, self.count)

    def _sum(self) -> float:
        """The sum of all terms, each an unbiased estimate of a number in [0, 1]."""
        window, ends = self.randomizer._law.window, self.randomizer._law.ends
        by_ends = (self.ones - (self.count - self.fine) * ends.untrue) / ends.gap
        return by_ends + (self.total - self.fine * window.start) / (window.slope * STEPS)

    def _square(self) -> float:
        """The mean of (term − 1/2)²; the middle place tells 1/2."""
        window, ends = self.randomizer._law.window, self.randomizer._law.ends
        middle = Fraction(window.places - 1, 2)
        about = float(self.squares - 2 * middle * self.total + self.fine * middle * middle)
        coarse = (self.count - self.fine) / (4 * ends.gap**2)
        return (about / (window.slope * STEPS) ** 2 + coarse) / self.count

    def _add(self, batch: NDArray[Any]) -> None:
        places, ones = self.randomizer._parted(batch)
        wide = places.astype(np.uint64)
        # Squares are below 2**32, so that the sum of fewer than 2**32 of them stays within 64 bits.
        self.fine += places.size
        self.total += int(wide.sum())
        self.squares += int((wide * wide).sum())
        self.ones += ones

    def _merged(self, other: Self) -> Self:
        total = type(self)(self.randomizer)
        for name in MeanAggregate.__slots__:
            setattr(total, name, getattr(self, name) + getattr(other, name))
        return total

    def _state(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in MeanAggregate.__slots__}

    def _restore(self, state: Any) -> None:
        law = self.randomizer._law
        names = MeanAggregate.__slots__
        if not isinstance(state, Mapping) or set(state) != set(names):
            raise InvalidValue(_NO_SUMS)
        given = {name: state[name] for name in names}
        if any(type(count) is not int or count < 0 for count in given.values()):
            raise InvalidValue(_NO_SUMS)
        fine, last = given["fine"], law.window.places - 1
        if (
            fine + given["ones"] > self.count
            or given["total"] > fine * last
            or not given["total"] <= given["squares"] <= given["total"] * last
            or (fine > 0 and law.share == 0)
            or (fine < self.count and law.share == 1)
        ):
            raise InvalidValue(_NO_SUMS)
        for name in names:
            setattr(self, name, given[name])


_NO_SUMS = "These are not sums of reports of this randomizer."


def _windows(randomizer: MeanRandomizer) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """Which part of the reports a place is in: the window of the lower end, that of the upper, or between."""
    window = randomizer._law.window
    edges = np.array([window.width, STEPS, window.places, window.places + 1])
    return lambda reports: np.searchsorted(edges, reports.astype(np.int64), side="right")


def _pmf(randomizer: MeanRandomizer) -> Callable[[Side], dict[int, float]]:
    """The law of what `_windows` gives (or of a bit of the ends)."""
    law = randomizer._law
    share, window, ends = float(law.share), law.window, law.ends
    far = window.outside * window.width / STEPS

    def pmf(side: Side) -> dict[int, float]:
        near = [window.inside, window.outside - far, far]
        told = [1 - ends.untrue, ends.untrue]
        if side == "right":
            near, told = near[::-1], told[::-1]
        if not isinstance(randomizer, HybridMean):
            return dict(enumerate(near if share else told))
        return dict(enumerate([share * p for p in near] + [(1 - share) * p for p in told]))

    return pmf


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example("mean: duchi", DuchiMean(1, -1, 1), -1, 1, pmf=_pmf(DuchiMean(1, -1, 1))),
        *(
            Example(f"mean: {name}", randomizer, 0, 10, read=_windows(randomizer), pmf=_pmf(randomizer))
            for name, randomizer in (
                ("piecewise", PiecewiseMean(1, 0, 10)),
                ("piecewise at 3", PiecewiseMean(3, 0, 10)),
                ("hybrid", HybridMean(2, 0, 10)),
            )
        ),
    )
