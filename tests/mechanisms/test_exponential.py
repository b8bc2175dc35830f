import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._scores import ScoreGrid
from sfumato.mechanisms.exponential import Exponential
from sfumato.testing import assert_discrete, seeded


def law(mechanism, scores):
    """The exact output probabilities of the law that is drawn, to 50 digits."""
    with mpmath.workdps(50):
        rate = mpmath.mpf(mechanism._rate.numerator) / mechanism._rate.denominator
        weights = [mpmath.exp(-rate * int(gap)) for gap in -mechanism._grid.relative(scores)]
        return [weight / mpmath.fsum(weights) for weight in weights]


def worst_ratio(mechanism, left, right):
    with mpmath.workdps(50):
        return max(
            abs(mpmath.log(p / q)) for p, q in zip(law(mechanism, left), law(mechanism, right), strict=True)
        )


@pytest.mark.parametrize(
    ("mechanism", "scores"),
    [
        (Exponential(1, 1), [3, 2, 0]),
        (Exponential(2, "0.3", monotone=True), [0.1, 0.7, 0.7, -0.4]),
        (Exponential("0.1", 5), [0, 100, 50]),
    ],
)
def test_choices_follow_the_exact_law(mechanism, scores):
    with seeded(1):
        drawn = [mechanism.select(scores) for _ in range(6000)]
    expected = {i: float(p) for i, p in enumerate(law(mechanism, scores))}
    assert_discrete(drawn, expected)


def test_a_law_with_twice_the_rate_is_told_apart():
    scores = [3, 2, 0]
    with seeded(1):
        drawn = [Exponential(2, 1).select(scores) for _ in range(6000)]
    with pytest.raises(AssertionError):
        assert_discrete(drawn, {i: float(p) for i, p in enumerate(law(Exponential(1, 1), scores))})


MOVES = st.lists(st.floats(-1, 1), min_size=4, max_size=4)


@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), MOVES)
def test_no_neighbours_are_told_apart_by_more_than_epsilon(scores, moves):
    moved = [x + m for x, m in zip(scores, moves, strict=True)]
    assert worst_ratio(Exponential(1, 1), scores, moved) <= 1


@given(st.lists(st.floats(-50, 50), min_size=4, max_size=4), MOVES)
def test_monotone_scores_pay_half(scores, moves):
    moved = [x + abs(m) for x, m in zip(scores, moves, strict=True)]
    assert worst_ratio(Exponential(1, 1, monotone=True), scores, moved) <= 1


def test_epsilon_is_reached_and_the_monotone_rate_breaks_it_on_other_scores():
    left, right = [0, 60], [1, 59]
    tight = worst_ratio(Exponential(1, 1), left, right)
    assert 1 - 2e-6 < tight <= 1
    # The planted bug: the rate for monotone scores on scores that are not.
    assert worst_ratio(Exponential(1, 1, monotone=True), left, right) > 1.99


@given(
    st.lists(st.floats(-20, 20), min_size=5, max_size=5), st.lists(st.floats(-1, 1), min_size=5, max_size=5)
)
def test_the_range_of_the_loss_is_bounded_by_epsilon(scores, moves):
    moved = [x + m for x, m in zip(scores, moves, strict=True)]
    mechanism = Exponential(1, 1)
    with mpmath.workdps(50):
        losses = [
            mpmath.log(p / q) for p, q in zip(law(mechanism, scores), law(mechanism, moved), strict=True)
        ]
        assert max(losses) - min(losses) <= 1


def test_bounded_range_is_worth_a_quarter_of_the_pure_concentrated_bound():
    loss = Exponential("0.5", 1).loss
    assert loss.pure == Fraction(1, 2)
    assert loss.rho == Fraction(1, 32)


def test_with_the_negative_distance_as_score_it_is_laplace_of_twice_the_scale():
    # Score −|f − h| over a fine grid of h: the choice is discrete Laplace of scale 2Δ/ε around f, not Δ/ε.
    mechanism, f = Exponential(1, 1), 40
    with mpmath.workdps(30):
        weights = law(mechanism, [-abs(f - h) for h in range(81)])
        ratios = [mpmath.log(weights[f] / weights[f + k]) / k for k in (1, 5, 20)]
    assert all(abs(ratio - Fraction(1, 2)) < 1e-6 for ratio in ratios)


@pytest.mark.parametrize("shift", [0, 1e6, -(2.0**50), 1e15])
def test_a_common_shift_changes_nothing(shift):
    mechanism, scores = Exponential(1, 1), np.array([0.0, 3.0, 5.0])
    assert law(mechanism, scores + shift) == law(mechanism, scores)


def test_huge_scores_neither_overflow_nor_fail():
    # exp(500000) is not a float; the naive weight of each of these is infinite or zero.
    with seeded(2):
        assert Exponential(1, 1).select([1e6, 1e6 - 1e5, 0]) == 0
        assert Exponential(1, 1).select([-1e300, -1e308, 1e308]) == 2
        assert Exponential(1, "1e-250").select([0.0, 1.0]) == 1
    with pytest.raises(OverflowError):
        math.exp(1e6 / 2)


def test_ties_are_fair_and_one_candidate_is_certain():
    with seeded(3):
        drawn = [Exponential(1, 1).select([7.5] * 4) for _ in range(4000)]
        assert Exponential(1, 1).select([3]) == 0
    assert_discrete(drawn, dict.fromkeys(range(4), 0.25))


@pytest.mark.parametrize("candidates", [2, 10, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_error_is_the_exact_quantile_of_the_worst_case_and_within_the_textbook_bound(candidates, confidence):
    mechanism = Exponential("0.7", 2)
    width = mechanism.error(confidence, candidates=candidates)
    beta = 1 - confidence
    textbook = 2 * 2 / 0.7 * (math.log(candidates) + math.log(1 / beta))
    assert width <= textbook * (1 + 2e-6) + 1e-5

    def bad(gap):
        scores = np.zeros(candidates)
        scores[1:] = -gap
        return float(1 - law(mechanism, scores)[0])

    assert bad(width) <= beta
    if width > 1:
        assert bad(width * (1 - 1e-4)) > beta


def test_error_holds_for_several_choices_and_grows_with_them():
    mechanism = Exponential(1, 1)
    one, many = (mechanism.error(0.9, candidates=50, size=k) for k in (1, 20))
    assert one < many == pytest.approx(mechanism.error(1 - 0.1 / 20, candidates=50), rel=1e-6)
    assert mechanism.error(0.9, candidates=1) == 0


def test_error_needs_the_number_of_candidates():
    with pytest.raises(InvalidParameter, match="candidates"):
        Exponential(1, 1).error(0.95)
    for wrong in (0, -3, 1.5, True):
        with pytest.raises(InvalidParameter):
            Exponential(1, 1).error(0.95, candidates=wrong)


@pytest.mark.parametrize(
    "parameters",
    [
        (0, 1),
        (-1, 1),
        (1, 0),
        (float("nan"), 1),
        (float("inf"), 1),
        (1, float("inf")),
        ("x", 1),
        (1, -2),
        (True, 1),
    ],
)
def test_unusable_parameters_are_refused(parameters):
    with pytest.raises(InvalidParameter):
        Exponential(*parameters)


def test_unusable_scores_are_refused():
    for scores in ([], [float("nan")], [1, float("inf")], [[1, 2]]):
        with pytest.raises(InvalidValue):
            Exponential(1, 1).select(scores)


def test_a_million_candidates():
    scores = np.zeros(1_000_000)
    scores[123_456] = 60.0
    with seeded(4):
        found = Counter(Exponential(2, 1).select(scores) for _ in range(3))
    assert found[123_456] == 3


def test_rescaled_scores_need_a_rescaled_sensitivity():
    # Dividing scores by 1000 while leaving the sensitivity alone is not the same question.
    scores = np.array([3000.0, 1000.0])
    honest = law(Exponential(1, 1000), scores)
    assert abs(law(Exponential(1, 1), scores / 1000)[0] - honest[0]) < 1e-5
    assert abs(law(Exponential(1, 1000), scores / 1000)[0] - honest[0]) > 0.1


def test_it_shows_its_parameters_and_equals_its_twin():
    assert repr(Exponential(0.1, 1)) == "Exponential(epsilon=0.1, sensitivity=1, monotone=False)"
    assert Exponential(0.1, 1) == Exponential(Fraction(1, 10), 1.0) != Exponential(0.1, 1, monotone=True)
    assert Exponential(0.1, 1)._grid == ScoreGrid.of(Fraction(1))


def test_the_probabilities_are_those_of_the_law_that_is_drawn():
    made = Exponential(Fraction(1, 2), 3)
    scores = [0.0, 1.5, 4.0, -7.0]
    found = made.probabilities(scores)
    levels = [Fraction(score) / made._grid.step for score in scores]
    with mpmath.workdps(50):
        weights = [
            mpmath.exp(mpmath.mpf(made._rate.numerator) / made._rate.denominator * int(v)) for v in levels
        ]
        exact = [weight / sum(weights) for weight in weights]
    assert np.abs(found - np.array([float(p) for p in exact])).max() < 1e-12
    assert made.probabilities([1e300, 0.0]).tolist() == [1.0, 0.0]
    assert np.isclose(made.probabilities([0, 0]), 0.5).all()
