"""Calibration for random allocation: fixed rounds of releases in which each unit takes part once."""

from __future__ import annotations

from fractions import Fraction

from sfumato.accounting._calibrate import _around, _excess, _search, noise_multiplier
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.numeric.exact import Rational, as_integer, positive, probability

__all__ = ["allocation_multiplier"]

_TOLERANCE = 1e-5
_LEAST = 0.2  # below this no more than the loss of one release for each round is known


def allocation_multiplier(epsilon: Rational, delta: Rational, bins: int, rounds: int = 1) -> float:
    """The least σ (in sensitivities) for rounds of Gaussian releases, each unit in one of each, rounded up.

    Args:
        epsilon: the ε to meet after all rounds.
        delta: the δ to meet, in (0, 1).
        bins: how many releases a round has; in training, the steps of an epoch.
        rounds: how many rounds; who is in which release is drawn anew for each.

    Returns:
        σ over sensitivity, a hundred-thousandth above the least at most.

    Privacy:
        Claim: `GaussianLoss(1/(2σ²)).allocated(bins) * rounds` meets (ε, δ) under add/remove: checked at the
        returned number with the composed curve, both directions, error included (see `calibrate`,
        `loss.AllocatedLoss`).
    """
    goal, failure = positive(epsilon, "epsilon"), probability(delta, "delta")
    share, count = as_integer(bins, "bins"), as_integer(rounds, "rounds")
    if share > 10**7:
        raise InvalidParameter("bins must be at most 1e7; use fewer and larger batches.")
    if share == 1:
        return noise_multiplier(goal, failure, 1, count)

    def make(sigma: Fraction) -> PrivacyLoss:
        return GaussianLoss(1 / (2 * sigma * sigma)).allocated(share) * count

    # As many steps of Poisson samples need about as much; that decides nothing.
    guess = max(noise_multiplier(goal, failure, Fraction(1, share), share * count), _LEAST)
    excess = _excess(make, goal, failure)
    return _search(excess, *_around(excess, guess), _TOLERANCE)
