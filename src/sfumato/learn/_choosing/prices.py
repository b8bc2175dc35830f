"""What a run may cost so that the best of a random number of them costs what was said."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import price
from sfumato.games import RandomStopping
from sfumato.loss import GaussianLoss, PrivacyLoss, RenyiLoss

__all__ = ["calibrated", "stopping_for"]

_WIDEST = 12  # powers of 4 below the price of a single run
_HALVINGS = 9  # of a power of 4: to within 0.3 %


@lru_cache(maxsize=64)
def stopping_for(epsilon: Fraction, delta: Fraction, gamma: Fraction) -> RandomStopping:
    """Runs with Gaussian noise, the best of which is (epsilon, delta)-private, about as dear as that allows.

    Privacy:
        Claim: `RandomStopping` itself says what its runs cost together, and what is given has been held
        against the wanted price: its `loss.delta(epsilon)` is at most `delta`.
    """
    most = price(epsilon, delta).rho  # the best of several runs costs no less than one
    if (stopping := _affordable(most, epsilon, delta, gamma)) is not None:
        return stopping
    for power in range(1, _WIDEST + 1):
        if (stopping := _affordable(most / 4**power, epsilon, delta, gamma)) is not None:
            break
    else:
        raise InvalidParameter(
            "A random number of runs cannot be that cheap: raise epsilon, or gamma for fewer runs."
        )
    low, high = -float(power), 1 - float(power)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        better = _affordable(most * Fraction(4.0**middle), epsilon, delta, gamma)
        low, high = (low, middle) if better is None else (middle, high)
        stopping = better or stopping
    return stopping


def _affordable(rho: Fraction, epsilon: Fraction, delta: Fraction, gamma: Fraction) -> RandomStopping | None:
    """Runs of so much each, unless the best of them costs more than the price."""
    stopping = RandomStopping(GaussianLoss(rho), gamma)
    return stopping if Fraction(stopping.loss.delta(epsilon)) <= delta else None


def calibrated(loss: PrivacyLoss, epsilon: Fraction, delta: Fraction) -> PrivacyLoss:
    """A Rényi curve with the point that it was found for, which is what budgets of epsilons add up."""
    assert isinstance(loss, RenyiLoss)
    return RenyiLoss(loss.orders, loss.values, (epsilon, delta))
