"""Means of many attributes give their members away, and private means do not."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks.tracing import trace_scores, tracing
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

ATTRIBUTES, MEMBERS, OTHERS = 2_000, 100, 1_600


@pytest.fixture(autouse=True)
def repeatable():
    with seeded("tracing"):
        yield


@pytest.fixture(scope="module")
def study():
    """A population, a study of some of its people, and people who took no part."""
    generator = sf.random.simulation(1)
    population = generator.uniform(0.1, 0.9, ATTRIBUTES)

    def people(count):
        return generator.random((count, ATTRIBUTES)) < population

    return population, people(MEMBERS), people(OTHERS), people(300)


def private(members, mechanism):
    return mechanism.release(members.mean(axis=0))


def gaussian(shrink=1):
    """Total (1, 1e-5): a person moves each of the means by at most 1/n, so √d/n in L2 (exchange)."""
    exact = Fraction(math.isqrt(ATTRIBUTES) + 1, MEMBERS)
    return sf.Gaussian(epsilon=1, delta=1e-5, sensitivity=exact / shrink)


def test_exact_means_give_their_members_away(study):
    population, members, others, _ = study
    outcome = tracing(members.mean(axis=0), population, members, others, target="exact means")
    assert outcome.rate > 0.98
    assert outcome.baseline == pytest.approx(0.05, abs=0.03)
    assert sure(outcome).works
    # √(d/n) = 4.5 deviations apart.
    assert outcome.detail["deviations_apart"] == pytest.approx(math.sqrt(ATTRIBUTES / MEMBERS), rel=0.1)


def test_a_sample_of_the_population_is_reference_enough(study):
    _, members, others, sample = study
    outcome = tracing(members.mean(axis=0), sample, members, others)
    assert sure(outcome).works
    assert outcome.rate > 0.9


def test_one_digit_does_not_hide_anybody(study):
    population, members, others, _ = study
    rounded = members.mean(axis=0).round(1)
    assert sure(tracing(rounded, population, members, others)).works


def test_gaussian_means_hide_their_members_at_a_total_epsilon_of_one(study):
    # Any attack with 5 % false positives finds at most e · 0.05 + 1e-5 = 13.6 % of them; this one about 6 %.
    population, members, others, _ = study
    outcome = tracing(private(members, gaussian()), population, members, others, target="(1, 1e-5)")
    assert sure(outcome).within
    assert outcome.interval[0] <= math.e * outcome.guess.interval(0.99)[1] + 1e-5


def test_laplace_means_hide_their_members_at_a_total_epsilon_of_one(study):
    population, members, others, _ = study
    noise = sf.Laplace(epsilon=1, sensitivity=Fraction(ATTRIBUTES, MEMBERS))  # d/n in L1
    assert sure(tracing(private(members, noise), population, members, others)).within


def test_noise_that_is_ten_times_too_small_is_found_out(study):
    population, members, others, _ = study
    outcome = tracing(private(members, gaussian(shrink=10)), population, members, others)
    assert sure(outcome).works


def test_a_price_for_each_mean_alone_is_found_out(study):
    # Each of the 2,000 means is 1-DP; all together are not.
    population, members, others, _ = study
    noise = sf.Laplace(epsilon=1, sensitivity=Fraction(1, MEMBERS))
    assert sure(tracing(private(members, noise), population, members, others)).works


def test_scores_are_inner_products():
    scores = trace_scores([0.5, 1.0], [0.25, 0.5], [[1, 0], [0, 1]])
    assert scores.tolist() == [0.75 * 0.25 - 0.25, -0.25 * 0.25 + 0.25]


def test_the_threshold_keeps_its_promise_to_outsiders():
    # One attribute whose score is the value itself: the threshold is a rank, and ties are not called members.
    ranks = np.repeat(np.arange(200), 2)[:, None] / 200
    outcome = tracing([1.0], [0.0], ranks[:10], ranks, false_positives=0.1)
    assert outcome.guess.hits == 200 - math.ceil(0.9 * 201)
    flat = tracing([0.0], [0.0], ranks[:10], ranks, false_positives=0.1)
    assert flat.reached.hits == flat.guess.hits == 0
    assert flat.detail["deviations_apart"] is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"means": [0.5]}, "the same attributes"),
        ({"reference": [0.5, 0.5, 0.5]}, "the same attributes"),
        ({"members": [[1, 0, 1]]}, "the same attributes"),
        ({"members": []}, "members must be a table"),
        ({"members": [[math.nan, 0]]}, "members must be a table"),
        ({"means": ["a", "b"]}, "means must be a list of finite numbers"),
        ({"others": [[0, 1]] * 20}, "at least 40 people"),
        ({"false_positives": 0}, "strictly between"),
        ({"confidence": 0}, "strictly between"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(changed, words):
    given = {
        "means": [0.5, 0.5],
        "reference": [0.4, 0.4],
        "members": [[1, 0]],
        "others": [[0, 1]] * 50,
        **changed,
    }
    positional = [given.pop(name) for name in ("means", "reference", "members", "others")]
    with pytest.raises(InvalidParameter, match=words):
        tracing(*positional, **given)


def test_so_few_attributes_that_nobody_could_be_recognised_get_no_verdict():
    draw = simulation(9)
    share = draw.uniform(0.2, 0.8, 2)
    members, others = draw.random((1500, 2)) < share, draw.random((1500, 2)) < share
    found = tracing(members.mean(axis=0), share, members, others)
    assert found.works is found.within is None
    told = " ".join(str(found).split())
    assert "No verdict: this attack would notice a planted leak (exact averages of 2 columns" in told
    assert "in 0 of 5 twins planted with it" in told
    # Enough of them, and private means: a failure that says something.
    share = draw.uniform(0.2, 0.8, 500)
    members, others = draw.random((100, 500)) < share, draw.random((1000, 500)) < share
    assert tracing(members.mean(axis=0), share, members, others).works
    assert tracing(share, share, members, others).works is False
