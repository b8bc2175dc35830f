from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.top_k import TopK
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


def law(mechanism, scores):
    """The exact probability of every ordered list."""
    with mpmath.workdps(40):
        rate = mpmath.mpf(mechanism._rate.numerator) / mechanism._rate.denominator
        weights = [mpmath.exp(-rate * int(gap)) for gap in -mechanism._grid.relative(scores)]
        lists = {}
        for chosen in permutations(range(len(weights)), mechanism.count):
            left, chance = mpmath.fsum(weights), mpmath.mpf(1)
            for i in chosen:
                chance *= weights[i] / left
                left -= weights[i]
            lists[chosen] = chance
        return lists


def test_lists_follow_the_exact_law():
    mechanism, scores = TopK(2, 1, count=2), [0.0, 1.0, 3.0, 2.5]
    expected = {chosen: float(p) for chosen, p in law(mechanism, scores).items()}
    assert sum(expected.values()) == pytest.approx(1)
    with seeded(1):
        drawn = [tuple(mechanism.select(scores)) for _ in range(6000)]
    assert_discrete(drawn, expected)


def test_one_round_of_gumbel_noise_gives_the_same_lists():
    mechanism, scores, n = TopK(2, 1, count=2), np.array([0.0, 1.0, 3.0, 2.5]), 200_000
    noisy = scores + np.random.default_rng(3).gumbel(scale=2.0, size=(n, 4))  # 2·count·Δ/ε
    best = np.argsort(-noisy, axis=1)[:, :2]
    for chosen, p in law(mechanism, scores).items():
        assert_bernoulli(int((best == chosen).all(axis=1).sum()), n, float(p), alpha=1e-6)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-20, 20), min_size=4, max_size=4),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    st.booleans(),
)
def test_no_neighbours_are_told_apart_by_more_than_epsilon(scores, moves, monotone):
    mechanism = TopK(1, 1, count=3, monotone=monotone)
    moved = [x + (abs(m) if monotone else m) for x, m in zip(scores, moves, strict=True)]
    with mpmath.workdps(40):
        left, right = law(mechanism, scores), law(mechanism, moved)
        assert max(abs(mpmath.log(left[chosen] / right[chosen])) for chosen in left) <= 1


def test_epsilon_is_for_the_whole_list():
    mechanism = TopK(1, 1, count=2)
    left, right = law(mechanism, [0, 0, 80]), law(mechanism, [1, 1, 79])
    worst = max(abs(mpmath.log(left[chosen] / right[chosen])) for chosen in left)
    assert 0.99 < worst <= 1
    # The planted bug: each of the two choices at the full price.
    greedy = TopK(2, 1, count=2)
    left, right = law(greedy, [0, 0, 80]), law(greedy, [1, 1, 79])
    assert max(abs(mpmath.log(left[chosen] / right[chosen])) for chosen in left) > 1.9


def test_loss_composes_bounded_ranges():
    loss = TopK(1, 1, count=4).loss
    assert loss.pure == 1
    assert loss.rho == 4 * Fraction(1, 4) ** 2 / 8


def test_all_of_them_and_a_million():
    with seeded(4):
        assert sorted(TopK(1, 1, count=3).select([1, 2, 3])) == [0, 1, 2]
        scores = np.zeros(1_000_000)
        scores[[5, 50, 500]] = [300.0, 600.0, 900.0]
        assert TopK(3, 1, count=3).select(scores) == [500, 50, 5]


def test_the_callers_scores_are_left_alone():
    scores = np.array([1, 5, 3])
    with seeded(5):
        TopK(1, 1, count=2).select(scores)
    assert scores.tolist() == [1, 5, 3]


def test_error_covers_every_choice_of_the_list():
    mechanism = TopK(1, 1, count=3)
    width = mechanism.error(0.9, candidates=30)
    scores = np.concatenate([[3 * width, 2 * width, width], np.zeros(27)])
    with seeded(6):
        hits = sum(mechanism.select(scores) == [0, 1, 2] for _ in range(300))
    assert hits >= 230  # at least 270 are expected, fewer than 230 with probability below 1e-9
    assert mechanism.error(0.9, candidates=1) == 0


def test_unusable_input_is_refused():
    for count in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter):
            TopK(1, 1, count=count)
    with pytest.raises(InvalidParameter, match="only 2"):
        TopK(1, 1, count=3).select([1, 2])
    with pytest.raises(InvalidValue):
        TopK(1, 1, count=1).select([float("nan")])
    with pytest.raises(InvalidParameter, match="candidates"):
        TopK(1, 1, count=1).error(0.9)
