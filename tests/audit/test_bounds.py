"""Clopper–Pearson limits and the bound they give, against exact binomial probabilities."""

import math

import pytest
from scipy import stats

from sfumato.audit import Audit, Bound, Finding, clopper_pearson, familywise, one_run, resolution
from sfumato.audit.bounds import below, epsilon_floor
from sfumato.errors import InvalidParameter


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_each_limit_errs_with_probability_at_most_alpha(trials, p, alpha):
    low, high = clopper_pearson(range(trials + 1), trials, alpha)
    chances = stats.binom.pmf(range(trials + 1), trials, p)
    assert chances[low > p].sum() <= alpha
    assert chances[high < p].sum() <= alpha


def test_limits_are_the_textbook_ones():
    low, high = clopper_pearson(3, 10, 0.025)
    assert float(low) == pytest.approx(
        0.06673951, abs=1e-7
    )  # Clopper and Pearson's 95 % interval for 3 of 10
    assert float(high) == pytest.approx(0.65245285, abs=1e-7)
    low, high = clopper_pearson([0, 10], 10, 0.025)
    assert low[0] == 0.0
    assert high[1] == 1.0


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_bound_is_wrong_at_most_as_often_as_stated(delta):
    # Every pair of counts of a (1/2, delta)-private event, with its exact probability.
    trials, epsilon, q = 25, 0.5, 0.3
    p = math.exp(epsilon) * q + delta
    counts = range(trials + 1)
    wrong = 0.0
    for inside, chance in zip(counts, stats.binom.pmf(counts, trials, p), strict=True):
        floors = epsilon_floor(inside, trials, list(counts), trials, delta=delta, alpha=0.2)
        wrong += chance * stats.binom.pmf(counts, trials, q)[floors > epsilon].sum()
    assert 0 < wrong <= 0.2


def test_bound_reads_well_and_judges_claims():
    bound = Bound.of_counts(
        (700, 1000),
        (200, 1000),
        delta=0.0,
        confidence=0.99,
        event="output up to 0",
        direction="left over right",
    )
    assert 0 < bound.epsilon < math.log(3.5)
    assert bound.refutes(bound.epsilon - 1e-9)
    assert not bound.refutes(bound.epsilon)
    assert "output up to 0" in str(bound)
    assert "700 of 1000 against 200 of 1000" in " ".join(str(bound).split())
    finding = Finding.of("a mechanism", "mechanism", 9.0, bound, samples=10)
    assert max(map(len, f"{bound}\n{finding}".splitlines())) <= 80
    with pytest.raises(AttributeError):
        bound.epsilon = 0.0


def test_no_difference_proves_nothing():
    assert float(epsilon_floor(0, 100, 0, 100, delta=0.0, alpha=0.01)) == 0.0
    assert float(epsilon_floor(50, 100, 50, 100, delta=0.0, alpha=0.01)) == 0.0
    assert float(epsilon_floor(9, 100, 0, 100, delta=0.5, alpha=0.01)) == 0.0


def test_family_pays_for_its_size():
    assert familywise(0.999, 1) == pytest.approx(0.999)
    assert 1 - familywise(0.999, 50) == pytest.approx(0.001 / 50)
    for confidence, tests in ((1.0, 2), (0.0, 2), (0.9, 0)):
        with pytest.raises(InvalidParameter):
            familywise(confidence, tests)


def test_resolution_grows_with_samples_and_stays_below_the_truth():
    figures = [resolution(1.0, 10**k) for k in range(2, 8)]
    assert figures == sorted(figures)
    assert figures[-1] < 1.0
    assert resolution(1.05, 10**6) > 1.0  # so that a claim of 1 for a true 1.05 falls with a million samples
    with pytest.raises(InvalidParameter):
        resolution(0.0, 1000)


@pytest.mark.parametrize(
    ("confidence", "told"),
    [(0.95, "0.95"), (0.999, "0.999"), (1 - 1e-7, "0.9999999"), (math.nextafter(1, 0), "0.9999999999999999")],
)
def test_no_confidence_is_told_as_certainty(confidence, told):
    assert below(confidence) == told
    bound = Bound.of_counts(
        (9, 10), (1, 10), delta=0, confidence=confidence, event="e", direction="left over right"
    )
    for shown in (bound, one_run(9, 10, 10, confidence=confidence)):
        assert f"with confidence {told}:" in " ".join(str(shown).split())
    assert "100 %" not in str(Audit((Finding.of("x", "query", 9.0, bound, samples=10),), confidence))
