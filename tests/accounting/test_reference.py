"""Published and independently computed values, row by row: met within their tolerance, never below the truth.

Rows that are published *upper bounds*, single directions, or three-digit figures are read as what they are;
each test says which.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, norm

from sfumato.accounting import (
    ACCOUNTANTS,
    advanced,
    discrete_gaussian_variance,
    gaussian_sigma,
    laplace_scale,
    noise_multiplier,
    optimal,
)
from sfumato.loss import (
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RenyiLoss,
    ResponseLoss,
    compose,
)
from sfumato.numeric import compose as numeric
from sfumato.numeric.laws import GAUSSIAN_MIXTURE_ADD, GAUSSIAN_MIXTURE_REMOVE, Profile, Term

DATA = json.loads((Path(__file__).parents[1] / "data" / "accounting.json").read_text(encoding="utf-8"))
TABLES = {table["kind"]: table for table in DATA["tables"]}
WAY = {"REMOVE": 0, "ADD": 1}
F = Fraction


def rows(kind):
    return TABLES[kind]["rows"]


def exact(x):
    return F(str(x))


def gaussian(sigma, sensitivity):
    return GaussianLoss((exact(sensitivity) / exact(sigma)) ** 2 / 2)


def poisson_exchange_delta(sigma, sensitivity, rate, epsilon):
    """δ of a Poisson-sampled Gaussian under exchange: (1−q)N(0) + qN(±Δ), by its threshold test.

    The published rows, in plain floats; the package's own curve must agree with both.
    """
    epsilon = np.minimum(np.asarray(epsilon, dtype=float), 700.0)
    stays = math.log1p(-rate) if rate < 1 else -math.inf

    def log_density(x, sign):
        shift = (2 * sign * x * sensitivity - sensitivity**2) / (2 * sigma**2)
        return np.logaddexp(stays, math.log(rate) + shift)

    # The ratio of the two densities increases in x: halve until the threshold is found (or is at an end).
    low = np.full(epsilon.shape, -60 * (sigma + sensitivity) - 800 * sigma**2 / sensitivity)
    high = -low
    for _ in range(100):
        middle = (low + high) / 2
        above = log_density(middle, 1) - log_density(middle, -1) > epsilon
        low, high = np.where(above, low, middle), np.where(above, middle, high)

    def tail(sign):
        return (1 - rate) * norm.sf(high / sigma) + rate * norm.sf((high - sign * sensitivity) / sigma)

    return np.maximum(tail(1) - np.exp(epsilon) * tail(-1), 0.0)


def solve(delta_of, target, low, high):
    """The parameter at which a decreasing curve meets the target."""
    return math.exp(
        brentq(lambda u: delta_of(math.exp(u)) - target, math.log(low), math.log(high), xtol=1e-9)
    )


# ── single curves
# ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("scale", "sensitivity", "rate", "way", "epsilon", "expected"), rows("laplace delta(eps)")
)
def test_laplace_curve(scale, sensitivity, rate, way, epsilon, expected):
    loss = LaplaceLoss(exact(sensitivity) / exact(scale)).sampled(rate)
    found = loss.profile(WAY[way], epsilon)
    assert found == pytest.approx(expected, abs=1e-7)
    assert loss.delta(epsilon) >= found * (1 - 1e-12)


@pytest.mark.parametrize(
    ("sigma", "sensitivity", "rate", "way", "epsilon", "expected"), rows("gaussian delta(eps)")
)
def test_gaussian_curve(sigma, sensitivity, rate, way, epsilon, expected):
    if way == "REPLACE":
        assert poisson_exchange_delta(sigma, sensitivity, rate, epsilon) == pytest.approx(expected, abs=1e-7)
        exchanged = gaussian(sigma, sensitivity).sampled(rate, adjacency="exchange")
        assert exchanged.profile(0, epsilon) == pytest.approx(expected, abs=1e-7)
        return
    loss = gaussian(sigma, sensitivity).sampled(rate)
    assert loss.profile(WAY[way], epsilon) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("rate_a", "sensitivity", "rate", "way", "epsilons", "expected"),
    TABLES["discrete laplace delta(eps); parameter a: P(x)~exp(-a|x|)"]["rows"],
)
def test_discrete_laplace_curve(rate_a, sensitivity, rate, way, epsilons, expected):
    loss = DiscreteLaplaceLoss(exact(rate_a), sensitivity).sampled(rate)
    found = [loss.profile(WAY[way], epsilon) for epsilon in epsilons]
    assert found == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("fpr", "expected"), rows("gaussian mu=1 trade-off function"))
def test_gaussian_trade_off(fpr, expected):
    assert power(GaussianLoss(F(1, 2)), fpr) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("buckets", "fpr", "expected"), rows("k-RR noise_parameter .5"))
def test_randomized_response_trade_off(buckets, fpr, expected):
    # The truth with probability 1/2 + 1/(2k), any other answer with 1/(2k): a ratio of k + 1.
    loss = ResponseLoss(F(math.log(buckets + 1)), buckets)
    assert power(loss, fpr) == pytest.approx(expected, rel=1e-3)


def power(loss, fpr):
    """The best true-positive rate at a false-positive rate: the least e^ε·fpr + δ(ε) over all real ε."""

    def line(epsilon):
        return math.exp(epsilon) * fpr + loss.profile(0, epsilon)

    grid = np.linspace(-8, 40, 97)
    best = int(np.argmin([line(x) for x in grid]))
    low, high = grid[max(0, best - 1)], grid[min(96, best + 1)]
    return min(
        line(minimize_scalar(line, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x),
        line(0.0),
    )


# ── calibration
# ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sensitivity", "rate", "way", "epsilon", "delta", "expected"), rows("laplace scale calibration")
)
def test_laplace_calibration(sensitivity, rate, way, epsilon, delta, expected):
    # The published scales are for δ = 0 whatever the δ column says; with δ used, less noise is enough.
    del way
    pure = laplace_scale(epsilon, sensitivity=sensitivity, rate=rate)
    assert float(pure) == pytest.approx(expected, abs=1e-7)
    assert LaplaceLoss(F(sensitivity) / pure).sampled(rate).pure <= exact(epsilon) * (1 + F(1, 10**14))
    if delta:
        spent = laplace_scale(epsilon, delta, sensitivity=sensitivity, rate=rate)
        assert spent < pure
        loss = LaplaceLoss(F(sensitivity) / spent).sampled(rate)
        assert exact(delta) * (1 - F(1, 10**3)) <= F(loss.delta(epsilon)) <= exact(delta)


@pytest.mark.parametrize(
    ("sensitivity", "rate", "way", "epsilon", "delta", "expected"),
    rows("analytic/subsampled gaussian calibration"),
)
def test_gaussian_calibration(sensitivity, rate, way, epsilon, delta, expected):
    if way == "REPLACE":
        sigma = solve(
            lambda s: poisson_exchange_delta(s, sensitivity, rate, epsilon), delta, expected / 2, expected * 2
        )
        assert sigma == pytest.approx(expected, abs=5e-4)
        return
    if rate == 1:
        assert float(gaussian_sigma(epsilon, delta, sensitivity)) == pytest.approx(expected, abs=5e-4)

    def one_way(sigma):
        return gaussian(sigma, sensitivity).sampled(rate).profile(WAY[way], epsilon)

    assert solve(one_way, delta, expected * 0.8, expected * 1.3) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("sensitivity", "rate", "way", "epsilon", "delta", "expected"), rows("discrete gaussian calibration")
)
def test_discrete_gaussian_calibration(sensitivity, rate, way, epsilon, delta, expected):
    del way
    if rate == 1:
        variance = discrete_gaussian_variance(epsilon, delta, sensitivity)
        assert math.sqrt(variance) == pytest.approx(expected, abs=6e-4)
        assert F(DiscreteGaussianLoss(variance, F(sensitivity)).delta(epsilon)) <= exact(delta)

    # Whatever the direction says, the published δ is that of the larger one.
    def both_ways(sigma):
        return DiscreteGaussianLoss(F(sigma) ** 2, F(sensitivity)).sampled(rate).delta(epsilon)

    assert both_ways(expected + 6e-4) <= delta <= both_ways(expected - 6e-4)


@pytest.mark.parametrize(("epsilon", "delta", "expected"), rows("analytic gaussian calibration"))
def test_analytic_gaussian_to_twelve_digits_never_below(epsilon, delta, expected):
    sigma = gaussian_sigma(epsilon, delta)
    # The reference is a 40-digit value rounded to a float, so it may itself be half an ulp off.
    assert F(expected) * (1 - F(1, 2**52)) <= sigma <= F(expected) * (1 + F(1, 10**12))


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "k", "expected"), rows("smallest laplace scale for k queries")
)
def test_smallest_laplace_scale(sensitivity, epsilon, delta, k, expected):
    scale = laplace_scale(epsilon, delta, k=k, sensitivity=exact(sensitivity))
    assert float(scale) == pytest.approx(expected, abs=0.1)
    assert (LaplaceLoss(exact(sensitivity) / scale) * k).epsilon(delta) <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "k", "expected"), rows("smallest gaussian sigma")
)
def test_smallest_gaussian_sigma(sensitivity, epsilon, delta, k, expected):
    sigma = noise_multiplier(epsilon, delta, 1, k) * sensitivity
    # The published δ has eight digits, and so has the answer.
    assert sigma == pytest.approx(expected, rel=1e-7)


# ── composition
# ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_composed_gaussians():
    total = GaussianLoss(F(1, 6)) * 3
    _, epsilon, delta, tolerance = rows("composed accountant values")[0]
    assert total.epsilon(delta) == pytest.approx(epsilon, abs=tolerance)
    assert total.delta(epsilon) == pytest.approx(delta, abs=1e-6)
    assert total.mu == 1.0
    assert power(GaussianLoss(F(1, 2)), 0.1) == pytest.approx(0.38914, abs=1e-5)


def test_composed_sampled_gaussians():
    _, epsilon, delta, tolerance = rows("composed accountant values")[1]
    total = gaussian("0.5", 1).sampled("0.2") * 3
    assert total.epsilon(delta) == pytest.approx(epsilon, abs=tolerance)


def test_composed_laplaces():
    _, epsilon, delta, tolerance = rows("composed accountant values")[2]
    total = LaplaceLoss(1) * 3 + LaplaceLoss("0.5") * 2
    assert total.epsilon(delta) == pytest.approx(epsilon, abs=tolerance)
    assert total.epsilon(0) == 4


def test_composed_sampled_laplaces():
    _, epsilon, delta, tolerance = rows("composed accountant values")[3]
    total = LaplaceLoss(2).sampled("0.2") * 3
    assert total.epsilon(delta) == pytest.approx(epsilon, abs=tolerance)


def test_composed_mixtures_of_gaussians():
    _, epsilon, delta, tolerance = rows("composed accountant values")[4]
    parameters = [((1.0, 0.0, 1.0, 2.0, 0.2, 0.6, 0.2), 3), ((2.0, 0.0, 2.0, 3.0, 0.33, 0.34, 0.33), 2)]
    ways = [
        [Term(law, row, count) for row, count in parameters]
        for law in (GAUSSIAN_MIXTURE_REMOVE, GAUSSIAN_MIXTURE_ADD)
    ]
    found = numeric.epsilon(ways, delta)
    # The published figure is a pessimistic discretisation: an upper bound with a tolerance of 1e-6.
    assert found.upper == pytest.approx(epsilon, abs=tolerance)


def test_composed_truncated_samples():
    # The published pair is a stated upper bound: with the probability t that a batch overflows, a Gaussian of
    # half the noise on a Poisson sample under exchange, else the plain sampled Gaussian. A mixture of pairs
    # that shows which was drawn has the mixed curve.
    _, epsilon, delta, tolerance = rows("composed accountant values")[5]

    def mixed(n, rate, batch, way):
        overflow = binom.sf(batch - 1, n - 1, rate)
        share = binom.sf(batch, n, rate) * batch / overflow / n
        plain = GaussianLoss(F(1, 2)).sampled(exact(rate))

        (inner,) = plain.directions()[way]

        def curve(epsilons):
            x = np.asarray(epsilons, dtype=float)
            exchanged = poisson_exchange_delta(0.5, 1.0, share, x)
            values = overflow * exchanged + (1 - overflow) * inner.law.delta(x, inner.parameters)
            return np.clip(values * (1 + 1e-12), np.maximum(0.0, -np.expm1(np.minimum(x, 0.0))), 1.0)

        return Profile(curve, "truncated sample")

    ways = [[Term(mixed(4, 0.5, 2, way), (), 3), Term(mixed(3, 0.5, 2, way), (), 2)] for way in (0, 1)]
    found = numeric.epsilon(ways, delta)
    assert found.upper == pytest.approx(epsilon, abs=tolerance)


def test_composed_pure_pairs():
    total = PureLoss(1) + PureLoss(2)
    assert total.epsilon(0) == 3
    assert power(total, 0.1) == pytest.approx(0.8286, abs=1e-4)
    # The estimate of μ is that of the widest gap, at ε = 0.
    assert 2 * norm.ppf((1 + total.delta(0)) / 2) == pytest.approx(2.358, abs=1e-3)


def test_composed_approximate_pairs():
    total = ApproximateLoss(1, "0.1") + ApproximateLoss(2, "0.2")
    # Exactly 1 − 0.9·0.8: atoms at infinity multiply, they do not add.
    assert total.delta(3) == pytest.approx(0.28, abs=1e-9)
    assert total.delta(3) >= 0.28
    assert total.approximate == (3, F("0.3"))
    assert power(total, 0.1) == pytest.approx(0.91938, abs=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "total", "expected"),
    rows("OPTIMAL (KOV/Murtagh-Vadhan) homogeneous composition"),
)
def test_optimal_composition(epsilon, delta, k, total, expected):
    found = optimal(epsilon, k, total, each=delta)
    if expected is None:
        assert found == math.inf
    else:
        # The published figures are on the lattice of whole ε that Theorem 3.3 states; the exact curve lies
        # between two points.
        assert expected - 2 * epsilon <= found <= expected + 1e-7


def test_thousand_pure_releases():
    ((expected,),) = rows("1000 x pure eps=.1, delta=1e-6")
    found = (PureLoss("0.1") * 1000).epsilon("1e-6")
    assert expected * (1 - 1e-14) <= found <= expected + 1e-9
    assert optimal("0.1", 1000, "1e-6") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("mu", "delta", "expected"), rows("GDP epsilon(delta)"))
def test_gaussian_epsilon(mu, delta, expected):
    found = GaussianLoss.of_mu(exact(mu)).epsilon(delta)
    assert expected * (1 - 1e-15) <= found <= expected * (1 + 1e-12)


# ── Rényi
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _moment(rate, sigma, order):
    """E_Q[(dP/dQ)^α] when a unit is removed, by plain quadrature."""

    def integrand(x):
        shift = (2 * x - 1) / (2 * sigma**2)
        return math.exp(
            norm.logpdf(x, 0, sigma) + order * np.logaddexp(math.log1p(-rate), math.log(rate) + shift)
        )

    return quad(integrand, -30, order + 30, points=[0, order], epsabs=0, epsrel=1e-12, limit=500)[0]


def test_rdp_of_sampled_gaussians():
    ((orders, expected),) = rows("RDP of 50 x Poisson(.01) Gaussian sigma=2.5")
    total = gaussian("2.5", 1).sampled("0.01") * 50
    for order, value in zip(orders[:-1], expected[:-1], strict=True):
        found = total.rdp(float(order))
        # The published fractional orders (1.5, 2.5) are upper bounds, 3 % and 6e-5 above the integral itself.
        assert found <= value * (1 + 1e-4)
        truth = 50 * math.log(_moment(0.01, 2.5, order)) / (order - 1)
        assert truth * (1 - 1e-7) <= found <= truth * (1 + 1e-6)
        if order >= 5:
            assert found == pytest.approx(value, rel=1e-4)
    assert total.rdp(math.inf) == math.inf


def test_rdp_conversions():
    pure, plain = rows("RDP->(eps,delta)")
    assert RenyiLoss(range(2, 33), [F("1.1")] * 31).epsilon(pure[2]) == pytest.approx(pure[3], abs=1e-7)
    rho = 1 / (2 * F("4.530877117") ** 2)
    assert ConcentratedLoss(rho).epsilon(plain[2]) == pytest.approx(plain[3], abs=1e-7)


def test_rdp_of_the_exponential_mechanism():
    (_, first), (order, last) = rows("RDP of eps=1 exponential mechanism (bounded range)")
    assert BoundedRangeLoss(1).rdp(1) == pytest.approx(first, abs=1e-7)
    # The published figure at order 1000 is the pure bound; the exact supremum is a little below it.
    assert 0.99 < BoundedRangeLoss(1).rdp(order) <= last


def test_zcdp_conversion():
    (_, epsilon), (_, delta) = rows("zCDP->approxDP conversion (rho=(1/4)^2/2)")
    assert ConcentratedLoss(F(1, 32)).epsilon("1e-3") == pytest.approx(epsilon, rel=1e-13)
    assert ConcentratedLoss(F(1, 32)).delta(0) == pytest.approx(delta, rel=1e-13)
    assert GaussianLoss(F(1, 32)).epsilon("1e-3") < epsilon


def test_opacus_accountants():
    (_, rdp), _, (_, prv) = rows("sigma=1.5,q=.04,T=2250,delta=1e-5")
    total = gaussian("1.5", 1).sampled("0.04") * 2250
    truth = total.epsilon("1e-5")
    # Their figure includes 0.01 of stated error; the central limit's 6.59 to 6.60 is *below* the truth: no
    # bound at all.
    assert 6.60 < truth <= prv
    assert truth == pytest.approx(prv, abs=0.01)
    # Their orders are a list; the best order is at least as good.
    found = ACCOUNTANTS["rdp"].epsilon(total, "1e-5")
    assert truth < found <= rdp * (1 + 1e-9)
    assert found == pytest.approx(rdp, rel=1e-3)


# ── composed truths
# ──────────────────────────────────────────────────────────────────────────────────────────────────

TRUTHS = {row[0]: row[1] for row in rows("composed truth to ~1e-6")}


def truth(start):
    (value,) = [value for name, value in TRUTHS.items() if (name + " ").startswith(start + " ")]
    return value


def meets(found, expected):
    """Never below (the probe is good to about 1e-9 itself) and within 1e-6 + 1e-9."""
    assert expected * (1 - 1e-9) <= found <= expected * (1 + 1e-6) + 1e-9


def test_thousand_laplaces():
    meets((LaplaceLoss("0.1") * 1000).epsilon("1e-6"), truth("1000x Laplace eps=.1, delta=1e-6"))


def test_stochastic_gradient_descent():
    meets(
        (gaussian(1, 1).sampled("0.004") * 15000).epsilon("1e-5"), truth("Poisson subsampled Gaussian q=.004")
    )


def test_stochastic_gradient_descent_with_little_noise():
    meets((gaussian("0.6", 1).sampled("0.001") * 100000).epsilon("1e-5"), truth("q=1e-3 sigma=.6"))


@pytest.mark.parametrize(
    ("k", "start"),
    [(5, "hetero"), (25, "same k=25"), (50, "same k=50"), (100, "same k=100"), (500, "same k=500")],
)
def test_many_different_losses(k, start):
    source = np.random.default_rng(20240601)
    laplace, sigma, pure = (
        source.uniform(0.001, 0.1, 500),
        source.uniform(20, 200, 500),
        source.uniform(0.001, 0.1, 100),
    )
    total = compose(
        [
            *(LaplaceLoss(F(x)) for x in laplace[:k].tolist()),
            *(GaussianLoss(1 / (2 * F(x) ** 2)) for x in sigma[:k].tolist()),
            *(PureLoss(F(x)) for x in pure[: k // 5].tolist()),
        ]
    )
    meets(total.epsilon("1e-6"), truth(start))


def test_noise_multiplier():
    expected = truth("noise multiplier")
    found = noise_multiplier(2, "1e-5", "0.004", 15000)
    assert expected * (1 - 1e-9) <= found <= expected + 1e-5
    assert (GaussianLoss(1 / (2 * F(str(found)) ** 2)).sampled("0.004") * 15000).epsilon("1e-5") <= 2 * (
        1 + 1e-6
    )


def test_every_table_is_used():
    # A row added to the data without a test for it would be a claim nobody checks.
    source = Path(__file__).read_text(encoding="utf-8")
    for kind in TABLES:
        assert kind in source, kind


def test_textbook_advanced_composition_is_not_the_optimal_one():
    assert advanced(1, 0, 30, "0.06")[0] > optimal(1, 30, "0.06")
