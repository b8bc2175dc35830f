"""The law of a measurement's noise: the mechanism's own widths in natural units, and rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Gaussian, Geometric, Laplace, Staircase
from sfumato.plan.intervals.noise import Noise, risk_of
from sfumato.testing import assert_coverage, seeded

CONFIDENCES = (0.5, 0.9, 0.95, 0.99)
MECHANISMS = (
    Laplace("0.3", 2**30),
    Laplace(7, 1),
    Gaussian(sigma=12345, sensitivity=3),
    Gaussian(rho="0.01", sensitivity=2**40),
)
UNITS = (Fraction(1), Fraction(1, 2**26), Fraction(1, 2**55))
DRAWS = 40_000


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("confidence", [*CONFIDENCES, 1 - 1e-12])
def test_widths_are_those_of_the_mechanism_in_natural_units(
    mechanism: Laplace | Gaussian, unit: Fraction, confidence: float
) -> None:
    noise = Noise.of(mechanism, unit)
    exact = Fraction(mechanism.error(confidence)) * unit
    assert exact * (1 - Fraction(1, 2**50)) <= noise.quantile(confidence) <= exact * (1 + Fraction(1, 2**44))
    assert noise.variance == pytest.approx(mechanism.variance * float(unit) ** 2)


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", 1, 4, 30])
@pytest.mark.parametrize("confidence", [0.01, *CONFIDENCES, 0.999999])
def test_geometric_widths_are_the_least_whole_ones(epsilon: str | int, confidence: float) -> None:
    mechanism = Geometric(epsilon, 1)
    noise = Noise.of(mechanism, Fraction(1), rounded=True)
    width = noise.quantile(confidence)
    assert width == mechanism.error(confidence)
    assert noise.tail(width) <= risk_of(confidence) * (1 + 1e-12)
    assert noise.tail(width - 1) > risk_of(confidence)
    assert noise.variance == pytest.approx(mechanism.variance, rel=1e-12)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("mechanism", [Gaussian(sigma="1.7", sensitivity=1), Laplace("0.8", 1)], ids=repr)
def test_rounded_whole_numbers_have_whole_widths_that_are_quantiles(
    mechanism: Gaussian | Laplace, confidence: float
) -> None:
    noise = Noise.of(mechanism, Fraction(1), rounded=True)
    width = noise.quantile(confidence)
    assert width == int(width)
    assert noise.tail(width) <= risk_of(confidence) * (1 + 1e-9) < noise.tail(width - 1)
    with seeded(5):
        errors = np.rint(mechanism.release(np.full(DRAWS, 1000))) - 1000
    assert_coverage(errors, width, confidence)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_weighted_counts_are_covered_after_rounding(confidence: float) -> None:
    unit, exact = Fraction(1, 2**30), 2**30 * 10 + 2**29 - 7  # as far from a whole number as can be
    mechanism = Laplace(2, 2**30)
    noise = Noise.of(mechanism, unit, rounded=True)
    assert not noise.whole
    with seeded(6):
        errors = np.rint(mechanism.release(np.full(DRAWS, exact)) * float(unit)) - exact * float(unit)
    assert_coverage(errors, noise.quantile(confidence), confidence, exact=False)
    assert_coverage(errors, noise.unrounded.quantile(confidence) + 0.5, confidence, exact=False)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("mechanism", [*MECHANISMS, Geometric("0.1", 1)], ids=repr)
def test_coverage_is_nominal_and_noise_understated_by_a_tenth_is_noticed(
    mechanism: Laplace | Gaussian | Geometric, confidence: float
) -> None:
    noise = Noise.of(mechanism)
    with seeded(7):
        errors = np.asarray(mechanism.release(np.zeros(DRAWS, np.int64)), dtype=float)
    assert_coverage(errors, noise.quantile(confidence), confidence, slack=1e-6)
    understated = Noise(noise.law, noise.scale * 0.9, noise.slack, noise.whole)
    with pytest.raises(AssertionError):
        assert_coverage(errors, understated.quantile(confidence), confidence, slack=1e-6)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 7.0, 1e6, 1e12])
def test_laplace_noise_can_stand_for_geometric_noise(scale: float) -> None:
    # Drawn from the same uniform numbers, they are never further apart than the slack.
    noise = Noise("geometric", scale, whole=True)
    stand_in, lone = noise.continuous(), noise.continuous(alone=True)
    assert (stand_in.law, stand_in.scale) == ("laplace", scale)
    assert 0.5 <= stand_in.slack <= 1 + 1e-12
    q = math.exp(-1 / scale)
    tail = np.geomspace(1e-9, 0.4999, 4001)  # P(· ≥ value)
    continuous = -scale * np.log(2 * tail)
    whole = np.maximum(
        np.floor(-scale * (np.log(tail) + math.log1p(q)) + 1e-9), 0
    )  # greatest k, P(X ≥ k) ≥ tail
    assert lone.slack <= 0.5 + 1e-9
    assert (whole - continuous).max() <= lone.slack + 1e-6 * max(1, scale * 1e-6)
    assert np.abs(whole - continuous).max() <= stand_in.slack + 1e-6 * max(1, scale * 1e-6)


def test_a_geometric_mechanism_of_other_units_becomes_continuous() -> None:
    mechanism, unit = Geometric("0.5", 3), Fraction(1, 8)
    noise = Noise.of(mechanism, unit)
    assert (noise.law, noise.scale) == ("laplace", 0.75)
    for confidence in CONFIDENCES:
        assert noise.quantile(confidence) >= mechanism.error(confidence) / 8


@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian"])
def test_tail_and_width_are_inverse_and_ends_are_safe(law: str) -> None:
    noise = Noise(law, 3.0, 0.25 if law != "geometric" else 0.0, law == "geometric")  # type: ignore[arg-type]
    for risk in (1e-12, 0.01, 0.5, 0.99):
        assert noise.tail(noise.width(risk)) <= risk * (1 + 1e-9)
    assert noise.width(0.0) == math.inf
    assert noise.width(1.0) == 0.0
    assert noise.tail(-1.0) == 1.0


def test_confidence_is_taken_as_the_decimal_that_it_shows() -> None:
    assert risk_of(0.95) == 0.05
    assert risk_of(1 - 2.0**-53) == pytest.approx(2.0**-53, rel=0.2)
    for unusable in (0, 1, 1.5, math.nan):
        with pytest.raises(InvalidParameter):
            risk_of(unusable)


def test_unusable_noise_is_refused() -> None:
    for arguments in (("cauchy", 1.0), ("laplace", 0.0), ("laplace", math.inf), ("gaussian", 1.0, -1.0)):
        with pytest.raises(InvalidParameter):
            Noise(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Noise.of(Staircase(1, 1))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Noise.of(Laplace(1, Fraction(10) ** 280), Fraction(10) ** 60)
