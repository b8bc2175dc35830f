"""Which records a step sees, and what that costs: one object for both, so that they cannot differ."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.accounting import noise_multiplier
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive

__all__ = ["Poisson"]


@dataclass(frozen=True, slots=True)
class Poisson:
    """Each record is in each step by a coin of its own; batches differ in size.

    Attributes:
        rate: The chance of a record: the batch that is expected, over the declared number of records.
        steps: How many steps there are.

    Privacy:
        Claim: with noise of `sigma` clips on sums that one record moves by at most a clip, all steps together
        carry `loss(sigma)`. Source: `loss.SampledLoss` (Poisson, add or remove one record). Conditions: a
        record's coin is tossed anew in each step, exactly, and hangs on nothing else; the order in which
        records that were drawn are put into batches is uniform, so that whether one more was drawn moves one
        other record at most (see `clipping.clipped`).
    """

    rate: Fraction
    steps: int

    def __post_init__(self) -> None:
        rate = positive(self.rate, "rate")
        if rate > 1:
            raise InvalidParameter("The batch must not be larger than the declared number of records.")
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "steps", as_integer(self.steps, "steps"))

    def sigma(self, epsilon: Rational, delta: Rational) -> float:
        """The least noise, in clips, with which all steps meet a price."""
        return noise_multiplier(epsilon, delta, self.rate, self.steps)

    def loss(self, sigma: float) -> PrivacyLoss:
        """What all steps cost with so much noise."""
        one: PrivacyLoss = GaussianLoss(1 / (2 * as_fraction(sigma, "sigma") ** 2))
        return (one if self.rate == 1 else one.sampled(self.rate)) * self.steps

    def draw(self, records: int) -> NDArray[np.int64]:
        """The records of one step, in random order."""
        drawn = np.flatnonzero(random.bernoulli(self.rate, records))
        return np.asarray(drawn[random.permutation(len(drawn))], np.int64)
