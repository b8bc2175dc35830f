"""Quantiles that are selected one between the others: the exact law, its price, and what a row counts."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import PureLoss
from sfumato.mechanisms import NestedQuantiles, Quantiles, nested_quantiles
from sfumato.testing import assert_discrete, seeded

LEVELS = ("1/4", "1/2", "9/10")
HUGE = 3 * 2**30


def halves(weight):
    return weight // 2, weight - weight // 2


def chances(weights, target, rate):
    """Permute-and-flip over all cells of a stretch: a coin for each, then a uniform one of the heads."""
    coins, below = [], 0
    for weight in weights:
        gap = max(Fraction(0), below - target, target - below - weight)
        coins.append(math.exp(-float(rate * gap)))
        below += weight
    found = []
    for i, own in enumerate(coins):
        heads = np.ones(1)
        for other in coins[:i] + coins[i + 1 :]:
            heads = np.convolve(heads, [1 - other, other])
        found.append(own * float((heads / np.arange(1, heads.size + 1)).sum()))
    return found


def law(epsilon, levels, sensitivity, weights):
    """The joint law of all levels by its definition: the middle one first, the others on both sides of it."""
    depth = len(levels).bit_length()
    guard = math.ceil(Fraction(math.log(16 * len(weights))) * 2 * depth * sensitivity / Fraction(epsilon))

    @functools.cache
    def of(levels, first, weights, low, high):
        if not levels:
            return {(): 1.0}
        middle = len(levels) // 2
        level, n = levels[middle], sum(weights)
        part = (level - low) / (high - low)
        target, share = part * n, max(part, 1 - part)
        if level >= Fraction(19, 20):
            target, share = min(target, max(Fraction(n, 2), Fraction(n - guard))), 1
        if level <= Fraction(1, 20):
            target, share = max(target, min(Fraction(n, 2), Fraction(guard))), 1
        rate = Fraction(epsilon) / (2 * depth * share * sensitivity)
        joint = {}
        for place, chance in enumerate(chances(weights, target, rate)):
            left, right = halves(weights[place])
            before = of(levels[:middle], first, (*weights[:place], left), low, level)
            after = of(levels[middle + 1 :], first + place, (right, *weights[place + 1 :]), level, high)
            for one, other in itertools.product(before, after):
                cells = (*one, first + place, *other)
                joint[cells] = joint.get(cells, 0.0) + chance * before[one] * after[other]
        return joint

    return of(tuple(map(Fraction, levels)), 0, tuple(weights), Fraction(0), Fraction(1))


def code(cells, size):
    return sum(cell * size**place for place, cell in enumerate(cells))


def draws(weights, levels, sensitivity, samples=4000):
    with seeded("nested"):
        cells = NestedQuantiles(4, levels, sensitivity=sensitivity).select_many([weights] * samples)
    return np.array([code(row, len(weights)) for row in cells.tolist()])


CASES = [
    (LEVELS, 1, [2, 1, 0, 5]),
    (("0", "1/2", "99/100", "1"), 1, [30, 0, 7]),
    (("1/10", "1/2", "4/5"), HUGE, [2 * HUGE + 1, HUGE, 3 * HUGE + 7]),
    (("1/3", "2/3"), 2**61, [2**62, 2**61 + 1, 2**63]),
]


@pytest.mark.parametrize(("levels", "sensitivity", "weights"), CASES)
def test_choices_follow_the_exact_law(levels, sensitivity, weights):
    expected = law(4, levels, sensitivity, weights)
    assert math.isclose(sum(expected.values()), 1)
    coded = {code(cells, len(weights)): chance for cells, chance in expected.items()}
    assert_discrete(draws(weights, levels, sensitivity), coded)


def test_a_row_that_counts_on_both_sides_is_found_out(monkeypatch):
    levels, sensitivity, weights = CASES[0]
    coded = {code(cells, 4): chance for cells, chance in law(4, levels, sensitivity, weights).items()}

    def planted(stretch, places):
        inside = nested_quantiles._places(stretch) <= np.repeat(places, stretch.lengths)
        return nested_quantiles._Stretch(stretch.weights[inside], places + 1, stretch.first)

    monkeypatch.setattr(nested_quantiles, "_before", planted)
    with pytest.raises(AssertionError):
        assert_discrete(draws(weights, levels, sensitivity), coded)


# The price, over all small histograms and all ways in which a unit enters one.

DELTA, CELLS = 2, 3
PARTS = [part for part in itertools.product(range(DELTA + 1), repeat=CELLS) if sum(part) == DELTA]


def worst(levels, epsilon=6, most=3):
    laws = functools.cache(lambda weights: law(epsilon, levels, DELTA, weights))
    ratios = (
        abs(math.log(chance / laws(tuple(a + b for a, b in zip(weights, part, strict=True)))[cells]))
        for weights in itertools.product(range(most), repeat=CELLS)
        for part in PARTS
        for cells, chance in laws(weights).items()
    )
    return max(ratios) / epsilon


def test_no_unit_is_told_apart_by_more_than_epsilon():
    # Each of two depths at the whole price would cost more.
    assert worst(LEVELS) <= 1 + 1e-9 < 2 * worst(LEVELS, epsilon=12)
    assert worst(("0", "1/2", "1")) <= 1 + 1e-9


def divide(groups, seed):
    """The two sides of stretches of cells, for some weights and for no lesser ones."""
    lengths = np.array([len(group) for group in groups])
    draw = np.random.default_rng(seed)
    places, first = draw.integers(0, lengths), draw.integers(0, 9, lengths.size)
    weights = np.array([weight for group in groups for weight in group])
    more = weights + draw.integers(0, 3, weights.size)
    sides = []
    for flat in (weights, more):
        stretch = nested_quantiles._Stretch(flat, lengths, first)
        sides.append((nested_quantiles._before(stretch, places), nested_quantiles._after(stretch, places)))
        assert sum(side.weights.sum() for side in sides[-1]) == flat.sum()
    before, after = sides[0]
    assert before.lengths.tolist() == (places + 1).tolist()
    assert after.lengths.tolist() == (lengths - places).tolist()
    assert before.first.tolist() == first.tolist()
    assert after.first.tolist() == (first + places).tolist()
    assert all((heavy.weights >= light.weights).all() for light, heavy in zip(*sides, strict=True))


GROUPS = st.lists(st.lists(st.integers(0, 2**58), min_size=1, max_size=5), min_size=1, max_size=4)


@given(GROUPS, st.integers(0, 10**6))
def test_weights_are_divided_and_none_is_counted_twice(groups, seed):
    divide(groups, seed)


def test_weights_that_are_counted_twice_are_found_out(monkeypatch):
    after = nested_quantiles._after
    monkeypatch.setattr(
        nested_quantiles,
        "_after",
        lambda stretch, places: after(stretch._replace(weights=stretch.weights * 2), places),
    )
    with pytest.raises(AssertionError):
        divide([[3, 4], [5]], 1)


def test_one_level_is_selected_as_quantiles_selects_it():
    for level in ("0", "1/4", "1/2", "1"):
        for exchange in (False, True):
            nested = NestedQuantiles(1, [level], sensitivity=3, exchange=exchange)
            plain = Quantiles(1, [level], sensitivity=3, exchange=exchange)
            assert (nested.rate(level), nested.guard(50)) == (plain.rate(level), plain.guard(50))
            assert nested.loss == plain.loss == PureLoss(1)
            with seeded("one"):
                found = nested.select_many([[3, 4, 0, 9]] * 20)
            with seeded("one"):
                assert (found == plain.select_many([[3, 4, 0, 9]] * 20)).all()


def test_prices_are_those_of_depths_and_levels_come_in_order():
    levels = [f"{k}/41" for k in range(40, 0, -1)]
    mechanism = NestedQuantiles(3, [*levels, "1/41"], sensitivity=2)
    assert mechanism.loss == PureLoss(Fraction(1, 2)) * 6
    assert mechanism.loss.pure == 3
    with seeded("order"):
        cells = mechanism.select_many(np.random.default_rng(1).integers(0, 9, (3, 200)))
    assert (np.diff(cells[:, :40], axis=1) <= 0).all()
    assert (cells[:, 39] == cells[:, 40]).all()
    assert mechanism.select_many(np.zeros((0, 9), np.int64)).shape == (0, 41)
    assert mechanism.select_many([[5]]).tolist() == [[0] * 41]
    # What a level takes over from those above it adds to its own variance.
    assert mechanism.rank_variances[39] > 2 / mechanism.rate("1/41") ** 2
    assert mechanism.error(0.9) == math.inf
    assert mechanism.variance is None
    assert mechanism.bias is None


def test_arguments_are_checked():
    for bad in ([], ["2"], "1/2"):
        with pytest.raises(InvalidParameter):
            NestedQuantiles(1, bad, sensitivity=1)
    with pytest.raises(InvalidParameter):
        NestedQuantiles(0, ["1/2"], sensitivity=1)
    with pytest.raises(InvalidValue):
        NestedQuantiles(1, ["1/2"], sensitivity=1).select_many([[1.5]])
