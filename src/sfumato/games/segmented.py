"""Several prices at once: one for each public segment of the market, for the price in privacy of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._prices import Floats, PriceGrid, bids_of
from sfumato.games.auction import PriceAuction
from sfumato.games.examples import Example
from sfumato.loss import PrivacyLoss
from sfumato.loss.parallel import parallel
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, float_up, positive
from sfumato.numeric.frozen import freeze, shown
from sfumato.numeric.private_values import column_of

__all__ = ["SegmentedAuction", "SegmentedOutcome", "examples"]

Grids: TypeAlias = Mapping[str, PriceGrid | Iterable[Rational]]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedOutcome:
    """Sales in several segments: the prices, which are public, and who buys, which each buyer is told alone.

    Attributes:
        prices: what everybody who buys in a segment pays, by its name.
        buys: for each bid, whether it gets the good.
        places: for each bid the place of its segment among `prices`; −1 for one that is in none.
    """

    prices: Mapping[str, float]
    buys: NDArray[np.bool_]
    places: NDArray[np.int64]

    @property
    def revenue(self) -> dict[str, float]:
        """What the seller takes in, by segment: the seller's own figures, not private ones."""
        sold = np.bincount(self.places[self.buys], minlength=len(self.prices)).tolist()
        return {name: price * count for (name, price), count in zip(self.prices.items(), sold, strict=True)}

    def __str__(self) -> str:
        """The prices, and how many buy."""
        prices = ", ".join(f"{name} {price:g}" for name, price in self.prices.items())
        return f"Prices: {prices}; {int(self.buys.sum()):,} of {len(self.buys):,} bids buy."


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
        2ε in all. Whoever names none of the market's segments is in no part. Bids and names are read each by
        itself; refusals are by the declared types and lengths alone. Conditions: those of `PriceAuction`,
        whose claim covers bids that are replaced, come or go.
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
        auctions = {
            name: PriceAuction(price, grid, supply=goods.get(name)) for name, grid in sorted(prices.items())
        }
        freeze(
            self, epsilon=price, auctions=MappingProxyType(auctions), public_segments=bool(public_segments)
        )

    def __repr__(self) -> str:
        return shown("SegmentedAuction", epsilon=self.epsilon, segments=len(self.auctions))

    @property
    def loss(self) -> PrivacyLoss:
        """What all prices together cost; see `Privacy`."""
        parts = [auction.loss for auction in self.auctions.values()]
        # In a public segment a replaced bid touches that one part alone, like one that comes or goes.
        return parallel(parts, "add-remove" if self.public_segments else "exchange")

    def select(self, bids: Any, segments: Any) -> dict[str, float]:
        """The price of each segment, chosen privately, for empty segments too.

        Args:
            bids: everybody's.
            segments: the name of each bidder's segment. Whoever names none of the market's is left out.

        Raises:
            InvalidValue: for columns of different lengths, or of declared types without numbers or text.
        """
        return {name: self.auctions[name].select(part) for name, part in self._parts(bids, segments)}

    def outcome(self, bids: Any, segments: Any) -> SegmentedOutcome:
        """A price for each segment, chosen privately, and who buys at the price of the own one.

        Privacy:
            All prices together cost `loss`. With unlimited supply a buyer's own purchase follows from the
            prices, the own bid and the own segment, so that what all *others* are told together costs `loss`
            in one's bid (and segment, where it is private): joint differential privacy by the billboard
            lemma (Hsu, Huang, Roth, Roughgarden, Wu 2014). With limited supply that ends at the lottery, as
            in `PriceAuction.outcome`.
        """
        array, places = self._placed(bids, segments)
        prices, buys = {}, np.zeros(len(array), np.bool_)
        for place, (name, auction) in enumerate(self.auctions.items()):
            mine = np.flatnonzero(places == place)
            sale = auction.outcome(array[mine])
            prices[name], buys[mine] = sale.price, sale.buys
        return SegmentedOutcome(MappingProxyType(prices), buys, places)

    def revenue(self, bids: Any, segments: Any) -> dict[str, Floats]:
        """What each price of each segment would take in. Not private: the seller's own figures."""
        return {name: self.auctions[name].revenue(part) for name, part in self._parts(bids, segments)}

    def law(self, bids: Any, segments: Any) -> dict[str, Floats]:
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

    def _placed(self, bids: Any, segments: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The bids, and the place of each bidder's segment; −1 for none of the market's."""
        array, uneven = bids_of(bids), "There must be one segment for each bid, in a flat list."
        labels = column_of(segments, uneven)
        if len(labels) != len(array):
            raise InvalidValue(uneven)
        if labels.kind not in "UO" and len(labels):
            raise InvalidValue("Segments must be text, as in the names of the grids.")
        places = {name: place for place, name in enumerate(self.auctions)}
        indices = (places.get(label, -1) if isinstance(label, str) else -1 for label in labels.data)
        return array, np.fromiter(indices, np.int64, len(labels))

    def _parts(self, bids: Any, segments: Any) -> Iterator[tuple[str, NDArray[Any]]]:
        """The bids of each segment."""
        array, places = self._placed(bids, segments)
        order = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[order], np.arange(len(self.auctions) + 1))
        for place, name in enumerate(self.auctions):
            yield name, array[order[ends[place] : ends[place + 1]]]


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
        laws = [auction._mechanism.probabilities(own_scores) for auction, own_scores in scores[side]]
        return dict(enumerate(np.multiply.outer(*laws).ravel().tolist()))

    return Example(name, market.loss, draw, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
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
