"""Subset counts give every bit away while their error is small, and none at a stated total epsilon."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr

import sfumato as sf
from sfumato.attacks.reconstruction import (
    curve,
    hadamard_answers,
    hadamard_subsets,
    reconstruct,
    reconstruct_fourier,
    reconstruction,
    subset_queries,
)
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded
from verdicts import sure


@pytest.fixture(autouse=True)
def repeatable():
    with seeded("reconstruction"):
        yield


def balanced(n, seed=0):
    """Half of the people have the bit, in a random order: a coin knows no more."""
    return sf.random.simulation(seed).permutation(np.arange(n) % 2 == 1)


def counting(secret, noise=None):
    """Somebody who answers how many of a set have the bit, each time with noise of its own."""
    if noise is None:
        return lambda subset: int(secret[subset].sum())
    return lambda subset: noise.release(int(secret[subset].sum()))


# ── the linear program


def least_error(queries, answers):
    """The program as it is written, with a variable for each answer's error: slow, and plain."""
    rows, n = queries.shape
    found = linprog(
        np.r_[np.zeros(n), np.ones(2 * rows)],
        A_eq=np.hstack([queries.astype(float), np.eye(rows), -np.eye(rows)]),
        b_eq=answers,
        bounds=[(0, 1)] * n + [(0, None)] * 2 * rows,
    )
    return found.x[:n]


@pytest.mark.parametrize("sigma", [0.5, 3, 1e6])
def test_the_dual_program_finds_what_the_plain_one_finds(sigma):
    secret, queries = balanced(24), subset_queries(24, 96, seed=1)
    answers = sf.Gaussian(sigma=sigma, sensitivity=1).release(queries @ secret.astype(float))
    plain = least_error(queries, answers)
    found = reconstruct(queries, answers)
    clear = np.abs(plain - 0.5) > 1e-6  # a vertex may lie at one half exactly
    assert clear.sum() >= 20
    assert (found[clear] == (plain[clear] > 0.5)).all()


def test_exact_counts_give_every_bit():
    secret = balanced(128)
    outcome = reconstruction(counting(secret), secret, seed=2, target="exact counts")
    assert outcome.rate == 1
    assert outcome.baseline == 0.5
    assert outcome.guessing == "a coin"
    assert sure(outcome).works
    assert outcome.detail == {"people": 128, "answers": 512, "method": "lp", "typical_error": 0.0}


def test_rounding_and_a_few_lies_do_not_help():
    secret = balanced(100)
    queries = subset_queries(100, 600, seed=3)
    answers = np.round(queries @ secret.astype(float) / 3) * 3  # to the nearest three
    answers[::20] = 0  # and one answer in twenty made up
    assert sure(reconstruction(answers, secret, queries=queries)).rate >= 0.98


def test_geometric_counts_are_safe_at_a_total_epsilon_of_one():
    # 256 answers at 1/256 each; a bit is then found with probability at most e/(1 + e) = 0.73, by any attack.
    secret = balanced(64)
    outcome = reconstruction(counting(secret, sf.Geometric(Fraction(1, 256), 1)), secret, seed=4)
    assert outcome.detail["answers"] == 256
    assert sure(outcome).within


def test_an_epsilon_of_one_for_each_answer_is_found_out():
    # Composition forgotten: each of the 256 answers is 1-DP, and all together are not.
    secret = balanced(64)
    outcome = reconstruction(counting(secret, sf.Geometric(1, 1)), secret, seed=4)
    assert sure(outcome).works
    assert outcome.rate > 0.9


def gaussian_counts(n, shrink):
    """A vector of 4n counts at a total of (1, 1e-6): a bit moves each by at most 1, so √(4n) in L2."""
    secret, queries = balanced(n), subset_queries(n, 4 * n, seed=5)
    sensitivity = Fraction(math.isqrt(4 * n) + 1)
    noise = sf.Gaussian(epsilon=1, delta=1e-6, sensitivity=sensitivity / shrink)
    return reconstruction(noise.release(queries @ secret.astype(float)), secret, queries=queries)


def test_gaussian_counts_are_safe_at_a_total_epsilon_of_one():
    # The best attack on a bit finds it with probability Φ(1/(2·4.2)) = 0.547 here.
    assert sure(gaussian_counts(256, 1)).within


def test_gaussian_noise_that_is_ten_times_too_small_is_found_out():
    assert sure(gaussian_counts(256, 10)).works


def test_a_rare_bit_is_guessed_by_its_share():
    secret = np.arange(40) % 10 == 0
    outcome = reconstruction(counting(secret), secret, queries=160, seed=6)
    assert outcome.baseline == 0.9
    assert outcome.guessing == "the more frequent bit for everybody"
    assert outcome.rate == 1


def test_subsets_are_random_halves_and_repeat_with_their_seed():
    queries = subset_queries(200, 500, seed=7)
    assert queries.shape == (500, 200)
    assert queries.dtype == np.bool_
    assert abs(queries.mean() - 0.5) < 5 * 0.5 / math.sqrt(queries.size)
    assert (queries == subset_queries(200, 500, seed=7)).all()
    assert (queries != subset_queries(200, 500, seed=8)).any()


# ── the fast transform


@pytest.mark.parametrize("n", [1, 2, 3, 8, 100, 129])
def test_the_transform_agrees_with_the_matrix_it_stands_for(n):
    secret = sf.random.simulation(n).integers(0, 2, n)
    subsets = hadamard_subsets(n)
    size = len(subsets)
    assert size == 2 ** math.ceil(math.log2(n))
    table = np.array([subsets[row] for row in range(size)])
    parity = [[(row & place).bit_count() % 2 == 0 for place in range(n)] for row in range(size)]
    assert (table == np.array(parity)).all()
    assert (hadamard_answers(secret) == table @ secret).all()
    assert (reconstruct_fourier(counting(secret), n) == secret).all()
    with pytest.raises(IndexError):
        subsets[size]


def test_sixty_five_thousand_bits_come_out_of_noisy_answers():
    secret = balanced(2**16)
    answers = hadamard_answers(secret)
    assert (reconstruct_fourier(answers, 2**16) == secret).all()
    # Noise of √n/8 = 32 in an answer is noise of 2 · 32/256 = 1/4 in a bit: Φ(2) of them are right.
    outcome = reconstruction(
        sf.Gaussian(sigma=32, sensitivity=1).release(answers), secret, method="fourier", target="noise of 32"
    )
    spread = 5 * math.sqrt(ndtr(2) * ndtr(-2) / 2**16)
    assert abs(outcome.rate - ndtr(2)) < spread
    assert outcome.detail["typical_error"] == pytest.approx(32, rel=0.02)
    assert sure(outcome).works


@pytest.mark.parametrize(("shrink", "found_out"), [(1, False), (10, True)])
def test_hadamard_counts_are_safe_at_a_total_epsilon_of_one(shrink, found_out):
    # Nobody is in more than all N subsets: √N in L2, for all answers together.
    secret = balanced(1_024)
    noise = sf.Gaussian(epsilon=1, delta=1e-6, sensitivity=Fraction(32, shrink))
    outcome = reconstruction(noise.release(hadamard_answers(secret)), secret, method="fourier")
    assert sure(outcome).works == found_out
    assert sure(outcome).within != found_out


def test_the_first_person_who_is_in_every_subset_is_found_as_well():
    noise = sf.Gaussian(sigma="0.9", sensitivity=1)
    for first in (True, False):
        secret = np.r_[first, balanced(255)]
        for _ in range(20):
            assert reconstruct_fourier(noise.release(hadamard_answers(secret)), 256)[0] == first


def test_what_answers_may_not_change_the_sets():
    secret = balanced(16)
    queries = subset_queries(16, 64, seed=9)
    kept = queries.copy()

    def ask(subset):
        count = int(secret[subset].sum())
        subset[:] = False
        return count

    for method, given in (("lp", {"queries": queries}), ("fourier", {})):
        assert reconstruction(ask, secret, method=method, **given).rate == 1
    assert (queries == kept).all()


# ── the curve


def test_the_curve_falls_where_noise_reaches_the_root_of_n():
    n = 4_096
    found = curve(balanced(n))
    assert found.magnitudes[0] == 0
    assert found.magnitudes[-1] == 8 * 64
    assert found.rates[:2] == (1, 1)
    assert 64 / 4 < found.breaks <= 64 / 2
    for noise, rate in zip(found.magnitudes[1:], found.rates[1:], strict=True):
        expected = ndtr(math.sqrt(n) / (4 * noise))  # noise of 2σ/√n in a bit, rounded at one half
        assert abs(rate - expected) < 5.5 * 0.5 / math.sqrt(n)
    assert str(found).splitlines()[0].split() == ["noise", "of", "√n", "found"]
    assert len(str(found).splitlines()) == 10


def test_the_curve_of_the_linear_program_has_the_same_shape(tmp_path):
    found = curve(balanced(64), magnitudes=[0, 1, 8, 512], method="lp", seed=10)
    assert found.outcomes[0].target == "exact answers"
    assert found.rates[0] == 1
    assert found.rates[1] > 0.9
    assert sure(found.outcomes[3]).within
    figure = found.plot(path=tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5_000
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "what a guess finds",
        "linear program",
    ]


def test_a_curve_that_never_falls_has_no_place_where_it_breaks():
    assert curve(balanced(64), magnitudes=[0, 0.01]).breaks is None


# ── what cannot be used

SECRET = [0, 1, 1, 0]
QUERIES = [[1, 0, 1, 0], [0, 1, 1, 1]]


def _raises(_subset):
    raise RuntimeError("person 3 has it")


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (lambda: reconstruction(len, [0, 2]), "secret must hold zeros and ones"),
        (lambda: reconstruction(len, []), "not empty"),
        (lambda: reconstruction(len, [0, math.nan]), "finite numbers"),
        (lambda: reconstruction(len, ["yes"]), "finite numbers"),
        (lambda: reconstruction(_raises, SECRET), "but raised RuntimeError"),
        (lambda: reconstruction(lambda _: [1, 2], SECRET), "one number for a set"),
        (lambda: reconstruction(lambda _: math.nan, SECRET), "what ask answers must be a finite number"),
        (lambda: reconstruction(len, SECRET, method="guess"), "method must be"),
        (lambda: reconstruction(len, SECRET, method="fourier", queries=3), "leave queries out"),
        (lambda: reconstruction(len, SECRET, queries=[[1, 0]]), "a column for each person"),
        (lambda: reconstruction(len, SECRET, queries=0), "count must be at least 1"),
        (lambda: reconstruction([1, 2], SECRET), "Give the queries, or their seed"),
        (lambda: reconstruction([1, 2, 3], SECRET, queries=QUERIES), "an answer for each of the 2 subsets"),
        (lambda: reconstruction([1], SECRET, method="fourier"), "an answer for each of the 4 subsets"),
        (lambda: reconstruction(len, np.zeros(2_049)), 'method="fourier"'),
        (lambda: reconstruct(np.zeros((1, 2_049)), [1]), "reconstruct_fourier beyond"),
        (lambda: reconstruct(QUERIES, [1]), "as many numbers as queries has rows"),
        (lambda: reconstruct([1, 0], [1]), "a table"),
        (lambda: reconstruct_fourier(len, 0), "n must be at least 1"),
        (lambda: reconstruct_fourier(len, 2**25), "at most 2..24"),
        (lambda: subset_queries(2**20, 2**20), "at most 2..30"),
        (lambda: curve(SECRET, magnitudes=[-1, 0]), "not be negative"),
        (lambda: curve(SECRET, magnitudes=[]), "magnitudes must be a list"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(attack, words):
    with pytest.raises(InvalidParameter, match=words) as caught:
        attack()
    assert "person 3" not in str(caught.value)
