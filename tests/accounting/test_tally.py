"""The running total: the numerical figure after each spend."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sfumato.accounting import ACCOUNTANTS, Tally
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import ApproximateLoss, ConcentratedLoss, GaussianLoss, LaplaceLoss, PureLoss

F = Fraction


def test_running_total_is_the_numerical_figure():
    tally = Tally("1e-6")
    assert tally.epsilon() == 0.0
    losses = [
        GaussianLoss(F(1, 50)),
        LaplaceLoss("0.2"),
        GaussianLoss(F(1, 20)),
        PureLoss("0.1"),
        LaplaceLoss("0.3"),
    ]
    for number, loss in enumerate(losses, 1):
        tally.add(loss)
        expected = ACCOUNTANTS["numerical"].epsilon(losses[:number], "1e-6")
        assert tally.epsilon() == pytest.approx(expected, rel=2e-6)
    assert len(tally) == 5
    assert tally.loss == sum(losses[1:], start=losses[0])


def test_both_directions_are_kept_once_a_loss_has_two():
    sample = GaussianLoss(F(1, 2)).sampled("0.1") * 200
    tally = Tally("1e-6")
    tally.add(GaussianLoss(F(1, 50)))
    tally.add(sample)
    expected = (GaussianLoss(F(1, 50)) + sample).epsilon("1e-6")
    assert tally.epsilon() == pytest.approx(expected, rel=2e-6)


def test_pure_and_calibrated_points_bound_the_total():
    tally = Tally("1e-6")
    tally.add(GaussianLoss(F(1, 50), (5, "1e-7")))
    tally.add(PureLoss(0))
    assert tally.epsilon() <= 5
    alone = Tally("1e-6")
    alone.add(PureLoss("0.5"))
    assert alone.epsilon() <= 0.5


def test_a_loss_without_a_pair_falls_back_to_its_renyi_bound():
    tally = Tally("1e-6")
    tally.add(GaussianLoss(F(1, 50)))
    tally.add(ConcentratedLoss(F(1, 50)))
    assert tally.epsilon() == ConcentratedLoss(F(1, 25)).epsilon("1e-6")
    assert math.isfinite(tally.epsilon())


def test_a_sample_of_a_fixed_delta_beside_a_bare_rho_is_still_priced():
    # The Rényi route sets aside the whole δ of the inner loss; the sample itself fails q times as often.
    tally = Tally("1e-6")
    tally.add(ApproximateLoss(1, "1e-5").sampled("0.01"))
    tally.add(ConcentratedLoss(F(1, 50)))
    assert math.isfinite(tally.epsilon())
    assert tally.epsilon() == tally.loss.epsilon("1e-6")


def test_what_it_refuses():
    with pytest.raises(InvalidParameter):
        Tally(0)
    tally = Tally("1e-6")
    with pytest.raises(InvalidParameter, match=r"mechanism\.loss"):
        tally.add(1.0)
    tally.add(LaplaceLoss(1).sampled("0.1"))
    tally.add(LaplaceLoss(1))
    with pytest.raises(UnsupportedLoss):
        tally.add(LaplaceLoss(1).sampled("0.1", "fixed"))
    assert len(tally) == 2
