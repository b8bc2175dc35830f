"""A choice at `selection_epsilon(rho)` costs no more than Gaussian noise of that rho, and only just so."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from sfumato.accounting import selection_epsilon
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Exponential

RHOS = st.floats(1e-6, 60)


def needed(epsilon, share):
    """The μ of the pair whose losses are share·ε and share·ε − ε, to 50 digits (lemma 2)."""
    t = epsilon * share
    q = (1 - mpmath.exp(t - epsilon)) / (mpmath.exp(t) - mpmath.exp(t - epsilon))
    # Both masses near 1 are taken from below: the difference to 1 keeps its digits.
    p, rest = mpmath.exp(t) * q, (mpmath.exp(t - epsilon)) * (1 - q)
    return quantile(p, rest) - quantile(q, 1 - q)


def quantile(mass, rest):
    sign = 1 if mass > rest else -1
    return sign * mpmath.findroot(
        lambda z: mpmath.log(mpmath.ncdf(-z)) - mpmath.log(min(mass, rest)),
        mpmath.sqrt(-2 * mpmath.log(2 * min(mass, rest)) + mpmath.mpf("1e-30")) * mpmath.mpf("0.9"),
    )


@settings(max_examples=15)
@given(RHOS, st.floats(0.001, 0.999))
def test_every_pair_of_this_range_costs_at_most_the_noise(rho, share):
    with mpmath.workdps(50):
        epsilon, mu = mpmath.mpf(float(selection_epsilon(rho))), mpmath.sqrt(2 * mpmath.mpf(str(rho)))
        assert needed(epsilon, mpmath.mpf(share)) <= mu * (1 + mpmath.mpf("1e-30"))
        middle = needed(epsilon * (1 + mpmath.mpf("1e-13")), mpmath.mpf("0.5"))
        assert middle > mu  # a little more is too much


def test_the_function_of_lemma_4_is_positive():
    """In balls that cover all of [1/64, 4]; near 0 and beyond it is the lemma's own argument."""

    def parts(z):
        phi = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
        u = (z / arb(2).sqrt()).erf()
        return phi, u, (z / arb(2).sqrt()).erfc() * (1 + u)  # the last: 1 − u²

    for a, b in pairwise(np.linspace(1 / 64, 4, 1200)):
        z = arb(float(a)).union(arb(float(b)))
        start = arb(float(a))
        phi, u, rest = parts(start)
        value = 4 * phi * u - start * rest
        slope = 8 * parts(z)[0] ** 2 - parts(z)[2]
        # The mean value theorem: F(z) ≥ F(a) − (b−a)·|F'| on the whole of it.
        assert value - (arb(float(b)) - start) * abs(slope) > 0


@settings(max_examples=60)
@given(
    st.floats(1e-3, 20),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 1)), min_size=2, max_size=6),
)
def test_laws_of_the_mechanism_itself_stay_above_the_curve(rho, moves):
    mechanism = Exponential(selection_epsilon(rho), 1)
    left = mechanism.probabilities([score for score, _ in moves])
    right = mechanism.probabilities([score + move for score, move in moves])
    assert not below(left, right, np.sqrt(2 * rho))


def test_the_figure_of_zcdp_would_be_too_much():
    """Were ε²/8 a μ²/2, a choice at √(8ρ) would stay above the curve; it does not."""
    for rho in (0.01, 0.5, 5):
        mechanism = Exponential(Fraction(np.sqrt(8 * rho)), 1)
        assert below(mechanism.probabilities([0, 1]), mechanism.probabilities([1, 0]), np.sqrt(2 * rho))


def below(left, right, mu):
    """Whether some test of one law against the other beats all tests of Gaussian noise."""
    order = np.argsort(left / right)
    alarms, misses = np.cumsum(left[order]), 1 - np.cumsum(right[order])
    return bool((misses < ndtr(-ndtri(np.clip(alarms, 0, 1)) - mu) - 1e-9).any())


def test_it_grows_from_the_linear_bound_to_half_of_rho():
    for rho in ("1e-18", "1e-6", "0.1", 3, 50):
        exact = float(Fraction(rho))
        assert float(selection_epsilon(rho)) >= 4 * np.sqrt(exact / np.pi) * (1 - 1e-15)
    assert float(selection_epsilon("1e-18")) == pytest.approx(4e-9 / np.sqrt(np.pi), rel=1e-12)
    assert float(selection_epsilon(10**6)) == pytest.approx(5e5, rel=1e-4)
    assert selection_epsilon(2**100) > 0
    with pytest.raises(InvalidParameter):
        selection_epsilon(0)
