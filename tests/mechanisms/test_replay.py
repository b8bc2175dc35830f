"""Every mechanism, client and game on neighbours with odd values: nothing but the noise may differ."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato import mechanisms
from sfumato.games.examples import examples as games
from sfumato.local.examples import examples as clients
from sfumato.testing import compare, record, replay
from sfumato.testing.replaying import lost

_FROZEN = (
    "Exponential",
    "Gaussian",
    "Laplace",
    "NestedQuantiles",
    "PermuteAndFlip",
    "Quantiles",
    "SampleAndAggregate",
    "TopK",
)
_SEEDS = range(4)
_STARTS = (0.0, -0.0, 5e-324, 0.1, -7.25, 2.0**52, 2.0**53 + 2, -1e18, 2.0**61, 2.0**62, 1e30, 1e300)
_WHOLE = (0, -1, 2**31, 2**53 + 1, 2**61 - 1, 2**61, 2**62, 2**63 - 3, -(2**63))
_FLOATS = {
    "laplace": (sf.Laplace(epsilon=1, sensitivity=1), 1),
    "staircase": (sf.Staircase(epsilon=1, sensitivity=1), 1),
    "truncated": (sf.TruncatedLaplace(epsilon=1, delta=0.01, sensitivity=1), 1),
    "bounded": (sf.BoundedLaplace(epsilon=1, sensitivity=1, lower=-3, upper=3), 1),
    "gaussian": (sf.Gaussian(rho=0.5, sensitivity=1), 1),
}
_INTEGERS = {
    "geometric": sf.Geometric(epsilon=1, sensitivity=1),
    "discrete gaussian": sf.DiscreteGaussian(rho=0.5, sensitivity=1),
}


def _pairs(examples):
    return [pytest.param(each, id=each.name) for each in examples]


@pytest.mark.parametrize("example", _pairs(mechanisms.examples()))
def test_mechanisms_call_for_the_same_noise(example):
    outline = type(example.mechanism).__name__ not in _FROZEN
    for seed in _SEEDS:
        left, right = (lambda side=side: example.draw(side, 1) for side in ("left", "right"))
        tape = record(left, inside=True, seed=seed)
        other = replay(right, tape, inside=True, outline=outline, seed=seed)
        assert other.findings == []
        _check_price(example.mechanism, tape, other)


def _check_price(mechanism, tape, other):
    """What draws that take a value lose is paid for: in epsilon, and in rho where noise is Gaussian."""
    epsilon, rho = lost(tape, other)
    assert not epsilon or epsilon <= mechanism.epsilon * (1 + Fraction(1, 10**12))
    paid = (
        mechanism.rho
        if isinstance(mechanism, sf.GaussianSelection | sf.AdaptiveSelection)
        else mechanism.loss.rho
    )
    assert not rho or rho <= paid * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("example", _pairs(clients()))
def test_clients_call_for_the_same_coins(example):
    for seed in _SEEDS:
        sides = (lambda side=side: example.draw(side, 3) for side in ("left", "right"))
        assert compare(*sides, inside=True, outline=True, seed=seed) == []


@pytest.mark.parametrize("example", _pairs(games()))
def test_games_differ_in_nothing_but_the_noise(example):
    outline = "random number of runs" in example.name  # how good a run is decides which one is given
    for seed in _SEEDS:
        sides = (lambda side=side: example.draw(side, 1) for side in ("left", "right"))
        assert compare(*sides, outline=outline, seed=seed) == []


def _shapes(start, step):
    """Pairs of arguments, the second one step further: numbers, lists, short and long arrays."""
    for value in (float, np.float64):
        yield value(start), value(start + step)
    yield [start, 1], [start + step, 1]
    yield np.array([[start], [0.5]]), np.array([[start + step], [0.5]])
    yield np.full(300, start), np.append(np.full(299, start), start + step)


@pytest.mark.parametrize("name", _FLOATS)
def test_floats_of_every_size_meet_noise_alike(name):
    mechanism, step = _FLOATS[name]
    outline = type(mechanism).__name__ not in _FROZEN
    for start in _STARTS:
        for pair in _shapes(start, step):
            sides = [lambda value=value: mechanism.release(value) for value in pair]
            assert compare(*sides, inside=True, outline=outline) == [], (start, type(pair[0]))


@pytest.mark.parametrize("name", _INTEGERS)
def test_integers_of_every_size_meet_noise_alike(name):
    mechanism = _INTEGERS[name]
    for start in _WHOLE:
        for shaped in (int, lambda x: np.array([x, 7]), np.int64, lambda x: np.full((2, 2), x)[:1, :1]):
            sides = (lambda x=x, shaped=shaped: mechanism.release(shaped(x)) for x in (start, start + 1))
            assert compare(*sides, inside=True, outline=True) == [], (start, shaped)


@pytest.mark.parametrize("mechanism", [sf.Laplace(1, 2**61), sf.Gaussian(rho=1, sensitivity=2**61)])
def test_integers_that_no_array_holds_meet_noise_in_one_call(mechanism):
    small, large = [3, -4, 5], [3, -4, 5 + 2**61]
    wide = [2**70, 3], [2**70 + 2**60, 3]
    for left, right in ((small, large), wide, ([2**61], [2**61 + 1])):
        sides = [lambda values=values: mechanism.release_whole(values) for values in (left, right)]
        assert compare(*sides, inside=True) == []
        tapes = [record(side, inside=True) for side in sides]
        assert len(tapes[0].meetings) == 1
        _check_price(mechanism, *tapes)
