"""The grid against exact enumeration, closed forms and published values; soundness on random compositions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.numeric import binomial, grid, grid_dots
from sfumato.numeric.exact import float_up
from sfumato.numeric.grid_plan import _decimal, common_step, place
from sfumato.numeric.laws.base import Floats, Smooth, Term
from sfumato.numeric.laws.discrete import DISCRETE_LAPLACE, K_RESPONSE
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.laplace import LAPLACE
from sfumato.numeric.laws.profile import Profile
from sfumato.numeric.laws.pure import DOUBLE, PURE
from sfumato.numeric.laws.sampled import SAMPLED_GAUSSIAN_REMOVE, SAMPLED_LAPLACE_REMOVE

SMALL = (
    2**14
)  # grids of this size keep a test fast; brackets are then wide, and must hold the truth all the same


@dataclass(frozen=True, eq=False)
class Atoms(Smooth):
    """Finitely many losses anywhere: a law whose compositions can be enumerated exactly."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]  # of the finite losses under P
    at_infinity: float = 0.0
    name: str = "atoms"

    def exact(self, epsilon: float) -> mpmath.mpf:
        x = mpmath.mpf(epsilon)
        finite = sum(
            (
                mpmath.mpf(m) * (1 - mpmath.exp(x - loss))
                for loss, m in zip(self.losses, self.masses, strict=True)
                if loss > x
            ),
            mpmath.mpf(0),
        )
        return finite + mpmath.mpf(self.at_infinity)

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        del parameters
        x = np.asarray(epsilon, dtype=np.float64)
        above = np.array(self.losses)[:, None] - x.ravel()
        value = np.array(self.masses) @ -np.expm1(-np.maximum(above, 0.0)) + self.at_infinity
        value = value.reshape(x.shape)
        exact = x >= max(self.losses)
        lower = np.where(exact, self.at_infinity, value * (1 - 1e-13))
        return lower, np.where(exact, self.at_infinity, np.minimum(value * (1 + 1e-13), 1.0))

    def infinity(self, parameters: tuple[float, ...]) -> float:
        del parameters
        return self.at_infinity

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        del parameters
        return min(self.losses), max(self.losses)


def enumerated(terms: Sequence[Term], epsilon: float) -> mpmath.mpf:
    """The composed profile of `Atoms`, path by path, in thirty digits."""
    laws = [term.law for term in terms for _ in range(term.count)]
    with mpmath.workdps(30):
        kept, total, x = mpmath.mpf(1), mpmath.mpf(0), mpmath.mpf(epsilon)
        for law in laws:
            assert isinstance(law, Atoms)
            kept *= 1 - mpmath.mpf(law.at_infinity)
        choices = [list(zip(law.losses, law.masses, strict=True)) for law in laws if isinstance(law, Atoms)]
        for path in itertools.product(*choices):
            loss = mpmath.fsum(mpmath.mpf(each[0]) for each in path)
            if loss > x:
                total += mpmath.fprod(mpmath.mpf(each[1]) for each in path) * (1 - mpmath.exp(x - loss))
        return 1 - kept + total


@st.composite
def atoms(draw: st.DrawFn) -> Atoms:
    """A valid direction: the P-masses and the atom at infinity sum to 1, the Q-masses to at most 1."""
    losses = draw(st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=3, unique=True))
    weights = np.array(draw(st.lists(st.floats(0.05, 1.0), min_size=len(losses), max_size=len(losses))))
    # An atom high enough that the Q-masses cannot exceed 1.
    losses, weights = [*losses, 2.5], np.append(weights, 8.0 * weights.sum() * math.exp(2.0))
    infinity = draw(st.sampled_from([0.0, 1e-9, 0.01]))
    masses = weights / weights.sum() * (1 - infinity)
    masses[-1] += 1 - infinity - masses.sum()
    return Atoms(tuple(losses), tuple(masses.tolist()), infinity)


@settings(max_examples=25, deadline=None)
@given(laws=st.lists(atoms(), min_size=1, max_size=3), share=st.floats(-0.3, 1.02), twice=st.booleans())
def test_delta_holds_the_enumerated_truth(laws: list[Atoms], share: float, twice: bool) -> None:
    terms = [Term(law, (), 2 if twice and i == 0 else 1) for i, law in enumerate(laws)]
    epsilon = share * 2.5 * sum(term.count for term in terms)
    bracket = grid.delta(terms, epsilon, largest=SMALL)
    truth = enumerated(terms, epsilon)
    assert bracket.lower <= truth <= bracket.upper


@settings(max_examples=40, deadline=None)
@given(laws=st.lists(atoms(), min_size=1, max_size=3), exponent=st.floats(-12.0, -0.2))
def test_epsilon_holds_the_enumerated_truth(laws: list[Atoms], exponent: float) -> None:
    terms = [Term(law, ()) for law in laws]
    delta = 10.0**exponent
    bracket = grid.epsilon(terms, delta, largest=SMALL)
    if math.isfinite(bracket.upper):
        assert enumerated(terms, bracket.upper) <= delta
    if math.isinf(bracket.lower):
        assert enumerated(terms, 1e3) >= delta * (1 - 1e-9)
    elif bracket.lower > 0.0:
        assert enumerated(terms, bracket.lower) >= delta


@settings(max_examples=12, deadline=None)
@given(mu=st.floats(0.02, 3.0), count=st.integers(1, 300), exponent=st.floats(-30.0, -1.0))
def test_gaussians_hold_their_closed_form(mu: float, count: int, exponent: float) -> None:
    delta = 10.0**exponent
    bracket = grid.epsilon([Term(GAUSSIAN, (mu,), count)], delta, largest=2**16)
    total = mpmath.mpf(mu) * mpmath.sqrt(count)

    def truth(x: float) -> mpmath.mpf:
        with mpmath.workdps(50):
            return mpmath.ncdf(total / 2 - x / total) - mpmath.exp(x) * mpmath.ncdf(-total / 2 - x / total)

    assert truth(bracket.upper) <= delta
    assert bracket.lower == 0.0 or truth(bracket.lower) >= delta


@pytest.mark.parametrize(
    ("mu", "count", "delta", "truth"), [(1.0, 1, 1e-6, 4.886554117462212), (0.5, 4, 1e-12, 7.238494420178858)]
)
def test_gaussians_meet_the_target(mu: float, count: int, delta: float, truth: float) -> None:
    # 40-digit closed form.
    bracket = grid.epsilon([Term(GAUSSIAN, (mu,), count)], delta)
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.meets()


def test_published_laplace_compositions() -> None:
    # Google's pld_privacy_accountant_test: 3 × b=1 and 2 × b=2 at 1e-14 gives 4 to 1e-6.
    bracket = grid.epsilon([Term(LAPLACE, (1.0,), 3), Term(LAPLACE, (0.5,), 2)], 1e-14)
    assert bracket.meets()
    assert bracket.upper == pytest.approx(4.0, abs=1e-6)
    assert bracket.upper <= 4.0
    # 3 × Poisson(0.2) of b=.5 at 1e-14 gives 2.46964 to 1e-3.
    bracket = grid.epsilon([Term(SAMPLED_LAPLACE_REMOVE, (0.2, 2.0), 3)], 1e-14)
    assert bracket.meets()
    assert bracket.upper == pytest.approx(2.46964, abs=1e-3)


def test_published_thousand_laplace() -> None:
    # Contour integral, bracketed by Google's PLD between 18.95005 and 18.950287373.
    bracket = grid.epsilon([Term(LAPLACE, (0.1,), 1000)], 1e-6)
    assert bracket.lower <= 18.950287367539538 <= bracket.upper
    assert bracket.meets()


def test_one_laplace_is_its_own_curve() -> None:
    for delta in (1e-1, 1e-3, 1e-9):
        bracket = grid.epsilon([Term(LAPLACE, (1.0,))], delta)
        truth = 1.0 + 2.0 * math.log1p(-delta)
        assert bracket.lower <= truth * (1 + 1e-15)
        assert truth <= bracket.upper
        assert bracket.meets()


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-14])
def test_lattices_are_exact(delta: float) -> None:
    truth = binomial.epsilon(0.1, 1000, delta)
    bracket = grid.epsilon([Term(PURE, (0.1,), 1000)], delta)
    assert bracket.upper >= truth.lower
    assert bracket.lower <= truth.upper
    assert bracket.meets(1e-10, 0.0)


def rounded_up(seed: int) -> list[Term]:
    """Randomized responses at prices in thousandths, each the float above its decimal or a bit more."""
    rng = random.Random(seed)
    prices = rng.sample(range(5, 60), 4)
    floats = [float_up(Fraction(price, 1000)) for price in prices]
    return [Term(PURE, (price + rng.randrange(3) * math.ulp(price),), rng.randint(2, 5)) for price in floats]


@pytest.mark.parametrize("seed", range(4))
def test_decimals_that_were_rounded_up_are_on_one_lattice(seed: int) -> None:
    terms = rounded_up(seed)
    _, shared = common_step([place(term, 1e-12, 1e-14) for term in terms])
    assert all(shared)
    bracket = grid.epsilon(terms, 1e-3)
    assert bracket.meets(1e-9, 0.0)
    with mpmath.workdps(30):
        law = [(mpmath.mpf(0), mpmath.mpf(1))]
        for term in terms:
            eps, n = mpmath.mpf(term.parameters[0]), term.count
            true = 1 / (1 + mpmath.exp(-eps))
            each = [
                ((n - 2 * lies) * eps, math.comb(n, lies) * true ** (n - lies) * (1 - true) ** lies)
                for lies in range(n + 1)
            ]
            law = [(a + b, m * w) for a, m in law for b, w in each]

        def truth(x: float) -> mpmath.mpf:
            return mpmath.fsum(m * -mpmath.expm1(x - loss) for loss, m in law if loss > x)

        assert truth(bracket.upper) <= 1e-3 <= truth(bracket.lower)


@pytest.mark.parametrize("value", [1 / 3, 0.1 + 1e-14, math.nextafter(0.3, 0), 0.30000000000000093])
def test_a_price_beside_a_decimal_is_taken_as_it_shows(value: float) -> None:
    assert _decimal(value) == Fraction(repr(value))


def test_two_lattices_with_a_common_step_are_exact() -> None:
    terms = [Term(PURE, (0.3,), 3), Term(K_RESPONSE, (0.2, 4.0), 2), Term(DISCRETE_LAPLACE, (0.1, 3.0), 2)]
    bracket = grid.epsilon(terms, 1e-3)
    assert bracket.meets(1e-9, 0.0)
    with mpmath.workdps(30):
        e = mpmath.exp
        pure = {3: 1 / (1 + e(mpmath.mpf(-0.3))), -3: 1 / (1 + e(mpmath.mpf(0.3)))}
        total = e(mpmath.mpf(0.2)) + 3
        response = {2: e(mpmath.mpf(0.2)) / total, 0: 2 / total, -2: 1 / total}
        r = e(mpmath.mpf(-0.1))
        geometric = {
            3: 1 / (1 + r),
            1: (1 - r) * r / (1 + r),
            -1: (1 - r) * r**2 / (1 + r),
            -3: r**3 / (1 + r),
        }
        law = {0: mpmath.mpf(1)}
        for step in [pure] * 3 + [response] * 2 + [geometric] * 2:
            next_law: dict[int, mpmath.mpf] = {}
            for (a, m), (b, w) in itertools.product(law.items(), step.items()):
                next_law[a + b] = next_law.get(a + b, mpmath.mpf(0)) + m * w
            law = next_law

        def truth(x: float) -> mpmath.mpf:
            unit = mpmath.mpf(1) / 10
            return mpmath.fsum(m * (1 - e(x - k * unit)) for k, m in law.items() if k * unit > x)

        assert truth(bracket.upper) <= 1e-3 <= truth(bracket.lower)


def test_incommensurable_lattices_meet_the_target() -> None:
    terms = [Term(PURE, (0.1,), 5), Term(PURE, (math.pi / 40,), 7)]
    bracket = grid.epsilon(terms, 1e-3)
    assert bracket.meets()
    a, b = 0.1, math.pi / 40
    with mpmath.workdps(30):
        p, q = 1 / (1 + mpmath.exp(mpmath.mpf(-a))), 1 / (1 + mpmath.exp(mpmath.mpf(-b)))

        def truth(x: float) -> mpmath.mpf:
            total = mpmath.mpf(0)
            for i, j in itertools.product(range(6), range(8)):
                loss = (2 * i - 5) * mpmath.mpf(a) + (2 * j - 7) * mpmath.mpf(b)
                if loss > x:
                    mass = mpmath.binomial(5, i) * p**i * (1 - p) ** (5 - i)
                    mass *= mpmath.binomial(7, j) * q**j * (1 - q) ** (7 - j)
                    total += mass * (1 - mpmath.exp(x - loss))
            return total

        assert truth(bracket.upper) <= 1e-3 <= truth(bracket.lower)


def test_atoms_at_infinity_are_added_exactly() -> None:
    terms = [Term(DOUBLE, (1.0, 0.001), 30)]
    truth = binomial.epsilon(1.0, 30, 0.06, delta0=0.001)
    bracket = grid.epsilon(terms, 0.06)
    assert bracket.lower <= truth.upper
    assert truth.lower <= bracket.upper
    assert bracket.meets()
    tiny = binomial.delta(0.5, 7, 3.0, delta0=1e-17)
    bracket = grid.delta([Term(DOUBLE, (0.5, 1e-17), 7)], 3.0)
    assert bracket.lower <= tiny.upper
    assert tiny.lower <= bracket.upper
    # Google's pld_privacy_accountant_test: (1, .1), (2, .2) at their mass at infinity; (1, 0), (2, 0).
    assert grid.epsilon([Term(DOUBLE, (1.0, 0.1)), Term(DOUBLE, (2.0, 0.2))], 0.28).upper == pytest.approx(
        3, abs=1e-9
    )
    assert grid.epsilon([Term(PURE, (1.0,)), Term(PURE, (2.0,))], 0.0).upper == 3.0
    assert grid.epsilon([Term(PURE, (1.0,)), Term(PURE, (2.0,))], 0.0).lower == pytest.approx(3.0, rel=1e-12)
    assert grid.epsilon([Term(DOUBLE, (1.0, 0.1))], 0.05).lower == math.inf


def contour_delta(rate: float, sigma: float, steps: int, epsilon: float, c: float) -> float:
    """δ of Poisson-sampled Gaussians (removal) from a contour integral: another road altogether."""
    x = np.linspace(-14.0, 40.0, 3001)
    density = np.exp(-x * x / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) * (x[1] - x[0])
    ratio = np.log1p(rate * np.expm1((2 * x - 1) / (2 * sigma**2)))
    z = c + 1j * np.arange(-3_000, 3_001) * 0.05
    total = 0.0
    for block in np.array_split(z, 12):
        log_m = steps * np.log(np.exp((block[:, None] + 1) * ratio) @ density)
        total += float(np.exp(log_m - block * epsilon - np.log(block * (block + 1))).sum().real)
    return total * 0.05 / (2 * math.pi)


def test_sampled_gaussians_agree_with_a_contour_integral() -> None:
    terms = [Term(SAMPLED_GAUSSIAN_REMOVE, (0.02, 1.0), 200)]
    bracket = grid.epsilon(terms, 1e-5)
    assert bracket.meets()
    assert contour_delta(0.02, 1.0, 200, bracket.upper, 6.0) <= 1e-5 * (1 + 1e-8)
    assert contour_delta(0.02, 1.0, 200, bracket.lower, 6.0) >= 1e-5 * (1 - 1e-8)


def test_few_events_with_a_small_rate_meet_the_target() -> None:
    for count, delta in ((1, 1e-6), (10, 1e-8)):
        bracket = grid.epsilon([Term(SAMPLED_GAUSSIAN_REMOVE, (1e-3, 1.0), count)], delta)
        assert bracket.meets()
    alone = grid.epsilon([Term(SAMPLED_GAUSSIAN_REMOVE, (1e-3, 1.0))], 1e-6)
    low, high = SAMPLED_GAUSSIAN_REMOVE.bounds([alone.lower, alone.upper], (1e-3, 1.0))
    assert high[0] >= 1e-6 >= low[1]


def test_a_profile_given_as_a_function_composes() -> None:
    def curve(epsilon: Floats) -> Floats:
        return LAPLACE.bounds(epsilon, (0.7,))[1]

    law = Profile(curve, "a curve", ends=(-0.7, 0.7))
    ours = grid.epsilon([Term(law, (), 3)], 1e-4)
    theirs = grid.epsilon([Term(LAPLACE, (0.7,), 3)], 1e-4)
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-7)


def test_delta_and_epsilon_are_inverse() -> None:
    terms = [Term(LAPLACE, (0.3,), 7), Term(GAUSSIAN, (0.2,), 5)]
    for delta in (1e-2, 1e-9):
        bracket = grid.epsilon(terms, delta)
        back = grid.delta(terms, bracket.upper)
        assert back.lower <= delta
        assert back.upper == pytest.approx(delta, rel=1e-4)


def test_the_answer_is_zero_where_delta_is_generous() -> None:
    assert grid.epsilon([Term(LAPLACE, (0.1,))], 0.5).upper == 0.0


def test_cached_grids_give_the_same_answer() -> None:
    terms = [Term(LAPLACE, (0.4,), 3)]
    first = grid.epsilon(terms, 1e-5)
    again = grid.epsilon(terms, 1e-5)
    grid_dots.clear()
    assert first == again == grid.epsilon(terms, 1e-5)


def test_unusable_parameters_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        grid.epsilon([Term(LAPLACE, (1.0,))], 1.0)
    with pytest.raises(InvalidParameter):
        grid.delta([Term(LAPLACE, (1.0,))], math.inf)
