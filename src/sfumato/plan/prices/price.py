"""From a price and its parts to mechanisms, their noise and the loss that is debited."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, assert_never

from sfumato._dataclasses import dataclass
from sfumato.accounting import gaussian_sigma
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss, PrivacyLoss, compose
from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.split import Mechanics
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.sensitivity import Sensitivity, sensitivity_in, step

__all__ = [
    "AnyNoise",
    "Instrument",
    "Priced",
    "gaussian_rho",
    "instrument",
    "instruments",
    "price",
    "whole_price",
]

AnyNoise: TypeAlias = Laplace | Geometric | Gaussian

_MOST_FOUND = 2**20  # groups that a question may find, as far as its noise is concerned


@dataclass(frozen=True, slots=True)
class Priced:
    """A question with its noise: what is drawn for each measurement and what that costs.

    Attributes:
        law: Laplace (and geometric) noise, or Gaussian.
        epsilon: The price, exact.
        delta: Its other half; 0 for Laplace noise.
        portions: Each measurement's part of the price: of epsilon, or of rho.
        mechanisms: What draws the noise of each measurement, on its integers.
        units: What one integer of each measurement is worth.
        noises: The laws of the noise, in natural units.
        loss: What is debited.
    """

    law: Mechanics
    epsilon: Fraction
    delta: Fraction
    portions: tuple[Fraction, ...]
    mechanisms: tuple[AnyNoise, ...]
    units: tuple[Fraction, ...]
    noises: tuple[Noise, ...]
    loss: PrivacyLoss


@lru_cache(maxsize=256)
def gaussian_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The greatest ρ known to give (ε, δ) with Gaussian noise."""
    if epsilon > 2**63:
        raise InvalidParameter("epsilon is too large: above 2**63 it leaves no noise to draw.")
    return 1 / (2 * gaussian_sigma(epsilon, delta) ** 2)


@lru_cache(maxsize=256)
def _gaussian_loss(rho: Fraction, epsilon: Fraction, delta: Fraction) -> GaussianLoss:
    return GaussianLoss(rho, (epsilon, delta))


def whole_price(law: Mechanics, epsilon: Fraction, delta: Fraction) -> Fraction:
    """What is shared out between measurements: epsilon itself, or the rho of (epsilon, delta)."""
    match law:
        case "laplace":
            return epsilon
        case "gaussian":
            return gaussian_rho(epsilon, delta)
        case unknown:
            assert_never(unknown)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One measurement with what decides its noise: how far a unit moves it, what an integer is worth."""

    measurement: Measurement
    sensitivity: Sensitivity
    unit: Fraction

    def mechanism(self, law: Mechanics, portion: Fraction) -> AnyNoise:
        """What draws its noise at a part of the price: of epsilon, or of rho.

        Counts that are whole numbers get geometric noise, the best there is for them at a pure price.
        """
        if self.sensitivity.l1 <= 0:
            raise InvalidParameter("A measurement that nobody can move has no noise; widen its bounds.")
        match law:
            case "gaussian":
                return Gaussian(rho=portion, sensitivity=self.sensitivity.l2)
            case "laplace" if self.unit == 1 and self.measurement.kind != "sum":
                return Geometric(portion, self.sensitivity.l1)
            case "laplace":
                return Laplace(portion, self.sensitivity.l1)
            case unknown:
                assert_never(unknown)

    def noise(self, mechanism: AnyNoise) -> Noise:
        """The law of that noise in natural units."""
        return Noise.of(mechanism, self.unit, rounded=self.measurement.whole)

    def size(self, law: Mechanics) -> float:
        """The sensitivity in natural units, L1 or L2 as the noise needs it; for choices, not guarantees."""
        match law:
            case "laplace":
                return float(self.sensitivity.l1 * self.unit)
            case "gaussian":
                return float(self.sensitivity.l2 * self.unit)
            case unknown:
                assert_never(unknown)


def instrument(measurement: Measurement, measured: Measured) -> Instrument:
    """A measurement of a question with its sensitivity and the worth of its integers."""
    unit, keyed = measured.unit, bool(measured.keys)
    sensitivity = sensitivity_in(measurement, measured, unit)
    return Instrument(
        measurement, sensitivity, step(measurement, unit, keyed=keyed, bounding=measured.bounding)
    )


def instruments(measured: Measured) -> tuple[Instrument, ...]:
    """The measurements of a question, each with what decides its noise."""
    return tuple(instrument(measurement, measured) for measurement in measured.measurements)


def _check_room(mechanism: AnyNoise, measured: Measured) -> None:
    """Refuses a price at which noise for so many groups could not be drawn, before anything is paid."""
    groups = _MOST_FOUND if measured.is_open else len(measured.combinations)
    if isinstance(mechanism, Laplace | Gaussian) and mechanism.room < groups:
        raise InvalidParameter(
            "epsilon is too small for so many groups: rounding could no longer be paid for. "
            "Ask for a larger epsilon, or group by less."
        )


def price(
    measured: Measured, law: Mechanics, *, epsilon: Fraction, delta: Fraction, portions: Sequence[Fraction]
) -> Priced:
    """The mechanisms of a question and their loss.

    Args:
        measured: The question.
        law: The noise.
        epsilon: The price.
        delta: Its other half; not used by Laplace noise.
        portions: Parts of `whole_price`, one a measurement, that sum to it exactly.

    Privacy:
        Claim: releasing every measurement by its mechanism carries `loss`, whose exact point is
        (epsilon, delta), for the neighbours that the unit's adjacency names. Each mechanism is built for the
        measurement's own sensitivity over all groups (`plan.questions.sensitivity`); the measurements are
        about the same units, so their losses compose: ε adds up to epsilon exactly, or ρ to the rho of
        Gaussian noise that ball arithmetic has proven to be (epsilon, delta)-DP (`GaussianLoss`).
        A loss says nothing about adjacency by itself: it holds for what its sensitivity was stated for, which
        is on record with the dataset's unit.
    """
    if sum(portions, Fraction(0)) != whole_price(law, epsilon, delta):
        raise InvalidParameter("The parts of a price must sum to it exactly.")
    tools = instruments(measured)
    mechanisms = tuple(tool.mechanism(law, portion) for tool, portion in zip(tools, portions, strict=True))
    for mechanism in mechanisms:
        _check_room(mechanism, measured)
    noises = tuple(tool.noise(mechanism) for tool, mechanism in zip(tools, mechanisms, strict=True))
    units = tuple(tool.unit for tool in tools)
    loss: PrivacyLoss
    match law:
        case "laplace":
            loss, delta = compose([mechanism.loss for mechanism in mechanisms]), Fraction(0)
        case "gaussian":
            loss = _gaussian_loss(sum(portions, Fraction(0)), epsilon, delta)
        case unknown:
            assert_never(unknown)
    return Priced(law, epsilon, delta, tuple(portions), mechanisms, units, noises, loss)
