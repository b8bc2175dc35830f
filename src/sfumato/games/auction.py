"""Selling digital goods at one price that is chosen privately, so that a bid hardly moves it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._prices import MOST_MONEY, Floats, PriceGrid, Whole, bids_of, price_grid
from sfumato.games.examples import Example
from sfumato.loss import BoundedRangeLoss
from sfumato.mechanisms import Exponential
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_fraction, as_integer, float_up, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Outcome", "PriceAuction", "PriceGrid", "Promise", "examples", "optimal_grid_step", "price_grid"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What a private price earns at least, in money, and whether that says anything.

    Attributes:
        buyers: for how many it was asked.
        confidence: with what probability it holds.
        to_privacy: the most that is lost against the best price of the grid.
        to_grid: the most that the best price of the grid loses against the best price up to its top.
        most: the most there is to earn: what was given as the optimum, or all buyers at the top price.
        known: whether the optimum was given. If not, the promise is about what is lost alone.
    """

    buyers: int
    confidence: float
    to_privacy: float
    to_grid: float
    most: float
    known: bool = False

    @property
    def vacuous(self) -> bool:
        """Whether more may be lost than there is to earn, so that the promise says nothing."""
        return self.to_privacy + self.to_grid >= self.most

    @property
    def least(self) -> float:
        """What is earned at least; 0 where the promise is vacuous, or what the best price earns not known."""
        if not self.known:
            return 0.0
        return max(0.0, math.nextafter(self.most - self.to_privacy - self.to_grid, -math.inf))

    def __str__(self) -> str:
        """A few lines of at most 80 columns."""
        lines = [
            f"With {self.buyers:,} buyers, and probability {self.confidence:g}:",
            f"  lost to privacy   at most {self.to_privacy:,.2f}",
            f"  lost to the grid  at most {self.to_grid:,.2f}",
        ]
        if self.vacuous:
            return "\n".join([*lines, f"  Vacuous: there is no more than {self.most:,.2f} to earn at all."])
        if self.known:
            return "\n".join([*lines, f"  so at least {self.least:,.2f} of {self.most:,.2f} are earned"])
        lost = self.to_privacy + self.to_grid
        return "\n".join([*lines, f"  It says something if the best price earns more than {lost:,.2f}."])


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A sale: the price, which is public, and who buys, which each buyer is told alone.

    Attributes:
        price: what everybody who buys pays.
        buys: for each bid, whether it gets the good.
    """

    price: float
    buys: NDArray[np.bool_]

    @property
    def revenue(self) -> float:
        """What the seller takes in: the seller's own figure, not a private one."""
        return self.price * int(self.buys.sum())

    def __str__(self) -> str:
        """The price, and how many buy."""
        return f"Price {self.price:g}: {int(self.buys.sum()):,} of {len(self.buys):,} bids buy."


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PriceAuction:
    """One price for everybody, chosen by the exponential mechanism with its revenue as the score.

    Attributes:
        epsilon: the price in privacy of one choice.
        prices: the public grid.
        supply: how many goods there are; None: as many as are wanted (digital goods).
        commit: whether a bid is an order. False: the price is posted and buyers decide then, so that a bid
            moves nothing but the price. True: whoever bid at least the price buys, worth it or not.

    Privacy:
        Claim: the price is `epsilon`-DP, with bounded range `epsilon`, where neighbours differ in one bid
        that is replaced (exchange), added or removed. The score of price p is p·min(#{bids ≥ p}, supply), in
        whole ticks. Raising a bid from v to v' adds one to the number of bids at the prices in (v, v'] and
        takes from none; the minimum with a constant keeps a step of 0 or 1; so every score moves by 0 or p,
        all of them up, and lowering it moves all of them down. A bid that comes is one raised from below
        all prices. Hence the scores are monotone with sensitivity the top price, whatever the bids, and
        `Exponential` may be run as exp(ε·score/top). Each bid is read alone: what is not a number counts as
        0, below all prices, and refusals are by the declared type and shape alone. Source: McSherry, Talwar
        2007 (unlimited supply); Dwork, Roth 2014, Ch. 10; for monotone scores, `Exponential`. Conditions:
        the grid is public. What `law`, `revenue`, `optimum` and `outcome` give is not private: they are for
        the seller, or for bids that are made up.
    """

    epsilon: Fraction
    prices: PriceGrid
    supply: int | None
    commit: bool
    _mechanism: Exponential = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        prices: PriceGrid | Iterable[Rational],
        *,
        supply: int | None = None,
        commit: bool = False,
    ) -> None:
        """Fix the price of privacy and the grid, both of which are public.

        Raises:
            InvalidParameter: if epsilon is not positive, or the prices are not a grid.
        """
        price, grid = positive(epsilon, "epsilon"), PriceGrid.of(prices)
        goods = None if supply is None else min(as_integer(supply, "supply"), MOST_MONEY)
        freeze(self, epsilon=price, prices=grid, supply=goods, commit=bool(commit))
        freeze(self, _mechanism=Exponential(price, grid.ticks[-1], monotone=True))

    def __repr__(self) -> str:
        return shown("PriceAuction", epsilon=self.epsilon, prices=self.prices, supply=self.supply)

    @property
    def loss(self) -> BoundedRangeLoss:
        """Bounded range `epsilon`: pure `epsilon`, and ε²/8-zCDP."""
        return self._mechanism.loss

    @property
    def utilities(self) -> tuple[float, float]:
        """Between which numbers `payoff` lies: in units of the top price."""
        return (-1.0, 1.0) if self.commit else (0.0, 1.0)

    # ── the sale

    def select(self, bids: ArrayLike) -> float:
        """The price, chosen privately; the float nearest to its decimal, which prints as that decimal.

        Nobody bidding is an input like any other: every price is then as likely.

        Raises:
            InvalidValue: for bids that are not a flat list, or of a declared type without numbers.
        """
        return self.prices[self._mechanism.select(self._scores(bids_of(bids)))]

    def outcome(self, bids: ArrayLike) -> Outcome:
        """A price chosen privately, and who buys at it; a fair lottery decides where too many want to.

        Privacy:
            The price is `epsilon`-DP. With unlimited supply a buyer's own purchase follows from the price
            and their own bid, so that what all *other* buyers are told together is `epsilon`-DP in one's bid:
            joint differential privacy by the billboard lemma (Hsu, Huang, Roth, Roughgarden, Wu 2014).
            With limited supply that ends at the lottery: who loses it learns that more than `supply` bids
            reached the price, and no lottery over goods that are truly scarce can hide one more rival.
        """
        array = bids_of(bids)
        place = self._mechanism.select(self._scores(array))
        buys = self.prices.accepted(array, place)
        if self.supply is not None:
            eager = np.flatnonzero(buys)
            buys[eager[random.permutation(len(eager))[self.supply :]]] = False
        return Outcome(self.prices[place], buys)

    # ── the seller's own figures

    def revenue(self, bids: ArrayLike) -> Floats:
        """What each price would take in. Not private: the seller's own figures."""
        return _money(self._scores(bids_of(bids)), self.prices)

    def optimum(self, bids: ArrayLike) -> float:
        """What the best single price up to the grid's top takes in, on the grid or not. Not private."""
        highest = np.sort(np.minimum(bids_of(bids).astype(np.float64), self.prices.top))[::-1]
        buyers = highest[: self.supply]
        return float(np.max(buyers * np.arange(1, len(buyers) + 1), initial=0.0))

    def law(self, bids: ArrayLike) -> Floats:
        """With what probability `select` takes each price, to 1e-12. Not private: nothing is drawn."""
        return self._mechanism.probabilities(self._scores(bids_of(bids)))

    def guarantee(self, confidence: Rational) -> float:
        """How much less than the best price of the grid the chosen one takes in, at most; rounded up.

        Never more than top/ε·ln(prices/(1 − confidence)), whoever bids what; see `Exponential.error`.
        """
        ticks = self._mechanism.error(confidence, candidates=len(self.prices))
        return float_up(self.prices.money(ticks))

    def promise(
        self, buyers: int, confidence: Rational = "0.95", *, optimum: Rational | None = None
    ) -> Promise:
        """What is promised about the revenue of so many buyers, and whether it says anything.

        Between two prices p < p' of the grid, the best price of all earns at most (p' − p) a buyer more than
        p does, and at most (1 − p/p') of itself; below the lowest price, at most the lowest for each buyer.

        Args:
            buyers: a public number, or a guess.
            confidence: the probability with which the promise holds.
            optimum: what the best price is thought to earn; without it, the most that is possible.
        """
        number, grid = as_integer(buyers, "buyers", least=0), self.prices
        sold = number if self.supply is None else min(number, self.supply)
        possible = sold * grid.money(grid.ticks[-1])
        most = possible if optimum is None else min(possible, positive(optimum, "optimum"))
        between = min(sold * grid.gap, most * (1 - 1 / grid.ratio))
        below = min(sold * grid.money(grid.ticks[0]), most)
        return Promise(
            buyers=number,
            confidence=float(as_fraction(confidence, "confidence")),
            to_privacy=self.guarantee(confidence),
            to_grid=float_up(max(between, below)),
            most=float(most),
            known=optimum is not None,
        )

    # ── what it is worth to a buyer

    def payoff(self, reports: Sequence[float], agent: int, truth: float) -> float:
        """The expected utility, in units of the top price, of a buyer to whom the good is worth `truth`.

        Value less price for whoever buys, nothing for the others, times the chance in the lottery where
        supply is limited. The other buyers are taken to buy where their reports say so.

        Args:
            reports: everybody's bids.
            agent: which of them is the buyer's.
            truth: what the good is worth to the buyer, at most the top price.

        Raises:
            InvalidParameter: if there is no such buyer, or the value lies outside 0 … top price.
        """
        bids = bids_of(reports)
        if not 0 <= as_integer(agent, "agent", least=0) < len(bids):
            raise InvalidParameter("agent must be the place of one of the reports, counted from 0.")
        try:
            value, prices = float(truth), self.prices.values
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter("A value must be a number.") from None
        if not 0 <= value <= self.prices.top:
            raise InvalidParameter("A value must lie between 0 and the top price: utilities are parts of it.")
        buys = (float(bids[agent]) if self.commit else value) >= prices
        gains = np.where(buys, value - prices, 0.0) / self.prices.top
        if self.supply is not None:
            rivals = self.prices.demand(np.delete(bids, agent))
            gains *= np.minimum(1.0, self.supply / (rivals + 1))
        return math.fsum((self.law(bids) * gains).tolist())

    def _scores(self, bids: NDArray[np.generic]) -> Whole:
        """Revenue of each price, in ticks."""
        demand = self.prices.demand(bids)
        if self.supply is not None:
            demand = np.minimum(demand, self.supply)
        elif len(bids) * self.prices.ticks[-1] > MOST_MONEY:
            raise InvalidValue("There are too many bids for prices of so many ticks: use a coarser tick.")
        return demand * self.prices.whole


def optimal_grid_step(
    buyers: int, top: Rational, epsilon: Rational, *, tick: Rational | None = None
) -> Fraction:
    """The step of an even grid that balances what is lost to the grid against what is lost to privacy.

    A step α loses α a buyer to the grid and top/ε·ln(top/α) + … to privacy; the sum is least at
    α = top/(ε·buyers), whatever the confidence, where it is top/ε·(1 + ln(ε·buyers) + ln 1/β): with that
    grid the revenue is OPT − O(log n/ε) (McSherry, Talwar 2007). It is never above the top price.

    Args:
        buyers: how many are expected, a public number.
        top: the highest price.
        epsilon: the price in privacy.
        tick: the coin, if prices are whole numbers of one: then the best step of whole coins. Give
            `price_grid` the same. Where the best step is finer than a coin, the coin loses more than privacy.
    """
    highest = positive(top, "top")
    rate = positive(epsilon, "epsilon") * as_integer(buyers, "buyers")
    step = min(highest / rate, highest)
    if tick is None:
        return step
    unit = positive(tick, "tick")
    below = max(step // unit, 1) * unit
    # The loss is convex in the step: of whole coins, one beside the best step is the best one. In units of
    # top/ε, a step one coin wider loses rate·coin/top more to the grid, and ln(wider/below) less to privacy.
    wider = below + unit
    gains = wider <= highest and float(rate * unit / highest) < math.log(wider / below)
    return wider if gains else below


def _money(scores: Whole, grid: PriceGrid) -> Floats:
    return np.asarray(scores * (grid.tick.numerator / grid.tick.denominator))


# ── for the auditor


def _example(name: str, auction: PriceAuction, left: list[float], right: list[float]) -> Example:
    scores: Mapping[Side, Whole] = {
        "left": auction._scores(bids_of(left)),
        "right": auction._scores(bids_of(right)),
    }

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return np.array([auction._mechanism.select(scores[side]) for _ in range(count)])

    def pmf(side: Side) -> dict[int, float]:
        return dict(enumerate(auction._mechanism.probabilities(scores[side]).tolist()))

    return Example(name, auction.loss, draw, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # A rare price gains all that it can, the likely one nothing: a bid at the bottom is put at the top.
        _example("auction", PriceAuction(2, [1, 50, 100]), [1.0] * 175, [1.0] * 174 + [100.0]),
        _example(
            "auction: one bidder more",
            PriceAuction(2, ["0.01", "0.5", 1]),
            [0.01] * 175,
            [0.01] * 175 + [1.0],
        ),
        _example(
            "auction: limited supply", PriceAuction(2, [1, 2, 4], supply=7), [1.0] * 20, [1.0] * 19 + [4.0]
        ),
    )
