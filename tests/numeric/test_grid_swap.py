"""Profiles read through the swapped pair: the identity of each law, enumerations, integrals, both ways."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import mpmath as mp
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.numeric.test_grid import Atoms, enumerated

from sfumato.errors import NotCertified
from sfumato.loss import BoundedRangeLoss, GaussianLoss
from sfumato.numeric import compose, grid, grid_dots, grid_fft, grid_passes
from sfumato.numeric.bracket import Bracket
from sfumato.numeric.grid_swap import Swapped
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

RATES = st.floats(-5.0, -0.3).map(lambda x: 10.0**x)
SIGMAS, EPSILONS = st.floats(0.3, 4.0), st.floats(0.05, 3.0)
MIXED = st.tuples(SIGMAS, st.floats(0.1, 2.0)).map(lambda p: (p[0], 0.0, p[1], 0.7, 0.3))

ONE = st.one_of(
    st.tuples(st.sampled_from([SAMPLED_GAUSSIAN_REMOVE, SAMPLED_GAUSSIAN_ADD]), st.tuples(RATES, SIGMAS)),
    st.tuples(st.sampled_from([SAMPLED_LAPLACE_REMOVE, SAMPLED_LAPLACE_ADD]), st.tuples(RATES, EPSILONS)),
    st.tuples(st.sampled_from([GAUSSIAN_MIXTURE_REMOVE, GAUSSIAN_MIXTURE_ADD]), MIXED),
    st.tuples(st.sampled_from([GAUSSIAN, LAPLACE, PURE, BOUNDED_RANGE]), st.tuples(EPSILONS)),
    st.tuples(st.just(DOUBLE), st.tuples(EPSILONS, RATES)),
    st.tuples(st.just(K_RESPONSE), st.tuples(EPSILONS, st.integers(2, 9).map(float))),
    st.tuples(st.just(DISCRETE_LAPLACE), st.tuples(st.floats(0.05, 1.0), st.integers(1, 4).map(float))),
    st.tuples(st.just(DISCRETE_GAUSSIAN), st.tuples(st.floats(0.3, 20.0), st.integers(1, 3).map(float))),
)


@settings(max_examples=120, deadline=None)
@given(one=ONE, x=st.floats(-3.0, 3.0))
def test_every_law_knows_its_swap(one: tuple[Law, tuple[float, ...]], x: float) -> None:
    law, parameters = one
    other = law.swap()
    assert other is not None
    assert other.swap() is law
    low, high = law.bounds(x, parameters)
    low_swapped, high_swapped = other.bounds(-x, parameters)
    first, scale = -math.expm1(x), math.exp(x)
    near = 1e-12 * (abs(first) + scale)
    assert float(low) <= first + scale * float(high_swapped) + near
    assert float(high) >= first + scale * float(low_swapped) - near


def test_a_curve_alone_has_no_swap() -> None:
    assert Profile(lambda x: LAPLACE.delta(x, (0.5,))).swap() is None


@dataclass(frozen=True, eq=False)
class Pair(Atoms):
    """Finitely many losses, with the pair the other way round."""

    back: list[Law] = field(default_factory=list)

    def swap(self) -> Law:
        return self.back[0]


def pair(losses: list[float], weights: list[float], rate: float) -> Pair:
    """Q has the weights and P is (1 - rate)·Q + rate·R, where R raises Q by e^loss: large losses are rare."""
    q = np.array(weights) / sum(weights)
    r = q * np.exp(np.array(losses))
    p = (1 - rate) * q + rate * r / r.sum()
    loss = np.log(p / q)
    ahead = Pair(tuple(loss.tolist()), tuple(p.tolist()))
    behind = Pair(tuple((-loss).tolist()), tuple(q.tolist()), back=[ahead])
    ahead.back.append(behind)
    return ahead


PAIRS = st.builds(
    pair,
    st.lists(st.floats(-4.0, 8.0), min_size=3, max_size=3, unique=True),
    st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    st.floats(-4.0, -0.5).map(lambda x: 10.0**x),
)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The swapped pair is tried after the first grid, however short that is; how often it was read."""
    reads: list[int] = []
    read = Swapped.upper
    monkeypatch.setattr(grid_passes, "_LONG", 1.0)
    monkeypatch.setattr(grid_passes, "_SHORTER", math.inf)
    monkeypatch.setattr(grid_passes, "_CANCELLED", 1e-9)
    monkeypatch.setattr(Swapped, "upper", lambda self, x: reads.append(1) or read(self, x))
    yield reads
    assert reads


@pytest.mark.usefixtures("always")
def test_the_swapped_pair_holds_the_enumerated_truth() -> None:
    @settings(max_examples=40, deadline=None)
    @given(
        law=PAIRS, count=st.integers(1, 4), exponent=st.floats(-4.0, 1.0), sign=st.sampled_from([1, 1, 1, -1])
    )
    def delta(law: Pair, count: int, exponent: float, sign: int) -> None:
        terms, epsilon = [Term(law, (), count)], sign * 10.0**exponent
        bracket = grid.delta(terms, epsilon, largest=2**16)
        assert bracket.lower <= enumerated(terms, epsilon) <= bracket.upper

    @settings(max_examples=40, deadline=None)
    @example(law=pair([2.5, 5.8, 0.1], [0.82, 0.13, 0.46], 10.0**-2.8), count=4, exponent=-4.3)  # is swapped
    @example(law=pair([6.9, 3.6, 5.6], [0.77, 0.9, 0.39], 10.0**-0.6), count=2, exponent=-2.6)
    @given(law=PAIRS, count=st.integers(1, 4), exponent=st.floats(-6.0, -1.0))
    def epsilon(law: Pair, count: int, exponent: float) -> None:
        terms, target = [Term(law, (), count)], 10.0**exponent
        bracket = grid.epsilon(terms, target, largest=2**16)
        assert enumerated(terms, bracket.upper) <= target
        assert bracket.lower == 0.0 or enumerated(terms, bracket.lower) >= target * (1 - 1e-12)

    delta()
    epsilon()


def number(ball: arb) -> mp.mpf:
    mantissa, exponent = ball.mid().man_exp()
    return mp.ldexp(int(mantissa), int(exponent))


def two(rate: float, sigma: float, epsilon: float) -> mp.mpf:
    """δ of two sampled Gaussians: E[δ(ε - L)] with the profile of one, in thirty digits."""
    with mp.workdps(30), ctx.workprec(160):
        q, s, e, half = arb(rate), arb(sigma), arb(epsilon).exp(), arb("0.5").sqrt()
        mu, root = 1 / s, (2 * arb.pi()).sqrt()

        def below(x: arb) -> arb:
            return (-x * half).erfc() / 2

        def one(excess: arb) -> arb:
            if excess <= -q:
                return -excess
            y = (1 + excess / q).log()
            return q * (below(mu / 2 - y / mu) - y.exp() * below(-mu / 2 - y / mu))

        def part(point: mp.mpf) -> mp.mpf:
            y = arb(point)
            ratio = 1 - q + q * (y * mu - mu * mu / 2).exp()
            return number((-y * y / 2).exp() / root * ratio * one(e / ratio - 1))

        # Beyond this point the second loss is always large enough.
        bend = number(s * ((e / (1 - q) - (1 - q)) / q).log() + mu / 2)
        around = [bend + k for k in (-1, mp.mpf("-0.1"), 0, mp.mpf("0.1"), 1)]
        far = range(20, 400, 20) if epsilon > 1 else ()
        return mp.quad(part, sorted([*around, *range(-14, 12, 4), 12 + number(mu), *far]))


FAMILY = [
    ("3.7", "0.001", 1e-6),
    ("3.1", "0.0007", 1e-5),
    ("1", "0.001", 1e-4),
    ("8", "0.00001", 1e-3),
    ("0.1", "0.0001", 1e-6),
    ("2", "0.02", 1e-2),
]


@pytest.mark.parametrize(("rho", "rate", "epsilon"), FAMILY)
def test_two_rare_samples_near_epsilon_0(rho: str, rate: str, epsilon: float) -> None:
    ((term,), *_) = (GaussianLoss(rho).sampled(rate) * 2).directions() or ()
    truth = two(*term.parameters, epsilon)
    found = compose.bracket_of_delta(((term,),), epsilon)
    assert found.lower <= truth <= found.upper <= truth * (1 + 3e-5)
    back = compose.epsilon(((term,),), found.upper)
    assert two(*term.parameters, back.upper) <= found.upper
    assert two(*term.parameters, back.lower) >= found.upper
    assert back.meets()


def test_a_slip_in_the_identity_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails if the swapped profile is read without its factor e^epsilon."""
    monkeypatch.setattr(Swapped, "_told", lambda self, x, other, sign: -math.expm1(x) + other)
    ((term,), *_) = (GaussianLoss("3.7").sampled("0.001") * 2).directions() or ()
    try:
        found = grid.delta((term,), 0.01)
    except NotCertified:
        return  # the two sides contradict each other
    assert not found.lower <= two(*term.parameters, 0.01) <= found.upper


@pytest.mark.parametrize(
    ("rho", "rate", "count", "epsilon"),
    [
        ("3.7", "0.001", 5, 1e-6),
        ("1", "0.001", 10, 1e-6),
        ("0.1", "0.0001", 50, 3e-4),
        ("0.5", "0.001", 32, 5e-3),
    ],
)
def test_both_ways_round_agree(
    rho: str, rate: str, count: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    (terms, *_) = (GaussianLoss(rho).sampled(rate) * count).directions() or ()
    short = grid.delta(terms, epsilon)
    monkeypatch.setattr(grid_passes, "_other_side", lambda *_: None)
    grid_dots.clear()
    long = grid.delta(terms, epsilon)
    assert short.lower <= long.upper
    assert long.lower <= short.upper
    assert short.upper <= long.upper * (1 + 3e-5)


@pytest.mark.parametrize(
    ("rho", "rate", "count", "delta"),
    [("0.5", "0.00001", 40, 1e-12), ("2.19", "0.00001", 50, 1e-9), ("3.53", "0.00001", 22, 1.1e-7)],
)
def test_a_grid_as_fine_as_rounding_lets_it_be(rho: str, rate: str, count: int, delta: float) -> None:
    """What is left of the width is rounding, which a grid of half the step would not lessen."""
    (terms, *_) = (GaussianLoss(rho).sampled(rate) * count).directions() or ()
    seen: list[tuple[float, float]] = []  # step, rounding
    with pytest.MonkeyPatch.context() as patch:
        read = grid_fft.Composed.rounding
        patch.setattr(
            grid_fft.Composed,
            "rounding",
            lambda self, x: seen.append((self.step, read(self, x))) or seen[-1][1],
        )
        found = grid.epsilon(terms, delta)
    assert found.meets(1e-4, 0.0)
    assert not found.meets()
    assert len(seen) > 1
    assert all(fine[1] > 0.9 * rough[1] > 0 for rough, fine in itertools.pairwise(seen) if fine[0] < rough[0])


@pytest.mark.parametrize(("rho", "rate", "epsilon"), [("0.0116", "0.1", 10.0), ("0.1", "0.0001", 10.0)])
def test_what_no_float_can_tell_from_0(rho: str, rate: str, epsilon: float) -> None:
    ((term,), *_) = (GaussianLoss(rho).sampled(rate) * 2).directions() or ()
    assert 0 < two(*term.parameters, epsilon) < mp.mpf("4e-324")
    assert compose.bracket_of_delta(((term,),), epsilon) == Bracket(0.0, 5e-324)


SAMPLED = {
    "rho": st.floats(-2.0, 1.0).map(lambda x: 10.0**x),
    "rate": RATES.filter(lambda q: q < 0.2),
    "count": st.integers(2, 60),
}


@settings(max_examples=5, deadline=None)
@given(**SAMPLED)
@example(rho=0.019, rate=1e-5, count=11)
@example(rho=5.31, rate=1e-5, count=43)
def test_the_total_variation_is_told_either_way(rho: float, rate: float, count: int) -> None:
    either_way(rho, rate, count)


@pytest.mark.stats
@settings(max_examples=100, deadline=None)
@given(**SAMPLED)
def test_the_total_variation_is_told_either_way_in_the_long_run(rho: float, rate: float, count: int) -> None:
    either_way(rho, rate, count)


def either_way(rho: float, rate: float, count: int) -> None:
    ways = (GaussianLoss(rho).sampled(rate) * count).directions() or ()
    found = compose.delta(ways, 0.0, swapped=True)
    for way in ways:
        alone = compose.bracket_of_delta((way,), 0.0)
        assert alone.lower <= found.upper
        assert found.lower <= alone.upper
    assert found.meets(1e-3, 0.0)


@settings(max_examples=6, deadline=None)
@given(
    rho=st.floats(0.05, 6.0),
    rate=RATES.filter(lambda q: q < 0.2),
    count=st.integers(2, 60),
    exponent=st.floats(-9.0, -2.0),
)
def test_a_direction_that_stops_early_changes_nothing(
    rho: float, rate: float, count: int, exponent: float
) -> None:
    ways = (GaussianLoss(rho).sampled(rate) * count).directions() or ()
    delta = 10.0**exponent
    both = compose.bracket_of_epsilon(ways, delta)
    assert both.upper == max(compose.bracket_of_epsilon((way,), delta).upper for way in ways)


@pytest.mark.parametrize("e", [0.1, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-4])
def test_two_bounded_ranges(e: float, delta: float) -> None:
    (terms,) = (BoundedRangeLoss(e) * 2).directions() or ()
    top = mp.mpf(terms[0].parameters[0])

    def truth(epsilon: float) -> mp.mpf:
        # The sum of two losses of density e^(l/2)/(4 sinh(e/2)).
        with mp.workdps(30):
            part = lambda s: (2 * top - s) * mp.exp(s / 2) * -mp.expm1(epsilon - s)  # noqa: E731
            return mp.quad(part, [mp.mpf(epsilon), 2 * top]) / (16 * mp.sinh(top / 2) ** 2)

    found = compose.epsilon((terms,), delta)
    assert truth(found.upper) <= delta <= truth(found.lower)
    assert found.meets()
