"""What right guesses prove of epsilon, held against the best attack on a mechanism that is known."""

import math

import pytest
from scipy.stats import binom

from sfumato.attacks._shown import epsilon_shown


def test_all_right_proves_what_the_lower_limit_does():
    low = 0.01 ** (1 / 100)  # 100 of 100 have probability 1 % at this share
    assert epsilon_shown(100, 100, 0.5) == pytest.approx(math.log(low / (1 - low)), rel=1e-6)


def test_what_a_guess_reaches_proves_nothing():
    assert epsilon_shown(50, 100, 0.5) == 0
    assert epsilon_shown(0, 40, 0.001) == 0


@pytest.mark.parametrize("guess", [0.5, 0.02, 0.001])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_bound_is_seldom_wrong_of_the_best_attack(guess, epsilon):
    # K-ary randomized response gives the most that epsilon allows: g·e^ε / (1 − g + g·e^ε). Exactly, over all
    # counts of hits.
    share = guess * math.exp(epsilon) / (1 - guess + guess * math.exp(epsilon))
    wrong = sum(
        binom.pmf(hits, 200, share) for hits in range(201) if epsilon_shown(hits, 200, guess) > epsilon
    )
    assert wrong <= 0.01
