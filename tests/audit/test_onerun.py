"""Bounds from one run, against exact probabilities: false alarms are as rare as stated, curve by curve."""

import math

import numpy as np
import pytest
from scipy import special, stats

from sfumato.audit import one_run, one_run_fdp
from sfumato.audit.onerun import FAMILIES, one_run_p_value
from sfumato.errors import InvalidParameter

RIGHT = {  # the chance that the best guess about one canary is right, under the worst mechanism of a family
    "gaussian": lambda mu: float(special.ndtr(mu / 2)),
    "laplace": lambda epsilon: 1 - math.exp(-epsilon / 2) / 2,
    "pure": lambda epsilon: 1 / (1 + math.exp(-epsilon)),
}


def alarm(refuted, canaries, right):
    """The exact chance that a claim is refuted, where each guess is right by itself with chance `right`."""
    chances = stats.binom.pmf(range(canaries + 1), canaries, right)
    return sum(chance for count, chance in enumerate(chances) if refuted(count))


@pytest.mark.parametrize("canaries", [5, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomized_response_is_refuted_as_rarely_as_stated(canaries, confidence, epsilon):
    def refuted(count):
        return one_run(count, canaries, canaries, confidence=confidence).refutes(epsilon + 1e-9)

    assert alarm(refuted, canaries, RIGHT["pure"](epsilon)) <= 1 - confidence
    # The same by the p-value itself, which the bound must agree with.
    rejected = [
        one_run_p_value(count, canaries, canaries, epsilon=epsilon, delta=0.0) <= 1 - confidence
        for count in range(canaries + 1)
    ]
    assert rejected == [refuted(count) for count in range(canaries + 1)]


def test_the_p_value_without_delta_is_exact():
    assert one_run_p_value(9, 10, 12, epsilon=1.0, delta=0.0) == pytest.approx(
        stats.binom.sf(8, 10, math.e / (1 + math.e))
    )
    assert (
        alarm(lambda count: one_run(count, 40, 40, confidence=0.8).refutes(0.5), 40, RIGHT["pure"](0.5))
        > 0.19
    )


@pytest.mark.parametrize("delta", [0.001, 0.02])
def test_what_reveals_everything_now_and_then_is_refuted_as_rarely_as_stated(delta):
    canaries, epsilon, confidence = 30, 0.5, 0.9
    right = delta + (1 - delta) * RIGHT["pure"](epsilon)

    def refuted(count, at):
        return one_run(count, canaries, canaries, delta=at, confidence=confidence).refutes(epsilon)

    assert alarm(lambda count: refuted(count, delta), canaries, right) <= 1 - confidence
    assert refuted(canaries, 0.0)


def test_delta_term_is_the_published_one():
    # Steinke, Nasr and Jagielski's loop, written out for 4 right of 4 about 5 canaries.
    right = math.e / (1 + math.e)
    pmf = stats.binom.pmf(range(5), 4, right)
    alpha = max(sum(pmf[4 - step : 4]) / step for step in range(1, 5))
    found = one_run_p_value(4, 4, 5, epsilon=1.0, delta=0.01)
    assert found == pytest.approx(pmf[4] + alpha * 0.01 * 2 * 5)
    assert one_run_p_value(4, 4, 5, epsilon=1.0, delta=0.9) == 1.0


def test_a_value_that_rejects_nothing_is_not_told_too_small():
    # (0, 0.05)-private, three canaries: P(at least one right) can be 0.91875, and 0.9125 is printed.
    assert one_run_p_value(1, 3, 3, epsilon=0.0, delta=0.05) == 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
def test_p_values_rise_with_epsilon(delta):
    for correct in (20, 26, 30):
        values = [one_run_p_value(correct, 30, 40, epsilon=x / 10, delta=delta) for x in range(60)]
        assert values == sorted(values)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("canaries", [5, 12, 30])
@pytest.mark.parametrize("size", [0.5, 1.5])
def test_worst_mechanism_of_a_family_is_refuted_as_rarely_as_stated(family, canaries, size):
    delta = 1e-3 if family == "gaussian" else 0.0
    truth = FAMILIES[family].epsilon(size, delta)

    def refuted(count):
        bound = one_run_fdp(count, canaries, canaries, delta=delta, confidence=0.8, family=family)
        return bound.refutes(truth + 1e-9)

    assert alarm(refuted, canaries, RIGHT[family](size)) <= 0.2


def test_a_curve_says_more_than_one_pair():
    plain = one_run(900, 1000, 1000, delta=1e-5)
    curve = one_run_fdp(900, 1000, 1000, delta=1e-5)
    truth = FAMILIES["gaussian"].epsilon(2 * special.ndtri(0.9), 1e-5)
    assert 1.8 * plain.epsilon < curve.epsilon < truth


def test_pure_curves_agree_with_the_binomial():
    for correct in (60, 80, 100):
        curve = one_run_fdp(correct, 100, 100, family="pure").epsilon
        assert curve == pytest.approx(one_run(correct, 100, 100).epsilon, abs=0.06)


def test_epsilons_of_curves():
    assert FAMILIES["gaussian"].epsilon(1.0, 0.1) == pytest.approx(1.1603, abs=1e-4)
    assert FAMILIES["laplace"].epsilon(1.0, 0.0) == pytest.approx(1.0)
    assert FAMILIES["laplace"].epsilon(1.0, 0.1) == pytest.approx(1 + 2 * math.log(0.9))
    assert FAMILIES["pure"].epsilon(1.0, 0.0) == pytest.approx(1.0)
    x = FAMILIES["pure"].epsilon(1.0, 0.1)
    assert (math.e - math.exp(x)) / (1 + math.e) == pytest.approx(0.1)
    assert FAMILIES["pure"].epsilon(0.1, 0.9) == 0.0


def test_assumptions_are_said():
    plain, curve = one_run(90, 100, 100), one_run_fdp(90, 100, 100, delta=1e-5)
    for bound in (plain, curve):
        assert "a fair coin of its own" in bound.assumption
        assert max(map(len, str(bound).splitlines())) <= 80
        told = " ".join(str(bound).split())
        assert bound.assumption in told
        assert "90 of 100 guesses about 100 canaries" in told
    assert "nothing is assumed about the mechanism" in plain.assumption
    assert "at least as private as some Gaussian mechanism" in curve.assumption
    assert "the bound is about that curve" in curve.assumption


def test_guesses_no_better_than_coins_prove_nothing():
    assert one_run(50, 100, 200).epsilon == 0.0
    assert one_run_fdp(50, 100, 200, delta=1e-5).epsilon == 0.0
    assert one_run(0, 0, 10).epsilon == 0.0


@pytest.mark.parametrize(
    ("counts", "options", "words"),
    [
        ((5, 4, 10), {}, "at most as many"),
        ((4, 11, 10), {}, "at most as many"),
        ((0, 0, 0), {}, "at most as many"),
        ((1, 2, 3), {"delta": 1.0}, "delta"),
        ((1, 2, 3), {"confidence": 0.0}, "confidence"),
        ((1.0, 2, 3), {}, "whole number"),
    ],
)
def test_unusable_numbers_are_refused(counts, options, words):
    with pytest.raises(InvalidParameter, match=words):
        one_run(*counts, **options)
    with pytest.raises(InvalidParameter):
        one_run_fdp(*counts, **{"delta": 1e-5, **options})


def test_unusable_families_are_refused():
    with pytest.raises(InvalidParameter, match="'gaussian', 'laplace', 'pure'"):
        one_run_fdp(9, 10, 10, delta=1e-5, family="cauchy")
    with pytest.raises(InvalidParameter, match="no finite epsilon at delta 0"):
        one_run_fdp(9, 10, 10)


def test_numbers_of_numpy_are_numbers():
    plain = one_run(90, 100, 200, delta=1e-5)
    found = one_run(np.int64(90), np.int32(100), np.uint16(200), delta=np.float64(1e-5))
    assert found == plain
    assert {type(each) for each in (found.correct, found.guesses, found.canaries)} == {int}
    curve = one_run_fdp(np.int64(90), np.int64(100), np.int64(200), delta="1e-5")
    assert curve == one_run_fdp(90, 100, 200, delta=1e-5)


@pytest.mark.parametrize("count", [90.0, True, "90", None])
def test_what_is_no_count_is_refused(count):
    with pytest.raises(InvalidParameter, match="correct must be a whole number"):
        one_run(count, 100, 200)
