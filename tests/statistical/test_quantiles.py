"""What quantiles draw: their law in both limbs, their price over two groups, errors and intervals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.mechanisms import Laplace, Quantiles, quantiles
from sfumato.plan.intervals.cdf import Tree, quantile_intervals
from sfumato.plan.intervals.noise import Noise
from sfumato.testing import assert_discrete, seeded
from sfumato.testing.statistics import bernoulli_finding

SAMPLES = 20_000
HUGE = 3 * 2**30


def law(mechanism, level, weights):
    """The exact law, from the definition: a coin for each cell, then a uniform one of the heads."""
    q, n, guard = Fraction(level), sum(weights), mechanism.guard(len(weights))
    target = q * n
    if q >= Fraction(9, 10):
        target = min(target, max(Fraction(n, 2), Fraction(n - guard)))
    if q <= Fraction(1, 10):
        target = max(target, min(Fraction(n, 2), Fraction(guard)))
    coins, below = [], 0
    for weight in weights:
        gap = max(Fraction(0), below - target, target - below - weight)
        coins.append(math.exp(-float(mechanism.rate(level) * gap)))
        below += weight
    chances = {}
    for i, own in enumerate(coins):
        heads = np.ones(1)
        for other in coins[:i] + coins[i + 1 :]:
            heads = np.convolve(heads, [1 - other, other])
        chances[i] = own * float((heads / np.arange(1, heads.size + 1)).sum())
    return chances


def drawn(mechanism, weights, seed, samples=SAMPLES):
    with seeded(seed):
        return mechanism.select_many([weights] * samples)


CASES = [
    ("1/2", 1, [2, 1, 0, 3, 1]),
    ("1/4", 3, [0, 5, 4, 0, 9]),
    ("1", 1, [30, 4, 0, 0, 2, 0]),
    ("0", 1, [0, 0, 3, 30, 0]),
    ("99/100", HUGE, [40 * HUGE, HUGE + 12345, 2 * HUGE, 7]),
    ("1/2", HUGE, [HUGE + 5, HUGE // 3, 0, 2 * HUGE]),
    ("1/3", 2**61, [2**62, 2**61, 2**63, 2**60]),
]


@pytest.mark.parametrize(("level", "sensitivity", "weights"), CASES)
def test_choices_follow_the_exact_law(level, sensitivity, weights):
    mechanism = Quantiles(1, [level], sensitivity=sensitivity)
    expected = law(mechanism, level, weights)
    assert math.isclose(sum(expected.values()), 1)
    assert_discrete(drawn(mechanism, weights, "law")[:, 0], expected)


@pytest.mark.parametrize("lost", ["high", "low"])
def test_a_lost_limb_is_found_out(lost, monkeypatch):
    level, sensitivity, weights = CASES[5]
    mechanism = Quantiles(1, [level], sensitivity=sensitivity)
    true = Quantiles._distances

    def broken(self, *arguments):
        high, low = true(self, *arguments)
        return (0 * high, low) if lost == "high" else (high, 0 * low)

    monkeypatch.setattr(Quantiles, "_distances", broken)
    sample = drawn(mechanism, weights, "limb")[:, 0]
    with pytest.raises(AssertionError):
        assert_discrete(sample, law(mechanism, level, weights))


# A unit of weight 4, half of it in each of two groups.
PAIR = [[7, 0, 0, 0, 0, 1, 8, 0]] * 2, [[9, 0, 0, 0, 0, 1, 8, 0]] * 2


def two_groups(mechanism, side, seed):
    with seeded(seed):
        both = mechanism.select_many(PAIR[side] * SAMPLES).reshape(SAMPLES, 2)
    return both[:, 0] * 8 + both[:, 1]


def test_a_unit_in_two_groups_is_told_apart_by_at_most_epsilon():
    mechanism = Quantiles(2, ["1/2"], sensitivity=4)
    bound = lower_bound(two_groups(mechanism, 0, "left"), two_groups(mechanism, 1, "right"))
    assert not bound.refutes(2.0)


def test_a_price_for_each_group_alone_is_found_out(monkeypatch):
    # As if a unit were in one group only: the weight that it has in one, 2 of 4, for a sensitivity.
    true = quantiles._costs
    monkeypatch.setattr(quantiles, "_costs", lambda level: tuple(cost / 2 for cost in true(level)))
    mechanism = Quantiles(2, ["1/2"], sensitivity=4)
    bound = lower_bound(two_groups(mechanism, 0, "left"), two_groups(mechanism, 1, "right"))
    assert bound.refutes(2.0)


@pytest.mark.parametrize("levels", [["1/2"], ["1/4", "3/4"], [0, "1/2", 1]])
def test_rank_errors_keep_within_the_bound(levels):
    mechanism = Quantiles(1, levels, sensitivity=2)
    generator = np.random.default_rng(1)
    for weights in (generator.integers(0, 40, 64), np.repeat([0, 300], 32), np.repeat([1, 0, 1], [8, 48, 8])):
        upto = np.cumsum(weights)
        answers = drawn(mechanism, weights.tolist(), "rank", 3000)
        target = np.array([float(Fraction(level)) for level in levels]) * upto[-1]
        off = np.maximum(0, np.maximum((upto - weights)[answers] - target, target - upto[answers]))
        for confidence in (0.8, 0.95):
            held = int((off.max(axis=1) <= mechanism.error(confidence, cells=64)).sum())
            bernoulli_finding(held, 3000, confidence, 1.0, "rank errors within the bound").require(1e-9)


# --- intervals at the edge of what they promise ---------------------------------------------------------


def edge(risk, groups=20_000):
    """How often intervals hold an empty cell with exactly half of the weight on either side."""
    tree, laplace = Tree(121), Laplace(1, 4)
    weights = [500] * 60 + [0] + [500] * 60
    exact = np.array(tree.counts(weights), np.int64)
    with seeded("edge"):
        noisy = laplace.release(np.broadcast_to(exact, (groups, exact.size)))
    low, high = quantile_intervals(tree, noisy, Noise.of(laplace), "1/2", risk)
    return int(((low <= 60) & (high >= 60)).sum()), groups


def test_intervals_at_the_edge_keep_their_risk_and_use_most_of_it():
    held, groups = edge(0.1)
    bernoulli_finding(held, groups, 0.9, 0.95, "intervals that hold the cell").require(1e-9)


def test_twice_the_risk_is_found_out():
    held, groups = edge(0.2)
    with pytest.raises(AssertionError):
        bernoulli_finding(held, groups, 0.9, 1.0, "intervals that hold the cell").require(1e-9)
