"""A private reserve price for second-price auctions, learned from a log of bids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._prices import MOST_MONEY, Floats, PriceGrid, Whole, bids_of
from sfumato.games._words import mix, words_of
from sfumato.games.examples import Example
from sfumato.loss import Adjacency, BoundedRangeLoss
from sfumato.mechanisms import Exponential
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_integer, float_up, positive
from sfumato.numeric.frozen import freeze, shown
from sfumato.numeric.private_ids import Ids, ids_of

__all__ = ["BidLog", "ReservePrice", "examples"]

_LOW_BITS = 33  # below a place in the log: a bid of at most 2**32 ticks, or bits of a hash
_MOST_ROWS = 2**30  # so that both fit into one word


class BidLog(NamedTuple):
    """A log of bids, a row for each.

    Attributes:
        auctions: which auction it was made in: whole numbers or text.
        bidders: who made it: whole numbers or text.
        bids: how much was bid.
    """

    auctions: ArrayLike
    bidders: ArrayLike
    bids: ArrayLike


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ReservePrice:
    """The reserve that would have earned the most in past second-price auctions, chosen privately.

    At reserve r, an auction whose highest bids are b1 ≥ b2 earns max(r, b2) if b1 ≥ r, and nothing otherwise.
    Bids above the top price count as the top price: where the second bid is above it, every reserve of the
    grid earns the same, so that nothing is lost by that.

    Attributes:
        epsilon: the price in privacy of one choice.
        prices: the public grid of reserves.
        max_auctions: in how many auctions a bidder counts; of more, so many are kept by a hash.
        adjacency: whether a neighbour's log has one bidder more or less, or one replaced.
        salt: public text that decides which auctions of a busy bidder are kept.

    Privacy:
        Claim: the reserve is `epsilon`-DP, with bounded range `epsilon`, where neighbours differ in all rows
        of one bidder. What is kept of a bidder (the highest bid in each auction, in the `max_auctions`
        auctions whose hash with the bidder's id and the salt is least) follows from that bidder's rows alone.
        In one auction, a bid that comes can only raise b1 and b2, hence max(r, b2)·[b1 ≥ r], which stays
        within 0 and the top price: every score goes up by at most the top price, or all go down where it
        leaves. Over all its auctions a bidder therefore moves the scores one way, by at most
        max_auctions·top: monotone scores for add/remove. A bidder *replaced* by another may lower one
        reserve's score and raise another's, by that much each, so that under exchange the scores are not
        monotone and the rate is halved for the same price. Source: McSherry, Talwar 2007; the revenue of
        reserves: Myerson 1981; learning them from logs: Cesa-Bianchi, Gentile, Mansour 2015. Conditions: the
        grid, the salt and `max_auctions` are public. What `revenue` and `law` give is not private.
        Ids and bids are read each by itself: a row without an auction or a bidder is left out, a bid that is
        no number counts as 0. Refusals are by the declared types and lengths of the columns alone.
    """

    epsilon: Fraction
    prices: PriceGrid
    max_auctions: int
    adjacency: Adjacency
    salt: str
    _mechanism: Exponential = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        prices: PriceGrid | Iterable[Rational],
        *,
        max_auctions: int,
        adjacency: Adjacency = "add-remove",
        salt: str = "",
    ) -> None:
        """Fix the price in privacy, the grid, and how much one bidder may count.

        Raises:
            InvalidParameter: if a parameter is unusable.
        """
        price, grid = positive(epsilon, "epsilon"), PriceGrid.of(prices)
        most = as_integer(max_auctions, "max_auctions")
        if adjacency not in get_args(Adjacency):
            raise InvalidParameter("adjacency must be 'add-remove' or 'exchange'.")
        if not isinstance(salt, str):
            raise InvalidParameter("salt must be text.")
        freeze(self, epsilon=price, prices=grid, max_auctions=most, adjacency=adjacency, salt=salt)
        monotone = adjacency == "add-remove"
        freeze(self, _mechanism=Exponential(price, most * grid.ticks[-1], monotone=monotone))

    def __repr__(self) -> str:
        return shown("ReservePrice", epsilon=self.epsilon, prices=self.prices, max_auctions=self.max_auctions)

    @property
    def loss(self) -> BoundedRangeLoss:
        """Bounded range `epsilon`: pure `epsilon`, and ε²/8-zCDP."""
        return self._mechanism.loss

    def select(self, auctions: ArrayLike, bidders: ArrayLike, bids: ArrayLike) -> float:
        """The reserve, chosen privately; the float nearest to its decimal, which prints as that decimal.

        Args:
            auctions: which auction each row's bid was made in, whole numbers or text, in any order.
            bidders: who made it.
            bids: how much was bid.

        Raises:
            InvalidValue: for columns of different lengths, or of declared types that hold neither.
        """
        return self.prices[self._mechanism.select(self._scores(BidLog(auctions, bidders, bids)))]

    def revenue(self, auctions: ArrayLike, bidders: ArrayLike, bids: ArrayLike) -> Floats:
        """What each reserve would have earned, from what is kept. Not private: the seller's own figures."""
        scores = self._scores(BidLog(auctions, bidders, bids))
        return np.asarray(scores * (self.prices.tick.numerator / self.prices.tick.denominator))

    def law(self, auctions: ArrayLike, bidders: ArrayLike, bids: ArrayLike) -> Floats:
        """With what probability `select` takes each reserve, to 1e-12. Not private: nothing is drawn."""
        return self._mechanism.probabilities(self._scores(BidLog(auctions, bidders, bids)))

    def guarantee(self, confidence: Rational) -> float:
        """How much less than the best reserve of the grid the chosen one earns, at most; rounded up.

        Against what is kept of the log: bids beyond a bidder's `max_auctions` auctions are in neither.
        """
        ticks = self._mechanism.error(confidence, candidates=len(self.prices))
        return float_up(self.prices.money(ticks))

    def _scores(self, log: BidLog) -> Whole:
        """Revenue of each reserve, in ticks."""
        first, second = self._highest(log)
        reserves = self.prices.whole
        if len(first) * self.prices.ticks[-1] > MOST_MONEY:
            raise InvalidValue("There are too many auctions for prices of so many ticks: use a coarser tick.")
        first, second = np.sort(first), np.sort(second)
        sold = len(first) - np.searchsorted(first, reserves, side="left")
        # r where there is a sale, and b2 − r more where the second bid is above r.
        place = np.searchsorted(second, reserves, side="right")
        above = np.append(np.cumsum(second[::-1])[::-1], 0)[place]
        return np.asarray(reserves * sold + above - reserves * (len(second) - place))

    def _highest(self, log: BidLog) -> tuple[Whole, Whole]:
        """The two highest bids of each auction, in ticks, of what is kept of each bidder."""
        bids = self.prices.in_ticks(bids_of(log.bids))
        names, people = _ids(log.auctions, "auctions", len(bids)), _ids(log.bidders, "bidders", len(bids))
        whole = names.known & people.known
        bids, auction, bidder = bids[whole], names.codes[whole], people.codes[whole]
        if not len(bids):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        # Codes keep a fixed order of ids, so that even ties of the hash are settled by a bidder's own rows.
        pair = bidder * len(names) + auction
        order = np.argsort(pair, kind="stable")
        starts = _starts(pair[order])
        bids, kept = np.maximum.reduceat(bids[order], starts), order[starts]
        auction, bidder = auction[kept], bidder[kept]
        mixed = mix(words_of(names, self.salt)[auction] + mix(words_of(people, self.salt))[bidder])
        # Bidder first, then 33 bits of the hash, then (stable) the auction: one key sorts quicker than two.
        order = np.argsort(bidder << _LOW_BITS | (mixed >> np.uint64(31)).astype(np.int64), kind="stable")
        starts = _starts(bidder[order])
        turn = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        order = order[turn < self.max_auctions]
        key = np.sort(auction[order] << _LOW_BITS | bids[order])
        auction, bids = key >> _LOW_BITS, key & (1 << _LOW_BITS) - 1
        last = np.append(_starts(auction)[1:], len(auction)) - 1
        rivals = (last > 0) & (auction[last - 1] == auction[last])
        return bids[last], np.where(rivals, bids[last - 1], 0)


def _ids(ids: Any, name: str, rows: int) -> Ids:
    """Each id as its place in a fixed order of ids."""
    if rows > _MOST_ROWS:
        raise InvalidValue("A log of more than 2**30 rows must be learned from in parts.")
    return ids_of(
        ids,
        rows=rows,
        uneven="A log has an auction, a bidder and a bid in each row: three columns of one length.",
        kinds="iuUS",
        other=f"The ids of {name} must be whole numbers or text.",
    )


def _starts(ordered: Whole) -> Whole:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


# ── for the auditor


def _example(name: str, reserve: ReservePrice, left: BidLog, right: BidLog) -> Example:
    scores: Mapping[Side, Whole] = {"left": reserve._scores(left), "right": reserve._scores(right)}

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return np.array([reserve._mechanism.select(scores[side]) for _ in range(count)])

    def pmf(side: Side) -> dict[int, float]:
        return dict(enumerate(reserve._mechanism.probabilities(scores[side]).tolist()))

    return Example(name, reserve.loss, draw, pmf)


def _crowd(places: range, bid: float) -> list[tuple[int, int, float]]:
    """Auctions with one small bidder each."""
    return [(place, place, bid) for place in places]


def _log(rows: list[tuple[int, int, float]]) -> BidLog:
    return BidLog(*(list(column) for column in zip(*rows, strict=True)))


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    crowd = _crowd(range(35), 1.0)
    # Somebody joins as many auctions as count (and one more, which must not): the rare reserve alone gains.
    joined = [*crowd, (0, 99, 10.0), (1, 99, 10.0), (2, 99, 10.0)]
    # Somebody who kept the second bid of one auction up is now the first bidder of another: the low reserve
    # loses and the high one gains.
    rival = (100, 98, 10.0)
    return (
        _example("reserve", ReservePrice(2, [1, 10], max_auctions=2), _log(crowd), _log(joined)),
        _example(
            "reserve: exchange",
            ReservePrice(2, [1, 10], max_auctions=1, adjacency="exchange"),
            _log([*crowd, rival, (100, 99, 10.0)]),
            _log([*crowd, rival, (0, 99, 10.0)]),
        ),
    )
