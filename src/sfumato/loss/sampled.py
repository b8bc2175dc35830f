"""Amplification: the mechanism runs on a secret random sample of the data."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, get_args

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import _profiles
from sfumato.loss.base import Adjacency, PrivacyLoss, Scheme, register
from sfumato.loss.composed import NO_LOSS, ComposedLoss, bare, fold
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.pure import LaplaceLoss
from sfumato.numeric import compose, laws
from sfumato.numeric.balls import ball, exact_upper, upper
from sfumato.numeric.exact import Rational, float_up, positive
from sfumato.numeric.laws import Term

__all__ = ["SampledLoss", "sampled"]


@register
@dataclass(frozen=True, slots=True)
class SampledLoss(PrivacyLoss):
    """A mechanism on a secret sample: each unit independently ("poisson") or a fixed number ("fixed").

    Args:
        inner: the loss of the mechanism on its sample. A composition is amplified once: all its parts see one
            sample.
        rate: the public probability that a given unit is in the sample.
        scheme: "poisson" for add/remove neighbours; "fixed" for exchange neighbours and a public table size,
            where the rate is sample size over table size.

    Privacy:
        Claim: let (P, Q) dominate the inner mechanism. Poisson: (qP + (1−q)Q, Q) dominates when a unit is
        removed, and its swap when one is added. Fixed: the curve H_α(qP + (1−q)Q ‖ Q) for α ≥ 1 and H_α(P ‖
        (1−q)P + qQ) for α < 1 dominates in both orders. Source: Zhu, Dong, Wang 2022 (Thm. 11 for Poisson);
        the pure bound log(1 + q(e^ε − 1)): Balle, Barthe, Gaboardi 2018, Thms. 8 and 9. Rényi: no more than
        the inner one (quasi-convexity).
        Conditions: the sample is secret and fresh for each sampled loss, the rate does not depend on the
        data, and the inner loss holds for the same neighbours.
    """

    wire: ClassVar[str] = "sampled.1"
    inner: PrivacyLoss
    rate: Fraction
    scheme: Scheme = "poisson"

    def __post_init__(self) -> None:
        rate = positive(self.rate, "rate")
        if not rate < 1:
            raise InvalidParameter("The sampling rate must be below 1; a rate of 1 is the loss itself.")
        if self.scheme not in get_args(Scheme):
            raise InvalidParameter(f"scheme must be 'poisson' or 'fixed', not {self.scheme!r}.")
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter("A sampled loss needs the loss of the mechanism on its sample.")
        if _holds_sample(self.inner):
            raise UnsupportedLoss(
                "A sampled loss cannot be sampled again: no proven rule covers a sample of a sample."
            )
        if self.inner.adjacency not in (None, self.adjacency):
            raise UnsupportedLoss(
                f"A {self.scheme} sample needs a loss for {self.adjacency}, not for {self.inner.adjacency}."
            )
        if not self.inner._paired:
            raise _no_curve(self.inner)
        object.__setattr__(self, "rate", rate)

    @property
    def adjacency(self) -> Adjacency:
        """Add/remove for a Poisson sample, exchange for one of fixed size."""
        return "add-remove" if self.scheme == "poisson" else "exchange"

    @property
    def pure(self) -> Fraction | None:
        """log(1 + q(e^ε − 1)), rounded up."""
        pure = self.inner.pure
        return None if pure is None else _amplified(pure, self.rate)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The inner bound, which sampling cannot raise."""
        return self.inner.concentrated

    @property
    def failure(self) -> Fraction:
        """The inner one."""
        return self.inner.failure

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """(log(1 + q(e^ε − 1)), qδ) of the inner point, ε rounded up."""
        point = self.inner.approximate
        return None if point is None else (_amplified(point[0], self.rate), point[1] * self.rate)

    def renyi(self, alpha: float) -> float:
        """That of the sampled pair for a Gaussian or Laplace, else the inner one; rounded up."""
        bound = self.inner.renyi(alpha)
        if (pure := self.pure) is not None:
            bound = min(bound, float_up(pure))
        if self.scheme == "fixed" or not isinstance(fold(self.inner), GaussianLoss | LaplaceLoss):
            return bound
        return min(bound, compose.rdp(self.directions(), alpha)) if 1 < alpha < math.inf else bound

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """(remove, add) for a Poisson sample; one curve for a fixed-size one."""
        return _directions(self)

    @property
    def _paired(self) -> bool:
        return True


@lru_cache(maxsize=256)
def _directions(loss: SampledLoss) -> tuple[tuple[Term, ...], ...]:
    """The terms of a sampled loss (kept, so that a curve that was discretised once is found again)."""
    rate, inner = float_up(loss.rate), fold(loss.inner)
    if loss.scheme == "poisson" and isinstance(inner, GaussianLoss):
        # σ is rounded down and the rate up: both raise the curve.
        parameters = (rate, -upper(-1 / (2 * ball(inner.rho)).sqrt()))
        return (Term(laws.SAMPLED_GAUSSIAN_REMOVE, parameters),), (
            Term(laws.SAMPLED_GAUSSIAN_ADD, parameters),
        )
    if loss.scheme == "poisson" and isinstance(inner, LaplaceLoss):
        parameters = (rate, float_up(inner.pure))
        return (Term(laws.SAMPLED_LAPLACE_REMOVE, parameters),), (Term(laws.SAMPLED_LAPLACE_ADD, parameters),)
    ways = inner.directions()
    if ways is None:
        raise _no_curve(inner)
    terms = [_profiles.single(ways, way) for way in range(len(ways))]
    if loss.scheme == "fixed":
        return ((_profiles.fixed(_profiles.supremum(terms), rate),),)
    remove, add = _profiles.poisson(terms[0], terms[-1], rate)
    return (remove,), (add,)


def sampled(
    loss: PrivacyLoss, rate: Rational, scheme: Scheme = "poisson", adjacency: Adjacency | None = None
) -> PrivacyLoss:
    """The loss of a mechanism on a secret sample; at rate 1 the loss itself, and nothing costs nothing."""
    if adjacency not in (None, *get_args(Adjacency)):
        raise InvalidParameter("adjacency must be 'add-remove' or 'exchange'.")
    exact = positive(rate, "rate")
    if exact > 1:
        raise InvalidParameter("The sampling rate must be at most 1.")
    if loss == NO_LOSS:
        return loss
    if scheme == "poisson" and adjacency == "exchange":
        from sfumato.loss.exchanged import ExchangedSampleLoss

        if exact < 1:
            return ExchangedSampleLoss(loss, exact)
        if loss.adjacency == "exchange":
            raise UnsupportedLoss("A Poisson sample needs a loss for add-remove, not for exchange.")
        return bare(loss).group(2).under("exchange")
    if scheme == "fixed" and adjacency == "add-remove":
        raise UnsupportedLoss("A sample of fixed size has no proven rule under add/remove: use Poisson.")
    return loss if exact == 1 else SampledLoss(loss, exact, scheme)


def _holds_sample(loss: PrivacyLoss) -> bool:
    inside = [part for part, _ in loss.parts] if isinstance(loss, ComposedLoss) else [loss]
    return any(part.wire.startswith(("sampled", "allocated")) for part in inside)


def _no_curve(loss: PrivacyLoss) -> UnsupportedLoss:
    return UnsupportedLoss(
        f"{type(loss).__name__} has no proven amplification here: only a Rényi bound is known, not a curve."
    )


def _amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """log(1 + q(e^ε − 1)) as an exact number that is not below it, nor above ε."""
    bound = exact_upper((ball(rate) * ball(epsilon).expm1()).log1p())
    return epsilon if bound is None else min(bound, epsilon)
