"""Exact truthfulness: a private choice, mixed with a rare one in which a lie costs its teller."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.games._places import UNIT, Floats
from sfumato.games.examples import Example
from sfumato.games.facility import FacilityLocation
from sfumato.games.truthful import promised_gain
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side
from sfumato.numeric.exact import Rational, as_fraction, as_integer, float_up, positive

__all__ = ["Placement", "TruthfulMixture", "balanced_mixture", "examples"]

# The weight is a whole multiple of this; what it is computed from in floats is widened by far more than they
# err.
_GRAIN, _SLACK = 2**48, 1e-9
_LIMB = 20
_PAIRS = 40_000_000  # pairs of types times pairs of outcomes up to which the pull of a lie is searched
# A score so many sensitivities below the best is cut off; no outcome may get there.
_DEEP = 2**32


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where facilities opened, and which of them each player is sent to.

    Attributes:
        sites: The open places; public.
        assigned: For each player the number (a row of `sites`) of the one that is best for what they
            reported. Each entry is for that player alone: see `TruthfulMixture`.
        bound: Whether players must use the one they are sent to (the punishing draw), or any they like.
    """

    sites: Floats
    assigned: NDArray[np.intp]
    bound: bool

    def __str__(self) -> str:
        """Where the facilities are, and whether players must use theirs."""
        sites = ", ".join(str(site) for site in self.sites.tolist())
        return (
            f"Open at {sites}; players use {'the one they are sent to' if self.bound else 'any they like'}."
        )


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class TruthfulMixture:
    """Tosses a coin: mostly the private choice, with probability `weight` a punishing one. No lie pays.

    The punishing draw opens max(k, 2) sites uniformly at random, without a look at the reports, and binds
    every player to the site that is best for the type they *reported* (the first of equals). There the truth
    is best, and a report t' of a player at t loses γ(t, t') > 0 on average. In the private choice the same
    lie gains at most g(t, t'), whoever else plays and however many. The weight is the smallest q with
    q·γ ≥ (1 − q)·g for all pairs of types, so that truth is a dominant strategy, exactly.

    For one facility the punishing draw opens two: with a single place there is no choice to bind.

    Attributes:
        private: The private choice.
        weight: The probability of the punishing draw.
        needed: The weight that makes truth dominant; `weight` unless another was given.
        gap: The least γ(t, t') over two different types: what the smallest lie costs.
        welfare_lost: The most expected utility that mixing takes from one player, rounded up.

    Privacy:
        Claim: what is public (which kind of draw, which sites) costs no more than the private choice, ε-DP
        for the exchange of one report: the coin and the punishing draw do not look at reports. An
        assignment follows from what is public and that player's own report, so that all that *others* see,
        even together, is ε-DP in a player's report: joint differential privacy (the billboard lemma; Kearns,
        Pai, Roth, Ullman 2014; Hsu, Huang, Roth, Roughgarden, Wu 2014). Whoever sees all assignments sees
        reports: give each player their own. Sources of the mixture: Nissim, Smorodinsky, Tennenholtz 2012;
        Dwork, Roth 2014, §10.2.3.

        g: the private choice at report t' has the law at t tilted by w(o) = exp(r·(u(t', o) − u(t, o))), for
        r = ε/(2Δ). A player's gain is a difference of two means; for a fixed normaliser it is linear in the
        law, so its supremum over all laws is reached on two outcomes, where it is
        (u(t, a) − u(t, b))·tanh(ln(w(a)/w(b))/4). g is the largest of these; where there are too many pairs
        of outcomes, the range of u(t, ·) times tanh(range of ln w / 4); for greedy choices the range times
        the total variation that the loss allows (`promised_gain`).

        The theorem is for players who lie alone. Of a coalition, one member may gain while another is
        punished: `promise(coalition=k)`.
    """

    private: FacilityLocation
    weight: Fraction
    needed: Fraction
    _reach: NDArray[Any]  # E u(t, best of a random draw for t'), times _whole, as integers
    _whole: int
    _pull: Floats  # g, rounded up

    def __init__(self, private: FacilityLocation, weight: Rational | None = None) -> None:
        """Compute the weight, or take a given one.

        Raises:
            InvalidParameter: if two types cannot be told apart by any draw, so that no weight would do, or
                for a weight outside 0 to 1.
        """
        if not isinstance(private, FacilityLocation):
            raise InvalidParameter("A mixture is made of a FacilityLocation: give one.")
        if len(private.sites) < 2:
            raise InvalidParameter("Punishing a lie needs at least two sites to choose from.")
        reach, whole = _reach(private)
        gaps = np.diagonal(reach)[:, None] - reach
        apart = ~np.eye(len(gaps), dtype=bool)
        if len(gaps) > 1 and not (gaps[apart] > 0).all():
            raise InvalidParameter(
                "Two types are served alike whatever opens, so that lying between them cannot be punished: "
                "add sites that tell them apart, or merge such types."
            )
        pull = _pull(private)
        needed = _least_weight(pull, gaps, whole)
        q = needed if weight is None else as_fraction(weight, "weight")
        if not 0 <= q <= 1:
            raise InvalidParameter("weight must lie between 0 and 1; leave it out to have it computed.")
        fields = {"private": private, "weight": q, "needed": needed}
        for name, value in (fields | {"_reach": reach, "_whole": whole, "_pull": pull}).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"TruthfulMixture({self.private!r}, weight={float(self.weight):.4g})"

    @property
    def loss(self) -> PrivacyLoss:
        """What the public part costs, for the exchange of one report."""
        return self.private.loss

    @property
    def gap(self) -> Fraction:
        """What the least costly lie costs in the punishing draw, exactly."""
        gaps = np.diagonal(self._reach)[:, None] - self._reach
        apart = ~np.eye(len(gaps), dtype=bool)
        return Fraction(int(gaps[apart].min()), self._whole) if apart.any() else Fraction(0)

    def penalty(self, truth: Any, report: Any) -> Fraction:
        """γ: what a player at `truth` loses on average in the punishing draw by reporting `report`."""
        t, other = self.private.kind(truth), self.private.kind(report)
        return Fraction(int(self._reach[t, t] - self._reach[t, other]), self._whole)

    @property
    def welfare_lost(self) -> float:
        """The most expected utility that mixing takes from one player, against the private choice alone."""
        best = self.private.near.max(axis=1).astype(object) * (self._whole // UNIT)
        worst = max(best - np.diagonal(self._reach))
        return float_up(self.weight * Fraction(int(worst), self._whole))

    def promise(self, *, coalition: int = 1) -> float:
        """The most that anybody gains when `coalition` players lie together, rounded up.

        Alone: 0 at the computed weight. Together: a member who tells the truth is not punished for what the
        others do, so (1 − weight) times what the loss allows for that many exchanges.
        """
        kept = float_up(1 - self.weight)
        if as_integer(coalition, "coalition") > 1:
            return min(1.0, kept * promised_gain(self.loss, coalition=coalition) * (1 + _SLACK))
        if self.weight >= self.needed:
            return 0.0
        gaps = (np.diagonal(self._reach)[:, None] - self._reach) / self._whole
        left = float(self.weight) * gaps.astype(np.float64) * (1 - _SLACK)
        return max(0.0, float((kept * self._pull * (1 + _SLACK) - left).max()))

    @property
    def size(self) -> int:
        """How many sites the punishing draw opens."""
        return _size(self.private)

    # ── playing

    def select(self, reports: ArrayLike) -> Placement:
        """The draw: which sites open, and where each player is sent."""
        game = self.private
        kinds = self._kinds(reports)
        bound = random.bernoulli(self.weight)
        if bound:
            opened = np.sort(random.permutation(len(game.sites))[: self.size]).astype(np.intp)
        else:
            opened = game.chosen(np.bincount(kinds, minlength=len(game.types)).astype(np.int64))
        assigned = game.near[:, opened].argmax(axis=1)[kinds]
        return Placement(game.sites[opened], assigned, bool(bound))

    def _kinds(self, reports: ArrayLike) -> NDArray[np.intp]:
        kinds = self.private.indices(reports)
        if len(kinds) * UNIT > _DEEP * max(self.private.sensitivity, 1):
            raise InvalidParameter(
                "There are too many players for types so close together: use a coarser grid of types."
            )
        return kinds

    def payoff(self, reports: ArrayLike, agent: int, truth: Any) -> float:
        """The expected utility of a player who lives at `truth` when the players report `reports`."""
        kinds = self._kinds(reports)
        free = self.private.payoff(reports, agent, truth)
        bound = int(self._reach[self.private.kind(truth), kinds[agent]]) / self._whole
        q = float(self.weight)
        return (1 - q) * free + q * bound


def balanced_mixture(
    players: int,
    sites: ArrayLike,
    *,
    facilities: int = 1,
    types: ArrayLike | None = None,
    most: Rational = 1,
    confidence: Rational = 0.95,
) -> TruthfulMixture:
    """The mixture whose epsilon balances what noise and punishment cost a crowd of `players`.

    A small ε chooses worse sites, a large one needs more punishing. Of ε = most·2**(−j/2), j = 0 … 32, it
    takes the one with the least sum of the shortfall per player (`FacilityLocation.guarantee`) and
    `welfare_lost`; both are public, so that the choice costs nothing. Both shrink as players are many: the
    best welfare and exact truthfulness meet in the limit (Nissim, Smorodinsky, Tennenholtz 2012).

    Args:
        players: How many play; public.
        sites: As in `FacilityLocation`.
        facilities: As there.
        types: As there.
        most: The largest epsilon that may be spent.
        confidence: Of the guarantee that is weighed.
    """
    n = as_integer(players, "players")
    ceiling = positive(most, "most")
    prices = [ceiling * Fraction(round(2 ** (-half / 2) * 2**24), 2**24) for half in range(33)]
    offers = [
        TruthfulMixture(FacilityLocation(price, sites, facilities=facilities, types=types))
        for price in prices
    ]
    return min(offers, key=lambda mixture: mixture.welfare_lost + mixture.private.guarantee(confidence) / n)


def _size(game: FacilityLocation) -> int:
    return max(game.facilities, 2)


def _reach(game: FacilityLocation) -> tuple[NDArray[Any], int]:
    """E u(t, the open site that is best for t'), over a uniform draw of sites: integers, and what of.

    The best of a random set of `size` sites is the one of rank r for t' with probability
    C(m − 1 − r, size − 1)/C(m, size).
    """
    near, m, size = game.near, len(game.sites), _size(game)
    ways = [math.comb(m - 1 - rank, size - 1) for rank in range(m)]
    # Stable: of equally good sites the first.
    order = np.argsort(-near, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    total: NDArray[Any] = np.zeros((len(near), len(near)), object)
    shift = 0
    while any(way >> shift for way in ways):
        # In limbs, so that products stay within 64 bits however many sets there are.
        limb = np.array([(way >> shift) & (2**_LIMB - 1) for way in ways], np.int64)
        total = total + (near @ limb[rank].T).astype(object) * 2**shift
        shift += _LIMB
    return total, math.comb(m, size) * UNIT


def _pull(game: FacilityLocation) -> Floats:
    """g(t, t'): the most that a player at t gains from the private choice by reporting t', rounded up."""
    kinds, single = len(game.types), game.near / UNIT
    rate = float_up(game.epsilon * Fraction(UNIT, 2 * max(game.sensitivity, 1)))
    if game.method == "greedy":
        ranges = single.max(axis=1) - single.min(axis=1)
        pull = np.repeat(ranges[:, None], kinds, axis=1) * promised_gain(game.loss)
    elif kinds**2 * len(game.outcomes) ** 2 <= _PAIRS:
        worth = np.stack([game.utility(t) for t in range(kinds)]) / UNIT
        pull = np.stack([_tilted(worth, t, rate) for t in range(kinds)])
    else:
        pull = np.stack([_ranged(single, t, rate) for t in range(kinds)])
    np.fill_diagonal(pull, 0.0)
    return np.asarray(pull * (1 + _SLACK))


def _tilted(worth: Floats, t: int, rate: float) -> Floats:
    """The supremum over all laws, for each report: reached on two outcomes."""
    here = worth[t][:, None] - worth[t][None, :]
    gains = np.empty(len(worth))
    for report, other in enumerate(worth):
        moved = other - worth[t]
        gains[report] = (here * np.tanh(rate * (moved[:, None] - moved[None, :]) / 4)).max()
    return gains


def _ranged(worth: Floats, t: int, rate: float) -> Floats:
    """A bound on the same: the range of utilities times the total variation of a bounded range.

    From single sites, since the utilities of sets, and their moves, lie within those: with s the best site
    of a set for t', the set moves by at most what s moves.
    """
    moved = worth - worth[t]
    spread = moved.max(axis=1) - moved.min(axis=1)
    return np.asarray((worth[t].max() - worth[t].min()) * np.tanh(rate * spread / 4))


def _least_weight(pull: Floats, gaps: NDArray[Any], whole: int) -> Fraction:
    """The least q with q·γ ≥ (1 − q)·g for every pair, rounded up: the largest g/(g + γ)."""
    lost = (gaps / whole).astype(np.float64)
    there = pull > 0
    if not there.any():
        return Fraction(0)
    least = float((pull[there] / (pull[there] + lost[there])).max()) * (1 + _SLACK)
    return min(Fraction(1), Fraction(math.ceil(least * _GRAIN), _GRAIN))


def _example(name: str, mixture: TruthfulMixture, left: list[Any], right: list[Any]) -> Example:
    """The public part of the outcome: the number of the set, punishing ones after the others."""
    game, m = mixture.private, len(mixture.private.sites)
    free = {tuple(row): i for i, row in enumerate(game.outcomes.tolist())}
    punishing = {row: len(free) + i for i, row in enumerate(itertools.combinations(range(m), mixture.size))}
    inputs = {"left": left, "right": right}
    places = game.sites.tolist()

    def code(drawn: Placement) -> int:
        key = tuple(places.index(place) for place in drawn.sites.tolist())
        return punishing[key] if drawn.bound else free[key]

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        return np.array([code(mixture.select(inputs[side])) for _ in range(count)])

    def pmf(side: Side) -> Mapping[Any, float]:
        q = float(mixture.weight)
        law = {i: (1 - q) * p for i, p in enumerate(game.law(inputs[side]).tolist())}
        return law | {i: q / len(punishing) for i in punishing.values()}

    return Example(name, mixture.loss, draw, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example(
            "truthful mixture",
            TruthfulMixture(FacilityLocation(2, [(0, 0), (10, 0), (2, 6)])),
            [(10, 0), (10, 0), (10, 0), (0, 0)],
            [(10, 0), (10, 0), (10, 0), (10, 0)],
        ),
    )
