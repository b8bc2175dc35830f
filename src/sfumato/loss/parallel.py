"""Parallel composition: releases about disjoint parts of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, get_args

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import _profiles
from sfumato.loss.base import Adjacency, PrivacyLoss, register
from sfumato.loss.composed import NO_LOSS, common_adjacency, compose
from sfumato.loss.pure import PureLoss
from sfumato.numeric.exact import listed
from sfumato.numeric.laws import Term

__all__ = ["ParallelLoss", "parallel"]


@register
@dataclass(frozen=True, slots=True, init=False, eq=False)
class ParallelLoss(PrivacyLoss):
    """Releases about disjoint parts of the data, each unit in one part.

    Args:
        parts: the loss of each part's release.
        adjacency: under "add-remove" a unit touches one part, and the cost is the largest loss. Under
            "exchange" a unit may move from one part to another and touches *two*: the cost is that of the two
            costliest parts together.

    Privacy:
        Claim: add/remove: the supremum of the parts' curves; exchange: the supremum over pairs of parts of
        their composition.
        Source: McSherry 2009, Thm. 4 (disjoint subsets; max); for curves, the supremum of profiles is a
        profile (Zhu, Dong, Wang 2022). Conditions: the partition is fixed or depends on each unit
        alone; under exchange each part's loss holds both for a unit replaced inside the part and for one that
        arrives or leaves.
    """

    wire: ClassVar[str] = "parallel.1"
    parts: frozenset[tuple[PrivacyLoss, int]]
    neighbours: Adjacency

    def __init__(self, parts: Iterable[PrivacyLoss], adjacency: Adjacency = "add-remove") -> None:
        if adjacency not in get_args(Adjacency):
            raise InvalidParameter(f"adjacency must be 'add-remove' or 'exchange', not {adjacency!r}.")
        # Two of each are all that can matter: one under add/remove, two under exchange.
        most = 1 if adjacency == "add-remove" else 2
        counts: dict[PrivacyLoss, int] = {}
        for part in listed(parts, "parts"):
            if not isinstance(part, PrivacyLoss):
                raise InvalidParameter("The parts of a parallel composition must be losses.")
            counts[part] = min(most, counts.get(part, 0) + 1)
        if not counts:
            raise InvalidParameter("A parallel composition needs at least one part.")
        if common_adjacency(counts) not in (None, adjacency):
            raise UnsupportedLoss(
                f"These losses do not hold for {adjacency} neighbours: restate them for that adjacency."
            )
        object.__setattr__(self, "parts", frozenset(counts.items()))
        object.__setattr__(self, "neighbours", adjacency)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParallelLoss) and (self.parts, self.neighbours) == (
            other.parts,
            other.neighbours,
        )

    def __hash__(self) -> int:
        return hash((self.parts, self.neighbours))

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the parts in a canonical order."""
        parts = sorted((part.to_dict() for part, count in self.parts for _ in range(count)), key=repr)
        return {"loss": self.wire, "parts": parts, "adjacency": self.neighbours}

    @classmethod
    def _build(cls, fields: dict[str, Any]) -> PrivacyLoss:
        return cls(**fields)

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours that the cost was computed for."""
        return self.neighbours

    @property
    def pure(self) -> Fraction | None:
        """The largest, or the sum of the two largest under exchange."""
        return self._largest(lambda part: part.pure)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The largest ρ and the largest δ (sums of two under exchange)."""
        return self._pair(lambda part: part.concentrated)

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The largest ε and the largest δ (sums of two under exchange)."""
        return self._pair(lambda part: part.approximate)

    @property
    def failure(self) -> Fraction:
        """The largest (the two largest together under exchange), so that `renyi` holds for every case."""
        return self._largest(lambda part: part.failure) or Fraction(0)

    @property
    def mu(self) -> float | None:
        """That of the costliest case, where every part has a μ."""
        mus = [case.mu for case in self.cases()]
        known = [mu for mu in mus if mu is not None]
        return max(known) if len(known) == len(mus) else None

    def cases(self) -> list[PrivacyLoss]:
        """What one change of the data may touch: single parts, or pairs of parts under exchange."""
        singles = [part for part, count in self.parts for _ in range(count)]
        if self.neighbours == "add-remove" or len(singles) == 1:
            return singles
        return [compose(pair) for pair in combinations(_without_dominated(singles, 2), 2)]

    def renyi(self, alpha: float) -> float:
        """The largest over the cases."""
        return max(case.renyi(alpha) for case in self.cases())

    def directions(self) -> tuple[tuple[Term, ...], ...] | None:
        """The terms of the one costliest case, or the supremum of the curves where none dominates."""
        return _directions(self)

    @property
    def _paired(self) -> bool:
        return all(part._paired for part, _ in self.parts) or self.directions() is not None

    def _delta(self, epsilon: float) -> float:
        return max(case.delta(Fraction(epsilon)) for case in _without_dominated(self.cases(), 1))

    def _epsilon(self, delta: Fraction) -> float:
        return max(case.epsilon(delta) for case in _without_dominated(self.cases(), 1))

    def _group(self, size: int) -> PrivacyLoss | None:
        # A group may be spread over several parts, so no part's own group law covers it.
        del size
        return None

    def _largest(self, value: Callable[[PrivacyLoss], Fraction | None]) -> Fraction | None:
        values = [(value(part), count) for part, count in self.parts]
        known = sorted(
            (item for item, count in values if item is not None for _ in range(count)), reverse=True
        )
        if any(item is None for item, _ in values):
            return None
        return sum(known[: 1 if self.neighbours == "add-remove" else 2], Fraction(0))

    def _pair(
        self, value: Callable[[PrivacyLoss], tuple[Fraction, Fraction] | None]
    ) -> tuple[Fraction, Fraction] | None:
        known = {part: value(part) for part, _ in self.parts}
        first = self._largest(lambda part: None if (pair := known[part]) is None else pair[0])
        second = self._largest(lambda part: None if (pair := known[part]) is None else pair[1])
        return None if first is None or second is None else (first, second)


def _without_dominated(losses: list[PrivacyLoss], keep: int) -> list[PrivacyLoss]:
    """The losses less those that `keep` others surely dominate.

    Of a one-parameter family the largest stay; a `PureLoss` dominates whatever has a pure bound no larger.
    """
    left: list[PrivacyLoss] = []
    for family in {type(loss) for loss in losses}:
        same = [loss for loss in losses if type(loss) is family]
        ranked = same[0]._size() is not None
        left += sorted(same, key=lambda loss: loss._size() or 0, reverse=True)[:keep] if ranked else same
    worst = sorted((loss.pure for loss in left if isinstance(loss, PureLoss)), reverse=True)[:keep]
    bar = worst[-1] if len(worst) == keep else None
    if bar is None:
        return left
    return [loss for loss in left if isinstance(loss, PureLoss) or (pure := loss.pure) is None or pure > bar]


@lru_cache(maxsize=64)
def _directions(loss: ParallelLoss) -> tuple[tuple[Term, ...], ...] | None:
    cases = _without_dominated(loss.cases(), 1)
    if len(cases) == 1:
        return cases[0].directions()
    ways = [case.directions() for case in cases]
    known = [way for way in ways if way is not None]
    if len(known) < len(ways):
        return None
    both = max(len(way) for way in known)
    return tuple(
        (_profiles.supremum([_profiles.single(case, way % len(case)) for case in known]),)
        for way in range(both)
    )


def parallel(losses: Iterable[PrivacyLoss], adjacency: Adjacency = "add-remove") -> PrivacyLoss:
    """The loss of releases about disjoint parts; nothing for none."""
    parts = [loss for loss in losses if loss != NO_LOSS]
    return ParallelLoss(parts, adjacency) if parts else NO_LOSS
