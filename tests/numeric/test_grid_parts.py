"""The lemmas behind the grid, one by one, and the planted bugs that each of them is there to catch."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.numeric import grid, grid_dots, grid_fft
from sfumato.numeric.grid_fft import Copies, compose
from sfumato.numeric.grid_plan import Layout
from sfumato.numeric.laws.base import Floats, Term
from sfumato.numeric.laws.discrete_gaussian import DISCRETE_GAUSSIAN
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.laplace import LAPLACE
from sfumato.numeric.laws.profile import Profile
from sfumato.numeric.laws.pure import DOUBLE, PURE
from sfumato.numeric.laws.sampled import SAMPLED_GAUSSIAN_REMOVE
from sfumato.numeric.rounding import U


def profile(dots: grid_dots.Dots, epsilon: float) -> Fraction:
    """The profile of the float masses in exact arithmetic up to a 40-digit exponential."""
    n = len(dots.mass)
    total = Fraction(dots.infinity)
    with mpmath.workdps(40):
        for j, mass in enumerate(dots.mass.tolist()):
            loss = mpmath.mpf(dots.top) - mpmath.mpf(dots.width) * (n - 1 - j)
            if mass > 0.0 and loss > epsilon:
                weight = 1 - mpmath.exp(mpmath.mpf(epsilon) - loss)
                total += Fraction(mass) * Fraction(str(weight))
    return total


@pytest.mark.parametrize(
    ("law", "parameters", "top", "step", "count"),
    [
        (LAPLACE, (0.7,), 0.7, 0.011, 130),
        (GAUSSIAN, (1.0,), 9.0, 0.07, 250),
        (SAMPLED_GAUSSIAN_REMOVE, (0.1, 0.8), 8.0, 0.05, 180),
        (DOUBLE, (0.5, 1e-4), 0.5, 0.03, 40),
        (PURE, (0.31,), 0.31, 0.1, 9),
    ],
)
def test_dots_dominate_and_are_no_looser_than_said(law, parameters, top, step, count) -> None:  # type: ignore[no-untyped-def]
    dots = grid_dots.connect(law, parameters, top, step, count=count)
    assert (dots.mass >= 0.0).all()
    for epsilon in np.linspace(top - step * count - 0.3, top + 0.2, 23):
        truth = float(law.bounds(float(epsilon), parameters)[0])
        assert profile(dots, float(epsilon)) >= Fraction(truth) * (1 - Fraction(1, 10**11))
    grid_points = top - step * np.arange(count)
    lower, upper = law.bounds(grid_points, parameters)
    slack, excess = dots.loose(1e-3)
    for x, high in list(zip(grid_points, upper, strict=True))[:: max(1, count // 12)]:
        if dots.zone and x < top - step * (count - dots.zone):
            continue
        assert float(profile(dots, float(x))) <= high * (1 + slack) + excess + 1e-13
    del lower


def test_rounding_to_the_nearest_point_would_fall_below() -> None:
    """The twin: atoms moved to their nearest grid point are no longer dominated."""
    eps, step = 0.104, 0.01
    keep = 1 / (1 + math.exp(-eps))
    nearest = round(eps / step) * step
    assert nearest < eps
    epsilon = 0.09
    truth = float(PURE.bounds(epsilon, (eps,))[0])
    assert keep * -math.expm1(epsilon - nearest) < truth
    dots = grid_dots.connect(PURE, (eps,), 0.2, step, count=60)
    assert float(profile(dots, epsilon)) >= truth


def test_without_the_hull_noise_would_pile_up() -> None:
    """The twin: noisy dots are not convex; their clipped masses add up to more than the law has."""
    place = np.arange(4001.0)
    unit = 1e-5
    curve = LAPLACE.bounds(0.02 - unit * (4000 - place), (0.5,))[1]
    noisy: Floats = curve * (1 + 4e-10 * np.abs(np.sin(1e3 * place)))
    kept = grid_dots.hull(place, noisy, unit)
    repaired = grid_dots.masses(place[kept], noisy[kept], unit)
    clipped = grid_dots.masses(place, noisy, unit)
    assert len(kept) < len(place)
    assert float(repaired.sum()) + noisy[-1] <= 1 + 1e-12
    assert float(clipped.sum()) + noisy[-1] > 1 + 1e-6


def test_the_hull_is_the_hull() -> None:
    """Against the quadratic definition: a corner lies strictly below every chord over it."""
    generator = np.random.Generator(np.random.PCG64(5))
    place = np.sort(generator.uniform(-2.0, 2.0, 40))
    curve = np.sort(generator.uniform(0.0, 0.9, 40))[::-1].copy()
    kept = set(grid_dots.hull(place, curve).tolist())
    x = np.concatenate(([0.0], np.exp(place)))
    y = np.concatenate(([1.0], curve))
    for i in range(1, 40):
        corner = all(
            y[i] < y[a] + (y[b] - y[a]) * (x[i] - x[a]) / (x[b] - x[a])
            for a in range(i)
            for b in range(i + 1, 41)
        )
        assert corner == (i - 1 in kept)
    assert 39 in kept


class Shaken(type(GAUSSIAN)):  # type: ignore[misc]
    """A Gaussian whose bounds are right, and rough: most of its dots are no corners."""

    __slots__ = ("share",)

    def __init__(self, share: float) -> None:
        self.share = share

    def bounds(self, epsilon, parameters):  # type: ignore[no-untyped-def]
        lower, upper = GAUSSIAN.bounds(epsilon, parameters)
        shake = np.random.default_rng(3).random(np.shape(upper))
        return lower, np.minimum(upper * (1 + self.share * shake), 1.0)


@pytest.mark.parametrize("rounds", [0, 1, 100])
@pytest.mark.parametrize("share", [1e-9, 1e-4])
def test_an_unfinished_hull_dominates_and_says_what_it_costs(
    rounds: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid_dots, "_HULLS", rounds)
    grid_dots.clear()
    dots = grid_dots.connect(Shaken(share), (1.0,), 9.0, 0.06, count=300)
    grid_dots.clear()
    for epsilon in (9.0 - 0.06 * np.arange(20, 290, 45)).tolist():
        lower, upper = (Fraction(float(end)) for end in GAUSSIAN.bounds(epsilon, (1.0,)))
        found = profile(dots, epsilon)
        assert found >= lower
        for slack, excess in dots.looseness:
            # Grid points are floats here: the profile falls by no more than 1 a unit.
            assert found <= (1 + Fraction(slack)) * upper + Fraction(excess) + Fraction(1, 10**14)


def test_masses_never_exceed_the_law_by_more_than_rounding() -> None:
    """The left end counts too: a lowest dot that is never removed adds 1e-11, which many events show."""
    for step in (1e-3, 1e-4, 1e-5):
        count = math.ceil(2.2 / step)
        dots = grid_dots.connect(SAMPLED_GAUSSIAN_REMOVE, (0.004, 1.0), 2.19, step, count=count)
        assert dots.surplus < 1e-13


def test_forgetting_the_atom_at_infinity_would_fall_below(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = [Term(DOUBLE, (0.5, 1e-3), 4)]
    truth = grid.delta(terms, 0.9).lower
    monkeypatch.setattr(grid_fft, "_infinity", lambda parts: (0.0, 0.0))
    layout = Layout(1.0 - 1e-15, 1.0, -2.1, 2.1, 1.0, 1.0)
    parts = [Copies(grid_dots.connect(DOUBLE, (0.5, 1e-3), 0.5, 1.0 - 1e-15, count=3), 4, 1, False, 1e-14)]
    assert compose(parts, layout, 0.1).upper(0.9)[0] < truth


def convolved(parts: list[Copies], epsilon: float) -> float:
    """The composed dots' profile by plain convolution: slow, positive, wrapping nothing."""
    law, low = np.ones(1), 0
    for part in parts:
        spread = np.zeros(part.stride * (len(part.dots.mass) - 1) + 1)
        spread[:: part.stride] = part.dots.mass
        for _ in range(part.count):
            law = np.convolve(law, spread)
            low -= len(spread) - 1
    top = sum(part.count * part.dots.top for part in parts)
    step = parts[0].dots.width / parts[0].stride
    loss = top + step * (low + np.arange(len(law)))
    kept = math.prod((1 - part.dots.infinity) ** part.count for part in parts)
    return float(law @ -np.expm1(np.minimum(epsilon - loss, 0.0))) + 1 - kept


def two_parts(step: float) -> list[Copies]:
    gaussian = grid_dots.connect(GAUSSIAN, (0.8,), 6.0, step, count=math.ceil(11 / step))
    laplace = grid_dots.connect(LAPLACE, (0.4,), 0.4, step, count=math.ceil(0.8 / step) + 2)
    return [Copies(gaussian, 3, 1, True, 0.0), Copies(laplace, 5, 1, True, 0.0)]


def test_tilted_transform_agrees_with_plain_convolution() -> None:
    parts = two_parts(0.02)
    for tilt, epsilon in ((0.5, 0.3), (3.0, 4.0), (7.0, 9.0)):
        layout = Layout(0.02, tilt, -22.0, 21.0, 1.0, 1.0)
        composed = compose(parts, layout, 1e-6)
        plain = convolved(parts, epsilon)
        assert composed.upper(epsilon)[0] == pytest.approx(plain, rel=1e-9)
        assert composed.upper(epsilon)[0] >= plain * (1 - 1e-11)
    deep = compose(parts, Layout(0.02, 12.0, -22.0, 21.0, 1.0, 1.0), 1e-20)
    assert deep.upper(15.0)[0] == pytest.approx(convolved(parts, 15.0), rel=1e-8)
    assert deep.upper(15.0)[0] < 1e-12


@pytest.mark.parametrize("tilt", [0.3, 2.0, 5.0])
@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (1.0, 4.0), (3.0, 9.0), (-6.0, 0.5)])
def test_too_small_a_window_stays_sound(tilt: float, low: float, high: float) -> None:
    """What wraps around or lies outside is bounded, however badly the window was placed."""
    parts = two_parts(0.05)
    composed = compose(parts, Layout(0.05, tilt, low, high, 1.5, 1.5), 1e-3)
    for epsilon in (0.0, 1.0, 2.0, 4.0, 6.0):
        plain = convolved(parts, epsilon)
        assert composed.upper(epsilon)[0] >= plain * (1 - 1e-11)
        assert composed.lower(epsilon) <= plain


def test_the_transforms_error_is_bounded() -> None:
    """Lemma 6 against extended precision: the bound holds, and is not absurd."""
    generator = np.random.Generator(np.random.PCG64(3))
    size = 4096
    for count in (1, 7, 100):
        mass = generator.exponential(size=300) ** 4
        mass /= mass.sum() * (1 + 4 * U)
        tilted = grid_fft._Tilted(mass, 0, 0.0)
        dots = grid_dots.Dots(0.0, 1.0, mass, 0.0, ((0.0, 0.0),), 0.0, 0)
        ours, noise = grid_fft._convolve([Copies(dots, count, 1, True, 0.0)], [tilted], size, 0)
        spectrum = np.fft.fft(np.concatenate((mass, np.zeros(size - 300))).astype(np.longdouble))
        exact = np.roll(np.fft.ifft(spectrum**count).real, -count * 299 % size)
        error = float(np.linalg.norm((ours - exact).astype(np.float64)))
        assert error <= noise
        assert noise <= 1e-10 * count


def test_the_kernel_of_lemma_seven() -> None:
    """f(y)·exp((y² + y√v + 1 + v/4)/2.2) ≤ 0.8·√v for both directions, all y ≥ 0 and √v ≤ 0.02."""
    y = np.concatenate((np.linspace(0.0, 3.0, 3001), np.linspace(3.0, 200.0, 2000)))
    for root in (1e-8, 1e-4, 1e-3, 0.01, 0.02):
        v = root * root
        variance = math.expm1(v)
        theta = np.maximum(1.0, y) / root
        exponential = -theta * y * root + (theta**2 + theta) * v / 2 - 1.0 - np.log(theta)
        for away in (np.expm1(y * root), -np.expm1(-y * root)):
            scarf = np.log(0.5 * variance) - np.log(np.sqrt(variance + away**2) + away)
            bound = np.minimum(scarf, exponential)
            assert (bound + (y * y + y * root + 1 + v / 4) / 2.2 <= math.log(0.8 * root)).all()


def test_spreading_really_costs_no_more_than_the_kernel() -> None:
    """Lemma 7 end to end: dots against the law itself, for one event and for several, on a coarse grid."""
    for count, step in ((1, 1e-3), (4, 1e-3), (9, 2e-3)):
        dots = grid_dots.connect(GAUSSIAN, (1.0,), 9.0, step, count=math.ceil(17 / step))
        total = math.sqrt(count)
        composed = compose(
            [Copies(dots, count, 1, True, 0.0)], Layout(step, 2.0, -16.0, 24.0, 2.0, 2.0), 1e-3
        )
        for epsilon in (0.5, 2.0, 4.0):
            low, high = GAUSSIAN.bounds(epsilon, (total,))
            assert composed.lower(epsilon) <= float(high) * (1 + 1e-12)
            assert composed.upper(epsilon)[0] >= float(low) * (1 - 1e-12)
            assert composed.lower(epsilon) > 0.9 * float(low)


def test_a_laws_own_arrays_are_left_alone() -> None:
    held = {}

    def curve(epsilon: Floats) -> Floats:
        held["value"] = np.full(len(epsilon), 0.25)
        return held["value"]

    grid_dots.connect(Profile(curve, "flat", ends=(-0.5, 0.5)), (), 0.5, 0.1, count=12)
    assert (held["value"] == 0.25).all()


def test_discrete_gaussians_are_a_lattice_without_ends() -> None:
    """Against plain convolution of the atoms, far into the tails."""
    variance, count = 4.0, 3
    k = np.arange(-90, 91)
    weight = np.exp(-(k**2) / (2 * variance))
    law = np.ones(1)
    for _ in range(count):
        law = np.convolve(law, weight / weight.sum())
    # The loss of k under a shift of 1 is (2k + 1)/(2·variance), up to sign; three of them add their k.
    loss = (2 * np.arange(-90 * count, 90 * count + 1) + count) / (2 * variance)
    for epsilon in (0.3, 1.1, 3.0):
        truth = float(law @ -np.expm1(np.minimum(epsilon - loss, 0.0)))
        bracket = grid.delta([Term(DISCRETE_GAUSSIAN, (variance, 1.0), count)], epsilon)
        assert bracket.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= bracket.upper
        assert bracket.width <= 1e-6 * truth
