"""The dispatcher: every road against exact enumeration, published tables, and planted bugs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.numeric import compose
from sfumato.numeric.laws import (
    BOUNDED_RANGE,
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
    Profile,
    Term,
)

Real = Any


def atoms(term: Term) -> list[tuple[Real, Real]]:
    """The losses of one discrete event with their probabilities; the rest is at infinity."""
    if term.law is DISCRETE_LAPLACE:
        a, s = mp.mpf(term.parameters[0]), int(term.parameters[1])
        norm = (1 - mp.exp(-a)) / (1 + mp.exp(-a))
        ends = mp.fsum(norm * mp.exp(-a * k) for k in range(400))
        middle = [(a * (s - 2 * k), norm * mp.exp(-a * k)) for k in range(1, s)]
        return [(a * s, ends), *middle, (-a * s, ends * mp.exp(-a * s))]
    eps = mp.mpf(term.parameters[0])
    k = int(term.parameters[1]) if term.law is K_RESPONSE else 2
    scale = (1 - mp.mpf(term.law.infinity(term.parameters))) / (mp.exp(eps) + k - 1)
    return [(eps, mp.exp(eps) * scale), (mp.mpf(0), (k - 2) * scale), (-eps, scale)]


def enumerated(terms: Sequence[Term], epsilon: float) -> Real:
    """The profile of a few discrete events, outcome by outcome."""
    with mp.workdps(30):
        events = [atoms(term) for term in terms for _ in range(term.count)]
        finite, kept = mp.mpf(0), mp.mpf(1)
        for outcome in itertools.product(*events):
            probability = mp.fprod(p for _, p in outcome)
            loss = mp.fsum(x for x, _ in outcome)
            if loss > epsilon:
                finite += probability * (1 - mp.exp(epsilon - loss))
        for event in events:
            kept *= mp.fsum(p for _, p in event)
        return finite + 1 - kept


ONE = st.one_of(
    st.floats(0.1, 1.5).map(lambda e: Term(PURE, (e,))),
    st.tuples(st.floats(0.1, 1.5), st.floats(1e-9, 1e-3)).map(lambda p: Term(DOUBLE, p)),
    st.tuples(st.floats(0.1, 1.5), st.integers(3, 6)).map(lambda p: Term(K_RESPONSE, (p[0], float(p[1])))),
    st.tuples(st.floats(0.1, 0.6), st.integers(1, 3)).map(
        lambda p: Term(DISCRETE_LAPLACE, (p[0], float(p[1])))
    ),
)


@settings(max_examples=10)
@given(terms=st.lists(ONE, min_size=1, max_size=4), part=st.floats(0.05, 0.9))
def test_delta_of_discrete_compositions_is_never_below_an_enumeration(terms: list[Term], part: float) -> None:
    epsilon = part * sum(term.law.support(term.parameters)[1] for term in terms)
    found = compose.delta([terms], epsilon)
    truth = enumerated(terms, epsilon)
    assert found.lower <= truth <= found.upper <= truth * (1 + 2e-4) + mp.mpf("1e-300")


@settings(max_examples=6)
@given(terms=st.lists(ONE, min_size=2, max_size=3), target=st.floats(-4, -1.5))
def test_epsilon_of_discrete_compositions_is_never_below_an_enumeration(
    terms: list[Term], target: float
) -> None:
    delta = 10.0**target
    found = compose.epsilon([terms], delta)
    if math.isinf(found.upper):
        assert enumerated(terms, 1e3) >= delta
        return
    assert enumerated(terms, found.upper) <= delta
    assert found.lower == 0 or enumerated(terms, found.lower) >= delta * (1 - 1e-12)


def test_forgetting_the_mass_at_infinity_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = [Term(DOUBLE, (0.4, 1e-3)), Term(DOUBLE, (0.7, 2e-3)), Term(GAUSSIAN, (0.3,))]
    sound = compose.delta([terms], 1.0).upper
    bare = [Term(PURE, (0.4,)), Term(PURE, (0.7,)), Term(GAUSSIAN, (0.3,))]
    expected = 1 - (1 - 1e-3) * (1 - 2e-3) * (1 - compose.delta([bare], 1.0).upper)
    assert sound == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(compose, "_mass", lambda term: 0.0)
    assert compose.delta([terms], 1.0).upper < sound - 2e-3


def test_the_larger_direction_counts_and_equal_ones_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remove, add = [Term(SAMPLED_GAUSSIAN_REMOVE, (0.2, 0.5))], [Term(SAMPLED_GAUSSIAN_ADD, (0.2, 0.5))]
    both = compose.epsilon([remove, add], 1e-3)
    assert both.upper == max(compose.epsilon([remove], 1e-3).upper, compose.epsilon([add], 1e-3).upper)
    calls = []
    road = compose._epsilon
    monkeypatch.setattr(compose, "_epsilon", lambda *arguments: calls.append(1) or road(*arguments))
    compose.epsilon([[Term(PURE, (0.1,)), Term(PURE, (0.1,))], [Term(PURE, (0.1,), 2)]], 1e-6)
    assert calls == [1]


MIXED = (1.0, 0.0, 1.0, 2.0, 0.2, 0.6, 0.2), (2.0, 0.0, 2.0, 3.0, 0.33, 0.34, 0.33)

PUBLISHED = [
    # dp_accounting's composed test values, then closed forms to 40 digits and the exact binomial.
    ([[Term(GAUSSIAN, (1 / math.sqrt(3),), 3)]], 0.126936, 1.0, 1e-3),
    (
        [[Term(SAMPLED_GAUSSIAN_REMOVE, (0.2, 0.5), 3)], [Term(SAMPLED_GAUSSIAN_ADD, (0.2, 0.5), 3)]],
        0.15594,
        1.0,
        1e-3,
    ),
    (
        [
            [Term(GAUSSIAN_MIXTURE_REMOVE, MIXED[0], 3), Term(GAUSSIAN_MIXTURE_REMOVE, MIXED[1], 2)],
            [Term(GAUSSIAN_MIXTURE_ADD, MIXED[0], 3), Term(GAUSSIAN_MIXTURE_ADD, MIXED[1], 2)],
        ],
        1e-6,
        17.193115,
        1e-6,
    ),
    ([[Term(GAUSSIAN, (0.1,))]], 1e-12, 0.6470081259249824, 1e-12),
    ([[Term(GAUSSIAN, (5.0,))]], 1e-6, 35.56634371413622, 1e-12),
    ([[Term(PURE, (0.1,), 1000)]], 1e-6, 19.3446714479934, 1e-9),
]


@pytest.mark.parametrize(("directions", "delta", "truth", "tolerance"), PUBLISHED)
def test_published_values(directions: list[list[Term]], delta: float, truth: float, tolerance: float) -> None:
    found = compose.epsilon(directions, delta)
    assert found.upper == pytest.approx(truth, abs=tolerance * max(1.0, truth))
    assert found.meets()


def test_sampled_laplace_against_the_published_point() -> None:
    # Three events at rate .2 and scale .5: 2.46964 at delta 1e-14, to three digits.
    for law in (SAMPLED_LAPLACE_REMOVE, SAMPLED_LAPLACE_ADD):
        assert compose.epsilon([[Term(law, (0.2, 2.0), 3)]], 0.0).upper <= 2.46966
    found = compose.delta([[Term(SAMPLED_LAPLACE_REMOVE, (0.2, 2.0), 3)]], 1.0)
    assert 0 < found.lower <= found.upper < 0.2


def test_delta_zero_asks_for_the_largest_loss() -> None:
    assert compose.epsilon([[Term(PURE, (1.0,)), Term(LAPLACE, (2.0,), 3)]], 0.0).upper == 7.0
    assert compose.epsilon([[Term(GAUSSIAN, (1.0,)), Term(PURE, (1.0,))]], 0.0).upper == math.inf
    assert compose.epsilon([[Term(DOUBLE, (1.0, 0.1)), Term(PURE, (1.0,))]], 0.05).upper == math.inf
    assert compose.epsilon([[]], 1e-6).upper == 0.0
    assert compose.epsilon([], 0.0).upper == 0.0


def test_a_large_delta_needs_no_epsilon() -> None:
    assert compose.epsilon([[Term(GAUSSIAN, (0.01,)), Term(LAPLACE, (0.01,))]], 0.4).upper == 0.0
    assert compose.epsilon([[Term(GAUSSIAN, (0.01,))]], 0.4).upper == 0.0


def test_negative_epsilons_are_read_too() -> None:
    found = compose.delta([[Term(GAUSSIAN, (0.5,)), Term(LAPLACE, (0.3,))]], -0.4)
    mirrored = compose.delta([[Term(GAUSSIAN, (0.5,)), Term(LAPLACE, (0.3,))]], 0.4)
    # A symmetric pair: delta(-e) = 1 - e^-e + e^-e delta(e).
    assert found.upper == pytest.approx(-math.expm1(-0.4) + math.exp(-0.4) * mirrored.upper, rel=1e-8)
    assert compose.delta([[]], -1.0).upper == pytest.approx(-math.expm1(-1.0))


def test_profiles_go_to_the_grid() -> None:
    curve = Profile(lambda x: LAPLACE.delta(x, (0.5,)), "copy", 0.0, (-0.5, 0.5))
    found = compose.delta([[Term(curve, (), 2), Term(GAUSSIAN, (0.5,))]], 1.0)
    truth = compose.delta([[Term(LAPLACE, (0.5,), 2), Term(GAUSSIAN, (0.5,))]], 1.0)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.upper == pytest.approx(truth.upper, rel=1e-4)


def test_epsilon_and_delta_are_each_others_inverse() -> None:
    directions = [[Term(LAPLACE, (0.2,), 30), Term(GAUSSIAN, (0.4,)), Term(BOUNDED_RANGE, (0.5,), 3)]]
    for delta in (1e-2, 1e-6, 1e-12):
        epsilon = compose.epsilon(directions, delta)
        assert compose.delta(directions, epsilon.upper).lower <= delta
        assert compose.delta(directions, epsilon.lower).upper >= delta


def test_renyi_sums_over_events_and_matches_the_published_curve() -> None:
    # dp_accounting's table for 50 Poisson(.01) Gaussians of sigma 2.5; at small orders it lists upper
    # bounds.
    term = Term(SAMPLED_GAUSSIAN_REMOVE, (0.01, 2.5), 50)
    for alpha, bound, tolerance in (
        (1.5, 0.000670579741, 0.04),
        (5.0, 0.00218075656, 1e-6),
        (100.0, 167.416308, 1e-6),
    ):
        found = compose.rdp([[term]], alpha)
        assert found <= bound * (1 + 1e-6)
        assert found == pytest.approx(bound, rel=tolerance)
    assert compose.rdp([[term]], math.inf) == math.inf
    with mp.workdps(25):
        s, q = mp.mpf("2.5"), mp.mpf("0.01")
        nodes = mp.arange(-40, 45, mp.mpf(1) / 4)
        moment = mp.fsum(
            mp.npdf(x, 0, s) * (1 - q + q * mp.exp((2 * x - 1) / (2 * s * s))) ** mp.mpf("1.5") for x in nodes
        )
        exact = 50 * mp.log(moment / 4) / mp.mpf("0.5")
    assert exact <= compose.rdp([[term]], 1.5) <= exact * (1 + mp.mpf("1e-7"))
    assert compose.rdp([[Term(GAUSSIAN, (0.5,), 4), Term(PURE, (0.1,))]], 1.0) == pytest.approx(
        0.5 + 0.1 * math.tanh(0.05), rel=1e-6
    )
    assert compose.rdp([[Term(LAPLACE, (0.5,), 2)]], math.inf) == pytest.approx(1.0)
    assert compose.rdp([[Term(DOUBLE, (0.5, 1e-9))]], 2.0) == math.inf


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        compose.epsilon([[Term(PURE, (1.0,))]], 1.0)
    with pytest.raises(InvalidParameter, match="finite"):
        compose.delta([[Term(PURE, (1.0,))]], math.nan)
    with pytest.raises(InvalidParameter, match="alpha"):
        compose.rdp([[Term(PURE, (1.0,))]], 0.5)


def test_terms_with_no_loss_change_nothing() -> None:
    plain = compose.epsilon([[Term(LAPLACE, (0.2,), 30), Term(GAUSSIAN, (0.4,))]], 1e-6)
    more = compose.epsilon([[Term(LAPLACE, (0.2,), 30), Term(GAUSSIAN, (0.4,)), Term(PURE, (0.0,), 5)]], 1e-6)
    assert plain == more
    assert np.isfinite(plain.upper)
