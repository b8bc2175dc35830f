import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.smooth_sensitivity import SmoothSensitivity, median_of
from sfumato.testing import assert_continuous, seeded

PURE = [SmoothSensitivity(e, 100, noise=n) for e in ("0.1", 1, 4) for n in ("student", "cauchy")]
APPROXIMATE = [SmoothSensitivity(e, 100, delta=d) for e in ("0.1", 1, 5) for d in ("1e-9", "1e-5", "0.01")]
LAWS = {"student": stats.t(4), "cauchy": stats.cauchy(), "laplace": stats.laplace()}


def scale(mechanism, smooth):
    return float(mechanism._scale(Fraction(smooth)))


def pairs(mechanism, rough):
    """Neighbours at the limit of the two conditions: smooth bounds 1 and e^±λ, a shift by the smaller one."""
    for share in (1.0, 0.5, 0.1, 0.0):
        for sign in (1, -1):
            other = math.exp(sign * share * rough)
            yield scale(mechanism, 1.0), scale(mechanism, other), min(1.0, other)


def worst_log_ratio(law, here, there, shift):
    z = np.concatenate([-np.logspace(9, -9, 4000), np.logspace(-9, 9, 4000)]) * here
    z = np.concatenate([z, z + shift])
    logs = law.logpdf(z / here) - math.log(here) - law.logpdf((z - shift) / there) + math.log(there)
    return np.abs(logs).max()


@pytest.mark.parametrize("mechanism", PURE, ids=repr)
def test_no_neighbours_are_told_apart_by_more_than_epsilon(mechanism):
    law = LAWS[mechanism.noise]
    worst = [worst_log_ratio(law, *pair) for pair in pairs(mechanism, mechanism.beta)]
    assert max(worst) <= float(mechanism.epsilon)
    assert max(worst) > 0.999 * float(mechanism.epsilon)


@pytest.mark.parametrize("mechanism", PURE, ids=repr)
def test_twice_the_roughness_breaks_epsilon(mechanism):
    law = LAWS[mechanism.noise]
    worst = [worst_log_ratio(law, *pair) for pair in pairs(mechanism, 2.2 * mechanism.beta)]
    assert max(worst) > float(mechanism.epsilon)


@pytest.mark.parametrize("mechanism", PURE, ids=repr)
def test_noise_and_smoothness_are_no_worse_than_published(mechanism):
    # Half of ε for the shift at (d+1)/(2√d) each, half for the dilation at d+1 each.
    degrees = {"student": 4, "cauchy": 1}[mechanism.noise]
    half = float(mechanism.epsilon) / 2
    assert mechanism.beta >= half / (degrees + 1)
    assert 1 / scale(mechanism, 1.0) >= half / ((degrees + 1) / (2 * math.sqrt(degrees))) * 1.4


def hockey_stick(here, there, shift, epsilon):
    """∫ (p − e^ε·q)+ for Laplace laws: exact up to quadrature, as a fraction of the tail where it lives."""

    def excess(z):
        p = math.exp(-abs(z) / here) / (2 * here)
        q = math.exp(-abs(z - shift) / there) / (2 * there)
        return max(0.0, p - math.exp(epsilon) * q)

    far = 80 * here
    points = sorted({0.0, shift, *np.linspace(-far, far, 400).tolist()})
    return math.fsum(integrate.quad(excess, a, b, epsabs=0)[0] for a, b in pairwise(points))


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("mechanism", APPROXIMATE[3:], ids=repr)
def test_laplace_noise_keeps_delta_and_nearly_uses_it(mechanism):
    epsilon, delta = float(mechanism.epsilon), float(mechanism.delta)
    found = [
        hockey_stick(here, there, sign * shift, epsilon)
        for here, there, shift in pairs(mechanism, mechanism.beta)
        for sign in (1, -1)
    ]
    assert max(found) <= delta
    assert max(found) > delta / 20
    # The planted bug: half as smooth a bound.
    here, there, shift = (
        scale(mechanism, 1.0),
        scale(mechanism, math.exp(-2 * mechanism.beta)),
        math.exp(-2 * mechanism.beta),
    )
    assert max(hockey_stick(here, there, sign * shift, epsilon) for sign in (1, -1)) > delta


@pytest.mark.parametrize("mechanism", APPROXIMATE, ids=repr)
def test_the_smoothness_asked_for_is_no_stricter_than_the_published_one(mechanism):
    assert mechanism.beta >= float(mechanism.epsilon) / (2 * math.log(2 / float(mechanism.delta)))


@pytest.mark.parametrize("mechanism", [PURE[2], PURE[3], APPROXIMATE[4]], ids=repr)
def test_releases_follow_the_law(mechanism):
    smooth = 0.25
    with seeded(1):
        drawn = np.array([mechanism.release(5.0, smooth) for _ in range(2000)]) - 5.0
    law = LAWS[mechanism.noise]
    assert_continuous(drawn / scale(mechanism, smooth), law.cdf)
    with pytest.raises(AssertionError):
        assert_continuous(drawn / scale(mechanism, 1.4 * smooth), law.cdf)


@pytest.mark.parametrize("mechanism", [PURE[2], PURE[3], APPROXIMATE[4]], ids=repr)
def test_the_grid_shows_nothing_of_the_private_scale(mechanism):
    step = float(mechanism._step)
    with seeded(2):
        for smooth in (1e-30, 0.0, 1e-3, 1.0, 90.0, 1e9):
            for _ in range(20):
                answer = mechanism.release(math.pi, smooth)
                assert (answer / step).is_integer()
    # A bound of nothing, or a nonsensical one, still gives noise of at least a grid step's scale.
    assert scale(mechanism, 0) == scale(mechanism, -5) == scale(mechanism, step) > 0
    # And one above the global sensitivity counts as that.
    assert scale(mechanism, 1e9) == scale(mechanism, 100)


def test_no_table_is_built_for_a_private_scale():
    from sfumato import random

    caches = [getattr(random, name) for name in dir(random) if hasattr(getattr(random, name), "cache_info")]
    with seeded(3):
        for mechanism in (PURE[2], APPROXIMATE[4]):
            mechanism.release(1.0, 0.5)
        before = [cache.cache_info().currsize for cache in caches]
        for mechanism in (PURE[2], PURE[3], APPROXIMATE[4]):
            for smooth in (0.1, 0.77, 3.3):
                mechanism.release(1.0, smooth)
    assert [cache.cache_info().currsize for cache in caches] == before


@pytest.mark.parametrize("mechanism", [PURE[2], PURE[3], APPROXIMATE[4]], ids=repr)
def test_error_is_the_quantile_for_a_supposed_scale_and_refuses_to_know_the_true_one(mechanism):
    with pytest.raises(InvalidParameter, match="private"):
        mechanism.error(0.95)
    width = mechanism.error(0.95, smooth=2)
    law = LAWS[mechanism.noise]
    exact = law.isf(0.025) * scale(mechanism, 2)
    assert exact <= width == pytest.approx(exact, rel=1e-9)
    assert mechanism.error(0.95, smooth=2, size=3) > width
    assert mechanism.variance is None


def test_losses_and_kinds():
    assert SmoothSensitivity(1, 1).loss.pure == 1
    assert SmoothSensitivity(1, 1, delta="1e-6").loss.approximate == (1, Fraction(1, 10**6))
    assert SmoothSensitivity(1, 1).noise == "student"
    assert SmoothSensitivity(1, 1, delta="1e-6").noise == "laplace"
    assert SmoothSensitivity(1, 1).bias == 0
    assert SmoothSensitivity(1, 1, noise="cauchy").bias is None
    assert repr(SmoothSensitivity(1, 2)) == "SmoothSensitivity(epsilon=1, bound=2, delta=0, noise='student')"


def test_a_private_median_beats_the_global_sensitivity():
    values = np.random.default_rng(0).normal(50, 5, 4001)
    mechanism = SmoothSensitivity(1, 100)
    median = median_of(values, 0, upper=100)
    smooth = median.smooth(mechanism.beta)
    assert mechanism.error(0.95, smooth=smooth) < 2
    with seeded(4):
        answers = [mechanism.release(median.value, smooth) for _ in range(50)]
    assert abs(np.median(answers) - median.value) < 1


def test_unusable_input_is_refused():
    for parameters in (
        {"delta": "1e-6", "noise": "student"},
        {"noise": "laplace"},
        {"noise": "gauss"},
        {"delta": 1},
    ):
        with pytest.raises(InvalidParameter):
            SmoothSensitivity(1, 1, **parameters)
    for epsilon, bound in ((0, 1), (1, 0), ("1e-13", 1), (1, -1), (float("nan"), 1)):
        with pytest.raises(InvalidParameter):
            SmoothSensitivity(epsilon, bound)
    for value, smooth in (
        (float("nan"), 1.0),
        (1.0, float("nan")),
        (float("inf"), 1.0),
        (1.0, float("inf")),
        ("1", 1),
    ):
        with pytest.raises(InvalidValue):
            SmoothSensitivity(1, 1).release(value, smooth)


def test_a_negative_smooth_sensitivity_is_refused_and_none_is_not():
    for mechanism in (PURE[2], PURE[3], APPROXIMATE[4]):
        for smooth in (-5, -1e-300):
            with pytest.raises(InvalidValue, match="must be at least 0: use median_of") as refused:
                mechanism.release(1.0, smooth)
            assert "5" not in str(refused.value)
        assert np.isfinite(mechanism.release(1.0, 0))


def test_prices_without_noise_or_smoothness_are_refused_at_once():
    for noise in ("student", "cauchy"):
        for epsilon in (1001, "1e20", "1e290"):
            with pytest.raises(InvalidParameter, match="above 1000 leaves no noise"):
                SmoothSensitivity(epsilon, 1, noise=noise)
        assert SmoothSensitivity(1000, 1, noise=noise).beta > 0
    for epsilon in ("1e-12", "1e-200", "1e-290"):
        for delta in (0, "1e-6"):
            with pytest.raises(InvalidParameter, match="use a larger one"):
                SmoothSensitivity(epsilon, 1, delta=delta)
