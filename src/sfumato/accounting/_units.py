"""What a release cost one unit: noise that was made for everybody costs those less who weigh less."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from sfumato.errors import InvalidParameter
from sfumato.loss import (
    NO_LOSS,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
)
from sfumato.numeric.exact import Rational, nonnegative

__all__ = ["unit_loss"]

_ROUNDING = Fraction(1, 2**52)
"""Pays for an input rounded to the grid (2**-54 of the sensitivity) and for a share that came as a float."""


def unit_loss(loss: PrivacyLoss, share: Rational) -> PrivacyLoss:
    """What a release cost a unit without which its answer would have moved by this share of the sensitivity.

    It is for additive noise, where a smaller move is a smaller loss: `Laplace` (shares in L1), `Gaussian` and
    `DiscreteGaussian` (in L2), `Geometric`. A sum with values clamped to 0 … 500,000 at epsilon 1 costs
    somebody with 50,000 a tenth: `unit_loss(mechanism.loss, "0.1")`. Losses of several releases add up by
    `compose`, each with a share of its own.

    Args:
        loss: Of one release, as its mechanism states it.
        share: What the unit moves the answer by, over the sensitivity: from 0, no part in it, to 1.

    Privacy:
        Claim: with and without this unit, beside the other units of the *actual* table, the outputs are as
        close as the loss that is given says. Proof: the move is at most `share` sensitivities and rounding;
        Laplace noise at a shift of s sensitivities is the law at sε, Gaussian noise at s²ρ, and smaller
        shifts are dominated (the docstrings of the losses). Nothing is claimed for who is not in the table,
        nor under exchange, where the newcomer counts as well. **The figure is itself a function of the unit's
        rows: steward-only.** It is not a budget either: who spends by such figures must drop units unseen as
        theirs run out (Feldman, Zrnic 2021).

    Raises:
        InvalidParameter: if the share is not from 0 to 1, or the loss is not of additive noise.
    """
    part = nonnegative(share, "share")
    if part > 1:
        raise InvalidParameter(
            "share must be at most 1: no unit moves an answer by more than its sensitivity."
        )
    return _at(loss, part) if part else NO_LOSS


@singledispatch
def _at(loss: PrivacyLoss, _share: Fraction) -> PrivacyLoss:
    raise InvalidParameter(
        "The loss of one unit is known for additive noise alone: give the loss of one Laplace, Gaussian, "
        f"Geometric or DiscreteGaussian release, not a {type(loss).__name__}."
    )


@_at.register
def _(loss: LaplaceLoss, share: Fraction) -> PrivacyLoss:
    return LaplaceLoss(loss.pure * _widened(share))


@_at.register
def _(loss: GaussianLoss, share: Fraction) -> PrivacyLoss:
    return loss if share == 1 else GaussianLoss(loss.rho * _widened(share) ** 2)


@_at.register
def _(loss: DiscreteLaplaceLoss, share: Fraction) -> PrivacyLoss:
    return DiscreteLaplaceLoss(loss.rate, math.ceil(share * loss.sensitivity))


@_at.register
def _(loss: DiscreteGaussianLoss, share: Fraction) -> PrivacyLoss:
    if share == 1:
        return loss
    # One integer moves by whole numbers, a vector by the root of one.
    moved = math.ceil(share * loss.sensitivity) if loss.scalar else _widened(share) * loss.sensitivity
    return DiscreteGaussianLoss(loss.variance, Fraction(moved), loss.scalar)


def _widened(share: Fraction) -> Fraction:
    return min(Fraction(1), share + _ROUNDING)
