import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import book
from sfumato.accounting import gaussian_classic
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.testing import assert_coverage, seeded

VECTOR = [3, 1.5, -2]


def twice(one, other):
    """Both with the same random bits."""
    with seeded(7):
        first = one()
    with seeded(7):
        return first, other()


@pytest.mark.parametrize(
    ("ours", "law"),
    [
        (lambda: book.laplace_mech(42, 2, "0.5"), lambda: Laplace("0.5", 2).release(42)),
        (lambda: book.gaussian_mech(42, 2, 3, 1e-6), lambda: Gaussian(3, 1e-6, sensitivity=2).release(42)),
        (lambda: book.laplace_mech_vec(VECTOR, 2, 1), lambda: Laplace(1, 2).release(VECTOR)),
        (
            lambda: book.gaussian_mech_vec(VECTOR, 2, 1, 1e-6),
            lambda: Gaussian(1, 1e-6, sensitivity=2).release(VECTOR),
        ),
        (
            lambda: book.gaussian_mech_RDP_vec(VECTOR, 2, 20, "0.1"),
            lambda: Gaussian(rho="0.005", sensitivity=2).release(VECTOR),
        ),
        (
            lambda: book.gaussian_mech_zCDP_vec(VECTOR, 2, "0.1"),
            lambda: Gaussian(rho="0.1", sensitivity=2).release(VECTOR),
        ),
    ],
)
def test_each_draws_from_the_mechanism_that_it_names(ours, law):
    drawn, expected = twice(ours, law)
    assert np.array_equal(drawn, expected)
    assert type(drawn) is type(expected)


def test_the_noise_of_the_renyi_form_has_the_sigma_of_the_book():
    # sigma = sqrt(sensitivity**2 * alpha / (2 * epsilon_bar))
    with seeded(1):
        noise = book.gaussian_mech_RDP_vec(np.zeros(4000), 3, 20, "0.1")
    sigma = math.sqrt(9 * 20 / 0.2)
    inside = int((np.abs(noise) <= sigma).sum())
    assert_coverage(inside, 4000, math.erf(math.sqrt(0.5)))
    assert noise.std() == pytest.approx(sigma, rel=0.08)


@pytest.mark.parametrize("kind", [np.array, pd.Series, lambda v: pl.Series(v), pa.array, tuple])
def test_vectors_of_all_kinds_are_taken(kind):
    drawn, expected = twice(
        lambda: book.laplace_mech_vec(kind([1.0, 2.0]), 1, 1), lambda: Laplace(1, 1).release([1.0, 2.0])
    )
    assert np.array_equal(drawn, expected)


def test_the_books_sigma_breaks_its_promise_and_ours_keeps_it():
    epsilon, delta = 10, 1e-5
    classic = Gaussian(sigma=gaussian_classic(epsilon, delta), sensitivity=1)
    assert classic.loss.delta(epsilon) > 1.4 * delta
    assert book.price("gaussian_mech", epsilon=epsilon, delta=delta).delta(epsilon) <= delta
    # … and where the formula holds, it is more noise than needed.
    assert gaussian_classic("0.5", delta) > 1.2 * Gaussian("0.5", delta, sensitivity=1).sigma


def test_ten_to_the_minus_five_is_not_what_the_book_writes():
    assert 10e-5 == 1e-4
    assert Gaussian(1, 10e-5, sensitivity=1).sigma < Gaussian(1, 1e-5, sensitivity=1).sigma


def test_the_order_that_was_asked_for_is_not_the_best_one_to_convert_at():
    alpha, epsilon_bar, delta = 20, 1, 1e-5
    single = epsilon_bar + math.log(1 / delta) / (alpha - 1)
    assert (
        book.price("gaussian_mech_RDP_vec", alpha=alpha, epsilon_bar=epsilon_bar).epsilon(delta)
        < 0.8 * single
    )


def test_the_books_composition_leaves_out_a_term():
    printed = 2 * 1 * math.sqrt(2 * 10**4 * math.log(1 / 1e-4))
    assert printed == pytest.approx(858.4, abs=0.1)
    # Even ten thousand randomized responses of epsilon 1, the gentlest there are, cost 4947.
    assert book.adv_comp(10**4, epsilon=1, delta=1e-4) == pytest.approx(4947.85, abs=0.01)
    assert book.adv_comp(500, epsilon=1, delta=1e-5) < book.seq_comp(500, epsilon=1) == 500
    assert book.adv_comp(1, epsilon=1, delta=1e-9) <= 1
    assert book.seq_comp(3, epsilon=0.1) == book.seq_comp(3, 0.1) == 0.3
    assert book.adv_comp(500, 1, 1e-5) == book.adv_comp(500, epsilon=1, delta=1e-5)


def test_averaging_k_answers_for_the_price_of_one_is_worse_than_one():
    drawn, expected = twice(
        lambda: book.avg_attack(42, "0.5", 9), lambda: Laplace("0.5", 9).release(np.full(9, 42.0)).mean()
    )
    assert drawn == expected
    with seeded("averages"):
        averages = np.array([book.avg_attack(0, 1, 100) for _ in range(2_000)])
    # k draws of scale k/ε have a mean of variance 2k/ε²; its own spread is √(2 + 3/k) of that over √2000.
    assert averages.var() == pytest.approx(200, rel=6 * (2.03 / 2_000) ** 0.5)
    # The original: scale 1/ε each, which averages to nothing, and costs 100 epsilon.
    assert averages.var() > 1_000 * 2 / 100


def test_one_draw_for_a_whole_column_is_refused():
    for column in ([1.0, 2.0], np.array([1.0]), pd.Series([1.0]), np.array(1.0)):
        with pytest.raises(InvalidValue, match=r"aggregate a column first .*then add noise; .*whole vector"):
            book.laplace_mech(column, 1, 1)
        with pytest.raises(InvalidValue, match=r"aggregate a column first .*then add noise; .*whole vector"):
            book.gaussian_mech(column, 1, 1, 1e-6)
    with pytest.raises(InvalidValue, match="take the function without _vec"):
        book.laplace_mech_vec(1.0, 1, 1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: book.laplace_mech(1, 1, 0), "epsilon must be greater than 0"),
        (lambda: book.gaussian_mech_RDP_vec([1], 1, 1, 1), "alpha must exceed 1"),
        (lambda: book.adv_comp(0, epsilon=1, delta=1e-6), "k must be"),
        (lambda: book.gaussian_mech(1, 1, 1, 0), "delta must"),
        (lambda: book.avg_attack(1, 1, 0), "k must be at least 1"),
        (lambda: book.avg_attack(1, 1, 10**8), "at most ten million"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(call, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        call()


def test_percent_errors():
    assert book.pct_error(200, 190) == 5.0
    assert book.pct_error(-200, -190) == 5.0
    assert book.pct_error([10, 20], [11, 20]).tolist() == pytest.approx([10.0, 0.0])
    with pytest.raises(InvalidValue, match="not 0"):
        book.pct_error(0, 1)
