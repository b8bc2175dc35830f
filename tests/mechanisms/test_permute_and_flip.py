from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.testing import assert_discrete, seeded


def coins(mechanism, scores):
    rate = mpmath.mpf(mechanism._rate.numerator) / mechanism._rate.denominator
    return [mpmath.exp(-rate * int(gap)) for gap in -mechanism._grid.relative(scores)]


def law(mechanism, scores):
    """The exact law as it is defined: over all orders, the first heads."""
    with mpmath.workdps(40):
        p = coins(mechanism, scores)
        chance = [mpmath.mpf(0)] * len(p)
        orders = list(permutations(range(len(p))))
        for order in orders:
            left = mpmath.mpf(1)
            for i in order:
                chance[i] += left * p[i]
                left *= 1 - p[i]
        return [c / len(orders) for c in chance]


def worst_ratio(mechanism, left, right):
    with mpmath.workdps(40):
        return max(
            abs(mpmath.log(p / q)) for p, q in zip(law(mechanism, left), law(mechanism, right), strict=True)
        )


@pytest.mark.parametrize("scores", [[3, 2, 0], [0.5, 0.5, 0.1, -2.0], [1e15, 1e15 + 1]])
def test_choices_follow_the_exact_law(scores):
    mechanism = PermuteAndFlip(1, 1)
    expected = law(mechanism, scores)
    assert abs(float(sum(expected)) - 1) < 1e-14
    with seeded(1):
        drawn = [mechanism.select(scores) for _ in range(6000)]
    assert_discrete(drawn, {i: float(p) for i, p in enumerate(expected)})


def test_it_is_not_the_exponential_mechanism():
    scores = [3, 2, 0]
    with seeded(1):
        drawn = [Exponential(1, 1).select(scores) for _ in range(6000)]
    with pytest.raises(AssertionError):
        assert_discrete(drawn, {i: float(p) for i, p in enumerate(law(PermuteAndFlip(1, 1), scores))})


FOUR = st.lists(st.floats(-20, 20), min_size=4, max_size=4)
MOVES = st.lists(st.floats(-1, 1), min_size=4, max_size=4)


@settings(max_examples=60, deadline=None)
@given(FOUR, MOVES, st.booleans())
def test_no_neighbours_are_told_apart_by_more_than_epsilon(scores, moves, monotone):
    moved = [x + (abs(m) if monotone else m) for x, m in zip(scores, moves, strict=True)]
    assert worst_ratio(PermuteAndFlip(1, 1, monotone=monotone), scores, moved) <= 1


def test_epsilon_is_reached_and_the_monotone_rate_breaks_it_on_other_scores():
    left, right = [0, 10], [1, 9]
    assert 1 - 2e-6 < worst_ratio(PermuteAndFlip(1, 1), left, right) <= 1
    assert worst_ratio(PermuteAndFlip(1, 1, monotone=True), left, right) > 1.99


def test_its_loss_is_not_of_bounded_range():
    # Two candidates change places: the losses are about ±0.83, a range above ε. Claiming ε²/8 would be wrong.
    mechanism = PermuteAndFlip(1, 1)
    with mpmath.workdps(40):
        pairs = zip(law(mechanism, [0, 1]), law(mechanism, [1, 0]), strict=True)
        losses = [mpmath.log(p / q) for p, q in pairs]
    assert max(losses) - min(losses) > 1.6
    assert mechanism.loss.rho == Fraction(1, 2)


@settings(max_examples=60, deadline=None)
@given(FOUR)
def test_its_expected_error_is_never_more_than_the_exponential_mechanisms(scores):
    ours, theirs = PermuteAndFlip(1, 1), Exponential(1, 1)
    gaps = [int(gap) for gap in -ours._grid.relative(scores)]
    with mpmath.workdps(40):
        p = coins(theirs, scores)
        exponential = mpmath.fsum(g * x for g, x in zip(gaps, p, strict=True)) / mpmath.fsum(p)
        flip = mpmath.fsum(g * x for g, x in zip(gaps, law(ours, scores), strict=True))
    assert flip <= exponential * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("candidates", [2, 5, 7])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.9999])
def test_error_is_the_exact_quantile_of_the_worst_case(candidates, confidence):
    mechanism = PermuteAndFlip("0.7", 2)
    width = mechanism.error(confidence, candidates=candidates)
    assert width <= Exponential("0.7", 2).error(confidence, candidates=candidates)

    def bad(gap):
        scores = np.zeros(candidates)
        scores[1:] = -gap
        return float(1 - law(mechanism, scores)[0])

    assert bad(width) <= 1 - confidence
    if width > 1:
        assert bad(width * (1 - 1e-3)) > (1 - confidence) * (1 - 1e-3)
    assert mechanism.error(confidence, candidates=1) == 0


def test_a_million_candidates_and_what_error_promises_for_them():
    mechanism = PermuteAndFlip(2, 1)
    scores = np.zeros(1_000_000)
    scores[777] = mechanism.error(0.999999, candidates=scores.size) + 1
    with seeded(3):
        assert mechanism.select(scores) == 777


def test_unusable_input_is_refused():
    with pytest.raises(InvalidParameter):
        PermuteAndFlip(0, 1)
    with pytest.raises(InvalidParameter, match="candidates"):
        PermuteAndFlip(1, 1).error(0.9)
    for scores in ([], [float("nan"), 1.0], [float("inf")], ["a"]):
        with pytest.raises(InvalidValue):
            PermuteAndFlip(1, 1).select(scores)


def test_it_shows_its_parameters():
    assert repr(PermuteAndFlip(1, 2)) == "PermuteAndFlip(epsilon=1, sensitivity=2, monotone=False)"
