"""Several prices at once: one for each public segment of the market, for the price in privacy of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._ids import ids_of
from sfumato.games._prices import Floats, PriceGrid, bids_of
from sfumato.games.auction import PriceAuction
from sfumato.games.examples import Example
from sfumato.loss import PrivacyLoss
from sfumato.loss.parallel import parallel
from sfumato.mechanisms._figures import freeze, shown
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, float_up, positive

__all__ = ["EXAMPLES", "SegmentedAuction"]

Grids: TypeAlias = Mapping[str, PriceGrid | Iterable[Rational]]


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class SegmentedAuction:
    """One price for each segment (countries, editions), each chosen as `PriceAuction` does.

    Attributes:
        epsilon: the price in privacy of each segment's choice.
        auctions: the auction of each segment, by name; the list of segments is public.
        public_segments: whether everybody knows who belongs where, so that only a bid is private.

    Privacy:
        Claim: all prices together cost `loss`. Each bidder is in one segment, so that this is parallel
        composition (`ParallelLoss`; McSherry 2009, Thm. 4). Where segments are public, a neighbour's bid is
        another one in the same segment, or it comes or goes: one part is touched, ε in all. Where a
        segment is private too, a replaced bidder may leave one part and enter another: two parts are touched,
        2ε in all. Conditions: those of `PriceAuction`, whose claim covers bids that are replaced, come or go.
    """

    epsilon: Fraction
    auctions: Mapping[str, PriceAuction]
    public_segments: bool

    def __init__(
        self,
        epsilon: Rational,
        prices: Grids,
        *,
        supply: int | Mapping[str, int] | None = None,
        public_segments: bool = True,
    ) -> None:
        """Fix the grid of each segment.

        Args:
            epsilon: the price in privacy of each segment's choice.
            prices: the grid of each segment, by its name.
            supply: how many goods there are in each segment: one number for all, or by name (unlimited
                where not named).
            public_segments: whether everybody knows who belongs where.

        Raises:
            InvalidParameter: if there are no segments, or a supply names none of them.
        """
        price = positive(epsilon, "epsilon")
        if not isinstance(prices, Mapping) or not prices:
            raise InvalidParameter("prices must give each segment a grid: {'FR': price_grid(…), …}.")
        if not all(isinstance(name, str) for name in prices):
            raise InvalidParameter("The names of segments must be text.")
        if any(name.endswith("\0") for name in prices):
            raise InvalidParameter("The names of segments must not end in a NUL character.")
        goods = supply if isinstance(supply, Mapping) else dict.fromkeys(prices, supply)
        if set(goods) - set(prices):
            raise InvalidParameter("supply names a segment that has no prices: give it a grid first.")
        made = {
            name: PriceAuction(price, grid, supply=goods.get(name)) for name, grid in sorted(prices.items())
        }
        freeze(self, epsilon=price, auctions=MappingProxyType(made), public_segments=bool(public_segments))

    def __repr__(self) -> str:
        return shown("SegmentedAuction", epsilon=self.epsilon, segments=len(self.auctions))

    @property
    def loss(self) -> PrivacyLoss:
        """What all prices together cost; see `Privacy`."""
        parts = [auction.loss for auction in self.auctions.values()]
        # In a public segment a replaced bid touches that one part alone, like one that comes or goes.
        return parallel(parts, "add-remove" if self.public_segments else "exchange")

    def select(self, bids: ArrayLike, segments: ArrayLike) -> dict[str, float]:
        """The price of each segment, chosen privately, for empty segments too.

        Args:
            bids: everybody's.
            segments: the name of each bidder's segment.

        Raises:
            InvalidValue: for unusable bids, or a segment that has no prices.
        """
        return {name: self.auctions[name].select(part) for name, part in self._parts(bids, segments)}

    def revenue(self, bids: ArrayLike, segments: ArrayLike) -> dict[str, Floats]:
        """What each price of each segment would take in. Not private: the seller's own figures."""
        return {name: self.auctions[name].revenue(part) for name, part in self._parts(bids, segments)}

    def law(self, bids: ArrayLike, segments: ArrayLike) -> dict[str, Floats]:
        """With what probability `select` takes each price of each segment. Not private."""
        return {name: self.auctions[name].law(part) for name, part in self._parts(bids, segments)}

    def guarantee(self, confidence: Rational) -> float:
        """How much less than the best prices of the grids all segments take in together, at most."""
        total = Fraction(0)
        for auction in self.auctions.values():
            ticks = auction._mechanism.error(
                confidence, size=len(self.auctions), candidates=len(auction.prices)
            )
            total += auction.prices.money(ticks)
        return float_up(total)

    def _parts(self, bids: ArrayLike, segments: ArrayLike) -> Iterator[tuple[str, NDArray[Any]]]:
        """The bids of each segment."""
        array, names = bids_of(bids), np.array(list(self.auctions))  # sorted when they were fixed
        labels = ids_of(
            segments,
            rows=len(array),
            uneven="There must be one segment for each bid, in a flat list.",
            other="Segments must be text, as in the names of the grids.",
        )
        if labels.dtype.kind not in "UT" and labels.size:
            raise InvalidValue("Segments must be text, as in the names of the grids.")
        labels = labels.astype(str)
        codes = np.minimum(np.searchsorted(names, labels), len(names) - 1)
        if np.any(names[codes] != labels):
            raise InvalidValue("A segment of a bidder has no prices: give it a grid, or leave it out.")
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]
        yield from zip(self.auctions, np.split(array[order], ends), strict=True)


# ── for the auditor


def _example(
    name: str, market: SegmentedAuction, inputs: Mapping[Side, tuple[list[float], list[str]]]
) -> Example:
    """A market of two segments; an output is the pair of its prices, counted as one number."""
    scores = {
        side: [
            (market.auctions[key], market.auctions[key]._scores(part)) for key, part in market._parts(*given)
        ]
        for side, given in inputs.items()
    }
    width = len(scores["left"][1][1])

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        (one, first), (other, second) = scores[side]
        return np.array(
            [one._mechanism.select(first) * width + other._mechanism.select(second) for _ in range(count)]
        )

    def pmf(side: Side) -> dict[int, float]:
        laws = [auction._mechanism.probabilities(found) for auction, found in scores[side]]
        return dict(enumerate(np.multiply.outer(*laws).ravel().tolist()))

    return Example(name, market.loss, draw, pmf)


def _examples() -> tuple[Example, ...]:
    grids: Grids = {"DE": [1, 50], "FR": [1, 100]}
    crowd, where = [1.0] * 130 + [50.0], ["FR"] * 130 + ["DE"]
    here = [*crowd, 100.0], [*where, "FR"]
    # Somebody rich moves away: from where most are poor, where the high price is now rarer, to where most are
    # rich, where the low price is now rarer.
    there = [*crowd, 50.0], [*where, "DE"]
    return (
        _example(
            "segmented auction: public", SegmentedAuction(2, grids), {"left": (crowd, where), "right": here}
        ),
        _example(
            "segmented auction: private",
            SegmentedAuction(2, grids, public_segments=False),
            {"left": here, "right": there},
        ),
    )


EXAMPLES = _examples()
