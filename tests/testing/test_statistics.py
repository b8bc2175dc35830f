"""Tests of the tests: false alarms stay below alpha, and planted deviations fail in both directions."""

import math

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.testing import assert_bernoulli, assert_continuous, assert_discrete
from sfumato.testing.statistics import bernoulli_finding, continuous_finding, discrete_finding


@pytest.fixture
def rng():
    return np.random.default_rng(20260102)


def lattice(scale):
    """The discrete Laplace law."""
    a = math.exp(-1 / scale)
    return lambda k: (1 - a) / (1 + a) * a ** np.abs(k)


def draw_lattice(rng, scale, count):
    chance = -math.expm1(-1 / scale)
    return rng.geometric(chance, count) - rng.geometric(chance, count)


def laplace_cdf(x):
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))


def rate_below(ps, alpha):
    return float(np.mean(np.asarray(ps) < alpha))


@pytest.mark.parametrize("count", [30, 3000])
def test_discrete_false_alarms(rng, count):
    ps = [discrete_finding(draw_lattice(rng, 3.0, count), lattice(3.0)).p for _ in range(400)]
    assert rate_below(ps, 0.1) <= 0.1
    assert rate_below(ps, 0.02) <= 0.02
    assert min(ps) < 0.5  # it is a p-value, not a constant


@pytest.mark.parametrize("count", [30, 3000])
def test_continuous_false_alarms(rng, count):
    ps = [continuous_finding(rng.laplace(size=count), laplace_cdf).p for _ in range(400)]
    assert rate_below(ps, 0.1) <= 0.1
    assert rate_below(ps, 0.02) <= 0.02
    assert min(ps) < 0.5


def test_category_false_alarms(rng):
    law = {"a": 0.5, "b": 0.3, None: 0.2}
    keys = list(law)
    draws = ([keys[i] for i in rng.choice(3, 200, p=list(law.values()))] for _ in range(400))
    ps = [discrete_finding(draw, law).p for draw in draws]
    assert rate_below(ps, 0.1) <= 0.1


@pytest.mark.parametrize("scale", [2.8, 3.2])
def test_discrete_noise_that_is_off_by_seven_percent_fails_both_ways(rng, scale):
    with pytest.raises(AssertionError, match="of 100000"):
        assert_discrete(draw_lattice(rng, scale, 100_000), lattice(3.0))


def test_discrete_honest_passes(rng):
    assert_discrete(draw_lattice(rng, 3.0, 100_000), lattice(3.0))
    assert_discrete(100 + draw_lattice(rng, 3.0, 100_000), lambda k: lattice(3.0)(k - 100), centre=100)


@pytest.mark.parametrize("scale", [0.96, 1.04])
def test_continuous_noise_that_is_off_by_four_percent_fails_both_ways(rng, scale):
    with pytest.raises(AssertionError, match="both tails"):
        assert_continuous(rng.laplace(scale=scale, size=100_000), laplace_cdf)
    assert_continuous(rng.laplace(size=100_000), laplace_cdf)


def test_wrong_shape_with_right_variance_fails(rng):
    with pytest.raises(AssertionError):
        assert_continuous(rng.normal(scale=math.sqrt(2), size=20_000), laplace_cdf)


def test_shift_fails(rng):
    with pytest.raises(AssertionError):
        assert_continuous(rng.laplace(size=100_000) + 0.03, laplace_cdf)
    with pytest.raises(AssertionError):
        assert_discrete(draw_lattice(rng, 3.0, 20_000) + 1, lattice(3.0))


def test_missing_tail_fails(rng):
    # Noise cut off at 9 scales: one draw in eight thousand is missing, the bulk is perfect.
    noise = rng.laplace(size=1_000_000)
    with pytest.raises(AssertionError, match="tail"):
        assert_continuous(noise[np.abs(noise) < 9], laplace_cdf)


def test_biased_low_bit_fails(rng):
    # Uniform on 4096 values, but the lowest bit is set in 52 % of draws: no pooled cell and no tail shows it.
    high, low = rng.integers(0, 2048, 100_000), rng.random(100_000) < 0.52
    with pytest.raises(AssertionError, match="bit 0"):
        assert_discrete(2 * high + low, dict.fromkeys(range(4096), 1 / 4096))
    assert_discrete(rng.integers(0, 4096, 100_000), dict.fromkeys(range(4096), 1 / 4096))


def test_impossible_value_fails(rng):
    samples = rng.integers(0, 4, 5000)
    law = {0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}
    assert_discrete(samples, law)
    samples[:3] = 4
    with pytest.raises(AssertionError, match="outside the listed law"):
        assert_discrete(samples, law)
    with pytest.raises(AssertionError, match="outside the listed law"):
        assert_discrete(samples, law | {4: 0.0})


def test_unlisted_mass_is_one_cell(rng):
    law = {k: 0.5 ** (k + 1) for k in range(6)}  # leaves out 1/64
    samples = rng.geometric(0.5, 50_000) - 1
    assert_discrete(samples, law)
    with pytest.raises(AssertionError):
        assert_discrete(np.where(samples >= 6, 0, samples), law)


def test_categories_fail_both_ways(rng):
    law = {"yes": 0.75, "no": 0.25}
    for chance in (0.73, 0.77):
        samples = np.where(rng.random(50_000) < chance, "yes", "no").tolist()
        with pytest.raises(AssertionError):
            assert_discrete(samples, law)
    assert_discrete(np.where(rng.random(50_000) < 0.75, "yes", "no").tolist(), law)


def test_rows_are_matched_as_tuples(rng):
    rows = rng.integers(0, 2, (20_000, 2))
    law = {(a, b): 0.25 for a in (0, 1) for b in (0, 1)}
    assert_discrete(rows, law)
    rows[:, 1] = rows[:, 0]
    with pytest.raises(AssertionError):
        assert_discrete(rows, law)


def test_wide_integers_go_by_their_distribution_function(rng):
    samples = np.round(rng.laplace(scale=1e12, size=50_000))
    assert_continuous(samples, lambda x: laplace_cdf((np.floor(x) + 0.5) / 1e12))
    with pytest.raises(AssertionError):
        assert_continuous(samples * 1.06, lambda x: laplace_cdf((np.floor(x) + 0.5) / 1e12))
    with pytest.raises(InvalidParameter, match="assert_continuous"):
        assert_discrete(samples.astype(int), lattice(1e12))


def test_atoms_are_no_trouble_to_the_distribution_function(rng):
    samples = rng.integers(0, 3, 30_000)

    def cdf(x):
        return np.clip(np.floor(x) + 1, 0, 3) / 3

    assert_continuous(samples, cdf)
    with pytest.raises(AssertionError):
        assert_continuous(np.where(samples == 2, rng.integers(1, 3, 30_000), samples), cdf)


def test_bernoulli_is_exact_and_two_sided():
    assert bernoulli_finding(10, 10, 0.5, 0.5).p == pytest.approx(2 / 1024)
    assert bernoulli_finding(0, 10, 0.5, 0.5).p == pytest.approx(2 / 1024)
    assert bernoulli_finding(5, 10, 0.5, 0.5).p == 1.0
    assert bernoulli_finding(0, 10, 0.0, 0.0).p == 1.0
    assert bernoulli_finding(1, 10, 0.0, 0.0).p == 0.0
    assert bernoulli_finding(7, 10, 0.6, 0.8).p == 1.0
    assert_bernoulli(500, 1000, 0.5)
    for count in (400, 600):
        with pytest.raises(AssertionError, match="too rarely" if count < 500 else "too often"):
            assert_bernoulli(count, 1000, 0.5)


def test_unusable_claims_are_refused():
    with pytest.raises(InvalidParameter):
        assert_bernoulli(5, 4, 0.5)
    with pytest.raises(InvalidParameter, match="alpha"):
        assert_bernoulli(2, 4, 0.5, alpha=0.0)
    with pytest.raises(InvalidParameter, match="probabilities"):
        assert_discrete([1, 2], {1: 0.7, 2: 0.7})
    with pytest.raises(InvalidParameter, match="finite"):
        assert_continuous([math.nan], laplace_cdf)
