"""A loss beyond all use has a figure, or a sentence why there is none; never a raw error, nor gigabytes."""

from fractions import Fraction

import pytest

from sfumato.accounting import compare
from sfumato.loss import (
    ApproximateLoss,
    BoundedRangeLoss,
    ComposedLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GroupLoss,
    LaplaceLoss,
    PureLoss,
    ResponseLoss,
    SampledLoss,
)

KINDS = {
    "pure": PureLoss,
    "approximate": lambda size: ApproximateLoss(size, Fraction(1, 10**9)),
    "Laplace": LaplaceLoss,
    "geometric": DiscreteLaplaceLoss,
    "Gaussian": GaussianLoss,
    "discrete Gaussian": DiscreteGaussianLoss,
    "concentrated": ConcentratedLoss,
    "response": ResponseLoss,
    "bounded range": BoundedRangeLoss,
    "sampled": lambda size: SampledLoss(LaplaceLoss(size), Fraction(1, 100)),
    "a group": lambda size: GroupLoss(LaplaceLoss(size), 10**6),
}


@pytest.mark.parametrize("beside", [(), ((LaplaceLoss(1), 2),)], ids=["alone", "beside others"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("size", ["1e14", "1e300"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_beyond_all_use_is_no_raw_error(kind, size, count, beside):
    loss = ComposedLoss([(KINDS[kind](Fraction(size)), count), *beside])
    for figure in compare([loss], Fraction(1, 10**6)).values():
        assert figure is None or figure >= 0
