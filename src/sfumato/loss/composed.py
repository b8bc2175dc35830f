"""Composition: several releases about the same data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import renyi
from sfumato.loss.adjacent import AdjacentLoss
from sfumato.loss.base import Adjacency, PrivacyLoss, counted, register
from sfumato.loss.gaussian import GaussianLoss, mu_of
from sfumato.loss.pure import BoundedRangeLoss, PureLoss
from sfumato.loss.split import apart, least_delta
from sfumato.numeric import compose as numeric_compose
from sfumato.numeric.exact import float_up, listed
from sfumato.numeric.laws import Term

# From here on a vectorised sum of many Rényi curves is faster than one ball at a time.
_FEW = 16
_TOGETHER = 16  # fractions that are added over one denominator

__all__ = ["NO_LOSS", "ComposedLoss", "common_adjacency", "compose", "repeat"]


def common_adjacency(losses: Iterable[PrivacyLoss]) -> Adjacency | None:
    """The one adjacency that all losses hold for.

    Raises:
        UnsupportedLoss: if some hold for add/remove and others for exchange.
    """
    common: Adjacency | None = None
    for loss in losses:
        own = loss.adjacency
        if own is not None and own != common:
            if common is not None:
                raise UnsupportedLoss(
                    "Losses for add/remove and for exchange do not combine: restate them for one of the two."
                )
            common = own
    return common


@register
@dataclass(frozen=True, slots=True, init=False, eq=False)
class ComposedLoss(PrivacyLoss):
    """Several releases about the same data: flat, equal parts counted, the order without meaning.

    Privacy:
        Claim: in each direction the product of the parts' pairs dominates the composition, also when a later
        mechanism is chosen by earlier answers among those with the same loss. Source: Zhu, Dong, Wang 2022,
        Thm. 10; pure, ρ and (ε, δ) points add up (Dwork, Roth 2014, Thm. 3.16; Bun, Steinke 2016, Lemma 1.7).
        The direction is that of the change in the data, so it is the same for all parts: sums are taken in
        each direction and the larger is the answer.
        Where some parts know only a Rényi bound the answer is the smaller of two proven ones: the sum of all
        Rényi curves, and basic composition of the parts with a pair, taken together, and those without.
        Condition: the *losses* were fixed in advance; a budget that reacts to answers needs an `accounting`
        filter.
    """

    wire: ClassVar[str] = "composed.1"
    parts: tuple[tuple[PrivacyLoss, int], ...]

    def __init__(self, parts: Sequence[tuple[PrivacyLoss, int]]) -> None:
        merged: dict[PrivacyLoss, int] = {}
        for pair in listed(parts, "parts"):
            loss, count = listed(pair, "Each part", length=2)
            if not isinstance(loss, PrivacyLoss):
                raise InvalidParameter("The parts of a composition must be losses.")
            inner = loss.parts if isinstance(loss, ComposedLoss) else ((loss, 1),)
            for part, times in inner:
                merged[part] = merged.get(part, 0) + times * counted(count, "count")
        for count in merged.values():
            counted(count, "count")
        common_adjacency(merged)
        object.__setattr__(self, "parts", tuple(merged.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposedLoss) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the parts in a canonical order."""
        parts = sorted(([part.to_dict(), count] for part, count in self.parts), key=repr)
        return {"loss": self.wire, "parts": parts}

    @classmethod
    def _build(cls, fields: dict[str, Any]) -> PrivacyLoss:
        parts = fields.pop("parts")
        if not parts:
            raise InvalidParameter("A stored composition must have at least one part.")
        for loss, count in parts:
            counted(count, "count")
            if not isinstance(loss, PrivacyLoss):
                raise InvalidParameter("The parts of a composition must be losses.")
        return cls(parts, **fields)

    @property
    def pure(self) -> Fraction | None:
        """The sum of the parts'."""
        parts = []
        for part, count in self.parts:
            if (pure := part.pure) is None:
                return None
            parts.append(pure * count)
        return _sum(parts)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The sums of the parts'."""
        return _totals((part.concentrated, count) for part, count in self.parts)

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The sums of the parts'."""
        return _totals((part.approximate, count) for part, count in self.parts)

    @property
    def mu(self) -> float | None:
        """√Σμ², rounded up, where every part has a μ."""
        if any(part.mu is None for part, _ in self.parts):
            return None
        return mu_of(_sum(part.concentrated[0] * count for part, count in self.parts if part.concentrated))

    @property
    def adjacency(self) -> Adjacency | None:
        """The one adjacency that the parts hold for."""
        return common_adjacency(part for part, _ in self.parts)

    @property
    def failure(self) -> Fraction:
        """The sum of the parts'."""
        return _sum(failure * count for part, count in self.parts if (failure := part.failure))

    def renyi(self, alpha: float) -> float:
        """The sum of the parts' curves, rounded up."""
        return self.curve()(alpha)

    def curve(self) -> Callable[[float], float]:
        """The sum of the parts' curves: those of many plain pairs in one vectorised sum."""
        many = len(self.parts) > _FEW
        plain = [(part, count) for part, count in self.parts if many and part._plain_pair]
        rest = [(part, count) for part, count in self.parts if not (many and part._plain_pair)]
        linear = _sum(part.rho * count for part, count in rest if isinstance(part, GaussianLoss))
        curves = [(part.curve(), count) for part, count in rest if not isinstance(part, GaussianLoss)]
        terms = ComposedLoss(plain).directions() if plain else None

        def curve(alpha: float) -> float:
            total = Fraction(alpha) * linear if linear else linear
            values = [(one(alpha), count) for one, count in curves]
            if terms is not None:
                values.append((numeric_compose.rdp(terms, alpha), 1))
            if any(value == math.inf for value, _ in values):
                return math.inf
            return float_up(total + sum((Fraction(value) * count for value, count in values), Fraction(0)))

        return curve

    def _guide(self) -> Callable[[float], float] | None:
        """About the same as `curve` in floats, quickly; None where a part has no such estimate, or few do.

        It only leads to an order, and any order gives a valid answer (see `renyi`).
        """
        if len(self.parts) <= _FEW:
            return None
        parts = [(bare(part), count) for part, count in self.parts]
        plain = [(part, count) for part, count in parts if part._plain_pair]
        ranges = [(part, count) for part, count in parts if isinstance(part, BoundedRangeLoss)]
        linear = sum(float(part.rho) * count for part, count in parts if isinstance(part, GaussianLoss))
        if any(
            not (part._plain_pair or isinstance(part, BoundedRangeLoss | GaussianLoss)) for part, _ in parts
        ):
            return None
        epsilons = np.array([float(part.pure) for part, _ in ranges])
        counts = np.array([count for _, count in ranges], dtype=np.float64)
        pairs = [(part.directions() or ((),), count) for part, count in plain]
        about = numeric_compose.about_rdp([_times(term, count) for ways, count in pairs for term in ways[0]])

        def guide(alpha: float) -> float:
            return alpha * linear + float(BoundedRangeLoss.about(epsilons, alpha) @ counts) + about(alpha)

        return guide

    def directions(self) -> tuple[tuple[Term, ...], ...] | None:
        """The terms of all parts in each direction; None if a part has none."""
        return self._together(lambda part: part.directions())

    def _beneath(self) -> tuple[tuple[Term, ...], ...] | None:
        return self._together(lambda part: part._beneath())

    def _together(
        self, of: Callable[[PrivacyLoss], tuple[tuple[Term, ...], ...] | None]
    ) -> tuple[tuple[Term, ...], ...] | None:
        known = []
        for part, count in self.parts:
            ways = of(part)
            if ways is None:
                return None
            known.append((ways, count))
        both = max((len(ways) for ways, _ in known), default=1)
        return tuple(
            tuple(_times(term, count) for ways, count in known for term in ways[way % len(ways)])
            for way in range(both)
        )

    @property
    def _paired(self) -> bool:
        return all(part._paired for part, _ in self.parts)

    def _pieces(self) -> list[tuple[PrivacyLoss, int]]:
        """What to price one by one where not all parts have a pair; nothing where that adds nothing."""
        bare = [(part, count) for part, count in self.parts if not part._paired]
        if not bare:
            return []
        curved = [(part, count) for part, count in self.parts if part._paired]
        if all(part.renyi(renyi.LEAST_ORDER) < math.inf for part, _ in bare):
            return [(_one(curved), 1), (_one(bare), 1)] if curved else []
        return [(_one(curved), 1), *bare] if curved else bare

    def _delta(self, epsilon: float) -> float:
        least = PrivacyLoss._delta(self, epsilon)
        if any(part._envelope for part, _ in self.parts):
            least = min(least, renyi.delta(self.curve(), epsilon, self.failure, self._guide()))
        pieces = self._pieces()
        return least_delta(lambda delta: apart(pieces, delta), epsilon, least) if pieces else least

    def _epsilon(self, delta: Fraction) -> float:
        least = PrivacyLoss._epsilon(self, delta)
        if any(part._envelope for part, _ in self.parts) and delta > (failure := self.failure):
            least = min(least, renyi.epsilon(self.curve(), delta - failure, self._guide()))
        pieces = self._pieces()
        return min(least, apart(pieces, delta)) if pieces else least

    def _group(self, size: int) -> PrivacyLoss:
        return compose([repeat(part.group(size), count) for part, count in self.parts])


NO_LOSS = PureLoss(Fraction(0))
"""The loss of releasing nothing about the data."""


def compose(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """The loss of all releases together; `NO_LOSS` for none, the loss itself for one.

    Privacy:
        See `ComposedLoss`: valid for a list of losses that was fixed before the first answer.
    """
    if isinstance(losses, PrivacyLoss) or not isinstance(losses, Iterable):
        raise InvalidParameter("compose takes a list of losses: compose([a.loss, b.loss]).")
    parts = []
    for loss in listed(losses, "losses"):
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(f"compose takes losses, not {type(loss).__name__}; pass mechanism.loss.")
        if loss != NO_LOSS:
            parts.append((loss, 1))
    if not parts:
        return NO_LOSS
    return parts[0][0] if len(parts) == 1 else ComposedLoss(parts)


def repeat(loss: PrivacyLoss, count: int) -> PrivacyLoss:
    """The loss of `count` releases that each have this loss."""
    if count == 0 or loss == NO_LOSS:
        return NO_LOSS
    return loss if count == 1 else ComposedLoss([(loss, count)])


def bare(loss: PrivacyLoss) -> PrivacyLoss:
    """The same loss without the neighbours that it was stated for: for its curve, not for adding up."""
    if isinstance(loss, AdjacentLoss):
        return loss.inner
    if isinstance(loss, ComposedLoss) and any(isinstance(part, AdjacentLoss) for part, _ in loss.parts):
        return ComposedLoss([(bare(part), count) for part, count in loss.parts])
    return loss


def fold(loss: PrivacyLoss) -> PrivacyLoss:
    """The same loss with a composition of Gaussians written as the one Gaussian that it equals."""
    loss = bare(loss)
    if isinstance(loss, ComposedLoss) and all(isinstance(part, GaussianLoss) for part, _ in loss.parts):
        rho = loss.rho
        return loss if rho is None else GaussianLoss(rho)
    return loss


def _one(parts: Sequence[tuple[PrivacyLoss, int]]) -> PrivacyLoss:
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else ComposedLoss(parts)


def _times(term: Term, count: int) -> Term:
    if count == 1:
        return term
    return Term(term.law, term.parameters, term.count * count)


def _sum(values: Iterable[Fraction]) -> Fraction:
    """An exact sum; a few first, so that 1,000 different denominators do not pile up in one long chain."""
    items = list(values)
    while len(items) > 1:
        items = [_added(items[i : i + _TOGETHER]) for i in range(0, len(items), _TOGETHER)]
    return items[0] if items else Fraction(0)


def _added(few: Sequence[Fraction]) -> Fraction:
    """Their sum over their common denominator, which is reduced once."""
    common = math.lcm(*(one.denominator for one in few))
    return Fraction(sum(one.numerator * (common // one.denominator) for one in few), common)


def _totals(
    values: Iterable[tuple[tuple[Fraction, Fraction] | None, int]],
) -> tuple[Fraction, Fraction] | None:
    """The sums of pairs, or None as soon as one is missing."""
    known = []
    for value, count in values:
        if value is None:
            return None
        known.append((value[0] * count, value[1] * count))
    return _sum(first for first, _ in known), _sum(second for _, second in known)
