"""Chapter 14: ranges and samples from one noisy histogram."""

import numpy as np
import pytest

from sfumato import book
from sfumato.book.synthetic import _shares
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.random import simulation
from sfumato.testing import seeded

draw = simulation(14)
ages = draw.integers(17, 91, 30_000)
COUNTS = [book.range_query({"Age": ages}, "Age", age, age + 1) for age in range(120)]


def test_ranges_are_sums_of_bins_and_nothing_lies_outside():
    for a, b in ((0, 120), (21, 40), (40, 21), (90, 500), (-10, 30), (-10, -5), (500, 600)):
        assert book.range_query_synth(COUNTS, a, b) == np.count_nonzero((ages >= a) & (ages < b)), (a, b)
    assert book.range_query_synth([5, 7], 18, 19, lower=18) == 5
    assert book.range_query_synth(np.array([5.5, -7]), 18, 20, lower=18) == -1.5


def test_the_originals_negative_number_takes_the_oldest():
    def original(syn_rep, a, b):
        return sum(syn_rep[i] for i in range(a, b))

    assert original(COUNTS, 21, 40) == book.range_query_synth(COUNTS, 21, 40)
    assert original([1, 2, 3], -1, 1) == 4  # the last bin, counted as those of age −1
    assert book.range_query_synth([1, 2, 3], -1, 1) == 1


def test_samples_are_like_the_people():
    with seeded("chapter 14"):
        syn_rep = book.laplace_mech_vec(COUNTS, 1, 1)
        made = np.array(book.gen_samples(30_000, syn_rep=syn_rep))
    assert abs(made.mean() - ages.mean()) < 0.6
    for a, b in ((17, 30), (30, 60), (60, 91)):
        assert abs(np.mean((made >= a) & (made < b)) - np.mean((ages >= a) & (ages < b))) < 0.02


def test_empty_bins_stay_nearly_empty_where_the_original_fills_them():
    counts = np.zeros(20_000)
    counts[:10] = 100  # a thousand people in ten of 20,000 bins
    with seeded("empty bins"):
        syn_rep = book.laplace_mech_vec(counts, 1, 1)
        made = np.array(book.gen_samples(2_000, syn_rep=syn_rep))
    clipped = np.clip(syn_rep, 0, None)
    assert clipped[:10].sum() / clipped.sum() < 0.15
    assert np.mean(made < 10) > 0.6


@pytest.mark.parametrize("counts", [[3, -1, 5, 0.5], [1, 1, -5], [-1, -2], [0, 0], [7]])
def test_shares_are_the_nearest_of_the_same_total(counts):
    counts = np.array(counts, float)
    shares = _shares(counts)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    total = counts.sum()
    if total <= 0:
        assert np.ptp(shares) == 0
        return
    for other in simulation(3).dirichlet(np.ones(len(counts)), 500):
        assert np.sum((counts - total * shares) ** 2) <= np.sum((counts - total * other) ** 2) + 1e-9


def test_two_columns_are_pairs_of_public_values():
    pairs = [(age, job) for age in ("young", "old") for job in ("Sales", "Tech", "Court")]
    made = book.gen_samples(4_000, syn_rep=[300, 100, -4, 0, 600, 2], bins=pairs)
    assert set(made) <= set(pairs)
    assert 0.55 < made.count(("old", "Tech")) / 4_000 < 0.65
    assert book.gen_samples(0, syn_rep=[1, 2]) == []
    assert book.gen_samples(3, syn_rep=[0, 1], bins=["no", "yes"]) == ["yes"] * 3


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: book.gen_samples(5, syn_rep=[1, 2], bins=["a"]), InvalidParameter, "1 bins and 2 counts"),
        (lambda: book.gen_samples(-1, syn_rep=[1, 2]), InvalidParameter, "n"),
        (lambda: book.gen_samples(5, syn_rep=[]), InvalidValue, "flat list of noisy counts"),
        (lambda: book.gen_samples(5, syn_rep=[1, float("nan")]), InvalidValue, "flat list"),
        (lambda: book.range_query_synth([[1]], 0, 1), InvalidValue, "flat list"),
        (lambda: book.range_query_synth([1], 0.5, 1), InvalidParameter, "a"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
