"""Random allocation: each unit takes part in one of k releases, which a die of its own decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss.base import Adjacency, PrivacyLoss, counted, register
from sfumato.loss.composed import NO_LOSS, fold
from sfumato.loss.gaussian import GaussianLoss
from sfumato.numeric import allocation, allocation_below
from sfumato.numeric.balls import ball, upper
from sfumato.numeric.laws import GAUSSIAN, Profile, Term
from sfumato.numeric.lognormal import MOVED
from sfumato.numeric.ratio_curves import Curves
from sfumato.numeric.rounding import Floats

__all__ = ["AllocatedLoss", "allocated"]

_MOST = 10**7
_NAMES = "random allocation (remove)", "random allocation (add)"


@register
@dataclass(frozen=True, slots=True)
class AllocatedLoss(PrivacyLoss):
    """A round of releases in which each unit takes part in exactly one, chosen uniformly and in secret.

    Known as balls and bins, or random allocation: an epoch of `bins` steps of which each record is in one.

    Args:
        inner: the loss of one release between its part with and without the unit: Gaussian.
        bins: how many releases there are in the round.

    Privacy:
        Claim: let P_i be standard normal noise in k places with the i-th moved by mu, and Q the same with
        none moved. ((P_1 + … + P_k)/k, Q) dominates the whole round when a unit is removed, and its swap when
        one is added; a release may depend on all earlier ones. Proof: proofs/allocation.md, theorem 1.
        Source: Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha, Zhang 2025, "Balls-and-Bins
        Sampling for DP-SGD"; Feldman, Shenfeld 2025, "Privacy amplification by random allocation". The curves
        are those of a law that is larger in convex order (theorem 2), and no more than those of one release
        (hockey-stick divergences are jointly convex), which below a sigma of 0.3 is often all. Rényi: no
        more than the inner one (divergences are jointly quasi-convex).
        Conditions: each unit's release is drawn uniformly and independently of all else, anew for each round;
        it stays secret; the number of releases does not depend on the data. Batches that are cut from a
        shuffled table are not drawn so: where one unit goes moves others.
    """

    wire: ClassVar[str] = "allocated.1"
    inner: PrivacyLoss
    bins: int

    def __post_init__(self) -> None:
        bins = counted(self.bins, "bins", least=2)
        if bins > _MOST:
            raise InvalidParameter("bins must be at most 1e7; use fewer and larger batches.")
        if not isinstance(self.inner, PrivacyLoss) or not isinstance(fold(self.inner), GaussianLoss):
            raise UnsupportedLoss("Random allocation is proven here for Gaussian noise only.")
        if self.inner.adjacency not in (None, self.adjacency):
            raise UnsupportedLoss(
                f"Random allocation needs a loss for {self.adjacency}, not for {self.inner.adjacency}."
            )
        object.__setattr__(self, "bins", bins)

    @property
    def adjacency(self) -> Adjacency:
        """Add/remove."""
        return "add-remove"

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The inner bound, which allocation cannot raise."""
        return self.inner.concentrated

    def renyi(self, alpha: float) -> float:
        """The inner one."""
        return self.inner.renyi(alpha)

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """(remove, add), from above."""
        return _above(self)

    def _beneath(self) -> tuple[tuple[Term, ...], ...]:
        return _below(self)

    @property
    def _paired(self) -> bool:
        return True


def allocated(loss: PrivacyLoss, bins: int) -> PrivacyLoss:
    """A round of `bins` releases with each unit in one of them; the loss itself for one release."""
    if counted(bins, "bins") == 1 or loss == NO_LOSS:
        return loss
    return AllocatedLoss(loss, bins)


@lru_cache(maxsize=128)
def _above(loss: AllocatedLoss) -> tuple[tuple[Term, ...], ...]:
    mu = _shift(loss)
    if mu > allocation.MOST:
        # Far more is known of one release than allocation hides: the curve of all in one.
        return fold(loss.inner).directions() or ()
    law = allocation.spread(mu, loss.bins)
    place, mass = law.atoms()
    ratio = np.maximum(1 + place, 0.0)
    if law.nothing:
        ratio, mass = np.concatenate(([0.0], ratio)), np.concatenate(([law.nothing], mass))
    curves = Curves.of(ratio, mass, law.infinite, up=True, rounding=law.rounding, hair=4 * MOVED)
    remove = Profile(_capped(curves.remove, mu), _NAMES[0], 0.0, (curves.lowest, math.inf))
    add = Profile(_capped(curves.add, mu), _NAMES[1])
    return (Term(remove, ()),), (Term(add, ()),)


def _capped(curve: Callable[[Floats], Floats], mu: float) -> Callable[[Floats], Floats]:
    """No more than the curve of one release: the mean of those of all bins is not below a round's."""
    return lambda epsilons: np.minimum(curve(epsilons), GAUSSIAN.delta(epsilons, (mu,)))


@lru_cache(maxsize=32)
def _below(loss: AllocatedLoss) -> tuple[tuple[Term, ...], ...]:
    mu = _shift(loss) * (1 - 2.0**-50)
    if mu > allocation.MOST:
        return ((),)
    law = allocation_below.drawn_together(mu, loss.bins)
    ratio = np.maximum(1 + law.place / law.count, 0.0)
    curves = Curves.of(ratio, law.mass, 0.0, up=False, rounding=law.rounding, hair=2 * law.hair + 4 * MOVED)
    remove = Profile(curves.remove, _NAMES[0], 0.0, (curves.lowest, math.inf))
    add = Profile(curves.add, _NAMES[1], 0.0, (-math.inf, -curves.lowest))
    return (Term(remove, ()),), (Term(add, ()),)


def _shift(loss: AllocatedLoss) -> float:
    """The shift of one release in deviations, rounded up."""
    inner = fold(loss.inner)
    assert isinstance(inner, GaussianLoss)
    return upper((2 * ball(inner.rho)).sqrt())
