"""The attacker's best against slow exact arithmetic, and against an attacker who really tries."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter, NotCertified
from sfumato.explain import advantage, posterior, tradeoff
from sfumato.loss import (
    NO_LOSS,
    ApproximateLoss,
    ConcentratedLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
    ResponseLoss,
)
from sfumato.testing.stream import seeded

mpmath.mp.dps = 40
RATES = [1e-9, 1e-4, 0.01, 0.05, 0.2, 0.35, 0.5, 0.8, 0.99, 1 - 1e-6]


def laplace(epsilon, a):
    """Dong, Roth, Su 2022, Prop. A.6, as a true-positive rate."""
    e, a = mpmath.mpf(epsilon), mpmath.mpf(a)
    if a < mpmath.exp(-e) / 2:
        return mpmath.exp(e) * a
    return 1 - mpmath.exp(-e) / (4 * a) if a < 0.5 else 1 - mpmath.exp(-e) * (1 - a)


def gaussian(mu, a):
    """Φ(Φ⁻¹(a) + μ) in 40 digits."""
    a = mpmath.mpf(a)
    z = -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * a) if a > 1e-3 else None
    if z is None:
        z = mpmath.findroot(
            lambda x: mpmath.log(mpmath.ncdf(x)) - mpmath.log(a), -mpmath.sqrt(-2 * mpmath.log(a))
        )
    return mpmath.ncdf(z + mpmath.mpf(mu))


def neyman_pearson(present, absent, a):
    """The best test of two finite laws: outcomes by falling ratio, the last one in part."""
    left, hits = mpmath.mpf(a), mpmath.mpf(0)
    for p, q in sorted(zip(present, absent, strict=True), key=lambda pair: pair[0] / pair[1], reverse=True):
        used = min(left, q)
        hits += p * used / q
        left -= used
    return hits


def response(epsilon, categories):
    odds = mpmath.exp(mpmath.mpf(epsilon))
    total = odds + categories - 1
    law = [odds / total] + [1 / total] * (categories - 1)
    return law, [law[1], law[0], *law[2:]]


def two_sided(rate, shift, reach=120):
    r = mpmath.exp(-mpmath.mpf(rate))
    law = [(1 - r) / (1 + r) * r ** abs(k) for k in range(-reach, reach + 1)]
    return law[: len(law) - shift], law[shift:]


def agrees(loss, exact, rates=RATES, within=2e-6):
    found = tradeoff(loss, rates)
    for rate, ceiling in zip(rates, found, strict=True):
        truth = exact(rate)
        assert mpmath.mpf(float(ceiling)) >= truth or ceiling == 1.0, rate
        assert float(ceiling) <= float(truth) * (1 + within), rate


@pytest.mark.parametrize("epsilon", ["0.00001", "0.1", "1", "3", "12"])
def test_laplace(epsilon):
    agrees(LaplaceLoss(epsilon), lambda a: laplace(epsilon, a))


@pytest.mark.parametrize("mu", ["0.001", "0.1", "1", "3", "9"])
def test_gaussian(mu):
    agrees(GaussianLoss.of_mu(mu), lambda a: gaussian(mu, a))


@pytest.mark.parametrize(("epsilon", "categories"), [("0.2", 2), ("1", 3), ("2", 20), ("1.0986", 2)])
def test_randomized_response(epsilon, categories):
    present, absent = response(epsilon, categories)
    agrees(ResponseLoss(epsilon, categories), lambda a: neyman_pearson(present, absent, a))


@pytest.mark.parametrize(("rate", "shift"), [("0.5", 1), ("0.7", 3)])
def test_geometric(rate, shift):
    present, absent = two_sided(rate, shift)
    # Beyond the reach lies less than 1e-25.
    agrees(
        DiscreteLaplaceLoss(rate, shift), lambda a: neyman_pearson(present, absent, a) - mpmath.mpf("1e-24")
    )


@pytest.mark.parametrize("epsilon", ["0", "0.3", "1", "25", "1000"])
def test_a_pure_epsilon_has_the_closed_form(epsilon):
    e = mpmath.mpf(epsilon)
    agrees(
        PureLoss(epsilon),
        lambda a: min(mpmath.exp(e) * mpmath.mpf(a), 1 - mpmath.exp(-e) * (1 - mpmath.mpf(a))),
        within=1e-14,
    )


def test_an_epsilon_and_a_delta_have_the_closed_form():
    e, d = mpmath.mpf(1), mpmath.mpf("0.01")
    agrees(
        ApproximateLoss(1, "0.01"),
        lambda a: min(mpmath.exp(e) * mpmath.mpf(a) + d, 1 - mpmath.exp(-e) * (1 - mpmath.mpf(a) - d), 1),
    )
    assert tradeoff(ApproximateLoss(1, "0.01"), 0.0) == pytest.approx(0.01)


@pytest.mark.parametrize("swap", [False, True])
def test_an_asymmetric_loss_bounds_both_orders(swap):
    loss = GaussianLoss.of_mu(2).sampled("0.2")
    cuts = np.linspace(-5, 7, 200)
    plain = np.array([float(mpmath.ncdf(-cut)) for cut in cuts])
    shifted = np.array([float(mpmath.ncdf(2 - cut)) for cut in cuts])
    mixed = 0.8 * plain + 0.2 * shifted
    false, true = (1 - mixed, 1 - plain) if swap else (plain, mixed)
    ceilings = tradeoff(loss, false)
    assert np.all(ceilings >= true - 1e-15)
    assert not swap or np.min(ceilings - true) < 1e-4


@pytest.mark.parametrize(
    "loss", [LaplaceLoss(1), GaussianLoss(1), ConcentratedLoss("0.3"), DiscreteLaplaceLoss("0.2", 1) * 5]
)
def test_the_curve_is_a_curve(loss):
    rates = np.linspace(0, 1, 11)
    found = tradeoff(loss, rates)
    assert np.all(np.diff(found) >= 0)
    assert np.all(found >= rates)
    assert np.max(found - rates) <= advantage(loss) + 1e-12
    assert np.all(found[1:-1] * 2 >= found[:-2] + found[2:] - 1e-5)  # concave
    # Guessing is beaten most where both errors are equal.
    even = (1 - advantage(loss)) / 2
    assert float(tradeoff(loss, even)) - even >= advantage(loss) * 0.95  # ρ alone knows little at ε = 0


def test_shapes_and_ends():
    assert tradeoff(LaplaceLoss(1), 0.5).shape == ()
    assert tradeoff(LaplaceLoss(1), [[0, 1], [0.5, 0.5]]).shape == (2, 2)
    assert tradeoff(LaplaceLoss(1), []).shape == (0,)
    assert tradeoff(LaplaceLoss(1), [0, 1]).tolist() == [0.0, 1.0]
    assert tradeoff(NO_LOSS, [0.0, 0.3, 1.0]).tolist() == pytest.approx([0.0, 0.3, 1.0], rel=1e-14)
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidParameter, match="between 0 and 1"):
            tradeoff(LaplaceLoss(1), rate)


def test_points_that_cannot_be_certified_are_left_out():
    class Shy(PrivacyLoss):
        pure = Fraction(1)

        def delta(self, epsilon):
            if Fraction(1, 2) < epsilon < Fraction(4, 5):
                raise NotCertified("no")
            return LaplaceLoss(1).delta(epsilon)

    found, best = tradeoff(Shy(), 0.22), tradeoff(LaplaceLoss(1), 0.22)
    assert best < found < 1.1 * best


def rates_of(attacked, epsilon, cut, count):
    """How often a cut tells 1 from 0 after noise: (false, true) positive rates over `count` releases."""
    mechanism = sf.Laplace(epsilon=attacked, sensitivity=1)
    assert mechanism.loss == LaplaceLoss(attacked)
    absent = np.asarray(mechanism.release(np.zeros(count)))
    present = np.asarray(mechanism.release(np.ones(count)))
    return np.mean(absent > cut), np.mean(present > cut)


COUNT = 100_000
NOISE = math.sqrt(math.log(2 / 1e-10) / (2 * COUNT))  # Hoeffding: beyond with probability 1e-10


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5, 0.8])
def test_the_best_attacker_reaches_the_ceiling_and_never_passes_it(rate):
    cut = -math.log(2 * rate) if rate < 0.5 else math.log(2 * (1 - rate))  # of Laplace noise of scale 1
    with seeded("attacker"):
        false, true = rates_of(1, 1, cut, COUNT)
    assert abs(false - rate) < NOISE
    assert true <= float(tradeoff(LaplaceLoss(1), min(1.0, false + NOISE))) + NOISE
    assert true >= float(tradeoff(LaplaceLoss(1), max(0.0, false - NOISE))) - NOISE


def test_half_the_noise_is_noticed_by_the_attacker():
    with seeded("attacker"):
        false, true = rates_of(2, 1, 0.5, COUNT)
    assert true > float(tradeoff(LaplaceLoss(1), false + NOISE)) + NOISE


# ── advantage and beliefs


def test_advantage_is_total_variation():
    assert advantage(LaplaceLoss(1)) == pytest.approx(-math.expm1(-0.5))
    assert advantage(PureLoss(1)) == pytest.approx(math.tanh(0.5))
    assert advantage(GaussianLoss.of_mu(1)) == pytest.approx(float(2 * mpmath.ncdf(0.5) - 1))
    assert mpmath.mpf(advantage(GaussianLoss.of_mu(1))) >= 2 * mpmath.ncdf(mpmath.mpf(1) / 2) - 1
    assert advantage(NO_LOSS) == 0


@settings(max_examples=60)
@given(st.fractions(Fraction(1, 1000), 30), st.fractions(Fraction(1, 10**6), Fraction(999999, 10**6)))
def test_beliefs_under_a_pure_epsilon(epsilon, prior):
    found = posterior(PureLoss(epsilon), prior)
    p, factor = (
        mpmath.mpf(prior.numerator) / prior.denominator,
        mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator),
    )
    largest, smallest = p * factor / (1 - p + p * factor), p / (p + (1 - p) * factor)
    assert mpmath.mpf(found.largest) >= largest or found.largest == 1
    assert mpmath.mpf(found.smallest) <= smallest
    assert found.largest == pytest.approx(float(largest), rel=1e-15)
    assert found.smallest == pytest.approx(float(smallest), rel=1e-15)
    assert found.failure == 0


@pytest.mark.parametrize("mu", ["0.1", "1", "4"])
@pytest.mark.parametrize("failure", ["1e-9", "0.001", "0.2"])
def test_beliefs_under_gaussian_noise_hold_but_for_the_failure(mu, failure):
    found = posterior(GaussianLoss.of_mu(mu), "0.25", failure=failure)
    m, t = mpmath.mpf(mu), mpmath.mpf(found.epsilon)
    # The loss is normal with mean ±μ²/2 and deviation μ, under the two inputs.
    outside = mpmath.ncdf((-t + m * m / 2) / m) + mpmath.ncdf((-t - m * m / 2) / m)
    assert outside <= mpmath.mpf(failure)
    assert outside >= mpmath.mpf(failure) / 200  # and it is no empty promise
    odds = mpmath.exp(t) / 3
    assert mpmath.mpf(found.largest) >= odds / (1 + odds) * (1 - mpmath.mpf("1e-15"))
    assert found.failure == float(failure)


def test_a_failure_may_buy_more_than_a_pure_epsilon_gives():
    always, mostly = (posterior(LaplaceLoss("0.1") * 20, "0.5", failure=failure) for failure in (0, "0.01"))
    assert always.failure == 0
    assert mostly.failure == 0.01
    assert mostly.largest < always.largest == posterior(PureLoss(2), "0.5").largest
    assert posterior(PureLoss(1), "0.5", failure="1e-9") == posterior(PureLoss(1), "0.5")


def test_without_a_pure_epsilon_nothing_holds_always():
    found = posterior(GaussianLoss(1), "0.5")
    assert (found.smallest, found.largest, found.epsilon) == (0.0, 1.0, math.inf)
    found = posterior(ApproximateLoss(1, "0.01"), "0.5", failure="0.01")
    assert (found.smallest, found.largest) == (0.0, 1.0)
    found = posterior(ApproximateLoss(1, "0.01"), "0.5", failure="0.05")
    assert found.largest < 0.85
    assert found.smallest > 0


@pytest.mark.parametrize("prior", [0, 1, -0.1, "nan"])
def test_a_prior_is_a_doubt(prior):
    with pytest.raises(InvalidParameter):
        posterior(PureLoss(1), prior)


def test_beliefs_in_words():
    assert str(posterior(PureLoss(1), "0.5")) == "a belief of 50 % stays between 26.8 % and 73.2 %"
    assert str(posterior(GaussianLoss("0.1"), "0.5", failure="1e-6")).endswith(
        ", except with probability 1e-06"
    )
