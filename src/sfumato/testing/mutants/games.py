"""Games with planted bugs, each beside its honest twin: some leak, and some reward a lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.games.allocation import AllocationRule
from sfumato.games.auction import PriceAuction
from sfumato.games.equilibrium import others_view
from sfumato.games.examples import Example, examples
from sfumato.games.facility import FacilityLocation
from sfumato.games.mixture import TruthfulMixture
from sfumato.loss import PureLoss
from sfumato.mechanisms import Exponential
from sfumato.mechanisms.base import Side

__all__ = ["GAME_MUTANTS", "LYING_MUTANTS", "GameMutant", "LyingMutant"]

Payoff: TypeAlias = Callable[[Sequence[Any], int, Any], float]


@dataclass(frozen=True, slots=True)
class GameMutant:
    """A game that claims more privacy than it keeps, and the same without the bug."""

    name: str
    planted: Example
    honest: Example


@dataclass(frozen=True, slots=True)
class LyingMutant:
    """A mechanism that rewards lying, and one that does not, on a finite type space.

    Attributes:
        name: What is wrong, in words.
        planted: The payoffs under which a lie pays.
        honest: Those under which none does by more than `allowed`.
        types: The type space.
        players: How many play.
        utilities: The range of payoffs.
        allowed: The most that a lie may be worth under the honest one.
    """

    name: str
    planted: Payoff
    honest: Payoff
    types: tuple[Any, ...]
    players: int
    utilities: tuple[int, int] = (0, 1)
    allowed: float = 0.0


_HONEST = {example.name: example for example in examples()}


def _chosen(honest: Example, mechanism: Exponential, scores: Mapping[Side, Sequence[int]]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return np.array([mechanism.select(scores[side]) for _ in range(count)])

    return replace(honest, draw=draw, pmf=None)


def _leaks() -> dict[str, GameMutant]:
    auction, place = _HONEST["auction"], _HONEST["facility: line"]
    stopped, moved = (
        _HONEST["models: best of a random number of runs"],
        _HONEST["segmented auction: private"],
    )
    advised = _HONEST["advice: one road or the other"]
    roads = ("left", "left", "right"), ("right", "left", "right")
    planted = {
        # One bid moves the revenue of the top price by that price, not by that of the middle one.
        "sensitivity of the middle price": (
            _chosen(
                auction,
                Exponential(2, 50, monotone=True),
                {"left": [100, 0, 0], "right": [100, 50, 100]},
            ),
            auction,
        ),
        # A bidder who moves away touches the prices of two countries.
        "private segments for the price of one": (
            replace(moved, loss=_HONEST["segmented auction: public"].loss),
            moved,
        ),
        # A report moves some places up and others down: twice what one score moves counts.
        "one way only": (
            _chosen(place, Exponential(2, 1, monotone=True), {"left": [1, 2], "right": [0, 3]}),
            place,
        ),
        "the best run for the price of one": (replace(stopped, loss=PureLoss(Fraction("1.0987"))), stopped),
        "advice with too little noise": (
            replace(others_view("planted", *roads, epsilon=16), loss=advised.loss),
            advised,
        ),
    }
    return {name: GameMutant(name, bad, good) for name, (bad, good) in planted.items()}


def _at_the_mean(reports: Sequence[float], agent: int, truth: float) -> float:
    """Built at the mean of what is said: whoever overstates pulls it closer."""
    del agent
    return 1 - abs(sum(reports) / len(reports) - truth)


def _at_the_median(reports: Sequence[float], agent: int, truth: float) -> float:
    del agent
    return 1 - abs(sorted(reports)[len(reports) // 2] - truth)


def _as_bid(reports: Sequence[float], agent: int, truth: float) -> float:
    """The highest bidder pays what they bid: whoever bids less than the worth pays less."""
    return _won(reports, agent) * (truth - reports[agent]) / 4


def _second_price(reports: Sequence[float], agent: int, truth: float) -> float:
    others = [bid for at, bid in enumerate(reports) if at != agent]
    return _won(reports, agent) * (truth - max(others)) / 4


def _won(reports: Sequence[float], agent: int) -> float:
    best = [at for at, bid in enumerate(reports) if bid == max(reports)]
    return (agent in best) / len(best)


def _in_proportion(reports: Sequence[Fraction], agent: int, truth: Fraction) -> float:
    """Requests cut by one factor: whoever asks for more gets more."""
    share = min(Fraction(1), 1 / sum(reports)) * reports[agent]
    return float(min(share, truth))


def _lies() -> dict[str, LyingMutant]:
    street, needs = (0.0, 0.25, 0.5, 1.0), (Fraction(1, 4), Fraction(1, 2), Fraction(1))
    wide = (0, 1, 5, 6)
    private = FacilityLocation(1, wide)
    mixed = TruthfulMixture(private)
    market = PriceAuction(1, [1, 2, 3, 4])
    liars = (
        LyingMutant("built at the mean", _at_the_mean, _at_the_median, street, 3),
        LyingMutant("pay what you bid", _as_bid, _second_price, (1, 2, 3, 4), 2, (-1, 1)),
        LyingMutant(
            "in proportion to requests", _in_proportion, AllocationRule(Fraction(1)).payoff, needs, 3
        ),
        LyingMutant(
            "half the punishing weight",
            TruthfulMixture(private, weight=mixed.weight / 2).payoff,
            mixed.payoff,
            wide,
            3,
        ),
        LyingMutant(
            "the best price of the bids themselves",
            _best_price,
            market.payoff,
            (1, 2, 3, 4),
            3,
            allowed=market.loss.delta(0.0),
        ),
    )
    return {liar.name: liar for liar in liars}


def _best_price(reports: Sequence[float], agent: int, truth: float) -> float:
    """The price that earns most, the lowest of several: a low bid brings it down for all."""
    del agent
    best = max(range(1, 5), key=lambda price: (price * sum(bid >= price for bid in reports), -price))
    return max(truth - best, 0) / 4


GAME_MUTANTS: Mapping[str, GameMutant] = MappingProxyType(_leaks())
LYING_MUTANTS: Mapping[str, LyingMutant] = MappingProxyType(_lies())
