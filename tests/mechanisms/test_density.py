"""Each additive mechanism's law as a function: a density that is that of what is drawn."""

import math

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.testing import assert_discrete, seeded

WHOLE = [
    sf.Geometric(1, 1),
    sf.Geometric("0.1", 3),
    sf.DiscreteGaussian(rho="0.5", sensitivity=1),
    sf.DiscreteGaussian(sigma="0.4", sensitivity=1),
    sf.DiscreteGaussian(sigma=40, sensitivity=1),
]
FLOATS = [
    sf.Laplace(1, 1),
    sf.Laplace("0.01", "0.37"),
    sf.Gaussian(1, "1e-5", sensitivity=1),
    sf.Gaussian(rho=8, sensitivity="0.01"),
    sf.Staircase(1, 1),
    sf.Staircase(5, "0.3"),
    sf.TruncatedLaplace(1, "1e-3", sensitivity=1),
    sf.TruncatedLaplace("0.1", "0.1", sensitivity=20),
]
PURE = [sf.Laplace(1, 1), sf.Laplace(3, "0.5"), sf.Geometric("0.5", 2), sf.Staircase(2, 1)]


def cells(mechanism, width=60.0, count=1 << 19):
    """Places that cover all of the noise, and how wide the cell around each is."""
    if mechanism in WHOLE:
        end = math.ceil(45 * math.sqrt(mechanism.variance)) + 20
        return np.arange(-end, end + 1.0), 1.0
    step = width * math.sqrt(mechanism.variance) / count
    return (np.arange(count) + 0.5 - count / 2) * step, step


@pytest.mark.parametrize("mechanism", WHOLE + FLOATS, ids=repr)
def test_it_sums_to_one_and_has_the_variance_and_the_error_that_are_claimed(mechanism):
    places, step = cells(mechanism)
    mass = mechanism.density(places) * step
    assert mass.sum() == pytest.approx(1, abs=2e-4)
    assert (mass * places**2).sum() == pytest.approx(mechanism.variance, rel=5e-4)
    width = mechanism.error(0.95)
    assert mass[np.abs(places) <= width].sum() >= 0.95 - 2e-4
    assert mass[np.abs(places) <= width - (1 if mechanism in WHOLE else 1e-2 * width)].sum() < 0.95


@pytest.mark.parametrize("mechanism", WHOLE + FLOATS, ids=repr)
def test_it_moves_with_the_value_and_has_a_logarithm(mechanism):
    places = np.array([[-3.0, 0.0], [1.0, 7.0]])
    found = mechanism.density(places, value=1)
    assert found.shape == (2, 2)
    np.testing.assert_allclose(found, mechanism.density(places - 1), rtol=1e-6)
    np.testing.assert_allclose(np.exp(mechanism.log_density(places)), mechanism.density(places), rtol=1e-9)
    assert isinstance(mechanism.density(0), float)
    assert mechanism.density(3) == mechanism.density(-3)


def test_far_tails_have_a_logarithm_still():
    assert sf.Laplace(1, 1).log_density(1e6) == pytest.approx(-1e6 - math.log(2))
    assert sf.Gaussian(sigma=1, sensitivity=1).log_density(1e3) == pytest.approx(stats.norm.logpdf(1e3))
    assert sf.Geometric(1, 1).log_density(5000) == pytest.approx(-5000 + math.log(math.tanh(0.5)))


@pytest.mark.parametrize("mechanism", WHOLE[:4], ids=repr)
def test_what_is_drawn_has_this_law(mechanism):
    with seeded(9):
        draws = mechanism.release(np.zeros(20_000, dtype=np.int64))
    assert_discrete(draws, lambda k: mechanism.density(k))
    assert mechanism.density([0.5, 1.25]).tolist() == [0, 0]
    with pytest.raises(AssertionError):
        assert_discrete(2 * draws, lambda k: mechanism.density(k))


@pytest.mark.parametrize("mechanism", FLOATS, ids=repr)
def test_what_is_drawn_on_a_grid_has_this_law(mechanism):
    """How many draws fall in each of thirty-two cells, beside the density's integral over it."""
    with seeded(10):
        draws = np.array([mechanism.release(0.0) for _ in range(4000)])
    places, step = cells(mechanism)
    summed = np.cumsum(mechanism.density(places) * step)
    edges = np.interp(np.linspace(0, summed[-1], 33)[1:-1], summed, places)
    found = np.bincount(np.searchsorted(edges, draws), minlength=32)
    assert stats.chisquare(found).pvalue > 1e-9
    assert stats.chisquare(np.bincount(np.searchsorted(edges, draws / 2), minlength=32)).pvalue < 1e-9


@pytest.mark.parametrize("mechanism", PURE, ids=repr)
def test_neighbouring_densities_are_at_most_a_factor_of_e_to_the_epsilon_apart(mechanism):
    epsilon, moved = float(mechanism.epsilon), float(mechanism.sensitivity)
    places = np.arange(-50.0, 51) if mechanism in (*WHOLE, PURE[2]) else np.linspace(-20, 20, 4001)
    ratio = mechanism.log_density(places) - mechanism.log_density(places, value=moved)
    assert np.abs(ratio).max() <= epsilon * (1 + 1e-9)
    assert np.abs(ratio).max() > epsilon * (1 - 1e-6)
    half = type(mechanism)(mechanism.epsilon * 2, mechanism.sensitivity)  # half the noise, planted
    ratio = half.log_density(places) - half.log_density(places, value=moved)
    assert np.abs(ratio).max() > 1.9 * epsilon


def test_truncated_noise_has_no_density_beyond_its_bound():
    mechanism = sf.TruncatedLaplace(1, "1e-3", sensitivity=1)
    assert mechanism.density(mechanism.bound * 1.001) == 0
    assert mechanism.log_density(mechanism.bound * 1.001) == -math.inf
    assert mechanism.density(mechanism.bound) > 0


@pytest.mark.parametrize("at", ["far", None, math.nan, [0, math.nan], [object()]])
def test_a_density_is_taken_at_numbers(at):
    with pytest.raises(InvalidParameter):
        sf.Laplace(1, 1).density(at)
    with pytest.raises(InvalidParameter):
        sf.Laplace(1, 1).log_density(0, value=math.inf)
