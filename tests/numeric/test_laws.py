"""Every law against its definition in 26-digit arithmetic: profile, moments, decay, Rényi divergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, NotCertified
from sfumato.numeric.laws import (
    BOUNDED_RANGE,
    DISCRETE_GAUSSIAN,
    DISCRETE_LAPLACE,
    DOUBLE,
    GAUSSIAN,
    GAUSSIAN_MIXTURE_ADD,
    GAUSSIAN_MIXTURE_REMOVE,
    K_RESPONSE,
    LAPLACE,
    PURE,
    SAMPLED_GAUSSIAN_ADD,
    SAMPLED_GAUSSIAN_REMOVE,
    SAMPLED_LAPLACE_ADD,
    SAMPLED_LAPLACE_REMOVE,
    Law,
    Profile,
    Term,
)

Real = Any  # an mpmath number


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mp.workdps(26):
        yield


@dataclass(frozen=True)
class Losses:
    """A privacy loss from first principles: atoms (loss, probability) and a density with its breakpoints."""

    atoms: tuple[tuple[Real, Real], ...] = ()
    density: Callable[[Real], Real] | None = None  # of a variable x under P
    loss: Callable[[Real], Real] = lambda x: x
    breaks: tuple[Real, ...] = ()
    infinity: Real = 0
    root: Callable[[Real], Real | None] = lambda _: None  # where the loss equals a given number
    step: Real | None = None  # of a trapezoid rule, where the density is smooth on the whole line

    def expect(self, f: Callable[[Real], Real], breaks: tuple[Real, ...] = ()) -> Real:
        total = mp.fsum(p * f(x) for x, p in self.atoms)
        if self.density is not None:
            points = sorted({*self.breaks, *(b for b in breaks if self.breaks[0] < b < self.breaks[-1])})
            total += mp.quad(lambda x: self.density(x) * f(self.loss(x)), points)  # type: ignore[misc]
        return total

    def delta(self, epsilon: Real) -> Real:
        where = self.root(epsilon)
        kink = () if where is None else (where,)
        finite = self.expect(lambda x: 1 - mp.exp(epsilon - x) if x > epsilon else mp.mpf(0), kink)
        return finite + self.infinity

    def moment(self, z: Real) -> Real:
        return self.smooth(lambda x: mp.exp(z * x))

    def smooth(self, f: Callable[[Real], Real]) -> Real:
        """As `expect`, for a smooth f: on the whole line the trapezoid rule converges geometrically."""
        if self.density is None or self.atoms or self.step is None:
            return self.expect(f)
        return self.step * mp.fsum(density * f(loss) for density, loss in self._nodes)

    @cached_property
    def _nodes(self) -> list[tuple[Real, Real]]:
        assert self.density is not None
        nodes = mp.arange(self.breaks[0], self.breaks[-1], self.step)
        return [(self.density(x), self.loss(x)) for x in nodes]


def _laplace(eps: float) -> Losses:
    e = mp.mpf(eps)
    return Losses(
        ((e, mp.mpf(1) / 2), (-e, mp.exp(-e) / 2)),
        lambda x: mp.exp((x - e) / 2) / 4,
        lambda x: x,
        (-e, 0, e),
        0,
        lambda x: x,
    )


def _response(eps: float, k: float = 2, infinity: float = 0) -> Losses:
    e, scale = mp.mpf(eps), (1 - mp.mpf(infinity)) / (mp.exp(mp.mpf(eps)) + k - 1)
    return Losses(
        ((e, mp.exp(e) * scale), (mp.mpf(0), (k - 2) * scale), (-e, scale)), infinity=mp.mpf(infinity)
    )


def _normal(shifts: list[float], weights: list[float], sigma: float, remove: bool) -> Losses:
    s, p, sd = [mp.mpf(x) for x in shifts], [mp.mpf(x) for x in weights], mp.mpf(sigma)

    def ratio(x: Real) -> Real:
        return mp.log(
            mp.fsum(w * mp.exp((2 * x * a - a * a) / (2 * sd * sd)) for a, w in zip(s, p, strict=True))
        )

    def density(x: Real) -> Real:
        base = mp.npdf(x, 0, sd)
        return base * mp.exp(ratio(x)) if remove else base

    def root(target: Real) -> Real | None:
        low, high = -60 * sd, 60 * sd + 10
        goal = target if remove else -target
        if not ratio(low) < goal < ratio(high):
            return None
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (low, middle) if ratio(middle) > goal else (middle, high)
        return low

    loss = ratio if remove else lambda x: -ratio(x)
    edges = tuple(mp.linspace(-13 * sd, 13 * sd + 4 * max(s), 8))
    return Losses(density=density, loss=loss, breaks=edges, root=root, step=sd * sd / (8 * (max(s) + sd)))


def _sampled_laplace(q: float, eps: float, remove: bool) -> Losses:
    inner, rate = _laplace(eps), mp.mpf(q)

    def mixed(x: Real) -> Real:
        return mp.log(1 - rate + rate * mp.exp(x))

    # Under Q every atom and density is weighted by e^-loss; under the mixture by w times that.
    def weight(x: Real) -> Real:
        return mp.exp(-x) * (mp.exp(mixed(x)) if remove else 1)

    sign = 1 if remove else -1
    atoms = tuple((sign * mixed(x), p * weight(x)) for x, p in inner.atoms)
    density = inner.density
    assert density is not None

    def root(target: Real) -> Real | None:
        y = (mp.exp(sign * target) - 1 + rate) / rate
        return mp.log(y) if y > 0 else None

    return Losses(atoms, lambda x: density(x) * weight(x), lambda x: sign * mixed(x), inner.breaks, 0, root)


def _discrete_laplace(rate: float, shift: float) -> Losses:
    a = mp.mpf(rate)
    norm = (1 - mp.exp(-a)) / (1 + mp.exp(-a))
    pairs = [(a * (abs(k - int(shift)) - abs(k)), norm * mp.exp(-a * abs(k))) for k in range(-150, 150)]
    return Losses(tuple(pairs))


def _discrete_gaussian(variance: float, shift: float) -> Losses:
    v, s = mp.mpf(variance), int(shift)
    reach = int(16 * math.sqrt(variance)) + 8 * s + 8
    mass = {k: mp.exp(-mp.mpf(k * k) / (2 * v)) for k in range(-reach, reach + 1)}
    total = mp.fsum(mass.values())
    return Losses(tuple(((s * s + 2 * s * k) / (2 * v), m / total) for k, m in mass.items()))


def _bounded_range(eps: float) -> Losses:
    e = mp.mpf(eps)
    return Losses((), lambda x: mp.exp(x / 2) / (4 * mp.sinh(e / 2)), lambda x: x, (-e, 0, e), 0, lambda x: x)


MIXED = (1.0, 0.0, 1.0, 2.0, 0.2, 0.6, 0.2)

CASES: list[tuple[Law, tuple[float, ...], Callable[[], Losses]]] = [
    (GAUSSIAN, (0.7,), lambda: _normal([0.7], [1.0], 1.0, True)),
    (LAPLACE, (0.8,), lambda: _laplace(0.8)),
    (PURE, (0.6,), lambda: _response(0.6)),
    (DOUBLE, (0.6, 0.01), lambda: _response(0.6, 2, 0.01)),
    (K_RESPONSE, (0.9, 5.0), lambda: _response(0.9, 5)),
    (DISCRETE_LAPLACE, (0.5, 4.0), lambda: _discrete_laplace(0.5, 4)),
    (DISCRETE_LAPLACE, (1.0, 1.0), lambda: _discrete_laplace(1.0, 1)),
    (DISCRETE_GAUSSIAN, (1.0, 1.0), lambda: _discrete_gaussian(1.0, 1)),
    (DISCRETE_GAUSSIAN, (0.1, 1.0), lambda: _discrete_gaussian(0.1, 1)),
    (DISCRETE_GAUSSIAN, (30.0, 3.0), lambda: _discrete_gaussian(30.0, 3)),
    (BOUNDED_RANGE, (1.3,), lambda: _bounded_range(1.3)),
    (SAMPLED_GAUSSIAN_REMOVE, (0.3, 1.0), lambda: _normal([0.0, 1.0], [0.7, 0.3], 1.0, True)),
    (SAMPLED_GAUSSIAN_ADD, (0.3, 1.0), lambda: _normal([0.0, 1.0], [0.7, 0.3], 1.0, False)),
    (SAMPLED_GAUSSIAN_REMOVE, (0.01, 0.6), lambda: _normal([0.0, 1.0], [0.99, 0.01], 0.6, True)),
    (SAMPLED_GAUSSIAN_ADD, (0.01, 0.6), lambda: _normal([0.0, 1.0], [0.99, 0.01], 0.6, False)),
    (SAMPLED_LAPLACE_REMOVE, (0.2, 1.1), lambda: _sampled_laplace(0.2, 1.1, True)),
    (SAMPLED_LAPLACE_ADD, (0.2, 1.1), lambda: _sampled_laplace(0.2, 1.1, False)),
    (GAUSSIAN_MIXTURE_REMOVE, MIXED, lambda: _normal([0.0, 1.0, 2.0], [0.2, 0.6, 0.2], 1.0, True)),
    (GAUSSIAN_MIXTURE_ADD, MIXED, lambda: _normal([0.0, 1.0, 2.0], [0.2, 0.6, 0.2], 1.0, False)),
]
CASES = [(law, parameters, cache(losses)) for law, parameters, losses in CASES]  # one truth for all tests
IDS = [f"{law.name}-{parameters}" for law, parameters, _ in CASES]
EPSILONS = (-0.7, 0.0, 0.05, 0.55, 3.0)


@pytest.mark.parametrize(("law", "parameters", "losses"), CASES, ids=IDS)
def test_profile_contains_the_truth_and_is_tight(
    law: Law, parameters: tuple[float, ...], losses: Callable[[], Losses]
) -> None:
    truth = losses()
    lower, upper = law.bounds(np.array(EPSILONS), parameters)
    assert np.array_equal(law.delta(np.array(EPSILONS), parameters), upper)
    for epsilon, low, high in zip(EPSILONS, lower, upper, strict=True):
        exact = truth.delta(mp.mpf(epsilon))
        # What the reference's own quadrature may be off by.
        noise = mp.mpf(10) ** -19
        assert low <= exact + noise, epsilon
        assert exact <= high + noise, epsilon
        assert high - low <= 1e-12 * exact + 2e-15, epsilon


@pytest.mark.parametrize(("law", "parameters", "losses"), CASES, ids=IDS)
def test_moments_err_by_less_than_they_say(
    law: Law, parameters: tuple[float, ...], losses: Callable[[], Losses]
) -> None:
    truth = losses()
    at = cache(lambda real: truth.moment(mp.mpf(real)))
    z = np.array([0.25, 3.0, 0.25 + 2j, 3.0 - 25j])
    row = np.array([parameters])
    values = law.log_mgf(z, row)[:, 0]
    errors = law.mgf_error(z, row, np.ones(1))
    for point, value, error in zip(z, values, errors, strict=True):
        scale = at(point.real)
        exact = truth.moment(mp.mpc(point)) if point.imag else scale
        difference = abs(mp.exp(mp.mpc(complex(value))) - exact) / scale
        assert difference <= error, point
        assert error < 1e-10, "a bound that loose would hide a mistake"
    real = law.log_mgf(np.array([3.0]), row)
    assert real.dtype == np.float64
    assert real[0, 0] == pytest.approx(values[1].real, rel=1e-13)
    # Counts multiply the error.
    assert law.mgf_error(z, row, np.array([7.0])) == pytest.approx(7 * errors)


@pytest.mark.parametrize(("law", "parameters", "losses"), CASES, ids=IDS)
def test_decay_bounds_every_later_frequency(
    law: Law, parameters: tuple[float, ...], losses: Callable[[], Losses]
) -> None:
    del losses
    row = np.array([parameters])
    for c in (0.3, 2.0, 11.0):
        edges = np.array([0.5, 3.0, 20.0, 90.0])
        bounds = law.log_decay(np.full(4, c), edges, row)[:, 0]
        assert np.all(bounds <= 0)
        assert np.all(np.diff(bounds) <= 1e-12), "a later start cannot decay less"
        times = np.concatenate([np.geomspace(0.5, 300.0, 220), np.linspace(0.5, 60.0, 200)])
        with np.errstate(divide="ignore"):
            ratios = law.log_mgf(c + 1j * times, row)[:, 0].real - law.log_mgf(np.array([c]), row)[0, 0]
        error = law.mgf_error(c + 1j * times, row, np.ones(1))
        for edge, bound in zip(edges, bounds, strict=True):
            beyond = times >= edge
            assert np.all(np.exp(ratios[beyond]) <= math.exp(bound) + 2 * error[beyond]), (c, edge)


def test_decay_of_smooth_laws_is_not_trivial() -> None:
    for law, row in (
        (GAUSSIAN, (0.7,)),
        (LAPLACE, (0.8,)),
        (BOUNDED_RANGE, (1.3,)),
        (SAMPLED_GAUSSIAN_REMOVE, (0.3, 1.0)),
        (SAMPLED_GAUSSIAN_ADD, (0.3, 1.0)),
        (SAMPLED_LAPLACE_REMOVE, (0.2, 1.1)),
        (GAUSSIAN_MIXTURE_REMOVE, MIXED),
    ):
        assert law.log_decay(np.array([2.0]), np.array([20.0]), np.array([row]))[0, 0] < -0.05, law.name


@settings(max_examples=60, deadline=None)
@given(exponent=st.floats(-9, 2.3), ratio=st.floats(0, 40), sign=st.sampled_from((-1, 1)), high=st.booleans())
def test_gaussian_profile_keeps_its_digits_everywhere(
    exponent: float, ratio: float, sign: int, high: bool
) -> None:
    mu = 10.0**exponent
    epsilon = sign * mu * ratio + (mu * mu / 2 if high else 0)
    with mp.workdps(80):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        truth = (
            mp.erfc((e / m - m / 2) / mp.sqrt(2)) - mp.exp(e) * mp.erfc((e / m + m / 2) / mp.sqrt(2))
        ) / 2
        low, up = (mp.mpf(float(x)) for x in GAUSSIAN.bounds(epsilon, (mu,)))
        assert low <= truth <= up
        if truth > 1e-290:
            assert up <= truth * (1 + mp.mpf("2e-11"))


@settings(max_examples=80, deadline=None)
@given(
    exponent=st.floats(-9, 2.3),
    ratio=st.floats(0, 40),
    sign=st.sampled_from((-1, 1)),
    distance=st.floats(-16, 0),
    side=st.sampled_from((-1, 0, 1)),
)
def test_gaussian_bounds_hold_around_a_point(
    exponent: float, ratio: float, sign: int, distance: float, side: int
) -> None:
    mu, moved = 10.0**exponent, 10.0**distance
    epsilon = sign * mu * ratio
    low, up = (mp.mpf(float(x[0])) for x in GAUSSIAN.around(np.array([epsilon]), np.array([moved]), mu))
    with mp.workdps(80):
        # At either end of the interval, with a mu that is off by 2 U to the same side.
        m, e = mp.mpf(mu) * (1 - side * mp.mpf(2) ** -52), mp.mpf(epsilon) + side * mp.mpf(moved)
        truth = (
            mp.erfc((e / m - m / 2) / mp.sqrt(2)) - mp.exp(e) * mp.erfc((e / m + m / 2) / mp.sqrt(2))
        ) / 2
        assert low <= truth <= up


@pytest.mark.parametrize("delta", ["1e-100", "1e-250", "1e-300"])
def test_far_tails_are_neither_zero_nor_garbage(delta: str) -> None:
    for law, parameters, epsilon in (
        (GAUSSIAN, (1.0,), {"1e-100": 21.6, "1e-250": 34.3, "1e-300": 37.5}[delta]),
        (SAMPLED_GAUSSIAN_REMOVE, (0.01, 1.0), {"1e-100": 17.0, "1e-250": 29.5, "1e-300": 32.5}[delta]),
    ):
        low, up = law.bounds(epsilon, parameters)
        assert 0 < low <= up <= low * (1 + 1e-10)
    assert GAUSSIAN.delta(60.0, (1.0,)) > 0, "positive truth below the least float is rounded up to it"
    assert GAUSSIAN.delta(math.inf, (1.0,)) == 0


def test_pure_laws_are_exactly_zero_from_their_largest_loss() -> None:
    for law, parameters in (
        (LAPLACE, (0.1,)),
        (PURE, (0.1,)),
        (K_RESPONSE, (0.1, 3.0)),
        (DISCRETE_LAPLACE, (0.1, 3.0)),
        (BOUNDED_RANGE, (0.1,)),
        (SAMPLED_LAPLACE_REMOVE, (0.2, 1.0)),
        (SAMPLED_LAPLACE_ADD, (0.2, 1.0)),
    ):
        top = law.support(parameters)[1]
        assert law.delta(np.array([top, top + 1]), parameters).tolist() == [0.0, 0.0], law.name
        assert law.delta(top * (1 - 1e-9), parameters) > 0, law.name
    assert DOUBLE.delta(np.array([0.1, 5.0]), (0.1, 0.01)).tolist() == [0.01, 0.01]
    assert DOUBLE.infinity((0.1, 0.01)) == 0.01


@pytest.mark.parametrize("sigma", [1500, 2500])
@pytest.mark.parametrize("shift", [1, 2000])
def test_large_discrete_gaussian_from_tables_and_from_euler_maclaurin(sigma: int, shift: int) -> None:
    # Up to 2000 tails are tables, beyond that a series; the reference adds up every integer.
    k = np.arange(-40 * sigma, 40 * sigma + 1, dtype=np.float64)
    mass = np.exp(-k * k / (2 * sigma**2))
    total = math.fsum(mass)
    losses = (shift**2 + 2 * shift * k) / (2 * sigma**2)
    for epsilon in (-0.5 * shift / sigma, 0.0, 2.0 * shift / sigma):
        exact = math.fsum(mass * np.maximum(-np.expm1(epsilon - losses), 0.0)) / total
        low, up = DISCRETE_GAUSSIAN.bounds(epsilon, (float(sigma**2), float(shift)))
        assert low * (1 - 1e-12) <= exact <= up * (1 + 1e-12)
        assert up - low <= 1e-8 * exact


def test_discrete_gaussian_is_not_dominated_by_the_continuous_one() -> None:
    # The design's trap: at sigma = sensitivity = 1, delta(1) is .141 and not .127.
    assert float(DISCRETE_GAUSSIAN.delta(1.0, (1.0, 1.0))) == pytest.approx(0.14138, abs=1e-4)
    assert float(GAUSSIAN.delta(1.0, (1.0,))) == pytest.approx(0.12693674, abs=1e-8)


@pytest.mark.parametrize(("law", "parameters", "losses"), CASES, ids=IDS)
def test_renyi_is_from_above_with_the_right_limits(
    law: Law, parameters: tuple[float, ...], losses: Callable[[], Losses]
) -> None:
    truth = losses()
    if truth.infinity:
        assert law.renyi(2.0, parameters) == math.inf
        return
    for alpha in (1.5, 2.0, 7.0):
        exact = mp.log(truth.moment(mp.mpf(alpha) - 1)) / (mp.mpf(alpha) - 1)
        if law is BOUNDED_RANGE:
            assert law.renyi(alpha, parameters) <= exact * (1 + 1e-12), (
                "one position is less than their supremum"
            )
        else:
            assert exact <= law.renyi(alpha, parameters) <= exact * (1 + mp.mpf("1e-9"))
    divergence = truth.smooth(lambda x: x)
    if law is not BOUNDED_RANGE:
        assert divergence <= law.renyi(1.0, parameters) <= divergence * (1 + mp.mpf("1e-4"))
    top = law.support(parameters)[1]
    assert law.renyi(math.inf, parameters) == top
    assert law.renyi(1.0, parameters) <= law.renyi(1.0001, parameters) <= law.renyi(3.0, parameters) <= top


def test_renyi_of_bounded_range_matches_the_published_order_one() -> None:
    # Dong, Durfee, Rogers 2020 as tabulated by dp_accounting: order 1 at epsilon 1 is 0.123301561.
    assert BOUNDED_RANGE.renyi(1.0, (1.0,)) == pytest.approx(0.123301561, rel=2e-6)
    assert BOUNDED_RANGE.renyi(1.0, (1.0,)) >= 0.123301561 - 1e-9
    best = max(
        float(mp.log(p * mp.exp(4 * t) + (1 - p) * mp.exp(4 * (t - 1)))) / 4
        for t in np.linspace(0.001, 0.999, 999)
        for p in [(math.e - math.exp(t)) / (math.e - 1)]
    )
    assert best <= BOUNDED_RANGE.renyi(5.0, (1.0,)) <= best * (1 + 1e-5)


def test_support_holds_every_loss() -> None:
    assert SAMPLED_GAUSSIAN_REMOVE.support((0.01, 1.0))[0] <= math.log1p(-0.01)
    assert SAMPLED_GAUSSIAN_ADD.support((0.01, 1.0))[1] >= -math.log1p(-0.01)
    assert SAMPLED_GAUSSIAN_REMOVE.support((0.01, 1.0))[1] == math.inf
    assert SAMPLED_LAPLACE_REMOVE.support((0.2, 1.0))[1] >= math.log1p(0.2 * math.expm1(1.0))
    assert GAUSSIAN.support((1.0,)) == (-math.inf, math.inf)


def test_sampling_at_rate_one_is_no_sampling() -> None:
    x = np.array([-1.0, 0.0, 0.5, 3.0])
    for law in (SAMPLED_GAUSSIAN_REMOVE, SAMPLED_GAUSSIAN_ADD):
        assert law.delta(x, (1.0, 2.0)) == pytest.approx(GAUSSIAN.delta(x, (0.5,)), rel=1e-12)
    for law in (SAMPLED_LAPLACE_REMOVE, SAMPLED_LAPLACE_ADD):
        assert law.delta(x, (1.0, 0.7)) == pytest.approx(LAPLACE.delta(x, (0.7,)), rel=1e-12, abs=1e-300)


def test_below_every_loss_the_profile_is_that_of_no_noise() -> None:
    # log(1 - q) and log(smallest weight) bound the losses of sampled laws on one side.
    for law, parameters in (
        (GAUSSIAN_MIXTURE_REMOVE, MIXED),
        (SAMPLED_GAUSSIAN_REMOVE, (0.3, 1.0)),
        (SAMPLED_LAPLACE_REMOVE, (0.3, 1.0)),
    ):
        low, up = law.bounds(np.array([-2.5, -40.0]), parameters)
        assert up == pytest.approx(-np.expm1([-2.5, -40.0]), rel=1e-11)
        assert np.all(low <= up)
    for law, parameters in (
        (GAUSSIAN_MIXTURE_ADD, MIXED),
        (SAMPLED_GAUSSIAN_ADD, (0.3, 1.0)),
        (SAMPLED_LAPLACE_ADD, (0.3, 1.0)),
    ):
        assert law.delta(np.array([1.7, 40.0, math.inf]), parameters).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(InvalidParameter, match="mixture"):
        GAUSSIAN_MIXTURE_REMOVE.delta(1.0, (1.0, -1.0, 1.0))


def test_profile_law_is_its_function_and_has_no_moments() -> None:
    law = Profile(lambda x: LAPLACE.delta(x, (1.0,)), "sample", 0.0, (-1.0, 1.0))
    low, up = law.bounds(np.array([0.5]), ())
    assert low == up == LAPLACE.delta(0.5, (1.0,))
    assert law.renyi(3.0, ()) == 1.0
    with pytest.raises(NotCertified, match="grid"):
        law.log_mgf(np.array([1.0]), np.zeros((1, 0)))
    assert law != Profile(law.curve, "sample", 0.0, (-1.0, 1.0))


def test_terms_refuse_nonsense() -> None:
    with pytest.raises(InvalidParameter, match="at least one event"):
        Term(PURE, (1.0,), 0)
    with pytest.raises(InvalidParameter, match="must be numbers"):
        Term(PURE, (math.nan,))
    term = Term(PURE, (np.float64(0.5),), 2)
    assert type(term.parameters[0]) is float
    assert term == Term(PURE, (0.5,), 2)
