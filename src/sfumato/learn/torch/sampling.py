"""Which records a step sees, and what that costs: one object for both, so that they cannot differ.

A `Sampler` is Poisson samples or random allocation. Batches of a shuffled table are neither: whoever leaves
moves somebody else into another batch, and no accountant here speaks of that.
"""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.accounting import allocation_multiplier, noise_multiplier
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss, PrivacyLoss
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive

__all__ = ["Allocation", "Poisson", "Sampler", "sampler_of"]

Integers: TypeAlias = NDArray[np.int64]


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
        other record at most (see `clipping.clipped`), which gives the same at its new place (`places`).
    """

    rate: Fraction
    steps: int

    def __post_init__(self) -> None:
        rate = positive(self.rate, "rate")
        if rate > 1:
            raise InvalidParameter("The batch must not be larger than the declared number of records.")
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "steps", as_integer(self.steps, "steps"))

    @property
    def together(self) -> int:
        """How many steps are lost if a process ends in one: that step alone."""
        return 1

    def sigma(self, epsilon: Rational, delta: Rational) -> float:
        """The least noise, in clips, with which all steps meet a price."""
        return noise_multiplier(epsilon, delta, self.rate, self.steps)

    def loss(self, sigma: float) -> PrivacyLoss:
        """What all steps cost with so much noise."""
        one: PrivacyLoss = GaussianLoss(1 / (2 * as_fraction(sigma, "sigma") ** 2))
        return (one if self.rate == 1 else one.sampled(self.rate)) * self.steps

    def draw(self, records: int) -> Integers:
        """The records of one step, in random order."""
        return _mixed(np.flatnonzero(random.bernoulli(self.rate, records)))

    def __str__(self) -> str:
        return f"by chance {float(self.rate):.3g}"


@dataclass(frozen=True, slots=True)
class Allocation:
    """Each record is in one step of each epoch, by a die of its own; batches differ in size.

    Attributes:
        bins: How many steps an epoch has.
        epochs: How many epochs there are.

    Privacy:
        Claim: with noise of `sigma` clips on sums that one record moves by at most a clip, all steps together
        carry `loss(sigma)`, whatever is killed, resumed or copied. Source: `loss.AllocatedLoss` (add or
        remove one record), once for each epoch.
        Proof: a record's bin is drawn exactly, uniformly and independently of all others, when the first
        step of an epoch draws, and is held in memory alone: no file has it, and no other process. An object
        begins one epoch for each `bins` draws, so at most as many as it was given steps, over `bins`,
        rounded up. Steps are given out in whole epochs (`together`), by a ledger or a checkpoint, so all
        objects of a run begin no more epochs than were paid. What a process that dies had left of an epoch
        is lost: part of an epoch costs no more than the whole. Records are put into batches as for `Poisson`.
    """

    bins: int
    epochs: int
    _now: _Epoch = field(init=False, default_factory=lambda: _Epoch(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_integer(self.bins, "bins"))
        object.__setattr__(self, "epochs", as_integer(self.epochs, "epochs"))

    @property
    def rate(self) -> Fraction:
        """The part of all records that a step is expected to see."""
        return Fraction(1, self.bins)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.bins * self.epochs

    @property
    def together(self) -> int:
        """How many steps are lost if a process ends in one: a whole epoch, which only that process knows."""
        return self.bins

    def sigma(self, epsilon: Rational, delta: Rational) -> float:
        """The least noise, in clips, with which all steps meet a price."""
        return allocation_multiplier(epsilon, delta, self.bins, self.epochs)

    def loss(self, sigma: float) -> PrivacyLoss:
        """What all steps cost with so much noise."""
        return GaussianLoss(1 / (2 * as_fraction(sigma, "sigma") ** 2)).allocated(self.bins) * self.epochs

    def draw(self, records: int) -> Integers:
        """The records of one step, in random order."""
        return _mixed(self._now.next(self.bins, records))

    def __str__(self) -> str:
        return f"each in one of {self.bins:,} steps an epoch"


Sampler: TypeAlias = Poisson | Allocation


class _Epoch:
    """The bins of all records, in the epoch that is running; it cannot be stored or copied."""

    def __init__(self) -> None:
        self._bin = np.zeros(0, np.int64)
        self._step = 0

    def next(self, bins: int, records: int) -> Integers:
        """The records of the next bin; with the first one all records draw anew."""
        if self._step == 0:
            self._bin = np.zeros(0, np.int64)
        if len(self._bin) < records:
            more = random.integers(bins, records - len(self._bin))
            self._bin = np.concatenate((self._bin, more.astype(np.int64)))
        found = np.flatnonzero(self._bin[:records] == self._step)
        self._step = (self._step + 1) % bins
        return found

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter(
            "Who is in which step is secret and cannot be copied: make the run anew, and load a checkpoint."
        )


def sampler_of(
    name: str, size: int, batch: int, epochs: Rational | None = None, steps: int | None = None
) -> Sampler:
    """The sampler of a run, from what was declared of it.

    Args:
        name: "poisson" or "allocation".
        size: How many records there are about.
        batch: How many a step is expected to see.
        epochs: How often each record is seen.
        steps: Or how many steps there are.

    Raises:
        InvalidParameter: for another name, or an allocation whose steps are not whole epochs.
    """
    if (epochs is None) == (steps is None):
        raise InvalidParameter("Give epochs or steps.")
    if name == "poisson":
        rate = Fraction(batch, size)
        if epochs is None:
            return Poisson(rate, as_integer(steps or 0, "steps"))
        return Poisson(rate, math.ceil(positive(epochs, "epochs") / rate))
    if name != "allocation":
        raise InvalidParameter(
            f"sampling must be 'poisson' or 'allocation', not {name!r}. Batches that are cut from a shuffled "
            "table are neither, and can cost far more: 'allocation' sees each record once an epoch, too."
        )
    if batch > size:
        raise InvalidParameter("The batch must not be larger than the declared number of records.")
    bins = math.ceil(Fraction(size, batch))
    if epochs is not None:
        return Allocation(bins, math.ceil(positive(epochs, "epochs")))
    wanted = as_integer(steps or 0, "steps")
    if wanted % bins:
        raise InvalidParameter(
            f"An epoch of random allocation has {bins:,} steps here: give epochs, or whole epochs of steps."
        )
    return Allocation(bins, wanted // bins)


def _mixed(drawn: Integers) -> Integers:
    return np.asarray(drawn[random.permutation(len(drawn))], np.int64)
