"""Absurd parameters get one sentence or a figure: never a raw error, a warning, a hang."""

import math
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato import accounting
from sfumato.loss import (
    ApproximateLoss,
    ConcentratedLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
)

REFUSED = {
    "an epsilon beyond all noise": lambda: accounting.gaussian_sigma(1e100, 1e-6),
    "more releases than there are": lambda: LaplaceLoss(Fraction(1, 2)) * 10**400,
    "a sensitivity of 400 digits": lambda: DiscreteLaplaceLoss(Fraction(1, 2), 10**400),
    "a group beyond mankind": lambda: ApproximateLoss(1, 1e-6).group(10**400),
    "a count of 400 digits": lambda: sf.SparseVector(1, 1, count=10**400, sensitivity=1),
    "a sample of nobody": lambda: accounting.noise_multiplier(1, 1e-5, 1e-290, 10),
    "a number too long to write": lambda: PureLoss(Fraction(10**5000 + 1, 10**5000)).to_dict(),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_absurd_parameters_are_refused_in_a_sentence(call):
    with pytest.raises(sf.errors.InvalidParameter, match=r"\.$"):
        call()


def test_far_figures_are_sound():
    assert (GaussianLoss(Fraction(1)) * 2).delta(-1e5) == 1.0
    assert (GaussianLoss(Fraction(1)) + LaplaceLoss(Fraction(1))).delta(1e5) < 1e-40
    assert ApproximateLoss(1, 1e-6).group(10**9).epsilon(1e-3) == math.inf
    assert LaplaceLoss(820).parallel(LaplaceLoss(1)).epsilon(1e-6) == pytest.approx(820)


@pytest.mark.parametrize(
    ("losses", "delta"),
    [
        ([ApproximateLoss(10, 0.1).group(3)] * 2, "1e-3"),
        ([ConcentratedLoss(1e300)] * 2, "1e-3"),
        ([GaussianLoss(Fraction(1))] * 2, "1e-300"),
    ],
)
def test_a_comparison_survives_accountants_that_have_no_figure(losses, delta):
    shown = accounting.compare(losses, delta)
    assert set(shown) == set(accounting.ACCOUNTANTS)
    assert None in shown.values()


def test_a_shared_sample_of_several_mechanisms_is_priced_once_and_quickly():
    both = sf.compose([sf.Geometric(1, 1).loss, sf.Laplace(1, 1).loss])
    total = (both.sampled("0.01") * 100).epsilon(1e-6)
    apart = sf.compose([sf.Geometric(1, 1).loss.sampled("0.01"), sf.Laplace(1, 1).loss.sampled("0.01")] * 100)
    assert apart.epsilon(1e-6) < total < (PureLoss(2).sampled("0.01") * 100).epsilon(1e-6)
