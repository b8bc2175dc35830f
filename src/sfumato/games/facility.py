"""Where to build: k places among public sites, chosen privately to be near everybody."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._places import (
    CHUNK,
    UNIT,
    Floats,
    Integers,
    distances,
    keys,
    points_of,
    rows_of,
    span_of,
    subsets,
    utilities,
)
from sfumato.games.examples import Example
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms.base import Side
from sfumato.mechanisms.exponential import Exponential
from sfumato.numeric.exact import Rational, as_integer, positive
from sfumato.numeric.private_values import table_of

__all__ = ["UNIT", "FacilityLocation", "Method", "examples"]

Method: TypeAlias = Literal["exact", "greedy"]
_MOST = 2_000_000
_FAR = 1e150
_PLACES = (
    "Reports must be one place for each of at least one player: numbers on the line, pairs in the plane."
)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class FacilityLocation:
    """Opens `facilities` of the public `sites`, near the players with exponentially larger probability.

    A player at t is worth 1 − d/D where d is the distance to the nearest open site and D the largest
    distance between a type and a site; in whole units of 2**-20, rounded toward zero. An outcome's score is
    the sum over the players, which depends on the reports through their histogram only: a city of a million
    costs what a village costs.

    Attributes:
        epsilon: The price of the whole choice.
        sites: The candidate places, shape (m,) on the line and (m, 2) in the plane; public.
        types: Where a player may live, in the same shape; public, and the sites unless said otherwise.
        facilities: How many open.
        method: "exact" compares every set of sites; "greedy" opens one after the other at epsilon/k each.
        sensitivity: The most that the score of an outcome moves when one report is exchanged, in units.
        near: The utility in units of each type (rows) at each single site (columns).
        share: What fraction of the best total utility `guarantee` starts from: 1, or 1 − (1 − 1/k)^k for
            greedy, at least 0.63.

    Privacy:
        Claim: `epsilon`-DP for the sites that open, when one player's report is exchanged for another (the
        number of players is public). A score moves by u(t', o) − u(t, o): up for outcomes near the new
        place, down for those near the old one. So scores are *not* monotone, the rate is ε/(2Δ), and
        Δ = max over t, t', o of |u(t, o) − u(t', o)|, which is found by search over the public types and is
        at most one whole utility. Greedy: each of the k choices is ε/k-DP given the earlier ones, with the Δ
        of single sites, which bounds that of any set (a maximum moves no more than its parts); they
        compose. Sources: McSherry, Talwar 2007; for greedy Gupta, Ligett, McSherry, Roth, Talwar 2010.
        Reports are read each by itself, and each is one of the types: the nearest to another place, the first
        for anything else. Refusals are by the declared type, the shape and the (public) number of players.
        Conditions: sites and types are public, not read off the reports.
    """

    epsilon: Fraction
    sites: Floats
    types: Floats
    facilities: int
    method: Method
    sensitivity: int
    near: Integers
    _outcomes: NDArray[np.int32] | None
    _choice: Exponential
    _order: NDArray[np.intp]

    def __init__(
        self,
        epsilon: Rational,
        sites: ArrayLike,
        *,
        facilities: int = 1,
        types: ArrayLike | None = None,
        method: Method = "exact",
    ) -> None:
        """Fix the places, the types and the price.

        Raises:
            InvalidParameter: for places that are not distinct finite points, more facilities than sites, or
                more sets of sites than can be compared.
        """
        price, places = positive(epsilon, "epsilon"), points_of(sites, "sites")
        homes = places if types is None else points_of(types, "types")
        if homes.ndim != places.ndim:
            raise InvalidParameter("types and sites must both lie on the line or both in the plane.")
        k, m = as_integer(facilities, "facilities"), len(places)
        if k > m:
            raise InvalidParameter(f"{k} facilities need at least {k} sites; there are {m}.")
        if method not in ("exact", "greedy"):
            raise InvalidParameter("method must be 'exact' or 'greedy'.")
        if method == "exact" and math.comb(m, k) > _MOST:
            raise InvalidParameter(
                f"There are more than {_MOST:,} ways to open {k} of {m} sites: use method='greedy'."
            )
        near = utilities(homes, places)
        sets = None if method == "greedy" else subsets(m, k)
        span = span_of(near, sets)
        # Types that differ nowhere leave every score as it is; any sensitivity is then a bound.
        share = price if method == "exact" else price / k
        for name, value in {
            "epsilon": price,
            "sites": places,
            "types": homes,
            "facilities": k,
            "method": method,
            "sensitivity": span,
            "near": near,
            "_outcomes": sets,
            "_choice": Exponential(share, max(span, 1)),
            "_order": np.argsort(keys(homes), kind="stable"),
        }.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        where = "on the line" if self.sites.ndim == 1 else "in the plane"
        return (
            f"FacilityLocation(epsilon={float(self.epsilon):g}, {self.facilities} of {len(self.sites)} sites "
            f"{where}, {len(self.types)} types, method={self.method!r})"
        )

    @property
    def loss(self) -> PrivacyLoss:
        """What one choice costs, for the exchange of one report."""
        return self._choice.loss if self.method == "exact" else self._choice.loss * self.facilities

    @property
    def share(self) -> float:
        """What fraction of the best total utility `guarantee` is counted from."""
        k = self.facilities
        return 1.0 if self.method == "exact" else math.nextafter(1 - (1 - 1 / k) ** k, 0.0)

    @property
    def outcomes(self) -> NDArray[np.int32]:
        """Every set of sites that may open, as rows of indices; the order of `law` and `welfare`."""
        if self._outcomes is not None:
            return self._outcomes
        if math.comb(len(self.sites), self.facilities) > _MOST:
            raise InvalidParameter("There are too many sets of sites to list; select needs no list.")
        return subsets(len(self.sites), self.facilities)

    # ── reports

    def snap(self, positions: Any) -> Floats:
        """The nearest type to each position (the first of equals): what players report.

        Each report depends on the player's own position only, so snapping costs no privacy. What is not
        a place at all counts as the first type.
        """
        return self.types[self._nearest(self._positions(positions))]

    def _nearest(self, points: Floats) -> NDArray[np.intp]:
        # Beyond all types, so far that distances still are floats; NaN is the least of all to `argmin`.
        points = np.clip(points, -_FAR, _FAR)
        if self.types.ndim == 1:
            points = np.clip(points, self.types.min(), self.types.max())
        best = np.empty(len(points), np.intp)
        step = max(1, CHUNK // len(self.types))
        for start in range(0, len(points), step):
            apart = distances(points[start : start + step], self.types)
            apart[np.isnan(apart).any(axis=1)] = 0.0
            best[start : start + step] = apart.argmin(axis=1)
        return best

    def _positions(self, positions: Any) -> Floats:
        plane = self.types.ndim == 2
        points = table_of(
            positions,
            2 if plane else None,
            flat=_PLACES,
            other="Reports must be numbers, or pairs of numbers in the plane.",
        ).astype(np.float64)
        if points.ndim != self.types.ndim or not len(points):
            raise InvalidValue(_PLACES)
        return points

    def indices(self, reports: Any) -> NDArray[np.intp]:
        """Which type each player reports; a report of another place counts as `snap` has it.

        Raises:
            InvalidValue: for reports of another declared type or shape, or nobody's.
        """
        points = self._positions(reports)
        own, sorted_types = keys(points), keys(self.types)[self._order]
        at = np.minimum(np.searchsorted(sorted_types, own), len(sorted_types) - 1)
        indices: NDArray[np.intp] = self._order[at]
        others = sorted_types[at] != own
        indices[others] = self._nearest(points[others])
        return indices

    def _histogram(self, reports: Any) -> Integers:
        counts: Integers = np.bincount(self.indices(reports), minlength=len(self.types)).astype(np.int64)
        return counts

    # ── choices

    def select(self, reports: Any) -> Floats:
        """The places that open, in the order of `sites`."""
        return self.sites[self.chosen(self._histogram(reports))]

    def chosen(self, histogram: Integers) -> NDArray[np.intp]:
        """The indices of the sites that open, for a number of players of each type."""
        if self._outcomes is not None:
            pick = self._choice.select(self.scores(histogram))
            sites: NDArray[np.intp] = self._outcomes[pick].astype(np.intp)
            return sites
        opened: list[int] = []
        best = np.zeros(len(self.types), np.int64)
        for _ in range(self.facilities):
            left, scores = self._next(opened, best, histogram)
            opened.append(int(left[self._choice.select(scores)]))
            best = np.maximum(best, self.near[:, opened[-1]])
        return np.sort(np.array(opened, np.intp))

    def _next(
        self, opened: list[int], best: Integers, histogram: Integers
    ) -> tuple[NDArray[np.intp], Integers]:
        """The sites that are left to greedy, and the total utility with each of them."""
        left = np.setdiff1d(np.arange(len(self.sites)), opened)
        return left, np.asarray(histogram @ np.maximum(self.near[:, left], best[:, None]))

    def scores(self, histogram: Integers) -> Integers:
        """The total utility of every outcome in units, for a number of players of each type."""
        # Types that nobody reports add nothing.
        there = np.flatnonzero(histogram)
        weights, near = histogram[there], np.ascontiguousarray(self.near[there].T)
        parts = [part @ weights for part in rows_of(near, self.outcomes)]
        return np.concatenate(parts)

    def law(self, reports: Any) -> Floats:
        """With what probability each of `outcomes` opens, to 1e-12; nothing is drawn.

        It follows the reports closely: for reasoning on made-up ones, never for publication.
        """
        histogram = self._histogram(reports)
        if self._outcomes is not None:
            return self._choice.probabilities(self.scores(histogram))
        return self._greedy_law(histogram)

    def _greedy_law(self, histogram: Integers) -> Floats:
        rows = self.outcomes.tolist()  # refused first if there are too many
        reached: dict[tuple[int, ...], float] = {(): 1.0}
        for _ in range(self.facilities):
            after: dict[tuple[int, ...], float] = {}
            for opened, weight in reached.items():
                best = self.near[:, list(opened)].max(axis=1, initial=0)
                left, scores = self._next(list(opened), best, histogram)
                for site, p in zip(left.tolist(), self._choice.probabilities(scores).tolist(), strict=True):
                    key = tuple(sorted((*opened, site)))
                    after[key] = after.get(key, 0.0) + weight * p
            reached = after
        return np.array([reached[tuple(row)] for row in rows])

    # ── what it is worth

    def utility(self, kind: int) -> Integers:
        """What every outcome is worth to a player of type number `kind`, in units."""
        return np.concatenate(
            [part[:, 0] for part in rows_of(np.ascontiguousarray(self.near[[kind]].T), self.outcomes)]
        )

    def payoff(self, reports: Any, agent: int, truth: Any) -> float:
        """The expected utility of a player who lives at `truth` when the players report `reports`.

        The player's own report is `reports[agent]`; it matters through the choice only, since everybody
        uses the open site that is nearest to where they live.
        """
        _agent_of(agent, reports)
        return float(self.law(reports) @ self.utility(self.kind(truth)) / UNIT)

    def kind(self, truth: Any) -> int:
        """The number of one type."""
        return int(self.indices([truth])[0])

    def welfare(self, reports: Any) -> Floats:
        """The players' total utility in every outcome; exact, so not for publication."""
        return self.scores(self._histogram(reports)) / UNIT

    def guarantee(self, confidence: Rational) -> float:
        """How far the total utility lies below `share` times the best, at most, with this probability.

        It does not depend on the reports, nor on how many players there are. For greedy the k choices each
        lose at most some α, and the total is at least (1 − (1 − 1/k)^k)·best − kα: total utility is monotone
        and submodular in the set of open sites (Nemhauser, Wolsey, Fisher 1978).
        """
        k = self.facilities
        if self.method == "exact":
            return self._choice.error(confidence, candidates=len(self.outcomes)) / UNIT
        return k * self._choice.error(confidence, size=k, candidates=len(self.sites)) / UNIT


def _agent_of(agent: int, reports: Any) -> int:
    n = len(reports) if hasattr(reports, "__len__") else 0
    if not 0 <= as_integer(agent, "agent", least=0) < n:
        raise InvalidParameter("agent must be the position of one of the reports, from 0 on.")
    return int(agent)


def _example(name: str, game: FacilityLocation, left: list[Any], right: list[Any]) -> Example:
    inputs = {"left": game._histogram(left), "right": game._histogram(right)}
    laws = {"left": game.law(left), "right": game.law(right)}
    rows = {tuple(row): i for i, row in enumerate(game.outcomes.tolist())}

    def draw(side: Side, count: int) -> NDArray[np.int64]:
        if game._outcomes is not None:
            scores = game.scores(inputs[side])
            return np.array([game._choice.select(scores) for _ in range(count)])
        return np.array([rows[tuple(game.chosen(inputs[side]).tolist())] for _ in range(count)])

    def pmf(side: Side) -> Mapping[Any, float]:
        return dict(enumerate(laws[side].tolist()))

    return Example(name, game.loss, draw, pmf)


_A, _B, _C = (0, 0), (2, 3.5), (4, 0)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # Near the worst: a rare outcome loses a whole utility and a likely one gains it.
        _example("facility: line", FacilityLocation(2, [0, 1]), [1, 1, 1, 0], [1, 1, 1, 1]),
        _example(
            "facility: plane, two of three",
            FacilityLocation(2, [_A, _B, _C], facilities=2),
            [*[_B] * 12, *[_A] * 3, _C],
            [*[_B] * 12, *[_A] * 3, _A],
        ),
        _example(
            "facility: greedy",
            FacilityLocation(3, [_A, _B, _C], facilities=2, method="greedy"),
            [_B, _B, _A],
            [_B, _B, _B],
        ),
    )
