"""Quantiles of people's numbers: a tree of intervals, each person telling of one level of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._numbers import OTHERS, priced, ranged, shares
from sfumato.local._tree import Tree
from sfumato.local.base import Aggregate, Randomizer, register
from sfumato.local.estimates import sure_of
from sfumato.local.examples import Example
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.response import KaryResponse
from sfumato.local.support import SupportAggregate, SupportRandomizer
from sfumato.loss import PureLoss
from sfumato.numeric.exact import Rational, as_integer, probability
from sfumato.numeric.frozen import freeze, shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Distribution", "LocalQuantiles", "Quantile", "QuantilesAggregate", "examples"]

Floats: TypeAlias = NDArray[np.float64]

_MOST = 4096
_FEW = 30
"""Below so many people on a level, nothing is claimed: a normal law would be too much to hope for."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of people's numbers.

    Attributes:
        value: The estimate.
        low: Where its interval begins, an edge of the grid.
        high: Where it ends, another one.
        confidence: How often it holds the quantile of these people's numbers.
        people: How many reported.
    """

    value: float
    low: float
    high: float
    confidence: float
    people: int

    def __str__(self) -> str:
        often = f"{self.confidence:.6g} confidence, {self.people:,} people"
        return f"{self.value:.6g} ({self.low:.6g} to {self.high:.6g} at {often})"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Which share of the people has a number below each edge of the grid.

    Attributes:
        edges: The edges, from lower to upper.
        shares: The parts, never falling.
        low: Where their intervals begin.
        high: Where they end; each interval holds by itself with the given confidence.
        confidence: Which that is.
        people: How many reported.
    """

    edges: Floats
    shares: Floats
    low: Floats
    high: Floats
    confidence: float
    people: int

    def quantile(self, share: Rational) -> Quantile:
        """The number that this share of the people does not exceed.

        Its interval has all cells of the grid that the intervals of the parts allow: the cell of the quantile
        is missed only if the part below it is overestimated or the part up to its end underestimated, by more
        than the interval, which each happens half as often as the interval fails.

        Raises:
            InvalidParameter: unless the share is strictly between 0 and 1.
        """
        at = float(probability(share, "share"))
        cell = int(np.searchsorted(self.shares[1:-1], at, side="left"))
        below, above = self.shares[cell], self.shares[cell + 1]
        part = (at - below) / (above - below) if above > below else 0.5
        value = self.edges[cell] + min(max(part, 0.0), 1.0) * (self.edges[cell + 1] - self.edges[cell])
        kept = np.flatnonzero((self.low[:-1] <= at) & (self.high[1:] >= at))
        first, last = (kept[0], kept[-1]) if kept.size else (cell, cell)
        low, high = self.edges[min(first, cell)], self.edges[max(last, cell) + 1]
        return Quantile(float(value), float(low), float(high), self.confidence, self.people)

    @property
    def table(self) -> pa.Table:
        """Columns edge, share, low, high."""
        import pyarrow as pa

        return pa.table({"edge": self.edges, "share": self.shares, "low": self.low, "high": self.high})


@register
@dataclass(frozen=True, slots=True, init=False, repr=False)
class LocalQuantiles(Randomizer[Distribution]):
    """Tells in which interval of a randomly chosen level of a tree a number lies.

    The range is cut into `branching` equal intervals, each of them again, and so on down to `bins` cells. A
    share of the people below an edge is a sum of few intervals, whereas it would be a sum of half of all
    cells. Intervals of all levels are reconciled by least squares before they are added up.

    Attributes:
        epsilon: The price of a report.
        lower: Where the public range begins.
        upper: Where it ends.
        bins: How many cells the grid has: a power of `branching`, at most 4096.
        branching: Into how many an interval is cut.

    Privacy:
        Claim: one report is ε-DP between any two numbers. Proof: the level does not depend on the number.
        Given the level, the report is that of an ε-DP randomizer about the interval there (`KaryResponse`
        for fewer than 3e^ε + 2 intervals, otherwise `HadamardResponse`), and the interval is a function of
        the number; the ratio of the probabilities of level and report is that of the report. Source:
        Cormode, Kulkarni, Srivastava 2019; least squares by Hay, Rastogi, Miklau, Suciu 2010.
    """

    wire: ClassVar[str] = "quantiles.1"
    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    bins: int
    branching: int
    _levels: tuple[SupportRandomizer, ...] = field(compare=False)

    def __init__(
        self, epsilon: Rational, lower: Rational, upper: Rational, *, bins: int = 1024, branching: int = 4
    ) -> None:
        """Fix the price, the range and the tree.

        Raises:
            InvalidParameter: for an epsilon above 50, a lower that is not below upper, or bins that are not a
                power of branching.
        """
        price, (low, high) = priced(epsilon), ranged(lower, upper)
        cells, cut = as_integer(bins, "bins", least=2), as_integer(branching, "branching", least=2)
        sizes = [cut]
        while sizes[-1] < min(cells, _MOST + 1):
            sizes.append(sizes[-1] * cut)
        if sizes[-1] != cells or cells > _MOST:
            raise InvalidParameter(f"bins must be a power of branching, here {cut}, and at most {_MOST}.")
        levels = tuple(_about(price, size) for size in sizes)
        freeze(self, epsilon=price, lower=low, upper=high, bins=cells, branching=cut, _levels=levels)

    def __repr__(self) -> str:
        return shown(
            "LocalQuantiles",
            epsilon=self.epsilon,
            lower=self.lower,
            upper=self.upper,
            bins=self.bins,
            branching=self.branching,
        )

    @property
    def loss(self) -> PureLoss:
        """What one report costs the one who gives it."""
        return PureLoss(self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of the share below an edge from one report, at the worst edge for even numbers.

        With people on each level alike; that of n people is an n-th of it.
        """
        people = np.ones(len(self._levels))
        even = np.full(self.bins, 1 / self.bins)
        return float(self._variances(people, even).max()) * len(people)

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """Words that hold the reports of every level."""
        return np.result_type(*(level.report_dtype for level in self._levels))

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The level, and the report about it."""
        return (2,)

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """A level and a report about it for each number."""
        parts = shares(values, self.lower, self.upper)
        cells = np.minimum((parts * self.bins).astype(np.int64), self.bins - 1)
        reports = np.empty((cells.size, 2), self.report_dtype)
        chosen = random.integers(len(self._levels), cells.size)
        reports[:, 0] = chosen
        for level, inner in enumerate(self._levels):
            mine = chosen == level
            reports[mine, 1] = inner.encode(cells[mine] // (self.bins // inner.domain.size))
        return reports

    def start(self) -> QuantilesAggregate:
        """An aggregate without reports."""
        return QuantilesAggregate(self)

    def _parameters(self) -> dict[str, Any]:
        levels = [level.to_dict() for level in self._levels]
        return {
            "lower": str(self.lower),
            "upper": str(self.upper),
            "bins": self.bins,
            "branching": self.branching,
            "levels": levels,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` wrote down.

        Raises:
            InvalidParameter: for anything else, such as levels that are not told of as they are here.
        """
        try:
            quantiles = cls(
                data["epsilon"],
                data["lower"],
                data["upper"],
                bins=data["bins"],
                branching=data["branching"],
            )
        except KeyError:
            raise InvalidParameter("The parameters of quantiles are not complete.") from None
        if quantiles.to_dict() != dict(data):
            raise InvalidParameter("These quantiles were made by another version, or are not ones.")
        return quantiles

    def _refuse_others(self, batch: NDArray[Any]) -> None:
        for inner, part in zip(self._levels, self._split(batch), strict=True):
            inner._refuse_others(part)

    def _split(self, batch: NDArray[Any]) -> list[NDArray[Any]]:
        """The reports about each level.

        Raises:
            InvalidValue: if one is about none, or too large.
        """
        if batch.size and batch[:, 0].max() >= len(self._levels):
            raise InvalidValue(OTHERS)
        parts = [batch[batch[:, 0] == level, 1] for level in range(len(self._levels))]
        for part, inner in zip(parts, self._levels, strict=True):
            if part.size and int(part.max()) > np.iinfo(inner.report_dtype).max:
                raise InvalidValue(OTHERS)
        return [part.astype(inner.report_dtype) for part, inner in zip(parts, self._levels, strict=True)]

    def _tree(self, people: Floats) -> Tree:
        """The tree with the variances that intervals of each level have, rare ones at least."""
        with np.errstate(divide="ignore"):
            variances = np.array([level.variance for level in self._levels]) / people
        return Tree(self.branching, variances)

    def _variances(self, people: Floats, cells: Floats) -> Floats:
        """The variance of the share below every edge; see `_spread`."""
        tree, total = self._tree(people), np.zeros(self.bins + 1)
        for start in range(0, self.bins + 1, 256):
            edges = np.arange(start, min(start + 256, self.bins + 1))
            for inner, weights, count in zip(self._levels, tree.weights(edges), people, strict=True):
                parts = cells.reshape(inner.domain.size, -1).sum(axis=1)
                total[edges] += _spread(inner, weights, parts) / max(count, 1e-9)
        return np.maximum(total, 0.0)


def _about(epsilon: Fraction, size: int) -> SupportRandomizer:
    """What tells of one of so many intervals."""
    few = size < 3 * math.exp(float(epsilon)) + 2
    return KaryResponse(epsilon, size) if few else HadamardResponse(epsilon, size)


def _spread(inner: SupportRandomizer, weights: Floats, parts: Floats) -> Floats:
    """The variance of Σ_v weights[v]·(1[report supports v] − q)/(p − q), for a person drawn at random.

    A person's own interval is x with probability parts[x]. Response supports one value. Reports of a Hadamard
    response support values independently in pairs: the hashes of two others and the own one differ by two
    independent uniform ones.
    """
    p, q, gap = inner.p, inner.q, inner.gap
    squares, own = np.square(weights).sum(axis=1), np.square(weights) @ parts
    mean = weights @ parts
    if isinstance(inner, KaryResponse):
        whole = gap * mean + q * weights.sum(axis=1)
        return np.asarray((gap * own + q * squares - whole * whole) / gap**2)
    noise = q * (1 - q) * squares + (p * (1 - p) - q * (1 - q)) * own
    return np.asarray(noise / gap**2 + own - mean * mean)


class QuantilesAggregate(Aggregate[Distribution]):
    """Reports about each level, added up by themselves.

    Attributes:
        levels: The aggregates, from the widest intervals to the cells.
    """

    __slots__ = ("levels",)
    randomizer: LocalQuantiles

    def __init__(self, randomizer: LocalQuantiles) -> None:
        """Begin without reports."""
        super().__init__(randomizer)
        self.levels: list[SupportAggregate] = [level.start() for level in randomizer._levels]

    def estimate(self, confidence: float = 0.95) -> Distribution:
        """The share of people below every edge, with an interval for each.

        Intervals are normal ones, with the variance of the reports, of who was asked about which level, and
        of nothing else; `tests/local/test_quantiles.py` measures their coverage. Where fewer than 30 people
        tell of a level, they are 0 to 1.

        Raises:
            InvalidValue: without reports.
        """
        sure = sure_of(confidence)
        if not self.count:
            raise InvalidValue("There are no reports to estimate from.")
        randomizer = self.randomizer
        people = np.array([level.count for level in self.levels], np.float64)
        tree = randomizer._tree(people)
        raw = np.concatenate([[0.0], np.cumsum(tree.consistent([_parts(level) for level in self.levels]))])
        raw[-1] = 1.0
        rising = np.maximum.accumulate(raw), np.minimum.accumulate(raw[::-1])[::-1]
        smooth = np.clip((rising[0] + rising[1]) / 2, 0.0, 1.0)
        smooth[0], smooth[-1] = 0.0, 1.0
        width = np.full(raw.size, np.inf)
        if people.min() >= _FEW:
            width = -float(ndtri((1 - sure) / 2)) * np.sqrt(randomizer._variances(people, np.diff(smooth)))
        width[0] = width[-1] = 0.0
        low, high = (np.clip(bound, 0.0, 1.0) for bound in (raw - width, raw + width))
        edges = np.linspace(0, 1, raw.size) * float(randomizer.upper - randomizer.lower) + float(
            randomizer.lower
        )
        edges[-1] = float(randomizer.upper)
        low, high = np.minimum(low, smooth), np.maximum(high, smooth)
        return Distribution(edges, smooth, low, high, sure, self.count)

    def _add(self, batch: NDArray[Any]) -> None:
        parts = self.randomizer._split(batch)
        fresh = [inner.aggregate(part) for inner, part in zip(self.randomizer._levels, parts, strict=True)]
        self.levels = [old + new for old, new in zip(self.levels, fresh, strict=True)]

    def _merged(self, other: Self) -> Self:
        total = type(self)(self.randomizer)
        total.levels = [one + two for one, two in zip(self.levels, other.levels, strict=True)]
        return total

    def _state(self) -> list[dict[str, Any]]:
        return [{"count": level.count, "state": level._state()} for level in self.levels]

    def _restore(self, state: Any) -> None:
        fits = isinstance(state, list) and len(state) == len(self.levels)
        if not fits or not all(isinstance(part, dict) and set(part) == {"count", "state"} for part in state):
            raise InvalidValue(_NO_LEVELS)
        counts = [part["count"] for part in state]
        if any(type(count) is not int or count < 0 for count in counts) or sum(counts) != self.count:
            raise InvalidValue(_NO_LEVELS)
        levels = [inner.start() for inner in self.randomizer._levels]
        for level, part in zip(levels, state, strict=True):
            level.count = part["count"]
            level._restore(part["state"])
        self.levels = levels


_NO_LEVELS = "These are not levels of reports about quantiles."


def _parts(aggregate: SupportAggregate) -> Floats:
    """The unbiased shares of the intervals of a level; nothing is known where nobody told of it."""
    randomizer = aggregate.randomizer
    if not aggregate.count:
        return np.zeros(randomizer.domain.size)
    return np.asarray((aggregate.supports / aggregate.count - randomizer.q) / randomizer.gap)


def _example() -> Example:
    """Two cells of a tree of two levels: the level, with which of the two intervals is told of."""
    quantiles = LocalQuantiles(1, 0, 1, bins=16)

    def read(reports: NDArray[Any]) -> NDArray[np.int64]:
        return 16 * reports[:, 0].astype(np.int64) + reports[:, 1].astype(np.int64) % 16

    return Example("quantiles", quantiles, 0.0, 1.0, read=read, tight=0.7)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (_example(),)
